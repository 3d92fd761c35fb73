"""Bringing the tenant's stack about: start it, await it, inspect it.

Starting takes one step towards the stack; inspecting says what is true, whoever brought it about. So a
repeated, lost or late step costs time and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass

from orchestrator.errors import LostOwnership, StackNotOurs, Throttled, UnknownRelease
from orchestrator.operations import DEADLINE, GaveUp, overdue
from orchestrator.ports import Clock, Executions, OperationLedger, Releases, Stack, Stacks, TenantReader
from orchestrator.records import Queue, Run
from orchestrator.stack_status import StackCondition, condition
from orchestrator.tenants import tenant_of_stack

DELETING = "DELETE_IN_PROGRESS"


@dataclass(frozen=True, slots=True)
class Started:
    """The stack is being created, or one of the same tenant was found and adopted."""

    stack_id: str
    outcome = "started"


@dataclass(frozen=True, slots=True)
class Clearing:
    """The remains of a failed creation are being deleted; after that the stack is started again."""

    stack_id: str
    outcome = "clearing"


@dataclass(frozen=True, slots=True)
class Again:
    """Nothing came of it this time, for this reason. The stack is started again."""

    reason: str
    outcome = "again"


@dataclass(frozen=True, slots=True)
class Working:
    """CloudFormation is at it."""

    outcome = "working"


def start_stack(run: Run, *, reader: TenantReader, releases: Releases, stacks: Stacks) -> Started | Clearing | Again:
    """Create the tenant's stack, adopt the one that is there, or clear away one that never lived."""
    tenant = run.tenant
    lock = reader.lock(tenant)
    if lock is None or lock.run.execution != run.execution:
        raise LostOwnership(f"Tenant {tenant}: {run.attempt.name} no longer owns the tenant, so it starts no stack.")
    release = releases.release(run.attempt.version)
    if release is None:
        raise UnknownRelease(
            f"Tenant {tenant}: version {run.attempt.version} was never published. Deploy the control plane again."
        )
    token = run.attempt.client_token
    try:
        stack = stacks.find(tenant.stack_name)
        if stack is None or condition(stack.status) is StackCondition.GONE:
            created = stacks.create(tenant, template_url=release.template_url, client_token=f"{token}-create")
            return Started(created) if created else Again("a stack of that name has just appeared")
        if stack.tenant_id != tenant.value:
            raise StackNotOurs(
                f"Tenant {tenant}: stack {stack.stack_id} has this tenant's stack name but was made for "
                f"{stack.tenant_id or 'something else'}. Rename or delete it by hand."
            )
        if stack.status == DELETING:
            return Clearing(stack.stack_id)
        if condition(stack.status) is StackCondition.NEVER_LIVED:
            stacks.delete(stack.stack_id, client_token=f"{token}-delete")
            return Clearing(stack.stack_id)
        return Started(stack.stack_id)
    except Throttled as throttled:
        return Again(str(throttled))


def await_stack(
    run: Run,
    *,
    stack_id: str | None,
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
        stack = stacks.find(stack_id) if stack_id else None
    except Throttled:
        return Working()  # The event, or the state's timeout, lets the run go on.
    if stack is None or condition(stack.status) is not StackCondition.WORKING:
        executions.wake(task_token)
    return Working()


def stack_settled(stack_id: str, *, reader: TenantReader, executions: Executions) -> bool:
    """CloudFormation says that a tenant's stack has settled: wake the run that waits for it, if one does."""
    lock = reader.lock(tenant_of_stack(stack_id))
    return lock is not None and lock.task_token is not None and executions.wake(lock.task_token)


@dataclass(frozen=True, slots=True)
class Done:
    """The stack stands, at the version that it says itself."""

    stack_id: str
    queue: Queue
    version: str
    outcome = "done"


def inspect_stack(
    run: Run, *, stack_id: str | None, clearing: bool, why_not: str, stacks: Stacks, clock: Clock
) -> Done | Working | Again | GaveUp:
    """Say where the stack is.

    ``clearing`` when it is being deleted to make room; ``why_not`` says why there is none to look at.
    """
    try:
        stack = stacks.find(stack_id) if stack_id else None
    except Throttled as throttled:
        return GaveUp(f"The stack could not be looked at in time: {throttled}") if overdue(run, clock) else Working()
    outcome = _sort(stack, clearing=clearing) if stack else Again(why_not or "the stack is not there")
    if isinstance(outcome, Working | Again) and overdue(run, clock):
        minutes = int(DEADLINE.total_seconds() // 60)
        status = f"is {stack.status}" if stack else f"could not be started ({why_not})"
        return GaveUp(f"The stack {status} after {minutes} minutes.")
    return outcome


def _sort(stack: Stack, *, clearing: bool) -> Done | Working | Again | GaveUp:
    match condition(stack.status):
        case StackCondition.WORKING:
            return Working()
        case StackCondition.GONE:
            return Again("the stack is gone")
        case StackCondition.NEVER_LIVED if clearing:
            return Again("the remains of a failed creation are still there")
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
            if stack.queue and stack.version:
                return Done(stack.stack_id, stack.queue, stack.version)
            return GaveUp(f"The stack is {stack.status} but has no queue among its outputs.")
        case _:
            reason = stack.status_reason or "no reason was given"
            return GaveUp(f"The stack is {stack.status}: {reason}", failed_stack=stack.stack_id)
