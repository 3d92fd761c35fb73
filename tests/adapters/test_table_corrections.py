"""A reconciliation corrects the metadata to match the stack, unless the tenant is locked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator.tenants.changes import correction
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Operation, Request, Run, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.adapters.tables import (
    DELETE,
    LATER,
    LATER_STILL,
    LEGACY_VERSION,
    RUN,
    UPDATE,
    Legacy,
    Table,
    create,
    everything,
    for_each_operation,
    listed_tenants,
    metadata_of,
    publish,
    states,
)
from tests.fakes import ACME, EXPLICIT, NEXT_VERSION, OTHER_QUEUE, QUEUE_TABOO, VERSION, a_run, some_metadata, take

STACK = Stack("stack-2", "UPDATE_COMPLETE", "", ACME.value, OTHER_QUEUE, NEXT_VERSION, ours=True)


def test_the_metadata_is_taken_from_the_stack(table: Table) -> None:
    create(table)
    seen = metadata_of(table)
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER) is True
    assert metadata_of(table) == replace(
        seen, queue=OTHER_QUEUE, stack_id="stack-2", version=NEXT_VERSION, updated_at=LATER
    )


def test_the_change_of_the_tenants_place_in_the_index_is_recorded(table: Table) -> None:
    create(table)
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER)
    assert list(table.relistings(since=LATER)) == [Relisting(ACME, LATER)]


def test_the_tier_is_that_of_the_stacks_release_if_it_is_known(table: Table) -> None:
    create(table)
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER, tier="gold")
    assert metadata_of(table).tier == "gold"
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL)
    assert metadata_of(table).tier == "gold"


def test_resources_that_the_stack_no_longer_has_are_removed(table: Table) -> None:
    create(table)
    of_an_operator = replace(STACK, outputs={"BucketName": "b", "InboundQueueUrl": OTHER_QUEUE.url})
    assert table.correct(metadata_of(table), of_an_operator, request=EXPLICIT, at=LATER)
    assert metadata_of(table).resources == {"BucketName": "b"}
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER), "the outputs are not known"
    assert metadata_of(table).resources == {"BucketName": "b"}
    without = replace(STACK, outputs={"InboundQueueUrl": OTHER_QUEUE.url})
    assert table.correct(metadata_of(table), without, request=EXPLICIT, at=LATER_STILL)
    assert not metadata_of(table).resources


def test_labels_and_pin_are_kept(table: Table) -> None:
    take(table, a_run(request=replace(EXPLICIT, labels={"tier": "gold"}, pin=VERSION)))
    publish(table)
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL)
    metadata = metadata_of(table)
    assert (metadata.labels, metadata.pinned_version) == ({"tier": "gold"}, VERSION)


def test_only_the_correction_and_its_history_entry_are_written(table: Table) -> None:
    create(table)
    seen, audits, history, *_ = everything(table)
    assert seen is not None
    asked = Request(by="berth reconcile, requested by ada", reason="Ticket 4711")
    table.correct(seen, STACK, request=asked, at=LATER)
    corrected = correction(seen, metadata_of(table), request=asked, at=LATER)
    assert everything(table)[1:4] == (audits, [*history, corrected], None)
    assert corrected.before["stackId"] == seen.stack_id
    assert corrected.after["stackId"] == STACK.stack_id


def test_a_correction_that_is_not_made_is_not_in_the_history(table: Table) -> None:
    create(table)
    before = everything(table)
    assert not table.correct(replace(metadata_of(table), stack_id="another"), STACK, request=EXPLICIT, at=LATER)
    assert everything(table) == before


def test_the_fingerprint_is_removed(table: Table) -> None:
    take(table, RUN)
    publish(table, deployed="fingerprint")
    assert metadata_of(table).deployed == "fingerprint"
    table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL)
    assert metadata_of(table).deployed is None


def test_the_tenant_is_listed_at_the_stacks_version(table: Table) -> None:
    create(table)
    table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER)
    (listed,) = listed_tenants(table)
    assert (listed.state, listed.version, listed.queue) == (TenantState.READY, NEXT_VERSION, OTHER_QUEUE)
    assert [each.tenant for each in table.tenants_in(TenantState.READY, version=NEXT_VERSION, limit=1)] == [ACME]


def test_a_failed_update_stays_listed_with_its_root_cause(table: Table) -> None:
    create(table)
    take(table, UPDATE)
    table.fail(UPDATE, QUEUE_TABOO, LATER)
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL)
    (listed,) = listed_tenants(table)
    assert (listed.state, listed.root_cause) == (TenantState.UPDATE_FAILED, QUEUE_TABOO)


@pytest.mark.parametrize("legacy_audit", [True, False], ids=["with an audit", "without an audit"])
def test_an_unlisted_tenant_is_listed(table: Table, legacy: Legacy, legacy_audit: bool) -> None:
    legacy.metadata(ACME)
    if legacy_audit:
        legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    assert states(table) == []
    seen = metadata_of(table)
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER)
    assert states(table) == [TenantState.READY]
    assert metadata_of(table).outbound_queue == seen.outbound_queue


def test_without_a_version_in_the_stack_the_recorded_one_is_kept(table: Table, legacy: Legacy) -> None:
    legacy.metadata(ACME)
    assert table.correct(metadata_of(table), replace(STACK, version=None), request=EXPLICIT, at=LATER)
    metadata = metadata_of(table)
    assert (metadata.version, metadata.stack_id, metadata.queue) == (LEGACY_VERSION, "stack-2", OTHER_QUEUE)
    (listed,) = listed_tenants(table)
    assert listed.version == LEGACY_VERSION


def test_without_a_queue_in_the_stack_the_recorded_one_is_kept(table: Table) -> None:
    create(table)
    seen = metadata_of(table)
    assert table.correct(seen, replace(STACK, queue=None), request=EXPLICIT, at=LATER)
    assert metadata_of(table).queue == seen.queue


@for_each_operation
def test_a_locked_tenant_is_not_corrected(table: Table, run: Run) -> None:
    create(table)
    take(table, replace(run, attempt=replace(run.attempt, number=2)))
    before = everything(table)
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL) is False
    assert everything(table) == before


CHANGES: dict[str, Callable[[Table], object]] = {
    "an operation": lambda table: (take(table, UPDATE), publish(table, UPDATE, version=NEXT_VERSION)),
    "a failed operation": lambda table: (take(table, DELETE), table.fail(DELETE, QUEUE_TABOO, LATER)),
    "its stack": lambda table: table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER),
    "an operator": lambda table: table.describe(ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=LATER),
    "its stack that went": lambda table: table.forget_queue(ACME, stack_id="stack-1"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_tenant_that_changed_since_is_not_corrected(table: Table, change: Callable[[Table], object]) -> None:
    create(table)
    seen = metadata_of(table)
    change(table)
    before = everything(table)
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER_STILL) is False
    assert everything(table) == before


def test_a_deleted_tenant_is_not_corrected(table: Table) -> None:
    assert table.correct(some_metadata(), STACK, request=EXPLICIT, at=LATER) is False
    create(table)
    seen = metadata_of(table)
    take(table, DELETE)
    table.remove(DELETE, at=LATER)
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER_STILL) is False
    assert table.metadata(ACME) is None


def test_a_correction_is_made_once(table: Table) -> None:
    create(table)
    seen = metadata_of(table)
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER) is True
    assert table.correct(seen, STACK, request=EXPLICIT, at=LATER) is False


def test_a_correction_publishes_an_unpublished_tenant(table: Table) -> None:
    take(table, RUN)
    table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER)
    table.fail(RUN, QUEUE_TABOO, LATER)
    assert states(table) == [TenantState.FAILED]
    assert table.correct(metadata_of(table), STACK, request=EXPLICIT, at=LATER_STILL)
    assert metadata_of(table).published
    assert states(table) == [TenantState.READY]
