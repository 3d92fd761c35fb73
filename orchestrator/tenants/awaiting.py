"""Waiting for a tenant's stack: the execution waits with a task token while CloudFormation changes the stack.

StartStack stores the token with the lock once CloudFormation has accepted the change, and with it what was started. So
nothing resumes the execution before the change was requested. CloudFormation's event resumes it with the outcome of an
inspection. If the event is lost, or comes before the token is stored, the state's timeout ends the wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.common.errors import Throttled
from orchestrator.common.stack_arns import name_of
from orchestrator.common.times import Clock
from orchestrator.releases.ports import Releases
from orchestrator.tenants.deadlines import overdue
from orchestrator.tenants.names import Names
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Draining,
    Inspection,
    Settled,
    Started,
    Unchanged,
    Waiting,
    Working,
)
from orchestrator.tenants.ports import OperationLedger, Queues, TenantReader, UnfinishedWork
from orchestrator.tenants.records import Attempt, Lock, Run
from orchestrator.tenants.stack_ports import Stacks
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.tenant_stack import inspect_stack, own_lock, start_stack
from orchestrator.tenants.updating import Drafting


@dataclass(frozen=True, slots=True)
class Resumption:
    """The execution that waits with this task token is to be resumed."""

    task_token: str
    outcome: Inspection
    """The result of the state that waits."""


def start_and_wait(
    run: Run,
    *,
    task_token: str,
    stack_events: bool,
    reader: TenantReader,
    ledger: OperationLedger,
    releases: Releases,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    unfinished: UnfinishedWork,
    clock: Clock,
    empty_for: timedelta,
    empty_since: datetime | None,
) -> Waiting | Inspection | Draining:
    """Take one step towards the stack, then wait for CloudFormation if it is changing the stack.

    Every other outcome is returned, and ends the wait at once. Without ``stack_events`` the machine waits in its state
    AwaitStack, which has a short timeout.
    """
    started = start_stack(
        run,
        reader=reader,
        releases=releases,
        stacks=stacks,
        queues=queues,
        drafting=drafting,
        clock=clock,
        empty_for=empty_for,
        empty_since=empty_since,
        unfinished=unfinished,
    )
    if isinstance(started, Started | Clearing | Unchanged):
        ledger.remember_started(run, task_token, stack_id=started.stack_id, outcome=started.outcome)
    if isinstance(started, Started | Clearing) and started.requested and stack_events:
        # CloudFormation takes longer than this function, so the stack is not described again.
        return Waiting()
    run = own_lock(run, reader).run  # The payload may be forged, and the inspection depends on the operation.
    if isinstance(started, Draining) and not overdue(run, clock):
        return started
    outcome = inspect_stack(run, started=started, reader=reader, stacks=stacks, queues=queues, clock=clock)
    return Waiting() if isinstance(outcome, Working) and stack_events else outcome


def await_stack(
    run: Run, *, task_token: str, reader: TenantReader, ledger: OperationLedger, stacks: Stacks
) -> Waiting | Settled:
    """Store the task token, so that the stack's event can resume the run.

    The stack may have settled before the token was stored, so the stack is checked once more, and the wait ends at
    once if there is nothing to wait for. The machine inspects the stack next.
    """
    ledger.remember_token(run, task_token)
    started = started_by(own_lock(run, reader))
    try:
        stack = stacks.find(started.stack_id) if isinstance(started, Started | Clearing) else None
    except Throttled:
        return Waiting()  # The event, or the state's timeout, resumes the run.
    if stack is None or condition(stack.status) is not StackCondition.WORKING:
        return Settled()
    return Waiting()


def stack_settled(
    stack_id: str,
    *,
    client_token: str,
    names: Names,
    reader: TenantReader,
    stacks: Stacks,
    queues: Queues,
    clock: Clock,
) -> Resumption | None:
    """The run that waits for a stack that has settled, if there is one, with the outcome of an inspection.

    The name of an earlier system's stack does not contain the tenant, nor does that of a stack that was kept ready. The
    client token does, if a run has changed the stack. Otherwise no run waits for the stack, or the run resumes after
    its timeout.
    """
    name = name_of(stack_id)
    by_token = names.is_legacy(name) or names.is_warm(name)
    tenant = Attempt.tenant_of(client_token) if by_token else names.tenant_of(stack_id)
    lock = reader.lock(tenant) if tenant else None
    started = started_by(lock) if lock else None
    if lock is None or lock.task_token is None or started is None:
        return None
    outcome = inspect_stack(lock.run, started=started, reader=reader, stacks=stacks, queues=queues, clock=clock)
    # The event may be that of an earlier change, or CloudFormation throttles. The run keeps waiting.
    return None if isinstance(outcome, Working) else Resumption(lock.task_token, outcome)


def inspect_started(run: Run, *, reader: TenantReader, stacks: Stacks, queues: Queues, clock: Clock) -> Inspection:
    """The outcome of inspecting the stack that the run has last started."""
    lock = own_lock(run, reader)
    started = started_by(lock) or Again("no change of the stack was started")
    return inspect_stack(lock.run, started=started, reader=reader, stacks=stacks, queues=queues, clock=clock)


def started_by(lock: Lock) -> Started | Clearing | Unchanged | None:
    """The outcome of the latest start by the run that holds the lock."""
    if lock.started_stack is None:
        return None
    for kind in (Clearing, Unchanged):
        if lock.started_as == kind.outcome:
            return kind(lock.started_stack)
    return Started(lock.started_stack)
