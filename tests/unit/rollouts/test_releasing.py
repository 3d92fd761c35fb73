"""A release is withdrawn while a rollout moves tenants to it, or becomes current by a rollout that succeeds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.releases.states import PromotionMode
from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.gate import AdmissionStopped
from orchestrator.rollouts.records import Result, RolloutStatus, Share, Skip, StageSpec, Turn
from orchestrator.tenants.admission import Refusal, Refused
from tests.fakes import NEXT_VERSION, VERSION
from tests.unit.rollouts.world import ADA, LAST_VERSION, Fleet, a_spec, tenant

ONE_BY_ONE = (
    StageSpec(size=Share(1), max_concurrency=1, tolerated=Share(0), bake_seconds=60),
    StageSpec(size=None, max_concurrency=1, tolerated=Share(0)),
)


def withdraw(fleet: Fleet, version: str = NEXT_VERSION) -> None:
    fleet.releasing.withdraw(version, "bob", reason="queues lose messages")


def refused(answer: object) -> str:
    assert isinstance(answer, Refused), answer
    assert answer.kind is Refusal.RELEASE_WITHDRAWN
    return answer.reason


class TestHalting:
    def test_no_further_tenant_is_admitted_and_the_rollout_halts_with_the_reason(self) -> None:
        fleet = Fleet(3)
        rollout = fleet.start()
        step = fleet.advance(rollout)
        assert isinstance(step, RunStage)
        first, *others = [
            Turn(rollout, step.stage, item, f"child/{item.tenant}") for item in fleet.manifests.read(step.manifest)
        ]
        fleet.take_turn(first)
        withdraw(fleet)
        assert [fleet.gate.admit(turn) for turn in others] == [AdmissionStopped()] * 2
        ended = fleet.advance(rollout)
        assert isinstance(ended, NotSucceeded)
        assert fleet.status(rollout) is RolloutStatus.HALTED
        assert ended.reason == (
            "Release 0.2.0 was withdrawn by bob at 2026-11-16T12:00:01.001Z (queues lose messages). Move its tenants "
            f"back: berth rollout start --undo {rollout}"
        )
        assert len(fleet.at(NEXT_VERSION)) == 1
        undo = fleet.start(a_spec(version=None, undo=rollout))
        assert fleet.drive(undo) == Succeeded()
        assert fleet.at(NEXT_VERSION) == []

    def test_an_update_in_flight_is_finished_and_counted(self) -> None:
        fleet = Fleet(1)
        rollout = fleet.start()
        step = fleet.advance(rollout)
        assert isinstance(step, RunStage)
        turn = Turn(rollout, 1, fleet.manifests.read(step.manifest)[0], "child")
        admitted: Any = fleet.gate.admit(turn)
        run = fleet.begin_update(admitted)
        withdraw(fleet)
        fleet.publish(run)
        fleet.gate.record(turn)
        assert fleet.results(rollout) == {turn.item.tenant.value: Result.SUCCEEDED}
        assert isinstance(fleet.advance(rollout), NotSucceeded)

    def test_a_rollout_that_bakes_halts_at_its_next_check(self) -> None:
        fleet = Fleet(3)
        rollout = fleet.start(a_spec(*ONE_BY_ONE))
        fleet.run_stage(rollout, fleet.advance(rollout))
        assert isinstance(fleet.advance(rollout), Bake)
        withdraw(fleet)
        assert isinstance(fleet.advance(rollout), NotSucceeded)

    def test_a_rollout_that_is_paused_is_woken_and_halts(self) -> None:
        fleet = Fleet(3)
        rollout = fleet.start()
        fleet.advance(rollout)
        fleet.rollouts.pause(rollout, ADA)
        assert fleet.advance(rollout) == AwaitOperator()
        fleet.advancing.await_operator(rollout, 1, "a token")
        ordered = fleet.releasing.withdraw(NEXT_VERSION, "bob")
        assert not isinstance(ordered, Refused)
        assert ordered.rollouts == [rollout]
        assert fleet.rollout_executions.woken == ["a token"]
        assert isinstance(fleet.advance(rollout), NotSucceeded)
        assert fleet.status(rollout) is RolloutStatus.HALTED

    def test_a_withdrawal_before_the_token_was_stored_is_noticed(self) -> None:
        fleet = Fleet(3)
        rollout = fleet.start()
        fleet.advance(rollout)
        fleet.rollouts.pause(rollout, ADA)
        withdraw(fleet)
        fleet.advancing.await_operator(rollout, 1, "a token")
        assert fleet.rollout_executions.woken == ["a token"]

    def test_withdrawing_again_wakes_rollouts_that_a_dead_request_has_left(self) -> None:
        fleet = Fleet(3)
        rollout = fleet.start()
        fleet.advance(rollout)
        fleet.rollouts.pause(rollout, ADA)
        withdraw(fleet)
        fleet.touch(rollout, task_token="a token")
        withdraw(fleet)
        assert fleet.rollout_executions.woken == ["a token"]

    def test_a_rollout_to_another_release_goes_on(self) -> None:
        fleet = Fleet(2)
        rollout = fleet.start(a_spec(version=LAST_VERSION))
        withdraw(fleet)
        assert fleet.drive(rollout) == Succeeded()

    def test_a_rollout_that_is_being_aborted_is_aborted(self) -> None:
        fleet = Fleet(2)
        rollout = fleet.start()
        fleet.advance(rollout)
        fleet.touch(rollout, status=RolloutStatus.ABORTING)
        withdraw(fleet)
        fleet.advance(rollout)
        assert fleet.status(rollout) is RolloutStatus.ABORTED


class TestOrders:
    def test_a_rollout_to_it_is_refused(self) -> None:
        fleet = Fleet(2)
        withdraw(fleet)
        reason = refused(fleet.rollouts.start(a_spec(version=NEXT_VERSION), ADA))
        assert reason.endswith("so no tenant is moved to it. Choose another release: berth releases")

    def test_a_rollout_without_a_version_moves_to_the_current_release(self) -> None:
        fleet = Fleet(2, version=NEXT_VERSION)
        withdraw(fleet)
        rollout = fleet.start(a_spec(version=None, allow_downgrade=True))
        assert fleet.rollout(rollout).spec.version == VERSION
        assert fleet.drive(rollout) == Succeeded()

    def test_resuming_is_refused_until_it_is_reinstated(self) -> None:
        fleet = Fleet(2)
        rollout = fleet.start()
        fleet.advance(rollout)
        withdraw(fleet)
        fleet.advance(rollout)
        refused(fleet.rollouts.resume(rollout, ADA))
        fleet.releasing.reinstate(NEXT_VERSION, "bob")
        assert isinstance(fleet.rollouts.resume(rollout, ADA), RolloutWithStages)
        assert fleet.drive(rollout, 2) == Succeeded()

    def test_a_rollout_that_is_paused_can_be_resumed_and_then_halts(self) -> None:
        """Otherwise one whose execution has died would never end by itself."""
        fleet = Fleet(2)
        rollout = fleet.start()
        fleet.advance(rollout)
        fleet.rollouts.pause(rollout, ADA)
        withdraw(fleet)
        assert isinstance(fleet.rollouts.resume(rollout, ADA), RolloutWithStages)
        assert isinstance(fleet.advance(rollout), NotSucceeded)
        assert fleet.status(rollout) is RolloutStatus.HALTED

    def test_a_retry_offers_the_way_back(self) -> None:
        fleet = Fleet(1)
        rollout = fleet.start()
        fleet.drive(rollout, failing=["t001"])
        withdraw(fleet)
        assert refused(fleet.rollouts.retry(rollout, ADA)).endswith(f"berth rollout start --undo {rollout}")

    def test_an_undo_leaves_tenants_whose_earlier_release_was_withdrawn(self) -> None:
        fleet = Fleet(2)
        rollout = fleet.start()
        fleet.drive(rollout)
        fleet.add(tenant("t003"), version=VERSION)
        withdraw(fleet, VERSION)
        answer = fleet.rollouts.start(a_spec(version=None, undo=rollout), ADA)
        assert answer.selected.skipped[Skip.WITHDRAWN].count == 2  # type: ignore[union-attr]


class TestPromoting:
    @pytest.fixture
    def fleet(self) -> Fleet:
        """0.2.0 is deployed, and 0.1.0 is current."""
        fleet = Fleet(2)
        fleet.settings.promotion, fleet.settings.template_version = PromotionMode.AFTER_ROLLOUT, VERSION
        fleet.keep_current_release("a-request")
        fleet.settings.template_version = NEXT_VERSION
        assert fleet.choose_release().current == VERSION
        return fleet

    def test_a_rollout_that_succeeds_makes_its_release_current(self, fleet: Fleet) -> None:
        rollout = fleet.start()
        assert fleet.rollout(rollout).spec.version == NEXT_VERSION
        assert fleet.choose_release().current == VERSION
        assert fleet.drive(rollout) == Succeeded()
        assert fleet.choose_release().current == NEXT_VERSION
        assert fleet.release_states.history[-1].by == f"rollout/{rollout}"

    def test_a_rollout_with_failures_does_not(self, fleet: Fleet) -> None:
        fleet.drive(fleet.start(a_spec(replace(a_spec().stages[0], tolerated=Share(2)))), failing=["t001"])
        assert fleet.choose_release().current == VERSION

    def test_the_retry_of_its_failures_does(self, fleet: Fleet) -> None:
        rollout = fleet.start(a_spec(replace(a_spec().stages[0], tolerated=Share(2))))
        fleet.drive(rollout, failing=["t001"])
        retried = fleet.rollouts.retry(rollout, ADA)
        assert isinstance(retried, RolloutWithStages)
        assert fleet.drive(retried.rollout.id) == Succeeded()
        assert fleet.choose_release().current == NEXT_VERSION

    @pytest.mark.parametrize(
        "some", [{"tenants": (tenant("t001"),)}, {"share": Share(50, percent=True)}, {"dry_run": True}]
    )
    def test_a_rollout_to_some_tenants_does_not(self, fleet: Fleet, some: dict[str, Any]) -> None:
        rollout = fleet.start(a_spec(**some))
        if not some.get("dry_run"):
            assert fleet.drive(rollout) == Succeeded()
        else:
            assert not fleet.advancing._moves_the_fleet(fleet.rollout(rollout).spec)
        assert fleet.choose_release().current == VERSION

    def test_an_older_release_becomes_current_only_if_tenants_may_be_moved_back(self, fleet: Fleet) -> None:
        fleet.drive(fleet.start())
        fleet.add(tenant("t009"), version="0.0.1")
        fleet.drive(fleet.start(a_spec(version=VERSION)))
        assert fleet.choose_release().current == NEXT_VERSION
        assert fleet.drive(fleet.start(a_spec(version=VERSION, allow_downgrade=True))) == Succeeded()
        assert fleet.choose_release().current == VERSION

    def test_a_rollout_does_not_make_a_release_current_if_deployments_do(self) -> None:
        fleet = Fleet(2)
        assert fleet.drive(fleet.start(a_spec(version=LAST_VERSION))) == Succeeded()
        assert fleet.choose_release().current == NEXT_VERSION
        assert fleet.release_states.history == []
