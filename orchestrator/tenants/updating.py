"""Updating a tenant's stack to another release: review what would change, change it, inspect the result.

A change set shows what an update would change before anything is changed. If the same move was reviewed before, and the
stack is as Berth has recorded it, the stack is updated without a change set: see :mod:`orchestrator.tenants.reviews`.
An update never removes a queue with messages unless the request allows it, and a stack is never deleted to repair it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from orchestrator.common.errors import Conflict, Throttled
from orchestrator.releases.ports import Parameters, PublishedTemplates, Releases
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import (
    DATA_TYPES,
    INBOUND_QUEUE,
    KMS_KEY_PARAMETER,
    MAX_DIRECT_BYTES,
    QUEUE_TYPE,
)
from orchestrator.tenants.creating import broken
from orchestrator.tenants.outcomes import (
    Again,
    Clearing,
    Done,
    Draining,
    GaveUp,
    NotReady,
    Reviewing,
    Started,
    Unchanged,
    Working,
)
from orchestrator.tenants.ports import NewName, OperationLedger, Queues, Reviews, TenantReader
from orchestrator.tenants.records import ALLOW_REPLACEMENT, Lock, Queue, Run
from orchestrator.tenants.reviews import Move, Review, known_move
from orchestrator.tenants.stack_ports import Change, ChangeSet, ChangeSetState, ResourceEvent, Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition

_CHANGE_SET_PREFIX = "berth-"
"""The names of change sets must begin with a letter."""

_MAX_CLOCK_DIFFERENCE = timedelta(minutes=1)

_UPDATED = "UPDATE_COMPLETE"
"""The status of a stack after a successful update."""

_ALLOW = f"If {{what}} may be lost, an upgrade or a rollout can allow it ({ALLOW_REPLACEMENT}). A move cannot."

MAX_ROLLBACKS = 3
"""How often the rollback of a failed update is tried before a person has to repair the stack."""


@dataclass(frozen=True, slots=True)
class Drafting:
    """The means to create a change set, to verify it later, and to do without it."""

    ledger: OperationLedger
    parameters: Parameters
    new_name: NewName
    releases: Releases
    reviews: Reviews
    templates: PublishedTemplates

    def move(self, lock: Lock, stack: Stack, release: Release) -> Move | None:
        """The move to the release, if the stack is as Berth has recorded it."""
        parameters = self.parameters(lock.run.tenant, release)
        return known_move(stack, lock, release, parameters=parameters, releases=self.releases)


@dataclass(frozen=True, slots=True)
class EmptyCheck:
    """How long the queues that an update removes have been empty. SQS may count a message up to a minute late."""

    now: datetime
    empty_since: datetime | None
    """Since when every count has found no messages."""
    empty_for: timedelta
    """How long every count must find no messages."""
    served: Queue | None = None
    """The queue that the tenant is served from. It may have any logical id in templates of an earlier system."""

    @property
    def left(self) -> timedelta:
        return self.empty_for - (self.now - (self.empty_since or self.now))


def _review(run: Run, stack: Stack, release: Release, *, stacks: Stacks, drafting: Drafting) -> None:
    """Create the change set.

    Nobody can guess its name, so nobody can create another change set with that name beforehand. Its id is stored with
    the lock, and only the change set with that id is executed, whatever has the name by then.
    """
    name = f"{_CHANGE_SET_PREFIX}{drafting.new_name()}"
    change_set = stacks.create_change_set(run.tenant, stack.stack_id, release=release, name=name)
    if change_set is not None:
        drafting.ledger.remember_change_set(run, change_set)


def start(
    lock: Lock,
    stack: Stack | None,
    release: Release,
    *,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    empty_check: EmptyCheck,
) -> Started | Clearing | Unchanged | Reviewing | Draining | Again | GaveUp:
    """Take the next step of the update that holds the lock, or roll back a failed update that was left behind."""
    run = lock.run
    if stack is None:
        return GaveUp(
            f"Tenant {run.tenant} has no stack named {stacks.names.stack_of(run.tenant)}, so it was not updated. If an "
            "earlier system made its stack with another name, adopt the tenant: berth adopt"
        )
    match condition(stack.status):
        case StackCondition.WORKING:
            return Started(stack.stack_id)
        case StackCondition.NEEDS_ROLLBACK | StackCondition.NEEDS_ROLLBACK_CONTINUED:
            return _roll_back(run, stack, stacks)
        case StackCondition.DONE | StackCondition.DONE_AT_OLD_VERSION:
            found = stacks.find_change_set(stack.stack_id, lock.change_set) if lock.change_set else None
            if found is not None:
                return _execute(
                    lock,
                    stack,
                    release,
                    found,
                    stacks=stacks,
                    queues=queues,
                    drafting=drafting,
                    empty_check=empty_check,
                )
            if started := _start_directly(lock, stack, release, stacks=stacks, drafting=drafting):
                return started
            # If there was a change set, it was out of date and deleted. Only then another one is created, because
            # CloudFormation allows few of them.
            _review(run, stack, release, stacks=stacks, drafting=drafting)
            return Reviewing()
        case _:
            return broken(stack)


def _start_directly(
    lock: Lock, stack: Stack, release: Release, *, stacks: Stacks, drafting: Drafting
) -> Started | Unchanged | Again | None:
    """Update the stack without a change set; ``None`` if this stack has to be reviewed.

    If the stack is not as it was recorded, this run may have changed it: the response to its request was lost. Then its
    events show that, and the stack is only inspected.
    """
    run = lock.run
    if lock.deployed is None:
        return None
    move = drafting.move(lock, stack, release)
    if move is None:
        return Started(stack.stack_id) if _own_events(run, stack, stacks) else None
    if drafting.reviews.review(move.key) is None:
        return None
    # The template is sent as it was published, so a template that somebody has changed since is not deployed.
    template = drafting.templates.published(release)
    if template is None or len(template.encode()) > MAX_DIRECT_BYTES:
        return None
    try:
        changed = stacks.update(
            run.tenant, stack.stack_id, release=release, template=template, client_token=_token(run)
        )
    except Conflict as conflict:
        return Again(str(conflict))
    return Started(stack.stack_id, requested=True) if changed else Unchanged(stack.stack_id)


def _execute(
    lock: Lock,
    stack: Stack,
    release: Release,
    change_set: ChangeSet,
    *,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    empty_check: EmptyCheck,
) -> Started | Unchanged | Reviewing | Draining | Again | GaveUp:
    run = lock.run
    match change_set.state:
        case ChangeSetState.PENDING:
            return Reviewing()
        case ChangeSetState.EMPTY:
            stacks.delete_change_set(stack.stack_id, change_set.id)
            return Unchanged(stack.stack_id)
        case ChangeSetState.FAILED:
            stacks.delete_change_set(stack.stack_id, change_set.id)
            return GaveUp(f"CloudFormation could not create the change set: {change_set.reason}")
        case ChangeSetState.EXECUTED:
            return Started(stack.stack_id)
        case ChangeSetState.STALE:
            stacks.delete_change_set(stack.stack_id, change_set.id)
            return Again("the stack has changed since the change set was created")
    if has_another_key(change_set, drafting.parameters(run.tenant, release)):
        stacks.delete_change_set(stack.stack_id, change_set.id)
        return Again("another key was deployed since the change set was created")
    try:
        reason = _why_not(
            run, stack, release, change_set, stacks=stacks, queues=queues, drafting=drafting, empty_check=empty_check
        )
        if reason is not None:
            stacks.delete_change_set(stack.stack_id, change_set.id)
            return GaveUp(reason)
        if draining := _draining(run, change_set, empty_check):
            return draining
        _keep_review(lock, stack, release, change_set, drafting, at=empty_check.now)
        stacks.execute_change_set(stack.stack_id, change_set.id, client_token=_token(run))
    except Conflict as conflict:
        return Again(str(conflict))
    return Started(stack.stack_id, requested=True)


def _draining(run: Run, change_set: ChangeSet, empty_check: EmptyCheck) -> Draining | None:
    """How long to wait until the queues that the change set removes were empty for long enough."""
    if run.request.allow_replacement or empty_check.left <= timedelta():
        return None
    if not any(map(_removes_queue, change_set.changes)):
        return None
    empty_since = empty_check.empty_since or empty_check.now
    return Draining("none were counted", empty_since, math.ceil(empty_check.left.total_seconds()))


def _keep_review(
    lock: Lock, stack: Stack, release: Release, change_set: ChangeSet, drafting: Drafting, *, at: datetime
) -> None:
    """Keep the review for other tenants, if it removes no queue or other data, and their changes are the same.

    A change set that removes one is never kept, whatever this request allows. The stack was described before, and
    CloudFormation executes no change set of a stack that has changed since. So the change set is about the stack as it
    was recorded.
    """
    if any(_removes_queue(each) or _removes_data(each) for each in change_set.changes):
        return
    move = drafting.move(lock, stack, release)
    with suppress(Throttled):  # Without it, the next tenant's change set is reviewed, too.
        if move is not None and move.is_the_same_for_all(drafting.templates):
            drafting.reviews.keep_review(Review(move.key, move.origin.version, release.version, change_set.id, at))


def _why_not(
    run: Run,
    stack: Stack,
    release: Release,
    change_set: ChangeSet,
    *,
    stacks: Stacks,
    queues: Queues,
    drafting: Drafting,
    empty_check: EmptyCheck,
) -> str | None:
    """Why the change set must not be executed, if there is a reason."""
    parameters = drafting.parameters(run.tenant, release)
    unexpected = not_asked_for(change_set, stack, release, parameters=parameters, stacks=stacks)
    if unexpected is not None or run.request.allow_replacement:
        return unexpected
    return losses(stack, change_set.changes, queues, served=empty_check.served)


def has_another_key(change_set: ChangeSet, parameters: Mapping[str, str]) -> bool:
    """True if only the key differs from the parameters that a change set would have now.

    Then the control plane was deployed with another key since, and nobody has tampered with the change set.
    """
    differing = {name for name, _ in change_set.parameters.items() ^ parameters.items()}
    return differing == {KMS_KEY_PARAMETER}


def not_asked_for(
    change_set: ChangeSet, stack: Stack, release: Release, *, parameters: Mapping[str, str], stacks: Stacks
) -> str | None:
    """Why the change set is not the one that Berth created for the release; ``None`` if it is."""
    unexpected = [*change_set.extras, *sorted(change_set.attached - stack.attached)]
    if change_set.stack_id != stack.stack_id:
        unexpected.append(f"another stack ({change_set.stack_id})")
    if change_set.parameters != parameters:
        unexpected.append("other parameters")
    if not unexpected and stacks.template_digest(stack.stack_id, change_set.id) != release.digest:
        unexpected.append(f"another template than that of release {release.version}")
    if not unexpected:
        return None
    return (
        f"The change set {change_set.id} has {', '.join(unexpected)}, which Berth did not request. Nothing was "
        "changed. Find out in CloudTrail who created the change set, or who changed the release's template."
    )


def losses(stack: Stack, changes: Iterable[Change], queues: Queues, *, served: Queue | None) -> str | None:
    """Why the changes would lose messages or other data; ``None`` if they would not.

    The inbound queue must never be removed, other queues not while they hold messages. Whether a table or a bucket
    holds data is not looked at.
    """
    inbound = {queue.url for queue in (stack.queue, served) if queue}
    for change in changes:
        if _removes_data(change):
            return (
                f"The update would replace or remove {change.resource} ({change.resource_type}) with its data. Nothing "
                f"was changed. Keep it in the template. {_ALLOW.format(what='its data')}"
            )
        if not _removes_queue(change):
            continue
        if change.physical_id in inbound or change.resource == INBOUND_QUEUE:
            return (
                f"The update would replace or remove the inbound queue ({change.resource}). "
                f"Nothing was changed. {_ALLOW.format(what='its messages')}"
            )
        held = queues.messages(change.physical_id)
        if held and held.total:
            return (
                f"The update would replace or remove the queue {change.resource}, which holds messages ({held}). "
                f"Nothing was changed. Empty it first. {_ALLOW.format(what='its messages')}"
            )
    return None


def _removes_queue(change: Change) -> bool:
    return change.resource_type == QUEUE_TYPE and change.effect.removes


def _removes_data(change: Change) -> bool:
    return change.resource_type in DATA_TYPES and change.effect.removes


def _roll_back(run: Run, stack: Stack, stacks: Stacks) -> Clearing | GaveUp:
    prefix = f"{_token(run)}-undo-"
    rollbacks = [event for event in since(run, stacks.events(stack.stack_id)) if event.client_token.startswith(prefix)]
    if sum(event.is_stack and event.status.endswith("ROLLBACK_FAILED") for event in rollbacks) >= MAX_ROLLBACKS:
        return broken(stack)
    # Rollbacks that succeeded are counted, too: the update may have failed again after them.
    token = f"{prefix}{1 + len({event.client_token for event in rollbacks})}"
    if condition(stack.status) is StackCondition.NEEDS_ROLLBACK:
        stacks.roll_back(stack.stack_id, client_token=token)
    else:
        stacks.continue_rollback(stack.stack_id, client_token=token)
    return Clearing(stack.stack_id, requested=True)


def inspect(
    run: Run, stack: Stack | None, *, unchanged: bool, reader: TenantReader, stacks: Stacks
) -> Done | Working | NotReady | Again | GaveUp:
    """The outcome of inspecting the stack. ``unchanged`` if CloudFormation had nothing to change."""
    if stack is None:
        return GaveUp(
            f"The stack of tenant {run.tenant} was deleted during the update. Create the tenant again: berth create "
            f"{run.tenant}"
        )
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
            # The update was rolled back, or it has not begun, or CloudFormation does not show it yet.
            if not _own_events(run, stack, stacks):
                return _not_begun(stack)
            return broken(stack)
        case _:
            return broken(stack)


def _done(run: Run, stack: Stack) -> Done | GaveUp:
    if stack.queue:
        return Done(stack.stack_id, stack.queue, run.attempt.version, stack.changed_at)
    return GaveUp(f"The stack {stack.stack_id} is {stack.status}, but its outputs have no queue.")


def _at_target(run: Run, stack: Stack, reader: TenantReader, stacks: Stacks) -> Done | NotReady | Again | GaveUp:
    """The outcome for a stack that has the requested version.

    If the tenant had that version before, for example because only the key changes, the stack looks the same before and
    after the update. Then only the stack's events show whether it was updated.
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
    """The events that this run has caused."""
    return [event for event in since(run, stacks.events(stack.stack_id)) if event.client_token == _token(run)]


def since(run: Run, events: Iterable[ResourceEvent]) -> Iterable[ResourceEvent]:
    """The events since the run began, the newest first. Clocks may differ by up to a minute."""
    for event in events:
        if event.at < run.started_at - _MAX_CLOCK_DIFFERENCE:
            return
        yield event


def _token(run: Run) -> str:
    return f"{run.attempt.client_token}-update"
