"""A survey of the whole fleet: what differs is found, and repaired if that was asked for."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.ports import StackPage, SurveyedStack
from orchestrator.reconciling.records import (
    Coverage,
    Kind,
    ReconciliationStatus,
    Spec,
)
from orchestrator.reconciling.surveying import DRIFT_AT_ONCE
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Metadata, Operation, Queue, RootCause, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import ACME, NAMES, NEXT_VERSION, OTHER_QUEUE, VERSION, a_release, a_run, an_audit, stack_arn
from tests.unit.reconciling.world import ADA, LONG_AGO, FleetWithStacks, MeddledTable, kinds, queue_of, tenant

LOOK = Spec(repair=False)
DRY = Spec(dry_run=True)
REPAIR = Spec()
ONLY_SETTLE = Spec(survey=False)
A_SECOND = timedelta(seconds=1)
QUEUE_OF_NOBODY = Queue("arn:aws:sqs:eu-west-1:000000000000:inbox", "https://sqs.eu-west-1.amazonaws.com/0/inbox")


@pytest.fixture
def world() -> FleetWithStacks:
    return FleetWithStacks()


# A fleet that is as it should be


def test_a_healthy_fleet_needs_only_the_index_and_the_list_of_stacks(world: FleetWithStacks) -> None:
    for number in range(5):
        world.add(f"t{number}")
    world.survey.others = [SurveyedStack("Berth", Stack("arn:x", "UPDATE_COMPLETE", "", None, None, None, ours=True))]
    world.stacks.calls.clear()
    done = world.reconcile(REPAIR)
    assert done.status is ReconciliationStatus.DONE
    assert done.coverage == Coverage(operations=0, tenants=5, stacks=5, all_stacks=6, drift=0)
    assert not done.findings
    assert done.total == done.repaired == 0
    assert not world.stacks.calls


def test_tenants_with_running_operations_are_not_checked(world: FleetWithStacks) -> None:
    world.begin(a_run(tenant=tenant("creating")))
    for name, operation in (("updating", Operation.UPDATE), ("deleting", Operation.DELETE)):
        world.begin(a_run(tenant=world.add(name), operation=operation, version=NEXT_VERSION))
        world.take_stack_away(tenant(name))
    world.stacks.calls.clear()
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert done.coverage.tenants == 3
    assert not world.stacks.calls


def test_versions_with_the_same_content_are_no_difference(world: FleetWithStacks) -> None:
    world.table = MeddledTable()
    for version in (VERSION, NEXT_VERSION):
        world.table.record_release(a_release(version, content="the same"))
    world.add("acme", version=NEXT_VERSION, stack_version=VERSION)
    assert not world.reconcile(REPAIR).findings


def test_deleted_tenants_without_a_stack_are_not_checked(world: FleetWithStacks) -> None:
    world.add("acme")
    world.take_stack_away(ACME)
    world.delete(ACME)
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert done.coverage.tenants == 0


# Differences


def everything_wrong(world: FleetWithStacks) -> dict[str, Kind]:
    """A tenant for everything that can be wrong with one, and one that is well."""
    world.add("well")
    world.add("differs", queue=OTHER_QUEUE)
    world.add("unknown-version", version="0.1.9")
    world.queues.gone.add(queue_of(world.add("vanished")).url)
    world.take_stack_away(world.add("missing"))
    world.queues.gone.add(queue_of(tenant("missing")).url)
    world.delete(world.add("orphan"))
    world.stacks.plant_done(tenant("stray"), queue=queue_of(tenant("stray")))
    forgotten = world.add("forgotten")
    world.take_stack_away(forgotten)
    world.table.forget_queue(forgotten, stack_id=str(world.metadata_of(forgotten).stack_id))
    return {
        "differs": Kind.METADATA_DIFFERS,
        "unknown-version": Kind.UNKNOWN_VERSION,
        "vanished": Kind.VANISHED_QUEUE,
        "missing": Kind.MISSING_STACK,
        "orphan": Kind.ORPHAN_STACK,
        "stray": Kind.ORPHAN_STACK,
        "forgotten": Kind.MISSING_STACK,
    }


@pytest.mark.parametrize("spec", [LOOK, DRY], ids=["only looking", "dry run"])
def test_differences_are_found_and_not_repaired_by_default(world: FleetWithStacks, spec: Spec) -> None:
    expected = everything_wrong(world)
    before = world.rows()
    done = world.reconcile(spec)
    assert {finding.subject: finding.kind for finding in done.findings} == expected
    assert done.total == len(expected)
    assert not done.repaired
    assert not any(finding.result or finding.repaired for finding in done.findings)
    assert world.rows() == before
    assert not world.executions.started


def test_differences_are_repaired_on_request(world: FleetWithStacks) -> None:
    everything_wrong(world)
    done = world.reconcile(REPAIR)
    assert {finding.subject for finding in done.findings if finding.repaired} == {"differs"}
    ordered = {finding.subject for finding in done.findings if finding.ordered}
    assert ordered == {"unknown-version", "missing", "orphan", "stray", "forgotten"}
    assert (done.repaired, done.ordered, done.left) == (1, len(ordered), 1)
    assert sorted(world.ordered()) == [
        (Operation.CREATE, "forgotten", VERSION),
        (Operation.CREATE, "missing", VERSION),
        (Operation.CREATE, "stray", NEXT_VERSION),
        (Operation.DELETE, "orphan", NEXT_VERSION),
        (Operation.UPDATE, "unknown-version", NEXT_VERSION),
    ]
    assert all(request.by == ADA for _, request in world.executions.started)
    assert world.metadata_of(tenant("differs")).queue == queue_of(tenant("differs"))


def test_two_reconciliations_start_one_operation(world: FleetWithStacks) -> None:
    everything_wrong(world)
    world.reconcile(REPAIR)
    ordered = world.ordered()
    done = world.reconcile(REPAIR)
    assert world.ordered() == ordered
    assert ("differs", Kind.METADATA_DIFFERS) not in {(finding.subject, finding.kind) for finding in done.findings}


def test_a_tenant_that_was_never_created_is_not_created_by_a_repair(world: FleetWithStacks) -> None:
    """An update of a tenant that there never was is refused, and leaves its row."""
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, at=LONG_AGO))
    done = world.reconcile(REPAIR)
    assert done.coverage.tenants == 1
    assert not done.findings
    assert not world.executions.started


def test_the_stack_is_read_again_before_a_repair(world: FleetWithStacks) -> None:
    """The stack was made after the list was."""
    world.add("acme")
    world.survey.page = lambda _token: StackPage([], None)  # type: ignore[method-assign]
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert world.stacks.calls == ["find"]


def test_an_operation_that_began_meanwhile_is_not_disturbed(world: FleetWithStacks) -> None:
    world.add("acme", queue=OTHER_QUEUE)
    find = world.stacks.find

    def found_as_it_begins(name_or_id: str) -> Stack | None:
        world.begin(a_run(operation=Operation.UPDATE, version=NEXT_VERSION))
        return find(name_or_id)

    world.stacks.find = found_as_it_begins  # type: ignore[method-assign]
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert world.metadata_of(ACME).queue == OTHER_QUEUE


# Stacks that are nobody's


def test_a_stack_with_the_prefix_of_tenants_stacks_and_without_a_tenant_is_foreign(world: FleetWithStacks) -> None:
    def a_stack(name: str, who: str | None) -> SurveyedStack:
        return SurveyedStack(name, Stack(f"arn:{name}", "CREATE_COMPLETE", "", who, None, None, ours=True))

    world.survey.others = [
        a_stack(f"{NAMES.tenant_prefix}by-hand", None),
        a_stack(f"{NAMES.tenant_prefix}no-id", "not an id!"),
        a_stack(f"{NAMES.tenant_prefix}acme-00000000", "acme"),
        a_stack("someone-elses", "acme"),
    ]
    done = world.reconcile(REPAIR)
    assert kinds(done) == [
        (Kind.FOREIGN_STACK, f"{NAMES.tenant_prefix}by-hand"),
        (Kind.FOREIGN_STACK, f"{NAMES.tenant_prefix}no-id"),
        (Kind.FOREIGN_STACK, f"{NAMES.tenant_prefix}acme-00000000"),
    ]
    assert done.coverage.all_stacks == 4
    assert done.coverage.stacks == 3
    assert not world.executions.started


@pytest.mark.parametrize("name", ["Berth-dev", "B", "berthing", "Berth2"])
def test_the_stacks_of_another_control_plane_are_only_counted(world: FleetWithStacks, name: str) -> None:
    world.add("acme")
    stack = replace(world.stacks.living[0], stack_id=f"arn:x/{Names(name).stack_of(ACME)}/1", ours=False)
    world.survey.others = [SurveyedStack(Names(name).stack_of(ACME), stack)]
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert (done.coverage.all_stacks, done.coverage.stacks, done.coverage.tenants) == (2, 1, 1)


def test_a_stack_with_one_tenants_name_and_another_tenants_id_is_foreign(world: FleetWithStacks) -> None:
    world.stacks.plant(Stack(stack_arn(), "CREATE_COMPLETE", "", "bolt", None, None, ours=True))
    assert kinds(world.reconcile(REPAIR)) == [(Kind.FOREIGN_STACK, NAMES.stack_of(ACME))]


def test_a_repair_does_not_lose_a_deleted_tenants_messages(world: FleetWithStacks) -> None:
    world.delete(world.add("acme"))
    world.queues.held[queue_of(ACME).url] = Messages(1, 0, 0)
    world.reconcile(REPAIR)
    ((_, request),) = world.executions.started
    assert not request.force


# Drift


def test_drift_that_cloudformation_reports_is_found(world: FleetWithStacks) -> None:
    drifted = world.drifting(25)
    done = world.reconcile(Spec(detect_drift=True))
    assert sorted(kinds(done)) == [(Kind.DRIFTED, name) for name in drifted]
    assert done.coverage.drift == 25
    assert not done.repaired
    assert not world.executions.started


def test_drift_is_detected_only_on_request(world: FleetWithStacks) -> None:
    world.drifting(3)
    done = world.reconcile(REPAIR)
    assert not done.findings
    assert done.coverage.drift == 0


def test_few_drift_detections_run_at_once_with_pauses_in_between(world: FleetWithStacks) -> None:
    world.drifting(25)
    world.survey.looks_needed = 3
    under_way: set[str] = set()
    most, pauses = 0, 0
    start, drift = world.survey.start_drift_detection, world.survey.drift

    def started(stack_id: str) -> str | None:
        nonlocal most
        under_way.add(f"detection of {stack_id}")
        most = max(most, len(under_way))
        return start(stack_id)

    def looked(detection: str) -> object:
        drifted = drift(detection)
        if drifted.done:
            under_way.remove(detection)
        return drifted

    def paused(seconds: float) -> None:
        nonlocal pauses
        assert seconds > 0
        pauses += 1

    world.survey.start_drift_detection = started  # type: ignore[method-assign]
    world.survey.drift = looked  # type: ignore[method-assign,assignment]
    world.pause = paused
    done = world.reconcile(Spec(detect_drift=True))
    assert done.coverage.drift == 25
    assert most == DRIFT_AT_ONCE
    assert pauses == 3 * 2


def test_a_stack_whose_drift_cannot_be_detected_now_is_left_out(world: FleetWithStacks) -> None:
    world.drifting(3)
    (stack,) = world.stacks_of(tenant("t00"))
    world.survey.cannot_be_compared.add(stack.stack_id)
    done = world.reconcile(Spec(detect_drift=True))
    assert kinds(done) == [(Kind.DRIFTED, "t02")]
    assert done.coverage.drift == 2


def test_resources_that_cloudformation_may_not_compare_are_reported(world: FleetWithStacks) -> None:
    """A tenant of an operator's template has resources that Berth has no permissions for."""
    (stack,) = world.stacks_of(world.add("acme"))
    world.survey.failing[stack.stack_id] = "not authorized to perform: dynamodb:DescribeTable"
    (finding,) = world.reconcile(Spec(detect_drift=True)).findings
    assert (finding.kind, finding.subject) == (Kind.DRIFTED, "acme")
    assert "could not be compared with the template: not authorized to perform" in finding.detail
    assert f"detect-stack-drift --stack-name {stack.stack_id}" in finding.advice


def test_the_drift_of_broken_or_foreign_stacks_is_not_detected(world: FleetWithStacks) -> None:
    (stack,) = world.stacks_of(world.add("broken"))
    world.stacks.change(stack.stack_id, "UPDATE_ROLLBACK_FAILED")
    world.stacks.plant_done(tenant("stray"))
    world.delete(world.add("deleted"))
    assert world.reconcile(replace(LOOK, detect_drift=True)).coverage.drift == 0


@pytest.mark.parametrize("listed_as", [QUEUE_OF_NOBODY, None], ids=["also in its stack", "only in its row"])
def test_a_queue_without_permission_is_a_finding_and_the_survey_continues(
    world: FleetWithStacks, listed_as: Queue | None
) -> None:
    strange, _other = world.add("strange"), world.add("zeta")
    metadata = world.table.metadata(strange)
    assert metadata is not None
    world.table.plant_metadata(replace(metadata, queue=QUEUE_OF_NOBODY))
    if listed_as:
        (stack,) = world.stacks_of(strange)
        world.stacks.all[stack.stack_id].stack = replace(stack, queue=listed_as)
    world.queues.out_of_reach.add(QUEUE_OF_NOBODY.url)
    world.take_stack_away(tenant("zeta"))
    done = world.reconcile(LOOK)
    assert done.status is ReconciliationStatus.DONE
    assert kinds(done) == [(Kind.METADATA_DIFFERS, "strange"), (Kind.MISSING_STACK, "zeta")]
    assert "no permission to read" in done.findings[0].detail


class UnreadableTable(MeddledTable):
    """A table in which the rows of some tenants cannot be read."""

    def metadata(self, tenant: TenantId) -> Metadata | None:
        if tenant.value.startswith("unreadable"):
            raise UnreadableRows(f"the row TENANT_ID#{tenant} METADATA cannot be read")
        return super().metadata(tenant)

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> list[ListedTenant]:
        cause = RootCause("METADATA", "AWS::DynamoDB::Table", "The row cannot be read.")
        return [
            replace(each, readable=False, root_cause=cause) if each.tenant.value == "odd" else each
            for each in super().tenants_in(state, version=version, prefix=prefix, after=after, limit=limit)
        ]


def test_unreadable_rows_are_a_finding_and_the_survey_continues(world: FleetWithStacks) -> None:
    for name in ("odd", "unreadable-listed", "zeta"):
        world.add(name)
    table = UnreadableTable()
    table.__dict__.update(world.table.__dict__)
    world.table = table
    for name in ("unreadable-listed", "zeta"):
        world.take_stack_away(tenant(name))
    world.stacks.plant_done(tenant("unreadable-unlisted"))
    done = world.reconcile(LOOK)
    assert done.status is ReconciliationStatus.DONE
    assert sorted(kinds(done)) == [
        (Kind.METADATA_DIFFERS, "odd"),
        (Kind.METADATA_DIFFERS, "unreadable-listed"),
        (Kind.METADATA_DIFFERS, "unreadable-unlisted"),
        (Kind.MISSING_STACK, "zeta"),
    ]


def test_a_stack_whose_template_was_replaced_by_one_without_a_version_is_found(
    world: FleetWithStacks,
) -> None:
    who = world.add("acme", deployed="the fingerprint of a release")
    (stack,) = world.stacks_of(who)
    world.stacks.resources[stack.stack_id] = queue_of(who)
    world.stacks.change(stack.stack_id, "UPDATE_COMPLETE", version=None, queue=None)
    done = world.reconcile(LOOK)
    assert kinds(done) == [(Kind.METADATA_DIFFERS, "acme")]
    assert "its template is not a release" in done.findings[0].detail


def test_a_stack_without_an_operation_is_an_orphan_even_if_it_has_recorded_its_queue(world: FleetWithStacks) -> None:
    who = tenant("orphan")
    stack = world.stacks.plant_done(who, queue=queue_of(who))
    world.table.record_queue(who, stack_id=stack.stack_id, queue=queue_of(who), at=world.clock.now())
    assert kinds(world.reconcile(LOOK)) == [(Kind.ORPHAN_STACK, "orphan")]
