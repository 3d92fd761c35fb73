"""Custom::TenantQueue: asked again and again until there is an answer, and the answer is true."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.decisions import FleetFull, Limited, TooManyCreates
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.records import Metadata, Operation, Request, Run, Status, TenantState
from orchestrator.tenants.resource_requests import Claim, Kind, OnDelete, TenantQueueRequest
from orchestrator.tenants.stack_ports import ResourceState
from orchestrator.tenants.stack_resources import Requester, StackResource
from orchestrator.tenants.tenant_queue import (
    CONSISTENT_WITHIN,
    PATIENCE,
    Answer,
    AnsweredBefore,
    NotConfirmed,
    NotProvided,
    NotProvidedBefore,
    Provided,
    ProvidedBefore,
    Waiting,
    settle,
)
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    FakeResources,
    InMemoryTable,
    Orders,
    a_resource,
    an_audit,
    some_metadata,
)
from tests.unit.ordering import A_SECOND, ADA, BY_ADA, LABELS, UNPUBLISHED_VERSION

RESOURCE = a_resource()
OTHER_RESOURCE = a_resource("OtherQueue")
OTHER = TenantId.parse("other")


def asks(
    kind: Kind,
    tenant: TenantId = ACME,
    *,
    by: Requester = RESOURCE,
    on_delete: OnDelete = OnDelete.RETAIN,
    replaces: TenantId | None = None,
    labels: dict[str, str] | None = None,
    pin: str | None = None,
) -> TenantQueueRequest:
    resource = None if isinstance(by, str) else by
    request = Request(by=str(by), resource=resource, labels=labels, pin=pin)
    return TenantQueueRequest(kind, tenant, request, on_delete, replaces)


CREATE, UPDATE = asks(Kind.CREATE), asks(Kind.UPDATE)
RETAIN = asks(Kind.DELETE)
DELETE = asks(Kind.DELETE, on_delete=OnDelete.DELETE)


class Asked(Orders):
    """A control plane that is asked at noon, unless a test says otherwise."""

    since: datetime = NOON

    def settle(self, asked: TenantQueueRequest) -> Answer:
        return settle(asked, since=self.since, lifecycle=self.tenant_queue_lifecycle)

    def now_asked(self) -> None:
        """Ignore the calls so far."""
        self.clock.advance(A_SECOND)
        self.since = self.clock.now()

    def latest(self) -> Accepted:
        """The execution that was started last, to be gone on with."""
        attempt, _ = self.executions.started[-1]
        execution = self.executions.start(attempt, Request())
        assert execution is not None
        return Accepted(attempt, execution)

    def created_by(self, asked: TenantQueueRequest) -> None:
        """The tenant is there, and this resource has asked for it."""
        assert self.settle(asked) == Waiting()
        self.succeeded(self.begun(self.latest()))
        self.stacks.plant_done(asked.tenant, version=NEXT_VERSION)
        self.now_asked()


@pytest.fixture
def world() -> Asked:
    return Asked()


def why_not(answer: Answer | AnsweredBefore | NotConfirmed) -> str:
    assert isinstance(answer, NotProvided)
    assert "acme" in answer.reason
    return answer.reason


def test_a_delete_with_a_time_in_the_future_does_not_win_over_later_creates(world: Asked) -> None:
    """Whoever may invoke the function can say when the request came."""
    world.created_by(CREATE)
    world.since = NOON + timedelta(days=365)
    assert world.settle(DELETE) == Waiting()
    world.succeeded(world.begun(world.latest()))
    created = world.begun(world.lifecycle.create(ACME, BY_ADA))
    assert created.attempt.operation is Operation.CREATE


# Create and update


@pytest.mark.parametrize("asked", [CREATE, UPDATE, asks(Kind.UPDATE, replaces=OTHER)])
def test_a_tenant_that_is_not_there_is_created_and_waited_for(world: Asked, asked: TenantQueueRequest) -> None:
    assert world.settle(asked) == Waiting()
    run = world.begun(world.latest())
    assert run.attempt.operation is Operation.CREATE
    assert run.attempt.version == NEXT_VERSION
    same_tenant = asked == UPDATE
    assert run.request == replace(asked.request, explicit=not same_tenant, asked_at=NOON)
    assert world.settle(asked) == Waiting()
    world.succeeded(run)
    assert world.settle(asked) == Provided(QUEUE)
    assert len(world.executions.started) == 1


@pytest.mark.parametrize("asked", [CREATE, UPDATE, asks(Kind.UPDATE, replaces=OTHER)])
def test_a_tenant_that_is_there_is_provided_at_once_and_left_as_it_is(world: Asked, asked: TenantQueueRequest) -> None:
    world.provision()
    before = world.metadata
    assert world.settle(asked) == Provided(QUEUE)
    assert world.metadata == before
    assert not world.executions.started


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.UPDATE])
def test_labels_and_pin_are_set_on_a_tenant_that_is_there(world: Asked, kind: Kind) -> None:
    world.provision(created_by=RESOURCE)
    assert world.settle(asks(kind, labels=LABELS, pin=VERSION)) == Provided(QUEUE)
    assert world.metadata.labels == LABELS
    assert world.metadata.pinned_version == VERSION
    assert not world.executions.started


def test_a_resource_that_names_no_version_any_more_lifts_its_pin(world: Asked) -> None:
    world.provision(created_by=RESOURCE)
    world.settle(asks(Kind.CREATE, pin=VERSION))
    assert world.settle(replace(asks(Kind.UPDATE), unpin=True)) == Provided(QUEUE)
    assert world.metadata.pinned_version is None


def test_a_new_tenant_is_created_at_the_requested_version(world: Asked) -> None:
    asked = asks(Kind.CREATE, pin=VERSION, labels=LABELS)
    world.settle(asked)
    run = world.begun(world.latest())
    assert run.attempt.version == VERSION
    world.succeeded(run)
    assert world.settle(asked) == Provided(QUEUE)
    assert world.metadata.pinned_version == VERSION


@pytest.mark.parametrize("there", [False, True])
def test_an_unpublished_version_is_refused(world: Asked, there: bool) -> None:
    if there:
        world.provision(created_by=RESOURCE)
    assert UNPUBLISHED_VERSION in why_not(world.settle(asks(Kind.CREATE, pin=UNPUBLISHED_VERSION)))
    assert not world.executions.started


def test_a_duplicate_event_starts_nothing_more(world: Asked) -> None:
    for _ in range(3):
        assert world.settle(CREATE) == Waiting()
    run = world.begun(world.latest())
    for _ in range(3):
        assert world.settle(CREATE) == Waiting()
    world.succeeded(run)
    for _ in range(3):
        assert world.settle(CREATE) == Provided(QUEUE)
    assert len(world.executions.started) == 1


def test_two_resources_that_ask_for_one_tenant_get_one_queue(world: Asked) -> None:
    second = asks(Kind.CREATE, by=OTHER_RESOURCE)
    assert world.settle(CREATE) == world.settle(second) == Waiting()
    run = world.begun(world.latest())
    assert world.settle(CREATE) == world.settle(second) == Waiting()
    world.succeeded(run)
    assert world.settle(CREATE) == world.settle(second) == Provided(QUEUE)
    assert len(world.executions.started) == 1


def test_a_queue_that_is_not_published_yet_is_not_provided(world: Asked) -> None:
    world.settle(CREATE)
    world.begun(world.latest())
    world.table.record_queue(ACME, stack_id="a stack", queue=QUEUE, at=world.clock.now())
    assert world.settle(CREATE) == Waiting()


def test_a_create_that_fails_is_reported_with_its_root_cause_and_not_repeated(world: Asked) -> None:
    world.settle(CREATE)
    world.failed(world.begun(world.latest()))
    for _ in range(3):
        assert str(QUEUE_TABOO) in why_not(world.settle(CREATE))
    assert len(world.executions.started) == 1


def test_a_failure_from_before_is_overcome(world: Asked) -> None:
    world.settle(CREATE)
    world.failed(world.begun(world.latest()))
    world.now_asked()
    assert world.settle(CREATE) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(CREATE) == Provided(QUEUE)
    assert [attempt.number for attempt, _ in world.executions.started] == [1, 2]


@pytest.mark.parametrize(("at", "is_ours"), [(timedelta(milliseconds=-1), False), (timedelta(0), True)])
def test_a_failure_since_the_time_of_the_request_belongs_to_the_request(
    world: Asked, at: timedelta, is_ours: bool
) -> None:
    world.table.plant_audit(an_audit(Status.FAILURE, version=NEXT_VERSION, at=NOON + at))
    assert isinstance(world.settle(CREATE), NotProvided) is is_ours


def test_a_failed_update_of_the_tenant_is_no_failure_to_provide_it(world: Asked) -> None:
    world.provision()
    world.failed(world.begun(world.lifecycle.upgrade(ACME, None, BY_ADA)))
    assert world.settle(UPDATE) == Provided(QUEUE)


def test_a_failure_without_a_root_cause_is_reported_too(world: Asked) -> None:
    world.table.plant_audit(an_audit(Status.FAILURE, version=NEXT_VERSION))
    assert "no root cause was recorded" in why_not(world.settle(CREATE))


def test_a_creation_that_died_is_started_again(world: Asked) -> None:
    world.settle(CREATE)
    world.died(world.begun(world.latest()))
    assert world.settle(CREATE) == Waiting()
    assert [attempt.number for attempt, _ in world.executions.started] == [1, 2]


def test_a_tenant_that_is_being_updated_is_served_and_so_provided(world: Asked) -> None:
    world.provision()
    world.begun(world.lifecycle.upgrade(ACME, None, BY_ADA))
    assert world.settle(CREATE) == Provided(QUEUE)


def deleting(world: Asked) -> Run:
    world.provision()
    return world.begun(world.lifecycle.delete(ACME, BY_ADA))


def test_a_tenant_that_its_own_resource_deletes_is_created_again_afterwards(world: Asked) -> None:
    world.created_by(CREATE)
    assert world.settle(DELETE) == Waiting()
    run = world.begun(world.latest())
    world.now_asked()
    again = asks(Kind.CREATE, by=a_resource(number=2))
    assert world.settle(again) == Waiting()
    world.succeeded(run)
    assert world.settle(again) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(again) == Provided(QUEUE)


def test_a_tenant_that_an_operator_deletes_is_not_created_again(world: Asked) -> None:
    run = deleting(world)
    world.now_asked()
    assert world.settle(CREATE) == Waiting()
    world.succeeded(run)
    assert "was deleted" in why_not(world.settle(CREATE))
    assert world.state() is TenantState.DELETED


def test_a_tenant_whose_delete_fails_is_provided(world: Asked) -> None:
    run = deleting(world)
    assert world.settle(UPDATE) == Waiting()
    world.failed(run)
    assert world.settle(UPDATE) == Provided(QUEUE)


@pytest.mark.parametrize("then", [None, replace(some_metadata(), withdrawn_by="a delete")])
def test_a_queue_that_is_removed_meanwhile_is_not_provided(then: Metadata | None) -> None:
    class GoesJustNow(InMemoryTable):
        looks = 0

        def metadata(self, tenant: TenantId) -> Metadata | None:
            self.looks += 1
            return super().metadata(tenant) if self.looks == 1 else then

    vanishing = Asked(table=GoesJustNow())
    vanishing.provision()
    assert vanishing.settle(CREATE) == Waiting()


def test_an_update_of_its_former_resource_does_not_restore_a_deleted_tenant(world: Asked) -> None:
    run = deleting(world)
    assert world.settle(UPDATE) == Waiting()
    world.succeeded(run)
    assert "was deleted" in why_not(world.settle(UPDATE))
    assert world.state() is TenantState.DELETED
    assert len(world.executions.started) == 1


def test_a_tenant_that_was_deleted_and_created_again_is_provided_to_an_update(world: Asked) -> None:
    world.succeeded(deleting(world))
    world.succeeded(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    assert world.settle(UPDATE) == Provided(QUEUE)


def test_another_tenant_does_not_take_the_first_one_along(world: Asked) -> None:
    """CloudFormation asks to delete the old one itself, once the new one is there."""
    world.provision()
    before = world.metadata
    assert world.settle(asks(Kind.UPDATE, OTHER, replaces=ACME)) == Waiting()
    assert [attempt.tenant for attempt, _ in world.executions.started] == [OTHER]
    assert world.metadata == before


# Delete


def test_by_default_the_tenant_stays(world: Asked) -> None:
    world.created_by(CREATE)
    assert world.settle(RETAIN) == Provided(None)
    assert world.state() is TenantState.READY
    assert len(world.executions.started) == 1


def test_a_tenant_that_this_resource_had_created_is_deleted_on_request(world: Asked) -> None:
    world.created_by(CREATE)
    assert world.settle(DELETE) == Waiting()
    run = world.begun(world.latest())
    assert run.attempt.operation is Operation.DELETE
    assert not run.request.force
    assert world.settle(DELETE) == Waiting()
    world.succeeded(run)
    for _ in range(3):
        assert world.settle(DELETE) == Provided(None)
    assert len(world.executions.started) == 2
    assert world.state() is TenantState.DELETED


def test_the_rollback_of_a_stack_that_merely_used_a_tenant_leaves_it(world: Asked) -> None:
    world.provision()
    assert world.settle(CREATE) == Provided(QUEUE)
    assert world.settle(DELETE) == Provided(None)
    assert world.state() is TenantState.READY
    assert not world.executions.started


@pytest.mark.parametrize(
    "by",
    [OTHER_RESOURCE, a_resource(number=2), a_resource(stack="billing2"), a_resource("Queue2"), ADA, ""],
    ids=str,
)
def test_a_tenant_that_someone_else_had_created_stays(world: Asked, by: Requester) -> None:
    world.created_by(asks(Kind.CREATE, by=by))
    assert world.settle(CREATE) == Provided(QUEUE)
    assert world.settle(DELETE) == Provided(None)
    assert world.state() is TenantState.READY


def test_a_tenant_that_someone_else_has_created_again_since_stays(world: Asked) -> None:
    world.created_by(CREATE)
    world.succeeded(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
    world.succeeded(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    world.now_asked()
    assert world.settle(DELETE) == Provided(None)
    assert world.state() is TenantState.READY


def test_a_tenant_from_before_requests_were_recorded_stays(world: Asked) -> None:
    world.table.plant_metadata(some_metadata())
    assert world.settle(DELETE) == Provided(None)
    assert not world.executions.started


def test_the_remains_of_a_failed_creation_are_deleted_on_request(world: Asked) -> None:
    world.settle(CREATE)
    world.failed(world.begun(world.latest()))
    world.now_asked()
    assert world.settle(DELETE) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(DELETE) == Provided(None)


def test_a_tenant_that_never_was_need_not_be_deleted(world: Asked) -> None:
    assert world.settle(DELETE) == world.settle(RETAIN) == Provided(None)
    assert not world.executions.started


def test_a_tenant_that_somebody_else_has_deleted_needs_no_delete(world: Asked) -> None:
    world.created_by(CREATE)
    world.succeeded(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
    world.now_asked()
    assert world.settle(DELETE) == Provided(None)
    assert len(world.executions.started) == 2


def test_a_tenant_with_messages_is_not_deleted_and_the_counts_are_reported(world: Asked) -> None:
    world.created_by(CREATE)
    world.queues.held[QUEUE.url] = Messages(3, 2, 1)
    assert "3 visible, 2 in flight, 1 delayed" in why_not(world.settle(DELETE))
    assert world.state() is TenantState.READY
    assert len(world.executions.started) == 1


def test_a_delete_that_fails_is_reported_with_its_root_cause_and_not_repeated(world: Asked) -> None:
    world.created_by(CREATE)
    world.settle(DELETE)
    world.failed(world.begun(world.latest()))
    for _ in range(3):
        assert str(QUEUE_TABOO) in why_not(world.settle(DELETE))
    assert len(world.executions.started) == 2


def test_a_delete_that_failed_before_is_tried_again(world: Asked) -> None:
    world.created_by(CREATE)
    world.settle(DELETE)
    world.failed(world.begun(world.latest()))
    world.now_asked()
    assert world.settle(DELETE) == Waiting()
    assert [attempt.number for attempt, _ in world.executions.started] == [1, 1, 2]


def test_a_tenant_that_is_busy_is_waited_for_and_then_deleted(world: Asked) -> None:
    world.created_by(replace(CREATE, request=replace(CREATE.request, pin=VERSION)))
    world.table.plant_metadata(replace(world.metadata, pinned_version=None))
    run = world.begun(world.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA))
    assert world.settle(DELETE) == Waiting()
    assert len(world.executions.started) == 2
    world.succeeded(run)
    assert world.settle(DELETE) == Waiting()
    assert world.latest().attempt.operation is Operation.DELETE


# Patience


def test_the_response_is_sent_before_cloudformation_times_out(world: Asked) -> None:
    assert timedelta(hours=1) > PATIENCE
    world.settle(CREATE)
    world.begun(world.latest())
    world.clock.advance(NOON + PATIENCE - world.clock.now())
    assert world.settle(CREATE) == Waiting()
    world.clock.advance(timedelta(milliseconds=1))
    assert "55 minutes" in why_not(world.settle(CREATE))


def test_patience_is_no_reason_to_refuse_what_is_there(world: Asked) -> None:
    world.provision()
    world.clock.advance(PATIENCE * 2)
    assert world.settle(CREATE) == Provided(QUEUE)
    assert world.settle(DELETE) == Provided(None)


def test_a_delete_is_not_waited_for_for_ever_either(world: Asked) -> None:
    world.created_by(CREATE)
    world.settle(DELETE)
    world.begun(world.latest())
    world.clock.advance(PATIENCE)
    assert "55 minutes" in why_not(world.settle(DELETE))


# Limits of creates


class CannotCreate:
    """Limits that nobody gets past."""

    def __init__(self, limited: Limited | None) -> None:
        self.limited = limited

    def check(self, tenant: TenantId, *, is_new: bool, caller: str | None) -> Limited | None:  # noqa: ARG002
        return self.limited


def test_a_resource_waits_while_too_many_creates_are_started_and_is_then_provided(world: Asked) -> None:
    limits = CannotCreate(TooManyCreates(60, 37))
    world.counted_creates = limits
    assert world.settle(CREATE) == Waiting()
    assert not world.executions.started
    limits.limited = None
    world.created_by(CREATE)
    assert world.settle(CREATE) == Provided(QUEUE)


def test_at_the_maximum_number_of_tenants_a_resource_fails_at_once(world: Asked) -> None:
    world.counted_creates = CannotCreate(FleetFull(1_900, 1_900))
    assert "there are 1900 tenants" in why_not(world.settle(CREATE))
    assert not world.executions.started


# CloudFormation's own requests, and others


class Claiming(Asked):
    """A control plane that is sent events, and a CloudFormation that confirms some of them."""

    stack_resources: FakeResources

    def sent(
        self, asked: TenantQueueRequest | InvalidRequest, kind: Kind = Kind.CREATE, *, confirmed: bool = False
    ) -> Answer | AnsweredBefore | NotConfirmed:
        """The answer to an event, whoever sent it."""
        claim = claims(asked.kind if isinstance(asked, TenantQueueRequest) else kind)
        return self.answer_tenant_queue(claim, asked, confirmed=confirmed, since=self.since)


def claims(kind: Kind) -> Claim:
    return Claim(kind, RESOURCE, "a-request", None if kind is Kind.CREATE else "acme", "acme")


FORGERIES = {
    "delete": DELETE,
    "relabel": asks(Kind.UPDATE, labels={"team": "another"}),
    "pin": asks(Kind.UPDATE, pin=NEXT_VERSION),
    "unpin": replace(asks(Kind.UPDATE), unpin=True),
    "get the queue": CREATE,
}
"""Requests that somebody may forge in the name of the resource that owns the tenant."""


@pytest.fixture
def owned() -> Claiming:
    """A tenant that RESOURCE has brought into being, and that is pinned."""
    world = Claiming()
    world.created_by(asks(Kind.CREATE, labels=LABELS, pin=VERSION))
    world.executions.started.clear()
    return world


@pytest.mark.parametrize("forged", FORGERIES)
def test_an_event_in_the_owners_name_that_cloudformation_does_not_confirm_has_no_effect(
    owned: Claiming, forged: str
) -> None:
    before = owned.metadata
    owned.stack_resources.put(RESOURCE, "UPDATE_COMPLETE", "acme", stack="UPDATE_COMPLETE")
    asked = FORGERIES[forged]
    assert owned.sent(asked) == Waiting(confirmed=False)
    owned.clock.advance(CONSISTENT_WITHIN)
    assert owned.sent(asked) == Waiting(confirmed=False)
    owned.clock.advance(A_SECOND)
    refused = owned.sent(asked)
    assert isinstance(refused, NotConfirmed)
    assert str(RESOURCE) in refused.reason
    assert owned.metadata == before
    assert owned.executions.started == []
    assert owned.state() is TenantState.READY


def test_an_event_for_a_deleted_tenant_in_the_name_of_who_deleted_it_has_no_effect(owned: Claiming) -> None:
    assert owned.settle(DELETE) == Waiting()
    owned.succeeded(owned.begun(owned.latest()))
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    assert isinstance(owned.sent(CREATE), NotConfirmed)
    assert owned.state() is TenantState.DELETED


@pytest.mark.parametrize("kind", list(Kind))
def test_a_request_that_is_confirmed_is_answered(owned: Claiming, kind: Kind) -> None:
    owned.stack_resources.show(claims(kind))
    assert owned.sent(asks(kind)) == Provided(None if kind is Kind.DELETE else QUEUE)


def test_a_request_that_is_confirmed_only_later_is_answered_then(owned: Claiming) -> None:
    """CloudFormation shows what it is doing a little after it does it."""
    assert owned.sent(UPDATE) == Waiting(confirmed=False)
    owned.stack_resources.show(claims(Kind.UPDATE))
    assert owned.sent(UPDATE) == Provided(QUEUE)


@pytest.mark.parametrize(("status", "provided"), [("COMPLETE", True), ("FAILED", False)])
@pytest.mark.parametrize("kind", list(Kind))
def test_a_step_that_is_repeated_after_it_has_answered_ends_as_it_would_have(
    owned: Claiming, kind: Kind, status: str, provided: bool
) -> None:
    """Its function was stopped after it had told CloudFormation, which has gone on since."""
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    ended, stack = f"{kind.value.upper()}_{status}", f"{kind.value.upper()}_IN_PROGRESS"
    owned.stack_resources.put(RESOURCE, ended, "acme", stack=stack, at=owned.since + A_SECOND)
    assert owned.sent(asks(kind)) == (ProvidedBefore() if provided else NotProvidedBefore())


def test_a_change_that_ended_before_the_event_is_another_one(owned: Claiming) -> None:
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    owned.stack_resources.put(RESOURCE, "UPDATE_COMPLETE", "acme", stack="UPDATE_COMPLETE", at=owned.since - A_SECOND)
    assert isinstance(owned.sent(UPDATE), NotConfirmed)


def test_an_older_description_does_not_end_a_request_that_has_just_come(owned: Claiming) -> None:
    owned.stack_resources.put(RESOURCE, "UPDATE_COMPLETE", "acme", stack="UPDATE_COMPLETE", at=owned.since)
    assert owned.sent(UPDATE) == Waiting(confirmed=False)


def test_cloudformation_that_has_no_time_for_an_hour_is_not_waited_for_longer(owned: Claiming) -> None:
    owned.clock.advance(PATIENCE)
    owned.stack_resources.throttled_calls = 2
    assert owned.sent(UPDATE) == Waiting(confirmed=False)
    owned.clock.advance(A_SECOND)
    refused = owned.sent(UPDATE)
    assert isinstance(refused, NotConfirmed)
    assert "AWS throttled it" in refused.reason


def test_after_an_hour_of_throttling_a_failure_is_sent(owned: Claiming) -> None:
    class Throttling(InMemoryTable):
        def metadata(self, tenant: TenantId) -> Metadata | None:
            raise Throttled(f"{tenant}: Rate exceeded")

    owned.stack_resources.show(claims(Kind.UPDATE))
    owned.table = Throttling()
    owned.clock.advance(PATIENCE + A_SECOND)
    assert "Rate exceeded" in why_not(owned.sent(UPDATE))


def test_a_request_that_is_late_because_of_throttling_is_not_refused(owned: Claiming) -> None:
    owned.stack_resources.throttled_calls = 3
    for _ in range(3):
        assert owned.sent(UPDATE) == Waiting(confirmed=False)
        owned.clock.advance(CONSISTENT_WITHIN)
    owned.stack_resources.show(claims(Kind.UPDATE))
    assert owned.sent(UPDATE) == Provided(QUEUE)


def test_an_update_that_is_undone_is_not_refused_because_the_tenant_is_anothers(owned: Claiming) -> None:
    """The stack could not go back otherwise. The tenant is left as it is."""
    owned.table.plant_metadata(replace(owned.metadata, created_by=OTHER_RESOURCE))
    before = owned.metadata
    said_before = asks(Kind.UPDATE, labels={"team": "before"}, pin=NEXT_VERSION)
    owned.stack_resources.put(RESOURCE, "UPDATE_IN_PROGRESS", "acme", stack="UPDATE_IN_PROGRESS")
    assert "operator" in why_not(owned.sent(said_before))
    owned.stack_resources.put(RESOURCE, "UPDATE_IN_PROGRESS", "acme", stack="UPDATE_ROLLBACK_IN_PROGRESS")
    assert owned.sent(said_before) == Provided(QUEUE)
    assert owned.metadata == before


def test_an_unconfirmed_create_is_refused_whatever_the_status_of_its_stack(owned: Claiming) -> None:
    owned.table.plant_metadata(replace(owned.metadata, created_by=OTHER_RESOURCE))
    owned.stack_resources.put(RESOURCE, "CREATE_IN_PROGRESS", "", stack="UPDATE_ROLLBACK_IN_PROGRESS")
    assert "operator" in why_not(owned.sent(asks(Kind.CREATE, labels={})))


def test_an_old_description_does_not_refuse_a_request(owned: Claiming) -> None:
    class Slow(FakeResources):
        def resource(self, resource: StackResource) -> ResourceState | None:
            described = super().resource(resource)
            owned.clock.advance(CONSISTENT_WITHIN * 2)
            return described

    owned.stack_resources = Slow()
    assert owned.sent(UPDATE) == Waiting(confirmed=False)


@pytest.mark.parametrize("forged", FORGERIES)
def test_a_forged_confirmation_has_no_effect(owned: Claiming, forged: str) -> None:
    before, asked = owned.metadata, FORGERIES[forged]
    owned.stack_resources.put(RESOURCE, "UPDATE_COMPLETE", "acme", stack="UPDATE_COMPLETE")
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    assert owned.sent(asked, confirmed=True) == Waiting(confirmed=False)
    assert isinstance(owned.sent(asked), NotConfirmed)
    assert (owned.metadata, owned.executions.started) == (before, [])


def test_a_request_that_cloudformation_stops_showing_gets_one_more_step(owned: Claiming) -> None:
    """Descriptions are eventually consistent: after a newer one an older one may come."""
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    assert owned.sent(UPDATE, confirmed=True) == Waiting(confirmed=False)
    owned.stack_resources.show(claims(Kind.UPDATE))
    assert owned.sent(UPDATE) == Provided(QUEUE)


@pytest.mark.parametrize("kind", [Kind.CREATE, Kind.DELETE])
def test_an_operation_that_may_have_died_is_not_only_waited_for(kind: Kind) -> None:
    world, asked = Claiming(), asks(kind, on_delete=OnDelete.DELETE)
    if kind is Kind.DELETE:
        world.created_by(CREATE)
    world.stack_resources.show(claims(kind))
    world.sent(asked)
    world.begun(world.latest())
    world.stack_resources.asked.clear()
    assert world.sent(asked, confirmed=True) == Waiting()
    assert world.stack_resources.asked == []
    world.clock.advance(CHECK_HOLDER_AFTER + A_SECOND)
    assert world.sent(asked, confirmed=True) == Waiting()
    assert world.stack_resources.asked == ["resource"]


def test_cloudformation_is_not_asked_while_there_is_nothing_to_do_but_wait() -> None:
    world = Claiming()
    world.stack_resources.show(claims(Kind.CREATE))
    assert world.sent(CREATE) == Waiting(confirmed=True)
    run = world.begun(world.latest())
    for _ in range(5):
        assert world.sent(CREATE, confirmed=True) == Waiting(confirmed=True)
    world.succeeded(run)
    assert world.sent(CREATE, confirmed=True) == Provided(QUEUE)
    assert world.stack_resources.asked == ["resource", "resource"]


def test_a_confirmed_request_stays_confirmed_while_throttled(owned: Claiming) -> None:
    class Throttling(InMemoryTable):
        def metadata(self, tenant: TenantId) -> Metadata | None:
            raise Throttled(f"{tenant}: Rate exceeded")

    owned.stack_resources.show(claims(Kind.UPDATE))
    owned.table = Throttling()
    assert owned.sent(UPDATE) == Waiting(confirmed=True)


@pytest.mark.parametrize("kind", list(Kind))
def test_an_invalid_request_fails_if_cloudformation_confirms_it(owned: Claiming, kind: Kind) -> None:
    invalid = InvalidRequest("TenantId: 'a/b' is no tenant id")
    owned.clock.advance(CONSISTENT_WITHIN + A_SECOND)
    assert isinstance(owned.sent(invalid, kind), NotConfirmed)
    owned.stack_resources.show(claims(kind))
    response = owned.sent(invalid, kind)
    assert response == Provided(None) if kind is Kind.DELETE else NotProvided(f"InvalidRequest: {invalid}")
