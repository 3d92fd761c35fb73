"""A new tenant takes a stack that is kept ready.

One transaction withdraws the stack from its own record, and publishes it in the tenant's. Its condition is that the
stack's record still is as it was read, that no operation is at work on it, and that nothing is recorded about the
tenant. So no stack is ever given to two tenants, and no tenant takes two, whatever crashes and however many ask at
once.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from itertools import islice

from orchestrator.common.errors import Contended
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.common.writes import Check, Missing, Put, RowAbsent, all_of, still
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.seen import SeenStacks
from orchestrator.tenants.operation_rows import announced, audit_written, history_appended
from orchestrator.tenants.ports import Executions, TenantRows
from orchestrator.tenants.ready import Ready, ready
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, Run, Status, TenantState
from orchestrator.tenants.writes import AuditKey, LockKey, MetadataKey, Transition

_MAX_TRIES = 20
"""The number of stacks that are tried. Others may take them at the same moment."""
_MAX_SEEN_TRIES = 2
"""The number of stacks that are tried as they were seen earlier. If others have taken them, they have taken more."""
_READ_AT_ONCE = 25
"""The number of stacks whose records are read in one request. The list is some minutes old."""

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
_OF_THE_STACK = tuple(each.name for each in fields(Metadata) if each.name not in _OF_THE_TENANT)


@dataclass(frozen=True, slots=True)
class Taking:
    """Implements :class:`orchestrator.tenants.ports.WarmPool`."""

    rows: PoolRows
    tenants: TenantRows
    executions: Executions
    clock: Clock
    seen: SeenStacks

    def take(self, create: Attempt, request: Request) -> Ready | None:
        attempt = Attempt(create.tenant, Operation.CREATE, create.version, TAKEN)
        run = Run(attempt, self.executions.execution_of(attempt), self.clock.now(), request)
        for warm in islice(self._candidates(create), _MAX_TRIES):
            self.seen.tried(warm.tenant)
            if self._is_given(warm, run):
                return ready(warm)
            if (found := self.tenants.metadata(create.tenant)) is not None:
                return ready(found)  # Another caller has asked for the same tenant.
        return None

    def _candidates(self, create: Attempt) -> Iterator[Metadata]:
        """The stacks that this process has seen to be free, then those that are free now."""
        free = self.seen.free(create.version, self.clock.now())
        for warm in in_order(list(free), create.tenant)[:_MAX_SEEN_TRIES]:
            yield free[warm]
        left = self.seen.worth_reading(self.rows.pool().ready_at(create.version))
        for some in _batches(in_order(left, create.tenant)):
            self.seen.saw(some, self.tenants.metadata_of(some), self.clock.now())
            free = self.seen.free(create.version, self.clock.now())
            for warm in in_order(list(free), create.tenant):
                yield free[warm]

    def _is_given(self, warm: Metadata, run: Run) -> bool:
        try:
            return self.tenants.apply(taken(warm, run))
        except Contended:
            return False  # Another call is taking this stack, or one for this tenant.


def in_order(candidates: Sequence[TenantId], tenant: TenantId) -> list[TenantId]:
    """The stacks in an order of the tenant's own, so that tenants that come at once seldom try the same stack."""
    return sorted(candidates, key=lambda warm: hashlib.sha256(f"{tenant}#{warm}".encode()).digest())


def _batches(warm: Sequence[TenantId]) -> Iterator[Sequence[TenantId]]:
    for start in range(0, len(warm), _READ_AT_ONCE):
        yield warm[start : start + _READ_AT_ONCE]


def taken(warm: Metadata, run: Run) -> Transition:
    """The stack is the tenant's from now on."""
    of_the_stack = {name: getattr(warm, name) or None for name in _OF_THE_STACK}
    return [*_withdrawn(warm, run, of_the_stack), *_published(warm, run, of_the_stack, run.started_at)]


def _withdrawn(warm: Metadata, run: Run, of_the_stack: Mapping[str, object]) -> Transition:
    """The stack's record keeps only the tenant that has taken the stack.

    The record may have been read a while ago, so everything that the tenant gets of it must be as it was.
    """
    unchanged = (still(name, value) for name, value in of_the_stack.items())
    still_free = all_of(*unchanged, Missing("withdrawn_by"), Missing("given_to"))
    given = {"given_to": run.tenant.value, "gone_stack_id": warm.stack_id}
    return [Check(LockKey(warm.tenant), RowAbsent()), Put(MetadataKey(warm.tenant), given, still_free)]


def _published(warm: Metadata, run: Run, of_the_stack: Mapping[str, object], at: datetime) -> Transition:
    """Everything that is recorded about the stack is recorded for the tenant.

    The fingerprint of the stack names its own id as the tenant, so that the next update changes the stack.
    """
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
        announced(run, Status.SUCCESS, at),
    ]
