"""Whether the control plane itself is well: what `berth doctor` is told."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from orchestrator.common.times import Clock
from orchestrator.reconciling.ports import ReconciliationLedger
from orchestrator.reconciling.reconciler import STUCK_AFTER
from orchestrator.reconciling.records import LATEST_LOOK, SETTLING, SURVEY, Reconciliation, ReconciliationStatus
from orchestrator.tenants.ports import FleetReader, Queues
from orchestrator.tenants.records import TenantState

SETTLING_EVERY = timedelta(minutes=5)
SURVEY_EVERY = timedelta(hours=6)
"""How often reconciliations run by themselves: the stack schedules them by this."""

_NEAR = 0.8
_AT = 0.95
_FEW_FUNCTIONS = 100
"""Rollouts, getQueue and what else the account runs hold each other up below that. New accounts begin with ten."""
_TOLD = 5
"""As many tenants are named; all are counted."""
_NOT_WELL = (TenantState.FAILED, TenantState.UPDATE_FAILED, TenantState.UNKNOWN)


class Verdict(StrEnum):
    """From the best to the worst."""

    OK = "ok"
    UNKNOWN = "unknown"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    verdict: Verdict
    detail: str
    advice: str = ""


@dataclass(frozen=True, slots=True)
class Concurrency:
    """Of all functions of the account in this region."""

    limit: int
    most_used: int
    """At once, in the last day."""


@dataclass(frozen=True, slots=True)
class Health:
    fleet: FleetReader
    reconciliations: ReconciliationLedger
    queues: Queues
    stack_limit: Callable[[], int | None]
    """How many stacks the account may have in this region; ``None`` when AWS does not say."""
    concurrency: Callable[[], Concurrency | None]
    """``None`` when AWS does not say."""
    max_tenants: int
    """How many tenants the control plane lets be created."""
    dead_letter_queues: Mapping[str, str]
    """The control plane's own, by what they hold: their URLs."""
    clock: Clock

    def examine(self) -> list[Check]:
        settling, survey = (self.reconciliations.reconciliation(name) for name in (SETTLING, SURVEY))
        at_versions = list(self.fleet.versions_in_use().values())
        stack_limit = self.stack_limit()
        return [
            self._operations(),
            _failed_tenants(at_versions),
            self._ran("reconciler", settling, SETTLING_EVERY),
            self._ran("survey", survey, SURVEY_EVERY),
            self._unlisted(survey),
            *self._dead_letters(),
            self._tenant_limit(sum(sum(states.values()) for states in at_versions), stack_limit),
            _stacks(survey, stack_limit),
            _functions(self.concurrency()),
        ]

    def _operations(self) -> Check:
        now = self.clock.now()
        stuck = list(takewhile(lambda audit: now - audit.updated_at > STUCK_AFTER, self.fleet.unfinished_operations()))
        if not stuck:
            return Check("operations", Verdict.OK, "none is past its deadline")
        tenants = sorted({audit.tenant.value for audit in stuck})
        told = ", ".join([*tenants[:_TOLD], *(["..."] if len(tenants) > _TOLD else [])])
        return Check(
            "operations",
            Verdict.PROBLEM,
            f"{len(stuck)} past their deadline: {told}",
            "Have them settled: berth reconcile",
        )

    def _tenant_limit(self, tenants: int, stack_limit: int | None) -> Check:
        verdict = _verdict(tenants, self.max_tenants)
        advice = ""
        if verdict is not Verdict.OK:
            advice = "Past the limit none is created. Delete those that nobody needs, or raise berth:maxTenants."
        if stack_limit is not None and self.max_tenants >= stack_limit:
            verdict = max(verdict, Verdict.WARNING, key=list(Verdict).index)
            advice = (
                f"The account may have {stack_limit} stacks: set berth:maxTenants below that, or have the quota raised."
            )
        told = f"{tenants} of {self.max_tenants} that there may be (berth:maxTenants)"
        return Check("tenant limit", verdict, told, advice)

    def _ran(self, name: str, latest: Reconciliation | None, every: timedelta) -> Check:
        if latest is None:
            return Check(name, Verdict.UNKNOWN, "it has not run yet", f"It runs every {_told(every)}.")
        age = self.clock.now() - latest.updated_at
        detail = f"ran {_told(age)} ago"
        if age > every * 3:
            return Check(name, Verdict.PROBLEM, detail, "Look for errors of the function reconcile in its log group.")
        if latest.status is ReconciliationStatus.INCOMPLETE:
            return Check(name, Verdict.WARNING, f"{detail}, and came to no end", latest.reason)
        if latest.left > 0:
            left = ", ".join(f"{count} {kind}" for kind, count in latest.counts.items())
            return Check(name, Verdict.WARNING, f"{detail}, and found {left}", "See them: berth reconcile --dry-run")
        return Check(name, Verdict.OK, detail)

    def _unlisted(self, survey: Reconciliation | None) -> Check:
        """Tenants from before Berth, as the latest look at the whole table has found them, whoever asked for it."""
        looks: list[tuple[datetime, int]] = []
        if survey is not None and (at := survey.updated_at if survey.unlisted else survey.scanned_at):
            looks.append((at, survey.unlisted))
        if (asked_for := self.reconciliations.reconciliation(LATEST_LOOK)) is not None:
            looks.append((asked_for.updated_at, asked_for.unlisted))
        if not looks:
            look = "Look for them: berth adopt --dry-run"
            return Check("adoption", Verdict.UNKNOWN, "nobody has looked for tenants from before Berth yet", look)
        at, count = max(looks)
        if count:
            age = _told(self.clock.now() - at)
            return Check(
                "adoption",
                Verdict.WARNING,
                f"{count} from before Berth in no list, {age} ago: rollouts do not reach them",
                "See what adopting them would do: berth adopt --dry-run",
            )
        return Check("adoption", Verdict.OK, "every tenant is listed")

    def _dead_letters(self) -> Iterator[Check]:
        for what, url in self.dead_letter_queues.items():
            held = self.queues.messages(url)
            if held is None:
                yield Check("dead letters", Verdict.PROBLEM, f"{what}: the queue is gone", "Deploy Berth again.")
            elif held.total:
                yield Check(
                    "dead letters",
                    Verdict.PROBLEM,
                    f"{what}: {held.total} undelivered",
                    f"Their attributes say why. Mend that, then purge the queue: {url}",
                )
            else:
                yield Check("dead letters", Verdict.OK, f"{what}: none")


def _failed_tenants(at_versions: Collection[Mapping[TenantState, int]]) -> Check:
    counts = {state: sum(states.get(state, 0) for states in at_versions) for state in _NOT_WELL}
    found = {state: count for state, count in counts.items() if count}
    if not found:
        return Check("tenants", Verdict.OK, "none has failed")
    told = ", ".join(f"{count} {state}" for state, count in found.items())
    return Check(
        "tenants", Verdict.WARNING, told, f"See why: {', '.join(f'berth tenants --state {state}' for state in found)}"
    )


def _stacks(survey: Reconciliation | None, limit: int | None) -> Check:
    used = survey.looked_at.all_stacks if survey else None
    if limit is None or used is None:
        missing = "AWS does not say how many are allowed" if limit is None else "they have not been counted yet"
        return Check("stacks", Verdict.UNKNOWN, missing)
    verdict = _verdict(used, limit)
    advice = "" if verdict is Verdict.OK else "Have the quota raised: Service Quotas, CloudFormation, Stack count."
    return Check("stacks", verdict, f"{used} of {limit} that the account may have here", advice)


def _functions(concurrency: Concurrency | None) -> Check:
    if concurrency is None:
        return Check("functions", Verdict.UNKNOWN, "AWS does not say how many may run at once")
    verdict = _verdict(concurrency.most_used, concurrency.limit)
    if concurrency.limit < _FEW_FUNCTIONS:
        verdict = max(verdict, Verdict.WARNING, key=list(Verdict).index)
    told = f"{concurrency.most_used} ran at once in the last day, of {concurrency.limit} that may in this account"
    advice = "Have the quota raised: Service Quotas, AWS Lambda, Concurrent executions."
    return Check("functions", verdict, told, "" if verdict is Verdict.OK else advice)


def _verdict(used: int, limit: int) -> Verdict:
    share = used / limit if limit else 1.0
    return Verdict.PROBLEM if share >= _AT else Verdict.WARNING if share >= _NEAR else Verdict.OK


def _told(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    if minutes < 1:
        return f"{int(span.total_seconds())} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
