"""Counts what a survey of a hundred to a hundred thousand tenants asks AWS for, and how that grows with the fleet.

A function may check only so many stacks and tenants here, so that larger fleets take several functions, each of which
continues at the stored position. The same survey without a break shows what the continuing costs. The table is in
memory, and CloudFormation and SQS answer at once. No tenant differs from its stack, and the weekly scan of the table is
not due.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import count
from typing import Any, Self, cast

from bench.counted_table import CountedTable, Reads
from bench.fleets import NOW, VERSION, fleet_counts_row, queue_of, stack_id_of, tenant, tenant_row
from bench.measure import Result
from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.create_counts import DynamoTenantCounts
from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable
from orchestrator.adapters.dynamodb.rollouts import RolloutTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.times import timestamp
from orchestrator.reconciling.fleet_counts import FleetCounter
from orchestrator.reconciling.ports import Drift, StackPage, SurveyedStack
from orchestrator.reconciling.reconciler import Reconciler
from orchestrator.reconciling.records import SURVEY, Reconciliation, ReconciliationStatus, Spec
from orchestrator.releases.records import Release
from orchestrator.tenants.names import Names
from orchestrator.tenants.stack_ports import Stack

SIZES = (100, 10_000, 100_000)
CHECKS_PER_FUNCTION = 30_000
"""The number of tenants and of pages of stacks that one function may check. On AWS its time is limited instead."""
MAX_GROWTH = 1.2
MAX_TIME_GROWTH = 2
"""Each function that continues a survey reads the list of all stacks again, so the time grows with their number."""
MAX_CONTINUING = 1.05

CLOUDFORMATION, SQS, PROCESSOR_TIME = "requests to CloudFormation", "requests to SQS", "processor time"

_STACKS_PER_PAGE = 100
_TABLE = "bench"


class CountedStacks:
    """The fleet's stacks, on pages as CloudFormation has them."""

    def __init__(self, size: int) -> None:
        self._stacks = [_stack(number) for number in range(size)]
        self.requests = 0

    def page(self, token: str | None) -> StackPage:
        self.requests += 1
        begin = int(token or 0)
        end = begin + _STACKS_PER_PAGE
        return StackPage(self._stacks[begin:end], str(end) if end < len(self._stacks) else None)

    def start_drift_detection(self, _stack_id: str) -> str | None:
        raise NotImplementedError("This survey detects no drift.")

    def drift(self, _detection: str) -> Drift:
        raise NotImplementedError("This survey detects no drift.")


class CountedQueues:
    """The fleet's queues. Asking SQS whether a queue exists is one request."""

    def __init__(self) -> None:
        self.requests = 0

    def exist(self, urls: Sequence[str]) -> Mapping[str, bool]:
        self.requests += len(urls)
        return dict.fromkeys(urls, True)


@dataclass(frozen=True)
class Surveyed:
    """The requests of one survey, in all its functions."""

    tenants: int
    stacks: int
    findings: int
    functions: int
    cloudformation: int
    sqs: int
    table: Reads
    seconds: float
    """Processor time."""

    def per_tenant(self) -> Mapping[str, float]:
        return {
            CLOUDFORMATION: self.cloudformation / self.tenants,
            SQS: self.sqs / self.tenants,
            "requests to the table": self.table.requests / self.tenants,
            "units of the table": self.table.units / self.tenants,
            PROCESSOR_TIME: self.seconds / self.tenants,
        }


def survey(sizes: Sequence[int] = SIZES, checks_per_function: int = CHECKS_PER_FUNCTION) -> list[Result]:
    fleets = {size: SurveyedFleet(size) for size in sizes}
    continued = {size: fleet.survey(checks_per_function) for size, fleet in fleets.items()}
    whole = fleets[sizes[-1]].survey(None)
    return [
        *_growth(continued),
        *_continuing(continued[sizes[-1]], whole),
        Result(
            "survey: tenants or stacks that were missed, or checked twice",
            sum(abs(each.tenants - size) + abs(each.stacks - size) for size, each in continued.items()),
            "",
            "0",
        ),
        Result("survey: wrong findings", sum(each.findings for each in continued.values()), "", "0"),
    ]


def _growth(surveyed: Mapping[int, Surveyed]) -> list[Result]:
    smallest, *_, largest = surveyed
    first, last = surveyed[smallest].per_tenant(), surveyed[largest].per_tenant()
    name = f"survey, per tenant: from {smallest:,} to {largest:,} tenants"
    results: list[Result] = []
    for what in first:
        aim = MAX_TIME_GROWTH if what == PROCESSOR_TIME else MAX_GROWTH
        figures = tuple(f"{size:,}: {each.per_tenant()[what]:.3g}" for size, each in surveyed.items())
        results.append(Result(f"{name}: {what}", round(last[what] / first[what], 2), "x", f"<= {aim}", figures))
    for size, each in surveyed.items():
        results.append(Result(f"survey of {size:,} tenants: functions", each.functions, "", ""))
    return results


def _continuing(continued: Surveyed, whole: Surveyed) -> list[Result]:
    """Each stack is listed once. The queues of the page at which a function stopped are asked for twice."""
    name = f"survey of {continued.tenants:,} tenants, in {continued.functions} functions / in one"
    asked = {CLOUDFORMATION: f"<= {MAX_CONTINUING}", SQS: f"<= {MAX_CONTINUING}"}
    before = whole.per_tenant()
    return [
        Result(f"{name}: {what}", round(value / before[what], 3), "x", asked.get(what, ""))
        for what, value in continued.per_tenant().items()
    ]


class SurveyedFleet:
    """A fleet without differences, and the reconciler that surveys it."""

    def __init__(self, size: int) -> None:
        self._table = CountedTable()
        for number in range(size):
            self._table.plant(tenant_row(number))
        now = SystemClock().now()
        self._table.plant(fleet_counts_row(size, timestamp(now)))
        release = Release(VERSION, "https://templates/1.0.0.json", "a digest", NOW, content="a digest")
        self._table.plant(keys.release_key(VERSION) | rows.release_fields(release))
        self._stacks, self._queues = CountedStacks(size), CountedQueues()
        self._ledger = ReconciliationTable(cast(Any, self._table), _TABLE)
        ended = replace(_requested(now - timedelta(hours=6)), status=ReconciliationStatus.DONE)
        self._ledger.record_reconciliation(ended)

    def survey(self, checks_per_function: int | None) -> Surveyed:
        """Survey the fleet, with as many functions as it takes. ``None``: one function has all the time it needs."""
        self._table.take_reads()
        self._stacks.requests = self._queues.requests = 0
        requested = _requested(SystemClock().now())
        began, functions = time.process_time(), 0
        while True:
            functions += 1
            result = self._reconciler(_time_for(checks_per_function)).run(requested)
            if result.over:
                break
        if result.status is not ReconciliationStatus.DONE:
            raise RuntimeError(f"The survey has not ended well: {result.reason}")
        return Surveyed(
            tenants=result.coverage.tenants,
            stacks=result.coverage.all_stacks or 0,
            findings=sum(result.counts.values()),
            functions=functions,
            cloudformation=self._stacks.requests,
            sqs=self._queues.requests,
            table=self._table.take_reads(),
            seconds=time.process_time() - began,
        )

    def _reconciler(self, has_time: Callable[[], bool]) -> Reconciler:
        client, clock = cast(Any, self._table), SystemClock()
        tenants = DynamoTable(client, _TABLE)
        return Reconciler(
            tenants=tenants,
            fleet=tenants,
            releases=tenants,
            stacks=cast(Any, _OnlyNames()),
            survey=self._stacks,
            queues=cast(Any, self._queues),
            settling=cast(Any, _NothingToSettle()),
            repairing=cast(Any, None),
            pool=cast(Any, _NoPool()),
            ledger=self._ledger,
            counter=FleetCounter(tenants, self._ledger, clock, DynamoTenantCounts(client, _TABLE)),
            rollouts=RolloutTable(client, _TABLE),
            rollout_executions=cast(Any, None),
            clock=clock,
            has_time=has_time,
        )


class _NoPool:
    def maintain(self) -> None:
        """No stacks are kept ready."""


class _NothingToSettle:
    """No operation has died, and no create waits for its turn."""

    @property
    def turns(self) -> Self:
        return self

    def settle(self) -> None:
        return


class _OnlyNames:
    """CloudFormation, which is asked about single stacks only if there are differences."""

    names = Names()


def _time_for(checks: int | None) -> Callable[[], bool]:
    if checks is None:
        return lambda: True
    steps = count(1)
    return lambda: next(steps) <= checks


def _requested(at: datetime) -> Reconciliation:
    return Reconciliation(
        SURVEY, by="bench", spec=Spec(), status=ReconciliationStatus.RUNNING, started_at=at, updated_at=at
    )


def _stack(number: int) -> SurveyedStack:
    of = tenant(number)
    stack = Stack(stack_id_of(of), "CREATE_COMPLETE", "", of.value, queue_of(of), VERSION, ours=True)
    return SurveyedStack(Names().stack_of(of), stack)
