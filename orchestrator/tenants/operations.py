"""The first and the last step of an operation on a tenant: begin, then finish or record the failure.

All writes of an operation are fenced: they succeed only while its execution holds the tenant's lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import timedelta
from functools import partial

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
from orchestrator.releases.records import Release, Withdrawal
from orchestrator.releases.template_contract import KMS_KEY_PARAMETER, is_operators
from orchestrator.tenants.admission import owner_once_begun, refusal, why_not_deleted
from orchestrator.tenants.deadlines import DEADLINE, overdue
from orchestrator.tenants.outcomes import Again, Begun, Busy, Done, GaveUp, Published, Queued, Removed
from orchestrator.tenants.own_stack import (
    has_unknown_stack,
    is_for,
    is_ours,
    may_be_stack_of,
    own_stack,
    why_out_of_reach,
)
from orchestrator.tenants.ports import Executions, OperationLedger, Publication, TenantReader
from orchestrator.tenants.records import Lock, Metadata, Operation, RootCause, Run
from orchestrator.tenants.stack_ports import ResourceEvent, Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.state import own_waiting
from orchestrator.tenants.turns import Admission, Turns, queued, since_admission

CHECK_HOLDER_AFTER = timedelta(minutes=3)
"""If a lock is held for longer than this, its execution is checked, which may have died. A delete takes two minutes."""

_MAX_REASON_LENGTH = 1_000


def is_dead(holder: Lock, *, executions: Executions, clock: Clock) -> bool:
    """True if the lock's execution has ended without freeing the lock.

    Step Functions limits the rate of such checks, so recent locks are not checked.
    """
    held_for = clock.now() - holder.run.started_at
    return held_for > CHECK_HOLDER_AFTER and executions.is_over(holder.run.execution)


def _not_confirmed(run: Run, admission: Admission | None, turns: Turns | None, clock: Clock) -> Again | GaveUp:
    if turns and admission and admission.is_new:
        turns.leave(run.execution)  # A forged payload must not keep others from their turn.
    not_shown = "Step Functions does not show this execution as running with this input"
    is_late = overdue(since_admission(run, admission), clock)
    return GaveUp(f"{not_shown}.") if is_late else Again(not_shown)


def begin(
    run: Run,
    *,
    reader: TenantReader,
    ledger: OperationLedger,
    releases: Releases,
    withdrawal_of: Callable[[str], Withdrawal | None],
    stacks: Stacks,
    executions: Executions,
    parameters: Parameters,
    clock: Clock,
    turns: Turns | None = None,
) -> Begun | Busy | Again | Queued | Done | GaveUp:
    """Take the tenant's lock and record Started in one transaction, then check whether the operation may run.

    A create first needs its turn, if ``turns`` are given. While it waits, it has no lock, and is in nobody's way.

    Step Functions first confirms the run and its start time, because a payload may be forged and all later steps rely
    on the lock. The lock is held from then on, so later reads cannot go stale. A refused run fails like any other,
    which frees the lock. An update that would change only the version is done at once, without CloudFormation.
    """
    admission = _admit(run, turns, reader) if turns else None
    if turns and admission is None:
        return queued(run, clock)
    confirmed = executions.confirmed(run)
    if confirmed is None:
        return _not_confirmed(run, admission, turns, clock)
    run = since_admission(confirmed, admission)
    attempt = run.attempt
    release = None if attempt.operation is Operation.DELETE else releases.release(attempt.version)
    target = fingerprint(release, parameters(run.tenant, release)) if release else None
    # The order has checked this, but the release may have been withdrawn since.
    withdrawal = withdrawal_of(attempt.version) if release else None
    usable = None if withdrawal else release
    holder = ledger.begin(run, at=clock.now(), release=usable, target=target)
    if holder is not None and is_dead(holder, executions=executions, clock=clock):
        take_over = partial(ledger.begin, run, at=clock.now(), release=usable, target=target, instead_of=holder)
        holder = _take_over(run, holder, take_over, reader=reader, stacks=stacks)
    if holder is not None:
        if turns and admission and not admission.waited:
            turns.leave(run.execution)  # The other operation may take long, and other creates need the turn.
        if overdue(run, clock) or _had_turn_long_ago(run, admission, reader, clock):
            return GaveUp(
                f"Tenant {run.tenant}: another operation owned the tenant until the deadline: {holder.run.execution}. "
                "Request the operation again."
            )
        return Busy(holder.run.execution)

    records = reader.records(run.tenant)
    audits, metadata = records.audits, records.metadata
    refused = refusal(
        attempt,
        run.request,
        asked_at=run.asked_at,
        metadata=metadata,
        audits=audits,
        release=release,
        withdrawal=withdrawal,
    )
    if refused:
        return GaveUp(refused.reason)
    not_deleted = why_not_deleted(run, metadata, audits) if attempt.operation is Operation.DELETE else None
    if reason := not_deleted or why_out_of_reach(metadata, stacks.names):
        return GaveUp(reason)
    return _already_done(run, metadata, target) or Begun()


def _had_turn_long_ago(run: Run, admission: Admission | None, reader: TenantReader, clock: Clock) -> bool:
    """True if a create that had waited got its turn so long ago that its deadline has passed.

    It still has no lock, so the turn was given back meanwhile, and the one that it has now has only just begun. It got
    its first turn before the wait on record would have timed out.
    """
    if admission is None or not admission.waited:
        return False
    own = own_waiting(reader.audits(run.tenant), run)
    until = own.waits_until if own else None
    return until is not None and clock.now() - until > DEADLINE


def _admit(run: Run, turns: Turns, reader: TenantReader) -> Admission | None:
    """The turn of the create; ``None`` if it has to wait.

    If an earlier try of this step has taken the lock, the create does not wait any more, even if its turn was given
    back since.
    """
    admission = turns.admit(run)
    locked = None if admission else _as_locked(run, reader)
    return Admission(locked.started_at, waited=True) if locked else admission


def _already_done(run: Run, metadata: Metadata | None, target: str | None) -> Done | None:
    """The recorded stack, if the operation is an update and the stack has the release's template and parameters."""
    if run.attempt.operation is not Operation.UPDATE or metadata is None or not metadata.deployed:
        return None
    if metadata.deployed != target or metadata.stack_id is None or metadata.queue is None:
        return None
    return Done(metadata.stack_id, metadata.queue, run.attempt.version, metadata.stack_changed_at)


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
    """Publish the stack's queue, or remove the tenant if ``stack`` is ``None``; record Success and free the lock.

    All of this is one transaction. A stack that has withdrawn its queue meanwhile is not published. The payload may be
    forged, so the operation is read from the lock, and the stack's queue must be recorded already or is looked up.
    Without the lock nothing is written: either an earlier try has recorded Success, and its response was lost, or
    the operation no longer owns the tenant.
    """
    locked = _as_locked(run, reader)
    run = locked or run
    if (stack is None) != (run.attempt.operation is Operation.DELETE):
        raise Conflict(
            f"Tenant {run.tenant}: {run.attempt.name} cannot end {'without' if stack is None else 'with'} a stack. "
            "Nothing was recorded."
        )
    metadata = reader.metadata(run.tenant)
    if stack is None:
        if locked:
            _check_gone(run, metadata, reader, stacks)
        ledger.remove(run, at=clock.now())
        return Removed()
    deployed = resources = None
    if locked:
        found = _check_stack(run, stack, metadata, stacks)
        # The fingerprint of a stack that was found at another version is unknown.
        release = releases.release(stack.version) if stack.version == run.attempt.version else None
        target = fingerprint(release, parameters(run.tenant, release)) if release else None
        if found is None and not _is_as_recorded(metadata, release, target):
            found = _described(stack, stacks)
        resources = found.resources if found else None
        if release:
            deployed = _fingerprint_of(found, release, target)
    publication = Publication(
        stack.stack_id,
        stack.queue,
        stack.version,
        deployed,
        stack_changed_at=stack.changed_at,
        resources=resources,
    )
    if run.attempt.operation is Operation.CREATE:
        owner = owner_once_begun(run.request, metadata, audits=())
        publication = _of_a_create(replace(publication, created_by=owner), metadata, releases)
    publication = _in_its_tier(run, publication, metadata, releases)
    ledger.publish(run, publication, at=clock.now())
    return Published()


def _in_its_tier(run: Run, found: Publication, metadata: Metadata | None, releases: Releases) -> Publication:
    """The publication with the tier of its release.

    Raises :class:`Conflict` if a create has found a stack of another tier than it was to create: an earlier create has
    left it there.
    """
    if reason := why_not_of_tier(run, found.stack_id, found.version, metadata, releases):
        raise Conflict(f"Tenant {run.tenant}: {reason}. Nothing was published. Retry the operation.")
    at_release = releases.release(found.version)
    return replace(found, tier=at_release.tier if at_release else None)


def why_not_of_tier(run: Run, stack_id: str, version: str, metadata: Metadata | None, releases: Releases) -> str | None:
    """Why a create must not publish the stack that it has found, which is of another tier; ``None`` if it may."""
    is_new = metadata is None or not metadata.published
    if run.attempt.operation is not Operation.CREATE or not is_new:
        return None
    found, requested = releases.release(version), releases.release(run.attempt.version)
    if not found or not requested or found.tier == requested.tier:
        return None
    return f"{run.attempt.name} has found stack {stack_id} of the tier {found.tier}, not of {requested.tier}"


def _as_locked(run: Run, reader: TenantReader) -> Run | None:
    """The run as it was when it took the tenant's lock; ``None`` if it does not hold the lock."""
    lock = reader.lock(run.tenant)
    return lock.run if lock is not None and lock.run.execution == run.execution else None


def _check_gone(run: Run, metadata: Metadata | None, reader: TenantReader, stacks: Stacks) -> None:
    """Raise :class:`Conflict` while the tenant's stack exists.

    Usually the stack's custom resource has removed the queue from the metadata, and no call is needed.
    """
    if metadata is None or metadata.queue is None:
        return
    try:
        stack = own_stack(run.tenant, reader=reader, stacks=stacks)
    except StackOutOfReach:
        raise  # This deployment cannot see whether that stack was deleted.
    except StackNotOurs:
        return  # Somebody else has created a stack with the same name since.
    if stack is not None:
        raise Conflict(
            f"Tenant {run.tenant}: {run.attempt.name} was reported as done, but stack {stack.stack_id} still exists "
            f"({stack.status}). Nothing was recorded."
        )


def _is_as_recorded(metadata: Metadata | None, release: Release | None, target: str | None) -> bool:
    """True if the update changed nothing, so that the outputs are those that were recorded. The key of a release that
    has one is always read from the stack."""
    has_key = release is not None and KMS_KEY_PARAMETER in release.parameters
    return not has_key and metadata is not None and metadata.deployed is not None and metadata.deployed == target


def _described(done: Done, stacks: Stacks) -> Stack | None:
    """The stack, whose outputs are the tenant's resources. The payload is not trusted with them.

    If CloudFormation throttles, a tenant of Berth's own releases is served all the same. One of an operator's release
    needs its resources, so the step is repeated.
    """
    try:
        return stacks.find(done.stack_id)
    except Throttled:
        if is_operators(done.version):
            raise
        return None


def _fingerprint_of(found: Stack | None, release: Release, target: str | None) -> str | None:
    """The fingerprint of the stack's template and parameters; ``None`` if CloudFormation cannot be asked.

    The control plane may have been deployed with another key since the stack was made. So if the release has a key as
    parameter, the key is read from the stack.
    """
    if KMS_KEY_PARAMETER not in release.parameters:
        return target
    # Without the stack, the next update compares the stack itself.
    return fingerprint(release, found.parameters) if found else None


def _check_stack(run: Run, reported: Done, metadata: Metadata | None, stacks: Stacks) -> Stack | None:
    """Raise :class:`StackNotOurs` unless the reported stack is the tenant's, with the reported queue and version.

    Usually the stack's custom resource has recorded the queue. Then no call is needed, and ``None`` is returned.
    """
    at_target = reported.version == run.attempt.version
    is_recorded = metadata is not None and (metadata.stack_id, metadata.queue) == (reported.stack_id, reported.queue)
    if is_recorded and at_target:
        return None
    stack = stacks.find(reported.stack_id)
    if stack is None or condition(stack.status) is StackCondition.GONE:
        raise StackHasGone(
            f"Tenant {run.tenant}: its stack {reported.stack_id} was deleted during the operation, so its queue was "
            "not published."
        )
    # An update ends at its own version, though the stack may name an older one with the same content.
    at_version = at_target if run.attempt.operation is Operation.UPDATE else stack.version == reported.version
    own = is_for(run.tenant, stack, metadata) and is_ours(stack, metadata, stacks)
    if not own or not at_version or stacks.queue(reported.stack_id) != reported.queue:
        raise StackNotOurs(
            f"Tenant {run.tenant}: {run.attempt.name} reported queue {reported.queue.url} at version "
            f"{reported.version} in stack {reported.stack_id}. CloudFormation does not confirm that, so nothing was "
            "published."
        )
    return stack


def _of_a_create(found: Publication, metadata: Metadata | None, releases: Releases) -> Publication:
    """The publication of a create, for the stack that it found or created.

    A stack that is served already has the version of its last change in its outputs. A later update that changed
    nothing in the stack was only recorded, so the recorded version is kept.
    """
    if metadata is None or not metadata.published or metadata.stack_id not in (None, found.stack_id):
        return found
    recorded, in_the_stack = metadata.version or "", found.version
    if recorded == in_the_stack or same_content(recorded, in_the_stack, releases.release):
        return replace(found, version=recorded, deployed=metadata.deployed, stack_changed_at=metadata.stack_changed_at)
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
    """Record Failure for the run that reports it: the run holds the lock, or Step Functions confirms it as running.

    An execution that never got the lock records only its own failure.
    """
    own = _as_locked(run, reader) or executions.confirmed(run)
    if own is None:
        raise Unsettled(
            f"Tenant {run.tenant}: {run.attempt.name} does not own the tenant, and Step Functions does not show "
            f"{run.execution} as running with this input. Nothing was recorded."
        )
    if failed_stack and not may_be_stack_of(run.tenant, failed_stack, reader=reader, names=stacks.names):
        failed_stack = None  # Another stack cannot be the cause of this failure.
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
    """Record Failure with its root cause and free the lock.

    ``failed_stack`` is given if the stack itself failed: its first failed resource is then the root cause.
    A tenant whose delete failed before its stack was changed is served again.
    """
    cause = bounded(_first_failure_of(failed_stack, stacks) or failure)
    is_delete = run.attempt.operation is Operation.DELETE
    restore = is_delete and _is_stack_unchanged(run, reader, stacks)
    if not ledger.fail(run, cause, clock.now(), restore=restore):
        raise LostOwnership(
            f"Tenant {run.tenant}: {run.attempt.name} failed ({cause}). The failure was not recorded, because another "
            "attempt is later or is running."
        )
    return cause


def _take_over(
    run: Run, dead: Lock, begin_instead: Callable[..., Lock | None], *, reader: TenantReader, stacks: Stacks
) -> Lock | None:
    """Take the lock over from a dead run. ``None`` on success, otherwise the lock that another run holds."""
    if dead.run.attempt.operation is not Operation.DELETE or run.attempt.operation is Operation.DELETE:
        return begin_instead()
    # A delete that died before it changed the stack has only withdrawn the tenant, which is served again.
    return begin_instead(restore=_is_stack_unchanged(run, reader, stacks))


def _is_stack_unchanged(run: Run, reader: TenantReader, stacks: Stacks) -> bool:
    """True if the delete has not begun to delete the tenant's stack."""
    metadata = reader.metadata(run.tenant)
    if has_unknown_stack(metadata, stacks.names):
        return True  # Berth cannot have changed a stack that it does not know.
    if metadata and why_out_of_reach(metadata, stacks.names):
        return metadata.stack_id is not None  # Only an earlier delete can have changed a stack that is out of reach.
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
        return None  # The failure is recorded with the known cause, so that the row does not stay Started.


def first_failure(events: Iterable[ResourceEvent]) -> RootCause | None:
    """The first resource that failed in the stack's latest operation, from its events, the newest first.

    Resources that CloudFormation cancelled because of that failure do not count, nor does the stack's own status.
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
    """The cause with a reason that is short enough for a row and a response."""
    reason = cause.reason or "No reason was given."
    if len(reason) > _MAX_REASON_LENGTH:
        reason = reason[: _MAX_REASON_LENGTH - 1] + "…"
    return RootCause(cause.resource, cause.resource_type, reason)


_OPERATION_STARTS = frozenset({"CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS", "DELETE_IN_PROGRESS"})
