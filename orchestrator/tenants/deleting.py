"""A tenant's stack, taken down: not before its messages are gone, nor given up at the first resource that blocks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from orchestrator.common.stack_arns import name_of
from orchestrator.common.times import Clock
from orchestrator.releases.template_contract import DEAD_LETTER_QUEUE, OUTBOUND_QUEUE
from orchestrator.tenants.creating import DELETING, broken
from orchestrator.tenants.names import LEGACY_PREFIXES_SETTING, Names
from orchestrator.tenants.outcomes import Again, Draining, Empty, GaveUp, Gone, Started, Working
from orchestrator.tenants.own_stack import has_unknown_stack, own_stack, recorded_stack
from orchestrator.tenants.ports import Queues, Stack, Stacks, TenantReader
from orchestrator.tenants.records import Messages, Metadata, Queue, Run
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.updating import since

MAX_DELETES = 3
"""How often CloudFormation is asked to delete a stack before what blocks it is left to a person."""

LOOK_AGAIN_SECONDS = 15
"""How long a draining queue is left alone between two looks."""

A_LOOK_IS_GOOD_FOR = timedelta(seconds=15)
"""Lambda may keep a step waiting for minutes when it throttles. What was counted before that is out of date then."""

DELETE_FAILED = "DELETE_FAILED"

_INBOUND, _DEAD_LETTERS, _OUTBOUND = "inbound queue", "dead-letter queue", "outbound queue"
_NAMES = {DEAD_LETTER_QUEUE: _DEAD_LETTERS, OUTBOUND_QUEUE: _OUTBOUND}
"""How queues are called in messages to people, by the names that templates give them."""


def check_messages(
    run: Run,
    *,
    empty_since: datetime | None,
    empty_for: timedelta,
    reader: TenantReader,
    stacks: Stacks,
    queues: Queues,
    clock: Clock,
) -> Empty | Draining | GaveUp:
    """See whether deleting would lose messages. Senders have been turned away already; receivers may still be at work.

    The numbers are estimates: it takes SQS a minute to count what was sent last. So the queues are empty once every
    look at them for as long as ``empty_for`` has found nothing. ``empty_since`` is when the first of those looks was.
    """
    now = clock.now()
    reason = why_not_adopted(reader.metadata(run.tenant), stacks.names, queues)
    if reason is not None:
        return GaveUp(reason)
    if run.request.force:
        return Empty(empty_since, now)
    counted = _counted_for(run, reader, stacks, queues)
    if not counted:
        return Empty(empty_since, now)
    held = _that_hold_any(counted)
    if held:
        told = tell_messages(held)
        if now - run.started_at < timedelta(seconds=run.request.drain_seconds):
            return Draining(told, None, LOOK_AGAIN_SECONDS)
        return GaveUp(
            f"There are still messages: {told}. The queue was not deleted. Receive them, or force the deletion."
        )
    empty_since = empty_since or now
    left = empty_for - (now - empty_since)
    if left > timedelta():
        return Draining("none were seen", empty_since, math.ceil(left.total_seconds()))
    return Empty(empty_since, now)


def why_not_adopted(metadata: Metadata | None, names: Names, queues: Queues) -> str | None:
    """Why a tenant from before Berth cannot be deleted: its stack would be left behind, and nobody would know of it."""
    if metadata is None or metadata.queue is None or not has_unknown_stack(metadata, names):
        return None
    reached = names.reaches(metadata.queue.name)
    if reached and queues.messages(metadata.queue.url) is None:
        return None
    reason = (
        f"Tenant {metadata.tenant} is from before Berth, and the stack of its queue {metadata.queue.url} is not on "
        "record. Nothing was deleted. Have the tenant adopted first: berth adopt. If there is no such stack, delete "
        "the queue by hand, then ask again."
    )
    if reached:
        return reason
    return (
        f"{reason} Berth cannot see whether the queue is gone before it is deployed with a prefix of the queue's name "
        f"in {LEGACY_PREFIXES_SETTING}."
    )


def messages_of(metadata: Metadata | None, queues: Queues) -> dict[str, Messages]:
    """What the tenant's queues hold, of those that hold anything."""
    if metadata is None:
        return {}
    return _that_hold_any(_counted(metadata.queue, metadata.outbound_queue, queues))


def _counted_for(run: Run, reader: TenantReader, stacks: Stacks, queues: Queues) -> dict[str, Messages]:
    """What the tenant's queues hold, of those that exist, whatever has become of the inbound queue."""
    metadata = reader.metadata(run.tenant)
    inbound, outbound = (metadata.queue, metadata.outbound_queue) if metadata else (None, None)
    stack = None
    if inbound is None:
        # The stack has let go of its metadata already: a delete before this one got so far, and failed.
        stack = own_stack(run.tenant, reader=reader, stacks=stacks)
        inbound = stack.queue if stack else None
    counted = _counted(inbound, outbound, queues)
    recorded = recorded_stack(metadata)
    is_adopted = recorded is not None and name_of(recorded) != stacks.names.stack_of(run.tenant)
    if _INBOUND in counted and not is_adopted:
        return counted
    # Either the inbound queue has gone, and cannot say any more where its dead letters are. Or an earlier system made
    # the stack, and its template may have queues that no row names. CloudFormation lists all of them.
    stack = stack or own_stack(run.tenant, reader=reader, stacks=stacks)
    listed = stacks.queues(stack.stack_id) if stack else {}
    known = {queue.arn for queue in (inbound, outbound) if queue}
    others = {_NAMES.get(name, name): queue.url for name, queue in listed.items() if queue.arn not in known}
    return counted | _counts_of(others, queues)


def _counted(inbound: Queue | None, outbound: Queue | None, queues: Queues) -> dict[str, Messages]:
    """What the queues hold, of those that exist."""
    urls: dict[str, str | None] = {}
    if inbound:
        urls[_INBOUND] = inbound.url
        urls[_DEAD_LETTERS] = queues.dead_letter_queue(inbound.url)
    if outbound:
        urls[_OUTBOUND] = outbound.url
    return _counts_of(urls, queues)


def _counts_of(urls: Mapping[str, str | None], queues: Queues) -> dict[str, Messages]:
    counted = {name: queues.messages(url) for name, url in urls.items() if url}
    return {name: messages for name, messages in counted.items() if messages is not None}


def _that_hold_any(counted: Mapping[str, Messages]) -> dict[str, Messages]:
    return {name: messages for name, messages in counted.items() if messages.total}


def tell_messages(held: dict[str, Messages]) -> str:
    return "; ".join(f"{name}: {messages}" for name, messages in held.items())


def start(
    run: Run, stack: Stack | None, *, looked_at: datetime | None, stacks: Stacks, clock: Clock
) -> Started | Gone | Again | GaveUp:
    """``looked_at`` is when the tenant's queues were last seen to be empty. Without it only a forced delete goes on."""
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return Gone()
    if stack.status == DELETING:
        return Started(stack.stack_id)
    if condition(stack.status) is StackCondition.WORKING:
        return Again(f"the stack is still {stack.status}")
    failed = _failures(run, stack, stacks) if stack.status == DELETE_FAILED else 0
    if failed >= MAX_DELETES:
        return broken(stack)
    is_counted = looked_at is not None and clock.now() - looked_at <= A_LOOK_IS_GOOD_FOR
    if not is_counted and not run.request.force:
        return Again("the messages have to be counted again first")
    stacks.delete(stack.stack_id, client_token=f"{_token(run)}-{failed + 1}")
    return Started(stack.stack_id)


def sort(stack: Stack | None) -> Gone | Working | Again:
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return Gone()
    if condition(stack.status) is StackCondition.WORKING:
        return Working()
    return Again(f"the stack is {stack.status}")


def _failures(run: Run, stack: Stack, stacks: Stacks) -> int:
    return sum(
        event.is_stack and event.client_token.startswith(_token(run)) and event.status == DELETE_FAILED
        for event in since(run, stacks.events(stack.stack_id))
    )


def _token(run: Run) -> str:
    return f"{run.attempt.client_token}-delete"
