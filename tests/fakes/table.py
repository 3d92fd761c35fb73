"""The table, in memory. ``tests/adapters`` holds it and the DynamoDB adapter to one contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from orchestrator.common.errors import LostOwnership, QueueOwnedElsewhere, StackHasGone
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.reconciling.ports import Adopted, UnlistedPage, UnlistedTenant
from orchestrator.releases.records import Release
from orchestrator.tenants.admission import owner_once_begun
from orchestrator.tenants.changes import correction, description
from orchestrator.tenants.fleet import root_cause_of, state_of
from orchestrator.tenants.ports import ListedTenant, Pin, Publication, Seen, Stack
from orchestrator.tenants.records import (
    UNKNOWN_CREATOR,
    Attempt,
    Audit,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    Queue,
    RecordedChange,
    Request,
    RootCause,
    Run,
    Status,
    TenantState,
    UnreadableEntry,
)
from orchestrator.tenants.stack_resources import Requester

AuditKey = tuple[Operation, str | None]


def _position(key: AuditKey) -> str:
    operation, version = key
    return f"{operation}#{version or ''}"


@dataclass
class _Tenant:
    """The rows under one tenant's partition key."""

    metadata: Metadata | None = None
    lock: Lock | None = None
    audits: dict[AuditKey, Audit] = field(default_factory=dict)
    unnumbered: set[AuditKey] = field(default_factory=set)
    """Audit rows from before attempts were counted."""
    history: dict[str, HistoryEntry | RecordedChange | UnreadableEntry] = field(default_factory=dict)
    labelled: bool = False
    """Whether the metadata has labels, be they none."""
    listed: tuple[TenantState, RootCause | None] | None = None
    """What the index says of the tenant: nothing before its first operation."""

    def sorted_audits(self) -> list[Audit]:
        return [self.audits[key] for key in sorted(self.audits, key=_position)]

    @property
    def state(self) -> TenantState:
        return state_of(self.metadata, self.sorted_audits())

    def show(self) -> None:
        """Have the index say what the rows say."""
        self.listed = self.state, root_cause_of(self.metadata, self.sorted_audits())
        if self.state is TenantState.DELETED and (Operation.DELETE, None) in self.unnumbered:
            self.listed = None  # It is listed by the audit of its delete, and that one is too old to be.


class InMemoryTable:
    """The table. Every write is all or nothing, as a transaction is."""

    def __init__(self) -> None:
        self._tenants: dict[TenantId, _Tenant] = {}
        self._releases: dict[str, Release] = {}

    # Reading

    def metadata(self, tenant: TenantId) -> Metadata | None:
        return self._of(tenant).metadata

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        return self._of(tenant).sorted_audits()

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry | RecordedChange | UnreadableEntry]:
        history = self._of(tenant).history
        return [history[key] for key in sorted(history)]

    def lock(self, tenant: TenantId) -> Lock | None:
        return self._of(tenant).lock

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        listed = [
            _listed(tenant, rows, *rows.listed)
            for tenant, rows in self._tenants.items()
            if rows.listed and rows.listed[0] is state
        ]
        return [
            each
            for each in sorted(listed, key=lambda each: each.position)
            if each.position > (after or "") and (version is None or each.position.startswith(f"{version}#"))
        ][:limit]

    def versions_in_use(self) -> Mapping[str, Mapping[TenantState, int]]:
        counted: dict[str, dict[TenantState, int]] = {}
        for tenant, rows in self._tenants.items():
            if rows.listed and rows.listed[0] is not TenantState.DELETED:
                listed = _listed(tenant, rows, *rows.listed)
                states = counted.setdefault(listed.version or "", {})
                states[listed.state] = states.get(listed.state, 0) + 1
        return counted

    def count_tenants(self) -> int:
        return sum(sum(states.values()) for states in self.versions_in_use().values())

    def unfinished_operations(self) -> Iterable[Audit]:
        started = [
            audit
            for rows in self._tenants.values()
            for key, audit in rows.audits.items()
            if audit.status is Status.STARTED and key not in rows.unnumbered
        ]
        return sorted(started, key=lambda audit: f"{timestamp(audit.updated_at)}#{audit.tenant}")

    def as_of_now(self) -> InMemoryTable:
        """What is in it now, whatever is written later: an index that lags answers so."""
        then = InMemoryTable()
        then._releases = dict(self._releases)
        then._tenants = {
            tenant: replace(rows, audits=dict(rows.audits), unnumbered=set(rows.unnumbered), history={})
            for tenant, rows in self._tenants.items()
        }
        return then

    # Writing one operation

    def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None, restore: bool = False) -> Lock | None:
        rows = self._of(run.tenant)
        if rows.lock and rows.lock.run.execution == run.execution:
            return None
        dead = instead_of.run if instead_of else None
        if rows.lock and not (dead and rows.lock.run.execution == dead.execution):
            return rows.lock
        if not self._may_write(run):
            if rows.lock is None:
                raise LostOwnership(run.attempt.name)
            return rows.lock
        owner = self._owner_once_begun(run)
        if dead and rows.lock:
            self._close_abandoned(dead, at)
            if restore and rows.metadata:
                rows.metadata = replace(rows.metadata, withdrawn_by=None)
        rows.lock = Lock(_stored_run(run), None)
        self._write(run, Status.STARTED, at)
        self._describe_begun(run, at)
        assert rows.metadata is not None
        rows.metadata = replace(rows.metadata, created_by=owner)
        return None

    def _owner_once_begun(self, run: Run) -> Requester | None:
        rows = self._of(run.tenant)
        before, audits = rows.metadata, rows.sorted_audits()
        served_or_withdrawn = before is not None and (before.published or before.withdrawn_by is not None)
        if run.attempt.operation is not Operation.CREATE or served_or_withdrawn:
            return before.created_by if before else None
        return owner_once_begun(run.request, before, audits if before else ())

    def _describe_begun(self, run: Run, at: datetime) -> None:
        rows, request = self._of(run.tenant), run.request
        metadata = rows.metadata or _nothing_about(run.tenant)
        metadata = replace(metadata, updated_at=metadata.updated_at or _stored(at))
        if metadata.asked_for == run.attempt:
            metadata = replace(metadata, asked_for=None, asked_for_at=None)
        if run.attempt.operation is Operation.DELETE:
            metadata = replace(metadata, withdrawn_by=run.execution)
        says = request.resource is None  # A resource has said it before, if the tenant was nobody else's then.
        if says and request.labels is not None and not (rows.labelled and rows.metadata):
            metadata = replace(metadata, labels=dict(request.labels))
            rows.labelled = True
        if says and request.pin is not None:
            metadata = replace(metadata, pinned_version=metadata.pinned_version or request.pin)
        rows.metadata = metadata
        rows.show()

    def revive(self, run: Run) -> None:
        rows, key = self._of(run.tenant), (Operation.DELETE, None)
        if not self._owns(run) or key not in rows.audits:
            raise LostOwnership(run.attempt.name)
        rows.audits[key] = replace(rows.audits[key], revived_by=run.execution)
        rows.show()

    def remember_token(self, run: Run, task_token: str) -> None:
        rows = self._of(run.tenant)
        if rows.lock is None or rows.lock.run.execution != run.execution:
            raise LostOwnership(run.attempt.name)
        rows.lock = replace(rows.lock, task_token=task_token)

    def remember_changes(self, run: Run, change_set: str) -> None:
        rows = self._of(run.tenant)
        if rows.lock is None or rows.lock.run.execution != run.execution:
            raise LostOwnership(run.attempt.name)
        rows.lock = replace(rows.lock, change_set=change_set)

    def touch(self, run: Run) -> None:
        rows = self._of(run.tenant)
        if not self._owns(run) or rows.metadata is None:
            raise LostOwnership(run.attempt.name)
        rows.metadata = replace(rows.metadata, deployed=None)

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        rows = self._of(run.tenant)
        if not self._owns(run):
            if self._recorded(run, Status.SUCCESS):
                return
            raise LostOwnership(run.attempt.name)
        old = rows.metadata or _nothing_about(run.tenant)
        if old.gone_stack_id == publication.stack_id:
            raise StackHasGone(publication.stack_id)
        rows.metadata = replace(
            old,
            queue=publication.queue,
            stack_id=publication.stack_id,
            version=publication.version,
            created_at=old.created_at or _stored(at),
            updated_at=_stored(at),
            withdrawn_by=None,
            asked_for=None,
            asked_for_at=None,
            deployed=publication.deployed,
            last_version=None,
            created_by=old.created_by if publication.created_by is None else publication.created_by,
            outbound_queue=None if run.attempt.operation is Operation.UPDATE else old.outbound_queue,
        )
        self._succeed(run, at)

    def remove(self, run: Run, *, at: datetime) -> None:
        rows = self._of(run.tenant)
        if not self._owns(run):
            if self._recorded(run, Status.SUCCESS):
                return
            raise LostOwnership(run.attempt.name)
        self._delete_metadata(rows, run)
        self._succeed(run, at)

    def _delete_metadata(self, rows: _Tenant, run: Run) -> None:
        """What was said about the tenant stays if its next create was asked for already."""
        old = rows.metadata
        if old is None or not old.is_still_to_come(run):
            rows.metadata, rows.labelled = None, False
            return
        rows.metadata = replace(
            _nothing_about(old.tenant),
            updated_at=old.updated_at,
            pinned_version=old.pinned_version,
            labels=old.labels,
            asked_for=old.asked_for,
            asked_for_at=old.asked_for_at,
            gone_stack_id=old.gone_stack_id,
        )

    def _succeed(self, run: Run, at: datetime) -> None:
        self._write(run, Status.SUCCESS, at)
        self._of(run.tenant).lock = None
        self._of(run.tenant).show()

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        rows = self._of(run.tenant)
        if not self._owns(run) and (not self._may_write(run) or self._is_in_the_way(run)):
            return self._recorded(run, Status.FAILURE)
        self._write(run, Status.FAILURE, at, cause)
        if self._owns(run):
            rows.lock = None
            if restore and rows.metadata:
                rows.metadata = replace(rows.metadata, withdrawn_by=None)
        if rows.lock is None:
            if rows.state is TenantState.DELETED:
                self._delete_metadata(rows, run)
            else:
                rows.metadata = rows.metadata or _nothing_about(run.tenant)
            rows.show()
        return True

    # What operators say about a tenant

    def describe(
        self,
        tenant: TenantId,
        *,
        labels: Mapping[str, str] | None,
        pin: Pin,
        request: Request,
        at: datetime,
        asked_for: Attempt | None = None,
        only_if: Seen | None = None,
    ) -> bool:
        rows = self._of(tenant)
        if only_if is not None and not only_if.holds_for(rows.metadata):
            return False
        change = description(
            tenant, rows.metadata, labels=labels, pin=pin, request=_stored_request(request), at=_stored(at)
        )
        if asked_for:
            rows.metadata = replace(
                rows.metadata or _nothing_about(tenant), asked_for=asked_for, asked_for_at=_stored(at)
            )
        elif rows.metadata is None or rows.metadata.withdrawn_by:
            return False
        elif change.before == change.after and (labels is None or rows.labelled):
            return True
        if labels is not None:
            rows.metadata = replace(rows.metadata, labels=dict(labels))
            rows.labelled = True
        if pin.version or pin.lift:
            rows.metadata = replace(rows.metadata, pinned_version=pin.version)
        rows.metadata = replace(rows.metadata, updated_at=_stored(at))
        if change.before != change.after:
            self._append(change)
        return True

    # What the tenant's stack keeps true

    def record_queue(
        self,
        tenant: TenantId,
        *,
        stack_id: str,
        queue: Queue,
        at: datetime,
        seen: Metadata | None = None,
        change: RecordedChange | None = None,
    ) -> bool:
        rows = self._of(tenant)
        old = rows.metadata or _nothing_about(tenant)
        if old.gone_stack_id == stack_id:
            raise StackHasGone(stack_id)
        if old.version is not None and old.stack_id not in (None, stack_id):
            raise QueueOwnedElsewhere(stack_id)
        if seen is not None and seen.queue is not None and old.queue != seen.queue:
            return False
        created_at = old.created_at or _stored(at)
        rows.metadata = replace(
            old, queue=queue, stack_id=stack_id, created_at=created_at, updated_at=_stored(at), deployed=None
        )
        if change:
            self._append(change)
        return True

    def mark_gone(self, tenant: TenantId, *, stack_id: str) -> None:
        rows = self._of(tenant)
        rows.metadata = rows.metadata and replace(rows.metadata, gone_stack_id=stack_id)

    def forget_queue(self, tenant: TenantId, *, stack_id: str, vanished: bool) -> bool:
        rows = self._of(tenant)
        if rows.metadata is None or rows.metadata.stack_id != stack_id:
            return False
        version = rows.metadata.version
        rows.metadata = replace(
            rows.metadata, queue=None, stack_id=None, version=None, deployed=None, gone_stack_id=stack_id
        )
        if vanished:
            rows.metadata = replace(
                rows.metadata, created_by=rows.metadata.created_by or UNKNOWN_CREATOR, last_version=version
            )
            rows.listed = (TenantState.UNKNOWN, None)
        return True

    # What a reconciliation puts right

    def correct(self, seen: Metadata, stack: Stack, *, request: Request, at: datetime) -> bool:
        rows = self._of(seen.tenant)
        if rows.lock or rows.metadata != seen:
            return False
        rows.metadata = replace(
            seen,
            queue=stack.queue or seen.queue,
            stack_id=stack.stack_id,
            version=stack.version or seen.version,
            updated_at=_stored(at),
            deployed=None,
        )
        self._append(correction(seen, rows.metadata, request=_stored_request(request), at=_stored(at)))
        rows.show()
        return True

    # What an adoption brings into the index

    def page(self, cursor: str | None, *, limit: int) -> UnlistedPage:
        ids = sorted(tenant.value for tenant, rows in self._tenants.items() if rows.metadata or rows.audits)
        left = [each for each in ids if each > (cursor or "")]
        there = left[:limit]
        found = [each for each in there if self.unlisted(TenantId(each))]
        return UnlistedPage(found, len(there), len(there) / 2, there[-1] if len(left) > limit else None)

    def unlisted(self, tenant: TenantId) -> UnlistedTenant | None:
        rows = self._of(tenant)
        metadata = rows.metadata
        listed = rows.listed is not None or (metadata is not None and metadata.asked_for is not None)
        has_no_stack = metadata is not None and metadata.version is not None and metadata.stack_id is None
        never_ended = any(rows.audits[key].status is Status.STARTED for key in rows.unnumbered)
        if not (metadata or rows.audits) or (listed and not has_no_stack and not never_ended):
            return None
        earlier = frozenset((rows.audits[key].operation, rows.audits[key].version) for key in rows.unnumbered)
        return UnlistedTenant(tenant, metadata, tuple(rows.sorted_audits()), rows.lock, earlier, listed)

    def adopt(self, seen: UnlistedTenant, adopted: Adopted, change: RecordedChange) -> bool:
        rows = self._of(seen.tenant)
        if rows.lock or self.unlisted(seen.tenant) != seen:
            return False
        metadata = adopted.metadata or _nothing_about(seen.tenant)
        if adopted.state is not TenantState.DELETED:
            rows.metadata = replace(metadata, updated_at=metadata.updated_at or _stored(change.at))
        elif not seen.listed:
            rows.metadata = None
        for audit in adopted.audits:
            rows.audits[audit.operation, None if audit.operation is Operation.DELETE else audit.version] = audit
        rows.unnumbered.clear()
        rows.listed = adopted.state, adopted.root_cause
        self._append(replace(change, at=_stored(change.at)))
        return True

    # Releases

    def release(self, version: str) -> Release | None:
        return self._releases.get(version)

    def releases(self) -> Sequence[Release]:
        return [self._releases[version] for version in sorted(self._releases)]

    def record_release(self, release: Release) -> Release:
        return self._releases.setdefault(release.version, release)

    # Rows that today's code does not write

    def plant_metadata(self, metadata: Metadata, *, listed: bool = True) -> None:
        rows = self._of(metadata.tenant)
        rows.metadata = metadata
        if listed:
            rows.show()

    def plant_audit(self, audit: Audit, *, numbered: bool = True) -> None:
        rows = self._of(audit.tenant)
        key = (audit.operation, None if audit.operation is Operation.DELETE else audit.version)
        rows.audits[key] = audit
        if numbered:
            rows.show()
        else:
            rows.unnumbered.add(key)

    # How it is kept

    def _of(self, tenant: TenantId) -> _Tenant:
        return self._tenants.setdefault(tenant, _Tenant())

    def _owns(self, run: Run) -> bool:
        lock = self._of(run.tenant).lock
        return lock is not None and lock.run.execution == run.execution

    def _may_write(self, run: Run) -> bool:
        rows, key = self._of(run.tenant), _audit_key(run.attempt)
        audit = rows.audits.get(key)
        if audit is None or key in rows.unnumbered or audit.attempt < run.attempt.number:
            return True
        return audit.execution == run.execution and audit.status is Status.STARTED

    def _is_in_the_way(self, run: Run) -> bool:
        """Whether the operation is one that an earlier attempt is at."""
        rows, key = self._of(run.tenant), _audit_key(run.attempt)
        audit = None if key in rows.unnumbered else rows.audits.get(key)
        return audit is not None and audit.status is Status.STARTED and audit.execution != run.execution

    def _recorded(self, run: Run, status: Status) -> bool:
        audit = self._of(run.tenant).audits.get(_audit_key(run.attempt))
        return audit is not None and audit.execution == run.execution and audit.status is status

    def _close_abandoned(self, run: Run, at: datetime) -> None:
        cause = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")
        if self._recorded(run, Status.STARTED):
            self._write_audit(run, Status.FAILURE, at, cause)
        self._write_history(run, Status.FAILURE, at, cause)

    def _write(self, run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> None:
        self._write_audit(run, status, at, cause)
        self._write_history(run, status, at, cause)

    def _write_audit(self, run: Run, status: Status, at: datetime, cause: RootCause | None) -> None:
        attempt, rows = run.attempt, self._of(run.tenant)
        rows.audits[_audit_key(attempt)] = Audit(
            run.tenant,
            attempt.operation,
            attempt.version,
            status,
            run.execution,
            _stored(at),
            attempt.number,
            cause,
            _stored_request(run.request),
            asked_at=_stored(run.asked_at),
        )
        rows.unnumbered.discard(_audit_key(attempt))

    def _write_history(self, run: Run, status: Status, at: datetime, cause: RootCause | None) -> None:
        attempt = run.attempt
        self._of(run.tenant).history[f"{timestamp(at)}#{attempt.name}#{status}"] = HistoryEntry(
            run.tenant,
            _stored(at),
            attempt.operation,
            attempt.version,
            attempt.number,
            status,
            run.execution,
            cause,
            run.request.by,
            _stored_request(run.request),
        )

    def _append(self, change: RecordedChange) -> None:
        history = self._of(change.tenant).history
        # In the order of their times; those of one moment in any order.
        history[f"{timestamp(change.at)}#{change.kind}#{len(history)}"] = change


def _listed(tenant: TenantId, rows: _Tenant, state: TenantState, root_cause: RootCause | None) -> ListedTenant:
    """From the metadata, or, if the tenant is deleted, from the audit of its delete."""
    metadata = rows.metadata or _nothing_about(tenant)
    if state is TenantState.DELETED:
        metadata = replace(_nothing_about(tenant), updated_at=rows.audits[Operation.DELETE, None].updated_at)
    return ListedTenant(
        tenant=tenant,
        state=state,
        version=metadata.version,
        pinned_version=metadata.pinned_version,
        labels=metadata.labels,
        queue=metadata.queue if metadata.published else None,
        updated_at=metadata.updated_at,
        root_cause=root_cause,
        position=f"{metadata.version or ''}#{tenant}",
        stack_id=metadata.stack_id,
    )


def _nothing_about(tenant: TenantId) -> Metadata:
    return Metadata(tenant, None, None, None, None, None)


def _audit_key(attempt: Attempt) -> AuditKey:
    return attempt.operation, None if attempt.operation is Operation.DELETE else attempt.version


def _stored(moment: datetime) -> datetime:
    return parse_timestamp(timestamp(moment))


def _stored_run(run: Run) -> Run:
    return replace(run, started_at=_stored(run.started_at), request=_stored_request(run.request))


def _stored_request(request: Request) -> Request:
    return replace(request, asked_at=_stored(request.asked_at)) if request.asked_at else request
