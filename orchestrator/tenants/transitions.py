"""The rules of a tenant's rows: what each step of an operation writes, and on which conditions.

Pure functions from records to transitions. :mod:`orchestrator.tenants.ledger` reads the records, has the transitions
applied, and says why one was not.

All writes of an operation are fenced by its lock, or by the condition that no later attempt has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants.admission import owner_once_begun, refusal
from orchestrator.tenants.changes import correction
from orchestrator.tenants.records import (
    UNKNOWN_CREATOR,
    Attempt,
    Audit,
    HistoryEntry,
    Metadata,
    Operation,
    Queue,
    RecordedChange,
    Request,
    RootCause,
    Run,
    Status,
    TenantRecords,
    TenantState,
)
from orchestrator.tenants.stack_resources import Requester
from orchestrator.tenants.state import delete_counts, root_cause_of, state_of
from orchestrator.tenants.writes import (
    Append,
    AuditKey,
    Below,
    Check,
    Condition,
    CopyOf,
    Delete,
    Differs,
    Equals,
    LockKey,
    MetadataKey,
    Missing,
    Present,
    Put,
    RowAbsent,
    RowExists,
    Transition,
    Unfinished,
    Update,
    Write,
    all_of,
    any_of,
    still,
)

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Pin, Publication, Seen, Stack

ABANDONED = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")

_LISTING = ("listed_state", "listed_version", "root_cause")
_KEPT_FOR_THE_NEXT_CREATE = frozenset(
    {"tenant", "updated_at", "pinned_version", "labels", "labelled", "asked_for", "asked_for_at", "gone_stack_id"}
)


# Conditions


def not_overtaken(run: Run) -> Condition:
    """For writes of an audit by a run that may not hold the lock. The holder's are fenced by the lock itself."""
    return any_of(
        RowAbsent(),
        Missing("attempt"),
        Below("attempt", run.attempt.number),
        all_of(Equals("execution", run.execution), Equals("status", Status.STARTED)),
    )


def not_in_the_way(run: Run) -> Condition:
    """For a run that never began: an earlier attempt that is running is left alone, too."""
    nobody_is_running = any_of(
        Missing("attempt"), Differs("status", Status.STARTED), Equals("execution", run.execution)
    )
    return all_of(not_overtaken(run), nobody_is_running)


def _owned_by(run: Run) -> Condition:
    return Equals("execution", run.execution)


def _not_gone(stack_id: str) -> Condition:
    """For writes that say which stack a tenant has: a stack that has taken its queue back is not served again."""
    return any_of(Missing("gone_stack_id"), Differs("gone_stack_id", stack_id))


# One operation


def begun(
    run: Run,
    before: TenantRecords,
    at: datetime,
    *,
    release: Release | None = None,
    instead_of: Run | None = None,
    restore: bool = False,
) -> Transition:
    """The run takes the lock, or takes it over from a dead run, whose operation is closed.

    An explicit create that is not refused overcomes the tenant's delete. ``release`` is the published release of the
    run's version, if it is one. ``restore`` serves the tenant again that the dead run, a delete, has withdrawn.
    """
    lock_condition = _owned_by(instead_of) if instead_of else RowAbsent()
    writes: list[Write] = [
        Put(LockKey(run.tenant), _lock_fields(run), lock_condition),
        audit_written(run, Status.STARTED, at, condition=not_overtaken(run)),
        _history(run, Status.STARTED, at),
    ]
    audits = _with(before.audits, _audit(run, Status.STARTED, at))
    closed: Put | None = None
    if instead_of:
        writes.append(_history(instead_of, Status.FAILURE, at, ABANDONED))
        same_row = AuditKey.of(instead_of.attempt) == AuditKey.of(run.attempt)
        if not same_row and has_recorded(before.audits, instead_of, Status.STARTED):
            closed = audit_written(instead_of, Status.FAILURE, at, ABANDONED, condition=not_overtaken(instead_of))
            audits = _with(audits, _audit(instead_of, Status.FAILURE, at, ABANDONED))
    restored = _restored(before.metadata) if restore else before.metadata
    overcome = overcomes(run, TenantRecords(restored, audits, before.lock), release)
    if overcome:
        audits = _with(audits, replace(overcome, revived_by=run.execution))
        if closed and closed.key == AuditKey.of(overcome):
            closed = replace(closed, fields={**closed.fields, "revived_by": run.execution})
        else:
            writes.append(_revival(run, overcome))
    writes += [closed] if closed else []
    writes += _metadata_once_begun(run, before, audits, at, restore=restore, revive=overcome is not None)
    return writes


def overcomes(run: Run, records: TenantRecords, release: Release | None) -> Audit | None:
    """The delete that the run overcomes: that of a tenant which was asked for explicitly, and may be created."""
    if run.attempt.operation is not Operation.CREATE or not run.request.explicit:
        return None
    metadata, audits = records.metadata, records.audits
    if not delete_counts(audits) or refusal(
        run.attempt, run.request, asked_at=run.asked_at, metadata=metadata, audits=audits, release=release
    ):
        return None
    return next(audit for audit in audits if audit.operation is Operation.DELETE)


def _revival(run: Run, delete: Audit) -> Update:
    unchanged = all_of(Equals("status", delete.status), Equals("execution", delete.execution), Missing("revived_by"))
    return Update(AuditKey.of(delete), {"revived_by": run.execution}, clears=("listed",), condition=unchanged)


def _restored(metadata: Metadata | None) -> Metadata | None:
    return metadata and replace(metadata, withdrawn_by=None)


def _metadata_once_begun(
    run: Run, before: TenantRecords, audits: Sequence[Audit], at: datetime, *, restore: bool, revive: bool
) -> Transition:
    """The state of the tenant, and what the request says about it. A delete withdraws the queue.

    Until the lock is the run's, another operation may publish another version. Then the list has the tenant at the old
    version until the run ends, and writes it again.
    """
    metadata, operation, request = before.metadata, run.attempt.operation, run.request
    after = (_restored(metadata) if restore else metadata) or nothing_about(run.tenant)
    sets: dict[str, object] = {}
    clears: list[str] = []
    if operation is Operation.DELETE:
        sets["withdrawn_by"] = run.execution
    elif restore:
        clears.append("withdrawn_by")
    owner = _new_owner(run, before)
    if owner is not None:
        sets["created_by"] = owner
    # Of a tenant that has nothing yet, the list at least says since when.
    defaults: dict[str, object] = {"updated_at": after.updated_at or at}
    # A resource of another team has written them down before, if the tenant was nobody else's then.
    if request.resource is None:
        # Somebody may have said something else since the create was asked for.
        defaults |= {} if request.labels is None else {"labels": request.labels}
        defaults |= {} if request.pin is None else {"pinned_version": request.pin}
    conditions: list[Condition] = []
    if operation is Operation.CREATE:
        asked_for = metadata.asked_for if metadata else None
        # A create that is asked for at this very moment must not be missed. Then the run begins again.
        conditions.append(still("asked_for", asked_for))
        clears += ["asked_for", "asked_for_at"] if asked_for == run.attempt else []
    if revive:
        # A pin that is set at this very moment may refuse the create.
        conditions.append(still("pinned_version", after.pinned_version))
    if state_of(after, audits) is TenantState.DELETED:
        if metadata is None:
            return []  # The audit of its delete lists it, and the run is about to be refused.
        clears += _LISTING
    else:
        listed, unlisted = _listing(after, audits)
        sets |= listed
        clears += unlisted
    condition = all_of(*conditions) if conditions else None
    return [Update(MetadataKey(run.tenant), sets, defaults, clears, condition)]


def _new_owner(run: Run, before: TenantRecords) -> Requester | None:
    """Whose tenant it is once the run has begun; ``None`` if that does not change.

    What a delete has left changes hands when the create ends: one that has begun may be refused all the same.
    """
    metadata = before.metadata
    served_or_withdrawn = metadata is not None and (metadata.published or metadata.withdrawn_by is not None)
    if run.attempt.operation is not Operation.CREATE or served_or_withdrawn:
        return None
    owner = owner_once_begun(run.request, metadata, before.audits if metadata else ())
    return owner if metadata is None or metadata.created_by != owner else None


def revived(run: Run, delete: Audit) -> Transition:
    """For a run that was begun by 0.7.0, which overcame a delete only after it had taken the lock."""
    return [Check(LockKey(run.tenant), _owned_by(run)), _revival(run, delete)]


def kept_with_lock(run: Run, **kept: str) -> Transition:
    return [Update(LockKey(run.tenant), kept, condition=_owned_by(run))]


def touched(run: Run) -> Transition:
    return [
        Check(LockKey(run.tenant), _owned_by(run)),
        Update(MetadataKey(run.tenant), clears=("deployed",), condition=RowExists()),
    ]


def published(run: Run, publication: Publication, at: datetime) -> Transition:
    sets: dict[str, object] = {
        "queue": publication.queue,
        "stack_id": publication.stack_id,
        "version": publication.version,
        "updated_at": at,
        "listed_state": TenantState.READY,
        "listed_version": publication.version,
    }
    clears = ["withdrawn_by", "root_cause", "asked_for", "asked_for_at", "last_version"]
    if run.attempt.operation is Operation.UPDATE:
        clears.append("outbound_queue")
    if publication.deployed is None:
        clears.append("deployed")
    else:
        sets["deployed"] = publication.deployed
    if publication.created_by is not None:
        sets["created_by"] = publication.created_by
    metadata = Update(MetadataKey(run.tenant), sets, {"created_at": at}, clears, _not_gone(publication.stack_id))
    return [metadata, *_succeeded(run, at)]


def removed(run: Run, metadata: Metadata | None, at: datetime) -> Transition:
    return [*_metadata_once_deleted(run, metadata), *_succeeded(run, at)]


def _succeeded(run: Run, at: datetime) -> Transition:
    return [
        audit_written(run, Status.SUCCESS, at),
        _history(run, Status.SUCCESS, at),
        Delete(LockKey(run.tenant), _owned_by(run)),
    ]


def failed(run: Run, before: TenantRecords, cause: RootCause, at: datetime, *, restore: bool) -> Transition:
    """Failure, and the lock is free. ``restore`` serves the tenant again that this delete has withdrawn.

    A run that never began, or repeats itself, overwrites nobody who came later or is running.
    """
    history = _history(run, Status.FAILURE, at, cause)
    if before.is_locked_by(run):
        return [
            audit_written(run, Status.FAILURE, at, cause),
            Delete(LockKey(run.tenant), _owned_by(run)),
            *_metadata_once_failed(run, before, cause, at, restore=restore),
            history,
        ]
    writes: list[Write] = [audit_written(run, Status.FAILURE, at, cause, condition=not_in_the_way(run))]
    if before.lock is None:  # Else the holder says what state the tenant is in, now and when it ends.
        writes.append(Check(LockKey(run.tenant), RowAbsent()))
        writes += _metadata_once_failed(run, before, cause, at, restore=False)
    return [*writes, history]


def _metadata_once_failed(
    run: Run, before: TenantRecords, cause: RootCause, at: datetime, *, restore: bool
) -> Transition:
    metadata = _restored(before.metadata) if restore else before.metadata
    audits = _with(before.audits, _audit(run, Status.FAILURE, at, cause))
    if state_of(metadata, audits) is TenantState.DELETED:
        return _metadata_once_deleted(run, metadata)  # The audit of its delete lists it.
    listed, unlisted = _listing(metadata or nothing_about(run.tenant), audits)
    return [Update(MetadataKey(run.tenant), listed, clears=[*(["withdrawn_by"] if restore else []), *unlisted])]


def _metadata_once_deleted(run: Run, before: Metadata | None) -> Transition:
    """None, but for what was said about a tenant whose next create was asked for already.

    If a create is asked for at this very moment, this is not applied, and computed again.
    """
    if before is None:
        return []
    key, condition = MetadataKey(before.tenant), still("asked_for_at", before.asked_for_at)
    if not before.is_still_to_come(run):
        return [Delete(key, condition)]
    gone = [each.name for each in fields(Metadata) if each.name not in _KEPT_FOR_THE_NEXT_CREATE]
    return [Update(key, clears=[*gone, *_LISTING], condition=condition)]


# What is said about a tenant


def described(
    tenant: TenantId,
    metadata: Metadata | None,
    *,
    labels: Mapping[str, str] | None,
    pin: Pin,
    at: datetime,
    asked_for: Attempt | None,
    only_if: Seen | None,
    change: RecordedChange | None,
) -> Transition:
    """Labels and pin of a tenant that is there, or is to come; if they are still as in the metadata."""
    sets: dict[str, object] = {"updated_at": at}
    if asked_for is not None:
        sets |= {"asked_for": asked_for, "asked_for_at": at}
    if labels is not None:
        sets["labels"] = labels
    if pin.version is not None:
        sets["pinned_version"] = pin.version
    conditions = [
        still("labels", metadata.labels if metadata and metadata.labelled else None),
        still("pinned_version", metadata.pinned_version if metadata else None),
    ]
    if asked_for is None:
        conditions += [RowExists(), Missing("withdrawn_by")]
    if only_if is not None:
        conditions += _unclaimed_since(only_if.metadata)
    clears = ("pinned_version",) if pin.lift and pin.version is None else ()
    update = Update(MetadataKey(tenant), sets, clears=clears, condition=all_of(*conditions))
    return [update, *([Append(change)] if change else [])]


def _unclaimed_since(seen: Metadata | None) -> Sequence[Condition]:
    """Nobody has brought the tenant into being, or asked for it, since it was seen."""
    served = seen is not None and seen.version is not None
    return [
        still("created_by", seen.created_by if seen else None),
        Present("version") if served else Missing("version"),
        still("asked_for_at", seen.asked_for_at if seen else None),
    ]


# What the tenant's stack keeps true


def queue_recorded(
    tenant: TenantId, *, stack_id: str, queue: Queue, at: datetime, seen: Metadata | None, change: RecordedChange | None
) -> Transition:
    """A published queue is replaced only by its own stack, or by the first to say its stack id."""
    conditions = [
        _not_gone(stack_id),
        any_of(Missing("stack_id"), Equals("stack_id", stack_id), Missing("version")),
    ]
    if seen is not None and seen.queue is not None:
        conditions.append(Equals("queue", seen.queue))
    update = Update(
        MetadataKey(tenant),
        {"queue": queue, "stack_id": stack_id, "updated_at": at},
        {"created_at": at},
        ("deployed",),
        all_of(*conditions),
    )
    return [update, *([Append(change)] if change else [])]


def marked_gone(tenant: TenantId, *, stack_id: str) -> Transition:
    return [Update(MetadataKey(tenant), {"gone_stack_id": stack_id}, condition=RowExists())]


def queue_forgotten(tenant: TenantId, *, stack_id: str, vanished: bool) -> Transition:
    """What a stack wrote is taken back, what people said stays.

    The stack's id is kept, so that a run that saw the stack before does not publish it.
    """
    sets: dict[str, object] = {"gone_stack_id": stack_id, "listed_version": None}
    defaults: dict[str, object] = {}
    clears = ["queue", "stack_id", "version", "deployed"]
    if vanished:  # Else an operation is running, and has said the state. Only there is no version to be listed at.
        sets |= {
            "listed_state": TenantState.UNKNOWN,
            # The tenant comes back at the version that it had.
            "last_version": CopyOf("version"),
        }
        # Whoever asks for the tenant next has not brought it into being, also if nobody knows who has.
        defaults["created_by"] = UNKNOWN_CREATOR
        clears.append("root_cause")
    return [Update(MetadataKey(tenant), sets, defaults, clears, Equals("stack_id", stack_id))]


# What a reconciliation puts right


def corrected(seen: Metadata, stack: Stack, audits: Sequence[Audit], *, request: Request, at: datetime) -> Transition:
    """What the metadata ought to say, if nobody has written anything else since it was seen.

    A tenant that no operation has listed yet is listed from now on.
    """
    after = replace(
        seen,
        queue=stack.queue or seen.queue,
        stack_id=stack.stack_id,
        version=stack.version or seen.version,
        updated_at=at,
    )
    said = {"queue": after.queue, "stack_id": after.stack_id, "version": after.version, "updated_at": at}
    sets: dict[str, object] = {name: value for name, value in said.items() if value}
    sets |= {"listed_state": state_of(after, audits), "listed_version": after.version}
    unchanged = all_of(
        RowExists(),
        *(still(name, getattr(seen, name)) for name in ("stack_id", "version", "gone_stack_id", "withdrawn_by")),
        *([Equals("queue", seen.queue)] if seen.queue else []),
    )
    return [
        Check(LockKey(seen.tenant), RowAbsent()),
        Update(MetadataKey(seen.tenant), sets, clears=("deployed",), condition=unchanged),
        Append(correction(seen, after, request=request, at=at)),
    ]


# Records and rows


def nothing_about(tenant: TenantId) -> Metadata:
    return Metadata(tenant, None, None, None, None, None)


def has_recorded(audits: Sequence[Audit], run: Run, status: Status) -> bool:
    return any(audit.execution == run.execution and audit.status is status for audit in audits)


def _with(audits: Sequence[Audit], written: Audit) -> Sequence[Audit]:
    return [*(audit for audit in audits if AuditKey.of(audit) != AuditKey.of(written)), written]


def _listing(metadata: Metadata, audits: Sequence[Audit]) -> tuple[dict[str, object], list[str]]:
    """What the index says about a tenant that is not deleted: fields to set, and fields to clear."""
    cause = root_cause_of(metadata, audits)
    sets: dict[str, object] = {"listed_state": state_of(metadata, audits), "listed_version": metadata.version}
    return (sets | {"root_cause": cause}, []) if cause else (sets, ["root_cause"])


def _lock_fields(run: Run) -> dict[str, object]:
    attempt = run.attempt
    return {
        "operation": attempt.operation,
        "version": attempt.version,
        "attempt": attempt.number,
        "request": run.request,
        "execution": run.execution,
        "started_at": run.started_at,
    }


def _audit(run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> Audit:
    attempt = run.attempt
    return Audit(
        run.tenant,
        attempt.operation,
        attempt.version,
        status,
        run.execution,
        at,
        attempt.number,
        cause,
        run.request,
        asked_at=run.asked_at,
    )


def audit_written(
    run: Run, status: Status, at: datetime, cause: RootCause | None = None, *, condition: Condition | None = None
) -> Put:
    audit = _audit(run, status, at, cause)
    written: dict[str, object] = {
        "status": audit.status,
        "execution": audit.execution,
        "updated_at": audit.updated_at,
        "version": audit.version,
        "attempt": audit.attempt,
        "asked_at": audit.asked_at,
        "request": audit.request,
    }
    if cause:
        written["root_cause"] = cause
    if status is Status.STARTED:
        written["listed"] = Unfinished(at)
    elif status is Status.SUCCESS and audit.operation is Operation.DELETE:
        written["listed"] = TenantState.DELETED
    return Put(AuditKey.of(run.attempt), written, condition)


def _history(run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> Append:
    attempt = run.attempt
    return Append(
        HistoryEntry(
            run.tenant,
            at,
            attempt.operation,
            attempt.version,
            attempt.number,
            status,
            run.execution,
            cause,
            run.request.by,
            run.request,
        )
    )
