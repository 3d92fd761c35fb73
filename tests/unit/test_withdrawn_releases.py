"""Nothing that happens to a tenant chooses a release that was withdrawn, and every refusal says what to do instead."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.order_results import Accepted, OrderResult, Unchanged
from orchestrator.tenants.outcomes import Begun, GaveUp
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from tests.fakes import ACME, NEXT_VERSION, NOON, VERSION, Orders, a_release, an_audit, some_metadata

ADA = Request("ada")
A_SECOND = timedelta(seconds=1)


@pytest.fixture
def world() -> Orders:
    """0.2.0 is deployed, and was withdrawn. 0.1.0 is current."""
    world = Orders()
    world.releasing.withdraw(NEXT_VERSION, "bob", reason="queues lose messages")
    return world


def refused(ordered: OrderResult) -> str:
    assert isinstance(ordered, Refused), ordered
    assert ordered.kind is Refusal.RELEASE_WITHDRAWN
    assert ordered.reason.startswith("Release 0.2.0 was withdrawn by bob at 2026-11-16T12:00:00.000Z (queues lose")
    return ordered.reason


def version_of(ordered: OrderResult) -> str:
    assert isinstance(ordered, Accepted), ordered
    return ordered.attempt.version


class TestCreating:
    def test_a_tenant_is_created_at_the_current_release(self, world: Orders) -> None:
        assert version_of(world.lifecycle.create(ACME, ADA)) == VERSION

    def test_get_queue_creates_at_the_current_release(self, world: Orders) -> None:
        assert isinstance(world.get_queue(ACME), Provisioning)
        assert [attempt.version for attempt, _ in world.executions.started] == [VERSION]

    def test_a_create_that_failed_at_the_withdrawn_release_is_started_at_the_current_one(self, world: Orders) -> None:
        world.table.plant_audit(an_audit(Status.FAILURE, version=NEXT_VERSION))
        assert isinstance(world.get_queue(ACME), Provisioning)
        assert [attempt.version for attempt, _ in world.executions.started] == [VERSION]

    def test_a_tenant_whose_queue_has_vanished_is_created_at_the_current_release(self, world: Orders) -> None:
        world.table.plant_metadata(some_metadata(queue=None, version=None, last_version=NEXT_VERSION))
        assert version_of(world.lifecycle.create(ACME, ADA)) == VERSION

    def test_the_withdrawn_release_is_refused_by_name(self, world: Orders) -> None:
        reason = refused(world.lifecycle.create(ACME, Request("ada", pin=NEXT_VERSION)))
        assert reason.endswith("so tenant acme was not created at it. Use the current release: berth create acme")

    def test_the_way_out_stays_in_the_tier_of_the_withdrawn_release(self, world: Orders) -> None:
        for version in ("2.0.0", "2.1.0"):
            world.table.record_release(a_release(version, tier="gold"))
        world.releasing.withdraw("2.1.0", "bob")
        refusal = world.lifecycle.create(ACME, Request("ada", pin="2.1.0", tier="gold"))
        assert isinstance(refusal, Refused)
        assert refusal.reason.endswith("Use the current release: berth create acme --tier gold")

    def test_a_tenant_that_is_pinned_to_it_is_refused_until_it_gets_another_pin(self, world: Orders) -> None:
        world.table.plant_metadata(some_metadata(queue=None, version=None, pinned_version=NEXT_VERSION))
        reason = refused(world.lifecycle.create(ACME, ADA))
        assert "berth pin acme VERSION, or berth unpin acme. Then: berth create acme" in reason
        assert version_of(world.lifecycle.create(ACME, ADA, unpin=True)) == VERSION

    def test_a_ready_tenant_costs_no_read_of_the_state(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        before = world.release_states.reads
        world.get_queue(ACME)
        assert world.release_states.reads == before

    def test_a_tenant_that_is_being_created_costs_no_read_of_the_state(self, world: Orders) -> None:
        world.table.plant_audit(an_audit(Status.STARTED, version=VERSION, at=NOON))
        before = world.release_states.reads
        assert isinstance(world.get_queue(ACME), Provisioning)
        assert world.release_states.reads == before


class TestUpdating:
    def test_an_upgrade_goes_to_the_current_release(self, world: Orders) -> None:
        world.provision(VERSION)
        assert isinstance(world.lifecycle.upgrade(ACME, None, ADA), Unchanged)

    def test_the_withdrawn_release_is_refused_by_name(self, world: Orders) -> None:
        world.provision(VERSION)
        reason = refused(world.lifecycle.upgrade(ACME, NEXT_VERSION, ADA))
        assert reason.endswith("was not moved to it. Use the current release: berth upgrade acme")

    def test_a_tenant_that_is_at_it_needs_a_downgrade(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        reason = refused(world.lifecycle.upgrade(ACME, NEXT_VERSION, ADA))
        assert reason.endswith("Use the current release: berth upgrade acme --allow-downgrade")

    def test_the_way_back(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        assert version_of(world.lifecycle.upgrade(ACME, None, Request("ada", allow_downgrade=True))) == VERSION

    def test_a_pin_to_it_is_refused(self, world: Orders) -> None:
        world.provision(VERSION)
        refused(world.lifecycle.pin(ACME, NEXT_VERSION, ADA))

    def test_a_tenant_that_is_pinned_to_it_stays_and_needs_another_pin_first(self, world: Orders) -> None:
        world.provision(NEXT_VERSION, pinned_version=NEXT_VERSION)
        reason = refused(world.lifecycle.upgrade(ACME, None, ADA))
        assert "The tenant is pinned to it: berth pin acme VERSION, or berth unpin acme." in reason
        assert world.state() is TenantState.READY
        world.lifecycle.unpin(ACME, ADA)
        assert version_of(world.lifecycle.upgrade(ACME, None, Request("ada", allow_downgrade=True))) == VERSION


class TestRetrying:
    def test_an_update_that_failed_offers_the_way_back(self, world: Orders) -> None:
        world.provision(VERSION)
        world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION))
        assert refused(world.lifecycle.retry(ACME, "ada")).endswith("berth upgrade acme")
        assert version_of(world.lifecycle.upgrade(ACME, None, ADA)) == VERSION

    def test_a_create_that_failed_offers_the_way_back(self, world: Orders) -> None:
        world.table.plant_audit(an_audit(Status.FAILURE, version=NEXT_VERSION))
        assert refused(world.lifecycle.retry(ACME, "ada")).endswith("berth create acme")
        assert version_of(world.lifecycle.create(ACME, ADA)) == VERSION

    def test_a_tenant_at_the_withdrawn_release_is_offered_the_way_back(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        ordered = world.lifecycle.retry(ACME, "ada")
        assert isinstance(ordered, Refused)
        assert ordered.kind is Refusal.RELEASE_WITHDRAWN
        assert ordered.reason.endswith("Move it to the current release: berth upgrade acme --allow-downgrade")

    def test_a_tenant_at_another_release_has_nothing_to_retry(self, world: Orders) -> None:
        world.provision(VERSION)
        ordered = world.lifecycle.retry(ACME, "ada")
        assert isinstance(ordered, Refused)
        assert ordered.kind is Refusal.NOTHING_TO_RETRY

    def test_after_it_is_reinstated_the_retry_is_the_same_operation(self, world: Orders) -> None:
        world.provision(VERSION)
        world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION))
        world.releasing.reinstate(NEXT_VERSION, "bob")
        assert version_of(world.lifecycle.retry(ACME, "ada")) == NEXT_VERSION


class TestBeginning:
    """The release is withdrawn after the operation was requested, and before it begins."""

    def test_a_create_is_refused_and_the_next_call_creates_at_the_current_release(self) -> None:
        world = Orders()
        run = world.run_of(world.lifecycle.create(ACME, ADA))
        world.releasing.withdraw(NEXT_VERSION, "bob", reason="queues lose messages")
        outcome = world.begin(run)
        assert isinstance(outcome, GaveUp)
        assert "Release 0.2.0 was withdrawn by bob" in outcome.reason
        world.failed(run)
        assert isinstance(world.get_queue(ACME), Provisioning)
        assert world.executions.started[-1][0].version == VERSION

    def test_an_update_is_refused_and_the_tenant_keeps_its_release(self) -> None:
        world = Orders()
        world.provision(VERSION)
        deployed = world.metadata.deployed
        run = world.run_of(world.lifecycle.upgrade(ACME, None, ADA))
        world.releasing.withdraw(NEXT_VERSION, "bob")
        assert isinstance(world.begin(run), GaveUp)
        world.failed(run)
        assert (world.metadata.version, world.metadata.deployed) == (VERSION, deployed)
        assert world.metadata.published

    def test_a_create_of_a_deleted_tenant_is_refused_and_the_tenant_stays_deleted(self) -> None:
        world = Orders()
        world.provision(VERSION)
        world.succeeded(world.begun(world.lifecycle.delete(ACME, ADA)))
        world.clock.advance(A_SECOND)
        run = world.run_of(world.lifecycle.create(ACME, ADA))
        world.releasing.withdraw(NEXT_VERSION, "bob")
        assert isinstance(world.begin(run), GaveUp)
        world.failed(run)
        assert world.state() is TenantState.DELETED

    def test_an_operation_that_has_begun_is_finished(self) -> None:
        world = Orders()
        run = world.begun(world.lifecycle.create(ACME, ADA))
        world.releasing.withdraw(NEXT_VERSION, "bob")
        world.succeeded(run)
        assert world.metadata.version == NEXT_VERSION

    def test_a_delete_is_not_concerned(self, world: Orders) -> None:
        world.provision(NEXT_VERSION)
        run = world.run_of(world.lifecycle.delete(ACME, ADA))
        assert world.begin(run) == Begun()
