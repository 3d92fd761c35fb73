"""Operators create tenants and pin them, also tenants that were deleted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.order_results import OrderResult
from orchestrator.tenants.records import Operation, TenantState
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    VERSION,
    InMemoryTable,
    Orders,
    an_attempt,
    some_metadata,
    stack_arn,
)
from tests.unit.ordering import (
    A_SECOND,
    BY_ADA,
    BY_BOB,
    LABELS,
    UNPUBLISHED_VERSION,
    accepted,
    already_so,
    changed,
    refused,
)


@pytest.fixture
def world() -> Orders:
    return Orders()


@pytest.fixture
def ready(world: Orders) -> Orders:
    """A tenant at the old version."""
    world.provision()
    return world


# Create


def test_a_new_tenant_is_created_at_the_current_version_by_an_explicit_request(world: Orders) -> None:
    ordered = accepted(world.lifecycle.create(ACME, BY_ADA))
    assert ordered.attempt == an_attempt(version=NEXT_VERSION)
    assert ordered.execution in world.executions.running
    ((_, request),) = world.executions.started
    assert request == replace(BY_ADA, explicit=True)


def test_a_new_tenant_is_created_at_the_release_that_it_is_pinned_to(world: Orders) -> None:
    ordered = accepted(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION, labels=LABELS)))
    assert ordered.attempt.version == VERSION
    world.succeeded(world.begun(ordered))
    assert world.metadata.pinned_version == VERSION
    assert world.metadata.labels == LABELS


def test_a_tenant_is_not_pinned_to_a_release_that_there_is_not(world: Orders) -> None:
    asked = replace(BY_ADA, pin=UNPUBLISHED_VERSION)
    assert UNPUBLISHED_VERSION in refused(world.lifecycle.create(ACME, asked), Refusal.UNKNOWN_RELEASE).reason
    world.provision()
    refused(world.lifecycle.create(ACME, asked), Refusal.UNKNOWN_RELEASE)
    assert not world.executions.started
    assert world.metadata.pinned_version is None


def test_a_control_plane_whose_release_is_not_published_yet_creates_nothing() -> None:
    world = Orders()
    lifecycle = replace(world.lifecycle, chooser=replace(world.release_chooser, deployed=UNPUBLISHED_VERSION))
    refused(lifecycle.create(ACME, BY_ADA), Refusal.UNKNOWN_RELEASE)
    assert not world.executions.started


def test_creating_a_tenant_that_is_there_changes_nothing(ready: Orders) -> None:
    before = ready.metadata
    ready.clock.advance(A_SECOND)
    assert VERSION in already_so(ready.lifecycle.create(ACME, BY_ADA))
    assert ready.metadata == before
    assert not ready.executions.started


def test_creating_a_tenant_that_is_there_sets_its_labels_and_pin_and_moves_nothing(ready: Orders) -> None:
    ready.clock.advance(timedelta(hours=1))
    changed(ready.lifecycle.create(ACME, replace(BY_ADA, labels=LABELS, pin=NEXT_VERSION)))
    assert ready.metadata == replace(
        some_metadata(), labels=LABELS, pinned_version=NEXT_VERSION, updated_at=NOON + timedelta(hours=1)
    )
    assert not ready.executions.started


def test_labels_and_pin_that_are_not_given_stay_as_they_are(world: Orders) -> None:
    world.provision(labels=LABELS, pinned_version=VERSION)
    world.lifecycle.create(ACME, replace(BY_ADA, pin=NEXT_VERSION))
    assert world.metadata.labels == LABELS
    world.lifecycle.create(ACME, replace(BY_ADA, labels={"team": "search"}))
    assert world.metadata.pinned_version == NEXT_VERSION


def test_labels_can_be_taken_away(world: Orders) -> None:
    world.provision(labels=LABELS, pinned_version=VERSION)
    world.lifecycle.create(ACME, replace(BY_ADA, labels={}))
    assert world.metadata.labels == {}
    assert world.metadata.pinned_version == VERSION


def test_a_pin_can_be_lifted(world: Orders) -> None:
    world.provision(labels=LABELS, pinned_version=VERSION)
    changed(world.lifecycle.create(ACME, BY_ADA, unpin=True))
    assert world.metadata.pinned_version is None
    assert world.metadata.labels == LABELS


def test_describing_a_tenant_that_a_delete_has_just_withdrawn_is_refused_as_busy() -> None:
    class JustWithdrawn(InMemoryTable):
        """The delete begins after the metadata was read."""

        def describe(self, *args: Any, **named: Any) -> bool:
            self.plant_metadata(replace(some_metadata(), withdrawn_by="a delete"))
            return super().describe(*args, **named)

    world = Orders(table=JustWithdrawn())
    world.provision()
    refused(world.lifecycle.create(ACME, replace(BY_ADA, labels=LABELS)), Refusal.BUSY)
    assert world.metadata.labels == {}


# Pin and unpin


def test_a_pin_is_recorded_and_does_not_update_the_tenant(world: Orders) -> None:
    world.provision(labels=LABELS)
    world.clock.advance(A_SECOND)
    before = world.metadata
    assert changed(world.lifecycle.pin(ACME, NEXT_VERSION, EXPLICIT)) == (
        f"Tenant acme is pinned to version {NEXT_VERSION}. It is at version {VERSION}."
    )
    assert world.metadata == replace(before, pinned_version=NEXT_VERSION, updated_at=NOON + A_SECOND)
    assert not world.executions.started


def test_unpinning_lifts_the_pin_and_nothing_else(world: Orders) -> None:
    world.provision(labels=LABELS, pinned_version=VERSION)
    before = world.metadata
    assert changed(world.lifecycle.unpin(ACME, EXPLICIT)) == (
        f"Tenant acme is no longer pinned. It is at version {VERSION}."
    )
    assert world.metadata == replace(before, pinned_version=None)
    assert not world.executions.started


def test_pinning_and_unpinning_twice_is_doing_it_once(ready: Orders) -> None:
    assert changed(ready.lifecycle.pin(ACME, VERSION, EXPLICIT)) == already_so(
        ready.lifecycle.pin(ACME, VERSION, EXPLICIT)
    )
    assert ready.metadata.pinned_version == VERSION
    changed(ready.lifecycle.unpin(ACME, EXPLICIT))
    assert already_so(ready.lifecycle.unpin(ACME, EXPLICIT)).startswith("Tenant acme was not pinned.")
    assert ready.metadata.pinned_version is None


def test_another_pin_takes_the_place_of_the_one_before(world: Orders) -> None:
    world.provision(pinned_version=VERSION)
    changed(world.lifecycle.pin(ACME, NEXT_VERSION, EXPLICIT))
    assert world.metadata.pinned_version == NEXT_VERSION


def test_nothing_is_pinned_to_a_release_that_there_is_not(world: Orders) -> None:
    refused(world.lifecycle.pin(ACME, UNPUBLISHED_VERSION, EXPLICIT), Refusal.UNKNOWN_RELEASE)
    world.provision(pinned_version=VERSION)
    assert (
        UNPUBLISHED_VERSION
        in refused(world.lifecycle.pin(ACME, UNPUBLISHED_VERSION, EXPLICIT), Refusal.UNKNOWN_RELEASE).reason
    )
    assert world.metadata.pinned_version == VERSION


Description = Callable[[Lifecycle], OrderResult]
PINNING: dict[str, Description] = {
    "pin": lambda lifecycle: lifecycle.pin(ACME, VERSION, EXPLICIT),
    "unpin": lambda lifecycle: lifecycle.unpin(ACME, EXPLICIT),
}
for_pin_and_unpin = pytest.mark.parametrize("say", PINNING.values(), ids=PINNING)


@for_pin_and_unpin
def test_an_unknown_tenant_cannot_be_pinned(world: Orders, say: Description) -> None:
    refused(say(world.lifecycle), Refusal.UNKNOWN_TENANT)
    assert world.table.metadata(ACME) is None


@for_pin_and_unpin
def test_a_tenant_that_was_deleted_has_no_pin(ready: Orders, say: Description) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    refused(say(ready.lifecycle), Refusal.TENANT_DELETED)
    assert ready.table.metadata(ACME) is None


@for_pin_and_unpin
def test_the_pin_of_a_tenant_that_is_being_deleted_is_left_alone(world: Orders, say: Description) -> None:
    world.provision(pinned_version=NEXT_VERSION)
    run = world.begun(world.lifecycle.delete(ACME, BY_ADA))
    busy = refused(say(world.lifecycle), Refusal.BUSY)
    assert busy.details["execution"] == run.execution
    assert world.metadata.pinned_version == NEXT_VERSION


@for_pin_and_unpin
def test_the_pin_of_a_tenant_that_a_delete_has_left_half_way_is_left_alone(world: Orders, say: Description) -> None:
    world.provision(pinned_version=NEXT_VERSION)
    world.half_deleted(BY_ADA)
    refused(say(world.lifecycle), Refusal.BUSY)
    assert world.metadata.pinned_version == NEXT_VERSION


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_a_tenant_may_be_pinned_and_unpinned_while_it_is_worked_at(world: Orders, operation: Operation) -> None:
    if operation is Operation.UPDATE:
        world.provision()
    order = world.lifecycle.create if operation is Operation.CREATE else partial(world.lifecycle.upgrade, version=None)
    run = world.begun(order(ACME, request=BY_ADA))
    changed(world.lifecycle.pin(ACME, VERSION, EXPLICIT))
    assert world.metadata.pinned_version == VERSION
    world.succeeded(run)
    assert (world.metadata.version, world.metadata.pinned_version) == (NEXT_VERSION, VERSION)
    changed(world.lifecycle.unpin(ACME, EXPLICIT))
    assert world.metadata.pinned_version is None


def test_a_tenant_whose_creation_failed_may_be_pinned_before_it_is_created_again(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    assert changed(world.lifecycle.pin(ACME, VERSION, EXPLICIT)) == f"Tenant acme is pinned to version {VERSION}."
    assert accepted(world.lifecycle.create(ACME, BY_ADA)).attempt.version == VERSION


def test_a_tenant_that_was_pinned_is_not_upgraded_past_its_pin_and_is_once_it_was_unpinned(ready: Orders) -> None:
    ready.lifecycle.pin(ACME, VERSION, EXPLICIT)
    refused(ready.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA), Refusal.PINNED)
    ready.lifecycle.unpin(ACME, EXPLICIT)
    accepted(ready.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA))


# Created again


def test_a_tenant_that_was_deleted_is_created_again(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    assert ready.state() is TenantState.DELETED
    ordered = accepted(ready.lifecycle.create(ACME, BY_BOB))
    assert ordered.attempt.version == NEXT_VERSION
    ready.succeeded(ready.begun(ordered))
    assert ready.state() is TenantState.READY


def test_a_tenant_that_was_deleted_comes_back_without_what_was_said_about_it(world: Orders) -> None:
    world.provision(labels=LABELS, pinned_version=VERSION)
    world.succeeded(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
    world.succeeded(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    assert world.metadata.labels == {}
    assert world.metadata.pinned_version is None
    assert world.metadata.version == NEXT_VERSION


def test_a_tenant_deleted_and_created_any_number_of_times_comes_back_every_time(ready: Orders) -> None:
    for number in (2, 4, 6):  # getQueue may have started those in between before the delete.
        ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
        assert ready.state() is TenantState.DELETED
        ordered = accepted(ready.lifecycle.create(ACME, BY_ADA))
        assert ordered.attempt.number == number
        ready.succeeded(ready.begun(ordered))
        assert ready.state() is TenantState.READY


def test_after_a_failure_creating_is_the_next_attempt(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    assert world.state() is TenantState.FAILED
    ordered = accepted(world.lifecycle.create(ACME, BY_ADA))
    assert ordered.attempt == an_attempt(2, version=NEXT_VERSION)
    world.succeeded(world.begun(ordered))
    assert world.state() is TenantState.READY


def test_a_pinned_tenant_whose_creation_failed_is_created_where_it_is_pinned(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION))))
    ordered = accepted(world.lifecycle.create(ACME, BY_ADA))
    assert ordered.attempt == an_attempt(2, version=VERSION)
    world.succeeded(world.begun(ordered))
    assert world.metadata.pinned_version == VERSION


def test_a_pinned_tenant_whose_queue_has_vanished_is_created_where_it_is_pinned(world: Orders) -> None:
    world.provision(pinned_version=VERSION)
    world.table.forget_queue(ACME, stack_id=stack_arn())
    assert accepted(world.lifecycle.create(ACME, BY_ADA)).attempt.version == VERSION


@pytest.mark.parametrize("explicit", [True, False], ids=["by an operator", "by a repair"])
def test_a_tenant_whose_queue_has_vanished_is_created_at_the_version_that_it_had(world: Orders, explicit: bool) -> None:
    world.provision()
    world.table.forget_queue(ACME, stack_id=stack_arn())
    ordered = accepted(world.lifecycle.create(ACME, BY_ADA, explicit=explicit))
    assert ordered.attempt.version == VERSION
    world.failed(world.begun(ordered))
    again = accepted(world.lifecycle.create(ACME, BY_ADA, explicit=explicit))
    assert again.attempt == an_attempt(3, version=VERSION), "also if its create has failed, which the audit now says"


def test_a_tenant_that_was_deleted_is_created_at_the_current_version(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    assert accepted(ready.lifecycle.create(ACME, BY_ADA)).attempt.version == NEXT_VERSION


def test_a_tenant_whose_pinned_creation_failed_can_be_created_without_the_pin(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION))))
    ordered = accepted(world.lifecycle.create(ACME, BY_ADA, unpin=True))
    assert ordered.attempt.version == NEXT_VERSION
    world.succeeded(world.begun(ordered))
    assert world.metadata.pinned_version is None


def test_there_is_no_pin_to_lift_where_there_is_no_tenant(world: Orders) -> None:
    assert accepted(world.lifecycle.create(ACME, BY_ADA, unpin=True)).attempt.version == NEXT_VERSION
    assert world.metadata.pinned_version is None


def test_another_pin_takes_the_place_of_the_one_that_failed(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION))))
    ordered = accepted(world.lifecycle.create(ACME, replace(BY_ADA, pin=NEXT_VERSION)))
    assert ordered.attempt.version == NEXT_VERSION
    world.begun(ordered)
    assert world.metadata.pinned_version == NEXT_VERSION


def test_a_tenant_whose_delete_failed_half_way_is_created_again(ready: Orders) -> None:
    ready.half_deleted(BY_ADA)
    assert not ready.metadata.published
    assert accepted(ready.lifecycle.create(ACME, BY_ADA)).attempt.operation is Operation.CREATE
