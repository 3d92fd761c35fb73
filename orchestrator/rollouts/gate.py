"""One tenant's turn in a rollout: admitting the tenant, and recording its outcome.

Every tenant is admitted on its own, in a transaction that checks the rollout and the stage. A rollout can therefore be
paused, halt or slow down before each tenant.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.common.versions import is_older
from orchestrator.rollouts.counting import admission, settlement
from orchestrator.rollouts.finding import read_tenant
from orchestrator.rollouts.records import (
    Result,
    Rollout,
    RolloutStatus,
    Skip,
    Spec,
    Stage,
    TenantOutcome,
    Turn,
)
from orchestrator.rollouts.selecting import is_of_another_tier, skip_reason
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.operations import bounded
from orchestrator.tenants.records import Attempt, Audit, Metadata, Operation, Request, RootCause, Status, TenantState
from orchestrator.tenants.state import is_delete_in_effect, state_of

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import ReleaseStates
    from orchestrator.rollouts.ports import RolloutLedger, Throttling
    from orchestrator.tenants.ports import TenantReader

_MAX_TRIES = 10
"""The maximum number of tries for a write that conflicts with the writes of other tenants."""

_STALE_AFTER = DEADLINE + timedelta(minutes=10)
"""No operation takes this long. If no tenant was admitted or settled for this time, none is in flight."""

_MAX_WAIT_SECONDS = 20
_WAIT_SECONDS_PER_WAITING_TENANT = 5
"""The wait is long enough that a tenant asks a few times before it is admitted, not dozens of times."""

_NAME_IS_TAKEN = "ExecutionAlreadyExists"

_MAX_CLOCK_DIFFERENCE = timedelta(milliseconds=500)
"""An operation that ended up to this long before the time of admission counts as later, because that time is taken
after the tenant was read, and by another machine's clock."""

_MAX_INTERRUPTIONS = 3
"""The maximum number of a tenant's updates that may end while their operation is open. After that, the tenant fails."""

NO_EXECUTION = ""
"""The execution of a turn that ended without a result: the tenant is not in flight, and waits for another turn."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """The tenant has its turn. ``name`` and ``input`` are those of the update's execution."""

    name: str
    input: dict[str, object]
    outcome = "admitted"


@dataclass(frozen=True, slots=True)
class ToReview:
    """The tenant has its turn in a dry run, so its changes are reviewed."""

    outcome = "review"


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The stage is at its concurrency limit. ``seconds`` is about how long to wait before asking again."""

    seconds: int
    outcome = "wait"


@dataclass(frozen=True, slots=True)
class AdmissionStopped:
    """No tenant is admitted in this run of the stage.

    The rollout is not running, too many tenants failed, or the map is started again with a higher concurrency.
    """

    outcome = "stopped"


@dataclass(frozen=True, slots=True)
class Settled:
    """The tenant has a final result in this rollout."""

    result: str
    outcome = "settled"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """The tenant has no result yet: its update was throttled, which is not a failure, or never began, or died."""

    outcome = "again"


@dataclass(frozen=True, slots=True)
class Replaced:
    """Another turn of the tenant was admitted since, and records the outcome. This turn ends."""

    outcome = "replaced"


Admission = Admitted | ToReview | NoRoom | AdmissionStopped | Settled | TryAgain | Replaced


@dataclass(frozen=True, slots=True)
class Gate:
    ledger: RolloutLedger
    tenants: TenantReader
    throttling: Throttling
    clock: Clock
    release_states: ReleaseStates

    def admit(self, turn: Turn) -> Admission:
        for _ in range(_MAX_TRIES):
            admission = self._try_to_admit(turn)
            if admission is not None:
                return admission
        return NoRoom(1)

    def _try_to_admit(self, turn: Turn) -> Admission | None:
        """``None`` if another write came first: read everything again."""
        rollout, stage = self._read(turn)
        if rollout.status is not RolloutStatus.RUNNING or stage.too_many_failed or stage.outgrows_map:
            return AdmissionStopped()
        before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        if before is not None and before.result.settled:
            return Settled(before.result)
        if before is not None and before.execution == turn.execution:
            return self._admit_again(rollout, turn, before)
        now = self.clock.now()
        if _is_full(stage, now):
            # Most tenants that wait are answered here. Throttles only lower the limit, so they need not be read.
            return NoRoom(_wait_seconds(stage))
        is_withdrawn = turn.item.version in self.release_states.state().withdrawn
        if is_withdrawn and rollout.spec.version is not None:
            return AdmissionStopped()  # The rollout's next step halts it, with the reason.
        metadata, audits = read_tenant(turn.item.tenant, self.tenants)
        skip = Skip.WITHDRAWN if is_withdrawn else _skip(turn, rollout, metadata, audits)
        if before is None and skip:
            skipped = self._outcome(turn, Result.SKIPPED, metadata, skip=skip)
            count = settlement(stage, skipped, in_flight=False, dry_run=rollout.spec.dry_run)
            return Settled(skipped.result) if self.ledger.record(count, skipped, before=before) else None
        stage = self._at_current_pace(stage)
        if _is_stale(stage, now):
            # All turns have ended, and some of them without giving their slot back.
            self.ledger.change_stage(replace(stage, in_flight=0))
            return None
        if _is_full(stage, now):
            return NoRoom(_wait_seconds(stage))
        number = _next_number(turn, before, audits)
        outcome = self._outcome(turn, Result.RUNNING, metadata, operation_attempt=number)
        if before is not None:  # The tenant's earlier attempt may have moved it after all.
            from_version = earlier_version(before, audits)
            outcome = replace(outcome, from_version=from_version, interruptions=before.interruptions)
        is_admitted = self.ledger.admit(admission(stage, now), outcome, before=before)
        return _admitted(rollout, outcome) if is_admitted else None

    def _admit_again(self, rollout: Rollout, turn: Turn, before: TenantOutcome) -> Admission:
        """Return the same execution again, because an earlier response was lost, or the update could not be started."""
        if not rollout.spec.dry_run and self.clock.now() - before.updated_at > DEADLINE:
            return self.record(turn, fault="The update could not be started in time.")
        return _admitted(rollout, before)

    def _at_current_pace(self, stage: Stage) -> Stage:
        """The stage with the pace after the latest throttles, which is stored for the other tenants."""
        pace = stage.pace.with_throttles(self.throttling.throttles(), self.clock.now())
        if pace == stage.pace:
            return stage
        # If another tenant's turn has stored these throttles, the pace is the same, or a little newer.
        is_stored = self.ledger.slow_down(stage, pace)
        return replace(stage, pace=pace, revision=stage.revision + is_stored)

    def record(self, turn: Turn, fault: str | None = None) -> Settled | TryAgain | Replaced:
        """Record the tenant's outcome, from its own rows. ``fault`` is the error that ended the turn, if any."""
        before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        attempt = before.operation_attempt if before else None
        for _ in range(_MAX_TRIES):
            rollout, stage = self._read(turn)
            if before is not None and before.result.settled:
                return Settled(before.result)
            # The same child is admitted again after another call has recorded that its update has no result. If that
            # happens during this call, this call is the late one.
            if before is not None and (_is_of_another(before, turn) or before.operation_attempt != attempt):
                return Replaced()
            metadata, audits = read_tenant(turn.item.tenant, self.tenants)
            now = self.clock.now()
            outcome = classify(
                turn,
                before,
                metadata,
                audits,
                spec=rollout.spec,
                fault=fault,
                at=now,
            )
            was_in_flight = before is not None and before.execution != NO_EXECUTION
            count = settlement(
                self._at_current_pace(stage), outcome, in_flight=was_in_flight, dry_run=rollout.spec.dry_run
            )
            if self.ledger.record(count, outcome, before=before):
                return Settled(outcome.result) if outcome.result.settled else TryAgain()
            before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        raise Unsettled(
            f"Rollout {turn.rollout}: the outcome of tenant {turn.item.tenant} could not be recorded, because other "
            f"writes came first {_MAX_TRIES} times."
        )

    def settle(self, turn: Turn, outcome: TenantOutcome) -> Settled:
        """Record the outcome of a dry run's review of the tenant."""
        for _ in range(_MAX_TRIES):
            rollout, stage = self._read(turn)
            before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
            if before is not None and before.result.settled:
                return Settled(before.result)
            was_in_flight = before is not None and before.execution != NO_EXECUTION
            count = settlement(stage, outcome, in_flight=was_in_flight, dry_run=rollout.spec.dry_run)
            if self.ledger.record(count, outcome, before=before):
                return Settled(outcome.result)
        raise Unsettled(
            f"Rollout {turn.rollout}: the outcome of the dry run for tenant {turn.item.tenant} could not be recorded, "
            f"because other writes came first {_MAX_TRIES} times."
        )

    def _read(self, turn: Turn) -> tuple[Rollout, Stage]:
        rollout = self.ledger.rollout(turn.rollout)
        stage = self.ledger.stage(turn.rollout, turn.stage)
        if rollout is None or stage is None:
            raise Unsettled(f"Rollout {turn.rollout} has no stage {turn.stage}.")
        if rollout.spec.version not in (None, turn.item.version):
            # The payload is not trusted: anyone who may invoke the function could name another version.
            raise Conflict(f"Rollout {turn.rollout} moves no tenant to version {turn.item.version}.")
        return rollout, stage

    def _outcome(
        self,
        turn: Turn,
        result: Result,
        metadata: Metadata | None,
        *,
        skip: Skip | None = None,
        operation_attempt: int | None = None,
    ) -> TenantOutcome:
        return TenantOutcome(
            turn.rollout,
            turn.stage,
            turn.item,
            result,
            self.clock.now(),
            execution=turn.execution,
            operation_attempt=operation_attempt,
            from_version=metadata.version if metadata else None,
            skip=skip,
        )


def _skip(turn: Turn, rollout: Rollout, metadata: Metadata | None, audits: Sequence[Audit]) -> Skip | None:
    """The reason to skip the tenant, if it has changed since it was selected."""
    if metadata is None and not audits:
        return Skip.UNKNOWN
    state = state_of(metadata, audits)
    if metadata is not None and is_of_another_tier(rollout.spec, metadata.tier) and state is not TenantState.DELETED:
        return Skip.OTHER_TIER
    return skip_reason(
        turn.item.version,
        state=state,
        at=metadata.version if metadata else None,
        pinned_to=metadata.pinned_version if metadata else None,
        allow_downgrade=rollout.spec.allow_downgrade,
        # A dry run's review can wait for a stack that is being updated.
        waits_for_busy=not rollout.spec.dry_run or state is TenantState.UPDATING,
    )


def _admitted(rollout: Rollout, outcome: TenantOutcome) -> Admitted | ToReview:
    if rollout.spec.dry_run:
        return ToReview()
    item = outcome.item
    attempt = Attempt(item.tenant, Operation.UPDATE, item.version, outcome.operation_attempt or 1)
    request = Request(
        by=f"rollout/{rollout.id}",
        reason=rollout.start_reason,
        allow_downgrade=rollout.spec.allow_downgrade,
        allow_replacement=rollout.spec.allow_replacement,
    )
    return Admitted(attempt.name, machine_input(attempt, request))


def classify(
    turn: Turn,
    before: TenantOutcome | None,
    metadata: Metadata | None,
    audits: Sequence[Audit],
    *,
    spec: Spec,
    fault: str | None,
    at: datetime,
) -> TenantOutcome:
    """The outcome of a tenant, from its own rows.

    The outcome stays RUNNING if the update was throttled or never began, or if it died and its operation is still open:
    the tenant then gets another turn, with another attempt.
    """
    item = turn.item
    outcome = before or TenantOutcome(turn.rollout, turn.stage, item, Result.RUNNING, at, execution=turn.execution)
    outcome = replace(outcome, updated_at=at, from_version=earlier_version(outcome, audits))
    state = state_of(metadata, audits)
    # A delete that has just begun may still be refused. The tenant is then served again, at the version of the update.
    in_service = metadata is not None and (metadata.published or state is TenantState.DELETING)
    # Another update that is running may move the tenant to another version, and a tenant whose update failed may have
    # been at the version before its turn. Then only this turn's update counts.
    unsure = state in (TenantState.UPDATING, TenantState.UPDATE_FAILED)
    stays = not unsure or _has_succeeded(before, audits, item.version)
    if metadata is not None and in_service and metadata.version == item.version and stays:
        return replace(outcome, result=Result.SUCCEEDED)
    if state is TenantState.DELETED:
        return replace(outcome, result=Result.SKIPPED, skip=Skip.DELETED)
    if _never_had_a_queue(outcome, state, audits):
        return replace(outcome, result=Result.SKIPPED, skip=Skip.NOT_PROVISIONED)
    if metadata is not None and is_of_another_tier(spec, metadata.tier):
        # A move owned the tenant when its turn came, and the update that waited for it was refused.
        return replace(outcome, result=Result.SKIPPED, skip=Skip.OTHER_TIER)
    if metadata is not None and metadata.pinned_version not in (None, item.version):
        return replace(outcome, result=Result.SKIPPED, skip=Skip.PINNED)
    if metadata is not None and _is_newer(metadata, item.version) and not spec.allow_downgrade:
        return replace(outcome, result=Result.SKIPPED, skip=Skip.NEWER)  # Another operation has moved the tenant.
    cause = recorded_failure(before, audits, item.version)
    # Throttling is not a failure. An execution name that is taken belongs to an earlier execution that never began.
    if (cause and cause.is_throttling) or (cause is None and fault and _NAME_IS_TAKEN in fault):
        return replace(outcome, execution=NO_EXECUTION)
    if before is not None and _is_open(before, audits) and before.interruptions < _MAX_INTERRUPTIONS:
        # CloudFormation may go on, and the operation may still succeed. The next attempt waits for the operation, or
        # takes its lock over, and finds the tenant as it is then. A repeated call counts the interruption once.
        interruptions = before.interruptions + (before.execution != NO_EXECUTION)
        return replace(outcome, execution=NO_EXECUTION, interruptions=interruptions)
    if cause is None:
        cause = RootCause(item.tenant.value, "Berth::Tenant", fault or "The update ended without recording its result.")
    return replace(outcome, result=Result.FAILED, root_cause=bounded(cause))


def earlier_version(outcome: TenantOutcome, audits: Sequence[Audit]) -> str | None:
    """The version that the tenant had before this rollout's update.

    The update waits for the operation that owned the tenant when it was admitted. That operation may have moved the
    tenant after its version was read.
    """
    others = [
        audit
        for audit in audits
        if audit.operation is not Operation.DELETE
        and audit.status is Status.SUCCESS
        and audit.version != outcome.item.version
        and (outcome.from_version is None or audit.updated_at >= outcome.updated_at - _MAX_CLOCK_DIFFERENCE)
    ]
    latest = max(others, key=lambda audit: audit.updated_at, default=None)
    return latest.version if latest else outcome.from_version


def _never_had_a_queue(outcome: TenantOutcome, state: TenantState, audits: Sequence[Audit]) -> bool:
    """True if there was no queue to update: the tenant's create failed, or its delete failed half-way."""
    unserved = state in (TenantState.FAILED, TenantState.UNKNOWN)
    return unserved and (outcome.from_version is None or is_delete_in_effect(audits))


def recorded_failure(before: TenantOutcome | None, audits: Sequence[Audit], version: str) -> RootCause | None:
    """The recorded root cause of the tenant's failed update. Attempts from before the tenant's turn are ignored."""
    if before is None or before.operation_attempt is None:
        return None
    first = before.operation_attempt
    return next(
        (
            audit.root_cause
            for audit in _updates(audits, version)
            if audit.status is Status.FAILURE and audit.attempt >= first
        ),
        None,
    )


def _has_succeeded(before: TenantOutcome | None, audits: Sequence[Audit], version: str) -> bool:
    if before is None or before.operation_attempt is None:
        return False
    first = before.operation_attempt
    return any(audit.status is Status.SUCCESS and audit.attempt >= first for audit in _updates(audits, version))


def _is_open(before: TenantOutcome, audits: Sequence[Audit]) -> bool:
    """True if the operation of the turn's own update has begun and was not settled yet."""
    return any(
        audit.status is Status.STARTED and audit.attempt == before.operation_attempt
        for audit in _updates(audits, before.item.version)
    )


def _updates(audits: Sequence[Audit], version: str) -> list[Audit]:
    return [audit for audit in audits if audit.operation is Operation.UPDATE and audit.version == version]


def _is_newer(metadata: Metadata, version: str) -> bool:
    return metadata.version is not None and is_older(version, than=metadata.version)


def _is_of_another(outcome: TenantOutcome, turn: Turn) -> bool:
    """True if another child of a map has been admitted for the tenant. A turn without a result is nobody's."""
    return outcome.execution not in (turn.execution, NO_EXECUTION)


def _next_number(turn: Turn, before: TenantOutcome | None, audits: Sequence[Audit]) -> int:
    attempts = [audit.attempt for audit in _updates(audits, turn.item.version)]
    return 1 + max([*attempts, (before.operation_attempt if before else None) or 0])


def _wait_seconds(stage: Stage) -> int:
    """The time until a waiting tenant asks again. It grows with the number of tenants that wait for each free slot."""
    left = stage.total - stage.settled - stage.in_flight
    waiting_per_slot = max(0.0, min(stage.pace.ceiling - stage.pace.limit, left)) / stage.pace.limit
    return min(_MAX_WAIT_SECONDS, 1 + int(_WAIT_SECONDS_PER_WAITING_TENANT * waiting_per_slot))


def _is_full(stage: Stage, now: datetime) -> bool:
    return not stage.pace.has_room(stage.in_flight) and not _is_stale(stage, now)


def _is_stale(stage: Stage, now: datetime) -> bool:
    return stage.in_flight > 0 and stage.moved_at is not None and now - stage.moved_at > _STALE_AFTER
