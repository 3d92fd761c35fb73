"""The repair of a finding: an operator's order or a correction, which can be refused like any order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.checking import observe
from orchestrator.reconciling.classifying import Observation, classify
from orchestrator.reconciling.records import Finding, Kind, Remedy
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import Attempt, Operation, Request, Status
from tests.fakes import ACME, NEXT_VERSION, OTHER_QUEUE, VERSION, FakeExecutions, a_release, a_run, an_audit, take
from tests.unit.reconciling.world import A_MINUTE, ADA, LONG_AGO, FleetWithStacks, a_finding, queue_of


@pytest.fixture
def world() -> FleetWithStacks:
    return FleetWithStacks()


def look(world: FleetWithStacks, who: TenantId = ACME) -> Observation:
    return observe(who, world.tenants, world.stacks, world.queues)


def found(world: FleetWithStacks, observation: Observation) -> Finding:
    finding = classify(observation, {release.version: release for release in world.table.releases()})
    assert finding is not None
    return finding


def repair(world: FleetWithStacks, expected: Remedy) -> Finding:
    """Classify the tenant now, check that the finding has this remedy, and repair it."""
    observation = look(world)
    finding = found(world, observation)
    assert finding.remedy is expected
    return world.repairing.repair(finding, observation, ADA)


# Orders


def test_a_tenant_whose_queue_vanished_is_created_again_and_the_finding_is_ordered(world: FleetWithStacks) -> None:
    """Whether it comes back is not known yet: its create may fail."""
    world.table.plant_audit(an_audit(Status.SUCCESS, version=NEXT_VERSION, at=LONG_AGO))
    ordered = repair(world, Remedy.CREATE)
    assert (ordered.ordered, ordered.repaired) == (True, False)
    assert ordered.result.startswith(f"CREATE {NEXT_VERSION}: arn:aws:states:")
    ((attempt, request),) = world.executions.started
    assert (attempt.operation, attempt.number) == (Operation.CREATE, 2)
    assert request == Request(by=ADA)


def test_a_tenant_that_was_deleted_since_the_observation_is_not_restored(world: FleetWithStacks) -> None:
    world.table.plant_audit(an_audit(Status.SUCCESS, version=NEXT_VERSION, at=LONG_AGO))
    observation = look(world)
    world.table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, at=LONG_AGO + A_MINUTE))
    refused = world.repairing.repair(found(world, observation), observation, ADA)
    assert not refused.repaired
    assert not refused.ordered
    assert "was deleted" in refused.result
    assert not world.executions.started


def test_the_remains_of_a_deleted_tenant_are_deleted(world: FleetWithStacks) -> None:
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


def test_the_reason_of_a_refused_repair_is_reported(world: FleetWithStacks) -> None:
    world.add(ACME.value, version="9.9.9")
    refused = repair(world, Remedy.UPGRADE)
    assert not refused.repaired
    assert not refused.ordered
    assert "is older" in refused.result
    assert not world.executions.started


def test_a_pinned_tenant_stays_at_its_pin(world: FleetWithStacks) -> None:
    world.add(ACME.value, version="0.1.9", pinned_version="0.1.9")
    refused = repair(world, Remedy.UPGRADE)
    assert not refused.repaired
    assert not refused.ordered
    assert "never published" in refused.result


def test_a_repair_that_changes_nothing_is_reported(world: FleetWithStacks) -> None:
    world.add(ACME.value)
    finding = world.repairing.repair(a_finding(remedy=Remedy.CREATE), look(world), ADA)
    assert not finding.repaired
    assert not finding.ordered
    assert "exists" in finding.result


def test_a_tenant_with_a_running_operation_is_not_repaired(world: FleetWithStacks) -> None:
    world.add(ACME.value)
    world.delete(ACME)
    observation = look(world)
    world.begin(a_run(version=NEXT_VERSION))
    finding = world.repairing.repair(found(world, observation), observation, ADA)
    assert not finding.repaired
    assert not finding.ordered
    assert "is busy" in finding.result
    assert len(world.executions.started) == 1


class Spent(FakeExecutions):
    """Every attempt has been made."""

    def start(self, attempt: Attempt, request: Request) -> str | None:  # noqa: ARG002 - the port's
        return None


def test_a_repair_that_cannot_be_started_does_not_raise(world: FleetWithStacks) -> None:
    world.executions = Spent()
    world.table.plant_audit(an_audit(Status.SUCCESS, at=LONG_AGO))
    finding = repair(world, Remedy.CREATE)
    assert not finding.repaired
    assert not finding.ordered
    assert "attempts in a row had already ended" in finding.result


# Making a queue anew that is gone


def without_stack(world: FleetWithStacks) -> Observation:
    world.add(ACME.value)
    world.take_stack_away(ACME)
    world.queues.gone.add(queue_of(ACME).url)
    return look(world)


def test_a_missing_queue_is_forgotten_and_created_again(world: FleetWithStacks) -> None:
    without_stack(world)
    assert repair(world, Remedy.RECREATE).ordered
    assert not world.metadata_of(ACME).published
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_a_tenant_is_created_again_even_after_a_refused_delete(world: FleetWithStacks) -> None:
    without_stack(world)
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.DELETE, at=LONG_AGO))
    assert repair(world, Remedy.RECREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_a_tenant_is_created_again_at_the_version_of_its_last_successful_operation(
    world: FleetWithStacks,
) -> None:
    """With a bad release deployed, a healthy tenant would come back as failed."""
    world.table.plant_audit(an_audit(Status.SUCCESS, at=LONG_AGO))
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.UPDATE, version=NEXT_VERSION, at=LONG_AGO + A_MINUTE))
    assert repair(world, Remedy.CREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


def test_a_delete_that_is_requested_during_the_repair_wins(
    world: FleetWithStacks, monkeypatch: pytest.MonkeyPatch
) -> None:
    without_stack(world)
    world.table.plant_audit(an_audit(Status.FAILURE, Operation.DELETE, at=LONG_AGO))
    observation = look(world)
    forget_queue = world.table.forget_queue

    def and_somebody_deletes(*args: Any, **named: Any) -> bool:
        forgotten = forget_queue(*args, **named)
        deleted = an_audit(Status.SUCCESS, Operation.DELETE, at=world.clock.now() + A_MINUTE)
        world.table.plant_audit(replace(deleted, asked_at=world.clock.now() + A_MINUTE))
        return forgotten

    monkeypatch.setattr(world.table, "forget_queue", and_somebody_deletes)
    finding = world.repairing.repair(found(world, observation), observation, ADA)
    assert not finding.repaired
    assert not finding.ordered
    assert "was deleted" in finding.result
    assert not world.executions.started


def test_a_tenant_that_was_updated_since_it_was_looked_at_is_not_created_again(world: FleetWithStacks) -> None:
    without_stack(world)
    observation = look(world)
    updated = replace(world.metadata_of(ACME), version=NEXT_VERSION)
    world.table.plant_metadata(updated)
    finding = world.repairing.repair(found(world, observation), observation, ADA)
    assert not finding.ordered
    assert world.metadata_of(ACME) == updated
    assert not world.executions.started


def test_a_tenant_is_created_again_at_its_pin(world: FleetWithStacks) -> None:
    without_stack(world)
    world.table.plant_metadata(replace(world.metadata_of(ACME), pinned_version=VERSION))
    assert repair(world, Remedy.RECREATE).ordered
    assert world.ordered() == [(Operation.CREATE, ACME.value, VERSION)]


@pytest.mark.parametrize("stack_id", [None, "another stack"])
def test_a_queue_that_belongs_to_another_stack_now_is_not_forgotten(
    world: FleetWithStacks, stack_id: str | None
) -> None:
    observation = without_stack(world)
    changed = replace(world.metadata_of(ACME), stack_id=stack_id)
    world.table.plant_metadata(changed)
    finding = world.repairing.repair(found(world, observation), observation, ADA)
    assert not finding.repaired
    assert not finding.ordered
    assert "changed meanwhile" in finding.result
    assert world.metadata_of(ACME) == changed
    assert not world.executions.started


# Correcting


def differing(world: FleetWithStacks) -> Observation:
    world.add(ACME.value, queue=OTHER_QUEUE, version=NEXT_VERSION, stack_version=VERSION)
    return look(world)


def test_a_correction_makes_the_metadata_match_the_stack(world: FleetWithStacks) -> None:
    differing(world)
    world.clock.advance(A_MINUTE)
    corrected = repair(world, Remedy.CORRECT)
    assert corrected.repaired
    assert "now matches the stack" in corrected.result
    metadata = world.metadata_of(ACME)
    assert (metadata.queue, metadata.version, metadata.updated_at) == (queue_of(ACME), VERSION, world.clock.now())
    assert classify(look(world), {version.version: version for version in world.table.releases()}) is None
    assert not world.executions.started


def test_a_correction_to_a_release_of_another_tier_moves_the_tenant_to_that_tier(world: FleetWithStacks) -> None:
    gold = "2.0.0"
    world.table.record_release(a_release(gold, tier="gold"))
    world.add(ACME.value, version=NEXT_VERSION, stack_version=gold)
    assert repair(world, Remedy.CORRECT).repaired
    assert (world.metadata_of(ACME).version, world.metadata_of(ACME).tier) == (gold, "gold")


MEANWHILE: dict[str, Callable[[FleetWithStacks], object]] = {
    "it was described": lambda world: world.table.plant_metadata(
        replace(world.metadata_of(ACME), labels={"plan": "gold"})
    ),
    "an operation began": lambda world: take(world.table, a_run(operation=Operation.UPDATE, version=NEXT_VERSION)),
    "it was deleted": lambda world: world.delete(ACME),
}


@pytest.mark.parametrize("meanwhile", MEANWHILE)
def test_metadata_that_has_changed_meanwhile_is_not_corrected(world: FleetWithStacks, meanwhile: str) -> None:
    observation = differing(world)
    MEANWHILE[meanwhile](world)
    before = world.rows()
    finding = world.repairing.repair(found(world, observation), observation, ADA)
    assert not finding.repaired
    assert not finding.ordered
    assert "changed meanwhile" in finding.result
    assert world.rows() == before


@pytest.mark.parametrize("missing", ["metadata", "stack"])
def test_nothing_is_corrected_without_metadata_or_without_a_stack(world: FleetWithStacks, missing: str) -> None:
    without: dict[str, Any] = {missing: None}
    observation = replace(differing(world), **without)
    finding = world.repairing.repair(a_finding(Kind.METADATA_DIFFERS, Remedy.CORRECT), observation, ADA)
    assert not finding.repaired
    assert not finding.ordered


# Nothing lost, nothing done


@pytest.mark.parametrize("remedy", [Remedy.NONE, Remedy.SETTLE])
def test_findings_without_a_repair_stay_as_they_are(world: FleetWithStacks, remedy: Remedy) -> None:
    world.add(ACME.value)
    before, finding = world.rows(), a_finding(remedy=remedy)
    assert world.repairing.repair(finding, look(world), ADA) == finding
    assert world.rows() == before
    assert not world.executions.started


def test_a_repair_does_not_delete_a_queue_with_messages(world: FleetWithStacks) -> None:
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
def test_no_repair_changes_a_stack_directly(world: FleetWithStacks, remedy: Remedy) -> None:
    world.add(ACME.value)
    observation = look(world)
    world.stacks.calls.clear()
    world.repairing.repair(a_finding(remedy=remedy), observation, ADA)
    assert not world.stacks.calls
