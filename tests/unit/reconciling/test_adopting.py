"""Tenants from before Berth: found, told, and brought into the index with their stacks. Nothing else is touched."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import InvalidRequest, QueueOutOfReach, Throttled, UnreadableRows
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.health import Check, Verdict
from orchestrator.reconciling.ports import Adopted, UnlistedPage, UnlistedTenant
from orchestrator.reconciling.progress import READ_UNITS_PER_SECOND
from orchestrator.reconciling.records import (
    MAX_FINDINGS,
    SURVEY,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.reconciling.surveying import SCAN_EVERY
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Operation, Queue, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import NAMES, NOON, OTHER_QUEUE, QUEUE_TABOO, a_run, an_audit, some_metadata
from tests.unit.reconciling.world import (
    A_MINUTE,
    LONG_AGO,
    FleetWithStacks,
    MeddledTable,
    asked_for,
    kinds,
    only,
    queue_of,
    tenant,
)

ADOPT = Spec(survey=False, adopt=True, reason="Ticket 4711")
DRY = replace(ADOPT, dry_run=True)
OLD_VERSION = "0.0.9"
PREFIX = "old-tenant-"
ACME = tenant("acme")


@pytest.fixture
def world() -> FleetWithStacks:
    world = FleetWithStacks()
    world.stacks.names = Names("Berth", (PREFIX,))
    return world


def old_queue(name: str) -> Queue:
    """As CloudFormation names a queue after a stack of the earlier system."""
    queue = f"{PREFIX}{name}-InboundQueue-1A2B"
    return Queue(
        f"arn:aws:sqs:eu-west-1:000000000000:{queue}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{queue}"
    )


def of_older_sdks(queue: Queue) -> Queue:
    return replace(queue, url=queue.url.replace("sqs.eu-west-1.amazonaws.com", "eu-west-1.queue.amazonaws.com"))


def old_stack(world: FleetWithStacks, name: str, **more: Any) -> Stack:
    """A stack as the earlier system made it: under a name that Berth does not derive, and it says little of itself."""
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{PREFIX}{name}/{len(world.stacks.all) + 1}"
    stack = Stack(stack_id, "UPDATE_COMPLETE", "", None, None, None, ours=False)
    world.stacks.resources[stack_id] = more.pop("resource", old_queue(name))
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


def states(world: FleetWithStacks) -> dict[str, TenantState]:
    return {
        listed.tenant.value: listed.state
        for state in TenantState
        for listed in world.table.tenants_in(state, limit=500)
    }


def on_schedule(world: FleetWithStacks) -> Reconciliation:
    """A survey that runs by itself."""
    return world.reconciler().run(asked_for(SCHEDULES[SURVEY], id=SURVEY))


def advice(finding: Finding) -> str:
    assert (finding.kind, finding.remedy, finding.repaired) == (Kind.UNLISTED, Remedy.NONE, False)
    return finding.advice


# Results


def test_a_tenant_is_listed_with_its_stack_whatever_the_name_of_the_stack(world: FleetWithStacks) -> None:
    stack = old_tenant(world)
    done = world.reconcile(ADOPT)
    assert done.status is ReconciliationStatus.DONE
    finding = only(done)
    assert (finding.kind, finding.subject, finding.remedy) == (Kind.UNLISTED, "acme", Remedy.ADOPT)
    assert (finding.repaired, finding.result, done.repaired) == (True, "listed as READY", 1)
    outbound = "with an outbound queue, which its next upgrade removes"
    assert finding.detail == f"READY at version {OLD_VERSION}, stack {stack.stack_id}, {outbound}"
    metadata = world.metadata_of(ACME)
    assert (metadata.stack_id, metadata.outbound_queue) == (stack.stack_id, OTHER_QUEUE)
    assert states(world) == {"acme": TenantState.READY}


def test_the_history_shows_who_adopted_the_tenant_and_why(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.reconcile(ADOPT)
    (change,) = world.table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.kind, change.request.reason) == ("ADOPT", "Ticket 4711")


def test_an_adoption_only_reads_from_cloudformation(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.reconcile(ADOPT)
    assert set(world.stacks.calls) == {"queues"}
    assert not world.executions.started


def test_a_dry_run_reports_everything_and_writes_nothing(world: FleetWithStacks) -> None:
    old_tenant(world)
    before = world.rows()
    done = world.reconcile(DRY)
    finding = only(done)
    assert (finding.remedy, finding.repaired, finding.result) == (Remedy.ADOPT, False, "")
    assert world.rows() == before


def test_a_second_adoption_finds_no_tenants(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.reconcile(ADOPT)
    before = world.rows()
    again = world.reconcile(ADOPT)
    assert (again.status, again.total) == (ReconciliationStatus.DONE, 0)
    assert world.rows() == before


def test_tenants_that_berth_created_are_not_adopted(world: FleetWithStacks) -> None:
    world.add("berths")
    world.begin(a_run(tenant=tenant("busy")))
    before = world.rows()
    assert world.reconcile(ADOPT).total == 0
    assert world.rows() == before


def test_after_the_adoption_a_survey_has_no_finding(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.reconcile(ADOPT)
    surveyed = world.reconcile(Spec())
    assert kinds(surveyed) == []
    assert (surveyed.coverage.tenants, surveyed.coverage.stacks) == (1, 1)


def test_a_survey_finds_an_adopted_tenant_whose_prefix_is_missing_in_the_settings(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.reconcile(ADOPT)
    world.stacks.names = Names("Berth")
    finding = only(world.reconcile(Spec()))
    assert (finding.kind, finding.subject, finding.remedy) == (Kind.METADATA_DIFFERS, "acme", Remedy.NONE)
    assert f"{PREFIX}acme" in finding.detail
    assert "berth:legacyStackPrefixes" in finding.detail


def told_by_doctor(world: FleetWithStacks) -> Check:
    return next(check for check in world.health.examine() if check.name == "adoption")


@pytest.mark.parametrize("spec", [DRY, Spec(), Spec(dry_run=True)], ids=["adopt --dry-run", "reconcile", "its dry run"])
def test_the_doctor_reports_unlisted_tenants_until_they_are_adopted(world: FleetWithStacks, spec: Spec) -> None:
    on_schedule(world)
    assert told_by_doctor(world).verdict is Verdict.OK
    old_tenant(world)
    world.clock.advance(A_MINUTE)
    world.reconcile(spec)
    check = told_by_doctor(world)
    assert (check.verdict, check.detail.split(",")[0]) == (Verdict.WARNING, "1 from before Berth not listed")
    world.clock.advance(A_MINUTE)
    world.reconcile(ADOPT)
    assert told_by_doctor(world).verdict is Verdict.OK


def test_a_tenant_without_a_queue_is_listed_too(world: FleetWithStacks) -> None:
    old_audit(world, "failed", Operation.CREATE, Status.FAILURE)
    old_audit(world, "started", Operation.CREATE, Status.STARTED)
    old_audit(world, "gone", Operation.DELETE, Status.SUCCESS)
    old_audit(world, "vanished", Operation.CREATE, Status.SUCCESS)
    done = world.reconcile(ADOPT)
    assert done.repaired == 4
    assert states(world) == {
        "failed": TenantState.FAILED,
        "started": TenantState.FAILED,
        "gone": TenantState.DELETED,
        "vanished": TenantState.UNKNOWN,
    }
    detail = next(finding.detail for finding in done.findings if finding.subject == "started")
    assert detail == "FAILED, CREATE that never ended becomes Failure"


def test_an_adoption_ends_an_unfinished_operation(world: FleetWithStacks) -> None:
    old_tenant(world)
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=LONG_AGO + A_MINUTE)
    world.reconcile(ADOPT)
    assert states(world) == {"acme": TenantState.UPDATE_FAILED}
    update = world.audit(ACME, Operation.UPDATE)
    assert update.status is Status.FAILURE
    assert "did not record how" in str(update.root_cause)


def test_an_operation_that_the_earlier_system_begins_after_the_adoption_is_reported_and_ended(
    world: FleetWithStacks,
) -> None:
    stack = old_tenant(world)
    world.reconcile(ADOPT)
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=LONG_AGO + A_MINUTE)
    found = only(world.reconcile(Spec()))
    assert (found.kind, found.subject) == (Kind.UNLISTED, "acme")
    assert "an operation that never ended" in found.detail
    assert "berth adopt" in advice(found)
    finding = only(world.reconcile(ADOPT))
    assert (finding.repaired, finding.result) == (True, "listed as UPDATE_FAILED")
    assert "UPDATE that never ended becomes Failure" in finding.detail
    assert "no stack" not in finding.detail
    assert world.metadata_of(ACME).stack_id == stack.stack_id
    assert states(world) == {"acme": TenantState.UPDATE_FAILED}
    assert world.reconcile(ADOPT).total == 0
    assert kinds(world.reconcile(Spec())) == []


def test_the_same_for_a_tenant_that_berth_has_provisioned(world: FleetWithStacks) -> None:
    who = world.add("acme")
    before = world.metadata_of(who)
    old_audit(world, "acme", Operation.DELETE, Status.STARTED, at=LONG_AGO + A_MINUTE)
    assert only(world.reconcile(ADOPT)).result == "listed as READY"
    assert world.metadata_of(who) == before
    assert "queues" not in world.stacks.calls


def test_a_recent_operation_of_the_earlier_system_is_waited_for_after_the_adoption_too(world: FleetWithStacks) -> None:
    world.add("acme")
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=NOON)
    assert "Switch that system off" in advice(only(world.reconcile(ADOPT)))


def test_an_operation_is_ended_even_if_no_stack_has_the_queue(world: FleetWithStacks) -> None:
    old_rows(world, "acme")
    world.reconcile(ADOPT)
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=LONG_AGO + A_MINUTE)
    finding = only(world.reconcile(ADOPT))
    assert finding.repaired
    assert "no stack has its queue" in finding.detail
    assert "delete the queue by hand" in advice(only(world.reconcile(ADOPT)))


def test_the_maximum_number_of_tenants_does_not_prevent_an_adoption(world: FleetWithStacks) -> None:
    world.settings.max_tenants = 1
    for name in ("one", "two", "three"):
        old_tenant(world, name)
    assert world.reconcile(ADOPT).repaired == 3
    assert world.table.count_tenants() == 3


# Which stack it is


def test_a_stack_with_the_tenants_name_is_recorded_with_its_id(world: FleetWithStacks) -> None:
    old_rows(world, "acme", queue=queue_of(ACME))
    stack = world.stacks.plant_done(ACME, queue=queue_of(ACME), version=None, ours=False)
    world.reconcile(ADOPT)
    assert world.metadata_of(ACME).stack_id == stack.stack_id


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("unlike", {"queue": old_queue("acme")}),
        ("unlike", {"tenant_id": "acme"}),
        ("acme", {}),
    ],
    ids=["by its outputs", "by whom it was made for", "by the queue's name"],
)
def test_a_stack_is_found_by_any_hint_but_accepted_only_for_the_queue_among_its_resources(
    world: FleetWithStacks, name: str, said: dict[str, Any]
) -> None:
    old_rows(world, "acme")
    stack = old_stack(world, name, resource=old_queue("acme"), **said)
    pretender = old_stack(world, f"{name}-2", resource=OTHER_QUEUE, **said)
    world.reconcile(ADOPT)
    assert world.metadata_of(ACME).stack_id == stack.stack_id != pretender.stack_id


def test_a_tenant_whose_stack_is_not_found_is_listed_and_reported(world: FleetWithStacks) -> None:
    old_rows(world, "acme")
    old_stack(world, "acme", resource=OTHER_QUEUE)
    for spec in (DRY, ADOPT, DRY, ADOPT):
        finding = only(world.reconcile(spec))
        assert "no stack has its queue, so it is" in finding.detail
        assert "cannot be upgraded" in finding.detail
        assert "delete the queue by hand" in finding.advice
    assert states(world) == {"acme": TenantState.READY}
    assert world.metadata_of(ACME).stack_id is None


def test_a_queue_with_another_logical_id_is_reported_because_an_upgrade_would_replace_it(
    world: FleetWithStacks,
) -> None:
    old_rows(world, "acme")
    stack = old_stack(world, "acme", resource=None)
    world.stacks.other_queues[stack.stack_id] = {"Incoming": old_queue("acme")}
    finding = only(world.reconcile(ADOPT))
    assert finding.repaired
    assert "its queue is Incoming in the template, so an upgrade would replace it" in finding.detail


@pytest.mark.parametrize("tenant_id", ["globex", "customer acme"])
def test_a_stack_of_another_tenant_is_not_adopted_but_named(world: FleetWithStacks, tenant_id: str) -> None:
    stack = old_tenant(world, tenant_id=tenant_id)
    for _ in range(2):
        finding = only(world.reconcile(ADOPT))
        assert finding.detail == f"its queue is in stack {stack.stack_id}, whose parameter TenantId is '{tenant_id}'"
        assert "TenantId=acme" in advice(finding)
    assert world.metadata_of(ACME).stack_id is None


def test_a_stack_that_berth_made_for_another_tenant_is_named_too(world: FleetWithStacks) -> None:
    globex = world.add("globex")
    (stack,) = world.stacks_of(globex)
    old_rows(world, "acme", queue=queue_of(globex))
    finding = only(world.reconcile(ADOPT))
    assert finding.detail == f"its queue is in stack {stack.stack_id}, whose parameter TenantId is 'globex'"


def test_a_stack_of_another_tenant_without_the_queue_does_not_prevent_the_adoption(world: FleetWithStacks) -> None:
    old_tenant(world, tenant_id="globex", resource=OTHER_QUEUE)
    assert only(world.reconcile(ADOPT)).repaired


def test_a_url_of_an_older_sdk_is_replaced_by_the_url_that_cloudformation_lists(world: FleetWithStacks) -> None:
    """Both are addresses of one queue, and only one of them is the same text as in the stack and its change sets."""
    now, outbound = old_queue("acme"), old_queue("outbound")
    old_rows(world, "acme", queue=of_older_sdks(now), outbound_queue=of_older_sdks(outbound))
    stack = old_stack(world, "acme")
    world.stacks.other_queues[stack.stack_id] = {"Outgoing": outbound}
    assert only(world.reconcile(ADOPT)).repaired
    assert (world.metadata_of(ACME).stack_id, world.metadata_of(ACME).queue) == (stack.stack_id, now)
    assert kinds(world.reconcile(Spec())) == []


def test_a_row_with_the_arn_of_one_queue_and_the_url_of_another_matches_neither(world: FleetWithStacks) -> None:
    old_rows(world, "acme", queue=replace(old_queue("acme"), url=of_older_sdks(old_queue("globex")).url))
    old_stack(world, "acme")
    world.reconcile(ADOPT)
    assert world.metadata_of(ACME).stack_id is None


@pytest.mark.parametrize("dry_run", [True, False])
def test_two_tenants_do_not_get_the_same_stack(world: FleetWithStacks, dry_run: bool) -> None:
    old_tenant(world)
    old_rows(world, "globex", queue=old_queue("acme"))
    world.stacks.plant(replace(next(iter(world.stacks.living)), queue=old_queue("acme")))
    world.stacks.resources[next(iter(world.stacks.all))] = old_queue("acme")
    done = world.reconcile(replace(ADOPT, dry_run=dry_run))
    found = {finding.subject: finding for finding in done.findings}
    assert found["acme"].remedy is Remedy.ADOPT
    assert "belongs to tenant acme" in found["globex"].detail
    assert "delete the other tenant's rows" in advice(found["globex"])


def test_two_tenants_do_not_get_the_same_stack_in_two_adoptions(world: FleetWithStacks) -> None:
    stack = old_tenant(world)
    world.reconcile(ADOPT)
    old_rows(world, "twin", queue=old_queue("acme"))
    finding = only(world.reconcile(ADOPT))
    assert f"stack {stack.stack_id} has its queue, but belongs to tenant acme" in finding.detail
    assert "delete the other tenant's rows" in advice(finding)
    assert world.metadata_of(tenant("twin")).stack_id is None


def test_two_tenants_do_not_get_the_same_stack_in_two_simultaneous_adoptions(world: FleetWithStacks) -> None:
    """The other adoption has given the stack away since the index was read."""
    stack = old_tenant(world)
    old_rows(world, "twin", queue=old_queue("acme"))
    page = world.table.page

    def adopted_by_another(cursor: str | None, *, limit: int) -> UnlistedPage:
        found = page(cursor, limit=limit)
        world.table.plant_metadata(replace(world.metadata_of(ACME), stack_id=stack.stack_id))
        return found

    world.table.page = adopted_by_another  # type: ignore[method-assign]
    finding = only(world.reconcile(ADOPT))
    assert (finding.subject, finding.repaired) == ("twin", False)
    assert "belongs to tenant acme" in finding.detail


def test_a_stack_that_berth_has_provisioned_is_not_recorded_for_another_tenant(world: FleetWithStacks) -> None:
    """Its tenant is listed with a stack under a name of the earlier system. The other's rows name the same queue."""
    berths = world.add("berths", queue=old_queue("acme"))
    stack = old_tenant(world)
    world.table.plant_metadata(replace(world.metadata_of(berths), stack_id=stack.stack_id))
    assert "belongs to tenant berths" in only(world.reconcile(ADOPT)).detail
    assert world.metadata_of(ACME).stack_id is None


def test_a_stack_with_other_queues_is_not_adopted_because_an_upgrade_would_remove_them(
    world: FleetWithStacks,
) -> None:
    stack = old_tenant(world)
    world.stacks.other_queues[stack.stack_id] = {"GlobexInbound": old_queue("globex")}
    before = world.rows()
    finding = only(world.reconcile(ADOPT))
    assert f"GlobexInbound ({old_queue('globex').name})" in finding.detail
    assert stack.stack_id in finding.detail
    assert "DeletionPolicy: Retain" in advice(finding)
    assert world.rows() == before


def test_a_stack_may_have_the_tenants_other_queues_whatever_their_logical_ids(world: FleetWithStacks) -> None:
    old_rows(world, "acme", outbound_queue=old_queue("outbound"))
    stack = old_stack(world, "acme")
    world.stacks.other_queues[stack.stack_id] = {
        "Outgoing": old_queue("outbound"),
        "Failed": old_queue("failed"),
        "FailedOutgoing": old_queue("failed-outgoing"),
        "DeadLetterQueue": old_queue("dead-letters"),
    }
    world.queues.dead_letter_queues = {
        old_queue("acme").url: old_queue("failed").url,
        old_queue("outbound").url: old_queue("failed-outgoing").url,
    }
    assert only(world.reconcile(ADOPT)).repaired
    assert world.metadata_of(ACME).stack_id == stack.stack_id


@pytest.mark.parametrize("reached", [True, False])
def test_a_stack_of_another_control_plane_is_not_adopted_and_no_change_of_it_is_advised(
    world: FleetWithStacks, reached: bool
) -> None:
    token = "arn:aws:lambda:eu-west-1:000000000000:function:old-tenant-metadata"
    if not reached:
        world.stacks.names = NAMES
    stack = old_tenant(world, parameters={"MetadataServiceToken": token}, queue=old_queue("acme"))
    finding = only(world.reconcile(ADOPT))
    assert f"an output of stack {stack.stack_id}, which belongs to the control plane of {token}" in finding.detail
    assert "berth:legacyStackPrefixes" not in advice(finding)
    assert world.metadata_of(ACME).stack_id is None


@pytest.mark.parametrize("says", ["beside", "acme"], ids=["another queue", "this tenant's queue"])
def test_a_tenant_with_the_same_id_in_another_control_plane_does_not_prevent_the_adoption(
    world: FleetWithStacks, says: str
) -> None:
    """Whatever the outputs of its stack say: CloudFormation lists the queue in this tenant's stack."""
    token = "arn:aws:lambda:eu-west-1:000000000000:function:berth-dev-tenant-metadata"
    parameters = {"MetadataServiceToken": token}
    old_stack(world, "beside", tenant_id="acme", parameters=parameters, queue=old_queue(says))
    stack = old_tenant(world)
    assert only(world.reconcile(ADOPT)).repaired
    assert world.metadata_of(ACME).stack_id == stack.stack_id


@pytest.mark.parametrize("queue", [old_queue("mine"), None], ids=["a queue in no stack", "no queue"])
def test_a_tenant_whose_row_names_a_stack_without_its_queue_is_not_adopted(
    world: FleetWithStacks, queue: Queue | None
) -> None:
    """A delete of the tenant would delete the other tenant's stack."""
    bobs = old_tenant(world, "bob")
    old_rows(world, "acme", queue=queue, stack_id=bobs.stack_id)
    done = world.reconcile(ADOPT)
    found = {finding.subject: finding for finding in done.findings}
    assert found["bob"].repaired
    assert f"its row names stack {bobs.stack_id}, which does not have its queue" in found["acme"].detail
    assert "StackId" in advice(found["acme"])
    assert states(world) == {"bob": TenantState.READY}


def test_a_tenant_that_is_recorded_as_deleted_is_not_adopted_while_its_stack_exists(world: FleetWithStacks) -> None:
    """Without its metadata nobody would know of the stack any more."""
    stack = old_stack(world, "acme")
    old_rows(world, "acme", version=None)
    old_audit(world, "acme", Operation.DELETE, Status.SUCCESS, at=NOON)
    finding = only(world.reconcile(ADOPT))
    assert f"stack {stack.stack_id} has its queue" in finding.detail
    assert "delete the stack" in advice(finding)
    assert world.metadata_of(ACME).queue == old_queue("acme")
    assert kinds(world.reconcile(Spec(repair=False))) == [(Kind.UNLISTED, "acme")]
    world.stacks.change(stack.stack_id, "DELETE_COMPLETE")
    assert only(world.reconcile(ADOPT)).repaired
    assert states(world) == {"acme": TenantState.DELETED}


def test_a_recorded_stack_that_was_deleted_does_not_prevent_the_adoption(world: FleetWithStacks) -> None:
    gone = old_stack(world, "acme", status="DELETE_COMPLETE")
    old_rows(world, "acme", stack_id=gone.stack_id)
    assert only(world.reconcile(ADOPT)).repaired


@pytest.mark.parametrize("logical_id", ["OutboundQueue", "DeadLetterQueue"])
@pytest.mark.parametrize("other", ["bob", "aaa"], ids=["whose turn comes later", "whose turn was before"])
def test_a_stack_is_not_adopted_if_another_tenant_is_served_from_one_of_its_queues(
    world: FleetWithStacks, other: str, logical_id: str
) -> None:
    """Whatever the template calls the queue: the tenant's next upgrade or delete would remove it."""
    if logical_id == "DeadLetterQueue":
        other = world.add(other, queue=old_queue(other)).value
    else:
        old_rows(world, other)
    stack = old_tenant(world)
    world.stacks.other_queues[stack.stack_id] = {logical_id: old_queue(other)}
    done = world.reconcile(ADOPT)
    found = {finding.subject: finding for finding in done.findings}
    assert not found["acme"].repaired
    assert f"{logical_id} ({old_queue(other).name})" in found["acme"].detail
    assert world.metadata_of(ACME).stack_id is None


def test_an_outbound_queue_counts_as_the_tenants_if_no_tenant_is_served_from_it(
    world: FleetWithStacks,
) -> None:
    stack = old_tenant(world)
    old_tenant(world, "bob")
    world.stacks.other_queues[stack.stack_id] = {"OutboundQueue": old_queue("acme-out")}
    done = world.reconcile(ADOPT)
    assert done.repaired == 2
    assert done.coverage.rows == 2


def test_a_dead_letter_queue_out_of_reach_does_not_stop_the_adoption(world: FleetWithStacks) -> None:
    def out_of_reach(url: str) -> str | None:
        raise QueueOutOfReach(f"Berth may not look at the dead letters of {url}")

    stack = old_tenant(world)
    world.queues.dead_letter_queue = out_of_reach  # type: ignore[method-assign]
    world.stacks.other_queues[stack.stack_id] = {"Failed": old_queue("failed")}
    assert "Failed" in only(world.reconcile(ADOPT)).detail


def test_a_stack_with_a_name_similar_to_berths_is_out_of_reach_unless_a_setting_has_its_prefix(
    world: FleetWithStacks,
) -> None:
    """Its custom resource would not be believed."""
    name = f"{NAMES.tenant_prefix}acme"
    stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{name}/1"
    world.stacks.resources[stack_id] = old_queue("acme")
    world.stacks.plant(Stack(stack_id, "CREATE_COMPLETE", "", "acme", None, None, ours=False))
    old_rows(world, "acme")
    finding = only(world.reconcile(ADOPT))
    assert name in finding.detail
    assert "berth:legacyStackPrefixes" in advice(finding)
    world.stacks.names = Names("Berth", (NAMES.tenant_prefix,))
    assert only(world.reconcile(ADOPT)).repaired
    assert world.metadata_of(ACME).stack_id == stack_id
    assert kinds(world.reconcile(Spec())) == []


def test_a_stack_out_of_reach_is_not_adopted_and_the_advice_names_the_setting(world: FleetWithStacks) -> None:
    world.stacks.names = NAMES
    stack = old_tenant(world)
    before = world.rows()
    finding = only(world.reconcile(ADOPT))
    assert name_of(stack.stack_id) in finding.detail
    assert "berth:legacyStackPrefixes" in advice(finding)
    assert world.rows() == before
    assert "queues" not in world.stacks.calls


# Tenants that an adoption leaves alone


def test_a_tenant_with_a_running_operation_of_berth_is_not_adopted(world: FleetWithStacks) -> None:
    """It lists the tenant itself. Here the index does not show that yet."""
    old_tenant(world)
    world.begin(a_run(tenant=ACME, operation=Operation.UPDATE))
    world.table.change_metadata(ACME, listed_state=None)
    finding = only(world.reconcile(ADOPT))
    assert "UPDATE 0.1.0 is running" in finding.detail
    assert "repeat the adoption" in advice(finding)


def test_a_tenant_with_a_recent_operation_of_the_earlier_system_is_not_adopted(world: FleetWithStacks) -> None:
    old_tenant(world)
    old_audit(world, "acme", Operation.UPDATE, Status.STARTED, version="0.1.18", at=NOON)
    world.clock.advance(LEGACY_MAX_RUN_TIME - timedelta(seconds=1))
    assert "Switch that system off" in advice(only(world.reconcile(ADOPT)))
    world.clock.advance(timedelta(seconds=2))
    assert only(world.reconcile(ADOPT)).repaired


def test_a_tenant_whose_stack_is_being_changed_is_not_adopted(world: FleetWithStacks) -> None:
    old_tenant(world, status="UPDATE_IN_PROGRESS")
    assert "repeat the adoption" in advice(only(world.reconcile(ADOPT)))


def test_a_tenant_that_changes_at_the_same_time_is_left_to_the_next_adoption(world: FleetWithStacks) -> None:
    old_tenant(world)
    adopt = world.table.adopt
    world.table.adopt = lambda *_: False  # type: ignore[method-assign]
    finding = only(world.reconcile(ADOPT))
    assert not finding.repaired
    assert "has changed meanwhile" in finding.result
    world.table.adopt = adopt  # type: ignore[method-assign]
    assert only(world.reconcile(ADOPT)).repaired


# Tenants that an operation has listed before they were adopted


def listed_tenant(world: FleetWithStacks) -> None:
    """Its stack has another name, so the operation has found none."""
    old_rows(world, "acme")
    run = a_run(tenant=ACME, operation=Operation.UPDATE)
    world.begin_and_die(run)
    world.table.fail(run, QUEUE_TABOO, NOON)


def test_the_stack_of_a_listed_tenant_is_recorded(world: FleetWithStacks) -> None:
    listed_tenant(world)
    stack = old_stack(world, "acme")
    assert kinds(world.reconcile(Spec())) == [(Kind.UNLISTED, "acme")]
    assert only(world.reconcile(ADOPT)).repaired
    assert world.metadata_of(ACME).stack_id == stack.stack_id
    assert world.audit(ACME, Operation.UPDATE).root_cause == QUEUE_TABOO, "Berth's own operations stay as they are"
    assert states(world) == {"acme": TenantState.UPDATE_FAILED}
    assert kinds(world.reconcile(Spec())) == []


def test_a_tenant_without_a_stack_is_reported_by_every_adoption(world: FleetWithStacks) -> None:
    listed_tenant(world)
    for _ in range(2):
        finding = only(world.reconcile(ADOPT))
        assert "no stack has its queue" in finding.detail
        assert "delete the queue by hand" in advice(finding)
        assert "describe-stack-resources --physical-resource-id" in advice(finding)


def test_a_stack_with_the_tenants_name_need_not_be_recorded(world: FleetWithStacks) -> None:
    who = world.add("acme")
    world.table.plant_metadata(replace(world.metadata_of(who), stack_id=None))
    assert world.reconcile(ADOPT).total == 0
    assert kinds(world.reconcile(Spec())) == []


# Whatever is in the rows


class OddTable(MeddledTable):
    """A table into which somebody has written what cannot be read."""

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        if cursor == "made up":
            raise InvalidRequest("The cursor is not one that an adoption has returned.")
        page = super().page(cursor, limit=limit)
        return replace(page, tenants=["-no id-", "unreadable", *page.tenants])

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        if tenant.value == "unreadable":
            raise UnreadableRows("the rows TENANT_ID#unreadable cannot be read")
        return super().unlisted(tenant)

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        if seen.tenant.value == "unwritable":
            raise UnreadableRows("DynamoDB does not take the rows TENANT_ID#unwritable")
        return super().adopt(seen, adopted, change)


def test_unreadable_rows_are_reported_and_the_other_tenants_are_adopted(world: FleetWithStacks) -> None:
    world.table = OddTable()
    old_tenant(world, "unwritable")
    old_rows(world, "long", version="é" * 51)
    old_tenant(world, "zeta")
    done = world.reconcile(ADOPT)
    found = {finding.subject: finding for finding in done.findings}
    assert done.status is ReconciliationStatus.DONE
    assert found["zeta"].repaired
    for odd in ("-no id-", "unreadable", "unwritable", "long"):
        assert "in the table" in advice(found[odd])


def test_an_unknown_cursor_is_reported(world: FleetWithStacks) -> None:
    world.table = OddTable()
    done = world.reconcile(replace(ADOPT, cursor="made up"))
    assert (done.status, done.reason) == (
        ReconciliationStatus.INCOMPLETE,
        "The cursor is not one that an adoption has returned.",
    )


# A large table


def many(world: FleetWithStacks, count: int) -> list[str]:
    names = [f"t{number:04}" for number in range(count)]
    for name in names:
        old_audit(world, name, Operation.CREATE, Status.FAILURE)
    return names


def test_an_adoption_stops_at_the_maximum_number_of_findings_and_the_next_continues(world: FleetWithStacks) -> None:
    names = many(world, 450)
    subjects: list[str] = []
    cursor: str | None = None
    parts: list[Reconciliation] = []
    while not parts or cursor:
        part = world.reconcile(replace(ADOPT, cursor=cursor))
        assert part.total == len(part.findings) <= MAX_FINDINGS
        subjects += [finding.subject for finding in part.findings]
        assert (part.cursor is None) is (part.status is ReconciliationStatus.DONE)
        cursor = part.cursor
        parts.append(part)
    assert (subjects, len(parts)) == (names, 3)
    assert sum(part.coverage.rows for part in parts) == 450


def test_the_progress_is_recorded_for_every_page(world: FleetWithStacks) -> None:
    many(world, 150)
    world.reconcile(DRY)
    assert [each.coverage.rows for each in world.reconciliation_table.written] == [0, 100, 150, 150]


@pytest.mark.parametrize("allowed", range(2, 30, 3))
def test_when_the_time_runs_out_the_next_adoption_continues_without_repeating_or_skipping(
    world: FleetWithStacks, allowed: int
) -> None:
    names = many(world, 12)
    looks = iter(range(10_000))
    first = world.reconcile(ADOPT, has_time=lambda: next(looks) < allowed)
    second = world.reconcile(replace(ADOPT, cursor=first.cursor))
    assert second.status is ReconciliationStatus.DONE
    subjects = [finding.subject for part in (first, second) for finding in part.findings]
    assert sorted(subjects) == names
    assert set(states(world)) == set(names)


def test_a_throttled_adoption_is_incomplete_and_can_be_continued(world: FleetWithStacks) -> None:
    old_tenant(world)
    world.stacks.throttled_calls = 1
    world.stacks.throttle(1)
    done = world.reconcile(ADOPT)
    assert done.status is ReconciliationStatus.INCOMPLETE
    assert "Rate exceeded" in done.reason
    assert only(world.reconcile(replace(ADOPT, cursor=done.cursor))).repaired


def test_the_table_is_scanned_slowly(world: FleetWithStacks) -> None:
    many(world, 250)
    pauses: list[float] = []
    world.pause = pauses.append
    world.reconcile(ADOPT)
    assert pauses == [50 / READ_UNITS_PER_SECOND]


# Surveys of tenants that are not adopted


def test_a_survey_reports_unlisted_tenants(world: FleetWithStacks) -> None:
    """Whatever the names of their stacks, and whether they have any."""
    old_tenant(world, "named-otherwise")
    old_audit(world, "without-a-stack", Operation.CREATE, Status.FAILURE)
    old_rows(world, "named", queue=queue_of(tenant("named")))
    world.stacks.plant_done(tenant("named"), queue=queue_of(tenant("named")), version=None, ours=False)
    before = world.rows()
    done = world.reconcile(Spec())
    assert sorted(kinds(done)) == [
        (Kind.UNLISTED, "named"),
        (Kind.UNLISTED, "named-otherwise"),
        (Kind.UNLISTED, "without-a-stack"),
    ]
    assert all("berth adopt" in advice(finding) for finding in done.findings)
    assert (done.left, done.scanned_at) == (3, None)
    assert world.rows() == before, "only an adoption adopts"


def test_a_scheduled_survey_scans_the_table_rarely(world: FleetWithStacks) -> None:
    world.add("acme")
    first = on_schedule(world)
    assert (first.coverage.rows, first.scanned_at) == (1, NOON)
    world.clock.advance(SCAN_EVERY - timedelta(seconds=1))
    second = on_schedule(world)
    assert (second.coverage.rows, second.scanned_at) == (0, NOON)
    world.clock.advance(timedelta(seconds=1))
    assert on_schedule(world).coverage.rows == 1


def test_a_requested_survey_always_scans_the_table(world: FleetWithStacks) -> None:
    on_schedule(world)
    old_audit(world, "acme", Operation.CREATE, Status.FAILURE)
    assert kinds(world.reconcile(Spec())) == [(Kind.UNLISTED, "acme")]


def test_every_survey_scans_the_table_while_there_are_unlisted_tenants(world: FleetWithStacks) -> None:
    old_audit(world, "acme", Operation.CREATE, Status.FAILURE)
    for _ in range(2):
        assert on_schedule(world).counts == {Kind.UNLISTED: 1}
    world.reconcile(ADOPT)
    assert on_schedule(world).counts == {}


def test_a_survey_finds_unreadable_rows(world: FleetWithStacks) -> None:
    world.table = OddTable()
    assert sorted(kinds(world.reconcile(Spec()))) == [(Kind.UNLISTED, "-no id-"), (Kind.UNLISTED, "unreadable")]


def test_a_throttled_scan_does_not_count_as_complete(world: FleetWithStacks) -> None:
    def throttled(_cursor: str | None, *, limit: int) -> UnlistedPage:  # noqa: ARG001 - the port's
        raise Throttled("Scan: Rate exceeded")

    world.table.page = throttled  # type: ignore[method-assign]
    done = on_schedule(world)
    assert (done.status, done.scanned_at) == (ReconciliationStatus.INCOMPLETE, None)
