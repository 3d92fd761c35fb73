"""The rules of an adoption's writes: a pure function from a tenant's records to the transition that adopts it.

The rules of all other writes are in :mod:`orchestrator.tenants.operation_transitions` and
:mod:`orchestrator.tenants.metadata_transitions`.
"""

from __future__ import annotations

from collections.abc import Iterator

from orchestrator.common.writes import (
    Check,
    Condition,
    Delete,
    Equals,
    Missing,
    Put,
    RowAbsent,
    StoredAs,
    Update,
    all_of,
)
from orchestrator.reconciling.ports import Adopted, UnlistedTenant
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.records import Audit, Operation, Status, TenantState
from orchestrator.tenants.writes import Announce, Append, AuditKey, LockKey, MetadataKey, Transition, Write

_MAX_AUDITS = 90
"""A transaction has at most 100 writes. Audits beyond this number stay as they are, and can still be read."""


def adoption_of(seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> Transition:
    """List the tenant, number the audits of the earlier system and close its unfinished operations.

    Every write has the condition that its row has not changed since it was read. No operation may hold the lock.
    """
    return [
        Check(LockKey(seen.tenant), RowAbsent()),
        *_metadata(seen, adopted, change),
        *_berths_audits(seen, adopted),
        *_earlier_audits(seen, adopted),
        Append(change),
        Announce(Relisting(seen.tenant, change.at, deleted=adopted.state is TenantState.DELETED)),
    ]


def _metadata(seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> Iterator[Write]:
    key = MetadataKey(seen.tenant)
    if adopted.state is TenantState.DELETED:
        # The audit of the delete lists a deleted tenant. If the tenant was listed before, its metadata belongs to the
        # next create, and stays.
        if seen.stored_metadata is not None and not seen.listed:
            yield Delete(key, StoredAs(seen.stored_metadata))
        return
    metadata = adopted.metadata
    fields: dict[str, object] = {
        "listed_state": adopted.state,
        "listed_version": metadata.version if metadata else None,
        "updated_at": (metadata and metadata.updated_at) or change.at,
    }
    if metadata and metadata.stack_id:
        fields["stack_id"] = metadata.stack_id
    if metadata and metadata.queue:
        fields["queue"] = metadata.queue
    if adopted.root_cause:
        fields["root_cause"] = adopted.root_cause
    if seen.stored_metadata is None:
        yield Put(key, fields, RowAbsent())
        return
    clears = ["former_updated_at"]
    if not adopted.root_cause:
        clears.append("root_cause")
    if metadata and metadata.outbound_queue is None:
        clears.append("outbound_queue")
    yield Update(key, fields, clears=clears, condition=StoredAs(seen.stored_metadata))


def _berths_audits(seen: UnlistedTenant, adopted: Adopted) -> Iterator[Write]:
    """The audit of a delete by Berth no longer lists the tenant as deleted if the tenant is in another state now."""
    if adopted.state is TenantState.DELETED:
        return
    for key, audit in zip(seen.audit_keys, seen.audits, strict=True):
        if key not in seen.earlier and audit.operation is Operation.DELETE and audit.status is Status.SUCCESS:
            yield Update(key, clears=("listed",), condition=_unchanged(audit))


def _earlier_audits(seen: UnlistedTenant, adopted: Adopted) -> Iterator[Write]:
    """Number the audits of the earlier system, beginning with those that need more than a number."""
    rows = zip(seen.audit_keys, seen.audits, adopted.audits, strict=True)
    audits = [(key, before, after) for key, before, after in rows if key in seen.earlier]
    audits.sort(key=lambda row: not _needs_more_than_a_number(row[1], row[2]))
    for key, before, after in audits[:_MAX_AUDITS]:
        yield _numbered(key, before, after, adopted.state)


def _needs_more_than_a_number(before: Audit, after: Audit) -> bool:
    return after.operation is Operation.DELETE or before != after


def _numbered(key: AuditKey, before: Audit, after: Audit, state: TenantState) -> Update[AuditKey]:
    fields: dict[str, object] = {"attempt": 1, "status": after.status}
    if after.root_cause:
        fields["root_cause"] = after.root_cause
    if after.operation is Operation.DELETE and after.revived_by:
        fields["revived_by"] = after.revived_by
    if after.operation is Operation.DELETE and state is TenantState.DELETED:
        fields["listed"] = TenantState.DELETED
    return Update(key, fields, condition=all_of(Missing("attempt"), _unchanged(before)))


def _unchanged(audit: Audit) -> Condition:
    return all_of(Equals("status", audit.status), Equals("execution", audit.execution))
