"""Tiers: a release belongs to one, a tenant is of one, and each has its own current release."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.states import PromotionMode
from orchestrator.rollouts.advancing import RunStage
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import RolloutStatus, Skip, Skipped, Turn
from orchestrator.rollouts.releasing import ReleaseOrdered
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import Failed, NoRelease
from orchestrator.tenants.fleet import list_tenants
from orchestrator.tenants.order_results import Accepted, Changed, Unchanged
from orchestrator.tenants.outcomes import GaveUp
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Operation, Request, RootCause, TenantState
from tests.fakes import ACME, NEXT_VERSION, NOON, VERSION, Orders, World, a_release
from tests.unit.rollouts.world import ADA, Fleet, a_spec, tenant

BY_ADA = Request(by="ada")
GOLD, NEXT_GOLD, SILVER = "2.0.0", "2.1.0", "3.0.0"
A_DAY = timedelta(days=1)


def publish_tiers(world: World) -> None:
    """Two releases of the tier gold, and an older one of the tier silver."""
    world.table.record_release(replace(a_release(SILVER, tier="silver"), published_at=NOON - A_DAY))
    world.table.record_release(a_release(GOLD, tier="gold"))
    world.table.record_release(replace(a_release(NEXT_GOLD, tier="gold"), published_at=NOON + A_DAY))


@pytest.fixture
def world() -> Orders:
    made = Orders()
    publish_tiers(made)
    return made


def refused(ordered: object, kind: Refusal) -> str:
    assert isinstance(ordered, Refused), ordered
    assert ordered.kind is kind
    return ordered.reason


def accepted(ordered: object) -> str:
    assert isinstance(ordered, Accepted), ordered
    return ordered.attempt.version


class TestCurrentReleases:
    def test_each_tier_has_its_own(self, world: Orders) -> None:
        found = {tier: world.choose_release(tier).current for tier in world.release_chooser.tiers()}
        assert found == {STANDARD: NEXT_VERSION, "gold": NEXT_GOLD, "silver": SILVER}

    def test_a_tier_without_releases_has_none(self, world: Orders) -> None:
        assert world.choose_release("bronze").current is None
        assert world.choose_release("bronze").candidate is None

    def test_a_promotion_changes_one_tier_until_another_release_of_it_is_published(self, world: Orders) -> None:
        ordered = world.releasing.promote(GOLD, "ada")
        assert isinstance(ordered, ReleaseOrdered)
        assert (ordered.tier, ordered.before, ordered.current) == ("gold", NEXT_GOLD, GOLD)
        assert world.choose_release("gold").current == GOLD
        assert world.choose_release().current == NEXT_VERSION
        world.settings.template_version = VERSION  # Another release is deployed.
        assert world.choose_release("gold").current == GOLD
        world.table.record_release(replace(a_release("2.2.0", tier="gold"), published_at=NOON + 2 * A_DAY))
        assert world.choose_release("gold").current == "2.2.0"

    def test_publishing_promotes_nothing_where_only_rollouts_promote(self, world: Orders) -> None:
        world.settings.promotion = PromotionMode.AFTER_ROLLOUT
        assert world.choose_release("gold").current == GOLD, "the first release, so that tenants can be created"
        assert world.choose_release("gold").candidate == NEXT_GOLD
        assert world.promoter.after_rollout(NEXT_GOLD, by="rollout", at=NOON, allow_downgrade=False)
        assert world.choose_release("gold").current == NEXT_GOLD
        assert world.choose_release().current == NEXT_VERSION

    def test_the_current_release_of_every_tier_is_kept_when_deployments_cease_to_promote(self, world: Orders) -> None:
        world.releasing.promote(GOLD, "ada")
        world.settings.promotion = PromotionMode.AFTER_ROLLOUT
        world.keep_current_release("a-request")
        found = [world.choose_release(tier).current for tier in (STANDARD, "gold", "silver")]
        assert found == [NEXT_VERSION, GOLD, SILVER]

    def test_after_a_withdrawal_the_earlier_release_of_the_same_tier_is_current(self, world: Orders) -> None:
        world.releasing.withdraw(NEXT_GOLD, "ada")
        assert world.choose_release("gold").current == GOLD
        assert world.choose_release("silver").current == SILVER

    def test_the_last_release_of_a_tier_is_not_withdrawn(self, world: Orders) -> None:
        assert "tier silver" in refused(world.releasing.withdraw(SILVER, "ada"), Refusal.LAST_RELEASE)


class TestCreate:
    def test_a_tenant_is_created_at_the_current_release_of_the_tier(self, world: Orders) -> None:
        ordered = world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))
        assert accepted(ordered) == NEXT_GOLD
        assert world.metadata.tier == "gold"
        world.succeeded(world.begun(ordered))
        assert (world.metadata.tier, world.metadata.version) == ("gold", NEXT_GOLD)

    def test_without_a_tier_it_is_created_in_the_default_tier(self, world: Orders) -> None:
        assert accepted(world.lifecycle.create(ACME, BY_ADA)) == NEXT_VERSION
        assert world.metadata.tier == STANDARD

    def test_another_default_tier_is_used_by_operators_and_by_get_queue(self, world: Orders) -> None:
        world.settings.default_tier = "gold"
        assert accepted(world.lifecycle.create(ACME, BY_ADA)) == NEXT_GOLD
        other = TenantId.parse("other")
        assert isinstance(world.get_queue(other, by="platform"), Provisioning)
        attempt, _ = world.executions.started[-1]
        assert (attempt.tenant, attempt.version) == (other, NEXT_GOLD)
        world.succeeded(world.begun(Accepted(attempt, world.executions.execution_of(attempt))))
        assert world.metadata_of(other).tier == "gold"

    def test_a_tier_without_a_release_is_refused_with_those_that_have_one(self, world: Orders) -> None:
        reason = refused(world.lifecycle.create(ACME, replace(BY_ADA, tier="bronze")), Refusal.NO_RELEASE)
        assert "There are these tiers: gold, silver, standard." in reason
        assert not world.executions.started
        assert world.table.metadata(ACME) is None

    def test_get_queue_says_that_the_default_tier_has_no_release(self, world: Orders) -> None:
        world.settings.default_tier = "bronze"
        assert world.get_queue(ACME, by="platform") == NoRelease("bronze")
        assert world.get_queue.find(ACME) == NoRelease("bronze")
        assert not world.executions.started

    def test_a_pin_names_the_tier_too(self, world: Orders) -> None:
        assert accepted(world.lifecycle.create(ACME, replace(BY_ADA, pin=GOLD))) == GOLD
        assert world.metadata.tier == "gold"

    def test_a_pin_to_a_release_of_another_tier_than_named_is_refused(self, world: Orders) -> None:
        asked = replace(BY_ADA, pin=GOLD, tier="silver")
        reason = refused(world.lifecycle.create(ACME, asked), Refusal.OTHER_TIER)
        assert reason == (
            "Tenant acme was not created: release 2.0.0 is of the tier gold, not of silver. Name a release of the tier "
            "silver, or the tier gold. See the releases: berth releases"
        )
        assert not world.executions.started

    def test_a_tenant_that_exists_is_not_moved_by_a_create(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        reason = refused(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold")), Refusal.OTHER_TIER)
        assert reason.endswith("To move it: berth move acme --tier gold")
        assert isinstance(world.lifecycle.create(ACME, replace(BY_ADA, tier=STANDARD)), Unchanged)

    def test_a_tenant_that_exists_is_not_sent_to_a_tier_that_does_not(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        reason = refused(world.lifecycle.create(ACME, replace(BY_ADA, tier="bronze")), Refusal.OTHER_TIER)
        assert "There is no tier bronze, only gold, silver, standard." in reason
        assert "berth move" not in reason

    def test_after_a_failed_create_get_queue_and_a_retry_stay_in_the_tier(self, world: Orders) -> None:
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        assert isinstance(world.get_queue(ACME), Failed)
        world.releasing.withdraw(NEXT_GOLD, "ada")  # Another release may succeed, so getQueue starts a create.
        assert isinstance(world.get_queue(ACME), Provisioning)
        attempt, _ = world.executions.started[-1]
        assert attempt.version == GOLD

    def test_after_a_failed_create_another_tier_can_be_named(self, world: Orders) -> None:
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        ordered = world.lifecycle.create(ACME, replace(BY_ADA, tier="silver"))
        assert accepted(ordered) == SILVER
        world.succeeded(world.begun(ordered))
        assert (world.metadata.tier, world.metadata.version) == ("silver", SILVER)

    def test_after_a_failed_create_a_pin_to_a_release_of_another_tier_is_refused(self, world: Orders) -> None:
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        assert "tier gold" in refused(world.lifecycle.pin(ACME, SILVER, BY_ADA), Refusal.OTHER_TIER)
        assert isinstance(world.lifecycle.pin(ACME, GOLD, BY_ADA), Changed)
        assert accepted(world.lifecycle.create(ACME, BY_ADA)) == GOLD

    def test_a_create_that_get_queue_has_started_does_not_overrule_the_tier_that_an_operator_named(
        self, world: Orders
    ) -> None:
        started = world.get_queue(ACME)
        assert isinstance(started, Provisioning)
        attempt, _ = world.executions.started[-1]
        world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))
        begun = world.begin(world.run_of(Accepted(attempt, started.execution)))
        assert isinstance(begun, GaveUp)
        assert "tier gold" in begun.reason

    def test_a_tenant_whose_queue_vanished_is_created_again_in_its_tier(self, world: Orders) -> None:
        world.succeeded(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold", pin=GOLD))))
        world.lifecycle.unpin(ACME, BY_ADA)
        world.table.forget_queue(ACME, stack_id=str(world.metadata.stack_id))
        assert isinstance(world.get_queue(ACME), Provisioning)
        attempt, _ = world.executions.started[-1]
        assert attempt.version == GOLD

    @pytest.mark.parametrize("named", ["silver", STANDARD])
    @pytest.mark.parametrize("recorded", ["gold", None])
    def test_a_create_that_gives_a_tenant_back_after_a_delete_that_died_leaves_it_in_its_tier(
        self, world: Orders, recorded: str | None, named: str
    ) -> None:
        at = GOLD if recorded else VERSION
        world.provision(at, recorded_tier=recorded)
        world.died(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier=named))))
        metadata = world.metadata
        assert (metadata.published, metadata.version, metadata.tier) == (True, at, recorded or STANDARD)

    def test_a_create_in_another_tier_after_a_delete_that_failed_is_in_that_tier(self, world: Orders) -> None:
        world.provision(GOLD, recorded_tier="gold")
        world.half_deleted(BY_ADA)
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="silver"))))
        assert (world.metadata.published, world.metadata.tier) == (False, "silver")
        assert accepted(world.lifecycle.create(ACME, BY_ADA)) == SILVER

    def test_a_deleted_tenant_is_created_again_in_the_default_tier(self, world: Orders) -> None:
        world.succeeded(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        world.succeeded(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
        assert accepted(world.lifecycle.create(ACME, BY_ADA)) == NEXT_VERSION
        assert world.metadata.tier == STANDARD


class TestUpgrade:
    def test_a_tenant_is_upgraded_to_the_current_release_of_its_tier(self, world: Orders) -> None:
        world.provision(GOLD, recorded_tier="gold")
        assert accepted(world.lifecycle.upgrade(ACME, None, BY_ADA)) == NEXT_GOLD

    @pytest.mark.parametrize("version", [SILVER, VERSION])
    def test_a_release_of_another_tier_is_refused(self, world: Orders, version: str) -> None:
        world.provision(GOLD, recorded_tier="gold")
        asked = replace(BY_ADA, allow_downgrade=True)
        assert "berth move acme --tier" in refused(world.lifecycle.upgrade(ACME, version, asked), Refusal.OTHER_TIER)
        refused(world.lifecycle.pin(ACME, version, BY_ADA), Refusal.OTHER_TIER)

    def test_a_tenant_from_before_there_were_tiers_is_standard(self, world: Orders) -> None:
        world.provision(VERSION)
        assert world.metadata.recorded_tier is None
        ordered = world.lifecycle.upgrade(ACME, None, BY_ADA)
        assert accepted(ordered) == NEXT_VERSION
        world.succeeded(world.begun(ordered))
        assert world.metadata.recorded_tier == STANDARD


class TestFleet:
    def fleet(self) -> Fleet:
        """t001 and t002 are standard, t003 and t004 gold."""
        made = Fleet(4)
        publish_tiers(made)
        for each in ("t003", "t004"):
            made.change(tenant(each), version=GOLD, recorded_tier="gold")
        return made

    def test_the_list_is_filtered_by_tier(self) -> None:
        fleet = self.fleet()
        listed = list_tenants(fleet.table, tier="gold").tenants
        assert [(each.tenant.value, each.tier) for each in listed] == [("t003", "gold"), ("t004", "gold")]
        assert [each.tenant.value for each in list_tenants(fleet.table, tier=STANDARD).tenants] == ["t001", "t002"]

    def test_a_rollout_moves_only_tenants_of_the_releases_tier(self) -> None:
        fleet = self.fleet()
        rollout = fleet.rollout(fleet.start(a_spec(version=NEXT_GOLD)))
        assert sorted(fleet.planned_tenants(rollout.id)) == ["t003", "t004"]
        assert rollout.skipped == {Skip.OTHER_TIER: Skipped(2, ("t001", "t002"))}
        assert rollout.spec.tier == "gold"

    def test_without_a_version_the_tiers_current_release_is_rolled_out(self) -> None:
        fleet = self.fleet()
        rollout = fleet.rollout(fleet.start(a_spec(version=None, tier="gold")))
        assert rollout.spec.version == NEXT_GOLD
        standard = fleet.rollout(fleet.start(a_spec(version=None)))
        assert sorted(fleet.planned_tenants(standard.id)) == ["t001", "t002"]

    def test_a_release_of_another_tier_than_named_is_refused(self) -> None:
        fleet = self.fleet()
        refused(fleet.rollouts.start(a_spec(version=GOLD, tier="silver"), ADA), Refusal.OTHER_TIER)
        refused(fleet.rollouts.start(a_spec(version=None, tier="bronze"), ADA), Refusal.NO_RELEASE)

    def test_a_tenant_that_has_changed_its_tier_since_is_skipped_when_its_turn_comes(self) -> None:
        fleet = self.fleet()
        rollout = fleet.rollout(fleet.start(a_spec(version=NEXT_GOLD)))
        fleet.change(tenant("t003"), version=SILVER, recorded_tier="silver")
        fleet.drive(rollout.id)
        outcomes = {each.item.tenant.value: each for each in fleet.rollout_table.outcomes(rollout.id)}
        assert outcomes["t003"].skip is Skip.OTHER_TIER
        assert fleet.metadata_of(tenant("t004")).version == NEXT_GOLD
        assert fleet.metadata_of(tenant("t003")).version == SILVER

    @pytest.mark.parametrize("moved_to", [SILVER, "1.0.0"], ids=["a newer version", "an older version"])
    def test_a_tenant_that_is_moved_to_another_tier_during_its_turn_is_skipped_and_halts_nothing(
        self, moved_to: str
    ) -> None:
        fleet = self.fleet()
        rollout = fleet.start(a_spec(version=NEXT_GOLD))
        step = fleet.advance(rollout)
        assert isinstance(step, RunStage)
        turn = next(
            Turn(rollout, step.stage, item, f"child/{item.tenant}")
            for item in fleet.manifests.read(step.manifest)
            if item.tenant == tenant("t003")
        )
        admitted = fleet.gate.admit(turn)
        assert isinstance(admitted, Admitted)
        fleet.change(tenant("t003"), version=moved_to, recorded_tier="silver")  # A move had the lock until now.
        run = fleet.run_of(admitted)
        fleet.executions.start(run.attempt, run.request)
        refused = fleet.begin(run)
        assert isinstance(refused, GaveUp)
        fleet.record_failure(run, failure=RootCause("t003", "Berth::Tenant", refused.reason), failed_stack=None)
        fleet.gate.record(turn)
        assert fleet.outcome(rollout, "t003").skip is Skip.OTHER_TIER
        fleet.drive(rollout)
        assert fleet.status(rollout) is RolloutStatus.SUCCEEDED


def test_the_state_of_an_operation_does_not_depend_on_the_tier(world: Orders) -> None:
    world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold")))
    assert world.state() is TenantState.PROVISIONING
    lock = world.table.lock(ACME)
    assert lock is not None
    assert (lock.run.attempt.operation, lock.run.request.tier) == (Operation.CREATE, "gold")
