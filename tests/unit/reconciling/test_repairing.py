"""What is done about a finding: what an operator would order, or a correction; refused as any order is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.classifying import Observation, classify
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.tenants.records import Attempt, Messages, Operation, Request, Status
from tests.fakes import ACME, NEXT_VERSION, OTHER_QUEUE, VERSION, FakeExecutions, a_run, an_audit, take
from tests.unit.reconciling.world import A_MINUTE, ADA, LONG_AGO, FleetWithStacks, a_finding, queue_of


@pytest.fixture
def world() -> FleetWithStacks:
    return FleetWithStacks()


def look(world: FleetWithStacks, who: TenantId = ACME) -> Observation:
    return world.reconciler()._looked(who)


def found(world: FleetWithStacks, looked: Observation) -> Finding:
    finding = classify(looked, {release.version: release for release in world.table.releases()})
    assert finding is not None
    return finding


def repair(world: FleetWithStacks, expected: Remedy) -> Finding:
    """What is found now is repaired, if it is what the story is about."""
    looked = look(world)
    finding = found(world, looked)
    assert finding.remedy is expected
    return world.repairing.repair(finding, looked, ADA)


# Orders


def test_a_tenant_whose_queue_vanished_is_created_anew_and_that_is_called_ordered(world: FleetWithStacks) -> None:
    """Whether it comes back is not known yet: its create may fail."""
    world.table.plant_audit(an_audit(Status.SUCCESS, version=NEXT_VERSION, at=LONG_AGO))
    ordered = repair(world, Remedy.CREATE)
    assert (ordered.ordered, ordered.repaired) == (True, False)
    assert ordered.result.startswith(f"CREATE {NEXT_VERSION}: arn:aws:states:")
    ((attempt, request),) = world.executions.started
    assert (attempt.operation, attempt.number) == (Operation.CREATE, 2)
    assert request == Request(by=ADA)


def test_one_that_was_deleted_since_it_was_looked_at_is_not_brought_back(world: FleetWithStacks) -> None:
    world.table.plant_audit(an_audit(Status.SUCCESS, version=NEXT_VERSION, at=LONG_AGO))
    looked = look(world)
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, at=LONG_AGO + A_MINUTE))
    refused = world.repairing.repair(found(world, looked), looked, ADA)
    assert not (refused.repaired)
    assert not (refused.ordered)
    assert "was deleted" in refused.result
    assert not world.executions.started


def test_what_is_left_of_a_deleted_tenant_is_deleted(world: FleetWithStacks) -> None:
    world.add(ACME.value)
    world.delete(ACME)
    assert repair(world, Remedy.DELETE).ordered
    assert world.ordered() == [(Operation.DELETE, ACME.value, NEXT_VERSION)]
    ((_, request),) = world.executions.started
    assert not request.force


def test_a_tenant_at_an_unknown_version_is_upgraded(world: FleetWithStacks) -> None:
    world.add(ACME.value, version="0.1.9")
    assert repair(world, Remedy.UPGRADE).ordered
    assert world.ordered() == [(Operation.UPDATE, ACME.value, NEXT_VERSION)]


def test_an_order_that_is_refused_is_told_with_the_reason(world: FleetWithStacks) -> None:
    world.add(ACME.value, version="9.9.9")
    refused = repair(world, Remedy.UPGRADE)
    assert not (refused.repaired)
    assert not (refused.ordered)
    assert "is older" in refused.result
    assert not world.executions.started


def test_a_pinned_tenant_stays_where_it_is_pinned_to(world: FleetWithStacks) -> None:
    world.add(ACME.value, version="0.1.9", pinned_version="0.1.9")
    refused = repair(world, Remedy.UPGRADE)
    assert not (refused.repaired)
    assert not (refused.ordered)
    assert "never published" in refused.result


def test_an_order_for_what_is_so_already_is_told(world: FleetWithStacks) -> None:
    world.add(ACME.value)
    told = world.repairing.repair(a_finding(remedy=Remedy.CREATE), look(world), ADA)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "is there" in told.result


def test_a_tenant_that_is_busy_by_now_is_not_disturbed(world: FleetWithStacks) -> None:
    world.add(ACME.value)
    world.delete(ACME)
    looked = look(world)
    world.begin(a_run(version=NEXT_VERSION))
    told = world.repairing.repair(found(world, looked), looked, ADA)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "is busy" in told.result
    assert len(world.executions.started) == 1


class Spent(FakeExecutions):
    """Every attempt has been made."""

    def start(self, attempt: Attempt, request: Request) -> str | None:  # noqa: ARG002 - the port's
        return None


def test_an_order_that_cannot_be_given_is_no_reason_to_stop(world: FleetWithStacks) -> None:
    world.executions = Spent()
    world.table.plant_audit(an_audit(Status.SUCCESS, at=LONG_AGO))
    told = repair(world, Remedy.CREATE)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "attempts in a row had already ended" in told.result


# Making a queue anew that is gone


def without_stack(world: FleetWithStacks) -> Observation:
    world.add(ACME.value)
    world.take_stack_away(ACME)
    world.queues.gone.add(queue_of(ACME).url)
    return look(world)


def test_a_queue_that_is_gone_is_forgotten_and_made_anew(world: FleetWithStacks) -> None:
    without_stack(world)
    assert repair(world, Remedy.RECREATE).ordered
    assert not world.metadata_of(ACME).published
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_it_comes_back_though_a_delete_of_it_was_refused_once(world: FleetWithStacks) -> None:
    without_stack(world)
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.DELETE, at=LONG_AGO))
    assert repair(world, Remedy.RECREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_a_tenant_comes_back_at_the_version_of_its_last_successful_operation_not_at_the_control_planes(
    world: FleetWithStacks,
) -> None:
    """With a bad release deployed, a healthy tenant would come back as failed."""
    world.table.plant_audit(an_audit(Status.SUCCESS, at=LONG_AGO))
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, at=LONG_AGO + A_MINUTE))
    assert repair(world, Remedy.CREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_a_delete_that_is_asked_for_while_it_is_repaired_is_not_overruled(
    world: FleetWithStacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_stack(world)
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.DELETE, at=LONG_AGO))
    looked = look(world)
    forget_queue = world.table.forget_queue

    def and_somebody_deletes(*args: Any, **named: Any) -> bool:
        forgotten = forget_queue(*args, **named)
        deleted = an_audit(Status.SUCCESS, Operation.DELETE, at=world.clock.now() + A_MINUTE)
        world.table.plant_audit(replace(deleted, asked_at=world.clock.now() + A_MINUTE))
        return forgotten

    monkeypatch.setattr(world.table, "forget_queue", and_somebody_deletes)
    told = world.repairing.repair(found(world, looked), looked, ADA)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "was deleted" in told.result
    assert not world.executions.started


def test_it_comes_back_where_it_was_pinned_to(world: FleetWithStacks) -> None:
    without_stack(world)
    world.table.plant_metadata(replace(world.metadata_of(ACME), pinned_version=VERSION))
    assert repair(world, Remedy.RECREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


@pytest.mark.parametrize("stack_id", [None, "another stack"])
def test_a_queue_that_is_another_stacks_by_now_is_not_forgotten(world: FleetWithStacks, stack_id: str | None) -> None:
    looked = without_stack(world)
    changed = replace(world.metadata_of(ACME), stack_id=stack_id)
    world.table.plant_metadata(changed)
    told = world.repairing.repair(found(world, looked), looked, ADA)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "changed meanwhile" in told.result
    assert world.metadata_of(ACME) == changed
    assert not world.executions.started


# Correcting


def differing(world: FleetWithStacks) -> Observation:
    world.add(ACME.value, queue=OTHER_QUEUE, version=NEXT_VERSION, stack_version=VERSION)
    return look(world)


def test_the_metadata_says_what_the_stack_says_afterwards(world: FleetWithStacks) -> None:
    differing(world)
    world.clock.advance(A_MINUTE)
    corrected = repair(world, Remedy.CORRECT)
    assert corrected.repaired
    assert "says what the stack says" in corrected.result
    metadata = world.metadata_of(ACME)
    assert (metadata.queue, metadata.version, metadata.updated_at) == (queue_of(ACME), VERSION, world.clock.now())
    assert classify(look(world), {version.version: version for version in world.table.releases()}) is None
    assert not world.executions.started


MEANWHILE: dict[str, Callable[[FleetWithStacks], object]] = {
    "it was described": lambda world: world.table.plant_metadata(
        replace(world.metadata_of(ACME), labels={"plan": "gold"})
    ),
    "an operation began": lambda world: take(world.table, a_run(operation=Operation.UPDATE, version=NEXT_VERSION)),
    "it was deleted": lambda world: world.delete(ACME),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_what_has_changed_meanwhile_is_not_corrected(world: FleetWithStacks, meanwhile: str) -> None:
    looked = differing(world)
    MEANWHILE[meanwhile](world)
    before = world.rows()
    told = world.repairing.repair(found(world, looked), looked, ADA)
    assert not (told.repaired)
    assert not (told.ordered)
    assert "changed meanwhile" in told.result
    assert world.rows() == before


@pytest.mark.parametrize("missing", ["metadata", "stack"])
def test_nothing_is_corrected_without_both_sides(world: FleetWithStacks, missing: str) -> None:
    without: dict[str, Any] = {missing: None}
    looked = replace(differing(world), **without)
    told = world.repairing.repair(a_finding(Kind.METADATA_DIFFERS, Remedy.CORRECT), looked, ADA)
    assert not (told.repaired)
    assert not (told.ordered)


# Nothing lost, nothing done


@pytest.mark.parametrize("remedy", [Remedy.NONE, Remedy.SETTLE])
def test_what_a_person_has_to_look_at_or_is_settled_otherwise_is_left_as_it_is(
    world: FleetWithStacks, remedy: Remedy
) -> None:
    world.add(ACME.value)
    before, finding = world.rows(), a_finding(remedy=remedy)
    assert world.repairing.repair(finding, look(world), ADA) == finding
    assert world.rows() == before
    assert not world.executions.started


def test_messages_that_are_left_in_a_deleted_tenants_queue_are_not_forced_away(world: FleetWithStacks) -> None:
    """The order is taken, and the operation itself sees to it: it asks the stack for its queue."""
    world.add(ACME.value)
    world.delete(ACME)
    world.queues.held[queue_of(ACME).url] = Messages(1, 0, 0)
    repair(world, Remedy.DELETE)
    ((_, request),) = world.executions.started
    (delete,) = [audit for audit in world.table.audits(ACME) if audit.operation is Operation.DELETE]
    # As of the delete before: whoever has asked for the tenant since is not overruled by a repair.
    assert request == Request(by=ADA, asked_at=delete.updated_at)


@pytest.mark.parametrize("remedy", [remedy for remedy in Remedy if remedy is not Remedy.NONE])
def test_no_repair_touches_a_stack_by_itself(world: FleetWithStacks, remedy: Remedy) -> None:
    world.add(ACME.value)
    looked = look(world)
    world.stacks.calls.clear()
    world.repairing.repair(a_finding(remedy=remedy), looked, ADA)
    assert not world.stacks.calls
