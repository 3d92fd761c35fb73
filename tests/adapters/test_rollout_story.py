"""A whole rollout with the table, from spec to report: the same in DynamoDB and in memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.gate import Admitted, Settled
from orchestrator.rollouts.ports import RolloutLedger
from orchestrator.rollouts.records import Result, RolloutStatus, Share, Spec, StageSpec, Turn
from orchestrator.tenants.records import Operation
from tests.adapters.tables import Table, create, publish
from tests.fakes import (
    NEXT_VERSION,
    QUEUE_TABOO,
    FakeAlarms,
    World,
    a_release,
    a_run,
    execution_arn,
    take,
)

# The contract tests of both tables run the single calls on the emulator, too.
pytestmark = pytest.mark.parametrize("kind", ["memory", "moto"], indirect=True)

STAGES = (
    StageSpec(Share(1), 1, Share(0), approval=True),
    StageSpec(None, 4, Share(1)),
)


class Story(World):
    """The use cases, all with the same table."""

    def run(self, rollout: str, failing: frozenset[str] = frozenset()) -> list[object]:
        """Run the rollout until it ends, and approve its stages. Returns its steps."""
        steps: list[object] = []
        while True:
            step = self.advancing.advance(rollout, 1, execution_arn(f"rollout-{rollout}-1"))
            steps.append(type(step))
            match step:
                case RunStage(stage, manifest):
                    for item in self.manifests.read(manifest):
                        turn = Turn(rollout, stage, item, execution_arn(f"child-of-{item.tenant}"))
                        self.take_turn(turn, fails=item.tenant.value in failing)
                case AwaitOperator():
                    waiting = self.rollout_table.rollout(rollout)
                    assert waiting
                    assert isinstance(self.rollouts.approve(rollout, waiting.current_stage, "ada"), RolloutWithStages)
                case Bake():
                    raise AssertionError("Nothing was to be baked.")
                case Succeeded() | NotSucceeded():
                    return steps

    def take_turn(self, turn: Turn, *, fails: bool) -> None:
        admitted = self.gate.admit(turn)
        if not isinstance(admitted, Admitted):
            return
        run = a_run(tenant=turn.item.tenant, operation=Operation.UPDATE, version=turn.item.version)
        assert admitted.name == run.attempt.name
        take(self.table, run)
        if fails:
            self.table.fail(run, QUEUE_TABOO, self.clock.now())
        else:
            publish(self.table, run, at=self.clock.now(), version=turn.item.version)
        assert isinstance(self.gate.record(turn), Settled)


@pytest.fixture
def world(table: Table, ledger: RolloutLedger) -> Story:
    table.record_release(a_release(NEXT_VERSION))
    for name in NAMES:
        create(table, TenantId.parse(name))
    return Story(version=NEXT_VERSION, published=(), table=table, rollout_table=ledger, alarms=FakeAlarms())


NAMES = ("a", "b", "c", "d", "e")


def started(world: Story, spec: Spec) -> str:
    underway = world.rollouts.start(spec, "ada")
    assert isinstance(underway, RolloutWithStages)
    return underway.rollout.id


def test_every_tenant_is_moved_and_the_rollout_has_succeeded(world: Story) -> None:
    rollout = started(world, Spec(None, STAGES))
    assert world.run(rollout) == [AwaitOperator, RunStage, RunStage, Succeeded]
    assert world.table.versions_in_use().by_version.keys() == {NEXT_VERSION}
    assert {outcome.result for outcome in world.rollout_table.outcomes(rollout)} == {Result.SUCCEEDED}
    assert [stage.succeeded for stage in world.rollout_table.stages(rollout)] == [1, 4]
    assert world.rollout_table.registry().active == frozenset()


def test_too_many_failures_halt_the_rollout_and_failed_tenants_can_be_retried(world: Story) -> None:
    spec = Spec(NEXT_VERSION, (replace(STAGES[0], approval=False), STAGES[1]))
    rollout = started(world, spec)
    items = world.manifests.read(world.rollout_table.stages(rollout)[1].manifest)
    failing = frozenset(item.tenant.value for item in items[:2])
    assert world.run(rollout, failing) == [RunStage, RunStage, NotSucceeded]
    halted = world.rollout_table.rollout(rollout)
    assert halted is not None
    assert halted.status is RolloutStatus.HALTED
    assert "2 of 4 tenants failed, 1 were tolerated." in halted.reason
    assert {outcome.item.tenant.value for outcome in world.rollout_table.failures(rollout, limit=100)} == failing
    assert isinstance(world.rollouts.retry(rollout, "ada"), RolloutWithStages)


def test_two_active_rollouts_never_have_the_same_tenants(world: Story) -> None:
    first = started(world, Spec(None, STAGES))
    refused = world.rollouts.start(Spec(None, STAGES, tenants=(TenantId.parse("a"),)), "eve")
    assert not isinstance(refused, RolloutWithStages)
    assert world.rollout_table.registry().active == {first}
