"""A reconciliation as a whole: what died and what hangs, running out of time, and what is recorded."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.reconciling.reconciler import STUCK_AFTER
from orchestrator.reconciling.records import (
    MAX_FINDINGS,
    Kind,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Audit, Status
from tests.fakes import ACME, NOON, OTHER_QUEUE, VERSION, a_run
from tests.unit.reconciling.world import ADA, FleetWithStacks, MeddledTable, kinds, only, queue_of, tenant
from tests.unit.rollouts.world import ROLLOUT, a_rollout, a_spec, a_stage

LOOK = Spec(repair=False)
DRY = Spec(dry_run=True)
REPAIR = Spec()
ONLY_SETTLE = Spec(survey=False)
A_SECOND = timedelta(seconds=1)


@pytest.fixture
def world() -> FleetWithStacks:
    return FleetWithStacks()


# Operations that died


def test_dead_operations_are_settled(world: FleetWithStacks) -> None:
    world.die_at_once("acme")
    world.die_at_once("bolt")
    world.clock.advance(CHECK_HOLDER_AFTER)
    done = world.reconcile(ONLY_SETTLE)
    assert done.status is ReconciliationStatus.DONE
    assert kinds(done) == [(Kind.UNFINISHED, "acme"), (Kind.UNFINISHED, "bolt")]
    assert done.coverage.operations == done.repaired == 2
    assert not done.stuck
    finding = done.findings[0]
    assert "CREATE 0.1.0, attempt 1 never ended" in finding.detail
    assert finding.result.startswith("Failure: ")
    assert world.audit(tenant("acme")).status is Status.FAILURE
    assert world.table.lock(tenant("acme")) is None


def test_an_operation_that_succeeded_is_reported_as_a_success(world: FleetWithStacks) -> None:
    world.stacks.plant_done(ACME, queue=queue_of(ACME))
    world.die_at_once("acme")
    world.clock.advance(CHECK_HOLDER_AFTER)
    assert only(world.reconcile(ONLY_SETTLE)).result.startswith("Success: ")
    assert world.metadata_of(ACME).published


def test_recent_operations_are_not_checked(world: FleetWithStacks) -> None:
    """Asking about executions is rate-limited."""
    world.die_at_once("acme")
    world.die_at_once("bolt", at=NOON + A_SECOND)
    world.clock.advance(CHECK_HOLDER_AFTER)
    done = world.reconcile(ONLY_SETTLE)
    assert kinds(done) == [(Kind.UNFINISHED, "acme")]
    assert done.coverage.operations == 1


def test_running_operations_are_not_settled(world: FleetWithStacks) -> None:
    world.begin(a_run())
    world.clock.advance(CHECK_HOLDER_AFTER)
    done = world.reconcile(ONLY_SETTLE)
    assert not done.findings
    assert done.coverage.operations == 1


def test_a_dry_run_reports_operations_and_settles_none(world: FleetWithStacks) -> None:
    world.die_at_once("acme")
    world.clock.advance(CHECK_HOLDER_AFTER)
    before = world.rows()
    done = world.reconcile(DRY)
    assert world.rows() == before
    finding = only(done)
    assert (finding.kind, finding.remedy, finding.result, finding.repaired) == (
        Kind.UNFINISHED,
        Remedy.SETTLE,
        "",
        False,
    )
    assert not done.repaired


@pytest.mark.parametrize("spec", [ONLY_SETTLE, LOOK, REPAIR])
def test_dead_operations_are_settled_with_every_spec(world: FleetWithStacks, spec: Spec) -> None:
    world.die_at_once("acme")
    world.clock.advance(CHECK_HOLDER_AFTER)
    world.reconcile(spec)
    assert world.audit(ACME).status is Status.FAILURE


class LaggingIndex(MeddledTable):
    """The index still tells of operations that have ended since."""

    def __init__(self) -> None:
        super().__init__()
        self.listed_late: list[Audit] = []

    def unfinished_operations(self) -> Iterable[Audit]:
        return [*self.listed_late, *super().unfinished_operations()]


def test_the_rows_are_read_before_an_operation_of_the_index_is_settled(world: FleetWithStacks) -> None:
    world.table = table = LaggingIndex()
    run = world.die_at_once("acme")
    table.listed_late = [world.audit(ACME)]
    stack = world.stacks.plant_done(ACME, queue=queue_of(ACME))
    table.publish(run, Publication(stack.stack_id, queue_of(ACME), VERSION, None), at=NOON)
    world.clock.advance(CHECK_HOLDER_AFTER)
    before = world.rows()
    done = world.reconcile(ONLY_SETTLE)
    assert done.coverage.operations == 1
    assert not done.findings
    assert world.rows() == before


# Operations that hang


def test_an_operation_past_its_deadline_that_cannot_be_settled_is_stuck(world: FleetWithStacks) -> None:
    run = world.begin(a_run())
    world.clock.advance(STUCK_AFTER)
    assert not world.reconcile(ONLY_SETTLE).stuck
    world.clock.advance(A_SECOND)
    done = world.reconcile(ONLY_SETTLE)
    assert done.stuck == 1
    finding = only(done)
    assert (finding.kind, finding.remedy, finding.repaired) == (Kind.UNFINISHED, Remedy.NONE, False)
    assert "is past its deadline" in finding.detail
    assert run.execution in finding.advice


def test_a_throttled_operation_does_not_prevent_the_others_from_being_settled(world: FleetWithStacks) -> None:
    world.die_at_once("acme")
    world.die_at_once("bolt")
    world.clock.advance(CHECK_HOLDER_AFTER)
    world.stacks.throttle(1)
    done = world.reconcile(ONLY_SETTLE)
    assert done.status is ReconciliationStatus.DONE
    assert kinds(done) == [(Kind.UNFINISHED, "bolt")]
    assert kinds(world.reconcile(ONLY_SETTLE)) == [(Kind.UNFINISHED, "acme")]


def test_an_operation_that_is_throttled_for_too_long_is_stuck(world: FleetWithStacks) -> None:
    world.die_at_once("acme")
    world.clock.advance(STUCK_AFTER + A_SECOND)
    world.stacks.throttle(1)
    assert world.reconcile(ONLY_SETTLE).stuck == 1


# Rollouts


def plant_rollout(world: FleetWithStacks, status: RolloutStatus, *, executed: bool, running: bool) -> None:
    rollout = a_rollout(status=status)
    if not executed:
        rollout = replace(rollout, execution=None)
    elif running:
        world.rollout_executions.running.add(str(rollout.execution))
    assert world.rollout_table.register(rollout, [a_stage()], revision=0)


@pytest.mark.parametrize("executed", [True, False], ids=["died", "never started"])
@pytest.mark.parametrize("status", [status for status in RolloutStatus if status.active])
def test_a_rollout_without_a_running_execution_is_found(
    world: FleetWithStacks, status: RolloutStatus, executed: bool
) -> None:
    plant_rollout(world, status, executed=executed, running=False)
    # An execution that has died is found at once. One that was requested gets some time to begin.
    world.clock.advance(timedelta() if executed else timedelta(minutes=3))
    done = world.reconcile(ONLY_SETTLE)
    assert kinds(done) == [(Kind.STALLED_ROLLOUT, ROLLOUT)]
    finding = only(done)
    assert finding.remedy is Remedy.NONE
    assert f"berth rollout resume {ROLLOUT}" in finding.advice
    assert not done.repaired


def test_a_running_rollout_is_not_found(world: FleetWithStacks) -> None:
    plant_rollout(world, RolloutStatus.RUNNING, executed=True, running=True)
    world.clock.advance(timedelta(hours=1))
    assert not world.reconcile(ONLY_SETTLE).findings


def test_a_rollout_that_is_about_to_begin_is_not_found(world: FleetWithStacks) -> None:
    plant_rollout(world, RolloutStatus.PENDING, executed=False, running=False)
    world.clock.advance(timedelta(minutes=1))
    assert not world.reconcile(ONLY_SETTLE).findings


def test_a_rollout_that_was_just_resumed_is_not_found_however_old_it_is(world: FleetWithStacks) -> None:
    plant_rollout(world, RolloutStatus.RUNNING, executed=True, running=False)
    world.clock.advance(timedelta(days=1))
    assert isinstance(world.rollouts.resume(ROLLOUT, "ada"), RolloutWithStages)
    assert not world.reconcile(ONLY_SETTLE).findings
    world.clock.advance(timedelta(minutes=3))
    assert kinds(world.reconcile(ONLY_SETTLE)) == [(Kind.STALLED_ROLLOUT, ROLLOUT)]


def test_a_rollout_that_ends_while_it_is_checked_is_not_found(
    world: FleetWithStacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    plant_rollout(world, RolloutStatus.RUNNING, executed=True, running=True)
    ended = replace(a_rollout(), status=RolloutStatus.SUCCEEDED)
    monkeypatch.setattr(world.rollout_executions, "is_running", lambda _: not world.rollout_table.change(ended))
    assert not world.reconcile(ONLY_SETTLE).findings


def test_a_rollout_that_has_ended_is_not_found(world: FleetWithStacks) -> None:
    """The registry is read before the rollouts are."""
    plant_rollout(world, RolloutStatus.SUCCEEDED, executed=True, running=False)
    assert ROLLOUT in world.rollout_table.registry().active
    world.clock.advance(timedelta(hours=1))
    assert not world.reconcile(ONLY_SETTLE).findings


def test_a_dry_run_of_a_rollout_is_not_found(world: FleetWithStacks) -> None:
    rollout = a_rollout(a_spec(dry_run=True))
    assert world.rollout_table.register(rollout, [a_stage()], revision=0)
    world.clock.advance(timedelta(hours=1))
    assert not world.reconcile(ONLY_SETTLE).findings


# Not everything can be looked at


def test_without_time_nothing_is_settled(world: FleetWithStacks) -> None:
    world.die_at_once("acme")
    world.clock.advance(CHECK_HOLDER_AFTER)
    done = world.reconcile(has_time=lambda: False)
    assert done.status is ReconciliationStatus.INCOMPLETE
    assert done.coverage.operations == 0
    assert world.audit(ACME).status is Status.STARTED


def test_when_aws_throttles_the_findings_so_far_are_recorded(world: FleetWithStacks) -> None:
    world.add("acme", queue=OTHER_QUEUE)
    world.add("bolt", queue=OTHER_QUEUE)
    world.stacks.throttle(3)
    done = world.reconcile(LOOK)
    assert done.status is ReconciliationStatus.INCOMPLETE
    assert "Rate exceeded" in done.reason
    assert kinds(done) == [(Kind.METADATA_DIFFERS, "acme")]


# The record of a reconciliation


def test_a_reconciliation_is_recorded_as_running_and_then_with_its_result(world: FleetWithStacks) -> None:
    world.add("acme", queue=OTHER_QUEUE)
    world.clock.advance(A_SECOND)
    done = world.reconcile(LOOK)
    first, last = world.reconciliation_table.written
    assert (first.status, first.findings) == (ReconciliationStatus.RUNNING, ())
    assert last == done
    assert (done.started_at, done.updated_at) == (NOON, NOON + A_SECOND)
    assert (done.id, done.by, done.spec) == (first.id, ADA, LOOK)


def test_the_progress_is_recorded_now_and_then(world: FleetWithStacks) -> None:
    for number in range(401):
        world.add(f"t{number:03}")
    world.reconcile(LOOK)
    assert [each.coverage.tenants for each in world.reconciliation_table.written] == [0, 200, 400, 401]


def test_all_findings_are_counted_and_the_first_are_stored(world: FleetWithStacks) -> None:
    for number in range(MAX_FINDINGS + 1):
        world.stacks.plant_done(tenant(f"t{number:03}"))
    done = world.reconcile(REPAIR)
    assert len(done.findings) == MAX_FINDINGS
    assert done.counts == {Kind.ORPHAN_STACK: MAX_FINDINGS + 1}
    assert done.total == done.ordered == MAX_FINDINGS + 1
    assert done.repaired == done.left == 0


def test_the_finding_of_a_throttled_repair_is_found_again(world: FleetWithStacks) -> None:
    world.delete(world.add("acme"))

    def refuse(*_: object) -> None:
        raise Throttled("StartExecution: Rate exceeded")

    start = world.executions.start
    world.executions.start = refuse  # type: ignore[method-assign,assignment]
    assert world.reconcile(REPAIR).status is ReconciliationStatus.INCOMPLETE
    world.executions.start = start  # type: ignore[method-assign]
    assert only(world.reconcile(REPAIR)).ordered


def test_after_an_unexpected_error_the_reconciliation_is_recorded_as_incomplete(world: FleetWithStacks) -> None:
    world.add("acme")

    def refuse(_token: str | None) -> None:
        raise PermissionError("not authorized to perform: cloudformation:ListStacks " + "x" * 5_000)

    world.survey.page = refuse  # type: ignore[method-assign,assignment]
    with pytest.raises(PermissionError):
        world.reconcile(REPAIR)
    (recorded,) = world.reconciliation_table.recorded.values()
    assert recorded.status is ReconciliationStatus.INCOMPLETE
    assert recorded.reason.startswith("PermissionError: not authorized to perform: cloudformation:ListStacks")
    assert len(recorded.reason) == 1_000
