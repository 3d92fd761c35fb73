"""Which release is current, and which were withdrawn."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Unsettled
from orchestrator.releases.records import RecordedReleaseChange, ReleaseOrder, ReleaseState
from orchestrator.releases.states import Choice, PromotionMode, PublishedVersions
from orchestrator.rollouts.releasing import MAX_LISTED, ReleaseOrdered, ReleaseStatus
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.records import Request
from tests.fakes import ACME, World, a_release
from tests.fakes.others import InMemoryReleaseStates
from tests.fakes.ports import OWN_STACK
from tests.unit.rollouts.world import Fleet, tenants

ADA, BOB = "ada", "bob"
A_SECOND = timedelta(seconds=1)
FIRST, SECOND, THIRD, FOURTH = "0.1.0", "0.2.0", "0.9.0", "0.10.0"


@pytest.fixture
def world() -> World:
    """Releases up to 0.10.0 are published, and 0.9.0 is deployed."""
    return World(version=THIRD, published=(FIRST, SECOND, THIRD, FOURTH))


@pytest.fixture
def after_rollout(world: World) -> World:
    world.settings.promotion = PromotionMode.AFTER_ROLLOUT
    world.keep_current_release("a-request")
    return world


def done(ordered: ReleaseOrdered | Refused) -> ReleaseOrdered:
    assert isinstance(ordered, ReleaseOrdered), ordered
    return ordered


def current(world: World) -> str:
    return world.choose_release().current


class TestOnDeploy:
    def test_the_deployed_release_is_current(self, world: World) -> None:
        assert world.choose_release() == Choice(THIRD, {}, THIRD)
        world.settings.template_version = FOURTH
        assert current(world) == FOURTH

    def test_a_rollback_of_the_deployment_has_nothing_to_undo(self, world: World) -> None:
        world.settings.template_version = FOURTH
        world.settings.template_version = THIRD
        assert current(world) == THIRD
        assert world.release_states.history == []

    def test_a_promotion_lasts_until_another_version_is_deployed(self, world: World) -> None:
        assert done(world.releasing.promote(SECOND, ADA)).current == SECOND
        assert current(world) == SECOND
        world.settings.template_version = FOURTH
        assert current(world) == FOURTH

    def test_going_back_to_an_older_version_makes_it_current(self, world: World) -> None:
        world.settings.template_version = FIRST
        assert current(world) == FIRST

    def test_a_withdrawn_version_that_is_deployed_again_stays_withdrawn(self, world: World) -> None:
        done(world.releasing.withdraw(THIRD, ADA))
        world.settings.template_version = FOURTH
        assert current(world) == FOURTH
        world.settings.template_version = THIRD
        assert current(world) == SECOND


class TestAfterRollout:
    def test_a_deployment_leaves_the_current_release(self, after_rollout: World) -> None:
        after_rollout.settings.template_version = FOURTH
        assert after_rollout.choose_release() == Choice(THIRD, {}, FOURTH)

    def test_a_promotion_lasts(self, after_rollout: World) -> None:
        after_rollout.settings.template_version = FOURTH
        done(after_rollout.releasing.promote(FOURTH, ADA, reason="the canaries are well"))
        assert current(after_rollout) == FOURTH
        after_rollout.settings.template_version = THIRD
        assert current(after_rollout) == FOURTH

    def test_rollouts_move_to_the_deployed_release_unless_it_is_withdrawn(self, after_rollout: World) -> None:
        after_rollout.settings.template_version = FOURTH
        done(after_rollout.releasing.withdraw(FOURTH, ADA))
        assert after_rollout.choose_release().candidate == THIRD

    def test_the_release_that_was_current_stays_when_the_setting_comes_with_another_version(self, world: World) -> None:
        done(world.releasing.promote(SECOND, ADA))
        world.settings.promotion, world.settings.template_version = PromotionMode.AFTER_ROLLOUT, FOURTH
        world.stack_resources.outputs[OWN_STACK, "TemplateVersion"] = THIRD  # type: ignore[attr-defined]
        world.keep_current_release("a-request")
        assert current(world) == SECOND

    def test_a_repeated_request_of_the_deployment_does_not_undo_a_promotion(self, after_rollout: World) -> None:
        done(after_rollout.releasing.promote(FOURTH, ADA))
        after_rollout.keep_current_release("a-request")
        assert current(after_rollout) == FOURTH

    def test_the_setting_may_be_taken_back_and_set_again(self, after_rollout: World) -> None:
        done(after_rollout.releasing.promote(SECOND, ADA))
        after_rollout.settings.promotion = PromotionMode.ON_DEPLOY
        assert current(after_rollout) == THIRD
        after_rollout.settings.promotion = PromotionMode.AFTER_ROLLOUT
        after_rollout.keep_current_release("another-request")
        assert current(after_rollout) == THIRD

    def test_a_withdrawal_never_gives_new_tenants_a_newer_release(self, after_rollout: World) -> None:
        """0.10.0 is published, but no canary has seen it."""
        done(after_rollout.releasing.withdraw(THIRD, ADA))
        assert current(after_rollout) == SECOND


@pytest.mark.parametrize("mode", PromotionMode)
class TestWithdrawing:
    @pytest.fixture(autouse=True)
    def _deploy(self, world: World, mode: PromotionMode) -> None:
        world.settings.promotion = mode
        if mode is PromotionMode.AFTER_ROLLOUT:
            world.keep_current_release("a-request")

    def test_the_newest_earlier_release_is_current(self, world: World) -> None:
        done(world.releasing.withdraw(SECOND, ADA))
        ordered = done(world.releasing.withdraw(THIRD, ADA, reason="queues lose messages"))
        assert (ordered.status, ordered.before, ordered.current) == (ReleaseStatus.WITHDRAWN, THIRD, FIRST)
        assert current(world) == FIRST

    def test_withdrawing_again_changes_nothing_on_record(self, world: World) -> None:
        first = done(world.releasing.withdraw(THIRD, ADA, reason="queues lose messages"))
        history = list(world.release_states.history)
        world.clock.advance(A_SECOND)
        again = done(world.releasing.withdraw(THIRD, BOB, reason="me, too"))
        assert (again.status, again.withdrawal) == (ReleaseStatus.UNCHANGED, first.withdrawal)
        assert world.release_states.history == history

    def test_a_change_of_state_records_its_requester_time_and_reason(self, world: World) -> None:
        done(world.releasing.withdraw(THIRD, ADA, reason="queues lose messages"))
        done(world.releasing.reinstate(THIRD, BOB, reason="they do not"))
        at = world.clock.now()
        assert world.release_states.changes(limit=2) == [
            RecordedReleaseChange(THIRD, at, ReleaseOrder.REINSTATE, BOB, "they do not"),
            RecordedReleaseChange(THIRD, at, ReleaseOrder.WITHDRAW, ADA, "queues lose messages"),
        ]

    def test_reinstating_is_the_reverse(self, world: World) -> None:
        done(world.releasing.withdraw(THIRD, ADA))
        ordered = done(world.releasing.reinstate(THIRD, ADA))
        assert (ordered.status, ordered.before, ordered.current) == (ReleaseStatus.REINSTATED, SECOND, THIRD)
        assert done(world.releasing.reinstate(THIRD, ADA)).status is ReleaseStatus.UNCHANGED

    def test_reinstating_an_older_release_does_not_make_it_current(self, world: World) -> None:
        done(world.releasing.withdraw(FIRST, ADA))
        assert done(world.releasing.reinstate(FIRST, ADA)).current == THIRD

    def test_a_withdrawn_release_is_not_promoted(self, world: World) -> None:
        done(world.releasing.withdraw(THIRD, ADA, reason="queues lose messages"))
        refused = world.releasing.promote(THIRD, BOB)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.RELEASE_WITHDRAWN
        assert "by ada" in refused.reason
        assert "queues lose messages" in refused.reason
        assert refused.reason.endswith("berth release reinstate 0.9.0")

    def test_the_last_release_is_not_withdrawn(self, world: World) -> None:
        done(world.releasing.withdraw(FIRST, ADA))
        done(world.releasing.withdraw(SECOND, ADA))
        refused = world.releasing.withdraw(THIRD, ADA)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.LAST_RELEASE
        assert current(world) == THIRD
        done(world.releasing.promote(FOURTH, ADA))
        done(world.releasing.withdraw(THIRD, ADA))
        assert current(world) == FOURTH

    @pytest.mark.parametrize("order", ["promote", "withdraw", "reinstate"])
    def test_a_version_that_was_never_published(self, world: World, order: str) -> None:
        refused = getattr(world.releasing, order)("9.9.9", ADA)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.UNKNOWN_RELEASE


class Contended(InMemoryReleaseStates):
    """Somebody else changes the state between the read and the write, as often as ``others`` says."""

    others = 0

    def change(self, state: ReleaseState, change: RecordedReleaseChange) -> bool:
        if self.others:
            self.others -= 1
            super().change(replace(self.now, kept_by=f"{self.others}"), change)
        return super().change(state, change)


def test_orders_at_the_same_moment_both_take_effect() -> None:
    world = World(version=THIRD, published=(FIRST, SECOND, THIRD), release_states=Contended())
    world.release_states.others = 3  # type: ignore[attr-defined]
    done(world.releasing.withdraw(THIRD, ADA))
    assert world.release_states.now.kept_by == "0"
    assert THIRD in world.release_states.now.withdrawn


def test_a_state_that_others_change_all_the_time_is_tried_again_later() -> None:
    states = Contended()
    states.others = 1_000
    with pytest.raises(Unsettled):
        World(version=THIRD, release_states=states, published=(FIRST, THIRD)).releasing.withdraw(THIRD, ADA)


def test_a_rollout_does_not_promote_a_release_that_was_withdrawn() -> None:
    world = World(version=THIRD, published=(FIRST, THIRD))
    done(world.releasing.withdraw(THIRD, ADA))
    assert not world.promoter.after_rollout(THIRD, by="rollout/1", at=world.clock.now(), allow_downgrade=False)
    assert current(world) == FIRST


def test_a_withdrawal_lists_the_tenants_that_are_at_the_release() -> None:
    fleet = Fleet(3, version=SECOND)
    ordered = done(fleet.releasing.withdraw(SECOND, ADA))
    assert (ordered.tenants, ordered.has_more_tenants) == ([each.value for each in tenants(3)], False)


def test_a_withdrawal_lists_so_many_tenants_and_says_that_there_are_more() -> None:
    ordered = done(Fleet(MAX_LISTED + 1, version=SECOND).releasing.withdraw(SECOND, ADA))
    assert (len(ordered.tenants), ordered.has_more_tenants) == (MAX_LISTED, True)


OWN, LATER_OWN = "2.1.0", "2.2.0"


class TestReleasesOfOperators:
    """Releases that operators have published themselves, beside those of Berth."""

    @pytest.fixture
    def world(self) -> World:
        """0.9.0 is deployed, and operators have published 2.1.0 and 2.2.0."""
        return World(version=THIRD, published=(FIRST, SECOND, THIRD, FOURTH, OWN, LATER_OWN))

    def test_one_is_current_only_by_a_promotion(self, world: World) -> None:
        assert world.choose_release() == Choice(THIRD, {}, THIRD)
        assert done(world.releasing.promote(OWN, ADA)).current == OWN

    def test_a_deployment_of_berth_does_not_replace_one_that_is_current(self, world: World) -> None:
        world.releasing.promote(OWN, ADA)
        world.settings.template_version = FOURTH
        assert world.choose_release() == Choice(OWN, {}, OWN)

    def test_once_a_release_of_berth_is_promoted_deployments_promote_again(self, world: World) -> None:
        world.releasing.promote(OWN, ADA)
        assert done(world.releasing.promote(THIRD, ADA)).current == THIRD
        world.settings.template_version = FOURTH
        assert current(world) == FOURTH

    def test_one_stays_current_when_deployments_cease_to_promote(self, world: World) -> None:
        world.releasing.promote(OWN, ADA)
        world.settings.promotion = PromotionMode.AFTER_ROLLOUT
        world.keep_current_release("a-request")
        assert world.choose_release() == Choice(OWN, {}, OWN), "a rollout does not go back to the deployed one, either"

    def test_a_withdrawal_goes_back_to_the_operators_release_before(self, world: World) -> None:
        world.releasing.promote(LATER_OWN, ADA)
        assert done(world.releasing.withdraw(LATER_OWN, ADA)).current == OWN

    def test_one_that_was_published_since_the_last_withdrawal_is_found(self, world: World) -> None:
        """Functions keep the versions of Berth's releases, but operators publish at any time."""
        world.releasing.promote(LATER_OWN, ADA)
        assert done(world.releasing.withdraw(LATER_OWN, ADA)).current == OWN
        world.table.record_release(a_release("2.1.5"))
        assert current(world) == "2.1.5"

    def test_a_withdrawal_does_not_go_back_to_a_release_of_berth(self, world: World) -> None:
        """New tenants would lack the resources that only the operators' template has."""
        world.releasing.promote(OWN, ADA)
        refused = world.releasing.withdraw(OWN, ADA)
        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.LAST_RELEASE
        world.releasing.promote(THIRD, ADA)
        assert done(world.releasing.withdraw(OWN, ADA)).current == THIRD

    def test_a_withdrawal_of_berths_release_does_not_choose_one_that_nobody_has_promoted(self, world: World) -> None:
        assert done(world.releasing.withdraw(THIRD, ADA)).current == SECOND

    def test_if_everything_of_berth_is_withdrawn_the_newest_of_berth_is_preferred(self, world: World) -> None:
        """The deployed release and all earlier ones were withdrawn while another was deployed."""
        world.settings.template_version = FOURTH
        for version in (FIRST, SECOND, THIRD):
            world.releasing.withdraw(version, ADA)
        world.settings.template_version = THIRD
        assert current(world) == FOURTH


class TestWhatAChoiceReads:
    """While the current release is withdrawn, a choice needs the versions of the others."""

    @staticmethod
    def counted(world: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        lists: list[str] = []
        listing = world.releases.releases

        def counting() -> object:
            lists.append("list")
            return listing()

        monkeypatch.setattr(world.releases, "releases", counting)
        return lists

    def test_a_function_lists_the_releases_once(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        lists = self.counted(world, monkeypatch)
        assert current(world) == THIRD
        assert lists == []
        done(world.releasing.withdraw(THIRD, ADA))
        lists.clear()

        assert [current(world) for _ in range(3)] == [SECOND] * 3

        assert lists == []
        done(world.releasing.withdraw(SECOND, ADA))
        assert current(world) == FIRST
        assert lists == []

    def test_a_function_that_starts_before_its_release_is_published_lists_again(
        self, world: World, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        done(world.releasing.withdraw(THIRD, ADA))
        world.settings.template_version = "0.11.0"
        done(world.releasing.promote(FOURTH, ADA))
        done(world.releasing.withdraw(FOURTH, ADA))
        lists = self.counted(world, monkeypatch)

        assert [current(world), current(world)] == [SECOND, SECOND]

        assert len(lists) == 2

    def test_a_function_of_the_previous_version_lists_again_before_it_finds_no_release(self, world: World) -> None:
        published, withdrawn = PublishedVersions(world.table), {SECOND, THIRD, FOURTH}
        assert published.newest_own(withdrawn, deployed=THIRD) == FIRST
        world.table.record_release(a_release("0.11.0"))

        assert published.newest_own(withdrawn, deployed=THIRD) == FIRST
        assert published.newest_own({FIRST, *withdrawn}, deployed=THIRD) == "0.11.0"

    def test_a_question_for_a_withdrawal_lists_no_releases(self, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
        done(world.releasing.withdraw(THIRD, ADA))
        lists = self.counted(world, monkeypatch)

        refused = world.with_other().lifecycle.pin(ACME, THIRD, Request(by=ADA))

        assert isinstance(refused, Refused)
        assert refused.kind is Refusal.RELEASE_WITHDRAWN
        assert lists == []
