"""One tenant's records, compared with its stack as it is now."""

from __future__ import annotations

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.reconciling.comparing import Agreement
from orchestrator.reconciling.records import Kind, Remedy
from orchestrator.tenants.records import Operation
from tests.fakes import ACME, NEXT_VERSION, NOON, OTHER_QUEUE, VERSION, a_run, stack_arn
from tests.unit.reconciling.world import FleetWithStacks, queue_of, tenant


@pytest.fixture
def world() -> FleetWithStacks:
    return FleetWithStacks()


def test_a_tenant_whose_stack_is_as_recorded_agrees(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    compared = world.comparing.compare(acme)
    assert (compared.agreement, compared.finding, compared.at) == (Agreement.AGREES, None, NOON)
    assert compared.stack is not None
    assert (compared.stack.version, compared.stack.queue) == (VERSION, queue_of(acme))


def test_nothing_is_repaired(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.stacks.change(stack_arn(acme), "UPDATE_COMPLETE", version=NEXT_VERSION)
    before = world.table.metadata(acme)
    compared = world.comparing.compare(acme)
    assert compared.agreement is Agreement.DIFFERS
    assert compared.finding is not None
    assert (compared.finding.kind, compared.finding.remedy) == (Kind.METADATA_DIFFERS, Remedy.CORRECT)
    assert world.table.metadata(acme) == before
    assert not world.executions.started


def test_a_stack_that_is_gone_differs(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.take_stack_away(acme)
    compared = world.comparing.compare(acme)
    assert (compared.agreement, compared.stack) == (Agreement.DIFFERS, None)
    assert compared.finding is not None
    assert compared.finding.kind is Kind.MISSING_STACK


def test_while_an_operation_runs_nothing_is_said_about_differences(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.begin(a_run(tenant=acme, operation=Operation.UPDATE, version=NEXT_VERSION))
    world.stacks.change(stack_arn(acme), "UPDATE_COMPLETE", version=NEXT_VERSION)
    compared = world.comparing.compare(acme)
    assert (compared.agreement, compared.finding) == (Agreement.CHANGING, None)


def test_while_cloudformation_changes_the_stack_nothing_is_said_about_differences(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.stacks.change(stack_arn(acme), "UPDATE_IN_PROGRESS", queue=OTHER_QUEUE)
    assert world.comparing.compare(acme).agreement is Agreement.CHANGING


def test_other_outputs_than_the_recorded_ones_differ_and_nothing_repairs_that(world: FleetWithStacks) -> None:
    acme = world.add("acme", resources={"Bucket": "acme-files", "Table": "acme"})
    world.stacks.change(stack_arn(acme), "UPDATE_COMPLETE", outputs={"Bucket": "other", "Table": "acme"})
    finding = world.comparing.compare(acme).finding
    assert finding is not None
    assert finding.detail == "the metadata differs from the stack's outputs: Bucket"
    assert finding.remedy is Remedy.NONE


def test_outputs_that_were_never_recorded_are_no_difference(world: FleetWithStacks) -> None:
    """Adopted tenants have none until their next operation."""
    acme = world.add("acme")
    world.stacks.change(stack_arn(acme), "UPDATE_COMPLETE", outputs={"Bucket": "acme-files"})
    assert world.comparing.compare(acme).agreement is Agreement.AGREES


def test_a_queue_that_is_out_of_reach_is_a_finding(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.queues.out_of_reach.add(queue_of(acme).url)
    compared = world.comparing.compare(acme)
    assert compared.agreement is Agreement.DIFFERS
    assert compared.finding is not None
    assert "no permission" in compared.finding.detail


def test_a_tenant_without_records_and_stack_is_not_known(world: FleetWithStacks) -> None:
    assert not world.comparing.compare(tenant("nobody")).known


def test_a_stack_without_records_is_a_finding(world: FleetWithStacks) -> None:
    world.stacks.plant_done(ACME)
    compared = world.comparing.compare(ACME)
    assert compared.known
    assert compared.finding is not None
    assert compared.finding.kind is Kind.ORPHAN_STACK


def test_throttling_is_told_and_not_taken_for_an_absence(world: FleetWithStacks) -> None:
    acme = world.add("acme")
    world.stacks.throttle(1)
    with pytest.raises(Throttled):
        world.comparing.compare(acme)
