"""Every write to a tenant's rows: read the records, compute the transition, apply it, or report why it was not applied.

There is one ledger for every table: the DynamoDB table and the one in memory only apply transitions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from orchestrator.common.errors import LostOwnership, QueueOwnedElsewhere, StackHasGone, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants import metadata_transitions, operation_transitions
from orchestrator.tenants.changes import description
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.operation_rows import has_recorded
from orchestrator.tenants.ports import LabelEdit, Pin, Publication, SeenTenant, TenantRows
from orchestrator.tenants.records import Attempt, Audit, Lock, Metadata, Queue, Request, RootCause, Run, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.turns import Place
from orchestrator.tenants.writes import Transition

_ROUNDS = 10
_A_MOMENT = timedelta(milliseconds=1)
_MAX_CORRECTION = timedelta(minutes=1)
"""A recorded time that is further ahead is wrong, and no reason to record another wrong one."""


class Ledger:
    """Implements the writing ports of :mod:`orchestrator.tenants.ports`, and the reconciler's corrections."""

    def __init__(self, rows: TenantRows) -> None:
        self._rows = rows

    # Operations

    def begin(
        self,
        run: Run,
        *,
        at: datetime,
        release: Release | None = None,
        target: str | None = None,
        instead_of: Lock | None = None,
        restore: bool = False,
    ) -> Lock | None:
        before = self._rows.records(run.tenant)
        if before.is_locked_by(run):
            return None  # An earlier try of this step succeeded, and its response was lost.
        dead = instead_of.run if instead_of and before.is_locked_by(instead_of.run) else None
        if before.lock is not None and dead is None:
            return before.lock
        begun = operation_transitions.begun(
            run,
            before,
            _after_all_of(before.audits, at),
            release=release,
            target=target,
            instead_of=dead,
            restore=restore and dead is not None,
        )
        if self._rows.apply(begun):
            return None
        lock = self._rows.lock(run.tenant)
        if lock is None:
            raise _lost(run)  # The lock is free, so this attempt has ended, or a later one has begun.
        return None if lock.run.execution == run.execution else lock

    def wait_for_turn(self, run: Run, place: Place, *, at: datetime) -> None:
        for _ in range(_ROUNDS):
            before = self._rows.records(run.tenant)
            if before.lock is not None or self._rows.apply(operation_transitions.waiting(run, before, place, at)):
                return
            audit = self._rows.audit(run.attempt)
            if audit is not None and audit.execution != run.execution and audit.attempt >= run.attempt.number:
                raise _lost(run)
        raise Unsettled(
            f"Tenant {run.tenant}: it was not recorded that {run.attempt.name} waits for its turn, because others kept "
            "changing the tenant at the same time. The step is retried."
        )

    def remember_token(self, run: Run, task_token: str) -> None:
        self._apply(run, operation_transitions.stored_with_lock(run, task_token=task_token))

    def remember_started(self, run: Run, task_token: str, *, stack_id: str, outcome: str) -> None:
        stored = operation_transitions.stored_with_lock(
            run, task_token=task_token, started_stack=stack_id, started_as=outcome
        )
        self._apply(run, stored)

    def remember_change_set(self, run: Run, change_set: str) -> None:
        self._apply(run, operation_transitions.stored_with_lock(run, change_set=change_set))

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        published = operation_transitions.published(run, publication, at)
        if self._rows.apply(published) or self._has_recorded(run, Status.SUCCESS):
            return
        metadata = self._rows.metadata(run.tenant)
        if metadata is not None and metadata.gone_stack_id == publication.stack_id:
            raise _gone(run.tenant, publication.stack_id)
        raise _lost(run)

    def remove(self, run: Run, *, at: datetime) -> None:
        removed = operation_transitions.removed(run, self._rows.metadata(run.tenant), at)
        if not self._rows.apply(removed) and not self._has_recorded(run, Status.SUCCESS):
            raise _lost(run)

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        before = self._rows.records(run.tenant)
        at = _after_all_of(before.audits, at)
        failed = operation_transitions.failed(run, before, cause, at, restore=restore)
        return self._rows.apply(failed) or self._has_recorded(run, Status.FAILURE)

    def _apply(self, run: Run, transition: Transition) -> None:
        if not self._rows.apply(transition):
            raise _lost(run)

    def _has_recorded(self, run: Run, status: Status) -> bool:
        """True if this run has recorded the outcome: an earlier try succeeded, and its response was lost."""
        audit = self._rows.audit(run.attempt)
        return audit is not None and has_recorded([audit], run, status)

    # Labels and pin

    def describe(
        self,
        tenant: TenantId,
        *,
        labels: Mapping[str, str] | LabelEdit | None,
        pin: Pin,
        request: Request,
        at: datetime,
        asked_for: Attempt | None = None,
        tier: str | None = None,
        only_if: SeenTenant | None = None,
    ) -> RecordedChange | None:
        for _ in range(_ROUNDS):
            metadata = self._rows.metadata(tenant)
            if asked_for is None and (metadata is None or metadata.withdrawn_by):
                return None
            if only_if is not None and not only_if.holds_for(metadata):
                return None
            if tier is not None and metadata is not None and metadata.has_tier_of_queue:
                return None  # The tenant has got a queue since the create was requested, perhaps in another tier.
            wanted = labels.applied_to(metadata.labels if metadata else {}) if isinstance(labels, LabelEdit) else labels
            change = description(tenant, metadata, labels=wanted, pin=pin, request=request, at=at)
            changes = change.before != change.after
            # Empty labels are recorded the first time, so that a create that is waiting does not set its own labels.
            has_labels_recorded = wanted is None or (metadata is not None and metadata.labelled)
            if asked_for is None and not changes and has_labels_recorded:
                return change
            described = metadata_transitions.described(
                tenant,
                metadata,
                labels=wanted,
                pin=pin,
                at=at,
                asked_for=asked_for,
                tier=tier,
                only_if=only_if,
                change=change if changes else None,
            )
            if self._rows.apply(described):
                return change
        raise Unsettled(
            f"Tenant {tenant}: its labels or pin were not changed, because others kept changing them at the same time. "
            "Send the request again."
        )

    # The queue of the tenant's stack

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
        recorded = metadata_transitions.queue_recorded(
            tenant, stack_id=stack_id, queue=queue, at=at, seen=seen, change=change
        )
        if self._rows.apply(recorded):
            return True
        metadata = self._rows.metadata(tenant)
        if metadata is not None and metadata.gone_stack_id == stack_id:
            raise _gone(tenant, stack_id)
        if metadata is None or metadata.version is None or metadata.stack_id in (None, stack_id):
            return False
        raise QueueOwnedElsewhere(
            f"Tenant {tenant}: its queue belongs to another stack, so the queue of {stack_id} was not recorded."
        )

    def mark_gone(self, tenant: TenantId, *, stack_id: str) -> bool:
        return self._rows.apply(metadata_transitions.marked_gone(tenant, stack_id=stack_id))

    def forget_queue(self, tenant: TenantId, *, stack_id: str, seen: Metadata | None = None) -> bool:
        for _ in range(_ROUNDS):
            metadata = self._rows.metadata(tenant)
            if metadata is None or metadata.stack_id != stack_id or seen not in (None, metadata):
                return False
            if self._rows.apply(metadata_transitions.queue_forgotten(metadata, stack_id=stack_id)):
                return True
        raise Unsettled(
            f"Tenant {tenant}: the queue of {stack_id} was not removed from its metadata, because others kept changing "
            "the metadata at the same time. Send the request again."
        )

    # Corrections by the reconciler

    def correct(self, seen: Metadata, stack: Stack, *, request: Request, at: datetime, tier: str | None = None) -> bool:
        if self._rows.metadata(seen.tenant) != seen:
            return False
        audits = self._rows.audits(seen.tenant)
        return self._rows.apply(metadata_transitions.corrected(seen, stack, audits, tier=tier, request=request, at=at))


def _gone(tenant: TenantId, stack_id: str) -> StackHasGone:
    return StackHasGone(
        f"Tenant {tenant}: its stack {stack_id} was deleted during the operation, so its queue was not published. "
        f"Create the tenant again: berth create {tenant}"
    )


def _after_all_of(audits: Iterable[Audit], at: datetime) -> datetime:
    """The time of an operation's beginning or failure, after everything that was recorded before it.

    The clock was read before the records, and clocks differ. History is in the order of its times. A success comes
    seconds after its beginning, because a stack takes that long, so it is recorded at the clock's time.
    """
    latest = max((audit.updated_at for audit in audits), default=at)
    return latest + _A_MOMENT if at < latest <= at + _MAX_CORRECTION else at


def _lost(run: Run) -> LostOwnership:
    return LostOwnership(f"Tenant {run.tenant}: {run.attempt.name} no longer owns the tenant. Nothing was recorded.")
