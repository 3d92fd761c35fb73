"""Operators' orders to rollouts, in every state."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, Succeeded
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import Item, Order, RolloutStatus, Share, StageStatus, Turn
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Unchanged
from tests.fakes import NEXT_VERSION, execution_arn
from tests.unit.rollouts.ordering import refused, rolled_out, underway
from tests.unit.rollouts.world import (
    A_SECOND,
    ADA,
    BOB,
    LAST_VERSION,
    ROLLOUT,
    Fleet,
    a_rollout,
    a_spec,
    a_stage,
    a_stage_spec,
    tenant,
)

EXECUTION = execution_arn("rollout")


# Every order in every status

UNCHANGED, OVER = "unchanged", "over"
ALIVE = [
    ("pause", RolloutStatus.PENDING, RolloutStatus.PAUSED),
    ("pause", RolloutStatus.RUNNING, RolloutStatus.PAUSED),
    ("pause", RolloutStatus.PAUSED, UNCHANGED),
    ("pause", RolloutStatus.ABORTING, OVER),
    ("pause", RolloutStatus.SUCCEEDED, OVER),
    ("pause", RolloutStatus.FAILED, OVER),
    ("pause", RolloutStatus.HALTED, OVER),
    ("pause", RolloutStatus.ABORTED, OVER),
    ("resume", RolloutStatus.PENDING, RolloutStatus.RUNNING),
    ("resume", RolloutStatus.RUNNING, UNCHANGED),
    ("resume", RolloutStatus.PAUSED, RolloutStatus.RUNNING),
    ("resume", RolloutStatus.ABORTING, OVER),
    ("resume", RolloutStatus.SUCCEEDED, OVER),
    ("resume", RolloutStatus.FAILED, OVER),
    ("resume", RolloutStatus.HALTED, RolloutStatus.PENDING),
    ("resume", RolloutStatus.ABORTED, OVER),
    ("abort", RolloutStatus.PENDING, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.RUNNING, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.PAUSED, RolloutStatus.ABORTING),
    ("abort", RolloutStatus.ABORTING, UNCHANGED),
    ("abort", RolloutStatus.SUCCEEDED, OVER),
    ("abort", RolloutStatus.FAILED, OVER),
    ("abort", RolloutStatus.HALTED, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.ABORTED, UNCHANGED),
]
DEAD = [
    ("pause", RolloutStatus.RUNNING, RolloutStatus.PAUSED),
    ("resume", RolloutStatus.RUNNING, RolloutStatus.PENDING),
    ("resume", RolloutStatus.PAUSED, RolloutStatus.PENDING),
    ("resume", RolloutStatus.ABORTING, OVER),
    ("abort", RolloutStatus.PENDING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.RUNNING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.PAUSED, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.ABORTING, RolloutStatus.ABORTED),
    ("abort", RolloutStatus.SUCCEEDED, OVER),
]


def planted(status: RolloutStatus, *, alive: bool = True, **more: Any) -> Fleet:
    world = Fleet(1)
    stage = a_stage()
    world.manifests.written[stage.manifest] = [Item(tenant("t001"), NEXT_VERSION)]
    world.plant(a_rollout(status=RolloutStatus.RUNNING, task_token="token", **more), [stage])
    world.touch(ROLLOUT, status=status)
    if alive:
        world.rollout_executions.running.add(EXECUTION)
    return world


def send_order(world: Fleet, verb: str) -> object:
    return getattr(world.rollouts, verb)(ROLLOUT, ADA)


@pytest.mark.parametrize(("verb", "status", "becomes"), ALIVE)
def test_the_effect_of_an_order_while_the_execution_runs(verb: str, status: RolloutStatus, becomes: str) -> None:
    check_order(planted(status), verb, status, becomes)


@pytest.mark.parametrize(("verb", "status", "becomes"), DEAD)
def test_the_effect_of_an_order_after_the_execution_died(verb: str, status: RolloutStatus, becomes: str) -> None:
    check_order(planted(status, alive=False), verb, status, becomes)


def check_order(world: Fleet, verb: str, status: RolloutStatus, becomes: str) -> None:
    before = world.rollout(ROLLOUT)

    response = send_order(world, verb)

    if becomes == UNCHANGED:
        assert isinstance(response, Unchanged)
        assert world.rollout(ROLLOUT) == before
    elif becomes == OVER:
        assert isinstance(response, Refused)
        assert response.kind is Refusal.ROLLOUT_OVER
        assert response.details == {"rolloutId": ROLLOUT, "rolloutStatus": status.value}
        assert world.rollout(ROLLOUT) == before
    else:
        assert underway(response).status == becomes == world.status(ROLLOUT)
    after = world.rollout(ROLLOUT)
    assert (ROLLOUT in world.rollout_table.registry().active) == after.status.active
    if before.status.active and isinstance(response, RolloutWithStages):
        assert set(world.rollout_executions.woken) == {"token"}, "a waiting execution is woken"
    if after.status is RolloutStatus.ABORTED and before.status.active:
        assert after.ended_at == world.clock.now()
    if becomes is RolloutStatus.PENDING:
        assert (after.attempt, after.execution, after.task_token) == (2, None, None)
        assert world.rollout_executions.started == [execution_arn(f"rollout-{ROLLOUT}-2")]
    else:
        assert world.rollout_executions.started == []


@pytest.mark.parametrize("verb", ["pause", "resume", "abort"])
def test_an_order_to_an_unknown_rollout_is_refused(verb: str) -> None:
    assert refused(send_order(Fleet(), verb)) is Refusal.UNKNOWN_ROLLOUT


def test_an_approval_or_retry_of_an_unknown_rollout_is_refused() -> None:
    assert refused(Fleet().rollouts.approve(ROLLOUT, 1, ADA)) is Refusal.UNKNOWN_ROLLOUT
    assert refused(Fleet().rollouts.retry(ROLLOUT, ADA)) is Refusal.UNKNOWN_ROLLOUT


@pytest.mark.parametrize(("verb", "becomes"), [("pause", RolloutStatus.PAUSED), ("abort", RolloutStatus.ABORTING)])
def test_a_concurrent_write_is_kept(verb: str, becomes: RolloutStatus) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.append(lambda: world.touch(ROLLOUT, current_stage=2))

    send_order(world, verb)

    assert (world.status(ROLLOUT), world.rollout(ROLLOUT).current_stage) == (becomes, 2)


@pytest.mark.parametrize("verb", ["pause", "abort"])
def test_an_order_is_refused_if_the_rollout_ends_at_the_same_time(verb: str) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.append(lambda: world.touch(ROLLOUT, status=RolloutStatus.SUCCEEDED))

    assert refused(send_order(world, verb)) is Refusal.ROLLOUT_OVER
    assert world.status(ROLLOUT) is RolloutStatus.SUCCEEDED


def test_an_order_that_always_conflicts_asks_to_try_again() -> None:
    world = planted(RolloutStatus.RUNNING)
    world.rollout_table.concurrent_writes.extend([lambda: world.touch(ROLLOUT)] * 1_000)

    with pytest.raises(Unsettled, match="Try again"):
        send_order(world, "pause")


def test_a_rollout_paused_before_its_first_step_continues_when_resumed() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollouts.pause(rollout, "ada")
    assert world.advance(rollout) == AwaitOperator()

    underway(world.rollouts.resume(rollout, "ada"))

    assert world.drive(rollout) == Succeeded()


def test_a_rollout_paused_and_resumed_before_its_first_step_is_pending() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollouts.pause(rollout, "ada")

    assert underway(world.rollouts.resume(rollout, "ada")).status is RolloutStatus.PENDING
    assert len(world.rollout_executions.started) == 1
    assert world.drive(rollout) == Succeeded()


def test_one_of_two_concurrent_resumes_replaces_a_dead_execution() -> None:
    world = planted(RolloutStatus.RUNNING, alive=False)

    def other() -> None:
        underway(send_order(world, "resume"))
        world.advance(ROLLOUT, 2)

    world.rollout_table.concurrent_writes.append(other)

    assert isinstance(send_order(world, "resume"), Unchanged)
    assert world.rollout(ROLLOUT).attempt == 2


def test_one_of_two_concurrent_resumes_reopens_a_halted_rollout() -> None:
    world = Fleet(4)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003", "t004"])
    world.rollout_table.concurrent_writes.append(lambda: underway(world.rollouts.resume(rollout, "ada")))

    assert isinstance(world.rollouts.resume(rollout, "ada"), Unchanged)

    assert world.rollout(rollout).attempt == 2
    assert len(world.rollout_executions.started) == 2


def test_a_late_resume_does_not_accept_later_failures() -> None:
    world = Fleet(4)
    rollout = world.start()
    everybody = ["t001", "t002", "t003", "t004"]
    world.drive(rollout, failing=everybody)

    def other() -> None:
        world.rollouts.resume(rollout, "ada")
        world.run_stage(rollout, world.advance(rollout, 2), failing=everybody)

    world.rollout_table.concurrent_writes.append(other)

    world.rollouts.resume(rollout, "ada")

    assert world.stage(rollout).forgiven == 1
    assert isinstance(world.advance(rollout, 2), NotSucceeded)


def test_a_rollout_aborted_during_its_first_step_is_ended_by_its_execution() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.rollout_table.concurrent_writes.append(lambda: world.advance(rollout))

    assert underway(world.rollouts.abort(rollout, "ada")).status is RolloutStatus.ABORTING
    assert world.advance(rollout) == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")


def test_a_halted_rollout_is_not_resumed_while_another_claims_its_tenants() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    other = world.start(a_spec(version=LAST_VERSION))

    response = world.rollouts.resume(rollout, "ada")

    assert isinstance(response, Refused)
    assert (response.kind, response.details) == (Refusal.ROLLOUT_IN_THE_WAY, {"rolloutId": other})
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_halted_rollout_is_not_resumed_if_another_claims_its_tenants_concurrently() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    world.rollout_table.concurrent_writes.append(lambda: world.start(a_spec(version=LAST_VERSION)))

    assert refused(world.rollouts.resume(rollout, "ada")) is Refusal.ROLLOUT_IN_THE_WAY
    assert world.status(rollout) is RolloutStatus.HALTED


def test_a_resumed_rollout_has_its_claim_again() -> None:
    world = Fleet(3)
    rollout = world.start()
    world.drive(rollout, failing=["t001", "t002", "t003"])
    world.rollouts.resume(rollout, "ada")

    assert world.rollout_table.registry().active == {rollout}
    assert refused(world.rollouts.start(a_spec(version=LAST_VERSION), BOB)) is Refusal.ROLLOUT_IN_THE_WAY
    assert (world.rollout(rollout).ended_at, world.rollout(rollout).reason) == (None, "Resumed by ada.")


# Approving


def awaiting_approval(status: RolloutStatus = RolloutStatus.RUNNING) -> Fleet:
    world = planted(status)
    world.touch_stage(ROLLOUT, spec=a_stage_spec(approval=True), status=StageStatus.AWAITING_APPROVAL)
    return world


@pytest.mark.parametrize(
    ("status", "approved"),
    [
        (RolloutStatus.PENDING, True),
        (RolloutStatus.RUNNING, True),
        (RolloutStatus.PAUSED, True),
        (RolloutStatus.ABORTING, False),
        (RolloutStatus.SUCCEEDED, False),
        (RolloutStatus.FAILED, False),
        (RolloutStatus.HALTED, False),
        (RolloutStatus.ABORTED, False),
    ],
)
def test_a_stage_can_be_approved_while_the_rollout_is_active(status: RolloutStatus, approved: bool) -> None:
    world = awaiting_approval(status)

    response = world.rollouts.approve(ROLLOUT, 1, ADA)

    if approved:
        assert underway(response).status is status
        assert world.rollout_executions.woken == ["token"]
    else:
        assert refused(response) is Refusal.NOTHING_TO_APPROVE
    assert world.stage(ROLLOUT).approved_by == (ADA if approved else None)


@pytest.mark.parametrize("status", [status for status in StageStatus if status is not StageStatus.AWAITING_APPROVAL])
def test_only_a_stage_that_awaits_approval_is_approved(status: StageStatus) -> None:
    world = awaiting_approval()
    world.touch_stage(ROLLOUT, status=status)

    assert refused(world.rollouts.approve(ROLLOUT, 1, ADA)) is Refusal.NOTHING_TO_APPROVE


def test_a_stage_is_approved_once_by_the_first_operator() -> None:
    world = awaiting_approval()
    world.rollout_table.concurrent_writes.append(lambda: world.rollouts.approve(ROLLOUT, 1, BOB))

    assert isinstance(world.rollouts.approve(ROLLOUT, 1, ADA), Unchanged)
    assert world.stage(ROLLOUT).approved_by == BOB


APPROVED_STAGES = a_spec(a_stage_spec(Share(1)), a_stage_spec(Share(1), approval=True), a_stage_spec(approval=True))


def test_one_approval_sent_twice_approves_one_stage() -> None:
    world = Fleet(3)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)
    underway(world.rollouts.approve(rollout, 2, ADA))
    assert world.drive(rollout) == AwaitOperator()

    assert isinstance(world.rollouts.approve(rollout, 2, BOB), Unchanged)

    assert world.drive(rollout) == AwaitOperator()
    assert world.stage(rollout, 3).approved_by is None
    assert len(world.at(NEXT_VERSION)) == 2


@pytest.mark.parametrize(("number", "awaiting"), [(1, 2), (3, 2), (4, 2)])
def test_only_the_waiting_stage_can_be_approved(number: int, awaiting: int) -> None:
    world = Fleet(3)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)

    response = world.rollouts.approve(rollout, number, ADA)

    assert response == Refused(
        Refusal.NOTHING_TO_APPROVE,
        f"Rollout {rollout}: stage {number} does not await approval. Stage {awaiting} does.",
        {"rolloutId": rollout, "awaitingStage": awaiting},
    )
    assert [stage.approved_by for stage in world.rollout_table.stages(rollout)] == [None] * 3


def test_the_refusal_says_that_no_stage_awaits_approval() -> None:
    world = Fleet(1)
    rollout = world.start(APPROVED_STAGES)
    world.drive(rollout)

    response = world.rollouts.approve(rollout, 1, ADA)

    assert isinstance(response, Refused)
    assert response.reason.endswith("No stage does: the rollout is SUCCEEDED, in stage 1 (DONE).")
    assert response.details == {"rolloutId": rollout}


def test_a_stage_approved_during_a_pause_starts_after_the_resume() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(approval=True)))
    world.advance(rollout)
    world.rollouts.pause(rollout, "ada")

    underway(world.rollouts.approve(rollout, 1, ADA))

    assert world.advance(rollout) == AwaitOperator()
    world.rollouts.resume(rollout, "ada")
    assert world.drive(rollout) == Succeeded()


# Aborting while no tenant is in flight


def test_a_baking_rollout_is_aborted_at_once_and_can_be_undone() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(Share(1), bake_seconds=7 * 86_400), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    assert isinstance(world.advance(rollout), Bake)

    aborted = underway(world.rollouts.abort(rollout, "ada"))

    assert (aborted.status, aborted.reason) == (RolloutStatus.ABORTED, "Aborted by ada.")
    assert aborted.ended_at == world.clock.now()
    assert world.rollout_table.registry().active == frozenset()
    undoing = world.start(a_spec(version=None, undo=rollout))
    assert world.drive(undoing) == Succeeded()
    assert world.advance(rollout) == NotSucceeded(RolloutStatus.ABORTED, "Aborted by ada.")


@pytest.mark.parametrize("status", [status for status in StageStatus if status is not StageStatus.RUNNING])
def test_a_rollout_is_aborted_at_once_unless_its_stage_is_running(status: StageStatus) -> None:
    world = planted(RolloutStatus.RUNNING)
    world.touch_stage(ROLLOUT, status=status)

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED
    assert set(world.rollout_executions.woken) == {"token"}


def test_an_abort_waits_for_a_stage_that_begins_at_the_same_time() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.touch(rollout, status=RolloutStatus.RUNNING, execution=execution_arn(f"rollout-{rollout}-1"))

    def begin() -> None:
        world.advance(rollout)
        assert isinstance(world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "child")), Admitted)

    world.rollout_table.concurrent_writes.append(begin)

    assert underway(world.rollouts.abort(rollout, "ada")).status is RolloutStatus.ABORTING
    assert rollout in world.rollout_table.registry().active


def test_an_interrupted_abort_is_finished_by_the_next_one() -> None:
    world = planted(RolloutStatus.ABORTING)
    world.touch_stage(ROLLOUT, status=StageStatus.BAKING)

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED


def test_an_abort_that_the_execution_finishes_first_returns_the_aborted_rollout() -> None:
    world = planted(RolloutStatus.RUNNING)
    world.touch_stage(ROLLOUT, status=StageStatus.BAKING)
    world.rollout_table.concurrent_writes.extend([lambda: None, lambda: world.advancing.advance(ROLLOUT, 1, EXECUTION)])

    assert underway(world.rollouts.abort(ROLLOUT, "ada")).status is RolloutStatus.ABORTED


# The history of orders


def orders(world: Fleet, rollout: str) -> list[tuple[Order, str, str]]:
    return [(each.order, each.by, each.reason) for each in world.rollout_table.orders(rollout)]


def test_every_accepted_order_is_recorded_with_its_operator_and_reason() -> None:
    world = Fleet(3)
    response = world.rollouts.start(a_spec(a_stage_spec(approval=True)), ADA, reason="The new release.")
    rollout = underway(response).id
    world.advance(rollout)
    for verb in ("pause", "resume"):
        world.clock.advance(A_SECOND)
        assert isinstance(getattr(world.rollouts, verb)(rollout, BOB, reason=f"{verb}!"), RolloutWithStages)
    world.clock.advance(A_SECOND)
    world.rollouts.approve(rollout, 1, BOB, reason="Looks good.")
    world.clock.advance(A_SECOND)
    world.rollouts.abort(rollout, ADA)
    assert orders(world, rollout) == [
        (Order.START, ADA, "The new release."),
        (Order.PAUSE, BOB, "pause!"),
        (Order.RESUME, BOB, "resume!"),
        (Order.APPROVE, BOB, "Looks good."),
        (Order.ABORT, ADA, ""),
    ]


def test_the_status_reason_contains_the_operators_reason() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec())
    assert underway(world.rollouts.pause(rollout, BOB, reason="Errors.")).reason == f"Paused by {BOB}: Errors."
    assert underway(world.rollouts.resume(rollout, BOB)).reason == f"Resumed by {BOB}."


def test_the_status_reason_of_a_resumed_rollout_names_the_operator() -> None:
    world, rollout = rolled_out(3, failing=("t001",))
    world.rollout_table.change(replace(world.rollout(rollout), status=RolloutStatus.HALTED))
    assert isinstance(world.rollouts.resume(rollout, BOB, reason="It was the network."), RolloutWithStages)
    assert orders(world, rollout)[-1] == (Order.RESUME, BOB, "It was the network.")


@pytest.mark.parametrize("verb", ["pause", "abort"])
def test_a_refused_order_is_not_recorded(verb: str) -> None:
    world, rollout = rolled_out()
    before = orders(world, rollout)
    assert isinstance(getattr(world.rollouts, verb)(rollout, BOB), Refused)
    assert orders(world, rollout) == before


def test_a_repeated_order_is_recorded_once() -> None:
    world = Fleet(3)
    rollout = world.start(a_spec())
    for _ in range(2):
        world.rollouts.pause(rollout, BOB)
    assert [order for order, *_ in orders(world, rollout)] == [Order.START, Order.PAUSE]


def test_an_undo_is_in_the_history_of_both_rollouts() -> None:
    world, rollout = rolled_out()
    undoing = underway(world.rollouts.start(a_spec(version=None, undo=rollout), BOB, reason="Too slow.")).id
    assert orders(world, rollout)[-1] == (Order.UNDO, BOB, "Too slow.")
    assert world.rollout_table.orders(rollout)[-1].other == undoing
    (start,) = world.rollout_table.orders(undoing)
    assert (start.order, start.other) == (Order.START, rollout)


def test_a_retry_is_in_the_history_of_both_rollouts() -> None:
    world, rollout = rolled_out(3, failing=("t001",))
    retrying = underway(world.rollouts.retry(rollout, BOB, reason="Mended.")).id
    assert orders(world, rollout)[-1] == (Order.RETRY, BOB, "Mended.")
    assert world.rollout_table.orders(rollout)[-1].other == retrying
    assert orders(world, retrying) == [(Order.START, BOB, "Mended.")]


def test_a_dry_run_of_an_undo_is_not_in_the_history_of_the_other() -> None:
    world, rollout = rolled_out()
    before = orders(world, rollout)
    world.rollouts.start(a_spec(version=None, undo=rollout, dry_run=True), BOB)
    assert orders(world, rollout) == before


def test_the_updates_of_a_rollout_have_its_reason() -> None:
    world = Fleet(1)
    rollout = underway(world.rollouts.start(a_spec(), ADA, reason="The new release.")).id
    world.advance(rollout)
    admitted = world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "child"))
    assert isinstance(admitted, Admitted)
    assert admitted.input["request"] == {"by": f"rollout/{rollout}", "reason": "The new release."}
