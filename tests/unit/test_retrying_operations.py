"""Operators retry the latest operation of a tenant, if it failed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.ports import LabelEdit
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from tests.fakes import ACME, EXPLICIT, NEXT_VERSION, NOON, QUEUE, VERSION, Orders, an_attempt, an_audit, some_metadata
from tests.unit.ordering import A_SECOND, ADA, BOB, BY_ADA, LABELS, accepted, refused


@pytest.fixture
def world() -> Orders:
    return Orders()


@pytest.fixture
def ready(world: Orders) -> Orders:
    """A tenant at the old version."""
    world.provision()
    return world


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
    assert request == Request(by=BOB, explicit=True, asked_at=NOON + A_SECOND)
    world.succeeded(world.begun(ordered))
    assert (world.metadata.labels, world.metadata.pinned_version) == (LABELS, VERSION)


def test_a_retry_leaves_labels_and_pin_as_they_are_now(world: Orders) -> None:
    asked = Request(by=ADA, labels=LABELS, pin=VERSION)
    world.failed(world.begun(world.lifecycle.create(ACME, asked)))
    world.lifecycle.unpin(ACME, BY_ADA)
    world.lifecycle.label(ACME, LabelEdit({}, tuple(LABELS)), BY_ADA)
    world.succeeded(world.begun(accepted(world.lifecycle.retry(ACME, BOB))))
    assert (world.metadata.labels, world.metadata.pinned_version, world.metadata.version) == ({}, None, VERSION)


def test_a_create_that_has_not_begun_keeps_no_pin_that_was_removed_since(world: Orders) -> None:
    ordered = accepted(world.lifecycle.create(ACME, Request(by=ADA, labels=LABELS, pin=VERSION)))
    world.lifecycle.unpin(ACME, BY_ADA)
    world.succeeded(world.begun(ordered))
    assert (world.metadata.labels, world.metadata.pinned_version, world.metadata.version) == (LABELS, None, VERSION)


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
