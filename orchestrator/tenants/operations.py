"""The life of one operation on one tenant: begin, then finish or record the failure.

All writes of an operation are fenced: they go through only while its execution holds the tenant's lock.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta

from orchestrator.common.errors import (
    Conflict,
    LostOwnership,
    StackHasGone,
    StackNotOurs,
    StackOutOfReach,
    Throttled,
    Unsettled,
)
from orchestrator.common.times import Clock
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.releases.published import fingerprint, same_content
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER
from orchestrator.tenants.admission import owner_once_begun, refusal, why_it_stays
from orchestrator.tenants.deadlines import overdue
from orchestrator.tenants.outcomes import Again, Begun, Busy, Done, GaveUp, Published, Removed
from orchestrator.tenants.own_stack import (
    has_unknown_stack,
    is_for,
    is_ours,
    may_be_its_stack,
    own_stack,
    why_out_of_reach,
)
from orchestrator.tenants.ports import (
    Executions,
    OperationLedger,
    Publication,
    ResourceEvent,
    Stack,
    Stacks,
    TenantReader,
)
from orchestrator.tenants.records import Lock, Metadata, Operation, RootCause, Run
from orchestrator.tenants.stack_status import StackCondition, condition

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
) -> Begun | Busy | Again | Done | GaveUp:
    """Take the tenant's lock and write Started, in one transaction; then see whether the operation may run.

    Step Functions confirms the run first, and says when it was started: whoever may invoke the function can make one
    up, and whatever comes later relies on the lock. The lock is held from then on, so what is read afterwards cannot
    change. A refused run fails as any other does, which frees the lock. An update that would change nothing but the
    version is done already, without a word to CloudFormation.
    """
    confirmed = executions.confirmed(run)
    if confirmed is None:
        not_shown = "Step Functions does not show this execution as running with this input"
        return GaveUp(f"{not_shown}.") if overdue(run, clock) else Again(not_shown)
    run = confirmed
    attempt = run.attempt
    release = None if attempt.operation is Operation.DELETE else releases.release(attempt.version)
    holder = ledger.begin(run, at=clock.now(), release=release)
    if holder is not None and is_dead(holder, executions=executions, clock=clock):
        holder = _take_over(run, holder, release=release, reader=reader, ledger=ledger, stacks=stacks, clock=clock)
    if holder is not None:
        if overdue(run, clock):
            return GaveUp(f"Another operation owned the tenant all the time: {holder.run.execution}")
        return Busy(holder.run.execution)

    audits, metadata = reader.audits(run.tenant), reader.metadata(run.tenant)
    refused = refusal(attempt, run.request, asked_at=run.asked_at, metadata=metadata, audits=audits, release=release)
    if refused:
        return GaveUp(refused.reason)
    stays = why_it_stays(run, metadata, audits) if attempt.operation is Operation.DELETE else None
    if reason := stays or why_out_of_reach(metadata, stacks.names):
        return GaveUp(reason)
    if attempt.operation is Operation.UPDATE and metadata and metadata.deployed and release:
        if already := _already_made(run, metadata, release, parameters):
            return already
        ledger.touch(run)
    return Begun()


def _already_made(run: Run, metadata: Metadata, release: Release, parameters: Parameters) -> Done | None:
    """The stack, if it was made from the same as the release would make it from."""
    if metadata.deployed != fingerprint(release, parameters(run.tenant, release)):
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
    stacks: Stacks,
    parameters: Parameters,
    clock: Clock,
) -> Published | Removed:
    """Publish the queue of the stack, or forget the tenant that has none; write Success and free the lock.

    All in one transaction. A stack that has taken its queue back meanwhile is not published. Whoever may invoke the
    function may say anything about the operation and its stack. So the operation is the one that holds the lock, and
    the stack's queue is on record already, or is looked up. Without the lock nothing is written: either this was
    recorded before, and the answer was lost, or the operation has lost the tenant.
    """
    locked = _as_locked(run, reader)
    run = locked or run
    if (stack is None) != (run.attempt.operation is Operation.DELETE):
        raise Conflict(f"Tenant {run.tenant}: {run.attempt.name} does not end that way. Nothing was recorded.")
    metadata = reader.metadata(run.tenant)
    if stack is None:
        if locked:
            _check_gone(run, metadata, reader, stacks)
        ledger.remove(run, at=clock.now())
        return Removed()
    deployed = None
    if locked:
        found = _check_stack(run, stack, metadata, stacks)
        # A stack that was found at another version may have been made from anything.
        release = releases.release(stack.version) if stack.version == run.attempt.version else None
        if release:
            deployed = _made_from(stack.stack_id, found, release, parameters(run.tenant, release), stacks)
    publication = Publication(stack.stack_id, stack.queue, stack.version, deployed)
    if run.attempt.operation is Operation.CREATE:
        publication = _of_a_create(run, publication, metadata, releases)
    ledger.publish(run, publication, at=clock.now())
    return Published()


def _as_locked(run: Run, reader: TenantReader) -> Run | None:
    """The run as it was when it took the tenant's lock; ``None`` if it does not hold the lock."""
    lock = reader.lock(run.tenant)
    return lock.run if lock is not None and lock.run.execution == run.execution else None


def _check_gone(run: Run, metadata: Metadata | None, reader: TenantReader, stacks: Stacks) -> None:
    """Raise :class:`Conflict` while the tenant has its stack.

    A stack that goes has its queue forgotten as a rule. Then CloudFormation need not be asked.
    """
    if metadata is None or metadata.queue is None:
        return
    try:
        stack = own_stack(run.tenant, reader=reader, stacks=stacks)
    except StackOutOfReach:
        raise  # Nobody can see whether that stack has gone.
    except StackNotOurs:
        return  # Somebody else's has taken the name.
    if stack is not None:
        raise Conflict(
            f"Tenant {run.tenant}: {run.attempt.name} is said to have ended, but stack {stack.stack_id} is "
            f"{stack.status}. Nothing was recorded."
        )


def _made_from(
    stack_id: str, found: Stack | None, release: Release, parameters: Mapping[str, str], stacks: Stacks
) -> str | None:
    """The fingerprint of what the stack was made from; ``None`` if that could not be seen.

    A deployment may have brought another key since the stack was made. So if the release takes the key, CloudFormation
    says which one the stack has.
    """
    if KMS_KEY_PARAMETER not in release.parameters:
        return fingerprint(release, parameters)
    try:
        found = found or stacks.find(stack_id)
    except Throttled:
        return None  # The tenant is served all the same, and the next update looks for itself.
    return fingerprint(release, found.parameters) if found else None


def _check_stack(run: Run, told: Done, metadata: Metadata | None, stacks: Stacks) -> Stack | None:
    """Raise :class:`StackNotOurs` unless this is the tenant's own stack, with its own queue, at that version.

    The stack's custom resource has recorded the queue as a rule. Then CloudFormation need not be asked, and ``None`` is
    returned.
    """
    at_target = told.version == run.attempt.version
    on_record = metadata is not None and (metadata.stack_id, metadata.queue) == (told.stack_id, told.queue)
    if on_record and at_target:
        return None
    stack = stacks.find(told.stack_id)
    if stack is None or condition(stack.status) is StackCondition.GONE:
        raise StackHasGone(f"Tenant {run.tenant}: stack {told.stack_id} has gone, so its queue is not published.")
    # An update ends at its own version, though the stack may name an older one that is no different.
    at_version = at_target if run.attempt.operation is Operation.UPDATE else stack.version == told.version
    own = is_for(run.tenant, stack, metadata) and is_ours(stack, metadata, stacks)
    if not own or not at_version or stacks.queue(told.stack_id) != told.queue:
        raise StackNotOurs(
            f"Tenant {run.tenant}: {run.attempt.name} is said to have ended with queue {told.queue.url} at version "
            f"{told.version} in stack {told.stack_id}. CloudFormation does not say so, so nothing was published."
        )
    return stack


def _of_a_create(run: Run, found: Publication, metadata: Metadata | None, releases: Releases) -> Publication:
    """What a create publishes of the stack that it found or made.

    A stack that is served already names the version that it was last changed for; an update that changed nothing was
    only recorded, and stays recorded.
    """
    found = replace(found, created_by=owner_once_begun(run.request, metadata, audits=()))
    if metadata is None or not metadata.published or metadata.stack_id not in (None, found.stack_id):
        return found
    recorded, in_the_stack = metadata.version or "", found.version
    if recorded == in_the_stack or same_content(recorded, in_the_stack, releases.release):
        return replace(found, version=recorded, deployed=metadata.deployed)
    return found


def record_failure(
    run: Run,
    *,
    failure: RootCause,
    failed_stack: str | None,
    reader: TenantReader,
    ledger: OperationLedger,
    stacks: Stacks,
    executions: Executions,
    clock: Clock,
) -> RootCause:
    """Write Failure for a run that says so itself: it holds the lock, or Step Functions confirms that it is running.

    An execution that never got the lock records its own failure, and nothing else of the tenant changes.
    """
    own = _as_locked(run, reader) or executions.confirmed(run)
    if own is None:
        raise Unsettled(
            f"Tenant {run.tenant}: {run.attempt.name} does not own the tenant, and Step Functions does not show "
            f"{run.execution} as running with this input. Nothing was recorded."
        )
    if failed_stack and not may_be_its_stack(run.tenant, failed_stack, reader=reader, names=stacks.names):
        failed_stack = None  # What went wrong in another stack is no cause of this failure.
    return write_failure(
        own,
        failure=failure,
        failed_stack=failed_stack,
        reader=reader,
        ledger=ledger,
        stacks=stacks,
        clock=clock,
    )


def write_failure(
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
    run: Run,
    dead: Lock,
    *,
    release: Release | None,
    reader: TenantReader,
    ledger: OperationLedger,
    stacks: Stacks,
    clock: Clock,
) -> Lock | None:
    """Take the place of an execution that died. ``None`` when that is done, else the lock that is in the way."""
    if dead.run.attempt.operation is not Operation.DELETE or run.attempt.operation is Operation.DELETE:
        return ledger.begin(run, at=clock.now(), release=release, instead_of=dead)
    # A delete that died before it touched the stack has only withdrawn the tenant, which is served again.
    restore = _was_left_alone(run, reader, stacks)
    return ledger.begin(run, at=clock.now(), release=release, instead_of=dead, restore=restore)


def _was_left_alone(run: Run, reader: TenantReader, stacks: Stacks) -> bool:
    """Whether the tenant's stack is as a delete found it: in whatever state, but not one of being deleted."""
    metadata = reader.metadata(run.tenant)
    if has_unknown_stack(metadata, stacks.names):
        return True  # Nobody can have touched a stack that nobody knows.
    if metadata and why_out_of_reach(metadata, stacks.names):
        return metadata.stack_id is not None  # Nor one out of reach, unless it has let go of its queue before.
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
