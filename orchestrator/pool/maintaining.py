"""Keeps the pool as it should be: as many stacks as wanted, at the current release.

It is called by the scheduled reconciliation, also if no stacks are wanted any more: stacks that tenants have taken
still have to learn that, and the others are deleted. What it orders are ordinary operations.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import timedelta

from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.times import Clock
from orchestrator.common.writes import Delete, Equals
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import Member, Pool, is_free
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.releases.published import fingerprint
from orchestrator.releases.states import Choice
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.ports import NewName, TenantRows
from orchestrator.tenants.records import Metadata, Request, TenantRecords, TenantState
from orchestrator.tenants.state import state_of
from orchestrator.tenants.writes import MetadataKey

BY = "berth/pool"
"""The requester of the pool's operations."""

_MAX_ORDERS = 50
"""The maximum number of updates per call by which stacks learn their tenants. They are not urgent."""
_BEGINS_WITHIN = timedelta(minutes=10)
"""A stack whose create has left no record within this time is forgotten."""
_NAME_LENGTH = 16


@dataclass(frozen=True, slots=True)
class Maintained:
    """What was found, for the log and for ``berth doctor``."""

    ready: int = 0
    coming: int = 0
    """Stacks that are being created."""
    failed: int = 0
    learning: int = 0
    """Stacks that a tenant has taken, and that have not learned it yet."""
    requested: int = 0


@dataclass(frozen=True, slots=True)
class Maintaining:
    rows: PoolRows
    tenants: TenantRows
    releases: Releases
    lifecycle: Lifecycle
    parameters: Parameters
    choose: Callable[[], Choice]
    new_name: NewName
    clock: Clock
    size: int
    """The number of stacks that are kept ready; 0 for none."""

    def maintain(self) -> Maintained:
        read = self.rows.pool()
        if not self.size and not read.members:
            return Maintained()
        choice = self.choose()
        pool, found = read, Maintained()
        for name, member in read.members.items():
            pool, found = self._look_after(pool, TenantId(name), member, choice, found)
        alive = found.ready + found.coming + found.failed
        wanted = [self._new() for _ in range(self.size - alive)]
        for each in wanted:
            pool = pool.with_member(each.value, Member(self.clock.now()))
        # The list comes first: a stack that is not in it would be kept for ever.
        if pool == read or self.rows.store(pool):
            for each in wanted:
                self.lifecycle.create(each, Request(by=BY))
        return replace(found, requested=len(wanted))

    def _look_after(
        self, pool: Pool, warm: TenantId, member: Member, choice: Choice, found: Maintained
    ) -> tuple[Pool, Maintained]:
        records = self.tenants.records(warm)
        if records.metadata is not None and records.metadata.given_to is not None:
            if self._has_learned(records.metadata, choice, found):
                return pool.without(warm.value), found
            return pool.with_member(warm.value, replace(member, version=None)), replace(
                found, learning=found.learning + 1
            )
        state = state_of(records.metadata, records.audits)
        if state is TenantState.DELETED or (state is TenantState.UNKNOWN and self._never_began(member)):
            return pool.without(warm.value), found
        if state is TenantState.FAILED or self._is_unwanted(records, choice, found):
            self._delete(warm)
            # A stack that cannot be created counts until it is deleted, so that failures do not pile up.
            return pool.with_member(warm.value, replace(member, version=None)), replace(found, failed=found.failed + 1)
        if is_free(records.metadata) and records.metadata is not None:
            seen = replace(member, version=records.metadata.version)
            return pool.with_member(warm.value, seen), replace(found, ready=found.ready + 1)
        return pool, replace(found, coming=found.coming + 1)

    def _never_began(self, member: Member) -> bool:
        return self.clock.now() - member.since > _BEGINS_WITHIN

    def _is_unwanted(self, records: TenantRecords, choice: Choice, found: Maintained) -> bool:
        """True for a stack that is ready, and out of date or more than are wanted."""
        metadata = records.metadata
        if metadata is None or not is_free(metadata) or records.lock is not None:
            return False
        return metadata.version != choice.current or found.ready + found.coming >= self.size

    def _delete(self, warm: TenantId) -> None:
        # Nobody knows the queue, so it has no messages. If a tenant takes the stack first, the delete finds none.
        self.lifecycle.delete(warm, Request(by=BY, force=True))

    def _has_learned(self, given: Metadata, choice: Choice, found: Maintained) -> bool:
        """True once the tenant's stack names the tenant, or the tenant has another stack, or none."""
        tenant = TenantId(given.given_to or "")
        metadata = self.tenants.metadata(tenant)
        if metadata is None or metadata.stack_id != given.gone_stack_id:
            return self._forget(given)
        release = self.releases.release(metadata.version or "")
        if release is not None and metadata.deployed == fingerprint(release, self.parameters(tenant, release)):
            return self._forget(given)
        is_ready = state_of(metadata, self.tenants.audits(tenant)) is TenantState.READY
        # An update to a release that was withdrawn would be refused, and would list a healthy tenant as failed.
        if is_ready and metadata.version not in choice.withdrawn and found.learning < _MAX_ORDERS:
            self.lifecycle.upgrade(tenant, metadata.version, Request(by=BY))  # If it is refused, it is tried again.
        return False

    def _forget(self, given: Metadata) -> bool:
        """Delete the record that says who has taken the stack. Nobody asks for it any more."""
        condition = Equals("gone_stack_id", given.gone_stack_id)
        return self.tenants.apply([Delete(MetadataKey(given.tenant), condition)])

    def _new(self) -> TenantId:
        name = "".join(each for each in self.new_name().lower() if each.isalnum())
        return TenantId.parse(f"{WARM_PREFIX}{name[-_NAME_LENGTH:]}")
