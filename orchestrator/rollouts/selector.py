"""Reads the records of the fleet and selects the tenants that a rollout moves.

:mod:`orchestrator.rollouts.selecting` has the rules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.finding import TenantFinder
from orchestrator.rollouts.gate import earlier_version
from orchestrator.rollouts.records import (
    Result,
    Skip,
    Spec,
    TenantOutcome,
)
from orchestrator.rollouts.refusals import moved_nothing, not_over, unknown_rollout
from orchestrator.rollouts.selecting import (
    Candidate,
    Selected,
    has_labels,
    select,
    select_for_retry,
    select_for_undo,
)
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.records import Attempt, Operation
from orchestrator.tenants.selections import no_such_tenants, unknown_labels

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.rollouts.ports import RolloutLedger
    from orchestrator.tenants.ports import Executions, FleetReader, TenantReader

_ATTEMPTS_TO_CHECK = 3

Choose = Callable[[Spec, Iterable[TenantOutcome], Mapping[TenantId, Candidate]], Selected]


@dataclass(frozen=True, slots=True)
class TenantSelector:
    ledger: RolloutLedger
    tenants: TenantReader
    fleet: FleetReader
    updates: Executions
    """The executions of the tenants' own updates."""
    clock: Clock
    withdrawn: frozenset[str] = frozenset()
    """The releases to which no tenant is moved any more."""

    def select(self, spec: Spec) -> Selected | Refused:
        selected = self._select(spec)
        return self._mistake(spec, selected) or selected if isinstance(selected, Selected) else selected

    def _mistake(self, spec: Spec, selected: Selected) -> Refused | None:
        """The refusal of a spec that names tenants or labels that do not exist."""
        unknown = selected.skipped.get(Skip.UNKNOWN) if spec.tenants is not None else None
        if unknown is None and (selected.items or not spec.labels):
            return None
        # The fleet is listed for the message, and only then.
        fleet = self._finder.list_once()
        if unknown is not None:
            there = [tenant.value for tenant in fleet]
            return Refused(Refusal.UNKNOWN_SELECTION, no_such_tenants(unknown.tenants, there))
        if message := unknown_labels(spec.labels, [candidate.labels for candidate in fleet.values()]):
            return Refused(Refusal.UNKNOWN_SELECTION, message)
        return None

    def _select(self, spec: Spec) -> Selected | Refused:
        if spec.retry:
            to_retry = [each for each in self.ledger.outcomes(spec.retry) if _needs_retry(each)]
            return self._select_of(select_for_retry, spec, to_retry)
        if spec.undo:
            return self._select_for_undo(spec, spec.undo)
        assert spec.version is not None  # noqa: S101 - Rollouts.start() has set it
        fleet = self._finder.all_tenants().values() if spec.tenants is None else self._finder.look_up(spec.tenants)
        selected = select(spec, spec.version, fleet)
        newer = selected.skipped.get(Skip.NEWER)
        if newer and not selected.items:
            return Refused(
                Refusal.DOWNGRADE,
                f"{newer.count} tenants are at a newer version than {spec.version}. To move them back, allow the "
                "downgrade.",
            )
        return selected

    def _select_for_undo(self, spec: Spec, undone: str) -> Selected | Refused:
        rollout = self.ledger.rollout(undone)
        if rollout is None:
            return unknown_rollout(undone)
        if rollout.spec.dry_run:
            return moved_nothing(undone)
        if rollout.status.active:
            return not_over(rollout)
        # Tenants whose update was interrupted or recorded as failed are included: the update may have succeeded later.
        moved = [self._with_origin(each) for each in self.ledger.outcomes(undone) if may_have_been_moved(each)]
        under_way = frozenset(each.item.tenant for each in moved if self._has_waiting_update(each))
        choose = partial(select_for_undo, under_way=under_way, withdrawn=self.withdrawn)
        return self._select_of(choose, spec, moved)

    def _has_waiting_update(self, outcome: TenantOutcome) -> bool:
        """True if an update that the rollout started is still waiting for the tenant's lock."""
        tenant, version = outcome.item.tenant, outcome.item.version
        for number in _attempts_that_may_wait(outcome):
            execution = self.updates.find_running(Attempt(tenant, Operation.UPDATE, version, number))
            lock = self.tenants.lock(tenant) if execution else None
            if execution and (lock is None or lock.run.execution != execution):
                return True
        return False

    def _with_origin(self, outcome: TenantOutcome) -> TenantOutcome:
        """The outcome with the tenant's earlier version.

        It is missing for a tenant that was being created when it was admitted: that tenant's earlier version is the one
        it was created with.
        """
        if outcome.from_version is not None or outcome.operation_attempt is None:
            return outcome
        return replace(outcome, from_version=earlier_version(outcome, self.tenants.audits(outcome.item.tenant)))

    def _select_of(self, choose: Choose, spec: Spec, outcomes: Sequence[TenantOutcome]) -> Selected:
        """Select tenants of an earlier rollout.

        The index lags behind and may miss a tenant, so a tenant is skipped only after its own rows were read.
        """
        fleet = self._finder.list_once()
        chosen = {item.tenant for item in choose(replace(spec, share=None), outcomes, fleet).items}
        for tenant in {outcome.item.tenant for outcome in outcomes} - chosen:
            if _matches(fleet.get(tenant), spec):
                fleet.pop(tenant, None)
                fleet |= {candidate.tenant: candidate for candidate in self._finder.look_up([tenant])}
        return choose(spec, outcomes, fleet)

    @property
    def _finder(self) -> TenantFinder:
        return TenantFinder(self.fleet, self.tenants, self.clock)


def may_have_been_moved(outcome: TenantOutcome) -> bool:
    """True unless the tenant was skipped before an update of it was started."""
    return outcome.result is not Result.SKIPPED or outcome.operation_attempt is not None


def _attempts_that_may_wait(outcome: TenantOutcome) -> Iterable[int]:
    """The numbers of the tenant's latest update attempts, which may still be waiting for the tenant's lock."""
    if outcome.result is Result.SUCCEEDED:
        return ()  # The rollout's update has ended, and earlier attempts belong to other rollouts.
    latest = outcome.operation_attempt or 0
    return range(max(1, latest - _ATTEMPTS_TO_CHECK + 1), latest + 1)


def _needs_retry(outcome: TenantOutcome) -> bool:
    """True if the tenant failed, or was never settled."""
    return outcome.result in (Result.FAILED, Result.RUNNING)


def _matches(listed: Candidate | None, spec: Spec) -> bool:
    return listed is None or has_labels(listed, spec.labels)
