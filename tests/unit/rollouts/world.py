"""A fleet and all adapters of rollouts in memory, and helpers that do the state machine's work step by step."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.rollouts.advancing import Bake, Next, RunStage
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import (
    Item,
    RecordedOrder,
    Result,
    Rollout,
    RolloutStatus,
    Share,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
    TenantOutcome,
    Turn,
)
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import THROTTLING, Operation, RootCause, Run, Status
from orchestrator.tenants.schemas import parse_run
from tests.fakes import (
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeRolloutExecutions,
    InMemoryRollouts,
    World,
    an_audit,
    execution_arn,
    some_metadata,
    stack_arn,
)

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
BOB = "arn:aws:sts::000000000000:assumed-role/operator/bob"
LAST_VERSION = "0.3.0"
ROLLOUT = "20261116-120000-abcd"
NONE_TOLERATED = Share(0)
THROTTLED_CAUSE = RootCause("berth-tenant-x", THROTTLING, "Rate exceeded")
A_SECOND = timedelta(seconds=1)


def tenant(name: str) -> TenantId:
    return TenantId.parse(name)


def tenants(count: int) -> list[TenantId]:
    return [tenant(f"t{number:03}") for number in range(1, count + 1)]


def a_stage_spec(
    size: Share | None = None, *, at_once: int = 50, tolerated: Share = NONE_TOLERATED, **more: Any
) -> StageSpec:
    return StageSpec(size, at_once, tolerated, **more)


def a_spec(*stages: StageSpec, version: str | None = NEXT_VERSION, **more: Any) -> Spec:
    return Spec(version, stages or (a_stage_spec(),), **more)


def a_rollout(
    spec: Spec | None = None,
    *,
    status: RolloutStatus = RolloutStatus.RUNNING,
    execution: str | None = execution_arn("rollout"),
    **more: Any,
) -> Rollout:
    spec = spec or a_spec()
    return Rollout(ROLLOUT, spec, ADA, NOON, (1,), 1, {}, status=status, execution=execution, **more)


def a_stage(number: int = 1, *, spec: StageSpec | None = None, **more: Any) -> Stage:
    spec = spec or a_stage_spec()
    values: dict[str, Any] = {
        "total": 1,
        "tolerated": 0,
        "manifest": f"rollouts/{ROLLOUT}/stage-{number}.json",
        "pace": Pace.initial(spec.max_concurrency),
        "status": StageStatus.RUNNING,
    }
    return Stage(ROLLOUT, number, spec, **values | more)


class FlakyRolloutExecutions(FakeRolloutExecutions):
    """Step Functions that throttles the next start requests."""

    def __init__(self) -> None:
        super().__init__()
        self.throttled_starts = 0

    def start_rollout(self, rollout: Rollout) -> str | None:
        if self.throttled_starts:
            self.throttled_starts -= 1
            raise Throttled("StartExecution: Rate exceeded")
        return super().start_rollout(rollout)

    def die(self, execution: str) -> None:
        self.running.discard(execution)


class ContendedRollouts(InMemoryRollouts):
    """The table with concurrent writes: each of them happens just before the next write of the code under test."""

    def __init__(self) -> None:
        super().__init__()
        self.concurrent_writes: deque[Callable[[], object]] = deque()

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,
        order: RecordedOrder | None = None,
        stage: Stage | None = None,
    ) -> bool:
        self._write_concurrently()
        return super().change(rollout, revision=revision, order=order, stage=stage)

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool:
        self._write_concurrently()
        return super().change_stage(stage, order=order)

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        self._write_concurrently()
        return super().change_stages(stages, order=order)

    def register(
        self, rollout: Rollout, stages: Sequence[Stage], *, revision: int, orders: Sequence[RecordedOrder] = ()
    ) -> bool:
        self._write_concurrently()
        return super().register(rollout, stages, revision=revision, orders=orders)

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        self._write_concurrently()
        return super().admit(count, outcome, before=before)

    def record(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        self._write_concurrently()
        return super().record(count, outcome, before=before)

    def slow_down(self, stage: Stage, pace: Pace) -> bool:
        self._write_concurrently()
        return super().slow_down(stage, pace)

    def _write_concurrently(self) -> None:
        """Do one concurrent write. Its own writes cause no others."""
        if self.concurrent_writes:
            writes, self.concurrent_writes = self.concurrent_writes, deque()
            writes.popleft()()
            self.concurrent_writes = writes


class Fleet(World):
    """A fleet of numbered tenants, and its rollouts."""

    rollout_table: ContendedRollouts
    rollout_executions: FlakyRolloutExecutions

    def __init__(self, count: int = 0, *, version: str = VERSION, **fakes: Any) -> None:
        rollouts: dict[str, Any] = {
            "rollout_table": ContendedRollouts(),
            "rollout_executions": FlakyRolloutExecutions(),
        }
        super().__init__(version=NEXT_VERSION, published=(VERSION, NEXT_VERSION, LAST_VERSION), **rollouts | fakes)
        self.count = count
        for who in tenants(count):
            self.add(who, version=version)

    # Tenants

    def add(self, who: TenantId, *, version: str | None = VERSION, **more: Any) -> None:
        metadata = replace(some_metadata(tenant=who, version=version), **more)
        self.table.plant_audit(an_audit(Status.SUCCESS, tenant=who, version=version, at=NOON - A_SECOND))
        self.table.plant_metadata(metadata)

    def change(self, who: TenantId, **changes: Any) -> None:
        self.table.plant_metadata(replace(self.metadata_of(who), **changes))

    def delete(self, who: TenantId) -> None:
        self.table.plant_metadata(replace(self.metadata_of(who), withdrawn_by="delete"), listed=False)
        self.table.plant_audit(
            an_audit(Status.SUCCESS, Operation.DELETE, tenant=who, version=None, at=self.clock.now())
        )

    def at(self, version: str) -> list[str]:
        """The numbered tenants that are at that version."""
        return [each.value for each in tenants(self.count) if self.metadata_of(each).version == version]

    # The state machine's work

    def run_of(self, admitted: Admitted) -> Run:
        return parse_run(
            {
                "execution": {
                    "Id": execution_arn(admitted.name),
                    "StartTime": timestamp(self.clock.now()),
                    "Input": {**admitted.input, "AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "parent"},
                }
            }
        )

    def begin_update(self, admitted: Admitted) -> Run:
        run = self.run_of(admitted)
        assert self.table.begin(run, at=self.clock.now()) is None
        return run

    def update(self, admitted: Admitted, *, cause: RootCause | None = None) -> None:
        """Run the tenant's update from begin to end."""
        run = self.begin_update(admitted)
        self.clock.advance(timedelta(milliseconds=1))
        if cause:
            assert self.table.fail(run, cause, self.clock.now())
            return
        self.publish(run)

    def publish(self, run: Run) -> None:
        """End the operation successfully."""
        self.table.publish(
            run, Publication(stack_arn(run.tenant), QUEUE, run.attempt.version, None), at=self.clock.now()
        )

    def advance(self, rollout: str, attempt: int = 1, execution: str | None = None) -> Next:
        return self.advancing.advance(rollout, attempt, execution or execution_arn(f"rollout-{rollout}-{attempt}"))

    def run_stage(
        self, rollout: str, run: Next, *, failing: Collection[str] = (), cause: RootCause = QUEUE_TABOO
    ) -> list[object]:
        """Run the map over its list, one child after the other."""
        assert isinstance(run, RunStage)
        return [
            self.take_turn(
                Turn(rollout, run.stage, item, f"child/{item.tenant}/{len(self.rollout_executions.started)}"),
                failing,
                cause,
            )
            for item in self.manifests.read(run.manifest)
        ]

    def take_turn(self, turn: Turn, failing: Collection[str] = (), cause: RootCause = QUEUE_TABOO) -> object:
        admission = self.gate.admit(turn)
        if not isinstance(admission, Admitted):
            return admission
        self.update(admission, cause=cause if turn.item.tenant.value in failing else None)
        return self.gate.record(turn)

    def bake(self, step: Next) -> None:
        assert isinstance(step, Bake)
        self.clock.advance(timedelta(seconds=step.seconds))

    def drive(self, rollout: str, attempt: int = 1, *, failing: Collection[str] = ()) -> Next:
        """Run the rollout until it has ended, or waits for an operator."""
        for _ in range(1_000):
            step = self.advance(rollout, attempt)
            if isinstance(step, RunStage):
                self.run_stage(rollout, step, failing=failing)
            elif isinstance(step, Bake):
                self.bake(step)
            else:
                return step
        raise AssertionError("The rollout never ends.")

    # Starting and reading

    def start(self, spec: Spec | None = None, by: str = ADA) -> str:
        started = self.rollouts.start(spec or a_spec(), by)
        assert isinstance(started, RolloutWithStages), started
        self.clock.advance(A_SECOND)  # The next rollout gets another id.
        return started.rollout.id

    def rollout(self, rollout: str) -> Rollout:
        found = self.rollout_table.rollout(rollout)
        assert found is not None
        return found

    def status(self, rollout: str) -> RolloutStatus:
        return self.rollout(rollout).status

    def stage(self, rollout: str, number: int = 1) -> Stage:
        found = self.rollout_table.stage(rollout, number)
        assert found is not None
        return found

    def outcome(self, rollout: str, who: str | TenantId) -> TenantOutcome:
        found = self.rollout_table.tenant_outcome(rollout, who if isinstance(who, TenantId) else tenant(who))
        assert found is not None
        return found

    def results(self, rollout: str) -> dict[str, Result]:
        return {each.item.tenant.value: each.result for each in self.rollout_table.outcomes(rollout)}

    def items(self, rollout: str, stage: int = 1) -> Sequence[Item]:
        return self.manifests.read(self.stage(rollout, stage).manifest)

    def planned_tenants(self, rollout: str) -> list[str]:
        return [
            item.tenant.value
            for stage in self.rollout_table.stages(rollout)
            for item in self.items(rollout, stage.number)
        ]

    def touch_stage(self, rollout: str, number: int = 1, **changes: Any) -> None:
        """A concurrent write."""
        assert self.rollout_table.change_stage(replace(self.stage(rollout, number), **changes))

    def touch(self, rollout: str, **changes: Any) -> None:
        """A concurrent write."""
        assert self.rollout_table.change(replace(self.rollout(rollout), **changes))

    def plant(self, rollout: Rollout, stages: Iterable[Stage], *outcomes: TenantOutcome) -> None:
        """Add a rollout with this state."""
        stages = list(stages)
        assert self.rollout_table.register(rollout, stages, revision=self.rollout_table.registry().revision)
        for outcome in outcomes:
            self.plant_outcome(outcome)

    def plant_outcome(self, outcome: TenantOutcome) -> None:
        """Replace a tenant's outcome, which does not count."""
        before = self.rollout_table.tenant_outcome(outcome.rollout, outcome.item.tenant)
        count = Count(outcome.rollout, outcome.stage, outcome.updated_at)
        assert self.rollout_table.record(count, outcome, before=before)
