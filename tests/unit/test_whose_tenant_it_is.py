"""Only the resource that brought a tenant into being, and operators, describe it or bring it back."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.tenants.outcomes import GaveUp
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import UNKNOWN_CREATOR, Metadata, Operation, Request, Run, Status, TenantState
from orchestrator.tenants.resource_requests import Kind, OnDelete, TenantQueueRequest
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.tenant_queue import Provided, Waiting
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    QUEUE,
    VERSION,
    InMemoryTable,
    a_resource,
    a_run,
    an_attempt,
    an_audit,
    some_metadata,
    stack_arn,
)
from tests.unit.ordering import ADA, BY_ADA, LABELS
from tests.unit.test_tenant_queue import OTHER, RESOURCE, Asked, asks, why_not

SOMEBODY_ELSE = a_resource(stack="another-team")
REDEPLOYED = a_resource(number=2)
"""The same resource, of a stack that was deleted and deployed again."""
DESCRIPTIONS: dict[str, TenantQueueRequest] = {
    "labels": asks(Kind.UPDATE, by=SOMEBODY_ELSE, labels={"team": "another"}),
    "no labels at all": asks(Kind.UPDATE, by=SOMEBODY_ELSE, labels={}),
    "a pin": asks(Kind.UPDATE, by=SOMEBODY_ELSE, pin=NEXT_VERSION),
    "both": asks(Kind.UPDATE, by=SOMEBODY_ELSE, labels=LABELS, pin=NEXT_VERSION),
}
EVERY_KIND = [Kind.CREATE, Kind.UPDATE]


@pytest.fixture
def world() -> Asked:
    return Asked()


def owned(world: Asked) -> Metadata:
    """A tenant that RESOURCE has brought into being, with labels and a pin."""
    world.created_by(asks(Kind.CREATE, labels=LABELS, pin=VERSION))
    assert world.metadata.created_by == RESOURCE
    return world.metadata


def deleted_by(world: Asked, by: Requester | None = None) -> None:
    """A tenant that RESOURCE has brought into being, and that it has deleted, or somebody else."""
    owned(world)
    if by is None:
        assert world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE)) == Waiting()
    else:
        assert world.begun(world.lifecycle.delete(ACME, Request(by=str(by))))
    world.succeeded(run_of(world))
    assert world.state() is TenantState.DELETED
    world.now_asked()


def run_of(world: Asked) -> Run:
    """The latest execution, which has begun."""
    lock = world.table.lock(ACME)
    return lock.run if lock else world.begun(world.latest())


# Labels and pins


@pytest.mark.parametrize("what", DESCRIPTIONS)
@pytest.mark.parametrize("kind", EVERY_KIND)
def test_a_resource_does_not_describe_a_tenant_of_another_stack(world: Asked, kind: Kind, what: str) -> None:
    before = owned(world)
    refused = why_not(world.settle(replace(DESCRIPTIONS[what], kind=kind)))
    assert str(RESOURCE) in refused
    assert "remove" in refused.lower()
    assert "operator" in refused
    assert world.metadata == before


@pytest.mark.parametrize("creator", [ADA, UNKNOWN_CREATOR, None, a_resource("OtherQueue"), REDEPLOYED], ids=str)
def test_nor_does_it_describe_a_tenant_of_anybody_else(world: Asked, creator: Requester | None) -> None:
    world.provision()
    world.table.plant_metadata(replace(world.metadata, created_by=creator, labels={}))
    before = world.metadata
    assert "operator" in why_not(world.settle(asks(Kind.UPDATE, labels=LABELS)))
    assert world.metadata == before


def test_a_resource_that_names_no_version_any_more_does_not_unpin_a_tenant_of_another_stack(world: Asked) -> None:
    before = owned(world)
    assert world.settle(replace(asks(Kind.UPDATE, by=SOMEBODY_ELSE), unpin=True)) == Provided(QUEUE)
    assert world.metadata == before


@pytest.mark.parametrize("kind", EVERY_KIND)
@pytest.mark.parametrize(
    "says", [{}, {"labels": LABELS}, {"pin": VERSION}, {"labels": LABELS, "pin": VERSION}], ids=["", "l", "p", "lp"]
)
def test_a_requester_that_changes_nothing_gets_the_queue(world: Asked, kind: Kind, says: dict[str, object]) -> None:
    before = owned(world)
    assert world.settle(asks(kind, by=SOMEBODY_ELSE, **says)) == Provided(QUEUE)  # type: ignore[arg-type]
    assert world.metadata == before


@pytest.mark.parametrize("kind", EVERY_KIND)
def test_the_resource_that_brought_a_tenant_into_being_describes_it(world: Asked, kind: Kind) -> None:
    owned(world)
    assert world.settle(asks(kind, labels={"team": "search"}, pin=NEXT_VERSION)) == Provided(QUEUE)
    assert (world.metadata.labels, world.metadata.pinned_version) == ({"team": "search"}, NEXT_VERSION)


def test_it_lifts_the_pin_that_it_no_longer_names(world: Asked) -> None:
    owned(world)
    assert world.settle(replace(asks(Kind.UPDATE), unpin=True)) == Provided(QUEUE)
    assert world.metadata.pinned_version is None


def test_a_tenant_from_before_creators_were_recorded_belongs_to_the_resource_whose_create_succeeded(
    world: Asked,
) -> None:
    """Version 0.4.0 did not record who brought a tenant into being."""
    request = Request(by=str(RESOURCE), resource=RESOURCE, explicit=True)
    world.table.plant_metadata(some_metadata())
    world.table.plant_audit(an_audit(Status.SUCCESS, request=request))
    assert "operator" in why_not(world.settle(asks(Kind.UPDATE, by=SOMEBODY_ELSE, labels=LABELS)))
    assert world.settle(asks(Kind.UPDATE, labels=LABELS)) == Provided(QUEUE)
    assert world.metadata.labels == LABELS


def test_an_operator_describes_every_tenant(world: Asked) -> None:
    owned(world)
    world.lifecycle.create(ACME, replace(BY_ADA, labels={"team": "search"}, pin=NEXT_VERSION))
    assert (world.metadata.labels, world.metadata.pinned_version) == ({"team": "search"}, NEXT_VERSION)


# While a tenant is coming


def test_a_resource_does_not_relabel_a_tenant_that_another_is_about_to_create(world: Asked) -> None:
    assert world.settle(asks(Kind.CREATE, labels=LABELS, pin=VERSION)) == Waiting()
    before = world.metadata
    for pin in (None, VERSION, NEXT_VERSION):
        rival = asks(Kind.CREATE, by=SOMEBODY_ELSE, labels={"team": "another"}, pin=pin)
        assert world.settle(rival) == Waiting()
        assert world.metadata == before
    world.succeeded(world.begun(world.latest()))
    assert world.metadata.labels == LABELS
    assert "operator" in why_not(world.settle(rival))


def test_a_resource_does_not_relabel_what_an_operator_is_about_to_create(world: Asked) -> None:
    world.lifecycle.create(ACME, replace(BY_ADA, labels=LABELS))
    assert world.settle(asks(Kind.CREATE, labels={"team": "another"})) == Waiting()
    assert world.metadata.labels == LABELS


def test_one_that_is_slow_does_not_describe_what_has_become_somebody_elses_meanwhile() -> None:
    """It looks, somebody else's create comes to its end, and only then it writes."""

    class Slow(InMemoryTable):
        def __init__(self) -> None:
            super().__init__()
            self.meanwhile: Callable[[], None] | None = None

        def describe(self, *args: object, **named: object) -> bool:
            if self.meanwhile:
                happens, self.meanwhile = self.meanwhile, None
                happens()
            return super().describe(*args, **named)  # type: ignore[arg-type]

    table = Slow()
    world = Asked(table=table)
    rival = a_run(version=VERSION, request=Request(by=ADA))

    def somebody_else_has_it() -> None:
        world.executions.running.add(rival.execution)
        table.begin(rival, at=NOON)
        world.succeeded(rival)

    table.meanwhile = somebody_else_has_it
    asked = asks(Kind.CREATE, labels=LABELS, pin=VERSION)
    assert world.settle(asked) == Waiting()
    assert (world.metadata.labels, world.metadata.pinned_version) == ({}, None)
    assert "operator" in why_not(world.settle(asked))

    owned_since = Asked(table=table)
    table.plant_metadata(replace(world.metadata, created_by=RESOURCE))
    table.meanwhile = lambda: table.plant_metadata(replace(world.metadata, created_by=SOMEBODY_ELSE))
    assert owned_since.settle(asked) == Waiting()
    assert world.metadata.labels == {}


def test_a_create_that_begins_late_does_not_label_what_somebody_else_has_brought_meanwhile(world: Asked) -> None:
    request = Request(by=str(RESOURCE), resource=RESOURCE, explicit=True, labels=LABELS, pin=VERSION)
    world.provision()
    late = a_run(2, request=request)
    world.table.begin(late, at=NOON)
    assert (world.metadata.labels, world.metadata.pinned_version) == ({}, None)


def test_a_resource_is_told_of_what_it_said_before_its_create_began(world: Asked) -> None:
    """Its labels are not lost: they are written before the create, or by the resource once the tenant is its own."""
    world.table.describe(
        ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt(version=NEXT_VERSION)
    )
    asked = asks(Kind.CREATE, labels=LABELS)
    assert world.settle(asked) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(asked) == Provided(QUEUE)
    assert (world.metadata.created_by, world.metadata.labels) == (RESOURCE, LABELS)


# Tenants whose stack has vanished


def vanished(world: Asked) -> Metadata:
    owned(world)
    assert world.metadata.stack_id
    assert world.table.forget_queue(ACME, stack_id=world.metadata.stack_id)
    world.stacks.all.clear()
    return world.metadata


def test_a_tenant_whose_stack_has_vanished_is_still_its_creators(world: Asked) -> None:
    before = vanished(world)
    assert "operator" in why_not(world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE, labels={"team": "another"})))
    assert world.metadata == before
    assert world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE)) == Waiting()
    world.table.plant_metadata(replace(world.metadata, gone_stack_id=stack_arn(number=2)))
    world.succeeded(world.begun(world.latest()))
    assert (world.metadata.created_by, world.metadata.labels) == (RESOURCE, LABELS)


# Bringing back


@pytest.mark.parametrize("asked", [asks(Kind.CREATE), asks(Kind.UPDATE, replaces=OTHER)], ids=["create", "update"])
@pytest.mark.parametrize(
    "by", [SOMEBODY_ELSE, a_resource("OtherQueue"), a_resource(stack="billing-2")], ids=["stack", "id", "name"]
)
def test_a_resource_does_not_bring_back_what_another_has_deleted(
    world: Asked, asked: TenantQueueRequest, by: Requester
) -> None:
    deleted_by(world)
    resource = by if not isinstance(by, str) else None
    rival = replace(asked, request=replace(asked.request, by=str(by), resource=resource))
    refused = why_not(world.settle(rival))
    assert "was deleted" in refused
    assert "operator" in refused
    assert world.state() is TenantState.DELETED
    assert world.table.metadata(ACME) is None


@pytest.mark.parametrize("by", [RESOURCE, REDEPLOYED], ids=["same", "again"])
def test_a_resource_does_not_bring_back_what_an_operator_has_deleted(world: Asked, by: Requester) -> None:
    deleted_by(world, ADA)
    assert "operator" in why_not(world.settle(asks(Kind.CREATE, by=by)))
    assert world.table.metadata(ACME) is None


@pytest.mark.parametrize("by", [RESOURCE, REDEPLOYED], ids=["same", "again"])
def test_deploy_destroy_and_deploy_again_works(world: Asked, by: Requester) -> None:
    deleted_by(world)
    again = asks(Kind.CREATE, by=by, labels={"team": "again"}, on_delete=OnDelete.DELETE)
    assert world.settle(again) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(again) == Provided(QUEUE)
    assert (world.metadata.created_by, world.metadata.labels) == (by, {"team": "again"})
    world.now_asked()
    assert world.settle(replace(again, kind=Kind.DELETE)) == Waiting()
    assert world.latest().attempt.operation is Operation.DELETE


def test_an_operator_brings_back_what_anybody_has_deleted(world: Asked) -> None:
    deleted_by(world)
    world.succeeded(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    assert (world.state(), world.metadata.created_by) == (TenantState.READY, ADA)


def test_a_create_does_not_restore_a_tenant_deleted_before_it_began(world: Asked) -> None:
    assert world.settle(asks(Kind.CREATE)) == Waiting()
    create = world.run_of(world.latest())
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, request=BY_ADA))
    outcome = world.begin(create)
    assert isinstance(outcome, GaveUp)
    assert "operator" in outcome.reason


def test_a_delete_that_an_operator_repeats_for_a_resource_is_still_that_resources(world: Asked) -> None:
    owned(world)
    world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE))
    run = world.begun(world.latest())
    world.stacks.change(stack_arn(), "DELETE_FAILED")
    world.failed(run)
    run = world.begun(world.lifecycle.retry(ACME, ADA))
    assert (run.request.by, run.request.resource, run.request.own) == (ADA, RESOURCE, True)
    world.succeeded(run)
    world.now_asked()
    assert world.settle(asks(Kind.CREATE, by=REDEPLOYED)) == Waiting()


def test_a_create_that_an_operator_repeats_for_a_resource_is_the_operators(world: Asked) -> None:
    world.settle(asks(Kind.CREATE))
    world.failed(world.begun(world.latest()))
    world.succeeded(world.begun(world.lifecycle.retry(ACME, ADA)))
    assert world.metadata.created_by == ADA


# Tenants whose first create has failed


def failed_for(world: Asked, by: Requester = RESOURCE) -> Metadata:
    """A tenant that never had a queue: the create that was asked for first has failed."""
    if isinstance(by, str):
        world.lifecycle.create(ACME, Request(by=by, labels=LABELS, pin=VERSION))
    else:
        assert world.settle(asks(Kind.CREATE, by=by, labels=LABELS, pin=VERSION)) == Waiting()
    world.failed(world.begun(world.latest()))
    world.now_asked()
    assert world.state() is TenantState.FAILED
    return world.metadata


def rolled_back(world: Asked, on_delete: OnDelete) -> None:
    assert world.settle(asks(Kind.DELETE, on_delete=on_delete)) == Waiting()
    world.stacks.all.clear()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(asks(Kind.DELETE, on_delete=on_delete)) == Provided(None)
    assert world.state() is TenantState.DELETED
    world.now_asked()


@pytest.mark.parametrize("first", [RESOURCE, ADA], ids=["resource", "operator"])
@pytest.mark.parametrize("what", DESCRIPTIONS)
def test_a_tenant_whose_create_failed_is_not_described_by_another(world: Asked, first: Requester, what: str) -> None:
    before = failed_for(world, first)
    refused = why_not(world.settle(replace(DESCRIPTIONS[what], kind=Kind.CREATE)))
    assert str(first) in refused
    assert "operator" in refused
    assert world.metadata == before


@pytest.mark.parametrize("first", [RESOURCE, ADA], ids=["resource", "operator"])
def test_a_retry_by_another_requester_does_not_take_the_tenant_over(world: Asked, first: Requester) -> None:
    failed_for(world, first)
    assert world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE)) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE)) == Provided(QUEUE)
    assert (world.metadata.created_by, world.metadata.labels) == (first, LABELS)
    world.now_asked()
    assert world.settle(asks(Kind.DELETE, by=SOMEBODY_ELSE, on_delete=OnDelete.DELETE)) == Provided(None)
    assert world.state() is TenantState.READY


def test_nor_does_whoever_fails_with_it_once_more(world: Asked) -> None:
    failed_for(world)
    assert world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE)) == Waiting()
    world.failed(world.begun(world.latest()))
    world.now_asked()
    assert world.metadata.created_by == RESOURCE
    assert world.settle(asks(Kind.DELETE, by=SOMEBODY_ELSE, on_delete=OnDelete.DELETE)) == Provided(None)
    assert world.state() is TenantState.FAILED


@pytest.mark.parametrize("by", [RESOURCE, REDEPLOYED], ids=["same", "again"])
def test_the_first_requester_may_retry_and_describe_the_tenant(world: Asked, by: Requester) -> None:
    """A stack whose creation failed has to be deleted, and the next of its name has another id."""
    failed_for(world)
    again = asks(Kind.CREATE, by=by, labels={"team": "again"}, pin=NEXT_VERSION, on_delete=OnDelete.DELETE)
    assert world.settle(again) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(again) == Provided(QUEUE)
    assert (world.metadata.created_by, world.metadata.labels) == (by, {"team": "again"})
    world.now_asked()
    assert world.settle(replace(again, kind=Kind.DELETE)) == Waiting()


def test_an_operator_takes_over_what_has_failed_for_a_resource(world: Asked) -> None:
    failed_for(world)
    world.succeeded(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, pin=VERSION))))
    assert world.metadata.created_by == ADA


def test_a_create_that_nobody_asked_for_by_name_takes_nothing_over(world: Asked) -> None:
    failed_for(world)
    run = a_run(2, version=VERSION, request=Request(by="platform"))
    world.executions.running.add(run.execution)
    assert world.table.begin(run, at=world.clock.now()) is None
    assert world.metadata.created_by == RESOURCE


def test_a_failed_create_without_a_recorded_owner_belongs_to_its_requester(world: Asked) -> None:
    world.table.plant_metadata(replace(failed_for(world), created_by=None))
    assert "operator" in why_not(world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE, labels={"team": "another"})))
    assert world.settle(asks(Kind.CREATE, by=SOMEBODY_ELSE)) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.metadata.created_by == RESOURCE


@pytest.mark.parametrize("on_delete", OnDelete)
def test_once_its_stack_is_rolled_back_anybody_may_have_it(world: Asked, on_delete: OnDelete) -> None:
    """Nothing of it can be retained: it never had a queue."""
    failed_for(world)
    rolled_back(world, on_delete)
    wanted = asks(Kind.CREATE, by=SOMEBODY_ELSE, labels={"team": "another"})
    assert world.settle(wanted) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.settle(wanted) == Provided(QUEUE)
    assert (world.metadata.created_by, world.metadata.labels) == (SOMEBODY_ELSE, {"team": "another"})


def test_the_rollback_of_another_stack_leaves_it(world: Asked) -> None:
    before = failed_for(world, ADA)
    for on_delete in OnDelete:
        assert world.settle(asks(Kind.DELETE, on_delete=on_delete)) == Provided(None)
    assert world.metadata == before


def test_a_tenant_that_gets_its_queue_before_the_rollback_begins_stays(world: Asked) -> None:
    failed_for(world)
    assert world.settle(asks(Kind.DELETE)) == Waiting()
    run = world.run_of(world.latest())
    assert (run.request.own, run.request.unserved) == (True, True)
    world.table.plant_metadata(some_metadata(created_by=RESOURCE))
    outcome = world.begin(run)
    assert isinstance(outcome, GaveUp)
    assert "was not deleted" in outcome.reason


def test_a_tenant_that_was_served_is_not_free_once_it_is_deleted(world: Asked) -> None:
    owned(world)
    assert world.settle(asks(Kind.DELETE)) == Provided(None)
    assert world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE)) == Waiting()
    run = world.begun(world.latest())
    assert not run.request.unserved


def test_a_create_that_is_refused_once_it_has_begun_takes_nothing_over(world: Asked) -> None:
    """The remains of a failed delete stay their owner's, and nobody else can create the tenant."""
    owned(world)
    world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE))
    delete = world.begun(world.latest())
    world.stacks.change(stack_arn(), "DELETE_FAILED")
    world.failed(delete)
    rival = a_run(2, request=Request(by=str(SOMEBODY_ELSE), resource=SOMEBODY_ELSE, explicit=True))
    world.executions.running.add(rival.execution)
    assert world.table.begin(rival, at=world.clock.now()) is None
    assert world.metadata.created_by == RESOURCE


def half_deleted(world: Asked) -> None:
    """A tenant of RESOURCE whose delete has failed half-way."""
    owned(world)
    world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE))
    delete = world.begun(world.latest())
    world.stacks.change(stack_arn(), "DELETE_FAILED")
    world.failed(delete)
    world.now_asked()


def test_creating_a_half_deleted_tenant_again_makes_its_requester_the_owner_also_if_that_fails(world: Asked) -> None:
    half_deleted(world)
    create = world.begun(world.lifecycle.create(ACME, BY_ADA))
    assert world.metadata.created_by == ADA
    world.failed(create)
    assert world.metadata.created_by == ADA


def test_a_resource_does_not_take_over_a_half_deleted_tenant_that_an_operator_has_tried_to_create(world: Asked) -> None:
    half_deleted(world)
    world.failed(world.begun(world.lifecycle.create(ACME, BY_ADA)))
    world.now_asked()
    assert world.settle(asks(Kind.CREATE)) == Waiting()
    world.succeeded(world.begun(world.latest()))
    assert world.metadata.created_by == ADA
    world.now_asked()
    started = len(world.executions.started)
    assert world.settle(asks(Kind.DELETE, on_delete=OnDelete.DELETE)) == Provided(None)
    assert len(world.executions.started) == started


def test_an_operator_takes_over_a_half_deleted_tenant_that_a_resource_has_failed_to_create_again(world: Asked) -> None:
    half_deleted(world)
    assert world.settle(asks(Kind.CREATE, by=REDEPLOYED)) == Waiting()
    world.failed(world.begun(world.latest()))
    assert world.metadata.created_by == REDEPLOYED
    world.begun(world.lifecycle.create(ACME, BY_ADA))
    assert world.metadata.created_by == ADA


def test_a_create_that_is_refused_does_not_own_a_deleted_tenant_that_another_has_requested(world: Asked) -> None:
    deleted_by(world)
    assert world.settle(asks(Kind.CREATE, by=REDEPLOYED)) == Waiting()
    rival = a_run(3, request=Request(by=str(SOMEBODY_ELSE), resource=SOMEBODY_ELSE, explicit=True))
    world.executions.running.add(rival.execution)
    assert world.table.begin(rival, at=world.clock.now()) is None
    assert world.metadata.created_by is None
