"""Operators upgrade and delete tenants; one operation at a time, and a request that is repeated starts one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial

import pytest

from orchestrator.common.errors import QueueOutOfReach, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.published import fingerprint, stack_parameters
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import OrderResult
from orchestrator.tenants.records import Attempt, Audit, Lock, Operation, Request, Run, Status, TenantState
from tests.fakes import (
    ACME,
    NEXT_VERSION,
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
from tests.unit.ordering import BOB, BY_ADA, BY_BOB, LABELS, UNPUBLISHED_VERSION, accepted, already_so, refused

LATER_VERSION = "0.3.0"
DEAD_LETTERS = "https://sqs.eu-west-1.amazonaws.com/0/acme-dead-letters"


@pytest.fixture
def world() -> Orders:
    return Orders()


@pytest.fixture
def ready(world: Orders) -> Orders:
    """A tenant at the old version."""
    world.provision()
    return world


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
def test_the_remains_of_a_tenant_can_be_deleted(world: Orders, history: str) -> None:
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
    request = replace(BY_ADA, **specs)  # type: ignore[arg-type]
    first = accepted(order(world, operation, request))
    world.begun(first)
    assert order(world, operation, replace(request, by=BOB)) == first
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
