"""The pool: queues that tenants of the tier ``pooled`` share, without stacks of their own.

A tenant gets its queue of the pool by one transaction, and its record is the authority from then on: the hash of its id
decides only where a new tenant goes, so that another number of queues moves nobody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from orchestrator.common.errors import Unsettled
from orchestrator.tenants.admission import Refusal, Refused, tenant_deleted
from orchestrator.tenants.records import Audit, Metadata, Queue, Request, TenantState
from orchestrator.tenants.state import is_delete_in_effect, is_deleted, state_of, waiting_create

if TYPE_CHECKING:
    from orchestrator.common.tenant_ids import TenantId
    from orchestrator.common.times import Clock
    from orchestrator.tenants.ports import PoolLedger, TenantReader

POOL_RETENTION = timedelta(days=4)
"""How long messages stay in a queue of the pool. SQS does not count the messages of one tenant, so this is also how
long a tenant that has left the pool may still have messages there."""

_ROUNDS = 10


@dataclass(frozen=True, slots=True)
class Pool:
    queues: Sequence[Queue]
    """Empty if the control plane has no pool."""
    reader: TenantReader
    ledger: PoolLedger
    clock: Clock

    def queue_of(self, tenant: TenantId) -> Queue:
        """The queue for a new tenant. It does not depend on the process: Python's own hashes do."""
        digest = hashlib.sha256(tenant.value.encode()).digest()
        return self.queues[int.from_bytes(digest[:8]) % len(self.queues)]

    def join(self, tenant: TenantId, request: Request) -> Metadata | Refused:
        """Give the tenant a queue of the pool, or return the metadata of a tenant that has a queue already."""
        for _ in range(_ROUNDS):
            # The audits are read before the metadata, so a create that finishes in between is seen as published.
            audits, metadata = self.reader.audits(tenant), self.reader.metadata(tenant)
            if metadata is not None and metadata.published:
                return metadata
            now = self.clock.now()
            if refused := why_not_pooled(tenant, request, metadata, audits, now):
                return refused
            self.ledger.join_pool(tenant, self.queue_of(tenant), request, at=now)
        raise Unsettled(
            f"Tenant {tenant} did not get a queue of the pool, because others kept changing its records at the same "
            "time. Send the request again."
        )


def why_not_pooled(
    tenant: TenantId, request: Request, metadata: Metadata | None, audits: Sequence[Audit], now: datetime
) -> Refused | None:
    """Why a tenant that is not served does not get a queue of the pool; ``None`` if it does.

    A tenant that has, or may have, a stack of its own must not be without it: nobody would delete the stack. A create
    that was accepted and has not begun would give the tenant a stack after all.
    """
    if waiting_create(audits) or (metadata is not None and metadata.create_accepted_at(now)):
        return _about_to_be_created(tenant)
    if is_deleted(audits):
        if not request.explicit:
            return tenant_deleted(tenant)
    elif is_delete_in_effect(audits):
        return _remains(tenant)  # The delete has failed, perhaps because CloudFormation could not delete the stack.
    elif state_of(metadata, audits) is not TenantState.UNKNOWN or audits:
        return _remains(tenant)
    if metadata is not None and (metadata.stack_id is not None or metadata.had_own_queue):
        return _remains(tenant)
    return None


def _about_to_be_created(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.BUSY,
        f"Tenant {tenant} did not get a queue of the pool, because another create of it was accepted before. See what "
        f"becomes of that: berth tenant {tenant}",
    )


def _remains(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.OTHER_TIER,
        f"Tenant {tenant} did not get a queue of the pool, because it has, or may have, a stack of its own. Delete it "
        f"first: berth delete {tenant} --wait. Then: berth create {tenant} --tier pooled",
    )


def no_pool(tenant: TenantId) -> Refused:
    return Refused(
        Refusal.NO_RELEASE,
        f"Nothing was done about tenant {tenant}, because there is no pool. To have one, deploy with "
        "berth:pooledQueues.",
    )


def not_into_pool(tenant: TenantId, pool: Pool | None) -> Refused:
    """The refusal of a move into the pool. A delete is advised only if the tenant can be created there again."""
    if pool is None or not pool.queues:
        return no_pool(tenant)
    return Refused(
        Refusal.OTHER_TIER,
        f"Tenant {tenant} has a queue of its own, which a move into the pool would have to delete, with messages that "
        "are still sent to it. Nothing was changed. To serve it from the pool, stop its senders, delete it, and create "
        f"it again: berth delete {tenant} --drain 600 --wait && berth create {tenant} --tier pooled",
    )


def not_drained(tenant: TenantId, queue: Queue) -> Refused:
    """The refusal of a delete that is to wait until a queue of the pool is empty."""
    return Refused(
        Refusal.OTHER_TIER,
        f"Tenant {tenant} shares the queue {queue.name} with others, and SQS does not count messages by group, so "
        "nobody can wait until the tenant's own messages were received. Nothing was deleted. Its messages stay in the "
        f"shared queue until they are received or expire: berth delete {tenant}, without --drain",
    )


def pool_joined(metadata: Metadata) -> str:
    tenant, queue = metadata.tenant, metadata.queue.name if metadata.queue else ""
    return f"Tenant {tenant} shares the queue {queue} of the pool. Send its messages with the message group {tenant}."
