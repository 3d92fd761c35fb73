"""The health of the control plane: the checks of `berth doctor`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

from orchestrator.common.tenant_ids import WARM_PREFIX
from orchestrator.common.times import Clock
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import MemberState, TierOfPool
from orchestrator.reconciling.fleet_counts import FleetCounter, FleetCounts
from orchestrator.reconciling.ports import ReconciliationLedger
from orchestrator.reconciling.reconciler import STUCK_AFTER
from orchestrator.reconciling.records import SETTLING, SURVEY, Reconciliation, ReconciliationStatus
from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger
from orchestrator.rollouts.stalling import stalled_rollouts
from orchestrator.tenants.ports import FleetReader, Queues
from orchestrator.tenants.records import TenantState

SETTLING_EVERY = timedelta(minutes=5)
SURVEY_EVERY = timedelta(hours=6)
POOL_EVERY = timedelta(minutes=1)
"""How often the scheduled reconciliations run. The stack uses these values for the schedules."""

_NEAR = 0.8
_AT = 0.95
_FEW_FUNCTIONS = 100
"""Below this limit, rollouts, getQueue and the account's other functions slow each other down. New accounts have 10."""
_MAX_NAMED = 5
"""The maximum number of tenants that are named. All are counted."""
EMPTY_TOO_LONG = timedelta(minutes=15)
"""How long a pool may be empty before that is a warning: longer than it takes to fill a pool."""
_OTHER_STATES = {
    MemberState.COMING: "being created",
    MemberState.FAILED: "failed",
    MemberState.LEAVING: "being deleted",
    MemberState.LEARNING: "taken and learning their tenants",
}
_SEE_POOL = f"See the stacks: berth tenants --prefix {WARM_PREFIX}"
_UNHEALTHY = (TenantState.FAILED, TenantState.UPDATE_FAILED, TenantState.UNKNOWN)


class Verdict(StrEnum):
    """The verdicts of a check, from the best to the worst."""

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
    """The concurrency of all functions of the account in this region."""

    limit: int
    most_used: int
    """The maximum of the last day."""


@dataclass(frozen=True, slots=True)
class Health:
    fleet: FleetReader
    counter: FleetCounter
    reconciliations: ReconciliationLedger
    queues: Queues
    stack_limit: Callable[[], int | None]
    """Returns the account's quota of stacks in this region; ``None`` if AWS does not report it."""
    concurrency: Callable[[], Concurrency | None]
    """Returns the concurrency of functions; ``None`` if AWS does not report it."""
    max_tenants: int
    """The maximum number of tenants of the control plane."""
    dead_letter_queues: Mapping[str, str]
    """The URLs of the control plane's own dead-letter queues, by a description of their messages."""
    rollouts: RolloutLedger
    rollout_executions: RolloutExecutions
    warm_stacks: PoolRows
    warm_pool: Mapping[str, int]
    """The number of stacks that are kept ready, by tier."""
    clock: Clock

    def examine(self) -> list[Check]:
        settling, survey = (self.reconciliations.reconciliation(name) for name in (SETTLING, SURVEY))
        counts = self.counter.current()
        stack_limit = self.stack_limit()
        return [
            self._operations(),
            self._rollouts(),
            _failed_tenants(counts.by_version.values()),
            *self._warm_pool(),
            self._ran("reconciler", settling, SETTLING_EVERY),
            self._ran("survey", survey, SURVEY_EVERY),
            *self._dead_letters(),
            self._tenant_limit(counts, stack_limit),
            _stacks(survey, stack_limit),
            _functions(self.concurrency()),
        ]

    def _operations(self) -> Check:
        now = self.clock.now()
        stuck = list(takewhile(lambda audit: now - audit.updated_at > STUCK_AFTER, self.fleet.unfinished_operations()))
        if not stuck:
            return Check("operations", Verdict.OK, "none is past its deadline")
        tenants = sorted({audit.tenant.value for audit in stuck})
        named = ", ".join([*tenants[:_MAX_NAMED], *(["..."] if len(tenants) > _MAX_NAMED else [])])
        return Check(
            "operations",
            Verdict.PROBLEM,
            f"{len(stuck)} past their deadline: {named}",
            "Settle them: berth reconcile",
        )

    def _rollouts(self) -> Check:
        """Checked here and not only by the reconciler, so that an operator who looks sees it at once."""
        stalled = stalled_rollouts(self.rollouts, self.rollout_executions, self.clock.now())
        if not stalled:
            return Check("rollouts", Verdict.OK, "none has lost its execution")
        first = stalled[0].id
        return Check(
            "rollouts",
            Verdict.PROBLEM,
            f"{len(stalled)} without a running execution: {', '.join(each.id for each in stalled[:_MAX_NAMED])}",
            f"Continue it: berth rollout resume {first}. Or end it: berth rollout abort {first}",
        )

    def _warm_pool(self) -> Iterator[Check]:
        """How the pool of stacks that are kept ready stands, as it was last maintained."""
        pool = self.warm_stacks.pool()
        for tier in sorted({*self.warm_pool, *(member.tier for member in pool.members.values())}):
            states = Counter(member.state for member in pool.members.values() if member.tier == tier)
            yield _tier_of_pool(tier, self.warm_pool.get(tier, 0), states, pool.tier(tier), self.clock.now())

    def _tenant_limit(self, counts: FleetCounts, stack_limit: int | None) -> Check:
        tenants = counts.total
        verdict = _verdict(tenants, self.max_tenants)
        advice = ""
        if verdict is not Verdict.OK:
            advice = "At the limit no tenant is created. Delete tenants that nobody needs, or raise berth:maxTenants."
        if stack_limit is not None and self.max_tenants >= stack_limit:
            verdict = max(verdict, Verdict.WARNING, key=list(Verdict).index)
            advice = (
                f"The account's quota is {stack_limit} stacks. Set berth:maxTenants below that, or raise the quota."
            )
        kept = f", {counts.warm} of them stacks that are kept ready" if counts.warm else ""
        detail = f"{tenants} of at most {self.max_tenants} tenants (berth:maxTenants){kept}"
        return Check("tenant limit", verdict, detail, advice)

    def _ran(self, name: str, latest: Reconciliation | None, every: timedelta) -> Check:
        if latest is None:
            return Check(name, Verdict.UNKNOWN, "it has not run yet", f"It runs every {_duration(every)}.")
        age = self.clock.now() - latest.updated_at
        detail = f"ran {_duration(age)} ago"
        if age > every * 3:
            return Check(name, Verdict.PROBLEM, detail, "Look for errors of the function reconcile in its log group.")
        if latest.status is ReconciliationStatus.INCOMPLETE:
            return Check(name, Verdict.WARNING, f"{detail}, and did not finish", latest.reason)
        if latest.left > 0:
            left = ", ".join(f"{count} {kind}" for kind, count in latest.counts.items())
            return Check(name, Verdict.WARNING, f"{detail}, and found {left}", "See them: berth reconcile --dry-run")
        return Check(name, Verdict.OK, detail)

    def _dead_letters(self) -> Iterator[Check]:
        for what, url in self.dead_letter_queues.items():
            held = self.queues.messages(url)
            if held is None:
                yield Check("dead letters", Verdict.PROBLEM, f"{what}: the queue does not exist", "Deploy Berth again.")
            elif held.total:
                yield Check(
                    "dead letters",
                    Verdict.PROBLEM,
                    f"{what}: {held.total} undelivered",
                    f"Their attributes have the reason. Fix it, then purge the queue: {url}",
                )
            else:
                yield Check("dead letters", Verdict.OK, f"{what}: none")


def _failed_tenants(at_versions: Collection[Mapping[TenantState, int]]) -> Check:
    counts = {state: sum(states.get(state, 0) for states in at_versions) for state in _UNHEALTHY}
    found = {state: count for state, count in counts.items() if count}
    if not found:
        return Check("tenants", Verdict.OK, "none has failed")
    detail = ", ".join(f"{count} {state}" for state, count in found.items())
    return Check(
        "tenants", Verdict.WARNING, detail, f"See why: {', '.join(f'berth tenants --state {state}' for state in found)}"
    )


def _tier_of_pool(tier: str, size: int, states: Mapping[MemberState, int], noted: TierOfPool, now: datetime) -> Check:
    ready = states.get(MemberState.READY, 0)
    parts = [
        f"{ready} of {size} ready" if size else f"{ready} ready, none wanted",
        *(f"{states[state]} {words}" for state, words in _OTHER_STATES.items() if states.get(state)),
    ]
    detail = f"{tier}: {', '.join(parts)}"
    empty_for = now - noted.empty_since if noted.empty_since else timedelta(0)
    if size and empty_for >= EMPTY_TOO_LONG:
        detail += f", empty for {_duration(empty_for)}"
    if noted.problem:
        advice = f"New tenants may have to wait for their stacks. {_SEE_POOL}"
        return Check("warm pool", Verdict.WARNING, f"{detail}: {noted.problem}", advice)
    if size and empty_for >= EMPTY_TOO_LONG:
        advice = f"New tenants wait for their stacks. Raise berth:warmPool if they come faster than stacks. {_SEE_POOL}"
        return Check("warm pool", Verdict.WARNING, detail, advice)
    if size and not states and not noted.empty_since:
        return Check("warm pool", Verdict.UNKNOWN, f"{detail}, it was not filled yet", "It is filled within minutes.")
    return Check("warm pool", Verdict.OK, detail)


def _stacks(survey: Reconciliation | None, limit: int | None) -> Check:
    used = survey.coverage.all_stacks if survey else None
    if limit is None or used is None:
        missing = "AWS does not report the quota" if limit is None else "the stacks have not been counted yet"
        return Check("stacks", Verdict.UNKNOWN, missing)
    verdict = _verdict(used, limit)
    advice = "" if verdict is Verdict.OK else "Raise the quota: Service Quotas, CloudFormation, Stack count."
    return Check("stacks", verdict, f"{used} of at most {limit} stacks in this account and region", advice)


def _functions(concurrency: Concurrency | None) -> Check:
    if concurrency is None:
        return Check("functions", Verdict.UNKNOWN, "AWS does not report how many may run at once")
    verdict = _verdict(concurrency.most_used, concurrency.limit)
    if concurrency.limit < _FEW_FUNCTIONS:
        verdict = max(verdict, Verdict.WARNING, key=list(Verdict).index)
    detail = f"{concurrency.most_used} ran at once in the last day, of at most {concurrency.limit} in this account"
    advice = "Raise the quota: Service Quotas, AWS Lambda, Concurrent executions."
    return Check("functions", verdict, detail, "" if verdict is Verdict.OK else advice)


def _verdict(used: int, limit: int) -> Verdict:
    share = used / limit if limit else 1.0
    return Verdict.PROBLEM if share >= _AT else Verdict.WARNING if share >= _NEAR else Verdict.OK


def _duration(span: timedelta) -> str:
    minutes = int(span.total_seconds() // 60)
    if minutes < 1:
        return f"{int(span.total_seconds())} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h"
