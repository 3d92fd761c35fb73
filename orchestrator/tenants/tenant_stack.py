"""The steps on a tenant's stack: start it, inspect it. :mod:`orchestrator.tenants.awaiting` waits.

Starting takes one step towards the requested stack. Inspecting reports the actual stack, with changes that others made.
So a repeated, lost or late step only costs time. The steps of each operation are in
:mod:`orchestrator.tenants.creating`, :mod:`orchestrator.tenants.updating` and :mod:`orchestrator.tenants.deleting`.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from orchestrator.common.errors import LostOwnership, StackOutOfReach, Throttled, UnknownRelease
from orchestrator.common.times import Clock
from orchestrator.releases.ports import Releases
from orchestrator.releases.records import Release
from orchestrator.tenants import creating, deleting, updating
from orchestrator.tenants.deadlines import DEADLINE, overdue
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    Draining,
    GaveUp,
    Gone,
    Inspection,
    NotReady,
    Reviewing,
    Start,
    Started,
    Unchanged,
    Working,
)
from orchestrator.tenants.own_stack import has_unknown_stack, own_stack_by
from orchestrator.tenants.ports import Queues, TenantReader, UnfinishedWork
from orchestrator.tenants.records import Lock, Metadata, Operation, Run
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.updating import Drafting, EmptyCheck

_COMPLETE = (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION)


def start_stack(
    run: Run,
    *,
    reader: TenantReader,
    releases: Releases,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    clock: Clock,
    empty_for: timedelta,
    empty_since: datetime | None,
    unfinished: UnfinishedWork,
) -> Start:
    """Take one step towards the stack that the operation is to bring about.

    The operation is read from the lock, because the payload may be forged by anybody who may invoke the function.
    ``empty_since`` is since when the queues that the step removes were seen empty. A delete first counts the messages.
    """
    lock = own_lock(run, reader)
    run = lock.run
    try:
        if run.attempt.operation is Operation.DELETE:
            held = deleting.check_messages(
                run,
                empty_since=empty_since,
                empty_for=empty_for,
                reader=reader,
                stacks=stacks,
                queues=queues,
                unfinished=unfinished,
                clock=clock,
            )
            if held is not None:
                return held
        metadata = reader.metadata(run.tenant)
        stack = own_stack_by(metadata, run.tenant, stacks)
        match run.attempt.operation:
            case Operation.CREATE if stack is None and has_unknown_stack(metadata, stacks.names):
                return GaveUp(
                    f"Tenant {run.tenant} is from before Berth and is served from a stack that is not recorded, so no "
                    "second stack was created. Adopt the tenant: berth adopt"
                )
            case Operation.CREATE:
                release = _release(run, releases)
                if stack is not None and _is_left_behind(stack, release, metadata, releases):
                    return creating.clear(run, stack, metadata, reader.audits(run.tenant), stacks=stacks)
                return creating.start(run, stack, release, stacks=stacks, clock=clock)
            case Operation.UPDATE:
                return updating.start(
                    lock,
                    stack,
                    _release(run, releases),
                    stacks=stacks,
                    queues=queues,
                    drafting=drafting,
                    empty_check=EmptyCheck(clock.now(), empty_since, empty_for, metadata.queue if metadata else None),
                )
            case Operation.DELETE:
                return deleting.start(run, stack, stacks=stacks)
    except StackOutOfReach as out_of_reach:
        return GaveUp(str(out_of_reach))
    except Throttled as throttled:
        return Again(str(throttled), throttled=True)


def _is_left_behind(stack: Stack, release: Release, metadata: Metadata | None, releases: Releases) -> bool:
    """True if the stack is of another tier than this create is for: an earlier create has left it."""
    if condition(stack.status) not in _COMPLETE or (metadata and metadata.published):
        return False
    found = releases.release(stack.version) if stack.version else None
    return found is not None and found.tier != release.tier


def inspect_stack(
    run: Run, *, started: Start, reader: TenantReader, stacks: Stacks, queues: Queues, clock: Clock
) -> Inspection:
    """The outcome of inspecting the stack: what has become of it, and whether its queue can be used."""
    if isinstance(started, GaveUp | Gone):
        return started
    stack: Stack | None = None
    try:
        outcome: Inspection
        if isinstance(started, Again | Reviewing):
            outcome = started
        elif isinstance(started, Draining):
            outcome = Again(f"messages in the queues that would be removed: {started.messages}")
        else:
            stack = stacks.find(started.stack_id)
            outcome = _inspect(run, stack, started, reader, stacks)
            if isinstance(outcome, Done):
                outcome = _usable(run, outcome, reader, stacks, queues)
    except Throttled as throttled:
        too_late = GaveUp(f"The stack could not be inspected before the deadline: {throttled}", throttled=True)
        return too_late if overdue(run, clock) else Working()
    return _too_late(stack, outcome) if overdue(run, clock) else outcome


def _inspect(
    run: Run, stack: Stack | None, started: Started | Clearing | Unchanged, reader: TenantReader, stacks: Stacks
) -> Done | Gone | NotReady | Working | Again | GaveUp:
    match run.attempt.operation:
        case Operation.CREATE:
            return creating.inspect(stack, clearing=isinstance(started, Clearing))
        case Operation.UPDATE:
            return updating.inspect(run, stack, unchanged=isinstance(started, Unchanged), reader=reader, stacks=stacks)
        case Operation.DELETE:
            return deleting.inspect(stack)


def _usable(run: Run, done: Done, reader: TenantReader, stacks: Stacks, queues: Queues) -> Done | NotReady:
    """Done if the queue can be used and is one of the stack's resources.

    The author of the template chooses its outputs, so only the stack's resources can be trusted. Usually the stack's
    custom resource has recorded the queue after it was found among them, and no call is needed. CloudFormation may list
    a resource some seconds late, so a difference is a failure only if it lasts until the deadline.
    """
    # A new queue may need a second before it can be used, although its stack is complete.
    if not queues.answers(done.queue):
        return NotReady()
    metadata = reader.metadata(run.tenant)
    if metadata is not None and (metadata.stack_id, metadata.queue) == (done.stack_id, done.queue):
        return done
    queue = stacks.queue(done.stack_id)
    if queue != done.queue:
        return NotReady(
            f"its outputs name the queue {done.queue.url}, but the queue among its resources is "
            f"{queue.url if queue else 'missing'}: check the template of {done.stack_id}"
        )
    return done


def _too_late(stack: Stack | None, outcome: Inspection) -> Inspection:
    minutes = int(DEADLINE.total_seconds() // 60)
    match outcome:
        case NotReady():
            return GaveUp(f"The stack is complete, but not ready after {minutes} minutes: {outcome.reason}.")
        case Reviewing():
            return GaveUp(f"CloudFormation did not create the change set within {minutes} minutes.", throttled=True)
        case Working() | Again():
            reason = outcome.reason if isinstance(outcome, Again) else "still working"
            status = f"is {stack.status}" if stack else "could not be started"
            throttled = isinstance(outcome, Again) and outcome.throttled
            return GaveUp(f"The stack {status} after {minutes} minutes ({reason}).", throttled=throttled)
    return outcome


def own_lock(run: Run, reader: TenantReader) -> Lock:
    lock = reader.lock(run.tenant)
    if lock is None or lock.run.execution != run.execution:
        raise LostOwnership(
            f"Tenant {run.tenant}: {run.attempt.name} no longer owns the tenant, so it does not change the stack."
        )
    return lock


def _release(run: Run, releases: Releases) -> Release:
    release = releases.release(run.attempt.version)
    if release is None:
        raise UnknownRelease(
            f"Tenant {run.tenant}: version {run.attempt.version} was never published. Deploy the control plane again."
        )
    return release
