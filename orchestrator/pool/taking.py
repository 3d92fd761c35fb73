"""A new tenant takes a stack that is kept ready.

One transaction withdraws the stack from its own record, and publishes it in the tenant's. Its condition is that the
stack's record still has the stack, that no operation is at work on it, and that nothing is recorded about the tenant.
So no stack is ever given to two tenants, and no tenant takes two, whatever crashes and however many ask at once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import datetime

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.common.writes import Check, Equals, Missing, Put, RowAbsent, Update, all_of
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import is_free
from orchestrator.tenants.operation_rows import LISTING_FIELDS, audit_written, history_appended
from orchestrator.tenants.ports import Executions, TenantRows
from orchestrator.tenants.ready import Ready, ready
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, Run, Status, TenantState
from orchestrator.tenants.writes import AuditKey, LockKey, MetadataKey, Transition

_MAX_TRIES = 20
"""The number of stacks that are tried. The list is some minutes old, and others may have taken them."""

TAKEN = 0
"""The number of the attempt that is recorded. A create that was started at the same moment is a later attempt, and
finds the stack that the tenant has."""

_OF_THE_TENANT = frozenset(
    {
        *("tenant", "created_at", "updated_at", "created_by", "withdrawn_by", "pinned_version", "labels", "labelled"),
        *("asked_for", "asked_for_at", "gone_stack_id", "last_version", "given_to"),
    }
)
"""The fields of the metadata that say nothing about the stack."""
_KEPT = frozenset({"tenant", "given_to", "gone_stack_id"})


@dataclass(frozen=True, slots=True)
class Taking:
    """Implements :class:`orchestrator.tenants.ports.WarmPool`."""

    rows: PoolRows
    tenants: TenantRows
    executions: Executions
    clock: Clock

    def take(self, create: Attempt, request: Request) -> Ready | None:
        candidates = self.rows.pool().ready_at(create.version)
        for warm in in_order(candidates, create.tenant)[:_MAX_TRIES]:
            metadata = self.tenants.metadata(warm)
            if metadata is None or not is_free(metadata) or metadata.version != create.version:
                continue
            attempt = Attempt(create.tenant, Operation.CREATE, create.version, TAKEN)
            run = Run(attempt, self.executions.execution_of(attempt), self.clock.now(), request)
            if self.tenants.apply(taken(metadata, run)):
                return ready(metadata)
            if (found := self.tenants.metadata(create.tenant)) is not None:
                return ready(found)  # Another caller has asked for the same tenant.
        return None


def in_order(candidates: Sequence[TenantId], tenant: TenantId) -> list[TenantId]:
    """The stacks in an order of the tenant's own, so that tenants that come at once seldom try the same stack."""
    return sorted(candidates, key=lambda warm: hashlib.sha256(f"{tenant}#{warm}".encode()).digest())


def taken(warm: Metadata, run: Run) -> Transition:
    """The stack is the tenant's from now on."""
    return [*_withdrawn(warm, run), *_published(warm, run, run.started_at)]


def _withdrawn(warm: Metadata, run: Run) -> Transition:
    gone = [each.name for each in fields(Metadata) if each.name not in _KEPT and each.name != "labelled"]
    still_free = all_of(
        Equals("stack_id", warm.stack_id),
        Equals("queue", warm.queue),
        Equals("version", warm.version),
        Missing("withdrawn_by"),
        Missing("given_to"),
    )
    given = {"given_to": run.tenant.value, "gone_stack_id": warm.stack_id}
    return [
        Check(LockKey(warm.tenant), RowAbsent()),
        Update(MetadataKey(warm.tenant), given, clears=[*gone, *LISTING_FIELDS], condition=still_free),
    ]


def _published(warm: Metadata, run: Run, at: datetime) -> Transition:
    """Everything that is recorded about the stack is recorded for the tenant.

    The fingerprint of the stack names its own id as the tenant, so that the next update changes the stack.
    """
    of_the_stack = {each.name: getattr(warm, each.name) for each in fields(Metadata) if each.name not in _OF_THE_TENANT}
    published = {name: value for name, value in of_the_stack.items() if value is not None} | {
        "created_at": at,
        "updated_at": at,
        "created_by": run.request.requester,
        "listed_state": TenantState.READY,
        "listed_version": warm.version,
    }
    return [
        Put(MetadataKey(run.tenant), published, RowAbsent()),
        Check(LockKey(run.tenant), RowAbsent()),
        Check(AuditKey(run.tenant, Operation.DELETE, None), RowAbsent()),
        audit_written(run, Status.SUCCESS, at, condition=RowAbsent()),
        history_appended(run, Status.SUCCESS, at),
    ]
