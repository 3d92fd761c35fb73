"""The promises of rollouts, checked against the tenants' rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import Result, Rollout, RolloutStatus, Skip, TenantOutcome
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, Status, TenantState
from orchestrator.tenants.state import state_of
from tests.simulation.rollouts.fleet import Fleet

SERVED = frozenset({TenantState.READY, TenantState.UPDATING, TenantState.UPDATE_FAILED})


@dataclass
class ByHand:
    """Orders for single tenants, which explain why a tenant is not at the version to which a rollout moved it."""

    moved: set[tuple[TenantId, str]] = field(default_factory=set)
    """To which version a tenant was to be moved."""
    moved_back: set[tuple[TenantId, str]] = field(default_factory=set)
    """The same, also from a newer one."""
    pinned: set[TenantId] = field(default_factory=set)

    def explains(self, tenant: TenantId, target: str, fleet: Fleet) -> bool:
        """Why the tenant is not at the version that it was to be moved to."""
        metadata = fleet.table.metadata(tenant)
        if metadata is None or not metadata.published:
            return True  # It was deleted, or is being deleted, or its create or its delete failed.
        deleted = any(
            entry.operation is Operation.DELETE and entry.status is Status.SUCCESS
            for entry in fleet.table.history(tenant)
            if isinstance(entry, HistoryEntry)
        )
        now = (tenant, metadata.version or "")
        newer = metadata.version is not None and is_older(target, than=metadata.version)
        # An operator who has moved a tenant back may then move it forward, to a version that is still older.
        was_moved_back = tenant in {moved for moved, _ in self.moved_back}
        by_hand = now in self.moved_back or (now in self.moved and (newer or was_moved_back))
        return deleted or by_hand or tenant in self.pinned


@dataclass
class Planning:
    """The tenants that a plan must not lose: served at another version for as long as it is drawn up."""

    fleet: Fleet
    version: str
    kept: set[TenantId] = field(default_factory=set)

    def begin(self) -> None:
        self.kept = {tenant for tenant in self.fleet.tenants if self._is_to_be_moved(tenant)}

    def look(self) -> None:
        self.kept = {tenant for tenant in self.kept if self._is_to_be_moved(tenant)}

    def check(self, rollout: Rollout | None, skipped: Iterable[str]) -> None:
        planned = set(planned_for(rollout, self.fleet)) if rollout else set()
        named = {TenantId.parse(name) for name in skipped}
        lost = self.kept - planned - named
        assert not lost, f"{sorted(map(str, lost))} are in no plan, nor said to be left out"

    def _is_to_be_moved(self, tenant: TenantId) -> bool:
        metadata, audits = self.fleet.table.metadata(tenant), self.fleet.table.audits(tenant)
        return (
            metadata is not None
            and metadata.published
            and metadata.version != self.version
            and state_of(metadata, audits) in SERVED
        )


def planned_for(rollout: Rollout, fleet: Fleet) -> list[TenantId]:
    stages = fleet.ledger.stages(rollout.id)
    return [item.tenant for stage in stages for item in fleet.manifests.read(stage.manifest)]


def outcomes_of(rollout: Rollout, fleet: Fleet) -> dict[TenantId, TenantOutcome]:
    return {outcome.item.tenant: outcome for outcome in fleet.ledger.outcomes(rollout.id)}


def check_that_it_is_over(rollout: Rollout, fleet: Fleet, by_hand: ByHand) -> None:
    """Check a rollout at the moment when its end is recorded."""
    if rollout.status not in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED):
        return
    outcomes = outcomes_of(rollout, fleet)
    for tenant in planned_for(rollout, fleet):
        assert tenant in outcomes, f"{rollout.status}, but nothing is written down about {tenant}"
        assert outcomes[tenant].result.settled, f"{rollout.status}, but {tenant} is not settled"
    results = Counter(outcome.result for outcome in outcomes.values())
    if rollout.spec.dry_run or rollout.status is RolloutStatus.FAILED:
        assert bool(results[Result.FAILED]) == (rollout.status is RolloutStatus.FAILED)
        return
    assert not results[Result.FAILED], f"SUCCEEDED, but {results}"
    for tenant, outcome in outcomes.items():
        assert outcome.skip is not Skip.BUSY, f"SUCCEEDED, but {tenant} was not waited for"
        metadata = fleet.table.metadata(tenant)
        there = metadata is not None and metadata.published and metadata.version == outcome.item.version
        version = metadata.version if metadata else None
        explained = by_hand.explains(tenant, outcome.item.version, fleet)
        assert there or explained, f"{tenant} is at {version}, and said {outcome}"


def check_counts(rollout: Rollout, fleet: Fleet) -> None:
    """Check the counters once everything has ended."""
    ledger = fleet.ledger
    for stage in ledger.stages(rollout.id):
        said = (stage.succeeded, stage.failed, stage.skipped)
        assert said == ledger.counted(rollout.id, stage.number), f"{stage} does not count what is written down"
        if rollout.status in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED):
            assert stage.in_flight == 0, f"it is over, but {stage}"
    assert rollout.id not in ledger.registry().active
    assert not fleet.fleet_stacks.updated_in_vain, f"{fleet.fleet_stacks.updated_in_vain} were moved twice"


def check_that_it_is_undone(undone: Rollout, undo: Rollout, fleet: Fleet, by_hand: ByHand) -> None:
    """Once everything has ended, no tenant is left where the undone rollout moved it, unless the undo reports it."""
    if undo.status not in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED):
        return
    returned = outcomes_of(undo, fleet)
    # The tenants below are neither deleted nor back where they were, so saying that is no report.
    untrue = (Skip.CURRENT, Skip.DELETED)
    reported = {name for why, skipped in undo.skipped.items() if why not in untrue for name in skipped.tenants}
    for tenant, outcome in outcomes_of(undone, fleet).items():
        metadata = fleet.table.metadata(tenant)
        bad = outcome.item.version
        moved = outcome.operation_attempt is not None and outcome.from_version != bad
        if not moved or metadata is None or not metadata.published or metadata.version != bad:
            continue
        outcome_of_undo = returned.get(tenant)
        # The undo reports nothing if it says that the tenant succeeded, or was there already.
        is_reported = outcome_of_undo is not None and (
            outcome_of_undo.result is Result.FAILED or outcome_of_undo.skip not in (None, Skip.CURRENT)
        )
        assert is_reported or tenant.value in reported or (tenant, bad) in by_hand.moved, (
            f"{tenant} is still at {bad} after the undo, which said {outcome_of_undo or undo.skipped} of {outcome}"
        )
