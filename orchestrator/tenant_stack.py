"""Bringing the tenant's stack about: review it, start it, await it, inspect it.

Starting takes one step towards the stack; inspecting says what is true, whoever brought it about. So a
repeated, lost or late step costs time and nothing else. What each operation does is in :mod:`orchestrator.creating`,
:mod:`orchestrator.updating` and :mod:`orchestrator.deleting`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime

from orchestrator import creating, deleting, updating
from orchestrator.deadlines import DEADLINE, overdue
from orchestrator.errors import LostOwnership, StackNotOurs, Throttled, UnknownRelease
from orchestrator.outcomes import (
    Again,
    Clearing,
    Done,
    GaveUp,
    Gone,
    NotReady,
    Reviewing,
    Start,
    Started,
    Unchanged,
    Working,
)
from orchestrator.ports import Clock, Executions, OperationLedger, Queues, Releases, Stack, Stacks, TenantReader
from orchestrator.records import Operation, Release, Run
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenants import tenant_of_stack


def review_changes(run: Run, *, reader: TenantReader, releases: Releases, stacks: Stacks) -> Reviewing:
    """Before an update: have CloudFormation say what it would change."""
    _check_lock(run, reader)
    release = _release(run, releases)
    with suppress(Throttled):  # Starting finds nothing drawn up then, and sees to it.
        updating.review(run, own_stack(run, stacks), release, stacks=stacks)
    return Reviewing()


def start_stack(
    run: Run,
    *,
    reader: TenantReader,
    releases: Releases,
    stacks: Stacks,
    queues: Queues,
    clock: Clock,
    looked_at: datetime | None = None,
) -> Started | Clearing | Unchanged | Gone | Again | GaveUp:
    """Take one step towards what the operation wants of the stack."""
    _check_lock(run, reader)
    try:
        stack = own_stack(run, stacks)
        match run.attempt.operation:
            case Operation.CREATE:
                return creating.start(run, stack, _release(run, releases), stacks=stacks, clock=clock)
            case Operation.UPDATE:
                return updating.start(run, stack, _release(run, releases), stacks=stacks, queues=queues)
            case Operation.DELETE:
                return deleting.start(run, stack, looked_at=looked_at, stacks=stacks, clock=clock)
    except Throttled as throttled:
        return Again(str(throttled), throttled=True)


def await_stack(
    run: Run,
    *,
    started: Start,
    task_token: str,
    ledger: OperationLedger,
    stacks: Stacks,
    executions: Executions,
) -> Working:
    """Leave the task token where the stack's event finds it, unless there is nothing to wait for.

    The stack may have settled before the token was there to be found, so it is looked at once more.
    """
    ledger.remember_token(run, task_token)
    try:
        stack = stacks.find(started.stack_id) if isinstance(started, Started | Clearing) else None
    except Throttled:
        return Working()  # The event, or the state's timeout, lets the run go on.
    if stack is None or condition(stack.status) is not StackCondition.WORKING:
        executions.wake(task_token)
    return Working()


def stack_settled(stack_id: str, *, reader: TenantReader, executions: Executions) -> bool:
    """CloudFormation says that a tenant's stack has settled: wake the run that waits for it, if one does."""
    lock = reader.lock(tenant_of_stack(stack_id))
    return lock is not None and lock.task_token is not None and executions.wake(lock.task_token)


def inspect_stack(
    run: Run, *, started: Start, stacks: Stacks, queues: Queues, clock: Clock
) -> Done | Gone | NotReady | Working | Again | GaveUp:
    """Say where the stack is, and whether its queue can be used."""
    if isinstance(started, GaveUp | Gone):
        return started
    stack: Stack | None = None
    try:
        if isinstance(started, Again):
            outcome: Done | Gone | NotReady | Working | Again | GaveUp = started
        else:
            stack = stacks.find(started.stack_id)
            outcome = _sort(run, stack, started, stacks)
            if isinstance(outcome, Done) and not queues.answers(outcome.queue):
                outcome = NotReady()
    except Throttled as throttled:
        too_late = GaveUp(f"The stack could not be looked at in time: {throttled}", throttled=True)
        return too_late if overdue(run, clock) else Working()
    return _too_late(stack, outcome) if overdue(run, clock) else outcome


def _sort(
    run: Run, stack: Stack | None, started: Started | Clearing | Unchanged, stacks: Stacks
) -> Done | Gone | Working | Again | GaveUp:
    match run.attempt.operation:
        case Operation.CREATE:
            return creating.sort(stack, clearing=isinstance(started, Clearing))
        case Operation.UPDATE:
            return updating.sort(run, stack, unchanged=isinstance(started, Unchanged), stacks=stacks)
        case Operation.DELETE:
            return deleting.sort(stack)


def _too_late(
    stack: Stack | None, outcome: Done | Gone | NotReady | Working | Again | GaveUp
) -> Done | Gone | NotReady | Working | Again | GaveUp:
    minutes = int(DEADLINE.total_seconds() // 60)
    match outcome:
        case NotReady():
            return GaveUp(f"The stack is done, but its queue never answered in {minutes} minutes.")
        case Working() | Again():
            reason = outcome.reason if isinstance(outcome, Again) else "still working"
            status = f"is {stack.status}" if stack else "could not be started"
            throttled = isinstance(outcome, Again) and outcome.throttled
            return GaveUp(f"The stack {status} after {minutes} minutes ({reason}).", throttled=throttled)
    return outcome


def _check_lock(run: Run, reader: TenantReader) -> None:
    lock = reader.lock(run.tenant)
    if lock is None or lock.run.execution != run.execution:
        raise LostOwnership(
            f"Tenant {run.tenant}: {run.attempt.name} no longer owns the tenant, so it touches no stack."
        )


def own_stack(run: Run, stacks: Stacks) -> Stack | None:
    stack = stacks.find(run.tenant.stack_name)
    gone = stack is None or condition(stack.status) is StackCondition.GONE
    if not gone and stack and stack.tenant_id != run.tenant.value:
        raise StackNotOurs(
            f"Tenant {run.tenant}: stack {stack.stack_id} has this tenant's stack name but was made for "
            f"{stack.tenant_id or 'something else'}. Rename or delete it by hand."
        )
    return None if gone else stack


def _release(run: Run, releases: Releases) -> Release:
    release = releases.release(run.attempt.version)
    if release is None:
        raise UnknownRelease(
            f"Tenant {run.tenant}: version {run.attempt.version} was never published. Deploy the control plane again."
        )
    return release
