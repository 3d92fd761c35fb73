"""Counts what requests read at a hundred to a hundred thousand tenants, and how that grows with the fleet.

A tenant has its row only. Rows of histories and of outcomes are planted for the requests that read them, as many as
there are tenants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, cast

from bench.counted_table import CountedTable, ParsedTable, Reads
from bench.fleets import NOW, VERSION, fleet_counts_row, tenant, tenant_row
from bench.measure import Result
from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb import history_rows, keys, rollout_rows
from orchestrator.adapters.dynamodb.create_counts import DynamoTenantCounts
from orchestrator.adapters.dynamodb.reconciliations import ReconciliationTable
from orchestrator.adapters.dynamodb.rollouts import RolloutTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.s3 import S3Manifests
from orchestrator.api.rollout_models import MAX_FAILURES
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.reconciling.fleet_counts import FleetCounter
from orchestrator.rollouts.counting import reviews_of
from orchestrator.rollouts.documents import spec_from
from orchestrator.rollouts.finding import TenantFinder
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.planning import plan
from orchestrator.rollouts.records import Item, Rollout, Stage, TenantOutcome
from orchestrator.rollouts.records import Result as Outcome
from orchestrator.rollouts.selecting import select
from orchestrator.tenants.fleet import list_tenants, tenant_detail
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.limits import KeptTenantCount
from orchestrator.tenants.records import Operation, Request, RootCause, Status

SIZES = (100, 1_000, 10_000, 100_000)
LARGEST = 100_000
"""The fleet that a rollout is planned for."""
PLANNING_SECONDS = 30
"""The time that a function has to answer a request. It has a whole processor, and at most half of this time may be
needed, so that there is time for DynamoDB."""
MAX_GROWTH = 1.2

_NEXT = "2.0.0"
_ONE_TENANT = TenantId.parse("the-oldest")
_MOVED, _REVIEWED = "20260101-000000-0001", "20260101-000000-0002"
_CHANGES = ("changes InboundQueue (AWS::SQS::Queue)", "changes DeadLetterQueue (AWS::SQS::Queue)")


@dataclass(frozen=True)
class Measured:
    """A request of an operator, and the reads that answer it."""

    name: str
    answer: Callable[[DynamoTable, RolloutTable], object]
    grows: bool = False
    """True for work that is done once for every tenant, such as a plan."""


REQUESTS: Sequence[Measured] = (
    Measured("GET /releases and doctor: counts by version", lambda tenants, _: _counter(tenants).current()),
    Measured("the number of tenants, before a create", lambda tenants, _: _before_create(tenants)),
    Measured("GET /tenants: a page", lambda tenants, _: list_tenants(tenants)),
    Measured("GET /tenants: a page by prefix", lambda tenants, _: list_tenants(tenants, prefix="000000")),
    Measured("GET /tenants/{id}, with as many operations", lambda tenants, _: tenant_detail(_ONE_TENANT, tenants)),
    Measured(
        "GET /rollouts/{id}: a rollout in which all tenants failed", lambda _, rollouts: _look_at(rollouts, _MOVED)
    ),
    Measured("GET /rollouts/{id}: a dry run of all tenants", lambda _, rollouts: _look_at(rollouts, _REVIEWED)),
    Measured("POST /rollouts: the plan", lambda tenants, _: _finder(tenants).all_tenants(), grows=True),
)


def growth(sizes: Sequence[int] = SIZES, largest: int = LARGEST) -> list[Result]:
    fleets = {size: read_by_request(size) for size in sizes}
    smallest, biggest = sizes[0], sizes[-1]
    results: list[Result] = []
    for each in REQUESTS:
        reads = [fleets[size][each.name] for size in sizes]
        aim = "" if each.grows else f"<= {MAX_GROWTH}"
        first, last = reads[0], reads[-1]
        name = f"{each.name}: from {smallest:,} to {biggest:,} tenants"
        figures = [f"{size:,}: {read.requests}, {read.units:,.1f}" for size, read in zip(sizes, reads, strict=True)]
        results += [
            Result(f"{name}: requests", round(last.requests / first.requests, 2), "x", aim),
            Result(f"{name}: read units", round(last.units / first.units, 2), "x", aim, tuple(figures)),
        ]
    return [*results, _planning_time(largest)]


def read_by_request(size: int) -> Mapping[str, Reads]:
    table = _filled(size)
    client = cast(Any, table)
    tenants, rollouts = DynamoTable(client, "bench"), RolloutTable(client, "bench")
    found: dict[str, Reads] = {}
    for each in REQUESTS:
        each.answer(tenants, rollouts)
        found[each.name] = table.take_reads()
    return found


def _planning_time(size: int) -> Result:
    """The processor time of a plan, from the answers of DynamoDB to the lists of tenants for the rollout's stages.

    DynamoDB's own time is not in it: about 30 ms per request.
    """
    table = ParsedTable()
    for number in range(size):
        table.plant(tenant_row(number))
    tenants = DynamoTable(cast(Any, table), "bench")
    spec = spec_from({"version": _NEXT}, max_concurrency=50)
    began = time.process_time()
    selected = select(spec, _NEXT, _finder(tenants).all_tenants().values())
    planned, _ = plan("bench", spec, selected, by="bench", at=NOW, manifests=S3Manifests(cast(Any, _Bucket()), "bench"))
    took = time.process_time() - began - table.unmeasured_seconds
    if planned.total != size:
        raise RuntimeError(f"{planned.total} of {size} tenants were selected.")
    requests = table.take_reads().requests
    name = f"planning a rollout of {size:,} tenants: processor time, with {requests} requests"
    return Result(name, round(took, 1), "s", f"<= {PLANNING_SECONDS / 2:g}")


class _Bucket:
    """S3, which takes the lists of tenants and forgets them."""

    def put_object(self, **_object: Any) -> None: ...


def _finder(tenants: DynamoTable) -> TenantFinder:
    return TenantFinder(tenants, tenants, SystemClock())


def _counter(tenants: DynamoTable) -> FleetCounter:
    client = tenants._client
    return FleetCounter(
        tenants, ReconciliationTable(client, "bench"), SystemClock(), DynamoTenantCounts(client, "bench")
    )


def _before_create(tenants: DynamoTable) -> int:
    """Below the maximum, however near. Above it the tenants are counted, at most once per minute for all platforms."""
    counts = DynamoTenantCounts(tenants._client, "bench")
    return KeptTenantCount(tenants.count_tenants, counts, SystemClock(), max_tenants=LARGEST + 1)()


def _look_at(rollouts: RolloutTable, rollout_id: str) -> object:
    rollout = rollouts.rollout(rollout_id)
    assert rollout is not None
    stages = rollouts.stages(rollout_id)
    reviews = reviews_of(rollout, rollouts)
    return stages, rollouts.failures(rollout_id, limit=MAX_FAILURES), reviews, rollouts.orders(rollout_id)


# Rows


def _filled(size: int) -> CountedTable:
    table = CountedTable()
    for number in range(size):
        table.plant(tenant_row(number))
        table.plant(history_rows.history_row(_history_entry(number)))
        for rollout in (_MOVED, _REVIEWED):
            table.plant(rollout_rows.outcome_row(_outcome(rollout, number)))
    for rollout in (_MOVED, _REVIEWED):
        table.plant(rollout_rows.plan_row(_rollout(rollout, size)))
        table.plant(rollout_rows.stage_row(_stage(rollout, size)))
    table.plant({**keys.reviews_key(_REVIEWED), "Result#SUCCEEDED": {"N": str(size)}})
    now = timestamp(SystemClock().now())
    table.plant(fleet_counts_row(size, now))
    table.plant({**keys.tenant_count_key(), "Counted": {"N": str(size)}, "CountedAt": {"S": now}})
    return table


def _history_entry(number: int) -> HistoryEntry:
    at = NOW + timedelta(minutes=number)
    request = Request(by="arn:aws:sts::123456789012:assumed-role/operator/ada")
    return HistoryEntry(
        _ONE_TENANT, at, Operation.UPDATE, VERSION, number + 1, Status.SUCCESS, "arn:execution", request=request
    )


def _outcome(rollout: str, number: int) -> TenantOutcome:
    failed = rollout == _MOVED
    cause = RootCause("InboundQueue", "AWS::SQS::Queue", "The queue could not be changed.") if failed else None
    result = Outcome.FAILED if failed else Outcome.SUCCEEDED
    changes = _CHANGES if rollout == _REVIEWED else ()
    item = Item(tenant(number), _NEXT)
    return TenantOutcome(rollout, 1, item, result, NOW, "arn:child", 1, VERSION, root_cause=cause, changes=changes)


def _rollout(rollout: str, size: int) -> Rollout:
    document = {"version": _NEXT, **({"dryRun": True} if rollout == _REVIEWED else {})}
    spec = spec_from(document, max_concurrency=50)
    return Rollout(rollout, spec, "bench", NOW, (size,), size, {})


def _stage(rollout: str, size: int) -> Stage:
    spec = _rollout(rollout, size).spec.stages[-1]
    return Stage(rollout, 1, spec, size, size, "rollouts/list.json", Pace.initial(50))
