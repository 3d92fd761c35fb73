"""Deciding the next step of a rollout as a whole. The state machine asks after every step.

The decision depends only on recorded state, so a repeated, late or lost step costs time and nothing else. Results are
counted from the tenants' own rows, not from the result of the state machine's map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Conflict, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.counting import settlement
from orchestrator.rollouts.finding import read_tenant
from orchestrator.rollouts.gate import classify, recorded_failure
from orchestrator.rollouts.pacing import check_interval
from orchestrator.rollouts.records import (
    MAX_REASON,
    Item,
    Result,
    Rollout,
    RolloutStatus,
    Spec,
    Stage,
    StageStatus,
    TenantOutcome,
    Turn,
)

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.states import Promoter
    from orchestrator.rollouts.ports import Alarms, Manifests, RolloutExecutions, RolloutLedger, Throttling
    from orchestrator.tenants.ports import TenantReader

MAX_IDLE_ROUNDS = 5
"""The maximum number of times in a row that a stage's map is started and settles no tenant."""

_MAX_TRIES = 25


@dataclass(frozen=True, slots=True)
class RunStage:
    """Run the map over this list of tenants, with at most ``max_concurrency`` children at once."""

    stage: int
    manifest: str
    max_concurrency: int
    outcome = "run"


@dataclass(frozen=True, slots=True)
class Bake:
    """Wait for this many seconds, then ask again."""

    seconds: int
    outcome = "bake"


@dataclass(frozen=True, slots=True)
class AwaitOperator:
    """Wait until an operator resumes, approves or aborts the rollout."""

    outcome = "await"


@dataclass(frozen=True, slots=True)
class Succeeded:
    outcome = "succeeded"


@dataclass(frozen=True, slots=True)
class NotSucceeded:
    """The rollout has ended: failed, halted or aborted."""

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
    promoter: Promoter

    def advance(self, rollout_id: str, attempt: int, execution: str) -> Next:
        """Decide the next step, and record the changes that it makes."""
        for _ in range(_MAX_TRIES):
            rollout, stages = self._read(rollout_id, attempt)
            if rollout.execution != execution or rollout.status is RolloutStatus.PENDING:
                self.ledger.change(replace(rollout, execution=execution, status=_begun(rollout.status)))
                continue
            decided = self._decide(rollout, stages)
            if decided is not None:
                return decided
        raise _changed_too_often(rollout_id)

    def await_operator(self, rollout_id: str, attempt: int, task_token: str) -> None:
        """Store the task token for the next order, or wake the execution if it need not wait any more."""
        for _ in range(_MAX_TRIES):
            rollout, stages = self._read(rollout_id, attempt)
            # An order, or the withdrawal of the release, may have come before the token was stored.
            if not _awaits_an_operator(rollout, stages) or self._withdrawn_reason(rollout):
                self.executions.wake(task_token)
                return
            if rollout.task_token == task_token:
                return  # The token was stored before these reads, so later orders and withdrawals find it.
            self.ledger.change(replace(rollout, task_token=task_token))
        raise _changed_too_often(rollout_id)

    def give_up(self, rollout_id: str, attempt: int, reason: str) -> NotSucceeded:
        """End the rollout after an error of its state machine. Updates in flight finish; the rollout can be resumed."""
        for _ in range(_MAX_TRIES):
            rollout, _stages = self._read(rollout_id, attempt)
            if not rollout.status.active:  # The rollout's end was recorded before the error.
                return NotSucceeded(rollout.status, rollout.reason)
            aborting = rollout.status is RolloutStatus.ABORTING
            ended = self._end(rollout, RolloutStatus.ABORTED if aborting else RolloutStatus.HALTED, reason)
            if isinstance(ended, NotSucceeded):
                return ended
        raise _changed_too_often(rollout_id)

    def _read(self, rollout_id: str, attempt: int) -> tuple[Rollout, Sequence[Stage]]:
        rollout = self.ledger.rollout(rollout_id)
        if rollout is None or rollout.attempt != attempt:
            raise Conflict(f"Rollout {rollout_id}: another execution has replaced attempt {attempt}.")
        return rollout, self.ledger.stages(rollout_id)

    def _decide(self, rollout: Rollout, stages: Sequence[Stage]) -> Next | None:
        """``None`` if something was changed, by this step or by another writer: read everything again."""
        if not rollout.status.active:
            return _over(rollout)
        if rollout.status is RolloutStatus.ABORTING:
            return self._end(rollout, RolloutStatus.ABORTED, rollout.reason)
        if reason := self._withdrawn_reason(rollout):
            return self._end(rollout, RolloutStatus.HALTED, reason)
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

    def _withdrawn_reason(self, rollout: Rollout) -> str | None:
        """Why the rollout halts, if its release was withdrawn. A dry run moves no tenant, so it goes on."""
        version = rollout.spec.version
        withdrawal = self.promoter.chooser.withdrawal(version) if version and not rollout.spec.dry_run else None
        if version is None or withdrawal is None:
            return None
        return f"{withdrawal.sentence(version)}. Move its tenants back: berth rollout start --undo {rollout.id}"

    def _begin(self, stage: Stage, earlier: Stage | None) -> Next | None:
        if stage.spec.approval and stage.approved_by is None:
            if stage.status is StageStatus.AWAITING_APPROVAL:
                return AwaitOperator()
            self.ledger.change_stage(replace(stage, status=StageStatus.AWAITING_APPROVAL))
            return None
        now = self.clock.now()
        pace = stage.pace.continued_from(earlier.pace if earlier else None, self.throttling.throttles(), now)
        begun = replace(stage, status=StageStatus.RUNNING, started_at=now, pace=pace)
        self.ledger.change_stage(begun)
        return None

    def _after_running(self, rollout: Rollout, stage: Stage) -> Next | None:
        """Count the stage's results, then run the map for the tenants that are left, or bake.

        This is also called before the map's first run, when all tenants are left.
        """
        items = self.manifests.read(stage.manifest)
        outcomes = {each.item.tenant: each for each in self._outcomes(stage)}
        stage = self._settle_interrupted(rollout, stage, outcomes)
        left = [item for item in items if not _is_settled(outcomes.get(item.tenant))]
        counted = list(outcomes.values())
        stage = replace(
            stage,
            in_flight=0,
            succeeded=sum(each.result in (Result.SUCCEEDED, Result.UNCHANGED) for each in counted),
            failed=sum(each.result is Result.FAILED for each in counted),
            skipped=sum(each.result is Result.SKIPPED for each in counted),
        )
        if stage.too_many_failed:
            if not self.ledger.change_stage(stage):
                return None
            return self._end(rollout, RolloutStatus.HALTED, _halt_reason(stage, counted))
        if left:
            return self._run(rollout, stage, items, left)
        now = self.clock.now()
        baked_until = now + timedelta(seconds=stage.spec.bake_seconds)
        # The alarm counts from when the last tenant was settled, which may be long ago if the rollout was paused.
        ended_at = stage.moved_at or now
        self.ledger.change_stage(replace(stage, status=StageStatus.BAKING, ended_at=ended_at, baked_until=baked_until))
        return None

    def _outcomes(self, stage: Stage) -> Sequence[TenantOutcome]:
        """The outcomes of the stage's tenants. For that, all of the rollout's are read, unless there can be none."""
        if stage.moved_at is None and not stage.settled and not stage.in_flight:
            return []  # No tenant was admitted or settled yet, which is counted with its outcome.
        return [each for each in self.ledger.outcomes(stage.rollout) if each.stage == stage.number]

    def _settle_interrupted(self, rollout: Rollout, stage: Stage, outcomes: dict[TenantId, TenantOutcome]) -> Stage:
        """Settle the tenants whose turn ended before their outcome was recorded."""
        for outcome in [each for each in outcomes.values() if not each.result.settled]:
            tenant = outcome.item.tenant
            turn = Turn(outcome.rollout, outcome.stage, outcome.item, outcome.execution)
            metadata, audits = read_tenant(tenant, self.tenants)
            found = classify(
                turn,
                outcome,
                metadata,
                audits,
                spec=rollout.spec,
                fault=None,
                at=self.clock.now(),
            )
            interrupted = recorded_failure(outcome, audits, outcome.item.version) is None
            if found.result is Result.FAILED and interrupted:
                continue  # The tenant gets another turn.
            count = settlement(stage, found, in_flight=False, dry_run=rollout.spec.dry_run)
            if self.ledger.record(count, found, before=outcome):
                outcomes[tenant] = found
                stage = count.added_to(stage)
        return stage

    def _run(self, rollout: Rollout, stage: Stage, items: Sequence[Item], left: Sequence[Item]) -> Next | None:
        idle_rounds = stage.idle_rounds + 1 if stage.settled == stage.settled_before else 0
        if idle_rounds > MAX_IDLE_ROUNDS:
            reason = (
                f"Stage {stage.number}: the last {MAX_IDLE_ROUNDS} runs of the stage settled none of the {len(left)} "
                "tenants that are left."
            )
            return self._end(rollout, RolloutStatus.HALTED, reason)
        manifest = stage.manifest
        if len(left) < len(items):
            manifest = self.manifests.write(f"{rollout.id}/stage-{stage.number}-{stage.revision}", left)
        begun = replace(
            stage,
            settled_before=stage.settled,
            idle_rounds=idle_rounds,
            map_concurrency=stage.spec.max_concurrency,
        )
        if not self.ledger.change_stage(begun):
            return None
        return RunStage(stage.number, manifest, stage.spec.max_concurrency)

    def _bake(self, rollout: Rollout, stage: Stage) -> Next | None:
        now = self.clock.now()
        if stage.spec.alarm and (reason := self.alarms.went_off(stage.spec.alarm, since=_baking_since(stage, now))):
            message = f"Stage {stage.number}: the alarm {stage.spec.alarm} went off during the bake: {reason}"
            # The operator sees this alarm in the reason. After a resume, only later alarms count.
            return self._end(rollout, RolloutStatus.HALTED, message, stage=replace(stage, resumed_at=now))
        if stage.baked_until is None or now >= stage.baked_until:
            self.ledger.change_stage(replace(stage, status=StageStatus.DONE))
            return None
        return Bake(_seconds_until_check(stage.spec.bake_seconds, stage.baked_until - now))

    def _next_stage(self, rollout: Rollout, stages: Sequence[Stage]) -> Next | None:
        if rollout.current_stage < len(stages):
            self.ledger.change(replace(rollout, current_stage=rollout.current_stage + 1))
            return None
        reason = self._failure_reason(rollout, stages)
        if not reason and not self._promote(rollout):
            return None  # The release was withdrawn a moment ago, so the rollout halts.
        return self._end(rollout, RolloutStatus.FAILED if reason else RolloutStatus.SUCCEEDED, reason)

    def _promote(self, rollout: Rollout) -> bool:
        """Make the rollout's release current, if deployments do not do that. ``False`` if it was withdrawn.

        This comes before the end is recorded: if the function dies in between, the step is repeated, and a promotion
        that is repeated changes nothing.
        """
        spec = rollout.spec
        if spec.version is None or not self.promoter.is_automatic or not self._moves_the_fleet(spec):
            return True
        by, now = f"rollout/{rollout.id}", self.clock.now()
        return self.promoter.after_rollout(spec.version, by=by, at=now, allow_downgrade=spec.allow_downgrade)

    def _moves_the_fleet(self, spec: Spec) -> bool:
        """True for a rollout to all tenants, and for the retry of one. Others say little about new tenants."""
        for _ in range(_MAX_TRIES):
            if spec.retry is None:
                return not (spec.dry_run or spec.undo or spec.tenants is not None or spec.labels or spec.share)
            retried = self.ledger.rollout(spec.retry)
            if retried is None:
                return False
            spec = retried.spec
        return False

    def _failure_reason(self, rollout: Rollout, stages: Sequence[Stage]) -> str:
        """The reason why the rollout failed. Empty if every planned tenant succeeded or was skipped."""
        outcomes = {outcome.item.tenant: outcome for outcome in self.ledger.outcomes(rollout.id)}
        planned = [item.tenant for stage in stages for item in self.manifests.read(stage.manifest)]
        failed = sum(outcome.result is Result.FAILED for outcome in outcomes.values())
        unknown = sum(not _is_settled(outcomes.get(tenant)) for tenant in planned)
        reasons = [
            f"{failed} of {rollout.total} tenants failed, which was tolerated." if failed else "",
            f"The outcome of {unknown} of {rollout.total} tenants was never recorded." if unknown else "",
        ]
        return " ".join(filter(None, reasons))

    def _end(self, rollout: Rollout, status: RolloutStatus, reason: str, *, stage: Stage | None = None) -> Next | None:
        """End the rollout. If ``stage`` is given, it is changed at the same moment."""
        ended = replace(rollout, status=status, reason=reason[:MAX_REASON], ended_at=self.clock.now(), task_token=None)
        return _over(ended) if self.ledger.change(ended, stage=stage) else None


def _changed_too_often(rollout_id: str) -> Unsettled:
    return Unsettled(
        f"Rollout {rollout_id}: other writers changed it {_MAX_TRIES} times in a row. The step is retried."
    )


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


def _halt_reason(stage: Stage, outcomes: Sequence[TenantOutcome]) -> str:
    first = min(
        (each for each in outcomes if each.result is Result.FAILED), key=lambda each: each.updated_at, default=None
    )
    first_failure = f" First, tenant {first.item.tenant}: {first.root_cause}" if first else ""
    return (
        f"Stage {stage.number}: {stage.failed} of {stage.total} tenants failed, "
        f"{stage.tolerated + stage.forgiven} were tolerated.{first_failure}"
    )


def _baking_since(stage: Stage, now: datetime) -> datetime:
    """The time from which the alarm counts. An operator who resumed after the alarm has seen it, so it starts anew."""
    return max(filter(None, (stage.ended_at, stage.resumed_at)), default=now)


def _seconds_until_check(bake_seconds: int, left: timedelta) -> int:
    return max(1, min(check_interval(bake_seconds), math.ceil(left.total_seconds())))
