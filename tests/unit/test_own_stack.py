"""A stack that bears a tenant's name is the tenant's own only if it proves to be: anybody may make such a stack."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.errors import StackNotOurs
from orchestrator.releases.template_contract import QUEUE_TYPE
from orchestrator.tenants.awaiting import Resumption
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import Done, GaveUp, NotReady, Started
from orchestrator.tenants.own_stack import has_unknown_stack, own_stack
from orchestrator.tenants.records import Metadata, Operation, Queue, RootCause, Run
from orchestrator.tenants.stack_ports import Change, Effect, Stack
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    TASK_TOKEN,
    VERSION,
    a_run,
    some_metadata,
    stack_arn,
)
from tests.unit.test_tenant_stack import Stepping, for_each_operation

STACK = stack_arn()
EVIL = Queue("arn:aws:sqs:eu-west-1:111111111111:evil", "https://sqs.eu-west-1.amazonaws.com/111111111111/evil")
SERVED = some_metadata()
LEGACY = Metadata(ACME, QUEUE, None, "0.1.12", NOON, NOON)

NO_PROOF = {
    "nothing is known": None,
    "another stack serves the tenant": replace(SERVED, stack_id=stack_arn(number=2)),
    "the stack was recorded, but nobody was ever served from it": replace(SERVED, version=None),
    "another queue serves the tenant, whose stack is not on record": replace(LEGACY, queue=OTHER_QUEUE),
    "the tenant's stack has gone": replace(SERVED, stack_id=None, queue=None, version=None, gone_stack_id=STACK),
}
PROOFS = {
    "the tenant is served from it": SERVED,
    "the tenant was served from it, until a delete began": replace(SERVED, withdrawn_by="a delete"),
    "the tenant is served from its queue, and no stack is on record": LEGACY,
}


def planted(world: Stepping, *, status: str = "CREATE_COMPLETE", ours: bool = False, queue: Queue = QUEUE) -> Stack:
    """A stack that is as a tenant's is, in all that anybody can choose."""
    return world.stacks.plant(Stack(STACK, status, "", ACME.value, queue, VERSION, ours=ours))


def with_row(world: Stepping, row: Metadata | None) -> Stepping:
    if row is not None:
        world.table.plant_metadata(row)
    return world


@for_each_operation
@pytest.mark.parametrize("row", NO_PROOF.values(), ids=NO_PROOF)
@pytest.mark.parametrize("status", ["CREATE_COMPLETE", "CREATE_IN_PROGRESS", "ROLLBACK_COMPLETE", "DELETE_FAILED"])
def test_a_stack_that_somebody_made_is_neither_adopted_nor_changed_nor_deleted(
    run: Run, row: Metadata | None, status: str
) -> None:
    world = with_row(Stepping(run), row)
    planted(world, status=status)
    if run.attempt.operation is Operation.DELETE and row is not None and has_unknown_stack(row, world.stacks.names):
        refused = world.start()
        assert isinstance(refused, GaveUp)
        assert "the stack of its queue" in refused.reason
    else:
        with pytest.raises(StackNotOurs, match=f"Tenant acme: stack {STACK} .* Berth did not make it"):
            world.start()
    assert set(world.stacks.calls) <= {"find", "queue"}


@pytest.mark.parametrize("row", PROOFS.values(), ids=PROOFS)
def test_a_stack_that_the_tenant_was_served_from_is_its_own_whatever_its_role(row: Metadata) -> None:
    """A later deployment may have another role than the one that made the stack."""
    world = with_row(Stepping(), row)
    stack = planted(world)
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) == stack


@pytest.mark.parametrize("row", NO_PROOF.values(), ids=NO_PROOF)
def test_a_stack_of_our_role_is_ours_whatever_the_row_says(row: Metadata | None) -> None:
    """Such as one whose creation went through, though the answer was lost."""
    world = with_row(Stepping(), row)
    stack = planted(world, ours=True)
    assert world.start() == Started(stack.stack_id)
    assert "queue" not in world.stacks.calls


@pytest.mark.parametrize(
    ("status", "advice"),
    [
        ("CREATE_COMPLETE", "hand it over"),
        ("UPDATE_ROLLBACK_COMPLETE", "hand it over"),
        ("ROLLBACK_COMPLETE", "The stack is ROLLBACK_COMPLETE, so delete it by hand"),
        ("DELETE_FAILED", "The stack is DELETE_FAILED, so delete it by hand"),
    ],
)
def test_the_error_about_a_stack_with_another_role_has_advice(status: str, advice: str) -> None:
    """A stack that does not stand cannot be updated, so it cannot be handed over, either."""
    world = Stepping()
    planted(world, status=status)
    with pytest.raises(StackNotOurs) as refused:
        own_stack(ACME, reader=world.table, stacks=world.stacks)
    assert advice in str(refused.value)
    assert f"aws cloudformation delete-stack --stack-name {STACK}" in str(refused.value)
    assert "runbook" in str(refused.value)


def test_a_deleted_stack_belongs_to_no_tenant() -> None:
    world = Stepping()
    planted(world, status="DELETE_COMPLETE")
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) is None


# Which queue is served


@pytest.mark.parametrize("run", [a_run(), a_run(operation=Operation.UPDATE, version=VERSION)], ids=["create", "update"])
@pytest.mark.parametrize("listed", [QUEUE, None], ids=["another queue", "no queue"])
def test_a_queue_that_is_not_one_of_the_stacks_resources_is_not_served(run: Run, listed: Queue | None) -> None:
    """Whoever writes a template can have its outputs say anything."""
    world = Stepping(run)
    planted(world, ours=True, queue=EVIL)
    world.stacks.resources[STACK] = listed
    assert isinstance(world.inspect(Started(STACK)), NotReady)
    world.clock.advance(DEADLINE * 2)
    outcome = world.inspect(Started(STACK))
    assert isinstance(outcome, GaveUp)
    assert EVIL.url in outcome.reason
    assert STACK in outcome.reason


@pytest.mark.parametrize("version", [VERSION, NEXT_VERSION])
def test_a_stacks_own_queue_is_served(version: str) -> None:
    world = Stepping(a_run(version=version))
    planted(world, ours=True)
    assert world.inspect(Started(STACK)) == Done(STACK, QUEUE, VERSION)


def test_the_resources_are_read_once_when_the_queue_can_be_used() -> None:
    world = Stepping()
    planted(world, ours=True)
    world.queues.silent_for = 2
    for _ in range(3):
        world.inspect(Started(STACK))
    assert world.stacks.calls.count("queue") == 1


# Stacks that an earlier system made, under names that Berth does not derive

OLD = "arn:aws:cloudformation:eu-west-1:000000000000:stack/old-tenant-acme/1"
ADOPTED = replace(SERVED, stack_id=OLD, version="0.0.9")
GOING = replace(ADOPTED, stack_id=None, queue=None, version=None, gone_stack_id=OLD, withdrawn_by="a delete")


def adopted(world: Stepping, row: Metadata = ADOPTED, **more: Any) -> Stack:
    """A stack that is the tenant's by its row alone."""
    world.settings.names = world.stacks.names = Names("Berth", ("old-tenant-",))
    world.table.plant_metadata(row)
    stack = Stack(OLD, "UPDATE_COMPLETE", "", None, None, None, ours=False)
    return world.stacks.plant(replace(stack, **more))


@pytest.mark.parametrize(
    "row", [ADOPTED, replace(ADOPTED, withdrawn_by="a delete"), GOING], ids=["served", "withdrawn", "going"]
)
def test_a_recorded_stack_is_the_tenants_whatever_its_name(row: Metadata) -> None:
    world = Stepping()
    stack = adopted(world, row)
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) == stack


def test_a_recorded_stack_is_preferred_to_one_with_the_tenants_name() -> None:
    """Which anybody may make."""
    world = Stepping()
    stack = adopted(world)
    planted(world)
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) == stack


@pytest.mark.parametrize("row", [ADOPTED, GOING], ids=["served", "gone"])
def test_after_the_recorded_stack_was_deleted_the_stack_with_the_tenants_name_is_used(row: Metadata) -> None:
    world = Stepping()
    adopted(world, row, status="DELETE_COMPLETE")
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) is None
    stack = planted(world, ours=True)
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) == stack


def test_a_recorded_stack_that_names_another_tenant_is_not_changed() -> None:
    world = Stepping()
    adopted(world, tenant_id="globex")
    with pytest.raises(StackNotOurs, match="was made for globex"):
        own_stack(ACME, reader=world.table, stacks=world.stacks)


@pytest.mark.parametrize("row", NO_PROOF.values(), ids=NO_PROOF)
def test_a_stack_with_another_name_that_is_not_recorded_is_not_read(row: Metadata | None) -> None:
    world = Stepping()
    adopted(world)
    with_row(world, row or Metadata(ACME, None, None, None, None, None))
    assert own_stack(ACME, reader=world.table, stacks=world.stacks) is None


@for_each_operation
@pytest.mark.parametrize("row", [ADOPTED, GOING], ids=["served", "going"])
def test_every_operation_fails_if_the_settings_lack_the_prefix_of_the_recorded_stack(run: Run, row: Metadata) -> None:
    world = Stepping(run)
    adopted(world, row)
    world.settings.names = world.stacks.names = Names("Berth")
    outcome = world.start()
    assert isinstance(outcome, GaveUp)
    assert "old-tenant-acme" in outcome.reason
    assert "berth:legacyStackPrefixes" in outcome.reason
    assert world.stacks.calls == [], "this deployment's roles may not look at it"


def test_the_change_set_of_an_update_is_created_for_the_recorded_stack() -> None:
    world = Stepping(a_run(operation=Operation.UPDATE, version=NEXT_VERSION))
    stack = adopted(world)
    planted(world)
    world.review()
    assert list(world.stacks.all[stack.stack_id].change_sets)
    assert not world.stacks.all[STACK].change_sets
    assert world.start() == Started(OLD)
    assert world.stacks.all[OLD].stack.status == "UPDATE_IN_PROGRESS"


ADOPTED_UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION)


def an_update_that_is_under_way() -> Stepping:
    world = Stepping(ADOPTED_UPDATE)
    adopted(world, tenant_id=ACME.value, queue=QUEUE)
    world.review()
    assert world.start() == Started(OLD)
    return world


def test_the_root_cause_of_a_failed_update_is_the_first_failed_resource_of_the_recorded_stack() -> None:
    world = an_update_that_is_under_way()
    world.stacks.failures.append("Queue quota exceeded.")
    world.stacks.settle()
    outcome = world.inspect(Started(OLD))
    assert isinstance(outcome, GaveUp)
    cause = world.fail("stack", outcome.reason, outcome.failed_stack)
    assert cause == RootCause("InboundQueue", QUEUE_TYPE, "Queue quota exceeded.")
    assert {audit.root_cause for audit in world.table.audits(ACME)} == {cause}


def test_the_client_token_finds_the_run_that_waits_for_the_stack() -> None:
    """The stack's name says no tenant."""
    world = an_update_that_is_under_way()
    world.wait_for(Started(OLD))
    token = world.stacks.all[OLD].client_token
    assert world.stack_settled(OLD, client_token=token) is None, "the update is still under way"
    world.stacks.settle()
    done = Done(OLD, QUEUE, NEXT_VERSION)
    assert world.stack_settled(OLD, client_token=token) == Resumption(TASK_TOKEN, done)


@pytest.mark.parametrize("token", ["", "Console-UpdateStack-1", "update-globex-1-0-0-1-update"])
def test_an_event_that_no_run_has_caused_resumes_no_run(token: str) -> None:
    """A prefix may fit stacks that are no tenants'. Whoever waits looks for itself after a while."""
    world = an_update_that_is_under_way()
    world.wait_for(Started(OLD))
    assert world.stack_settled(OLD, client_token=token) is None


def test_an_update_does_not_remove_the_queue_in_service_whatever_its_logical_id() -> None:
    """Such a template need not name it in its outputs, either; and it may be empty at this moment."""
    world = Stepping(a_run(operation=Operation.UPDATE, version=NEXT_VERSION))
    adopted(world)
    world.stacks.would_change = (Change("Incoming", QUEUE_TYPE, QUEUE.url, Effect.REPLACE),)
    world.review()
    outcome = world.start()
    assert isinstance(outcome, GaveUp)
    assert "would replace or remove the inbound queue (Incoming)" in outcome.reason


@pytest.mark.parametrize("row", [replace(ADOPTED, withdrawn_by="a delete"), GOING], ids=["first", "again"])
def test_a_delete_deletes_the_recorded_stack_even_after_it_has_withdrawn_its_queue(row: Metadata) -> None:
    world = Stepping(a_run(operation=Operation.DELETE))
    adopted(world, row, status="DELETE_FAILED")
    assert world.start() == Started(OLD)
    assert world.stacks.all[OLD].stack.status == "DELETE_IN_PROGRESS"


def test_a_tenant_whose_stack_is_not_recorded_gets_no_second_stack() -> None:
    """A create that was admitted before may get its turn only now."""
    world = Stepping()
    adopted(world, replace(ADOPTED, stack_id=None))
    outcome = world.start()
    assert isinstance(outcome, GaveUp)
    assert "berth adopt" in outcome.reason
    assert "create" not in world.stacks.calls


def test_a_create_after_the_recorded_stack_was_deleted_makes_a_stack_with_the_tenants_name() -> None:
    world = Stepping()
    adopted(world, replace(GOING, withdrawn_by=None), status="DELETE_COMPLETE")
    started = world.start()
    assert isinstance(started, Started)
    assert started.stack_id != OLD
    assert world.stacks.names.tenant_of(started.stack_id) == ACME
