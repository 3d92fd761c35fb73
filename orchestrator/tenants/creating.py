"""Creating a tenant's stack: create it, use the existing one, or delete one whose creation had failed."""

from __future__ import annotations

from collections.abc import Sequence

from orchestrator.common.times import Clock
from orchestrator.releases.records import Release
from orchestrator.tenants.outcomes import Again, Clearing, Done, GaveUp, Started, Working
from orchestrator.tenants.records import Audit, Metadata, Operation, Run, Status
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition

DELETING = "DELETE_IN_PROGRESS"
_CREATED = "CREATE_COMPLETE"
"""The status of a stack that was created, and not updated since."""


def start(
    run: Run, stack: Stack | None, release: Release, *, stacks: Stacks, clock: Clock
) -> Started | Clearing | Again:
    token = run.attempt.client_token
    if stack is None or condition(stack.status) is StackCondition.GONE:
        # Every call has its own token, because a run creates a second stack if it had to delete the first one. If the
        # response to a call is lost, the stack is found by its name.
        moment = f"{clock.now():%Y%m%d%H%M%S%f}"
        created = stacks.create(run.tenant, release=release, client_token=f"{token}-create-{moment}")
        return Started(created, requested=True) if created else Again("another request has just created the stack")
    if stack.status == DELETING:
        return Clearing(stack.stack_id)
    if condition(stack.status) is StackCondition.CREATION_FAILED:
        _delete(run, stack, stacks)
        return Clearing(stack.stack_id, requested=True)
    return Started(stack.stack_id)


def clear(
    run: Run, stack: Stack, metadata: Metadata | None, audits: Sequence[Audit], *, stacks: Stacks
) -> Clearing | GaveUp:
    """Delete a stack that an earlier create has left, if the tenant was certainly never served from it.

    A failed create at the stack's version proves that. Without it, the tenant's records may have been lost.
    """
    was_served = metadata is not None and (metadata.was_served or metadata.withdrawn_by is not None)
    has_failed = any(
        each.operation is Operation.CREATE and each.version == stack.version and each.status is Status.FAILURE
        for each in audits
    )
    if was_served or not has_failed:
        return GaveUp(
            f"Tenant {run.tenant}: its stack {stack.stack_id} is at version {stack.version}, not at "
            f"{run.attempt.version}, and may hold messages. Nothing was created. Create the tenant in the tier of that "
            f"stack (see berth releases {stack.version}), or delete the tenant first: berth delete {run.tenant}"
        )
    _delete(run, stack, stacks)
    return Clearing(stack.stack_id, requested=True)


def _delete(run: Run, stack: Stack, stacks: Stacks) -> None:
    token = run.attempt.client_token
    stacks.delete(stack.stack_id, client_token=f"{token}-delete-{stack.stack_id.rpartition('/')[2]}")


def inspect(stack: Stack | None, *, clearing: bool) -> Done | Working | Again | GaveUp:
    """The outcome of inspecting the stack. ``clearing`` if it is being deleted after a failed creation."""
    if stack is None:
        return Again("the stack does not exist")
    match condition(stack.status):
        case StackCondition.WORKING:
            return Working()
        case StackCondition.GONE:
            return Again("the stack was deleted")
        case StackCondition.CREATION_FAILED if clearing:
            return Again("the stack of a failed creation is not deleted yet")
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
            if stack.queue and stack.version:
                # Only a stack that was never updated is known to be as its creation has left it.
                changed_at = stack.changed_at if stack.status == _CREATED else None
                return Done(stack.stack_id, stack.queue, stack.version, changed_at)
            return GaveUp(f"The stack {stack.stack_id} is {stack.status}, but its outputs have no queue.")
        case _:
            return broken(stack)


def broken(stack: Stack) -> GaveUp:
    reason = stack.status_reason or "no reason was given"
    return GaveUp(f"The stack is {stack.status}: {reason}", failed_stack=stack.stack_id)
