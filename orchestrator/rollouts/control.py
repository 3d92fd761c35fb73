"""The operators' commands: start, pause, resume, abort, approve, retry and undo rollouts.

A rollout is planned and recorded while the operator waits, so that the operator sees at once which tenants it moves,
and that no other rollout moves the same tenants. A rollout's execution has a deterministic name, so a rollout that was
recorded but never started can be started by resuming it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import new_id
from orchestrator.rollouts.planning import plan
from orchestrator.rollouts.records import (
    MAX_REASON,
    Item,
    Order,
    RecordedOrder,
    Rollout,
    RolloutStatus,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
)
from orchestrator.rollouts.refusals import cannot_be, not_over, other_tier, release_withdrawn, undone, unknown_rollout
from orchestrator.rollouts.selecting import (
    Selected,
)
from orchestrator.rollouts.selector import TenantSelector, may_have_been_moved
from orchestrator.rollouts.stalling import may_run
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Unchanged
from orchestrator.tenants.selections import listed

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import Releases
    from orchestrator.releases.records import Withdrawal
    from orchestrator.releases.states import Choice, ReleaseChooser
    from orchestrator.rollouts.ports import Alarms, Manifests, RolloutExecutions, RolloutLedger
    from orchestrator.tenants.ports import Executions, FleetReader, TenantReader

_MAX_TRIES = 25
_MAX_NAMED = 10


@dataclass(frozen=True, slots=True)
class RolloutWithStages:
    """The rollout and its stages after the request."""

    rollout: Rollout
    stages: Sequence[Stage]


@dataclass(frozen=True, slots=True)
class NothingToDo:
    """No tenant has to be moved."""

    reason: str
    selected: Selected


Changed = RolloutWithStages | Unchanged | Refused


@dataclass(frozen=True, slots=True)
class Rollouts:
    ledger: RolloutLedger
    tenants: TenantReader
    fleet: FleetReader
    releases: Releases
    manifests: Manifests
    alarms: Alarms
    executions: RolloutExecutions
    clock: Clock
    chooser: ReleaseChooser
    """Reads the release of a tier that its tenants are moved to unless the spec names another, and those that were
    withdrawn."""
    updates: Executions
    """The executions of the tenants' own updates."""

    def start(self, spec: Spec, by: str, *, reason: str = "") -> RolloutWithStages | NothingToDo | Refused:
        choice = self.chooser.choose(spec.tier or STANDARD)
        completed = self._with_release(spec, choice)
        if isinstance(completed, Refused):
            return completed
        spec = completed
        selected = self._select(spec, choice)
        if isinstance(selected, Refused):
            return selected
        if not selected.items:
            return _nothing_to_do(spec, selected)
        now = self.clock.now()
        rollout_id = new_id(now, by, spec)
        planned: tuple[Rollout, list[Stage]] | None = None
        refused: Refused | None = None
        for _ in range(_MAX_TRIES):
            registry = self.ledger.registry()
            refused = None if spec.dry_run else self._find_conflict(selected.items, registry.active)
            if refused:
                break
            # Planning stores the lists of tenants, so a rollout that is refused is not planned.
            planned = planned or plan(
                rollout_id, spec, selected, by=by, at=now, manifests=self.manifests, reason=reason
            )
            rollout, stages = planned
            if self.ledger.register(rollout, stages, revision=registry.revision, orders=_orders_of(rollout)):
                self._start(rollout)
                return RolloutWithStages(rollout, stages)
        if planned:
            self._delete_lists(*planned)
        if refused:
            return refused
        raise Unsettled("Other rollouts are being started at the same time. Try again.")

    def _delete_lists(self, rollout: Rollout, stages: Iterable[Stage]) -> None:
        """Delete the lists of a rollout that was not recorded, because another one came first."""
        if self.ledger.rollout(rollout.id) is None:
            for stage in stages:
                self.manifests.remove(stage.manifest)

    def retry(self, rollout_id: str, by: str, *, reason: str = "") -> RolloutWithStages | NothingToDo | Refused:
        """Start another rollout for the tenants that failed."""
        rollout = self.ledger.rollout(rollout_id)
        if rollout is None:
            return unknown_rollout(rollout_id)
        if rollout.status.active:
            return not_over(rollout)
        if undo := self._undo_of(rollout_id):
            return Refused(Refusal.NOTHING_TO_RETRY, undone(rollout, undo).reason)
        spec = replace(rollout.spec, retry=rollout_id, tenants=None, labels={}, share=None, sample=None)
        return self.start(spec, by, reason=reason)

    def pause(self, rollout_id: str, by: str, *, reason: str = "") -> Changed:
        def paused(rollout: Rollout) -> Rollout | Unchanged | Refused:
            match rollout.status:
                case RolloutStatus.PAUSED:
                    return Unchanged(f"Rollout {rollout_id} is already paused.")
                case RolloutStatus.PENDING | RolloutStatus.RUNNING:
                    return replace(rollout, status=RolloutStatus.PAUSED, reason=_status_reason("Paused", by, reason))
                case _:
                    return cannot_be(rollout, "paused")

        return self._change(rollout_id, paused, self._order(rollout_id, Order.PAUSE, by, reason))

    def resume(self, rollout_id: str, by: str, *, reason: str = "") -> Changed:
        """Let the rollout continue after a pause, after a halt, or after its execution died."""
        rollout = self.ledger.rollout(rollout_id)
        if rollout is None:
            return unknown_rollout(rollout_id)
        if rollout.status is RolloutStatus.HALTED:
            # A rollout that is paused or whose execution died may be resumed: its next step halts it.
            withdrawal = self.chooser.withdrawal(rollout.spec.version or "")
            refused = None if rollout.spec.dry_run else _refused_as_withdrawn(rollout.spec, withdrawal)
            return refused or self._reopen(rollout_id, by, reason)

        def resumed(rollout: Rollout) -> Rollout | Unchanged | Refused:
            if not rollout.status.active or rollout.status is RolloutStatus.ABORTING:
                return cannot_be(rollout, "resumed")
            dead = rollout.execution is not None and not may_run(rollout, self.executions, self.clock.now())
            if rollout.status is RolloutStatus.RUNNING and not dead:
                return _running_already(rollout)
            running = replace(rollout, status=RolloutStatus.RUNNING, reason=_status_reason("Resumed", by, reason))
            if rollout.execution is None:
                return replace(running, status=RolloutStatus.PENDING, attempted_at=self.clock.now())
            return self._next_attempt(running) if dead else running

        changed = self._change(rollout_id, resumed, self._order(rollout_id, Order.RESUME, by, reason))
        if isinstance(changed, RolloutWithStages):
            self._reset_idle_rounds(changed.rollout)
        if isinstance(changed, RolloutWithStages) and changed.rollout.execution is None:
            return self._start_or_replace(changed)
        return changed

    def _reset_idle_rounds(self, rollout: Rollout) -> None:
        """Rounds that settled no tenant because of a pause do not count as idle."""
        stage = self.ledger.stage(rollout.id, rollout.current_stage)
        if stage is not None and stage.idle_rounds:
            self.ledger.change_stage(replace(stage, idle_rounds=0))

    def abort(self, rollout_id: str, by: str, *, reason: str = "") -> Changed:
        """End the rollout: at once if no tenant is in flight, else when the updates in flight have finished.

        A halted rollout is closed: it can no longer be resumed, and no longer waits for a decision.
        """
        order = self._order(rollout_id, Order.ABORT, by, reason)
        changed = self._change(rollout_id, lambda rollout: self._aborting(rollout, by, reason), order)
        if isinstance(changed, Refused):
            return changed
        # While the rollout is ABORTING no tenant is admitted, so a stage that is not running cannot begin any more.
        return self._change(rollout_id, self._aborted) if self._nothing_in_flight(rollout_id) else changed

    def _aborting(self, rollout: Rollout, by: str, reason: str) -> Rollout | Unchanged | Refused:
        if rollout.status is RolloutStatus.ABORTED:
            return Unchanged(f"Rollout {rollout.id} is already aborted.")
        if rollout.status is RolloutStatus.HALTED:
            # The reason for the halt stays, because it says why somebody has closed the rollout.
            closed = f"{_status_reason('Closed', by, reason).removesuffix('.')}. {rollout.reason}"
            return replace(rollout, status=RolloutStatus.ABORTED, reason=closed[:MAX_REASON])
        if not rollout.status.active:
            return cannot_be(rollout, "aborted")
        if rollout.status is RolloutStatus.ABORTING:
            return Unchanged(f"Rollout {rollout.id} is already being aborted.")
        return replace(rollout, status=RolloutStatus.ABORTING, reason=_status_reason("Aborted", by, reason))

    def _aborted(self, rollout: Rollout) -> Rollout:
        if not rollout.status.active:
            return rollout  # The rollout's execution has already recorded the end.
        return replace(rollout, status=RolloutStatus.ABORTED, ended_at=self.clock.now(), task_token=None)

    def _nothing_in_flight(self, rollout_id: str) -> bool:
        rollout = self.ledger.rollout(rollout_id)
        if rollout is None or rollout.status is not RolloutStatus.ABORTING:
            return False
        if not may_run(rollout, self.executions, self.clock.now()):
            return True  # There is no execution that would end the rollout.
        stage = self.ledger.stage(rollout_id, rollout.current_stage)
        return stage is not None and stage.status is not StageStatus.RUNNING

    def approve(self, rollout_id: str, number: int, by: str, *, reason: str = "") -> Changed:
        """Let that stage begin. Approving a stage again changes nothing."""
        order = replace(self._order(rollout_id, Order.APPROVE, by, reason), stage=number)
        for _ in range(_MAX_TRIES):
            rollout = self.ledger.rollout(rollout_id)
            if rollout is None:
                return unknown_rollout(rollout_id)
            stages = self.ledger.stages(rollout_id)
            stage = next((stage for stage in stages if stage.number == number), None)
            if stage is not None and stage.approved_by is not None:
                if stage.number == rollout.current_stage:
                    self._wake(rollout)
                return Unchanged(f"Rollout {rollout_id}: stage {number} is already approved.")
            if stage is None or stage != awaiting_approval(rollout, stages):
                return _nothing_to_approve(rollout, number, stages)
            if self.ledger.change_stage(replace(stage, approved_by=by), order=order):
                # Read again: an execution that began to wait since the first read has not seen the approval.
                self._wake(self.ledger.rollout(rollout_id) or rollout)
                return RolloutWithStages(rollout, self.ledger.stages(rollout_id))
        raise Unsettled(f"Rollout {rollout_id} is being changed by other requests. Try again.")

    # Planning

    def _with_release(self, spec: Spec, choice: Choice) -> Spec | Refused:
        """The spec with the release that tenants are moved to, and with its tier."""
        if spec.undo:
            spec = replace(spec, allow_downgrade=True)
        elif spec.version is None:
            if choice.candidate is None:
                return self._no_release(choice.tier)
            spec = replace(spec, version=choice.candidate)
        release = self.releases.release(spec.version) if spec.version else None
        if release is not None and spec.tier not in (None, release.tier):
            return other_tier(release, spec.tier)
        return replace(spec, tier=release.tier if release and release.tier != STANDARD else None)

    def _select(self, spec: Spec, choice: Choice) -> Selected | Refused:
        refused = self._unknown_release(spec.version) or _refused_as_withdrawn(
            spec, choice.withdrawn.get(spec.version or "")
        )
        refused = refused or self._unknown_alarm(spec.stages)
        if refused:
            return refused
        withdrawn = frozenset(choice.withdrawn)
        selector = TenantSelector(self.ledger, self.tenants, self.fleet, self.updates, self.clock, withdrawn=withdrawn)
        return selector.select(spec)

    def _unknown_release(self, version: str | None) -> Refused | None:
        if version is None or self.releases.release(version) is not None:
            return None
        return Refused(
            Refusal.UNKNOWN_RELEASE,
            f"Version {version} was never published. See the published versions: berth releases",
        )

    def _no_release(self, tier: str) -> Refused:
        there = listed({release.tier for release in self.releases.releases()})
        return Refused(
            Refusal.NO_RELEASE,
            f"The tier {tier} has no release that tenants could be moved to. There are releases of these tiers: "
            f"{there}. See them: berth releases",
        )

    def _unknown_alarm(self, stages: Iterable[StageSpec]) -> Refused | None:
        unknown = self.alarms.unknown({stage.alarm for stage in stages if stage.alarm})
        if not unknown:
            return None
        return Refused(Refusal.UNKNOWN_ALARM, f"There is no CloudWatch alarm named {', '.join(sorted(unknown))}.")

    def _find_conflict(self, items: Iterable[Item], active: Iterable[str]) -> Refused | None:
        """The refusal if another active rollout moves one of the same tenants."""
        requested = {item.tenant for item in items}
        for other in sorted(active):
            claimed = {
                item.tenant for stage in self.ledger.stages(other) for item in self.manifests.read(stage.manifest)
            }
            if both := requested & claimed:
                named = ", ".join(sorted(tenant.value for tenant in both)[:_MAX_NAMED])
                more = f" and {len(both) - _MAX_NAMED} more" if len(both) > _MAX_NAMED else ""
                return Refused(
                    Refusal.ROLLOUT_IN_THE_WAY,
                    f"Rollout {other} is moving {len(both)} of the same tenants ({named}{more}). Wait until it has "
                    "ended, or abort it.",
                    {"rolloutId": other},
                )
        return None

    def _undo_of(self, rollout_id: str) -> str | None:
        """The rollout that moved tenants of this one back, or may have."""
        undos = (
            each.other
            for each in self.ledger.orders(rollout_id)
            if isinstance(each, RecordedOrder) and each.order is Order.UNDO and each.other
        )
        return next((undo for undo in undos if any(map(may_have_been_moved, self.ledger.outcomes(undo)))), None)

    # Changing

    def _start(self, rollout: Rollout) -> None:
        if self.executions.start_rollout(rollout) is None:
            raise Unsettled(
                f"Rollout {rollout.id}: its execution {rollout.name} has already ended. Start another execution: berth "
                f"rollout resume {rollout.id}"
            )

    def _start_or_replace(self, underway: RolloutWithStages) -> Changed:
        """Start the rollout's execution; or the next one, if that execution died before it recorded that it runs."""
        if self.executions.start_rollout(underway.rollout) is not None:
            return underway

        def replaced(rollout: Rollout) -> Rollout | Unchanged:
            never_ran = rollout.status is RolloutStatus.PENDING and rollout.execution is None
            return self._next_attempt(rollout) if never_ran else _running_already(rollout)

        changed = self._change(underway.rollout.id, replaced)
        if isinstance(changed, RolloutWithStages):
            self._start(changed.rollout)
        return changed

    def _order(self, rollout_id: str, order: Order, by: str, reason: str) -> RecordedOrder:
        return RecordedOrder(rollout_id, self.clock.now(), order, by, reason)

    def _change(
        self,
        rollout_id: str,
        decide: Callable[[Rollout], Rollout | Unchanged | Refused],
        order: RecordedOrder | None = None,
    ) -> Changed:
        """Apply ``decide`` to the rollout. The order is recorded if the rollout changes.

        ``order`` is ``None`` for the second change of an order that is already recorded.
        """
        for _ in range(_MAX_TRIES):
            rollout = self.ledger.rollout(rollout_id)
            if rollout is None:
                return unknown_rollout(rollout_id)
            decided = decide(rollout)
            if not isinstance(decided, Rollout):
                if rollout.status is not RolloutStatus.PAUSED:
                    self._wake(rollout)  # An earlier request may have changed the rollout without waking its execution.
                return decided
            if self.ledger.change(decided, order=order):
                self._wake(rollout)
                return RolloutWithStages(decided, self.ledger.stages(rollout_id))
        raise Unsettled(f"Rollout {rollout_id} is being changed by other requests. Try again.")

    def _reopen(self, rollout_id: str, by: str, reason: str) -> Changed:
        """Resume a halted rollout. The operator has seen the failures so far, so only later ones count."""
        order = self._order(rollout_id, Order.RESUME, by, reason)
        for _ in range(_MAX_TRIES):
            registry, rollout = self.ledger.registry(), self.ledger.rollout(rollout_id)
            if rollout is None:
                return unknown_rollout(rollout_id)
            if rollout.status is not RolloutStatus.HALTED:
                return _running_already(rollout)
            # An undo that begins after this check changes the registry, so the rollout is not changed below.
            if undo := self._undo_of(rollout_id):
                return undone(rollout, undo)
            stages = self.ledger.stages(rollout.id)
            items = [item for stage in stages for item in self.manifests.read(stage.manifest)]
            if not rollout.spec.dry_run and (refused := self._find_conflict(items, registry.active)):
                return refused
            stage = stages[rollout.current_stage - 1]
            reopened = replace(self._next_attempt(rollout), reason=_status_reason("Resumed", by, reason), ended_at=None)
            resumed_at = reopened.attempted_at if _halted_by_its_alarm(rollout, stage) else stage.resumed_at
            seen = replace(stage, forgiven=stage.failed, idle_rounds=0, resumed_at=resumed_at)
            if self.ledger.change(reopened, revision=registry.revision, order=order, stage=seen):
                self._start(reopened)
                return RolloutWithStages(reopened, self.ledger.stages(rollout.id))
        raise Unsettled(f"Rollout {rollout_id} is being changed by other requests. Try again.")

    def _next_attempt(self, rollout: Rollout) -> Rollout:
        return replace(
            rollout,
            attempt=rollout.attempt + 1,
            attempted_at=self.clock.now(),
            execution=None,
            task_token=None,
            status=RolloutStatus.PENDING,
        )

    def _wake(self, rollout: Rollout) -> None:
        if rollout.task_token is not None:
            self.executions.wake(rollout.task_token)


def _orders_of(rollout: Rollout) -> list[RecordedOrder]:
    """The order to record for the rollout's start, and for the rollout that it retries or undoes, if there is one."""
    earlier = rollout.spec.retry or rollout.spec.undo
    start = RecordedOrder(rollout.id, rollout.created_at, Order.START, rollout.by, rollout.start_reason, other=earlier)
    if earlier is None or rollout.spec.dry_run:
        return [start]
    order = Order.RETRY if rollout.spec.retry else Order.UNDO
    return [start, replace(start, rollout=earlier, order=order, other=rollout.id)]


def _status_reason(done: str, by: str, reason: str) -> str:
    return f"{done} by {by}: {reason}" if reason else f"{done} by {by}."


def _halted_by_its_alarm(rollout: Rollout, stage: Stage) -> bool:
    """True if the stage's alarm has halted the rollout since it was last resumed, so that the operator has seen it.

    The time of an earlier halt, or of the resume after it, is not later than the start of the last attempt.
    """
    return stage.resumed_at is not None and stage.resumed_at > (rollout.attempted_at or rollout.created_at)


def _refused_as_withdrawn(spec: Spec, withdrawal: Withdrawal | None) -> Refused | None:
    return release_withdrawn(spec.version or "", withdrawal, retried=spec.retry) if withdrawal else None


def awaiting_approval(rollout: Rollout, stages: Sequence[Stage]) -> Stage | None:
    """The stage that can be approved now."""
    stage = stages[rollout.current_stage - 1]
    active = rollout.status.active and rollout.status is not RolloutStatus.ABORTING
    awaits = stage.status is StageStatus.AWAITING_APPROVAL and stage.approved_by is None
    return stage if active and awaits else None


def _nothing_to_approve(rollout: Rollout, number: int, stages: Sequence[Stage]) -> Refused:
    awaiting = awaiting_approval(rollout, stages)
    current = stages[rollout.current_stage - 1]
    now = (
        f"Stage {awaiting.number} does."
        if awaiting
        else f"No stage does: the rollout is {rollout.status}, in stage {current.number} ({current.status})."
    )
    return Refused(
        Refusal.NOTHING_TO_APPROVE,
        f"Rollout {rollout.id}: stage {number} does not await approval. {now}",
        {"rolloutId": rollout.id, **({"awaitingStage": awaiting.number} if awaiting else {})},
    )


def _nothing_to_do(spec: Spec, selected: Selected) -> NothingToDo | Refused:
    if spec.retry:
        return Refused(
            Refusal.NOTHING_TO_RETRY, f"Rollout {spec.retry}: it has no failed tenants that could be retried."
        )
    skipped = ", ".join(f"{each.count} {reason}" for reason, each in selected.skipped.items())
    return NothingToDo(f"No tenant has to be moved{f' ({skipped})' if skipped else ''}.", selected)


def _running_already(rollout: Rollout) -> Unchanged:
    return Unchanged(f"Rollout {rollout.id} is already running.")
