"""Moving a tenant to another tier is an update."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import Conflict
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Accepted, Unchanged
from orchestrator.tenants.outcomes import Done
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from tests.fakes import ACME, NEXT_VERSION, NOON, QUEUE, VERSION, Orders, a_release, stack_arn

BY_ADA = Request(by="ada", reason="Ticket 4711")
GOLD, SILVER = "2.0.0", "0.0.3"


@pytest.fixture
def world() -> Orders:
    made = Orders()
    made.table.record_release(a_release(GOLD, tier="gold"))
    made.table.record_release(a_release(SILVER, tier="silver"))
    made.provision(NEXT_VERSION)
    return made


def refused(ordered: object, kind: Refusal) -> str:
    assert isinstance(ordered, Refused), ordered
    assert ordered.kind is kind
    return ordered.reason


def test_a_move_is_an_update_to_the_current_release_of_the_tier(world: Orders) -> None:
    ordered = world.lifecycle.move(ACME, "gold", BY_ADA)
    assert isinstance(ordered, Accepted)
    assert (ordered.attempt.operation, ordered.attempt.version) == (Operation.UPDATE, GOLD)
    run = world.begun(ordered)
    assert world.metadata.tier == STANDARD, "until the stack has moved"
    assert world.state() is TenantState.UPDATING
    world.succeeded(run)
    assert (world.metadata.tier, world.metadata.version) == ("gold", GOLD)


def test_versions_of_different_tiers_have_no_order(world: Orders) -> None:
    assert isinstance(world.lifecycle.move(ACME, "silver", BY_ADA), Accepted)


def test_the_history_says_who_asked_for_which_tier(world: Orders) -> None:
    world.succeeded(world.begun(world.lifecycle.move(ACME, "gold", BY_ADA)))
    entry = world.table.history(ACME)[-1]
    assert entry.status is Status.SUCCESS
    assert entry.request == Request(by="ada", reason="Ticket 4711", tier="gold")


def test_a_tenant_of_the_tier_is_not_moved(world: Orders) -> None:
    assert isinstance(world.lifecycle.move(ACME, STANDARD, BY_ADA), Unchanged)
    assert not world.executions.started


def test_a_tier_without_a_release_is_refused(world: Orders) -> None:
    refused(world.lifecycle.move(ACME, "bronze", BY_ADA), Refusal.NO_RELEASE)


def test_a_pinned_tenant_is_not_moved(world: Orders) -> None:
    world.lifecycle.pin(ACME, NEXT_VERSION, BY_ADA)
    refused(world.lifecycle.move(ACME, "gold", BY_ADA), Refusal.PINNED)


def test_a_tenant_without_a_queue_is_not_moved() -> None:
    world = Orders()
    world.table.record_release(a_release(GOLD, tier="gold"))
    refused(world.lifecycle.move(ACME, "gold", BY_ADA), Refusal.UNKNOWN_TENANT)


class TestAfterAFailure:
    @pytest.fixture
    def failed(self, world: Orders) -> Orders:
        world.failed(world.begun(world.lifecycle.move(ACME, "gold", BY_ADA)))
        return world

    def test_the_tenant_is_of_its_old_tier(self, failed: Orders) -> None:
        assert (failed.metadata.tier, failed.metadata.version) == (STANDARD, NEXT_VERSION)
        assert failed.state() is TenantState.UPDATE_FAILED

    def test_a_retry_moves_it(self, failed: Orders) -> None:
        failed.succeeded(failed.begun(failed.lifecycle.retry(ACME, "bob")))
        assert (failed.metadata.tier, failed.metadata.version) == ("gold", GOLD)

    def test_a_move_back_repairs_its_stack(self, failed: Orders) -> None:
        ordered = failed.lifecycle.move(ACME, STANDARD, BY_ADA)
        assert isinstance(ordered, Accepted)
        assert ordered.attempt.version == NEXT_VERSION
        failed.succeeded(failed.begun(ordered))
        assert (failed.metadata.tier, failed.state()) == (STANDARD, TenantState.READY)

    def test_an_upgrade_stays_in_the_old_tier(self, failed: Orders) -> None:
        ordered = failed.lifecycle.upgrade(ACME, None, BY_ADA)
        assert isinstance(ordered, Accepted)
        assert ordered.attempt.version == NEXT_VERSION

    def test_a_move_to_a_third_tier_publishes_that_tier(self, failed: Orders) -> None:
        failed.succeeded(failed.begun(failed.lifecycle.move(ACME, "silver", BY_ADA)))
        assert (failed.metadata.tier, failed.metadata.version) == ("silver", SILVER)


def test_a_create_does_not_publish_the_stack_of_another_tier() -> None:
    """A create in the tier gold has died. The operator names another tier, and the stack of the first is found."""
    world = Orders()
    world.table.record_release(a_release(GOLD, tier="gold"))
    world.table.record_release(a_release(SILVER, tier="silver"))
    world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
    run = world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="silver")))
    with pytest.raises(Conflict, match="of the tier gold, not of silver"):
        world.finish(run, Done(stack_arn(), QUEUE, GOLD))
    assert not world.metadata.published


def test_a_tenant_that_was_created_again_since_is_not_deleted_by_an_older_request(world: Orders) -> None:
    world.succeeded(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
    world.clock.advance(timedelta(minutes=5))
    world.succeeded(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
    ordered = world.lifecycle.delete(ACME, replace(BY_ADA, asked_at=NOON))
    assert isinstance(ordered, Accepted)
    world.clock.advance(timedelta(seconds=1))
    assert "created again" in str(world.begin(world.run_of(ordered)))
    assert VERSION not in (world.metadata.version,)
