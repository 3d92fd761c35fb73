"""Undoing a rollout, and retrying the tenants that failed."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.rollouts.advancing import NotSucceeded, Succeeded
from orchestrator.rollouts.control import NothingToDo
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import (
    Repairs,
    Result,
    Share,
    Skip,
    Skipped,
    Turn,
)
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.records import TenantState
from tests.fakes import NEXT_VERSION, VERSION, execution_arn
from tests.unit.rollouts.ordering import naming, refused, rolled_out, underway
from tests.unit.rollouts.world import (
    A_SECOND,
    ADA,
    BOB,
    LAST_VERSION,
    Fleet,
    a_spec,
    a_stage_spec,
    tenant,
    tenants,
)

# Undoing


def test_undo_moves_each_tenant_back_to_its_own_earlier_version() -> None:
    world = Fleet(3)
    world.table.record_release(replace(world.table.releases()[0], version="0.0.9"))
    world.change(tenant("t002"), version="0.0.9")
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(1))))
    world.drive(rollout, failing=["t003"])

    undoing = world.start(a_spec(version=None, undo=rollout))

    items = {item.tenant.value: item.version for item in world.items(undoing)}
    assert items == {"t001": VERSION, "t002": "0.0.9", "t003": VERSION}
    assert world.drive(undoing) == Succeeded()
    assert [world.metadata_of(who).version for who in tenants(3)] == [VERSION, "0.0.9", VERSION]


def test_undo_may_move_all_tenants_to_one_version() -> None:
    world, rollout = rolled_out()

    undoing = world.start(a_spec(version=LAST_VERSION, undo=rollout))

    assert world.drive(undoing) == Succeeded()
    assert len(world.at(LAST_VERSION)) == 3


def test_undo_skips_tenants_that_were_moved_since() -> None:
    world, rollout = rolled_out()
    world.drive(world.start(naming("t002", version=LAST_VERSION)))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t003"]
    assert world.rollout(undoing).skipped == {Skip.MOVED_SINCE: Skipped(1, ("t002",))}


def test_undo_reports_tenants_that_were_deleted_since() -> None:
    world, rollout = rolled_out()
    world.delete(tenant("t002"))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.rollout(undoing).skipped == {Skip.DELETED: Skipped(1, ("t002",))}


def test_a_running_rollout_is_not_undone() -> None:
    world = Fleet(3)
    rollout = world.start()

    assert refused(world.rollouts.start(a_spec(version=None, undo=rollout), ADA)) is Refusal.ROLLOUT_IN_THE_WAY


@pytest.mark.parametrize("how", ["halted", "aborted"])
def test_undo_of_a_stopped_rollout_moves_back_the_moved_tenants_and_repairs_the_failed_ones(how: str) -> None:
    world = Fleet(4)
    rollout = world.start(a_spec(a_stage_spec(Share(2)), a_stage_spec()))
    world.run_stage(rollout, world.advance(rollout))
    if how == "halted":
        world.drive(rollout, failing=[item.tenant.value for item in world.items(rollout, 2)])
    else:
        world.rollouts.abort(rollout, "ada")
        world.drive(rollout)
    moved = sorted(item.tenant.value for item in world.items(rollout))
    assert world.at(NEXT_VERSION) == moved

    undoing = world.start(a_spec(version=None, undo=rollout))

    failed = [who.value for who in tenants(4) if world.results(rollout).get(who.value) is Result.FAILED]
    assert sorted(world.planned_tenants(undoing)) == sorted([*moved, *failed])
    assert world.rollout(undoing).repairs == (Repairs(len(failed), tuple(failed)) if failed else None)
    assert world.drive(undoing) == Succeeded()
    assert [each.state for each in world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)] == []


def test_a_dry_run_has_nothing_to_undo() -> None:
    world = Fleet(1)
    dry = world.start(a_spec(dry_run=True))

    response = world.rollouts.start(a_spec(version=None, undo=dry), ADA)
    assert refused(response) is Refusal.UNKNOWN_ROLLOUT
    assert f"Rollout {dry} is a dry run, which moved no tenant" in response.reason


def test_there_is_nothing_to_do_for_a_second_undo() -> None:
    world, rollout = rolled_out()
    world.drive(world.start(a_spec(version=None, undo=rollout)))

    response = world.rollouts.start(a_spec(version=None, undo=rollout), ADA)

    assert isinstance(response, NothingToDo)
    assert response.selected.skipped[Skip.CURRENT].count == 3


def test_undo_does_not_ask_step_functions_about_successful_updates() -> None:
    """Step Functions allows 15 such requests per second, and a fleet has thousands of tenants."""
    world, rollout = rolled_out()
    world.drive(world.start(a_spec(version=None, undo=rollout)))
    world.executions.looked_for.clear()

    world.rollouts.start(a_spec(version=None, undo=rollout), ADA)

    assert world.executions.looked_for == []


def test_an_undo_may_be_undone() -> None:
    world, rollout = rolled_out()
    undoing = world.start(a_spec(version=None, undo=rollout))
    world.drive(undoing)

    world.drive(world.start(a_spec(version=None, undo=undoing)))

    assert len(world.at(NEXT_VERSION)) == 3


def test_undo_moves_back_tenants_that_a_dead_execution_moved() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.advance(rollout)
    left_behind = world.gate.admit(Turn(rollout, 1, world.items(rollout)[0], "dead"))
    assert isinstance(left_behind, Admitted)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.resume(rollout, "ada")
    run = world.advance(rollout, 2)
    world.update(left_behind)
    world.run_stage(rollout, run)
    assert world.advance(rollout, 2) == Succeeded()

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert [item.version for item in world.items(undoing)] == [VERSION]


def test_undo_moves_back_a_tenant_whose_update_finished_after_the_rollout() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    arriving, staying = (world.gate.admit(Turn(rollout, 1, item, "child")) for item in world.items(rollout))
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.abort(rollout, "ada")
    assert isinstance(arriving, Admitted)
    assert isinstance(staying, Admitted)
    world.update(arriving)

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.planned_tenants(undoing) == [arriving.input["tenantId"]]
    assert world.rollout(undoing).skipped == {Skip.CURRENT: Skipped(1, (str(staying.input["tenantId"]),))}


def test_undo_moves_back_a_tenant_that_succeeded_after_it_was_recorded_as_failed() -> None:
    world = Fleet(2)
    rollout = world.start(a_spec(a_stage_spec(tolerated=Share(1))))
    world.advance(rollout)
    cut_short, other = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
    admitted = world.gate.admit(cut_short)
    assert isinstance(admitted, Admitted)
    world.gate.record(cut_short, "States.TaskFailed: ABORTED")  # Before the update's first function took the lock.
    world.take_turn(other)
    world.update(admitted)  # CloudFormation went on, and what died was settled by what is true.
    world.drive(rollout)
    assert world.outcome(rollout, cut_short.item.tenant).result is Result.FAILED

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]
    assert world.drive(undoing) == Succeeded()
    assert world.at(NEXT_VERSION) == []


def test_undo_moves_back_a_tenant_that_was_skipped_while_its_update_ran() -> None:
    world = Fleet(1)
    rollout = world.start()
    world.advance(rollout)
    turn = Turn(rollout, 1, world.items(rollout)[0], "child")
    admitted = world.gate.admit(turn)
    assert isinstance(admitted, Admitted)
    run = world.begin_update(admitted)
    world.change(turn.item.tenant, pinned_version=VERSION)
    world.drive(rollout)
    assert world.outcome(rollout, "t001").skip is Skip.PINNED
    world.publish(run)

    assert world.planned_tenants(world.start(a_spec(version=None, undo=rollout))) == ["t001"]


@pytest.mark.parametrize("begun", [True, False])
def test_undo_skips_a_tenant_whose_update_has_not_begun_and_reports_it(begun: bool) -> None:
    world = Fleet(2)
    rollout = world.start()
    world.advance(rollout)
    cut_short, other = (Turn(rollout, 1, item, "child") for item in world.items(rollout))
    admitted = world.gate.admit(cut_short)
    assert isinstance(admitted, Admitted)
    world.executions.running.add(execution_arn(admitted.name))
    if begun:
        world.begin_update(admitted)
    world.take_turn(other)
    world.rollout_executions.die(execution_arn(f"rollout-{rollout}-1"))
    world.rollouts.abort(rollout, "ada")

    undoing = world.start(a_spec(version=None, undo=rollout))

    name = cut_short.item.tenant.value
    assert (name in world.planned_tenants(undoing)) == begun
    assert world.rollout(undoing).skipped == ({} if begun else {Skip.UNDER_WAY: Skipped(1, (name,))})


def test_a_rollout_to_the_version_that_tenants_are_at_repairs_those_whose_update_failed() -> None:
    world, _rollout = rolled_out(3, failing=("t001", "t002"))

    repairing = world.start(a_spec(version=VERSION, allow_downgrade=False))

    assert sorted(world.planned_tenants(repairing)) == ["t001", "t002"]
    assert world.rollout(repairing).repairs == Repairs(2, ("t001", "t002"))
    assert world.rollout(repairing).skipped == {Skip.NEWER: Skipped(1, ("t003",))}
    assert world.drive(repairing) == Succeeded()
    assert list(world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)) == []


def test_a_repair_that_fails_is_not_called_a_success() -> None:
    world, _rollout = rolled_out(2, failing=("t001",))
    repairing = world.start(a_spec(version=VERSION))

    assert isinstance(world.drive(repairing, failing=["t001"]), NotSucceeded)
    assert world.results(repairing) == {"t001": Result.FAILED}


def test_undo_includes_a_failed_tenant_that_was_not_moved_and_says_so() -> None:
    world, rollout = rolled_out(2, failing=("t001",))

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert sorted(world.planned_tenants(undoing)) == ["t001", "t002"]
    assert world.rollout(undoing).repairs == Repairs(1, ("t001",))
    assert world.rollout(undoing).skipped == {}


def test_undo_ignores_tenants_that_were_never_started() -> None:
    world = Fleet(2)
    rollout = world.start()
    world.change(tenant("t001"), pinned_version=VERSION)
    world.drive(rollout)

    undoing = world.start(a_spec(version=None, undo=rollout))

    assert world.planned_tenants(undoing) == ["t002"]
    assert world.rollout(undoing).skipped == {}


# Retrying


def test_retry_starts_another_rollout_with_only_the_failed_tenants() -> None:
    world, rollout = rolled_out(5, failing=("t002", "t004"))
    world.add(tenant("newcomer"))

    response = world.rollouts.retry(rollout, BOB)

    retrying = underway(response)
    assert (retrying.by, retrying.spec.retry, retrying.spec.version) == (BOB, rollout, NEXT_VERSION)
    assert sorted(world.planned_tenants(retrying.id)) == ["t002", "t004"]
    assert world.drive(retrying.id) == Succeeded()
    assert len(world.at(NEXT_VERSION)) == 5


def test_a_retried_update_is_the_next_attempt() -> None:
    world, rollout = rolled_out(1, failing=("t001",))
    retrying = underway(world.rollouts.retry(rollout, BOB)).id
    world.advance(retrying)

    response = world.gate.admit(Turn(retrying, 1, world.items(retrying)[0], "child"))

    assert isinstance(response, Admitted)
    assert response.input["attempt"] == 2


def test_a_retry_ignores_the_tenants_and_share_of_the_first_spec() -> None:
    world = Fleet(4)
    spec = naming("t001", "t002", share=Share(50, percent=True))
    rollout = world.start(replace(spec, stages=(a_stage_spec(tolerated=Share(9)),)))
    world.drive(rollout, failing=["t001", "t002"])

    retrying = underway(world.rollouts.retry(rollout, BOB))

    assert (retrying.spec.tenants, retrying.spec.share) == (None, None)
    assert world.planned_tenants(retrying.id) == world.planned_tenants(rollout)


def test_a_retry_of_an_undo_moves_back_the_tenants_that_failed() -> None:
    world, rollout = rolled_out()
    undoing = world.start(a_spec(a_stage_spec(tolerated=Share(3)), version=None, undo=rollout))
    world.drive(undoing, failing=["t002"])
    world.clock.advance(A_SECOND)

    retrying = underway(world.rollouts.retry(undoing, ADA))

    assert [(item.tenant.value, item.version) for item in world.items(retrying.id)] == [("t002", VERSION)]
    assert world.drive(retrying.id) == Succeeded()
    assert len(world.at(VERSION)) == 3


def test_without_failures_there_is_nothing_to_retry() -> None:
    world, rollout = rolled_out()

    assert refused(world.rollouts.retry(rollout, ADA)) is Refusal.NOTHING_TO_RETRY


def test_retry_skips_a_failed_tenant_that_was_moved_since() -> None:
    world, rollout = rolled_out(2, failing=("t001",))
    world.drive(world.start(naming("t001")))

    assert refused(world.rollouts.retry(rollout, ADA)) is Refusal.NOTHING_TO_RETRY


def test_an_active_rollout_is_not_retried() -> None:
    world = Fleet(1)

    assert refused(world.rollouts.retry(world.start(), ADA)) is Refusal.ROLLOUT_IN_THE_WAY


def test_after_an_update_failed_the_tenant_is_served_and_can_be_moved() -> None:
    world, rollout = rolled_out(1, failing=("t001",))
    (listed,) = world.table.tenants_in(TenantState.UPDATE_FAILED, limit=10)

    assert listed.version == VERSION
    assert world.results(rollout) == {"t001": Result.FAILED}
    world.clock.advance(timedelta(minutes=1))
    assert underway(world.rollouts.start(a_spec(), ADA)).total == 1
