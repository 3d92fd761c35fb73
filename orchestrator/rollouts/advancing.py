"""What comes next for a rollout as a whole: one use case, asked again after everything that happens.

It decides from what is written down, so a repeated, late or lost step costs time and nothing else; and it counts from
the tenants' own rows, not from what the map says about itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.finding import read_tenant
from orchestrator.rollouts.gate import failure_on_record, judge, with_outcome
from orchestrator.rollouts.records import (
    Item,
    Result,
    Rollout,
    RolloutStatus,
    Skip,
    Stage,
    StageStatus,
    TenantOutcome,
    Turn,
)

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.rollouts.ports import Alarms, Manifests, RolloutExecutions, RolloutLedger, Throttling
    from orchestrator.tenants.ports import TenantReader

LOOKS_PER_BAKE = 120
"""An execution's history is limited, so a long bake is looked at less often."""
SHORTEST_LOOK_SECONDS = 15

MOST_IDLE_ROUNDS = 5
"""How often a stage is set going without a single tenant being settled by it."""

_ROUNDS = 25

_REASON_LENGTH = 2_000


@dataclass(frozen=True, slots=True)
class RunStage:
    """Give the tenants on this list their turns, so many at once at most."""

    stage: int
    manifest: str
    max_concurrency: int
    outcome = "run"


@dataclass(frozen=True, slots=True)
class Bake:
    """Come back in so many seconds."""

    seconds: int
    outcome = "bake"


@dataclass(frozen=True, slots=True)
class AwaitOperator:
    """Paused, or not approved yet."""

    outcome = "await"


@dataclass(frozen=True, slots=True)
class Succeeded:
    outcome = "succeeded"


@dataclass(frozen=True, slots=True)
class NotSucceeded:
    """It is over: failed, halted or aborted."""

    status: str
    reason: str
    outcome = "stopped"


Next = RunStage | Bake | AwaitOperator | Succeeded | NotSucceeded


@dataclass(frozen=True, slots=True)
class Advancing:
    ledger: RolloutLedger
    tenants: TenantReader
    manifests: Manifests
    alarms: Alarms
    throttling: Throttling
    executions: RolloutExecutions
    clock: Clock

    def advance(self, rollout_id: str, attempt: int, execution: str) -> Next:
        """Decide what comes next, and write down what that changes."""
        for _ in range(_ROUNDS):
            rollout, stages = self._read(rollout_id, attempt)
            if rollout.execution != execution or rollout.status is RolloutStatus.PENDING:
                self.ledger.change(replace(rollout, execution=execution, status=_begun(rollout.status)))
                continue
            decided = self._decide(rollout, stages)
            if decided is not None:
                return decided
        raise Unsettled(f"Rollout {rollout_id}: others changed it {_ROUNDS} times in a row. It is tried again.")

    def await_operator(self, rollout_id: str, attempt: int, task_token: str) -> None:
        """Leave the token where an operator's word finds it, unless that was said in the meantime."""
        for _ in range(_ROUNDS):
            rollout, stages = self._read(rollout_id, attempt)
            if not _awaits_an_operator(rollout, stages):
                self.executions.wake(task_token)
                return
            if rollout.task_token == task_token:
                return  # And nothing was said before it was there to be found.
            self.ledger.change(replace(rollout, task_token=task_token))
        raise Unsettled(f"Rollout {rollout_id}: others changed it {_ROUNDS} times in a row.")

    def give_up(self, rollout_id: str, attempt: int, reason: str) -> NotSucceeded:
        """Something went wrong with the rollout itself. What is under way ends by itself; it can be resumed."""
        for _ in range(_ROUNDS):
            rollout, _stages = self._read(rollout_id, attempt)
            if not rollout.status.active:  # It had been said how it ended before something went wrong.
                return NotSucceeded(rollout.status, rollout.reason)
            aborting = rollout.status is RolloutStatus.ABORTING
            ended = self._end(rollout, RolloutStatus.ABORTED if aborting else RolloutStatus.HALTED, reason)
            if isinstance(ended, NotSucceeded):
                return ended
        raise Unsettled(f"Rollout {rollout_id}: others changed it {_ROUNDS} times in a row.")

    def _read(self, rollout_id: str, attempt: int) -> tuple[Rollout, Sequence[Stage]]:
        rollout = self.ledger.rollout(rollout_id)
        if rollout is None or rollout.attempt != attempt:
            raise Conflict(f"Rollout {rollout_id}: another execution has taken the place of attempt {attempt}.")
        return rollout, self.ledger.stages(rollout_id)

    def _decide(self, rollout: Rollout, stages: Sequence[Stage]) -> Next | None:
        """``None`` when something was changed, by this step or by others: look again."""
        if not rollout.status.active:
            return _over(rollout)
        if rollout.status is RolloutStatus.ABORTING:
            return self._end(rollout, RolloutStatus.ABORTED, rollout.reason)
        if rollout.status is RolloutStatus.PAUSED:
            return AwaitOperator()
        stage = stages[rollout.current_stage - 1]
        match stage.status:
            case StageStatus.WAITING | StageStatus.AWAITING_APPROVAL:
                earlier = stages[stage.number - 2] if stage.number > 1 else None
                return self._begin(stage, earlier)
            case StageStatus.RUNNING:
                return self._after_running(rollout, stage)
            case StageStatus.BAKING:
                return self._bake(rollout, stage)
            case StageStatus.DONE:
                return self._next_stage(rollout, stages)

    def _begin(self, stage: Stage, earlier: Stage | None) -> Next | None:
        if stage.wish.approval and stage.approved_by is None:
            if stage.status is StageStatus.AWAITING_APPROVAL:
                return AwaitOperator()
            self.ledger.change_stage(replace(stage, status=StageStatus.AWAITING_APPROVAL))
            return None
        pace = stage.pace.after(earlier.pace if earlier else None, self.throttling.throttles())
        begun = replace(stage, status=StageStatus.RUNNING, started_at=self.clock.now(), pace=pace)
        self.ledger.change_stage(begun)
        return None

    def _after_running(self, rollout: Rollout, stage: Stage) -> Next | None:
        """Also before it has run at all: then everybody is left."""
        everybody = self.manifests.read(stage.manifest)
        outcomes = {
            outcome.item.tenant: outcome
            for outcome in self.ledger.outcomes(rollout.id)
            if outcome.stage == stage.number
        }
        stage = self._settle_what_is_left(rollout, stage, outcomes)
        left = [item for item in everybody if not _is_settled(outcomes.get(item.tenant))]
        settled = list(outcomes.values())
        stage = replace(
            stage,
            in_flight=0,
            succeeded=sum(each.result in (Result.SUCCEEDED, Result.UNCHANGED) for each in settled),
            failed=sum(each.result is Result.FAILED for each in settled),
            skipped=sum(each.result is Result.SKIPPED for each in settled),
        )
        if stage.too_many_failed:
            if not self.ledger.change_stage(stage):
                return None
            return self._end(rollout, RolloutStatus.HALTED, _why_halted(stage, settled))
        if left:
            return self._run(rollout, stage, everybody, left)
        now = self.clock.now()
        baked_until = now + timedelta(seconds=stage.wish.bake_seconds)
        # The alarm counts since the last tenant was settled: it may have been long ago, if the rollout was paused.
        ended_at = stage.moved_at or now
        self.ledger.change_stage(replace(stage, status=StageStatus.BAKING, ended_at=ended_at, baked_until=baked_until))
        return None

    def _settle_what_is_left(self, rollout: Rollout, stage: Stage, outcomes: dict[TenantId, TenantOutcome]) -> Stage:
        """Those whose turn ended before it was said what became of them."""
        for outcome in [each for each in outcomes.values() if not each.result.settled]:
            tenant = outcome.item.tenant
            turn = Turn(outcome.rollout, outcome.stage, outcome.item, outcome.execution)
            metadata, audits = read_tenant(tenant, self.tenants)
            found = judge(
                turn,
                outcome,
                metadata,
                audits,
                allow_downgrade=rollout.wish.allow_downgrade,
                fault=None,
                at=self.clock.now(),
            )
            cut_short = failure_on_record(outcome, audits, outcome.item.version) is None
            if found.result is Result.FAILED and cut_short:
                continue  # It has its turn again.
            counted = with_outcome(stage, found, in_flight=False)
            if self.ledger.record(counted, found):
                outcomes[tenant] = found
                stage = replace(counted, revision=stage.revision + 1)
        return stage

    def _run(self, rollout: Rollout, stage: Stage, everybody: Sequence[Item], left: Sequence[Item]) -> Next | None:
        idle_rounds = stage.idle_rounds + 1 if stage.settled == stage.settled_before else 0
        if idle_rounds > MOST_IDLE_ROUNDS:
            reason = f"Stage {stage.number}: none of the {len(left)} tenants that are left could have its turn."
            return self._end(rollout, RolloutStatus.HALTED, reason)
        manifest = stage.manifest
        if len(left) < len(everybody):
            manifest = self.manifests.write(f"{rollout.id}/stage-{stage.number}-{stage.revision}", left)
        if not self.ledger.change_stage(replace(stage, settled_before=stage.settled, idle_rounds=idle_rounds)):
            return None
        return RunStage(stage.number, manifest, stage.wish.max_concurrency)

    def _bake(self, rollout: Rollout, stage: Stage) -> Next | None:
        now = self.clock.now()
        if stage.wish.alarm and (reason := self.alarms.went_off(stage.wish.alarm, since=_baking_since(stage, now))):
            told = f"Stage {stage.number}: the alarm {stage.wish.alarm} went off while it was baking: {reason}"
            halted = self._end(rollout, RolloutStatus.HALTED, told)
            if halted is not None:
                # The operator is told of it. Once the rollout is resumed, only what the alarm says later counts.
                self.ledger.change_stage(replace(stage, resumed_at=now))
            return halted
        if stage.baked_until is None or now >= stage.baked_until:
            self.ledger.change_stage(replace(stage, status=StageStatus.DONE))
            return None
        return Bake(_until_the_next_look(stage.wish.bake_seconds, stage.baked_until - now))

    def _next_stage(self, rollout: Rollout, stages: Sequence[Stage]) -> Next | None:
        if rollout.current_stage < len(stages):
            self.ledger.change(replace(rollout, current_stage=rollout.current_stage + 1))
            return None
        reason = self._why_not_succeeded(rollout, stages)
        return self._end(rollout, RolloutStatus.FAILED if reason else RolloutStatus.SUCCEEDED, reason)

    def _why_not_succeeded(self, rollout: Rollout, stages: Sequence[Stage]) -> str:
        """Empty if every tenant of the plan has a row of its own which says that nothing is left to be done."""
        outcomes = {outcome.item.tenant: outcome for outcome in self.ledger.outcomes(rollout.id)}
        planned = [item.tenant for stage in stages for item in self.manifests.read(stage.manifest)]
        failed = sum(outcome.result is Result.FAILED for outcome in outcomes.values())
        # A rollout of an earlier version did not wait for busy tenants. A dry run does not, either.
        busy = 0
        if not rollout.wish.dry_run:
            left_out = rollout.skipped.get(Skip.BUSY)
            busy = sum(outcome.skip is Skip.BUSY for outcome in outcomes.values()) + (left_out.count if left_out else 0)
        unknown = sum(not _is_settled(outcomes.get(tenant)) for tenant in planned)
        reasons = [
            f"{failed} of {rollout.total} tenants failed, which was tolerated." if failed else "",
            f"{busy} of {rollout.total} tenants were skipped because they were busy." if busy else "",
            f"What became of {unknown} of {rollout.total} tenants was never recorded." if unknown else "",
        ]
        return " ".join(filter(None, reasons))

    def _end(self, rollout: Rollout, status: RolloutStatus, reason: str) -> Next | None:
        ended = replace(
            rollout, status=status, reason=reason[:_REASON_LENGTH], ended_at=self.clock.now(), task_token=None
        )
        return _over(ended) if self.ledger.change(ended) else None


def _over(rollout: Rollout) -> Next:
    if rollout.status is RolloutStatus.SUCCEEDED:
        return Succeeded()
    return NotSucceeded(rollout.status, rollout.reason)


def _begun(status: RolloutStatus) -> RolloutStatus:
    return RolloutStatus.RUNNING if status is RolloutStatus.PENDING else status


def _is_settled(outcome: TenantOutcome | None) -> bool:
    return outcome is not None and outcome.result.settled


def _awaits_an_operator(rollout: Rollout, stages: Sequence[Stage]) -> bool:
    if rollout.status is not RolloutStatus.RUNNING:
        return rollout.status is RolloutStatus.PAUSED
    stage = stages[rollout.current_stage - 1]
    return stage.status is StageStatus.AWAITING_APPROVAL and stage.approved_by is None


def _why_halted(stage: Stage, outcomes: Sequence[TenantOutcome]) -> str:
    first = min(
        (each for each in outcomes if each.result is Result.FAILED), key=lambda each: each.updated_at, default=None
    )
    told = f" First, tenant {first.item.tenant}: {first.root_cause}" if first else ""
    return (
        f"Stage {stage.number}: {stage.failed} of {stage.total} tenants failed, "
        f"{stage.tolerated + stage.forgiven} were tolerated.{told}"
    )


def _baking_since(stage: Stage, now: datetime) -> datetime:
    """An operator who has let the stage go on after its alarm had halted it has seen what the alarm said until then."""
    return max(filter(None, (stage.ended_at, stage.resumed_at)), default=now)


def _until_the_next_look(bake_seconds: int, left: timedelta) -> int:
    look = max(SHORTEST_LOOK_SECONDS, math.ceil(bake_seconds / LOOKS_PER_BAKE))
    return max(1, min(look, math.ceil(left.total_seconds())))
