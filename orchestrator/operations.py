"""The life of one operation on one tenant: begin, then finish or record the failure.

All writes of an operation are fenced: they go through only while its execution holds the tenant's lock.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from orchestrator.errors import LostOwnership, Throttled
from orchestrator.ports import Clock, Executions, OperationLedger, Queues, ResourceEvent, Stacks
from orchestrator.records import Attempt, Queue, RootCause, Run

DEADLINE = timedelta(minutes=30)
"""How long an operation may take before it is called failed. The machines' own timeout lies beyond it."""

CHECK_HOLDER_AFTER = timedelta(seconds=60)
"""A lock held for longer than this is checked against its execution, which may have died."""

_REASON_LENGTH = 1_000


def machine_input(attempt: Attempt) -> dict[str, object]:
    """What an execution is started with. Only what names the attempt: equal attempts, equal input."""
    return {
        "tenantId": attempt.tenant.value,
        "operation": attempt.operation.value,
        "version": attempt.version,
        "attempt": attempt.number,
    }


def overdue(run: Run, clock: Clock) -> bool:
    return clock.now() - run.started_at > DEADLINE


@dataclass(frozen=True, slots=True)
class Begun:
    outcome = "begun"


@dataclass(frozen=True, slots=True)
class Busy:
    """Another operation owns the tenant. It is waited for."""

    holder: str
    outcome = "busy"


@dataclass(frozen=True, slots=True)
class GaveUp:
    """The operation cannot succeed any more. ``failed_stack`` when it is the stack that failed."""

    reason: str
    failed_stack: str | None = None
    outcome = "failed"


def begin(run: Run, *, ledger: OperationLedger, executions: Executions, clock: Clock) -> Begun | Busy | GaveUp:
    """Take the tenant's lock and write Started, in one transaction."""
    holder = ledger.begin(run, at=clock.now())
    if holder is None:
        return Begun()
    held_for = clock.now() - holder.run.started_at
    if held_for > CHECK_HOLDER_AFTER and not executions.is_running(holder.run.execution):
        holder = ledger.begin(run, at=clock.now(), instead_of=holder)
        if holder is None:
            return Begun()
    if overdue(run, clock):
        return GaveUp(f"Another operation owned the tenant all the time: {holder.run.execution}")
    return Busy(holder.run.execution)


@dataclass(frozen=True, slots=True)
class Published:
    outcome = "published"


@dataclass(frozen=True, slots=True)
class NotReady:
    """The stack is done, but its queue does not answer yet."""

    outcome = "notReady"


def finish(
    run: Run,
    *,
    stack_id: str,
    queue: Queue,
    version: str,
    ledger: OperationLedger,
    queues: Queues,
    clock: Clock,
) -> Published | NotReady | GaveUp:
    """Publish the queue once it can be used, write Success and free the lock, in one transaction."""
    if not queues.answers(queue):
        if overdue(run, clock):
            return GaveUp(f"The stack is done, but its queue {queue.arn} never answered.")
        return NotReady()
    ledger.publish(run, stack_id=stack_id, queue=queue, version=version, at=clock.now())
    return Published()


def record_failure(
    run: Run,
    *,
    failure: RootCause,
    failed_stack: str | None,
    ledger: OperationLedger,
    stacks: Stacks,
    clock: Clock,
) -> RootCause:
    """Write Failure with its root cause and free the lock.

    ``failed_stack`` is given when it is the stack that failed: its first failed resource is then the cause.
    """
    cause = bounded(_first_failure_of(failed_stack, stacks) or failure)
    if not ledger.fail(run, cause, clock.now()):
        raise LostOwnership(
            f"Tenant {run.tenant}: {run.attempt.name} failed ({cause}), but a later attempt has taken its place."
        )
    return cause


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
