"""Joining the pool, in every table: one transaction, which a change of the tenant's records prevents."""

from __future__ import annotations

from dataclasses import replace

from orchestrator.common.tiers import POOLED
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from tests.adapters.tables import LATER, Table, delete
from tests.fakes import ACME, EXPLICIT, NOON, QUEUE, a_run, take

BY_PLATFORM = Request(by="platform")


def test_the_tenant_is_served_and_listed(table: Table) -> None:
    assert table.join_pool(ACME, QUEUE, BY_PLATFORM, at=NOON)
    metadata = table.metadata(ACME)
    assert metadata is not None
    assert (metadata.queue, metadata.tier, metadata.version, metadata.stack_id) == (QUEUE, POOLED, None, None)
    assert (metadata.created_at, metadata.created_by) == (NOON, "platform")
    assert metadata.published
    (listed,) = table.tenants_in(TenantState.READY, limit=5)
    assert (listed.tenant, listed.tier, listed.queue) == (ACME, POOLED, QUEUE)
    (brief,) = table.tenants_in_brief(TenantState.READY)
    assert (brief.tier, brief.version) == (POOLED, None)


def test_its_create_is_on_record(table: Table) -> None:
    table.join_pool(ACME, QUEUE, BY_PLATFORM, at=NOON)
    (audit,) = table.audits(ACME)
    assert (audit.operation, audit.version, audit.status) == (Operation.CREATE, POOLED, Status.SUCCESS)
    (entry,) = table.history(ACME)
    assert isinstance(entry, HistoryEntry)
    assert (entry.version, entry.requested_by, entry.altered) == (POOLED, "platform", False)


def test_a_tenant_that_is_served_does_not_join_again(table: Table) -> None:
    table.join_pool(ACME, QUEUE, BY_PLATFORM, at=NOON)
    before = table.metadata(ACME)
    assert not table.join_pool(ACME, QUEUE, replace(BY_PLATFORM, by="another"), at=LATER)
    assert table.metadata(ACME) == before
    assert len(table.history(ACME)) == 1


def test_a_tenant_that_an_operation_owns_does_not_join(table: Table) -> None:
    take(table, a_run())
    assert not table.join_pool(ACME, QUEUE, EXPLICIT, at=LATER)


def test_only_an_explicit_create_brings_a_deleted_tenant_back(table: Table) -> None:
    delete(table)
    assert not table.join_pool(ACME, QUEUE, BY_PLATFORM, at=LATER)
    assert table.join_pool(ACME, QUEUE, EXPLICIT, at=LATER)
    metadata = table.metadata(ACME)
    assert metadata is not None
    assert metadata.published
    assert not table.tenants_in(TenantState.DELETED, limit=5)


def test_the_stack_of_a_move_does_not_take_the_place_of_the_shared_queue(table: Table) -> None:
    table.join_pool(ACME, QUEUE, BY_PLATFORM, at=NOON)
    before = table.metadata(ACME)
    assert not table.record_queue(ACME, stack_id="stack-1", queue=replace(QUEUE, url=f"{QUEUE.url}-own"), at=LATER)
    assert table.metadata(ACME) == before
