"""What operators ask for: what is started, what was so already, what is refused, and that twice is once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from orchestrator.common.errors import QueueOutOfReach, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint, stack_parameters
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted, Changed, OrderResult, Unchanged
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Attempt, Audit, Lock, Operation, Request, Run, Status, TenantState
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeExecutions,
    FakeQueues,
    InMemoryTable,
    Orders,
    a_release,
    an_attempt,
    an_audit,
    execution_arn,
    parameters_of,
    some_metadata,
    stack_arn,
)

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
BOB = "arn:aws:sts::000000000000:assumed-role/operator/bob"
BY_ADA, BY_BOB = Request(by=ADA), Request(by=BOB)
LATER_VERSION = "0.3.0"
UNPUBLISHED_VERSION = "9.9.9"
A_SECOND = timedelta(seconds=1)
LABELS = {"team": "billing"}
DEAD_LETTERS = "https://sqs.eu-west-1.amazonaws.com/0/acme-dead-letters"


@pytest.fixture
def world() -> Orders:
    return Orders()


@pytest.fixture
def ready(world: Orders) -> Orders:
    """A tenant at the old version."""
    world.provision()
    return world


def accepted(ordered: OrderResult) -> Accepted:
    assert isinstance(ordered, Accepted)
    return ordered


def refused(ordered: OrderResult, kind: Refusal) -> Refused:
    assert isinstance(ordered, Refused)
    assert ordered.kind is kind
    assert "acme" in ordered.reason
    return ordered


def already_so(ordered: OrderResult) -> str:
    assert isinstance(ordered, Unchanged)
    assert "acme" in ordered.reason
    return ordered.reason


def changed(ordered: OrderResult) -> str:
    assert isinstance(ordered, Changed)
    assert ordered.before != ordered.after
    return ordered.reason


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
    for number in (1, 2, 3):
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


# Upgrade


def test_a_tenant_is_upgraded_to_the_current_version_unless_another_is_named(ready: Orders) -> None:
    ordered = accepted(ready.lifecycle.upgrade(ACME, None, BY_ADA))
    assert ordered.attempt == an_attempt(operation=Operation.UPDATE, version=NEXT_VERSION)
    ready.succeeded(ready.begun(ordered))
    assert ready.metadata.version == NEXT_VERSION


def test_a_tenant_is_upgraded_to_the_version_that_is_named(ready: Orders) -> None:
    ready.table.record_release(a_release("0.3.0"))
    assert accepted(ready.lifecycle.upgrade(ACME, "0.3.0", BY_ADA)).attempt.version == "0.3.0"


def test_a_pinned_tenant_is_upgraded_to_its_pin_unless_another_version_is_named(world: Orders) -> None:
    world.provision(pinned_version="0.1.5")
    world.table.record_release(a_release("0.1.5"))
    refused(world.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA), Refusal.PINNED)
    assert not world.executions.started
    assert accepted(world.lifecycle.upgrade(ACME, None, BY_ADA)).attempt.version == "0.1.5"


def test_a_tenant_that_is_there_already_is_not_updated(world: Orders) -> None:
    world.provision(NEXT_VERSION)
    assert NEXT_VERSION in already_so(world.lifecycle.upgrade(ACME, None, BY_ADA))
    assert NEXT_VERSION in already_so(world.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA))
    assert not world.executions.started


@pytest.mark.parametrize("key", [None, "another key"])
def test_a_tenant_is_upgraded_to_where_it_is_if_its_stack_would_be_made_with_another_key(key: str | None) -> None:
    world = Orders()
    knows = world.table.record_release(a_release(LATER_VERSION, parameters=[KMS_KEY_PARAMETER]))
    world.provision(LATER_VERSION, deployed=fingerprint(knows, parameters_of(ACME, knows)))
    same = world.lifecycle
    assert LATER_VERSION in already_so(same.upgrade(ACME, LATER_VERSION, BY_ADA))
    now = partial(stack_parameters, service_token=parameters_of(ACME)["MetadataServiceToken"], kms_key=key)
    ordered = accepted(replace(same, parameters=now).upgrade(ACME, LATER_VERSION, BY_ADA))
    assert (ordered.attempt.operation, ordered.attempt.version) == (Operation.UPDATE, LATER_VERSION)


def test_a_tenant_at_a_release_without_a_key_need_not_be_upgraded_to_where_it_is(world: Orders) -> None:
    world.provision(VERSION, deployed=fingerprint(a_release(VERSION), parameters_of(ACME)))
    now = partial(stack_parameters, service_token=parameters_of(ACME)["MetadataServiceToken"], kms_key="another key")
    already_so(replace(world.lifecycle, parameters=now).upgrade(ACME, VERSION, BY_ADA))


def test_a_tenant_whose_stack_may_be_made_with_any_key_is_upgraded_to_where_it_is(world: Orders) -> None:
    world.table.record_release(a_release(LATER_VERSION, parameters=[KMS_KEY_PARAMETER]))
    world.provision(LATER_VERSION, deployed=None)
    accepted(world.lifecycle.upgrade(ACME, LATER_VERSION, BY_ADA))


def test_a_tenant_whose_stack_may_be_made_from_anything_but_takes_no_key_is_not_upgraded(world: Orders) -> None:
    world.table.record_release(a_release(LATER_VERSION))
    world.provision(LATER_VERSION, deployed=None)
    already_so(world.lifecycle.upgrade(ACME, LATER_VERSION, BY_ADA))


def test_a_downgrade_has_to_be_allowed(world: Orders) -> None:
    world.provision(NEXT_VERSION)
    refused(world.lifecycle.upgrade(ACME, VERSION, BY_ADA), Refusal.DOWNGRADE)
    refused(world.lifecycle.upgrade(ACME, VERSION, replace(BY_ADA, allow_replacement=True)), Refusal.DOWNGRADE)
    assert not world.executions.started
    ordered = accepted(world.lifecycle.upgrade(ACME, VERSION, replace(BY_ADA, allow_downgrade=True)))
    assert ordered.attempt.version == VERSION


def test_a_pin_behind_the_tenant_is_a_downgrade_too(world: Orders) -> None:
    world.provision(NEXT_VERSION, pinned_version=VERSION)
    refused(world.lifecycle.upgrade(ACME, None, BY_ADA), Refusal.DOWNGRADE)


@pytest.mark.parametrize("allowed", [Request(), Request(allow_downgrade=True, allow_replacement=True)])
def test_an_upgrade_to_an_unpublished_release_is_refused(ready: Orders, allowed: Request) -> None:
    refused(ready.lifecycle.upgrade(ACME, UNPUBLISHED_VERSION, allowed), Refusal.UNKNOWN_RELEASE)
    assert not ready.executions.started


def test_an_unknown_tenant_is_not_upgraded(world: Orders) -> None:
    refused(world.lifecycle.upgrade(ACME, None, BY_ADA), Refusal.UNKNOWN_TENANT)
    assert not world.executions.started


def test_a_deleted_tenant_is_not_upgraded(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    refused(ready.lifecycle.upgrade(ACME, None, BY_ADA), Refusal.TENANT_DELETED)


def test_a_tenant_without_a_queue_in_service_is_not_upgraded(world: Orders) -> None:
    world.failed(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    refused(world.lifecycle.upgrade(ACME, None, BY_ADA), Refusal.NOT_PROVISIONED)
    assert len(world.executions.started) == 1


def test_after_a_failed_update_an_update_to_the_tenants_own_version_repairs_its_stack(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    assert ready.state() is TenantState.UPDATE_FAILED
    assert ready.metadata.version == VERSION
    ordered = accepted(ready.lifecycle.upgrade(ACME, VERSION, BY_ADA))
    assert ordered.attempt.version == VERSION
    ready.succeeded(ready.begun(ordered))
    assert ready.state() is TenantState.READY
    already_so(ready.lifecycle.upgrade(ACME, VERSION, BY_ADA))


def test_after_a_failed_update_upgrading_is_the_next_attempt(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    assert accepted(ready.lifecycle.upgrade(ACME, None, BY_ADA)).attempt.number == 2


def test_an_update_there_and_back_and_there_again_is_three_attempts_of_which_none_is_lost(ready: Orders) -> None:
    back = replace(BY_ADA, allow_downgrade=True)
    for version, number in [(NEXT_VERSION, 1), (VERSION, 1), (NEXT_VERSION, 2)]:
        ordered = accepted(ready.lifecycle.upgrade(ACME, version, back))
        assert ordered.attempt == an_attempt(number, operation=Operation.UPDATE, version=version)
        ready.succeeded(ready.begun(ordered))
        assert ready.metadata.version == version


# Retry


def test_a_failed_operation_is_retried_with_the_same_options(ready: Orders) -> None:
    asked = Request(by=ADA, allow_replacement=True, allow_downgrade=True)
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, NEXT_VERSION, asked)))
    ordered = accepted(ready.lifecycle.retry(ACME, BOB))
    assert ordered.attempt == an_attempt(2, operation=Operation.UPDATE, version=NEXT_VERSION)
    _, request = ready.executions.started[-1]
    assert request == replace(asked, by=BOB, version=NEXT_VERSION)


def test_a_failed_create_is_tried_again_with_its_labels_and_pin(world: Orders) -> None:
    asked = Request(by=ADA, labels=LABELS, pin=VERSION)
    world.failed(world.begun(world.lifecycle.create(ACME, asked)))
    ordered = accepted(world.lifecycle.retry(ACME, BOB))
    assert ordered.attempt == an_attempt(2, version=VERSION)
    _, request = world.executions.started[-1]
    # As of when it was asked for: a delete that was asked for since is not overruled.
    assert request == replace(asked, by=BOB, explicit=True, asked_at=NOON + A_SECOND)


def test_a_failed_create_that_getqueue_had_started_is_tried_again(world: Orders) -> None:
    answer = world.get_queue(ACME, by="a platform")
    assert isinstance(answer, Provisioning)
    world.failed(world.begun(Accepted(an_attempt(version=NEXT_VERSION), answer.execution)))
    ordered = accepted(world.lifecycle.retry(ACME, ADA))
    assert ordered.attempt == an_attempt(2, version=NEXT_VERSION)
    world.succeeded(world.begun(ordered))
    assert world.state() is TenantState.READY


def test_a_forced_delete_that_failed_half_way_is_retried_with_force(ready: Orders) -> None:
    ready.queues.held[QUEUE.url] = Messages(1, 0, 0)
    ready.half_deleted(Request(by=ADA, force=True))
    ordered = accepted(ready.lifecycle.retry(ACME, BOB))
    assert ordered.attempt == an_attempt(2, operation=Operation.DELETE, version=NEXT_VERSION)
    _, request = ready.executions.started[-1]
    assert request.force


def test_retrying_a_delete_without_force_is_refused_while_there_are_messages(ready: Orders) -> None:
    ready.half_deleted(BY_ADA)
    ready.queues.held[QUEUE.url] = Messages(1, 0, 0)
    refused(ready.lifecycle.retry(ACME, BOB), Refusal.NOT_EMPTY)


def test_it_is_the_latest_operation_that_is_tried_again(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    ready.half_deleted(BY_ADA)
    assert accepted(ready.lifecycle.retry(ACME, BOB)).attempt.operation is Operation.DELETE


def test_after_a_delete_that_left_the_tenant_in_service_a_retry_is_refused(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    assert ready.metadata.published
    answer = refused(ready.lifecycle.retry(ACME, BOB), Refusal.NOTHING_TO_RETRY)
    assert answer.reason.startswith(
        "Tenant acme: its latest operation, a delete, failed and left the tenant in service"
    )
    assert answer.reason.endswith("berth delete acme")
    assert len(ready.executions.started) == 1


def test_after_such_a_delete_a_retry_does_not_run_an_older_update(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    ready.failed(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    assert ready.state() is TenantState.UPDATE_FAILED
    answer = refused(ready.lifecycle.retry(ACME, BOB), Refusal.NOTHING_TO_RETRY)
    assert answer.reason.endswith(f"berth upgrade acme --to {NEXT_VERSION}")
    assert len(ready.executions.started) == 2


def test_an_update_that_failed_after_such_a_delete_is_tried_again(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    assert accepted(ready.lifecycle.retry(ACME, BOB)).attempt.operation is Operation.UPDATE


def test_a_failure_that_a_later_success_has_overcome_is_not_tried_again(ready: Orders) -> None:
    ready.failed(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    ready.succeeded(ready.begun(ready.lifecycle.upgrade(ACME, VERSION, BY_ADA)))
    refused(ready.lifecycle.retry(ACME, BOB), Refusal.NOTHING_TO_RETRY)
    assert len(ready.executions.started) == 2


def test_there_is_nothing_to_retry_on_a_tenant_that_is_well(ready: Orders) -> None:
    refused(ready.lifecycle.retry(ACME, ADA), Refusal.NOTHING_TO_RETRY)
    assert not ready.executions.started


def test_a_retry_does_not_restore_a_deleted_tenant(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    refused(ready.lifecycle.retry(ACME, ADA), Refusal.NOTHING_TO_RETRY)


def test_a_create_that_was_refused_because_the_tenant_was_deleted_is_not_made_explicit_by_a_retry(
    ready: Orders,
) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    ready.table.plant_audit(
        an_audit(Status.FAILURE, version=NEXT_VERSION, at=ready.clock.now() + A_SECOND, request=Request("a platform"))
    )
    refused(ready.lifecycle.retry(ACME, ADA), Refusal.TENANT_DELETED)
    assert len(ready.executions.started) == 1


def test_an_explicit_create_of_a_deleted_tenant_that_failed_at_once_stays_explicit(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    ready.table.plant_audit(
        an_audit(Status.FAILURE, version=NEXT_VERSION, at=ready.clock.now() + A_SECOND, request=EXPLICIT)
    )
    accepted(ready.lifecycle.retry(ACME, ADA))
    _, request = ready.executions.started[-1]
    assert request.explicit


def test_a_tenant_of_which_nothing_but_a_refused_delete_is_recorded_has_nothing_to_retry(world: Orders) -> None:
    world.table.plant_metadata(some_metadata())
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.DELETE))
    refused(world.lifecycle.retry(ACME, ADA), Refusal.NOTHING_TO_RETRY)


def test_an_unknown_tenant_cannot_be_retried(world: Orders) -> None:
    refused(world.lifecycle.retry(ACME, ADA), Refusal.UNKNOWN_TENANT)


def test_a_retry_of_a_running_operation_returns_that_operation(ready: Orders) -> None:
    ordered = accepted(ready.lifecycle.upgrade(ACME, None, replace(BY_ADA, allow_replacement=True)))
    ready.begun(ordered)
    assert ready.lifecycle.retry(ACME, BOB) == ordered
    assert len(ready.executions.started) == 1


def test_an_operation_that_died_is_retried(ready: Orders) -> None:
    ready.died(ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA)))
    ordered = accepted(ready.lifecycle.retry(ACME, BOB))
    assert ordered.attempt.number == 2
    ready.succeeded(ready.begun(ordered))
    assert ready.metadata.version == NEXT_VERSION


@pytest.mark.parametrize(
    ("operation", "expected"),
    [(Operation.CREATE, NEXT_VERSION), (Operation.DELETE, NEXT_VERSION)],
)
def test_a_failure_from_before_versions_is_tried_again_at_the_current_one(
    world: Orders, operation: Operation, expected: str
) -> None:
    world.table.plant_audit(an_audit(Status.FAILURE, operation, version=None), numbered=False)
    ordered = accepted(world.lifecycle.retry(ACME, ADA))
    assert (ordered.attempt.operation, ordered.attempt.version) == (operation, expected)
    world.begun(ordered)


# Delete


def test_a_tenant_without_messages_is_deleted(ready: Orders) -> None:
    ordered = accepted(ready.lifecycle.delete(ACME, BY_ADA))
    assert ordered.attempt == an_attempt(operation=Operation.DELETE, version=NEXT_VERSION)
    ready.succeeded(ready.begun(ordered))
    assert ready.state() is TenantState.DELETED


def test_there_is_nothing_to_delete_where_there_is_nothing(world: Orders) -> None:
    already_so(world.lifecycle.delete(ACME, BY_ADA))
    assert not world.executions.started


def test_a_tenant_that_was_deleted_is_not_deleted_again(ready: Orders) -> None:
    ready.succeeded(ready.begun(ready.lifecycle.delete(ACME, BY_ADA)))
    for request in (BY_ADA, replace(BY_BOB, force=True), replace(BY_BOB, drain_seconds=60)):
        already_so(ready.lifecycle.delete(ACME, request))
    assert len(ready.executions.started) == 1


@pytest.mark.parametrize("history", ["failed to be created", "vanished"])
def test_what_is_left_of_a_tenant_can_be_deleted(world: Orders, history: str) -> None:
    if history == "vanished":
        world.provision()
        world.table.forget_queue(ACME, stack_id=stack_arn())
    else:
        world.failed(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    accepted(world.lifecycle.delete(ACME, BY_ADA))


def test_a_tenant_whose_operations_were_never_recorded_can_be_deleted(world: Orders) -> None:
    world.table.plant_metadata(some_metadata())
    accepted(world.lifecycle.delete(ACME, BY_ADA))


def test_a_tenant_that_has_no_metadata_but_may_have_a_stack_can_be_deleted(world: Orders) -> None:
    world.table.plant_audit(an_audit(Status.FAILURE, version=None), numbered=False)
    accepted(world.lifecycle.delete(ACME, BY_ADA))


@pytest.mark.parametrize("request_", [BY_ADA, replace(BY_ADA, force=True)], ids=["", "by force"])
def test_a_tenant_whose_stack_is_not_recorded_has_to_be_adopted_before_its_delete(
    world: Orders, request_: Request
) -> None:
    world.table.plant_metadata(replace(some_metadata(), stack_id=None))
    refused = world.lifecycle.delete(ACME, request_)
    assert isinstance(refused, Refused)
    assert (refused.kind, "berth adopt" in refused.reason) == (Refusal.NOT_ADOPTED, True)
    assert not world.executions.started


def test_a_tenant_whose_stack_is_not_recorded_is_not_upgraded(world: Orders) -> None:
    world.table.plant_metadata(replace(some_metadata(), stack_id=None))
    response = refused(world.lifecycle.upgrade(ACME, None, BY_ADA), Refusal.NOT_ADOPTED)
    assert "was not upgraded" in response.reason
    assert not world.executions.started


def test_messages_of_a_tenant_whose_stack_is_out_of_reach_are_not_counted_before_the_delete(
    world: Orders,
) -> None:
    class Denied(FakeQueues):
        def messages(self, url: str) -> Messages | None:
            raise QueueOutOfReach(f"Berth has no permission to read queue {url}")

    world.queues = Denied()
    stack_id = "arn:aws:cloudformation:eu-west-1:000000000000:stack/old-tenant-acme/1"
    world.table.plant_metadata(replace(some_metadata(), stack_id=stack_id))
    accepted(world.lifecycle.delete(ACME, BY_ADA))


def test_a_tenant_with_messages_is_not_deleted_and_every_count_is_told(world: Orders) -> None:
    world.provision(outbound_queue=OTHER_QUEUE)
    world.queues.dead_letter_queues[QUEUE.url] = DEAD_LETTERS
    world.queues.held = {
        QUEUE.url: Messages(3, 2, 1),
        DEAD_LETTERS: Messages(7, 0, 0),
        OTHER_QUEUE.url: Messages(0, 0, 5),
    }
    response = refused(world.lifecycle.delete(ACME, BY_ADA), Refusal.NOT_EMPTY)
    assert response.details == {
        "messages": {
            "inbound queue": {"visible": 3, "inFlight": 2, "delayed": 1},
            "dead-letter queue": {"visible": 7, "inFlight": 0, "delayed": 0},
            "outbound queue": {"visible": 0, "inFlight": 0, "delayed": 5},
        }
    }
    assert "3 visible, 2 in flight, 1 delayed" in response.reason
    assert not world.executions.started
    assert world.state() is TenantState.READY
    assert world.metadata.published


@pytest.mark.parametrize("spec", [{"force": True}, {"drain_seconds": 60}])
def test_force_and_drain_start_the_delete_of_a_tenant_with_messages(ready: Orders, spec: dict[str, int]) -> None:
    ready.queues.held[QUEUE.url] = Messages(1, 0, 0)
    accepted(ready.lifecycle.delete(ACME, replace(BY_ADA, **spec)))  # type: ignore[arg-type]
    _, request = ready.executions.started[-1]
    assert (request.force, request.drain_seconds) == (spec.get("force", False), spec.get("drain_seconds", 0))


@pytest.mark.parametrize("spec", [{}, {"drain_seconds": 60}])
def test_a_tenant_with_unfinished_work_is_not_deleted_because_draining_waits_for_queues_only(
    ready: Orders, spec: dict[str, int]
) -> None:
    ready.unfinished_work.held[ACME] = {"inbox of events": 2}
    response = refused(ready.lifecycle.delete(ACME, replace(BY_ADA, **spec)), Refusal.NOT_EMPTY)  # type: ignore[arg-type]
    assert response.details == {"messages": {"inbox of events": {"visible": 2, "inFlight": 0, "delayed": 0}}}
    assert response.reason.endswith("Draining waits for queues only.")
    assert not ready.executions.started


def test_force_starts_the_delete_of_a_tenant_with_unfinished_work(ready: Orders) -> None:
    ready.unfinished_work.held[ACME] = {"inbox of events": 2}
    accepted(ready.lifecycle.delete(ACME, replace(BY_ADA, force=True)))


def test_other_wishes_do_not_delete_messages(ready: Orders) -> None:
    ready.queues.held[QUEUE.url] = Messages(1, 0, 0)
    asked = replace(BY_ADA, explicit=True, allow_replacement=True, allow_downgrade=True)
    refused(ready.lifecycle.delete(ACME, asked), Refusal.NOT_EMPTY)


def test_a_queue_that_no_longer_exists_does_not_prevent_a_delete(ready: Orders) -> None:
    ready.queues.held[QUEUE.url] = Messages(1, 0, 0)
    ready.queues.gone.add(QUEUE.url)
    accepted(ready.lifecycle.delete(ACME, BY_ADA))


def test_a_pin_does_not_keep_a_tenant_from_being_deleted(world: Orders) -> None:
    world.provision(pinned_version=VERSION)
    accepted(world.lifecycle.delete(ACME, BY_ADA))


def test_a_delete_needs_no_release() -> None:
    world = Orders()
    world.provision()
    accepted(replace(world.lifecycle, version=UNPUBLISHED_VERSION).delete(ACME, BY_ADA))


# Busy


def order(world: Orders, operation: Operation, request: Request = BY_BOB) -> OrderResult:
    match operation:
        case Operation.CREATE:
            return world.lifecycle.create(ACME, request)
        case Operation.UPDATE:
            return world.lifecycle.upgrade(ACME, None, request)
        case Operation.DELETE:
            return world.lifecycle.delete(ACME, request)


PAIRS = [
    (going_on, asked_for)
    for going_on in Operation
    for asked_for in Operation
    # A tenant that is there is not created, whatever is going on: it is there.
    if going_on is not asked_for and (going_on, asked_for) != (Operation.UPDATE, Operation.CREATE)
]


def going_on(world: Orders, operation: Operation) -> Run:
    if operation is not Operation.CREATE:
        world.provision()
    return world.begun(order(world, operation, BY_ADA))


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_while_an_operation_is_running_others_are_refused_as_busy_with_its_name(
    world: Orders, first: Operation, second: Operation
) -> None:
    run = going_on(world, first)
    response = refused(order(world, second), Refusal.BUSY)
    release = None if first is Operation.DELETE else NEXT_VERSION
    assert response.details == {"operation": first.value, "version": release, "execution": run.execution}
    assert f"busy: {first}{f' {release}' if release else ''} is running" in response.reason
    assert len(world.executions.started) == 1


@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_the_holder_of_the_lock_is_busy_for_as_long_as_it_runs(
    world: Orders, first: Operation, second: Operation
) -> None:
    going_on(world, first)
    world.clock.advance(timedelta(minutes=29))
    refused(order(world, second), Refusal.BUSY)


@pytest.mark.parametrize("first", list(Operation))
def test_a_dead_holder_of_the_lock_is_not_busy(world: Orders, first: Operation) -> None:
    run = going_on(world, first)
    world.died(run)
    ordered = accepted(world.lifecycle.delete(ACME, BY_BOB))
    assert ordered.execution != run.execution
    world.succeeded(world.begun(ordered))
    assert world.state() is TenantState.DELETED


def test_a_holder_is_not_called_dead_before_it_had_time_to_be_seen(ready: Orders) -> None:
    run = ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA))
    ready.executions.end(run.execution)
    ready.clock.advance(CHECK_HOLDER_AFTER)
    refused(ready.lifecycle.delete(ACME, BY_BOB), Refusal.BUSY)
    assert run.execution not in ready.executions.asked_about


def test_an_upgrade_to_another_version_is_refused_as_busy(ready: Orders) -> None:
    ready.table.record_release(a_release("0.3.0"))
    ready.begun(ready.lifecycle.upgrade(ACME, None, BY_ADA))
    refused(ready.lifecycle.upgrade(ACME, "0.3.0", BY_ADA), Refusal.BUSY)


def test_a_create_at_another_version_is_refused_as_busy(world: Orders) -> None:
    world.begun(world.lifecycle.create(ACME, BY_ADA))
    refused(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION)), Refusal.BUSY)


# Twice is once


@pytest.mark.parametrize("has_begun", [False, True])
@pytest.mark.parametrize("operation", list(Operation))
def test_asking_twice_starts_once(world: Orders, operation: Operation, has_begun: bool) -> None:
    if operation is not Operation.CREATE:
        world.provision()
    first = accepted(order(world, operation, BY_ADA))
    if has_begun:
        world.begun(first)
    assert order(world, operation, BY_BOB) == first
    assert order(world, operation, BY_ADA) == first
    assert len(world.executions.started) == 1


@pytest.mark.parametrize(
    ("operation", "specs"),
    [
        (Operation.CREATE, {"labels": LABELS}),
        (Operation.CREATE, {"pin": NEXT_VERSION}),
        (Operation.UPDATE, {"allow_replacement": True}),
        (Operation.DELETE, {"drain_seconds": 600}),
        (Operation.DELETE, {"force": True}),
    ],
)
def test_the_same_request_with_the_same_options_or_none_returns_the_running_operation(
    world: Orders, operation: Operation, specs: dict[str, object]
) -> None:
    if operation is not Operation.CREATE:
        world.provision()
    wishful = replace(BY_ADA, **specs)  # type: ignore[arg-type]
    first = accepted(order(world, operation, wishful))
    world.begun(first)
    assert order(world, operation, replace(wishful, by=BOB)) == first
    assert order(world, operation, BY_BOB) == first
    assert len(world.executions.started) == 1


@pytest.mark.parametrize(
    ("operation", "before", "now"),
    [
        (Operation.DELETE, {"drain_seconds": 600}, {"force": True}),
        (Operation.DELETE, {"drain_seconds": 600}, {"drain_seconds": 60}),
        (Operation.DELETE, {}, {"force": True}),
        (Operation.UPDATE, {}, {"allow_replacement": True}),
        (Operation.UPDATE, {}, {"allow_downgrade": True}),
        (Operation.CREATE, {}, {"labels": LABELS}),
        (Operation.CREATE, {"labels": LABELS}, {"labels": {"team": "search"}}),
        (Operation.CREATE, {"labels": LABELS}, {"labels": {}}),
        (Operation.CREATE, {}, {"pin": NEXT_VERSION}),
    ],
)
def test_the_same_request_with_other_options_is_refused_as_busy(
    world: Orders, operation: Operation, before: dict[str, object], now: dict[str, object]
) -> None:
    if operation is not Operation.CREATE:
        world.provision()
    run = world.begun(order(world, operation, replace(BY_ADA, **before)))  # type: ignore[arg-type]
    response = refused(order(world, operation, replace(BY_ADA, **now)), Refusal.BUSY)  # type: ignore[arg-type]
    assert response.details["execution"] == run.execution
    assert len(world.executions.started) == 1


def test_a_delete_is_the_same_delete_also_after_the_control_plane_has_moved_on(ready: Orders) -> None:
    before = replace(ready.lifecycle, version=VERSION)
    first = accepted(before.delete(ACME, BY_ADA))
    ready.begun(first)
    assert ready.lifecycle.delete(ACME, BY_BOB) == first
    assert len(ready.executions.started) == 1


@pytest.mark.parametrize(
    ("recorded", "operation", "expected"),
    [
        (an_audit(Status.FAILURE, version=NEXT_VERSION, attempt=7), Operation.CREATE, 8),
        (an_audit(Status.FAILURE, version=VERSION, attempt=7), Operation.CREATE, 1),
        (an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, attempt=7), Operation.UPDATE, 8),
        (an_audit(Status.FAILURE, Operation.UPDATE, version=VERSION, attempt=7), Operation.UPDATE, 1),
        (an_audit(Status.FAILURE, Operation.DELETE, version=NEXT_VERSION, attempt=7), Operation.DELETE, 8),
        (an_audit(Status.FAILURE, Operation.DELETE, version=VERSION, attempt=7), Operation.DELETE, 8),
        (an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, attempt=7), Operation.DELETE, 1),
    ],
)
def test_attempts_are_counted_on_also_when_step_functions_has_forgotten_the_earlier_ones(
    world: Orders, recorded: Audit, operation: Operation, expected: int
) -> None:
    """It does after 90 days. An attempt with an old number would be started, and refused by what is recorded."""
    if operation is not Operation.CREATE:
        world.table.plant_metadata(some_metadata())
    world.table.plant_audit(recorded)
    ordered = accepted(order(world, operation))
    assert ordered.attempt.number == expected
    world.begun(ordered)


def test_attempts_that_ended_without_a_trace_are_skipped(ready: Orders) -> None:
    for number in (1, 2, 3):
        attempt = an_attempt(number, operation=Operation.UPDATE, version=NEXT_VERSION)
        ready.executions.inputs[execution_arn(attempt.name)] = {}
    ordered = accepted(ready.lifecycle.upgrade(ACME, None, BY_ADA))
    assert ordered.attempt.number == 4
    ready.begun(ordered)


def test_an_attempt_that_ends_during_the_request_is_followed_by_the_next() -> None:
    """It begins right after the records were read, and has succeeded when the same attempt is to be started."""

    class ReadTooEarly(InMemoryTable):
        early = False

        def lock(self, tenant: TenantId) -> Lock | None:
            return None if self.early else super().lock(tenant)

        def audits(self, tenant: TenantId) -> Sequence[Audit]:
            return [] if self.early else super().audits(tenant)

    class EndsJustNow(FakeExecutions):
        def start(self, attempt: Attempt, request: Request) -> str | None:
            if table.early:
                table.early = False
                happening.succeeded(run)
            return super().start(attempt, request)

    table = ReadTooEarly()
    happening = Orders(table=table, executions=EndsJustNow())
    happening.provision()
    run = happening.begun(happening.lifecycle.upgrade(ACME, None, BY_ADA))
    table.early = True
    already_so(happening.lifecycle.upgrade(ACME, None, BY_BOB))
    assert len(happening.executions.started) == 1


@pytest.mark.parametrize("operation", list(Operation))
def test_after_twenty_five_ended_attempts_an_error_names_the_executions(world: Orders, operation: Operation) -> None:
    class AllEnded(FakeExecutions):
        tried = 0

        def start(self, *_asked: object) -> str | None:
            self.tried += 1
            return None

    executions = AllEnded()
    world = Orders(executions=executions)
    if operation is not Operation.CREATE:
        world.provision()
    with pytest.raises(Unsettled, match="25 attempts") as raised:
        order(world, operation)
    assert executions.tried == 25
    assert an_attempt(25, operation=operation, version=NEXT_VERSION).name in str(raised.value)


def test_tenants_do_not_mind_each_other(ready: Orders) -> None:
    """Ids that differ by case only are different tenants."""
    other = TenantId.parse("ACME")
    ready.begun(ready.lifecycle.delete(ACME, BY_ADA))
    ordered = accepted(ready.lifecycle.create(other, BY_ADA))
    ready.begun(ordered)
    assert ordered.attempt.tenant == other
    assert ready.state() is TenantState.DELETING
