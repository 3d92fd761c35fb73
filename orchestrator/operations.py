"""The life of one operation on one tenant: begin, then finish or record the failure.

All writes of an operation are fenced: they go through only while its execution holds the tenant's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta

from orchestrator.admission import delete_counts, refusal, why_it_stays
from orchestrator.deadlines import overdue
from orchestrator.errors import LostOwnership, StackNotOurs, Throttled
from orchestrator.outcomes import Begun, Busy, Done, GaveUp, Published, Removed
from orchestrator.own_stack import own_stack
from orchestrator.ports import (
    Clock,
    Executions,
    OperationLedger,
    Parameters,
    Publication,
    Releases,
    ResourceEvent,
    Stacks,
    TenantReader,
)
from orchestrator.records import UNKNOWN_CREATOR, Lock, Metadata, Operation, Release, RootCause, Run
from orchestrator.releases import fingerprint, same_content
from orchestrator.stack_resources import Requester

CHECK_HOLDER_AFTER = timedelta(minutes=3)
"""A lock held for longer than this is checked against its execution, which may have died. A delete takes two."""

_REASON_LENGTH = 1_000


def is_dead(holder: Lock, *, executions: Executions, clock: Clock) -> bool:
    """Whether a lock's execution has ended without freeing it. Asking is rate-limited, so not at once."""
    held_for = clock.now() - holder.run.started_at
    return held_for > CHECK_HOLDER_AFTER and executions.is_over(holder.run.execution)


def begin(
    run: Run,
    *,
    reader: TenantReader,
    ledger: OperationLedger,
    releases: Releases,
    stacks: Stacks,
    executions: Executions,
    parameters: Parameters,
    clock: Clock,
) -> Begun | Busy | Done | GaveUp:
    """Take the tenant's lock and write Started, in one transaction; then see whether the operation may run.

    The lock is held from then on, so what is read afterwards cannot change. A refused run fails as any other does,
    which frees the lock. An update that would change nothing but the version is done already, without a word to
    CloudFormation.
    """
    holder = ledger.begin(run, at=clock.now())
    if holder is not None and is_dead(holder, executions=executions, clock=clock):
        holder = _take_over(run, holder, reader=reader, ledger=ledger, stacks=stacks, clock=clock)
    if holder is not None:
        if overdue(run, clock):
            return GaveUp(f"Another operation owned the tenant all the time: {holder.run.execution}")
        return Busy(holder.run.execution)

    attempt = run.attempt
    audits, metadata = reader.audits(run.tenant), reader.metadata(run.tenant)
    release = None if attempt.operation is Operation.DELETE else releases.release(attempt.version)
    refused = refusal(attempt, run.request, asked_at=run.asked_at, metadata=metadata, audits=audits, release=release)
    if refused:
        return GaveUp(refused.reason)
    if attempt.operation is Operation.DELETE and (reason := why_it_stays(run, metadata, audits)):
        return GaveUp(reason)
    if attempt.operation is Operation.UPDATE and metadata and metadata.deployed and release:
        if already := _already_made(run, metadata, release, parameters):
            return already
        ledger.touch(run)
    if attempt.operation is Operation.CREATE and run.request.explicit and delete_counts(audits):
        ledger.revive(run)
    return Begun()


def _already_made(run: Run, metadata: Metadata, release: Release, parameters: Parameters) -> Done | None:
    """The stack, if it was made from the same as the release would make it from."""
    if metadata.deployed != fingerprint(release, parameters(run.tenant)):
        return None
    if metadata.stack_id is None or metadata.queue is None:
        return None
    return Done(metadata.stack_id, metadata.queue, release.version)


def finish(
    run: Run,
    *,
    stack: Done | None,
    reader: TenantReader,
    ledger: OperationLedger,
    releases: Releases,
    parameters: Parameters,
    clock: Clock,
) -> Published | Removed:
    """Publish the queue of the stack, or forget the tenant that has none; write Success and free the lock.

    All in one transaction. A stack that has taken its queue back meanwhile is not published.
    """
    if stack is None:
        ledger.remove(run, at=clock.now())
        return Removed()
    # A stack that was found at another version may have been made from anything.
    release = releases.release(stack.version) if stack.version == run.attempt.version else None
    deployed = fingerprint(release, parameters(run.tenant)) if release else None
    publication = Publication(stack.stack_id, stack.queue, stack.version, deployed)
    if run.attempt.operation is Operation.CREATE:
        publication = _of_a_create(run, publication, reader, releases)
    ledger.publish(run, publication, at=clock.now())
    return Published()


def _of_a_create(run: Run, found: Publication, reader: TenantReader, releases: Releases) -> Publication:
    """What a create publishes of the stack that it found or made.

    A stack that is served already names the version that it was last changed for; an update that changed nothing was
    only recorded, and stays recorded.
    """
    metadata = reader.metadata(run.tenant)
    found = replace(found, created_by=_creator(run, metadata))
    if metadata is None or not metadata.published or metadata.stack_id not in (None, found.stack_id):
        return found
    recorded, in_the_stack = metadata.version or "", found.version
    if recorded == in_the_stack or same_content(recorded, in_the_stack, releases.release):
        return replace(found, version=recorded, deployed=metadata.deployed)
    return found


def _creator(run: Run, metadata: Metadata | None) -> Requester:
    """Whoever brought the tenant into being stays its creator until it is deleted, also if its stack has vanished."""
    if metadata is None or metadata.withdrawn_by is not None:
        return run.request.requester
    if metadata.created_by is not None:
        return metadata.created_by
    return UNKNOWN_CREATOR if metadata.published else run.request.requester


def record_failure(
    run: Run,
    *,
    failure: RootCause,
    failed_stack: str | None,
    reader: TenantReader,
    ledger: OperationLedger,
    stacks: Stacks,
    clock: Clock,
) -> RootCause:
    """Write Failure with its root cause and free the lock.

    ``failed_stack`` is given when it is the stack that failed: its first failed resource is then the cause.
    A tenant whose delete failed before its stack was touched is served again.
    """
    cause = bounded(_first_failure_of(failed_stack, stacks) or failure)
    deletes = run.attempt.operation is Operation.DELETE
    restore = deletes and _was_left_alone(run, reader, stacks)
    if not ledger.fail(run, cause, clock.now(), restore=restore):
        raise LostOwnership(
            f"Tenant {run.tenant}: {run.attempt.name} failed ({cause}), but another attempt has taken its place."
        )
    return cause


def _take_over(
    run: Run, dead: Lock, *, reader: TenantReader, ledger: OperationLedger, stacks: Stacks, clock: Clock
) -> Lock | None:
    """Take the place of an execution that died. ``None`` when that is done, else the lock that is in the way."""
    if dead.run.attempt.operation is not Operation.DELETE or run.attempt.operation is Operation.DELETE:
        return ledger.begin(run, at=clock.now(), instead_of=dead)
    # A delete that died before it touched the stack has only withdrawn the tenant, which is served again.
    restore = _was_left_alone(run, reader, stacks)
    return ledger.begin(run, at=clock.now(), instead_of=dead, restore=restore)


def _was_left_alone(run: Run, reader: TenantReader, stacks: Stacks) -> bool:
    """Whether the tenant's stack is as a delete found it: in whatever state, but not one of being deleted."""
    try:
        stack = own_stack(run.tenant, reader=reader, stacks=stacks)
    except StackNotOurs:
        return False
    return stack is not None and not stack.status.startswith("DELETE_")


def _first_failure_of(stack_id: str | None, stacks: Stacks) -> RootCause | None:
    if stack_id is None:
        return None
    try:
        return first_failure(stacks.events(stack_id))
    except Throttled:
        return None  # What is known already is recorded now: a row that says Started would be worse.


def first_failure(events: Iterable[ResourceEvent]) -> RootCause | None:
    """The first resource that failed in the stack's latest operation, from its events, newest first.

    What CloudFormation cancelled because of that failure is a consequence, and so is the stack's own status.
    """
    found: ResourceEvent | None = None
    stack_itself: ResourceEvent | None = None
    for event in events:
        if event.status.endswith("_FAILED") or (event.is_stack and "ROLLBACK_IN_PROGRESS" in event.status):
            if event.is_stack:
                stack_itself = event
            elif not event.cancelled:
                found = event
        if event.is_stack and event.status in _OPERATION_STARTS:
            break
    first = found or stack_itself
    return RootCause(first.resource, first.resource_type, first.reason) if first else None


def bounded(cause: RootCause) -> RootCause:
    """A cause that fits a row and an answer, whatever CloudFormation or a stack trace had to say."""
    reason = cause.reason or "No reason was given."
    if len(reason) > _REASON_LENGTH:
        reason = reason[: _REASON_LENGTH - 1] + "…"
    return RootCause(cause.resource, cause.resource_type, reason)


_OPERATION_STARTS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"})
