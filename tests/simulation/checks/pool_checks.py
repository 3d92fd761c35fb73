"""The promises about the pool: who joins it, and that a tenant's messages in it stay within the tenant's reach."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from orchestrator.common.tiers import POOLED
from orchestrator.tenants.pooling import POOL_RETENTION
from orchestrator.tenants.records import Metadata, Operation, Status

SKEW = timedelta(seconds=5)
"""How much the clocks of functions may differ, at most."""

if TYPE_CHECKING:
    from tests.simulation.actors.callers import Caller
    from tests.simulation.checks.invariants import Rows, TenantChecks


def check_joined(checks: TenantChecks, caller: Caller, was: Rows, now: Rows) -> None:
    """The tenant has joined the pool, by one write."""
    tenant = checks.tenant
    assert was.owner is None, f"{tenant} joins the pool, but belongs to {was.owner}"
    assert now.owner is None, f"{tenant} joins the pool, and belongs to {now.owner}"
    assert checks.served is None, f"{tenant} joins the pool, but is served {checks.served}"
    assert not checks.living, f"{tenant} joins the pool, but has {checks.living}"
    accepted = [execution for execution in checks.requests.not_deleted_since() if checks.is_to_come(execution)]
    assert not accepted, f"{tenant} joins the pool, but {accepted[0]} had been accepted before"
    if checks.to_go:
        assert caller.wants_it, f"{caller} brings back a deleted tenant into the pool unasked"
        checks.requests.is_gone()
        checks.seen["joined the pool after a delete"] += 1
    assert now.served, f"{tenant} has joined the pool, and has no queue"
    assert now.served[0] in checks.pool, f"{tenant} has joined the pool, and is served {now.served}"
    written = now.audits[Operation.CREATE, POOLED]
    assert written.status is Status.SUCCESS
    assert now.entries == was.entries + 1, f"{tenant} joins the pool without a trace"
    checks.requests.joined(asked_at=checks.now if caller.wants_it else None)
    checks.requests.is_there(written.request.requester)
    checks.served, checks.withdrawn, checks.vanished = now.served, None, None
    checks.deleted = checks.to_go = False
    checks.seen["joined the pool"] += 1


def check_served_of_pool(checks: TenantChecks, metadata: Metadata) -> None:
    """A tenant that is served has one queue, and is told of the one where its earlier messages may be."""
    is_shared = metadata.queue in checks.pool
    assert is_shared == metadata.is_pooled, (
        f"{checks.tenant} is of the tier {metadata.tier}, and is served {metadata.queue}"
    )
    for queue in checks.pool:
        left = [sent for sent in checks.sent_to(queue) if metadata.created_at and sent >= metadata.created_at]
        if not left or queue == metadata.queue:
            continue
        is_named, until = metadata.former_queue == queue, metadata.former_queue_until
        assert is_named, f"{checks.tenant} is not told of {queue.name}, where {len(left)} of its messages are"
        expire_at = max(left) + POOL_RETENTION
        assert until is not None
        assert until + SKEW >= expire_at, (
            f"{checks.tenant} is told of {queue.name} until {until}, and its messages there expire at {expire_at}"
        )
        checks.seen["left messages in the pool"] += 1
