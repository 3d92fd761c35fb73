"""A tenant's stack, from nothing: create it, adopt the one that is there, or clear away one that never lived."""

from __future__ import annotations

from orchestrator.common.times import Clock
from orchestrator.releases.records import Release
from orchestrator.tenants.outcomes import Again, Clearing, Done, GaveUp, Started, Working
from orchestrator.tenants.ports import Stack, Stacks
from orchestrator.tenants.records import Run
from orchestrator.tenants.stack_status import StackCondition, condition

DELETING = "DELETE_IN_PROGRESS"


def start(
    run: Run, stack: Stack | None, release: Release, *, stacks: Stacks, clock: Clock
) -> Started | Clearing | Again:
    token = run.attempt.client_token
    if stack is None or condition(stack.status) is StackCondition.GONE:
        # Every request has a token of its own: a run whose first stack had to be cleared away asks for another one.
        # If the answer to a request is lost, the stack is found by its name.
        moment = f"{clock.now():%Y%m%d%H%M%S%f}"
        created = stacks.create(run.tenant, release=release, client_token=f"{token}-create-{moment}")
        return Started(created) if created else Again("a stack of that name has just appeared")
    if stack.status == DELETING:
        return Clearing(stack.stack_id)
    if condition(stack.status) is StackCondition.NEVER_LIVED:
        stacks.delete(stack.stack_id, client_token=f"{token}-delete-{stack.stack_id.rpartition('/')[2]}")
        return Clearing(stack.stack_id)
    return Started(stack.stack_id)


def sort(stack: Stack | None, *, clearing: bool) -> Done | Working | Again | GaveUp:
    """Where the stack is. ``clearing`` when it is being deleted to make room."""
    if stack is None:
        return Again("the stack is not there")
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
            return broken(stack)


def broken(stack: Stack) -> GaveUp:
    reason = stack.status_reason or "no reason was given"
    return GaveUp(f"The stack is {stack.status}: {reason}", failed_stack=stack.stack_id)
