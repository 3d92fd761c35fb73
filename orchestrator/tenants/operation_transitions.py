"""The rules for an operation's writes: which rows each step writes, and under which conditions.

Pure functions from records to transitions. :mod:`orchestrator.tenants.ledger` reads the records, applies the
transitions, and reports why a transition was not applied.

All writes of an operation are fenced by its lock, or by the condition that no later attempt has begun.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.writes import (
    Below,
    Check,
    Condition,
    Delete,
    Differs,
    Equals,
    Missing,
    Put,
    RowAbsent,
    Update,
    all_of,
    any_of,
    still,
)
from orchestrator.releases.records import Release
from orchestrator.tenants.admission import owner_once_begun, refusal
from orchestrator.tenants.metadata_transitions import stack_not_gone
from orchestrator.tenants.operation_rows import (
    LISTING_FIELDS,
    announced,
    audit_of,
    audit_written,
    empty_metadata,
    has_recorded,
    history_appended,
    listing,
    lock_fields,
    with_audit,
)
from orchestrator.tenants.records import (
    Audit,
    Metadata,
    Operation,
    RootCause,
    Run,
    Status,
    TenantRecords,
    TenantState,
)
from orchestrator.tenants.state import is_delete_in_effect, state_of
from orchestrator.tenants.writes import AuditKey, LockKey, MetadataKey, Transition, Write

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Publication
    from orchestrator.tenants.turns import Place

ABANDONED = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")

_KEPT_FOR_THE_NEXT_CREATE = frozenset(
    {
        "tenant",
        "updated_at",
        "pinned_version",
        "labels",
        "labelled",
        "asked_for",
        "asked_for_at",
        "gone_stack_id",
        "recorded_tier",
        "given_to",
    }
)


# Conditions


def not_overtaken(run: Run) -> Condition:
    """A condition for the audit of a run that may not hold the lock. The lock itself fences its holder's writes."""
    return any_of(
        RowAbsent(),
        Missing("attempt"),
        Below("attempt", run.attempt.number),
        all_of(Equals("execution", run.execution), Equals("status", Status.STARTED)),
    )


def not_in_the_way(run: Run) -> Condition:
    """The same for a run that never began, which also must not overwrite an earlier attempt that is running."""
    nobody_is_running = any_of(
        Missing("attempt"), Differs("status", Status.STARTED), Equals("execution", run.execution)
    )
    return all_of(not_overtaken(run), nobody_is_running)


def _owned_by(run: Run) -> Condition:
    return Equals("execution", run.execution)


# Beginning an operation


def waiting(run: Run, before: TenantRecords, place: Place, at: datetime) -> Transition:
    """The create waits for its turn: it is Started, and its tenant is listed, but it has no lock.

    So a delete need not wait for it. Everything else is written once the create begins.
    """
    started = audit_written(run, Status.STARTED, at, place=place, condition=not_overtaken(run))
    audits = with_audit(before.audits, audit_of(run, Status.STARTED, at, place=place))
    free = Check(LockKey(run.tenant), RowAbsent())
    metadata = before.metadata or empty_metadata(run.tenant)
    if state_of(metadata, audits) is TenantState.DELETED:
        return [started, free]  # The delete's audit lists the tenant.
    listed, unlisted = listing(metadata, audits)
    defaults = {"updated_at": metadata.updated_at or at}
    unchanged = still("version", metadata.version)
    update = Update(MetadataKey(run.tenant), listed, defaults, unlisted, unchanged)
    return [started, free, update, announced(run, Status.STARTED, at)]


def begun(
    run: Run,
    before: TenantRecords,
    at: datetime,
    *,
    release: Release | None = None,
    target: str | None = None,
    instead_of: Run | None = None,
    restore: bool = False,
) -> Transition:
    """The run takes the lock. If ``instead_of`` is given, the run takes the lock over and closes that dead run.

    An explicit create that is not refused supersedes the tenant's delete. ``release`` is the published release of the
    run's version, if there is one, and ``target`` the fingerprint that the stack is to have. ``restore`` serves again
    the tenant that the dead run, a delete, has withdrawn.
    """
    lock_condition = _owned_by(instead_of) if instead_of else RowAbsent()
    moved = _fingerprint_moved(run, before.metadata, target)
    writes: list[Write] = [
        Put(LockKey(run.tenant), lock_fields(run) | moved, lock_condition),
        audit_written(run, Status.STARTED, at, condition=not_overtaken(run)),
        history_appended(run, Status.STARTED, at),
        announced(run, Status.STARTED, at),
    ]
    audits = with_audit(before.audits, audit_of(run, Status.STARTED, at))
    closed: Put[AuditKey] | None = None
    if instead_of:
        writes.append(history_appended(instead_of, Status.FAILURE, at, ABANDONED))
        same_row = AuditKey.of(instead_of.attempt) == AuditKey.of(run.attempt)
        if not same_row and has_recorded(before.audits, instead_of, Status.STARTED):
            closed = audit_written(instead_of, Status.FAILURE, at, ABANDONED, condition=not_overtaken(instead_of))
            audits = with_audit(audits, audit_of(instead_of, Status.FAILURE, at, ABANDONED))
    restored = _restored(before.metadata) if restore else before.metadata
    superseded = _superseded_delete(run, TenantRecords(restored, audits, before.lock), release)
    if superseded:
        audits = with_audit(audits, replace(superseded, revived_by=run.execution))
        if closed and closed.key == AuditKey.of(superseded):
            closed = replace(closed, fields={**closed.fields, "revived_by": run.execution})
        else:
            writes.append(revival(run, superseded))
    writes += [closed] if closed else []
    creates = run.attempt.operation is Operation.CREATE and not (restored and restored.published)
    tier = release.tier if release and creates else None
    metadata = _metadata_once_begun(run, before, audits, at, tier=tier, restore=restore, revive=superseded is not None)
    if run.attempt.operation is Operation.UPDATE:
        metadata = [_without(moved, update, before.metadata) for update in metadata]
    return [*writes, *metadata]


def _fingerprint_moved(run: Run, metadata: Metadata | None, target: str | None) -> dict[str, object]:
    """The fields of the lock that an update takes from the metadata, because it is about to change the stack.

    An update that ends early leaves the metadata without a fingerprint, so that the next one trusts no record. That
    includes a refused update: whether it is refused is decided only when it holds the lock.
    """
    if run.attempt.operation is not Operation.UPDATE or metadata is None or metadata.deployed in (None, target):
        return {}
    changed_at = metadata.stack_changed_at
    return {"deployed": metadata.deployed} | ({"stack_changed_at": changed_at} if changed_at else {})


def _without(moved: Mapping[str, object], update: Update[MetadataKey], before: Metadata | None) -> Update[MetadataKey]:
    """The update of the metadata that also removes the fields that were moved to the lock.

    If another update ends at the same moment, the condition fails and the run begins again. That holds also if nothing
    is moved, because the fingerprint that the other update has recorded may have to be moved.
    """
    unchanged = still("deployed", before.deployed if before else None)
    conditions = [*([update.condition] if update.condition else []), unchanged]
    if "stack_changed_at" in moved:
        conditions.append(Equals("stack_changed_at", moved["stack_changed_at"]))
    return replace(update, clears=[*update.clears, *moved], condition=all_of(*conditions))


def _superseded_delete(run: Run, records: TenantRecords, release: Release | None) -> Audit | None:
    """The delete that the run supersedes, if the run is an explicit create that may create the deleted tenant."""
    if run.attempt.operation is not Operation.CREATE or not run.request.explicit:
        return None
    metadata, audits = records.metadata, records.audits
    if not is_delete_in_effect(audits) or refusal(
        run.attempt, run.request, asked_at=run.asked_at, metadata=metadata, audits=audits, release=release
    ):
        return None
    return next(audit for audit in audits if audit.operation is Operation.DELETE)


def revival(run: Run, delete: Audit) -> Update[AuditKey]:
    unchanged = all_of(Equals("status", delete.status), Equals("execution", delete.execution), Missing("revived_by"))
    return Update(AuditKey.of(delete), {"revived_by": run.execution}, clears=("listed",), condition=unchanged)


def _restored(metadata: Metadata | None) -> Metadata | None:
    """The metadata as it was before a delete withdrew it."""
    return metadata and replace(metadata, withdrawn_by=None)


def _metadata_once_begun(
    run: Run,
    before: TenantRecords,
    audits: Sequence[Audit],
    at: datetime,
    *,
    tier: str | None,
    restore: bool,
    revive: bool,
) -> Sequence[Update[MetadataKey]]:
    """Set the tenant's listed state, and the labels, pin and tier of a create. A delete withdraws the queue.

    Until the run holds the lock, another operation may publish another version. The tenant is then listed at the old
    version until the run ends, which lists it again.
    """
    metadata, operation, request = before.metadata, run.attempt.operation, run.request
    after = (_restored(metadata) if restore else metadata) or empty_metadata(run.tenant)
    sets: dict[str, object] = {}
    # The list shows a time even for a tenant that has no metadata yet.
    defaults: dict[str, object] = {"updated_at": after.updated_at or at} | _requested_description(run, metadata)
    if tier is not None:
        # A tier that the request names replaces that of the tenant before it was deleted.
        (sets if request.tier == tier else defaults)["recorded_tier"] = tier
    clears: list[str] = []
    if operation is Operation.DELETE:
        sets["withdrawn_by"] = run.execution
    elif restore:
        clears.append("withdrawn_by")
    if operation is Operation.CREATE and not after.published and (revive or not is_delete_in_effect(before.audits)):
        sets |= _owner_recorded(run, metadata and after, before.audits)
    if _is_created_as_new(after, sets, revive=revive):
        # A stack of an earlier system leaves the metadata as it is when it is deleted. The next delete may give the
        # tenant back, and must not serve at the version of the creation before.
        after = replace(after, created_at=None, version=None, last_version=None, deployed=None, stack_changed_at=None)
        clears += ["created_at", "version", "last_version", "deployed", "stack_changed_at"]
    conditions: list[Condition] = []
    if operation is Operation.CREATE:
        asked_for = metadata.asked_for if metadata else None
        # If another create is requested at the same moment, the condition fails and the run begins again.
        conditions.append(still("asked_for", asked_for))
        clears += ["asked_for", "asked_for_at"] if asked_for == run.attempt else []
    if revive:
        # If a pin is set at the same moment, it may refuse the create.
        conditions.append(still("pinned_version", after.pinned_version))
    if state_of(after, audits) is TenantState.DELETED:
        if metadata is None:
            return []  # The delete's audit lists the tenant, and the run is about to be refused.
        clears += LISTING_FIELDS
    else:
        listed, unlisted = listing(after, audits)
        sets |= listed
        clears += unlisted
    condition = all_of(*conditions) if conditions else None
    return [Update(MetadataKey(run.tenant), sets, defaults, clears, condition)]


def _requested_description(run: Run, metadata: Metadata | None) -> dict[str, object]:
    """Labels and pin. They are defaults, because somebody may have set others since the create was requested."""
    request = run.request
    if request.resource is not None:
        return {}  # If another team's resource may change the tenant, its labels and pin were recorded earlier.
    if metadata is not None and metadata.asked_for == run.attempt:
        return {}  # The request has recorded them, and what was removed since stays removed.
    requested = {"labels": request.labels, "pinned_version": request.pin}
    return {name: value for name, value in requested.items() if value is not None}


def _is_created_as_new(before: Metadata, sets: Mapping[str, object], *, revive: bool) -> bool:
    """True if whatever belongs to the creation of the tenant so far, such as its events, has ended.

    The tenant has a delete that did not finish, and is still withdrawn by it or was never in service; or it gets
    another owner than the recorded one. A tenant in service that such a delete gives back is the same one.
    """
    deleted = revive and (before.withdrawn_by is not None or not before.was_served)
    return deleted or before.created_by not in (None, sets.get("created_by", before.created_by))


def _owner_recorded(run: Run, metadata: Metadata | None, audits: Sequence[Audit]) -> dict[str, object]:
    """The field that records the tenant's owner once this create has begun, if the owner changes."""
    owner = owner_once_begun(run.request, metadata, audits if metadata else ())
    return {"created_by": owner} if metadata is None or metadata.created_by != owner else {}


def stored_with_lock(run: Run, **stored: str) -> Transition:
    return [Update(LockKey(run.tenant), stored, condition=_owned_by(run))]


# Ending an operation


def published(run: Run, publication: Publication, at: datetime) -> Transition:
    sets: dict[str, object] = {
        "queue": publication.queue,
        "stack_id": publication.stack_id,
        "version": publication.version,
        "updated_at": at,
        "listed_state": TenantState.READY,
        "listed_version": publication.version,
    }
    # The request of another create stays, which may still wait for the lock: until it begins, the tenant is busy.
    clears = ["withdrawn_by", "root_cause", "last_version"]
    if run.attempt.operation is Operation.UPDATE:
        clears.append("outbound_queue")
    for name in ("deployed", "stack_changed_at"):
        value = getattr(publication, name)
        if value is None:
            clears.append(name)
        else:
            sets[name] = value
    if publication.resources:
        sets["resources"] = publication.resources
    elif publication.resources is not None:
        clears.append("resources")
    if publication.created_by is not None:
        sets["created_by"] = publication.created_by
    if publication.tier is not None:
        sets["recorded_tier"] = publication.tier
    metadata = Update(MetadataKey(run.tenant), sets, {"created_at": at}, clears, stack_not_gone(publication.stack_id))
    return [metadata, *_succeeded(run, at)]


def removed(run: Run, metadata: Metadata | None, at: datetime) -> Transition:
    return [*_metadata_once_deleted(run, metadata), *_succeeded(run, at)]


def _succeeded(run: Run, at: datetime) -> Transition:
    return [
        audit_written(run, Status.SUCCESS, at),
        history_appended(run, Status.SUCCESS, at),
        announced(run, Status.SUCCESS, at),
        Delete(LockKey(run.tenant), _owned_by(run)),
    ]


def failed(run: Run, before: TenantRecords, cause: RootCause, at: datetime, *, restore: bool) -> Transition:
    """Record Failure and free the lock. ``restore`` serves again the tenant that this delete has withdrawn.

    A run that never began, or that repeats its step, does not overwrite a later attempt or one that is running.
    """
    history = history_appended(run, Status.FAILURE, at, cause)
    if before.is_locked_by(run):
        return [
            audit_written(run, Status.FAILURE, at, cause),
            Delete(LockKey(run.tenant), _owned_by(run)),
            *_metadata_once_failed(run, before, cause, at, restore=restore),
            history,
            announced(run, Status.FAILURE, at),
        ]
    writes: list[Write] = [audit_written(run, Status.FAILURE, at, cause, condition=not_in_the_way(run))]
    if before.lock is None:  # Otherwise the holder sets the tenant's state, now and when it ends.
        writes.append(Check(LockKey(run.tenant), RowAbsent()))
        writes += _metadata_once_failed(run, before, cause, at, restore=False)
        writes.append(announced(run, Status.FAILURE, at))
    return [*writes, history]


def _metadata_once_failed(
    run: Run, before: TenantRecords, cause: RootCause, at: datetime, *, restore: bool
) -> Transition:
    metadata = _restored(before.metadata) if restore else before.metadata
    audits = with_audit(before.audits, audit_of(run, Status.FAILURE, at, cause))
    if state_of(metadata, audits) is TenantState.DELETED:
        return _metadata_once_deleted(run, metadata)  # The delete's audit lists the tenant.
    listed, unlisted = listing(metadata or empty_metadata(run.tenant), audits)
    return [Update(MetadataKey(run.tenant), listed, clears=[*(["withdrawn_by"] if restore else []), *unlisted])]


def _metadata_once_deleted(run: Run, before: Metadata | None) -> Transition:
    """Delete the metadata. If the next create was requested already, its labels, pin and request stay.

    The record of a stack that was kept ready keeps the tenant that has taken the stack, until the stack has learned it.
    If a create is requested at the same moment, the transition is not applied, and is computed again.
    """
    if before is None:
        return []
    unchanged = (still(name, getattr(before, name)) for name in ("asked_for_at", "given_to"))
    key, condition = MetadataKey(before.tenant), all_of(*unchanged)
    if not _has_create_to_come(run, before) and before.given_to is None:
        return [Delete(key, condition)]
    gone = [each.name for each in fields(Metadata) if each.name not in _KEPT_FOR_THE_NEXT_CREATE]
    return [Update(key, clears=[*gone, *LISTING_FIELDS], condition=condition)]


def _has_create_to_come(run: Run, before: Metadata) -> bool:
    """True if the request of the next create has to stay. A delete supersedes creates that were requested before it."""
    # Another create may wait for the lock for any time, while others take the lock before it.
    waits = run.attempt.operation is not Operation.DELETE and before.asked_for not in (None, run.attempt)
    return waits or before.is_still_to_come(run)
