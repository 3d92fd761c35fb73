"""Tenants from before Berth: which are found, with which stacks they are adopted, and what an adoption records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.migration import ADOPTED, Plan, Seen, ended
from orchestrator.common.errors import InvalidTenantId, QueueOutOfReach, Throttled, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.records import Kind, Remedy, Spec
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.names import Names
from orchestrator.tenants.own_stack import why_not_adopted_with
from orchestrator.tenants.records import Operation, Queue, Request, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import NAMES, NOON, OTHER_QUEUE, QUEUE_TABOO, a_run, an_audit, some_metadata
from tests.fakes.migration import InMemoryMigration
from tests.unit.reconciling.world import A_MINUTE, LONG_AGO, FleetWithStacks, kinds, only, queue_of, tenant

OLD_VERSION = "0.0.9"
PREFIX = "old-tenant-"
LEGACY_NAMES = Names("Berth", (PREFIX,))
ACME = tenant("acme")
ADA = Request(by="berth adopt, requested by ada", reason="Ticket 4711")


def old_queue(name: str) -> Queue:
    """As CloudFormation names a queue after a stack of the earlier system."""
    queue = f"{PREFIX}{name}-InboundQueue-1A2B"
    return Queue(
        f"arn:aws:sqs:eu-west-1:000000000000:{queue}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{queue}"
    )


# The rules about stacks, as a function


def stack_of(name: str = f"{PREFIX}acme", **changes: Any) -> Stack:
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{name}/1"
    return replace(Stack(stack_id, "UPDATE_COMPLETE", "", None, None, None, ours=False), **changes)


INBOUND = {"InboundQueue": old_queue("acme")}
OWN_TOKEN = "arn:aws:lambda:eu-west-1:000000000000:function:berth-tenant-metadata"
OTHER_TOKEN = "arn:aws:lambda:eu-west-1:000000000000:function:berth-dev-tenant-metadata"
DEAD_LETTERS = {old_queue("acme"): old_queue("failed").name, old_queue("out"): old_queue("failed-out").name}
GLOBEX = {old_queue("globex").arn: "globex"}

CASES: dict[str, tuple[Stack, Mapping[str, Queue], str, Mapping[str, str], str | None]] = {
    "a stack with an allowed prefix": (stack_of(), INBOUND, "acme", {}, None),
    "a stack with the tenant's name": (stack_of(NAMES.stack_of(ACME)), INBOUND, "acme", {}, None),
    "a stack that names this tenant": (stack_of(tenant_id="acme"), INBOUND, "acme", {}, None),
    "a stack of this control plane": (
        stack_of(parameters={"MetadataServiceToken": OWN_TOKEN}),
        INBOUND,
        "acme",
        {},
        None,
    ),
    "a queue with another logical id": (stack_of(), {"Incoming": old_queue("acme")}, "acme", {}, None),
    "an outbound queue in the row": (stack_of(), {**INBOUND, "Outgoing": old_queue("out")}, "acme", {}, None),
    "an outbound queue by its logical id": (stack_of(), {**INBOUND, "OutboundQueue": old_queue("o")}, "acme", {}, None),
    "dead-letter queues": (
        stack_of(),
        {
            **INBOUND,
            "Outgoing": old_queue("out"),
            "Failed": old_queue("failed"),
            "FailedOutgoing": old_queue("failed-out"),
            "DeadLetterQueue": old_queue("dead-letters"),
        },
        "acme",
        {},
        None,
    ),
    "a stack that names another tenant": (stack_of(tenant_id="globex"), INBOUND, "acme", {}, "TenantId is 'globex'"),
    "a stack of another control plane": (
        stack_of(parameters={"MetadataServiceToken": OTHER_TOKEN}),
        *(INBOUND, "acme", {}, f"the control plane of {OTHER_TOKEN}"),
    ),
    "another control plane's stack without an allowed prefix": (
        stack_of("billing", parameters={"MetadataServiceToken": OTHER_TOKEN}),
        *(INBOUND, "acme", {}, f"the control plane of {OTHER_TOKEN}"),
    ),
    "a stack without an allowed prefix": (stack_of("billing"), INBOUND, "acme", {}, "berth:legacyStackPrefixes"),
    "a stack with a name similar to a tenant's": (
        stack_of(f"{NAMES.tenant_prefix}acme"),
        *(INBOUND, "acme", {}, "berth:legacyStackPrefixes"),
    ),
    "a stack with another tenant's name": (
        stack_of(NAMES.stack_of(tenant("globex"))),
        *(INBOUND, "acme", {}, "berth:legacyStackPrefixes"),
    ),
    "a queue without an allowed prefix": (stack_of(), {}, "acme", {}, "may not change queues with such names"),
    "a stack that is recorded for another tenant": (stack_of(), INBOUND, "globex", {}, "belongs to tenant globex"),
    "a stack that is changing": (stack_of(status="UPDATE_IN_PROGRESS"), INBOUND, "acme", {}, "UPDATE_IN_PROGRESS"),
    "another queue": (
        stack_of(),
        *({**INBOUND, "GlobexInbound": old_queue("globex")}, "acme", {}, f"GlobexInbound ({old_queue('globex').name})"),
    ),
    "an outbound queue that serves another tenant": (
        stack_of(),
        *({**INBOUND, "OutboundQueue": old_queue("globex")}, "acme", GLOBEX, "OutboundQueue (old-tenant-globex"),
    ),
    "a dead-letter queue that serves another tenant": (
        stack_of(),
        *({**INBOUND, "DeadLetterQueue": old_queue("globex")}, "acme", GLOBEX, "DeadLetterQueue (old-tenant-globex"),
    ),
}


@pytest.mark.parametrize(("stack", "queues", "owner", "served", "reason"), CASES.values(), ids=CASES)
def test_a_stack_is_adopted_only_if_it_is_the_tenants_own(
    stack: Stack, queues: Mapping[str, Queue], owner: str, served: Mapping[str | None, str], reason: str | None
) -> None:
    metadata = some_metadata(tenant=ACME, queue=old_queue("acme"), outbound_queue=old_queue("out"))
    found = why_not_adopted_with(stack, queues, metadata, LEGACY_NAMES, owner, served, DEAD_LETTERS.get)
    assert found is None if reason is None else reason in (found or "")


# Operations of the earlier system

ENDS = {
    (Operation.CREATE, Status.STARTED, True): (Status.SUCCESS, None),
    (Operation.CREATE, Status.STARTED, False): (Status.FAILURE, None),
    (Operation.UPDATE, Status.STARTED, True): (Status.FAILURE, None),
    (Operation.DELETE, Status.STARTED, True): (Status.FAILURE, ADOPTED),
    (Operation.DELETE, Status.STARTED, False): (Status.FAILURE, None),
    (Operation.DELETE, Status.SUCCESS, True): (Status.SUCCESS, ADOPTED),
    (Operation.DELETE, Status.SUCCESS, False): (Status.SUCCESS, None),
    (Operation.UPDATE, Status.FAILURE, True): (Status.FAILURE, None),
}


@pytest.mark.parametrize(("before", "after"), ENDS.items(), ids=str)
def test_operations_of_the_earlier_system_end(
    before: tuple[Operation, Status, bool], after: tuple[Status, str | None]
) -> None:
    operation, status, served = before
    audit = ended(an_audit(status, operation, version=None), served=served)
    assert (audit.status, audit.revived_by) == after
    never_ended = status is Status.STARTED and audit.status is Status.FAILURE
    assert ("did not record how" in str(audit.root_cause)) is never_ended


# Adopting


@pytest.fixture
def world() -> FleetWithStacks:
    world = FleetWithStacks()
    world.stacks.names = LEGACY_NAMES
    return world


def old_stack(world: FleetWithStacks, name: str, **more: Any) -> Stack:
    """A stack as the earlier system made it: its name is not one that Berth derives, and it has no outputs."""
    stack = stack_of(f"{PREFIX}{name}")
    world.stacks.resources[stack.stack_id] = more.pop("resource", old_queue(name))
    return world.stacks.plant(replace(stack, **more))


def old_rows(world: FleetWithStacks, name: str, **more: Any) -> TenantId:
    """Rows as the earlier system wrote them."""
    who = tenant(name)
    metadata = some_metadata(tenant=who, version=OLD_VERSION, queue=old_queue(name), outbound_queue=OTHER_QUEUE)
    world.table.plant_metadata(replace(metadata, **{"stack_id": None} | more), listed=False)
    old_audit(world, name, Operation.CREATE, Status.SUCCESS)
    return who


def old_audit(world: FleetWithStacks, name: str, operation: Operation, status: Status, **more: Any) -> None:
    given = {"version": None, "at": LONG_AGO, "execution": "arn:legacy"} | more
    world.table.plant_audit(an_audit(status, operation, tenant=tenant(name), **given), numbered=False)


def old_tenant(world: FleetWithStacks, name: str = "acme", **more: Any) -> Stack:
    old_rows(world, name)
    return old_stack(world, name, **more)


def migration(world: FleetWithStacks) -> InMemoryMigration:
    return InMemoryMigration(world.table, world.stacks, world.queues, world.clock)


def adopt(world: FleetWithStacks, *, dry_run: bool = False) -> dict[str, tuple[Plan, str | None]]:
    """The plan for each tenant that was found, and why it was not adopted."""
    return {each[0].tenant_id: each for each in migration(world).adopt_all(ADA, dry_run=dry_run)}


def problem(world: FleetWithStacks, name: str = "acme") -> str:
    """Why the tenant is not adopted. Nothing is written about it."""
    before = world.rows()
    plan, why = adopt(world)[name]
    assert plan.seen is None
    assert world.rows() == before
    return why or ""


def states(world: FleetWithStacks) -> dict[str, TenantState]:
    return {
        listed.tenant.value: listed.state
        for state in TenantState
        for listed in world.table.tenants_in(state, limit=500)
    }


def test_a_tenant_is_listed_with_its_stack_and_surveys_check_it(world: FleetWithStacks) -> None:
    stack = old_tenant(world)
    plan, why = adopt(world)["acme"]
    assert (why, plan.has_stack) == (None, True)
    outbound = "its next upgrade removes its outbound queue"
    assert plan.detail == f"READY at version {OLD_VERSION}; stack {stack.stack_id}; {outbound}"
    metadata = world.metadata_of(ACME)
    assert (metadata.stack_id, metadata.outbound_queue) == (stack.stack_id, OTHER_QUEUE)
    assert states(world) == {"acme": TenantState.READY}
    (change,) = world.table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.kind, change.request) == ("ADOPT", ADA)
    assert set(world.stacks.calls) == {"stack_with", "queues"}
    surveyed = world.reconcile(Spec())
    assert (kinds(surveyed), surveyed.coverage.tenants, surveyed.coverage.stacks) == ([], 1, 1)


def test_a_dry_run_writes_nothing_and_a_second_adoption_finds_nothing(world: FleetWithStacks) -> None:
    old_tenant(world)
    before = world.rows()
    assert set(adopt(world, dry_run=True)) == {"acme"}
    assert world.rows() == before
    adopt(world)
    before = world.rows()
    assert adopt(world) == {}
    assert world.rows() == before


def test_a_tenant_is_adopted_once_by_two_adoptions_at_once(world: FleetWithStacks) -> None:
    old_tenant(world)
    plans = [(each, next(each.find(lambda _line: None))) for each in (migration(world), migration(world))]
    assert [each.adopt(plan, ADA) for each, plan in plans] == [None, "the tenant has changed meanwhile"]
    assert len(world.table.history(ACME)) == 1


def test_tenants_of_berth_are_not_adopted(world: FleetWithStacks) -> None:
    world.add("berths")
    world.begin(a_run(tenant=tenant("busy")))
    world.table.plant_metadata(replace(world.metadata_of(world.add("named")), stack_id=None))
    assert adopt(world) == {}


def test_a_tenant_without_a_queue_is_listed_too(world: FleetWithStacks) -> None:
    old_audit(world, "failed", Operation.CREATE, Status.FAILURE)
    old_audit(world, "started", Operation.CREATE, Status.STARTED)
    old_audit(world, "gone", Operation.DELETE, Status.SUCCESS)
    old_audit(world, "vanished", Operation.CREATE, Status.SUCCESS)
    found = adopt(world)
    assert [why for _, why in found.values()] == [None] * 4
    assert found["started"][0].detail == "FAILED; CREATE that never ended becomes Failure"
    assert states(world) == {
        "failed": TenantState.FAILED,
        "started": TenantState.FAILED,
        "gone": TenantState.DELETED,
        "vanished": TenantState.UNKNOWN,
    }


def test_an_unfinished_operation_is_ended_also_after_the_adoption(world: FleetWithStacks) -> None:
    stack = old_tenant(world)
    for version, at in (("0.1.18", A_MINUTE), ("0.1.19", 2 * A_MINUTE)):
        old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version=version, at=LONG_AGO + at)
        assert "UPDATE that never ended becomes Failure" in adopt(world)["acme"][0].detail
        assert states(world) == {"acme": TenantState.UPDATE_FAILED}
        assert world.metadata_of(ACME).stack_id == stack.stack_id
    assert adopt(world) == {}


def test_the_unfinished_operation_of_a_tenant_that_berth_has_provisioned_is_ended(world: FleetWithStacks) -> None:
    before = world.metadata_of(world.add("acme"))
    old_audit(world, "acme", Operation.DELETE, Status.STARTED, at=LONG_AGO + A_MINUTE)
    assert adopt(world)["acme"][0].detail.startswith("READY")
    assert (world.metadata_of(ACME), states(world)) == (before, {"acme": TenantState.READY})
    assert "queues" not in world.stacks.calls


def test_a_tenant_whose_stack_is_not_found_is_listed_and_stays_a_finding(world: FleetWithStacks) -> None:
    old_rows(world, "acme")
    old_stack(world, "acme", resource=OTHER_QUEUE)
    for adoptable in (True, False, False):
        plan, _ = adopt(world)["acme"]
        assert "delete the queue by hand" in plan.detail
        assert (plan.seen is not None, plan.has_stack) == (adoptable, False)
    assert (states(world), world.metadata_of(ACME).stack_id) == ({"acme": TenantState.READY}, None)
    finding = only(world.reconcile(Spec()))
    assert (finding.kind, finding.subject, finding.remedy) == (Kind.NOT_ADOPTED, "acme", Remedy.NONE)
    assert "berth adopt --dry-run" in finding.advice


def test_the_stack_of_a_tenant_that_an_operation_of_berth_has_listed_is_recorded(world: FleetWithStacks) -> None:
    old_rows(world, "acme")
    run = a_run(tenant=ACME, operation=Operation.UPDATE)
    world.begin_and_die(run)
    world.table.fail(run, QUEUE_TABOO, NOON)
    stack = old_stack(world, "acme")
    assert kinds(world.reconcile(Spec())) == [(Kind.NOT_ADOPTED, "acme")]
    adopt(world)
    assert world.metadata_of(ACME).stack_id == stack.stack_id
    assert world.audit(ACME, Operation.UPDATE).root_cause == QUEUE_TABOO, "Berth's own operations stay as they are"
    assert states(world) == {"acme": TenantState.UPDATE_FAILED}


def test_a_survey_reports_but_does_not_repair_a_tenant_that_is_not_adopted(world: FleetWithStacks) -> None:
    who = old_rows(world, "acme", queue=queue_of(ACME))
    world.stacks.plant_done(who, queue=queue_of(who), version=None, ours=False)
    before = world.rows()
    assert kinds(world.reconcile(Spec())) == [(Kind.NOT_ADOPTED, "acme")]
    assert world.rows() == before
    adopt(world)
    assert world.metadata_of(who).stack_id is not None
    assert kinds(world.reconcile(Spec())) == []


def test_a_survey_finds_an_adopted_tenant_whose_prefix_is_missing_in_the_settings(world: FleetWithStacks) -> None:
    old_tenant(world)
    adopt(world)
    world.stacks.names = NAMES
    finding = only(world.reconcile(Spec()))
    assert (finding.kind, finding.subject, finding.remedy) == (Kind.METADATA_DIFFERS, "acme", Remedy.NONE)
    assert "berth:legacyStackPrefixes" in finding.detail


def test_two_tenants_do_not_get_the_same_stack(world: FleetWithStacks) -> None:
    old_tenant(world)
    old_rows(world, "twin", queue=old_queue("acme"))
    for dry_run in (True, False, False):
        assert "belongs to tenant acme" in adopt(world, dry_run=dry_run)["twin"][0].detail
    assert states(world) == {"acme": TenantState.READY}


def test_the_row_gets_the_url_that_cloudformation_lists(world: FleetWithStacks) -> None:
    old_url = old_queue("acme").url.replace("sqs.eu-west-1.amazonaws.com", "eu-west-1.queue.amazonaws.com")
    old_rows(world, "acme", queue=replace(old_queue("acme"), url=old_url))
    old_stack(world, "acme")
    adopt(world)
    assert world.metadata_of(ACME).queue == old_queue("acme")


def test_a_queue_with_another_logical_id_is_pointed_out(world: FleetWithStacks) -> None:
    stack = old_tenant(world, resource=None)
    world.stacks.other_queues[stack.stack_id] = {"Incoming": old_queue("acme")}
    assert "its queue is Incoming in the template, so an upgrade would replace it" in adopt(world)["acme"][0].detail


# Tenants that are not adopted


def test_a_row_that_names_another_stack_is_not_adopted(world: FleetWithStacks) -> None:
    """A delete of the tenant would delete the other tenant's stack."""
    old_rows(world, "acme", stack_id=old_stack(world, "bob").stack_id)
    assert "does not have its queue" in problem(world)


def test_a_row_with_two_queues_is_not_adopted(world: FleetWithStacks) -> None:
    old_rows(world, "acme", queue=replace(old_queue("acme"), url=old_queue("globex").url))
    assert "ARN of one queue and the URL of another" in problem(world)


def test_a_deleted_tenant_whose_stack_exists_is_not_adopted(world: FleetWithStacks) -> None:
    stack = old_stack(world, "acme")
    old_rows(world, "acme", version=None)
    old_audit(world, "acme", Operation.DELETE, Status.SUCCESS, at=NOON)
    assert f"stack {stack.stack_id} has its queue" in problem(world)
    world.stacks.change(stack.stack_id, "DELETE_COMPLETE")
    adopt(world)
    assert states(world) == {"acme": TenantState.DELETED}


def test_a_tenant_with_a_running_operation_of_berth_is_not_adopted(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.begin(a_run(tenant=ACME, operation=Operation.UPDATE))
    assert "Its UPDATE is running" in problem(world)


def test_a_tenant_with_a_recent_operation_of_the_earlier_system_is_not_adopted(world: FleetWithStacks) -> None:
    old_tenant(world)
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=NOON)
    world.clock.advance(LEGACY_MAX_RUN_TIME - timedelta(seconds=1))
    assert "Switch that system off" in problem(world)
    world.clock.advance(timedelta(seconds=2))
    assert adopt(world)["acme"][1] is None


def test_a_version_that_does_not_fit_the_index_is_not_adopted(world: FleetWithStacks) -> None:
    old_rows(world, "acme", version="é" * 51)
    assert "more than 100 bytes" in problem(world)


def test_a_dead_letter_queue_out_of_reach_does_not_end_the_adoption(
    world: FleetWithStacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    def out_of_reach(url: str) -> str | None:
        raise QueueOutOfReach(f"not allowed to read {url}")

    monkeypatch.setattr(world.queues, "dead_letter_queue", out_of_reach)
    stack = old_tenant(world)
    world.stacks.other_queues[stack.stack_id] = {"Failed": old_queue("failed")}
    assert "Failed (" in problem(world)


@pytest.mark.parametrize("error", [UnreadableRows("unreadable"), InvalidTenantId("unreadable"), Throttled("Rate")])
def test_one_bad_row_ends_nothing(world: FleetWithStacks, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("acme", "bad", "zeta"):
        old_audit(world, name, Operation.CREATE, Status.FAILURE)

    def read(_migration: InMemoryMigration, who: TenantId) -> Seen:
        if who.value == "bad":
            raise error
        return world.table.seen(who)

    monkeypatch.setattr(InMemoryMigration, "read", read)
    found = adopt(world)
    assert {name: plan.seen is not None for name, (plan, _) in found.items()} == {
        "acme": True,
        "bad": False,
        "zeta": True,
    }
    assert set(states(world)) == {"acme", "zeta"}
