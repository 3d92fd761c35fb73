"""Deleting a tenant's stack: only once its queues are empty, and with retries if a resource cannot be deleted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime, timedelta

from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.releases.template_contract import DEAD_LETTER_QUEUE, OUTBOUND_QUEUE, is_operators
from orchestrator.tenants.creating import DELETING, broken
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.names import LEGACY_PREFIXES_SETTING, Names
from orchestrator.tenants.outcomes import Again, Draining, GaveUp, Gone, Started, Working
from orchestrator.tenants.own_stack import has_unknown_stack, own_stack_by, recorded_stack
from orchestrator.tenants.ports import Queues, TenantReader, UnfinishedWork
from orchestrator.tenants.records import Metadata, Queue, Run
from orchestrator.tenants.stack_ports import Stack, Stacks
from orchestrator.tenants.stack_status import StackCondition, condition
from orchestrator.tenants.updating import since

MAX_DELETES = 3
"""How often the deletion of a stack is tried before a person has to remove what blocks it."""

DRAIN_POLL_SECONDS = 15
"""How long to wait between two counts of the messages in a draining queue."""

DELETE_FAILED = "DELETE_FAILED"

_INBOUND, _DEAD_LETTERS, _OUTBOUND = "inbound queue", "dead-letter queue", "outbound queue"
_NAMES = {DEAD_LETTER_QUEUE: _DEAD_LETTERS, OUTBOUND_QUEUE: _OUTBOUND}
"""The names of queues in messages to people, by logical id."""


def check_messages(
    run: Run,
    *,
    empty_since: datetime | None,
    empty_for: timedelta,
    reader: TenantReader,
    stacks: Stacks,
    queues: Queues,
    unfinished: UnfinishedWork,
    clock: Clock,
) -> Draining | GaveUp | None:
    """Check whether the deletion would lose messages; ``None`` if it would not.

    The queue is no longer served, but may still have receivers.

    The counts are estimates: SQS may count a message up to a minute late. So the queues are empty only once every count
    within ``empty_for`` has found no messages. ``empty_since`` is the time of the first of those counts.

    Unfinished work outside the queues counts as messages, but nobody can finish it while the tenant is withdrawn. So
    the delete does not wait for it.
    """
    now, metadata = clock.now(), reader.metadata(run.tenant)
    reason = why_not_adopted(metadata, stacks.names, queues)
    if reason is not None:
        return GaveUp(reason)
    if run.request.force:
        return None
    if elsewhere := unfinished_work(run.tenant, unfinished):
        return GaveUp(
            f"Tenant {run.tenant} still has unfinished work: {describe_messages(elsewhere)}. Nothing was deleted. "
            "Finish it, or force the deletion."
        )
    counted = _counted_for(run, metadata, stacks, queues)
    if not counted:
        return None
    held = _not_empty(counted)
    if held:
        messages = describe_messages(held)
        if now - run.started_at < timedelta(seconds=run.request.drain_seconds):
            return Draining(messages, None, DRAIN_POLL_SECONDS)
        return GaveUp(
            f"Tenant {run.tenant} still has messages: {messages}. Nothing was deleted. Receive them, or force the "
            "deletion."
        )
    empty_since = empty_since or now
    left = empty_for - (now - empty_since)
    if left > timedelta():
        return Draining("none were counted", empty_since, math.ceil(left.total_seconds()))
    return None


def why_not_adopted(metadata: Metadata | None, names: Names, queues: Queues) -> str | None:
    """Why a tenant from before Berth cannot be deleted: its stack is not recorded, so it would be left behind."""
    if metadata is None or metadata.queue is None or not has_unknown_stack(metadata, names):
        return None
    reached = names.reaches(metadata.queue.name)
    if reached and queues.messages(metadata.queue.url) is None:
        return None
    reason = (
        f"Tenant {metadata.tenant} is from before Berth, and the stack of its queue {metadata.queue.url} is not "
        "recorded. Nothing was deleted. First adopt the tenant: berth adopt. If there is no such stack, delete the "
        "queue by hand, then send the request again."
    )
    if reached:
        return reason
    return (
        f"{reason} For this, Berth must be deployed with a prefix of the queue's name in {LEGACY_PREFIXES_SETTING}: "
        "otherwise Berth cannot see whether the queue was deleted."
    )


def messages_of(metadata: Metadata | None, queues: Queues) -> dict[str, Messages]:
    """The messages in those of the tenant's queues that are not empty."""
    if metadata is None:
        return {}
    return _not_empty(_counted(metadata.queue, metadata.outbound_queue, queues))


def unfinished_work(tenant: TenantId, work: UnfinishedWork) -> dict[str, Messages]:
    """Unfinished work outside the tenant's queues, as messages that can be received."""
    return _not_empty({name: Messages(number, 0, 0) for name, number in work.unfinished(tenant).items()})


def _counted_for(run: Run, metadata: Metadata | None, stacks: Stacks, queues: Queues) -> dict[str, Messages]:
    """The messages in those of the tenant's queues that exist, even if the inbound queue is gone."""
    inbound, outbound = (metadata.queue, metadata.outbound_queue) if metadata else (None, None)
    stack = None
    if inbound is None:
        # An earlier delete has removed the queue from the metadata, and then failed.
        stack = own_stack_by(metadata, run.tenant, stacks)
        inbound = stack.queue if stack else None
    counted = _counted(inbound, outbound, queues)
    recorded = recorded_stack(metadata)
    is_adopted = recorded is not None and name_of(recorded) != stacks.names.stack_of(run.tenant)
    version = (metadata.version or metadata.last_version) if metadata else None
    has_other_template = is_adopted or (version is not None and is_operators(version))
    if _INBOUND in counted and not has_other_template:
        return counted
    # Either the inbound queue is gone, so its dead-letter queue cannot be found through it. Or an earlier system made
    # the stack, or an operator's template, which may have queues that no row names. CloudFormation lists all queues.
    stack = stack or own_stack_by(metadata, run.tenant, stacks)
    listed = stacks.queues(stack.stack_id) if stack else {}
    known = {queue.arn for queue in (inbound, outbound) if queue}
    others = {_NAMES.get(name, name): queue.url for name, queue in listed.items() if queue.arn not in known}
    return counted | _counts_of(others, queues)


def _counted(inbound: Queue | None, outbound: Queue | None, queues: Queues) -> dict[str, Messages]:
    """The messages in those of the queues that exist."""
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


def _not_empty(counted: Mapping[str, Messages]) -> dict[str, Messages]:
    return {name: messages for name, messages in counted.items() if messages.total}


def describe_messages(held: dict[str, Messages]) -> str:
    return "; ".join(f"{name}: {messages}" for name, messages in held.items())


def start(run: Run, stack: Stack | None, *, stacks: Stacks) -> Started | Gone | Again | GaveUp:
    """Delete the stack, whose messages were counted before."""
    if stack is None or condition(stack.status) is StackCondition.GONE:
        return Gone()
    if stack.status == DELETING:
        return Started(stack.stack_id)
    if condition(stack.status) is StackCondition.WORKING:
        return Again(f"the stack is still {stack.status}")
    failed = _failures(run, stack, stacks) if stack.status == DELETE_FAILED else 0
    if failed >= MAX_DELETES:
        return broken(stack)
    stacks.delete(stack.stack_id, client_token=f"{_token(run)}-{failed + 1}")
    return Started(stack.stack_id, requested=True)


def inspect(stack: Stack | None) -> Gone | Working | Again:
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
