"""The operators' changes to a rollout that is under way: ending a wait early, and another pace.

A promotion ends the wait of one stage, which the request names, so that a repeated request does not skip the next wait
as well. A change of the pace applies to the current stage and to all later ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.rollouts.control import Changed, RolloutWithStages, awaiting_approval
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.planning import without_idle_bake
from orchestrator.rollouts.records import (
    NewPace,
    Order,
    RecordedOrder,
    Rollout,
    RolloutStatus,
    Stage,
    StageStatus,
)
from orchestrator.rollouts.refusals import cannot_be, not_approved, nothing_to_promote, unknown_rollout
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.order_results import Unchanged

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.rollouts.ports import RolloutExecutions, RolloutLedger

_MAX_TRIES = 50
"""The counters of a running stage are written all the time, and every write changes the stage's revision."""


@dataclass(frozen=True, slots=True)
class Adjusting:
    ledger: RolloutLedger
    executions: RolloutExecutions
    clock: Clock

    def promote(self, rollout_id: str, number: int, by: str, *, approve: bool = False, reason: str = "") -> Changed:
        """End the wait of that stage: the rest of its bake, or with ``approve`` its wait for approval.

        A stage's alarm is checked once more before the next stage begins, so a promotion does not silence it.
        """
        order = RecordedOrder(rollout_id, self.clock.now(), Order.PROMOTE, by, reason, stage=number)
        for _ in range(_MAX_TRIES):
            rollout = self.ledger.rollout(rollout_id)
            if rollout is None:
                return unknown_rollout(rollout_id)
            if not _is_under_way(rollout):
                return cannot_be(rollout, "promoted")
            stages = self.ledger.stages(rollout_id)
            promoted = self._promoted(rollout, stages, number, by, approve=approve)
            if not isinstance(promoted, Stage):
                return promoted
            if self.ledger.change_stages([promoted], order=order):
                self._wake(rollout_id)
                return RolloutWithStages(rollout, self.ledger.stages(rollout_id))
        raise _changed_too_often(rollout_id)

    def _promoted(
        self, rollout: Rollout, stages: Sequence[Stage], number: int, by: str, *, approve: bool
    ) -> Stage | Unchanged | Refused:
        stage = next((stage for stage in stages if stage.number == number), None)
        now = self.clock.now()
        if stage is None or stage.number > rollout.current_stage:
            return nothing_to_promote(rollout, number, stages)
        if stage == awaiting_approval(rollout, stages):
            return replace(stage, approved_by=by) if approve else not_approved(rollout, number)
        if stage.status is StageStatus.BAKING and stage.baked_until is not None and stage.baked_until > now:
            return replace(stage, baked_until=now)
        if stage.status in (StageStatus.BAKING, StageStatus.DONE) or stage.approved_by is not None:
            return Unchanged(f"Rollout {rollout.id}: stage {number} waits for nothing any more.")
        return nothing_to_promote(rollout, number, stages)

    def change(self, rollout_id: str, new: NewPace, by: str, *, reason: str = "") -> Changed:
        """Change the pace of the current stage and of all later ones."""
        order = RecordedOrder(rollout_id, self.clock.now(), Order.CHANGE, by, reason, detail=str(new))
        for _ in range(_MAX_TRIES):
            rollout = self.ledger.rollout(rollout_id)
            if rollout is None:
                return unknown_rollout(rollout_id)
            if not _is_under_way(rollout):
                return cannot_be(rollout, "changed")
            stages = self.ledger.stages(rollout_id)
            left = [stage for stage in stages if stage.status is not StageStatus.DONE]
            changed = [adjusted(stage, new, is_last=stage.number == len(stages)) for stage in left]
            if changed == left:
                return Unchanged(f"Rollout {rollout_id}: the stages that are left have this pace already.")
            if self.ledger.change_stages(changed, order=order):
                return RolloutWithStages(rollout, self.ledger.stages(rollout_id))
        raise _changed_too_often(rollout_id)

    def _wake(self, rollout_id: str) -> None:
        # Read again: an execution that began to wait since the first read has not seen the change.
        rollout = self.ledger.rollout(rollout_id)
        if rollout is not None and rollout.task_token is not None:
            self.executions.wake(rollout.task_token)


def adjusted(stage: Stage, new: NewPace, *, is_last: bool) -> Stage:
    """The stage with the new pace. Values that are not given stay as they are."""
    spec = replace(
        stage.spec,
        max_concurrency=new.max_concurrency or stage.spec.max_concurrency,
        tolerated=new.tolerated or stage.spec.tolerated,
        bake_seconds=stage.spec.bake_seconds if new.bake_seconds is None else new.bake_seconds,
    )
    if is_last:
        spec = without_idle_bake(spec)
    changed = replace(stage, spec=spec, tolerated=spec.tolerated.bound_of(stage.total))
    # Both are compared, so that an order can be repeated if the limit that applies is not the one in the spec.
    if (stage.spec.max_concurrency, stage.pace.ceiling) != (spec.max_concurrency, spec.max_concurrency):
        changed = _with_concurrency(changed, spec.max_concurrency, before=stage.spec.max_concurrency)
    if stage.status is StageStatus.BAKING and stage.baked_until is not None:
        longer = timedelta(seconds=spec.bake_seconds - stage.spec.bake_seconds)
        changed = replace(changed, baked_until=stage.baked_until + longer)
    return changed


def _with_concurrency(stage: Stage, ceiling: int, *, before: int) -> Stage:
    if stage.status is not StageStatus.RUNNING:
        return replace(stage, pace=Pace.initial(ceiling))
    return replace(
        stage,
        pace=replace(stage.pace, ceiling=ceiling),
        map_concurrency=stage.map_concurrency or before,
        # The map is started again if the new maximum is higher, and that is not an idle round.
        idle_rounds=0,
    )


def _is_under_way(rollout: Rollout) -> bool:
    return rollout.status.active and rollout.status is not RolloutStatus.ABORTING


def _changed_too_often(rollout_id: str) -> Unsettled:
    return Unsettled(f"Rollout {rollout_id} is being changed by other requests. Try again.")
