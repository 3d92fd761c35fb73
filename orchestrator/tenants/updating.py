"""A tenant's stack, from one release to another: review what would change, change it, see what came of it.

CloudFormation itself says what an update would change, in a change set, before anything is touched. An update never
takes a queue away with what is in it, unless that was asked for; and a stack is never deleted to heal it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.common.errors import Conflict
from orchestrator.releases.ports import Parameters
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import INBOUND_QUEUE, KMS_KEY_PARAMETER, QUEUE_TYPE
from orchestrator.tenants.creating import broken
from orchestrator.tenants.outcomes import Again, Clearing, Done, Draining, GaveUp, NotReady, Started, Unchanged, Working
from orchestrator.tenants.ports import (
    Change,
    ChangeSet,
    ChangeSetState,
    NewName,
    OperationLedger,
    Queues,
    ResourceEvent,
    Stack,
    Stacks,
    TenantReader,
)
from orchestrator.tenants.records import Queue, Run
from orchestrator.tenants.stack_status import StackCondition, condition

_CHANGE_SET_PREFIX = "berth-"
"""Names of change sets begin with a letter."""

_CLOCKS_DIFFER_BY = timedelta(minutes=1)

_UPDATED = "UPDATE_COMPLETE"
"""The status of a stack whose update has ended well."""

MAX_ROLLBACKS = 3
"""How often undoing a failed update is tried before it is left to a person."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """What it takes to have changes drawn up, and to know them again."""

    ledger: OperationLedger
    parameters: Parameters
    new_name: NewName


@dataclass(frozen=True, slots=True)
class Looks:
    """What is known of the queues that an update takes away: it takes SQS a minute to count what was sent last."""

    now: datetime
    empty_since: datetime | None
    """When the first of the latest looks was that saw no messages."""
    empty_for: timedelta
    """How long every look has to see none."""
    served: Queue | None = None
    """The queue that the tenant is served from. Templates of an earlier system may call it as they like."""

    @property
    def left(self) -> timedelta:
        return self.empty_for - (self.now - (self.empty_since or self.now))


def review(run: Run, stack: Stack | None, release: Release, *, stacks: Stacks, drafting: Drafting) -> None:
    """Have CloudFormation draw up the changes, if the stack is in a state to be changed at all.

    Under a name that nobody could guess, so that nobody could draw up something else under it before. The id that
    CloudFormation gives them is kept with the lock, and what has that id is executed, whatever bears the name by then.
    """
    if stack is not None and condition(stack.status) in (StackCondition.DONE, StackCondition.DONE_AT_OLD_VERSION):
        name = f"{_CHANGE_SET_PREFIX}{drafting.new_name()}"
        change_set = stacks.draw_up_changes(run.tenant, stack.stack_id, release=release, name=name)
        if change_set is not None:
            drafting.ledger.remember_changes(run, change_set)


def start(
    run: Run,
    stack: Stack | None,
    release: Release,
    *,
    change_set: str | None,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    looks: Looks,
) -> Started | Clearing | Unchanged | Draining | Again | GaveUp:
    """Make the changes that were drawn up, or heal a stack that an earlier update left half-way.

    ``change_set`` is the id of the changes that were drawn up for this very run.
    """
    if stack is None:
        return GaveUp(
            f"The tenant has no stack named {stacks.names.stack_of(run.tenant)}, so there is nothing to update. If an "
            "earlier system made its stack under another name, have the tenant adopted: berth adopt"
        )
    match condition(stack.status):
        case StackCondition.WORKING:
            return Started(stack.stack_id)
        case StackCondition.NEEDS_ROLLBACK | StackCondition.NEEDS_ROLLBACK_CONTINUED:
            return _heal(run, stack, stacks)
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
            drawn_up = stacks.changes(stack.stack_id, change_set) if change_set else None
            if drawn_up is None:
                # Throttled when they were to be drawn up, or out of date since, or drawn up by an earlier version of
                # Berth, which did not keep the id. What is there is not asked for twice: calls that change something
                # are what CloudFormation allows the fewest of.
                review(run, stack, release, stacks=stacks, drafting=drafting)
                return Again("the changes are being drawn up only now", throttled=True)
            return _carry_out(
                run, stack, release, drawn_up, stacks=stacks, queues=queues, drafting=drafting, looks=looks
            )
        case _:
            return broken(stack)


def _carry_out(
    run: Run,
    stack: Stack,
    release: Release,
    drawn_up: ChangeSet,
    *,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    looks: Looks,
) -> Started | Unchanged | Draining | Again | GaveUp:
    match drawn_up.state:
        case ChangeSetState.PENDING:
            return Again("CloudFormation is still drawing up the changes")
        case ChangeSetState.EMPTY:
            stacks.forget_changes(stack.stack_id, drawn_up.id)
            return Unchanged(stack.stack_id)
        case ChangeSetState.FAILED:
            stacks.forget_changes(stack.stack_id, drawn_up.id)
            return GaveUp(f"CloudFormation could not draw up the changes: {drawn_up.reason}")
        case ChangeSetState.EXECUTED:
            return Started(stack.stack_id)
        case ChangeSetState.STALE:
            stacks.forget_changes(stack.stack_id, drawn_up.id)
            return Again("the stack has changed since the changes were drawn up")
    if has_another_key(drawn_up, drafting.parameters(run.tenant, release)):
        stacks.forget_changes(stack.stack_id, drawn_up.id)
        return Again("another key was deployed since the changes were drawn up")
    try:
        reason = _why_not(run, stack, release, drawn_up, stacks=stacks, queues=queues, drafting=drafting, looks=looks)
        if reason is not None:
            stacks.forget_changes(stack.stack_id, drawn_up.id)
            return GaveUp(reason)
        if (
            looks.left > timedelta()
            and not run.request.allow_replacement
            and any(map(_takes_a_queue, drawn_up.changes))
        ):
            return Draining("none were seen", looks.empty_since or looks.now, math.ceil(looks.left.total_seconds()))
        stacks.make_changes(stack.stack_id, drawn_up.id, client_token=_token(run))
    except Conflict as conflict:
        return Again(str(conflict))
    return Started(stack.stack_id)


def _why_not(
    run: Run,
    stack: Stack,
    release: Release,
    drawn_up: ChangeSet,
    *,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    looks: Looks,
) -> str | None:
    """Why the changes are not to be made, if there is a reason."""
    parameters = drafting.parameters(run.tenant, release)
    strange = not_asked_for(drawn_up, stack, release, parameters=parameters, stacks=stacks)
    if strange is not None or run.request.allow_replacement:
        return strange
    return losses(stack, drawn_up.changes, queues, served=looks.served)


def has_another_key(drawn_up: ChangeSet, parameters: Mapping[str, str]) -> bool:
    """True if the changes differ from those that would be drawn up now in the key alone.

    Nobody else has drawn them up then: a deployment has brought another key meanwhile.
    """
    differing = {name for name, _ in drawn_up.parameters.items() ^ parameters.items()}
    return differing == {KMS_KEY_PARAMETER}


def not_asked_for(
    drawn_up: ChangeSet, stack: Stack, release: Release, *, parameters: Mapping[str, str], stacks: Stacks
) -> str | None:
    """What the changes were drawn up with that Berth did not ask for; ``None`` if they are the release's."""
    strange = [*drawn_up.extras, *sorted(drawn_up.attached - stack.attached)]
    if drawn_up.stack_id != stack.stack_id:
        strange.append(f"another stack ({drawn_up.stack_id})")
    if drawn_up.parameters != parameters:
        strange.append("other parameters")
    if not strange and stacks.template_digest(stack.stack_id, drawn_up.id) != release.digest:
        strange.append(f"another template than that of release {release.version}")
    if not strange:
        return None
    return (
        f"The changes {drawn_up.id} were drawn up with {', '.join(strange)}, which Berth did not ask for. Nothing was "
        "changed. Find out in CloudTrail who drew them up, or who changed the release's template."
    )


def losses(stack: Stack, changes: Iterable[Change], queues: Queues, *, served: Queue | None) -> str | None:
    """What would be lost. The inbound queue is never taken away, other queues not with messages in them."""
    inbound = {queue.url for queue in (stack.queue, served) if queue}
    for change in changes:
        if not _takes_a_queue(change):
            continue
        if change.physical_id in inbound or change.resource == INBOUND_QUEUE:
            return (
                f"The update would replace or remove the inbound queue ({change.resource}). "
                "Nothing was changed. Allow the replacement explicitly if its messages may be lost."
            )
        held = queues.messages(change.physical_id)
        if held and held.total:
            return (
                f"The update would replace or remove the queue {change.resource}, which holds messages ({held}). "
                "Nothing was changed. Empty it first, or allow the replacement explicitly."
            )
    return None


def _takes_a_queue(change: Change) -> bool:
    return change.resource_type == QUEUE_TYPE and change.removes


def _heal(run: Run, stack: Stack, stacks: Stacks) -> Clearing | GaveUp:
    undoing = f"{_token(run)}-undo-"
    undone = [event for event in since(run, stacks.events(stack.stack_id)) if event.client_token.startswith(undoing)]
    if sum(event.is_stack and event.status.endswith("ROLLBACK_FAILED") for event in undone) >= MAX_ROLLBACKS:
        return broken(stack)
    # One more than were asked for before: also those that succeeded, after which the update failed again.
    token = f"{undoing}{1 + len({event.client_token for event in undone})}"
    if condition(stack.status) is StackCondition.NEEDS_ROLLBACK:
        stacks.roll_back(stack.stack_id, client_token=token)
    else:
        stacks.continue_rollback(stack.stack_id, client_token=token)
    return Clearing(stack.stack_id)


def sort(
    run: Run, stack: Stack | None, *, unchanged: bool, reader: TenantReader, stacks: Stacks
) -> Done | Working | NotReady | Again | GaveUp:
    """Where the stack is. ``unchanged`` when CloudFormation had nothing to change."""
    if stack is None:
        return GaveUp("The stack has gone while it was to be updated.")
    match condition(stack.status):
        case StackCondition.WORKING:
            return Working()
        case StackCondition.NEEDS_ROLLBACK | StackCondition.NEEDS_ROLLBACK_CONTINUED:
            return Again(f"the stack is {stack.status}")
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION if unchanged:
            return _done(run, stack)
        case StackCondition.DONE if stack.version == run.attempt.version:
            return _at_target(run, stack, reader, stacks)
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
            # Either the update was undone, or it has not begun, or CloudFormation does not show it yet.
            if not _own_events(run, stack, stacks):
                return _not_begun(stack)
            return broken(stack)
        case _:
            return broken(stack)


def _done(run: Run, stack: Stack) -> Done | GaveUp:
    if stack.queue:
        return Done(stack.stack_id, stack.queue, run.attempt.version)
    return GaveUp(f"The stack is {stack.status} but has no queue among its outputs.")


def _at_target(run: Run, stack: Stack, reader: TenantReader, stacks: Stacks) -> Done | NotReady | Again | GaveUp:
    """A stack at the version that was asked for was updated, unless it was there before.

    An operator brings another key with an update to the version where the tenant is. Such a stack looks the same before
    the update and after it, so only the stack's events tell whether the update was made.
    """
    metadata = reader.metadata(run.tenant)
    if metadata is None or metadata.version != run.attempt.version:
        return _done(run, stack)
    events = _own_events(run, stack, stacks)
    if not events:
        return _not_begun(stack)
    if not any(event.is_stack and event.status == _UPDATED for event in events):
        return NotReady("CloudFormation does not show the end of the update yet")
    return _done(run, stack)


def _not_begun(stack: Stack) -> Again:
    return Again(f"the stack is {stack.status}, and the update has not begun")


def _own_events(run: Run, stack: Stack, stacks: Stacks) -> list[ResourceEvent]:
    """The effects of the changes that this very run has made."""
    return [event for event in since(run, stacks.events(stack.stack_id)) if event.client_token == _token(run)]


def since(run: Run, events: Iterable[ResourceEvent]) -> Iterable[ResourceEvent]:
    """What happened in a run's time, newest first. Clocks differ a little, so a minute more."""
    for event in events:
        if event.at < run.started_at - _CLOCKS_DIFFER_BY:
            return
        yield event


def _token(run: Run) -> str:
    return f"{run.attempt.client_token}-update"
