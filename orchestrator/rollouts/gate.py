"""One tenant's turn in a rollout: whether it has come, and what became of it.

The gate is why a rollout can be paused, halts before the next tenant, and slows down: every tenant passes it by itself,
and what it reads is written in the same transaction that lets the tenant through.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.common.versions import is_older
from orchestrator.rollouts.finding import read_tenant
from orchestrator.rollouts.records import (
    Result,
    Rollout,
    RolloutStatus,
    Skip,
    Stage,
    TenantOutcome,
    Turn,
)
from orchestrator.rollouts.selecting import skip_reason
from orchestrator.tenants.admission import delete_counts
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.fleet import state_of
from orchestrator.tenants.operations import bounded
from orchestrator.tenants.records import Attempt, Audit, Metadata, Operation, Request, RootCause, Status, TenantState

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.rollouts.ports import RolloutLedger, Throttling
    from orchestrator.tenants.ports import TenantReader

_ROUNDS = 10
"""How often a write is tried again that another tenant's write came before."""

_NOBODY_LEFT_AFTER = DEADLINE + timedelta(minutes=10)
"""No operation takes this long. If nothing moved for so long, those who are said to be in flight are not."""

_LONGEST_WAIT_SECONDS = 20
_SECONDS_PER_WAITING = 5
"""Stretches the waits: who waits asks a few times per turn, and not dozens of times."""

_NAME_IS_TAKEN = "ExecutionAlreadyExists"

_CLOCKS_DIFFER_BY = timedelta(milliseconds=500)
"""The tenant is read, and then the time is taken: what ended in between, by another clock, came before its turn."""

NOBODY = ""
"""The execution of a turn that has ended without a result: the tenant is not in flight, and waits for its next."""


@dataclass(frozen=True, slots=True)
class Admitted:
    """It is the tenant's turn: this is the execution to run."""

    name: str
    input: dict[str, object]
    outcome = "admitted"


@dataclass(frozen=True, slots=True)
class ToReview:
    """It is the tenant's turn, in a dry run."""

    outcome = "review"


@dataclass(frozen=True, slots=True)
class NoRoom:
    """The stage is at its concurrency limit. ``seconds`` is about how long to wait before asking again."""

    seconds: int
    outcome = "wait"


@dataclass(frozen=True, slots=True)
class NoMore:
    """No tenant is started any more, now or ever: the rollout is paused, halted, aborted or over."""

    outcome = "stopped"


@dataclass(frozen=True, slots=True)
class Settled:
    """There is nothing (more) to be done about this tenant."""

    result: str
    outcome = "settled"


@dataclass(frozen=True, slots=True)
class TryAgain:
    """Nothing has come of it yet: it was throttled all the time, which is no failure, or it never began."""

    outcome = "again"


@dataclass(frozen=True, slots=True)
class Gate:
    ledger: RolloutLedger
    tenants: TenantReader
    throttling: Throttling
    clock: Clock

    def admit(self, turn: Turn) -> Admitted | ToReview | NoRoom | NoMore | Settled | TryAgain:
        for _ in range(_ROUNDS):
            answer = self._try_to_admit(turn)
            if answer is not None:
                return answer
        return NoRoom(1)

    def _try_to_admit(self, turn: Turn) -> Admitted | ToReview | NoRoom | NoMore | Settled | TryAgain | None:
        """``None`` when others have changed something in the meantime: look again."""
        rollout, stage = self._read(turn)
        if rollout.status is not RolloutStatus.RUNNING or stage.too_many_failed:
            return NoMore()
        before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
        if before is not None and before.result.settled:
            return Settled(before.result)
        if before is not None and before.execution == turn.execution:
            return self._admit_again(rollout, turn, before)
        metadata, audits = read_tenant(turn.item.tenant, self.tenants)
        if before is None and (skip := _skip(turn, rollout, metadata, audits)):
            left_out = self._outcome(turn, Result.SKIPPED, metadata, skip=skip)
            counted = with_outcome(stage, left_out, in_flight=False)
            return Settled(left_out.result) if self.ledger.record(counted, left_out) else None
        if not (room := self._make_room(stage)):
            return NoRoom(_come_back_in(stage))
        number = _next_number(turn, before, audits)
        outcome = self._outcome(turn, Result.RUNNING, metadata, operation_attempt=number)
        if before is not None:  # Its earlier attempt may have moved it after all.
            outcome = replace(outcome, from_version=where_it_was(before, audits))
        taken = replace(room, in_flight=room.in_flight + 1, moved_at=self.clock.now())
        return _admitted(rollout, outcome) if self.ledger.admit(taken, outcome) else None

    def _admit_again(
        self, rollout: Rollout, turn: Turn, before: TenantOutcome
    ) -> Admitted | ToReview | Settled | TryAgain:
        """The answer to an earlier try was lost, or the update could not be started: the same execution once more."""
        if not rollout.wish.dry_run and self.clock.now() - before.updated_at > DEADLINE:
            return self.record(turn, fault="The update could not be started in time.")
        return _admitted(rollout, before)

    def _make_room(self, stage: Stage) -> Stage | None:
        """The stage as it is now, if there is room for one more."""
        now = self.clock.now()
        seen = replace(stage, pace=stage.pace.seeing(self.throttling.throttles(), now))
        if _is_deserted(seen, now):
            seen = replace(seen, in_flight=0)
        if seen.pace.has_room(seen.in_flight):
            return seen
        if seen.pace != stage.pace:
            self.ledger.change_stage(seen)  # If others came before, the next to ask sees the same.
        return None

    def record(self, turn: Turn, fault: str | None = None) -> Settled | TryAgain:
        """What became of the tenant, from its own rows. ``fault`` is what went wrong on the way, if something did."""
        for _ in range(_ROUNDS):
            rollout, stage = self._read(turn)
            before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
            if before is not None and before.result.settled:
                return Settled(before.result)
            metadata, audits = read_tenant(turn.item.tenant, self.tenants)
            now = self.clock.now()
            outcome = judge(
                turn,
                before,
                metadata,
                audits,
                allow_downgrade=rollout.wish.allow_downgrade,
                fault=fault,
                at=now,
            )
            stage = replace(stage, pace=stage.pace.seeing(self.throttling.throttles(), now))
            counted = with_outcome(stage, outcome, in_flight=before is not None and before.execution != NOBODY)
            if self.ledger.record(counted, outcome):
                return Settled(outcome.result) if outcome.result.settled else TryAgain()
        raise Unsettled(
            f"Rollout {turn.rollout}: what became of tenant {turn.item.tenant} could not be recorded, "
            f"others came before {_ROUNDS} times."
        )

    def settle(self, turn: Turn, outcome: TenantOutcome) -> Settled:
        """What a dry run found out about the tenant."""
        for _ in range(_ROUNDS):
            _, stage = self._read(turn)
            if self.ledger.record(with_outcome(stage, outcome, in_flight=True), outcome):
                return Settled(outcome.result)
            before = self.ledger.tenant_outcome(turn.rollout, turn.item.tenant)
            if before is not None and before.result.settled:
                return Settled(before.result)
        raise Unsettled(
            f"Rollout {turn.rollout}: what would become of tenant {turn.item.tenant} could not be recorded."
        )

    def _read(self, turn: Turn) -> tuple[Rollout, Stage]:
        rollout = self.ledger.rollout(turn.rollout)
        stage = self.ledger.stage(turn.rollout, turn.stage)
        if rollout is None or stage is None:
            raise Unsettled(f"Rollout {turn.rollout} has no stage {turn.stage}.")
        if rollout.wish.version not in (None, turn.item.version):
            # Whoever may invoke the function may say anything. A tenant counts by the release that was asked for.
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
    """Whether something has happened to the tenant since it was selected, so that it is left alone."""
    if metadata is None and not audits:
        return Skip.UNKNOWN
    state = state_of(metadata, audits)
    return skip_reason(
        turn.item.version,
        state=state,
        at=metadata.version if metadata else None,
        pinned_to=metadata.pinned_version if metadata else None,
        allow_downgrade=rollout.wish.allow_downgrade,
        # A dry run's look can wait for a stack that is being updated.
        waits_for_busy=not rollout.wish.dry_run or state is TenantState.UPDATING,
    )


def _admitted(rollout: Rollout, outcome: TenantOutcome) -> Admitted | ToReview:
    if rollout.wish.dry_run:
        return ToReview()
    item = outcome.item
    attempt = Attempt(item.tenant, Operation.UPDATE, item.version, outcome.operation_attempt or 1)
    request = Request(
        by=f"rollout/{rollout.id}",
        reason=rollout.start_reason,
        allow_downgrade=rollout.wish.allow_downgrade,
        allow_replacement=rollout.wish.allow_replacement,
    )
    return Admitted(attempt.name, machine_input(attempt, request))


def judge(
    turn: Turn,
    before: TenantOutcome | None,
    metadata: Metadata | None,
    audits: Sequence[Audit],
    *,
    allow_downgrade: bool,
    fault: str | None,
    at: datetime,
) -> TenantOutcome:
    """What became of a tenant, from its own rows and nothing else.

    Not settled if that was nothing yet: it has its turn again, as another attempt.
    """
    item = turn.item
    outcome = before or TenantOutcome(turn.rollout, turn.stage, item, Result.RUNNING, at, execution=turn.execution)
    outcome = replace(outcome, updated_at=at, from_version=where_it_was(outcome, audits))
    state = state_of(metadata, audits)
    # A delete that has only begun may be refused yet, and then the tenant is served again, where the update left it.
    in_service = metadata is not None and (metadata.published or state is TenantState.DELETING)
    # Another update that is at work may take the tenant elsewhere, so then only the tenant's own update counts.
    stays = state is not TenantState.UPDATING or _has_succeeded(before, audits, item.version)
    if metadata is not None and in_service and metadata.version == item.version and stays:
        return replace(outcome, result=Result.SUCCEEDED)
    if state is TenantState.DELETED:
        return replace(outcome, result=Result.SKIPPED, skip=Skip.DELETED)
    if _never_had_a_queue(outcome, state, audits):
        return replace(outcome, result=Result.SKIPPED, skip=Skip.NOT_PROVISIONED)
    if metadata is not None and metadata.pinned_version not in (None, item.version):
        return replace(outcome, result=Result.SKIPPED, skip=Skip.PINNED)
    if metadata is not None and _is_newer(metadata, item.version) and not allow_downgrade:
        return replace(outcome, result=Result.SKIPPED, skip=Skip.NEWER)  # Others have moved it further meanwhile.
    cause = failure_on_record(before, audits, item.version)
    # Throttled all the time, which is no failure; or the attempt's name was taken by one that never began.
    if (cause and cause.is_throttling) or (cause is None and fault and _NAME_IS_TAKEN in fault):
        return replace(outcome, execution=NOBODY)
    if cause is None:
        cause = RootCause(item.tenant.value, "Berth::Tenant", fault or "The update ended without recording how.")
    return replace(outcome, result=Result.FAILED, root_cause=bounded(cause))


def where_it_was(outcome: TenantOutcome, audits: Sequence[Audit]) -> str | None:
    """The version that the tenant was moved away from.

    Whoever was at the tenant when it was admitted was waited for, and may have moved it before its own update began.
    """
    others = [
        audit
        for audit in audits
        if audit.operation is not Operation.DELETE
        and audit.status is Status.SUCCESS
        and audit.version != outcome.item.version
        and (outcome.from_version is None or audit.updated_at >= outcome.updated_at - _CLOCKS_DIFFER_BY)
    ]
    latest = max(others, key=lambda audit: audit.updated_at, default=None)
    return latest.version if latest else outcome.from_version


def _never_had_a_queue(outcome: TenantOutcome, state: TenantState, audits: Sequence[Audit]) -> bool:
    """True if there was nothing to update: the tenant's create failed, or its delete did half-way."""
    unserved = state in (TenantState.FAILED, TenantState.UNKNOWN)
    return unserved and (outcome.from_version is None or delete_counts(audits))


def failure_on_record(before: TenantOutcome | None, audits: Sequence[Audit], version: str) -> RootCause | None:
    """Why the tenant's update failed, if that is on record. What failed before its turn does not matter."""
    if before is None or before.operation_attempt is None:
        return None
    least = before.operation_attempt
    return next(
        (
            audit.root_cause
            for audit in _updates(audits, version)
            if audit.status is Status.FAILURE and audit.attempt >= least
        ),
        None,
    )


def _has_succeeded(before: TenantOutcome | None, audits: Sequence[Audit], version: str) -> bool:
    if before is None or before.operation_attempt is None:
        return False
    least = before.operation_attempt
    return any(audit.status is Status.SUCCESS and audit.attempt >= least for audit in _updates(audits, version))


def _updates(audits: Sequence[Audit], version: str) -> list[Audit]:
    return [audit for audit in audits if audit.operation is Operation.UPDATE and audit.version == version]


def _is_newer(metadata: Metadata, version: str) -> bool:
    return metadata.version is not None and is_older(version, than=metadata.version)


def with_outcome(stage: Stage, outcome: TenantOutcome, *, in_flight: bool) -> Stage:
    """The stage once this outcome is part of it. ``in_flight`` says whether the tenant was until now."""
    pace = stage.pace
    if in_flight and outcome.result in (Result.SUCCEEDED, Result.UNCHANGED):
        pace = pace.after_success(stage.in_flight)
    return replace(
        stage,
        pace=pace,
        in_flight=max(0, stage.in_flight - in_flight),
        moved_at=outcome.updated_at,
        succeeded=stage.succeeded + (outcome.result in (Result.SUCCEEDED, Result.UNCHANGED)),
        failed=stage.failed + (outcome.result is Result.FAILED),
        skipped=stage.skipped + (outcome.result is Result.SKIPPED),
    )


def _next_number(turn: Turn, before: TenantOutcome | None, audits: Sequence[Audit]) -> int:
    tried = [audit.attempt for audit in _updates(audits, turn.item.version)]
    return 1 + max([*tried, (before.operation_attempt if before else None) or 0])


def _come_back_in(stage: Stage) -> int:
    """The more wait for each that is in flight, the longer: together they ask about as often as room is made."""
    left = stage.total - stage.settled - stage.in_flight
    waiting_for_each = max(0.0, min(stage.pace.ceiling - stage.pace.limit, left)) / stage.pace.limit
    return min(_LONGEST_WAIT_SECONDS, 1 + int(_SECONDS_PER_WAITING * waiting_for_each))


def _is_deserted(stage: Stage, now: datetime) -> bool:
    return stage.in_flight > 0 and stage.moved_at is not None and now - stage.moved_at > _NOBODY_LEFT_AFTER
