"""Keeps the pool as it should be: as many stacks of each tier as wanted, at the tier's current release.

The scheduled reconciliation calls it every few minutes, also if no stacks are wanted any more: stacks that tenants have
taken still have to learn that, and the others are deleted. While stacks are wanted, a schedule of its own asks every
minute whether there is something to do. What is ordered are ordinary operations.

Two calls at once are safe. Both may order the same updates and deletes, which are started once, like all operations.
New stacks are requested only by the call that has stored the list: the row's revision lets one of them store it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from orchestrator.common.errors import UnreadableRows, Unsettled
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.times import Clock
from orchestrator.common.writes import Delete, Equals
from orchestrator.pool.ports import PoolRows
from orchestrator.pool.records import Member, MemberState, Pool, TierOfPool, is_free
from orchestrator.releases.ports import Parameters, Releases
from orchestrator.releases.published import fingerprint
from orchestrator.releases.states import Choice
from orchestrator.tenants.admission import Refused
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.ports import FleetReader, NewName, TenantRows
from orchestrator.tenants.records import Metadata, Operation, Request, Status, TenantRecords, TenantState
from orchestrator.tenants.state import root_cause_of, state_of
from orchestrator.tenants.writes import MetadataKey

BY = "berth/pool"
"""The requester of the pool's operations."""

_MAX_ORDERS = 50
"""The maximum number of updates at once, per tier, by which stacks learn their tenants. They are not urgent."""
_BEGINS_WITHIN = timedelta(minutes=20)
"""A stack that has not begun to be created within this time is given up. No call that requests stacks takes so long."""
AFTER_FAILURE = timedelta(minutes=10)
"""How long nothing is tried again after a failure. Then one stack is tried alone, until one succeeds."""
_NAME_LENGTH = 16
_MAX_PROBLEM = 500
"""The maximum length of the reason of a failure that is kept."""


@dataclass(frozen=True, slots=True)
class Maintained:
    """The number of stacks in each state, and of those that were requested."""

    ready: int = 0
    coming: int = 0
    failed: int = 0
    leaving: int = 0
    learning: int = 0
    requested: int = 0
    updating: int = 0
    """The stacks that learn their tenants by an update which was ordered or runs. Others wait, or cannot learn now."""

    def plus(self, state: MemberState) -> Maintained:
        return replace(self, **{state.value: getattr(self, state.value) + 1})

    def __add__(self, other: Maintained) -> Maintained:
        return Maintained(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))


@dataclass(frozen=True, slots=True)
class Maintaining:
    rows: PoolRows
    tenants: TenantRows
    fleet: FleetReader
    releases: Releases
    lifecycle: Lifecycle
    parameters: Parameters
    choose: Callable[[str], Choice]
    """Reads which release of a tier is current."""
    new_name: NewName
    clock: Clock
    sizes: Mapping[str, int]
    """The number of stacks that are kept ready, by tier. Empty if none are wanted."""

    def refill(self) -> Maintained | None:
        """Maintain the pool; ``None`` if nothing is to do, which costs one read of the list, and one of the index.

        A new release is not noticed here: the scheduled reconciliation replaces stacks.
        """
        return self.maintain() if self._has_work() else None

    def _has_work(self) -> bool:
        members = self.rows.pool().members
        if any(member.state is not MemberState.READY for member in members.values()):
            return True
        if Counter(member.tier for member in members.values()) != Counter(self.sizes):
            return True
        # A tenant that takes a stack does not write to the list, which many tenants at once would fight for. The index
        # lists the stacks that are still free.
        free = {
            listed.tenant.value
            for version in {member.version for member in members.values()}
            for listed in self.fleet.tenants_in(
                TenantState.READY, version=version, prefix=WARM_PREFIX, limit=len(members) + 1
            )
        }
        return free != members.keys()

    def maintain(self) -> Maintained:
        read = self.rows.pool()
        if not self.sizes and not read.members:
            return Maintained()
        tiers = sorted({*self.sizes, *read.tiers, *(member.tier for member in read.members.values())})
        choices = {tier: self.choose(tier) for tier in tiers}
        found = dict.fromkeys(tiers, Maintained())
        pool = read
        for name, member in read.members.items():
            tier = member.tier
            try:
                pool, found[tier] = self._look_after(pool, TenantId(name), member, choices[tier], found[tier])
            except (UnreadableRows, Unsettled):
                # One stack must not keep the others from being maintained. Nobody knows whether it is still ready.
                state = MemberState.LEARNING if member.state is MemberState.READY else member.state
                pool, found[tier] = _seen(pool, TenantId(name), member, state, found[tier])
        wanted: dict[TenantId, str] = {}
        for tier in tiers:
            pool = self._note(read, pool, tier, choices[tier])
            for _ in range(self._missing(pool, tier, choices[tier], found[tier])):
                each = self._new()
                wanted[each] = tier
                pool = pool.with_member(each.value, Member(self.clock.now(), tier=tier))
        # The list comes first: a stack that is not in it would be kept for ever.
        if pool != read and not self.rows.store(pool):
            wanted = {}  # Another call has changed the list, and requests the stacks.
        self._request(wanted, pool)
        return sum(found.values(), Maintained(requested=len(wanted)))

    def _request(self, wanted: Mapping[TenantId, str], stored: Pool) -> None:
        pool = replace(stored, revision=stored.revision + 1)
        for each, tier in wanted.items():
            result = self.lifecycle.create(each, Request(by=BY, tier=tier))
            if isinstance(result, Refused):
                pool = _failed(pool.without(each.value), tier, result.reason, self.clock.now())
        if pool.members != stored.members:
            self.rows.store(pool)  # If another call has changed the list meanwhile, the stacks are forgotten later.

    def _look_after(
        self, pool: Pool, warm: TenantId, member: Member, choice: Choice, found: Maintained
    ) -> tuple[Pool, Maintained]:
        records = self.tenants.records(warm)
        metadata = records.metadata
        if metadata is not None and metadata.given_to is not None:
            tenant = self._still_to_learn(metadata)
            if tenant is None and self._forget(metadata):
                return pool.without(warm.value), found
            found = found if tenant is None else self._teach(tenant, choice, found)
            return _seen(pool, warm, member, MemberState.LEARNING, found)
        state = state_of(metadata, records.audits)
        if state is TenantState.DELETED:
            return pool.without(warm.value), found
        is_lost = state is TenantState.UNKNOWN and self.clock.now() - member.since > _BEGINS_WITHIN
        if is_lost or state is TenantState.FAILED:
            if member.state is not MemberState.FAILED:
                pool = _failed(pool, member.tier, _why_failed(records, state), self.clock.now())
            if metadata is None and not records.audits:
                return pool.without(warm.value), found  # Its create was never requested.
            # The execution of its create may still come. It is refused if the delete comes first, and otherwise the
            # delete is.
            self._delete(warm, records)
            # A stack that cannot be created counts until it is deleted, so that failures do not pile up.
            return _seen(pool, warm, member, MemberState.FAILED, found)
        if self._is_unwanted(records, member, choice, found):
            self._delete(warm, records)
            return _seen(pool, warm, member, MemberState.LEAVING, found)
        if metadata is not None and is_free(metadata):
            seen = replace(member, version=metadata.version, state=MemberState.READY)
            return pool.with_member(warm.value, seen), found.plus(MemberState.READY)
        is_leaving = state is TenantState.DELETING and member.state is not MemberState.FAILED
        coming = MemberState.FAILED if member.state is MemberState.FAILED else MemberState.COMING
        return _seen(pool, warm, member, MemberState.LEAVING if is_leaving else coming, found)

    def _note(self, read: Pool, pool: Pool, tier: str, choice: Choice) -> Pool:
        """Remember since when the tier is empty, and whether its stacks can be created."""
        now, ready, noted = self.clock.now(), _ready_in(pool, tier), pool.tier(tier)
        if not self.sizes.get(tier):
            return pool.with_tier(tier, TierOfPool())
        if ready - _ready_in(read, tier) or len(ready) >= self.sizes[tier]:  # A stack was created, or none is missing.
            noted = replace(noted, problem=None, failed_at=None)
        without_release = f"The tier {tier} has no release that new tenants could get."
        if choice.current is None and noted.problem != without_release:
            noted = replace(noted, problem=without_release, failed_at=now)
        elif choice.current is not None and noted.problem == without_release:
            noted = replace(noted, problem=None, failed_at=None)
        return pool.with_tier(tier, replace(noted, empty_since=None if ready else noted.empty_since or now))

    def _missing(self, pool: Pool, tier: str, choice: Choice, found: Maintained) -> int:
        size, noted = self.sizes.get(tier, 0), pool.tier(tier)
        if choice.current is None:
            return 0
        missing = size - found.ready - found.coming - found.failed
        if noted.failed_at is not None:
            is_due = self.clock.now() - noted.failed_at >= AFTER_FAILURE and not found.coming
            missing = min(missing, 1) if is_due else 0
        # Stacks that cannot be deleted do not pile up either.
        return max(0, min(missing, 2 * size - (found.ready + found.coming + found.failed + found.leaving)))

    def _is_unwanted(self, records: TenantRecords, member: Member, choice: Choice, found: Maintained) -> bool:
        """True for a stack that is ready, and out of date or more than are wanted."""
        metadata = records.metadata
        if metadata is None or not is_free(metadata) or records.lock is not None:
            return False
        is_of_tier = metadata.version == choice.current and metadata.tier == member.tier
        return not is_of_tier or found.ready + found.coming >= self.sizes.get(member.tier, 0)

    def _delete(self, warm: TenantId, records: TenantRecords) -> None:
        """Delete the stack. A delete that has failed is not repeated at once."""
        now = self.clock.now()
        if any(
            audit.operation is Operation.DELETE
            and audit.status is Status.FAILURE
            and now - audit.updated_at < AFTER_FAILURE
            for audit in records.audits
        ):
            return
        # Nobody knows the queue, so it has no messages. If a tenant takes the stack first, the delete finds none.
        self.lifecycle.delete(warm, Request(by=BY, force=True))

    def _still_to_learn(self, given: Metadata) -> Metadata | None:
        """The tenant; ``None`` once its stack names it, or it has another stack, or none."""
        tenant = TenantId(given.given_to or "")
        metadata = self.tenants.metadata(tenant)
        if metadata is None or metadata.stack_id != given.gone_stack_id:
            return None
        release = self.releases.release(metadata.version or "")
        if release is not None and metadata.deployed == fingerprint(release, self.parameters(tenant, release)):
            return None
        return metadata

    def _teach(self, tenant: Metadata, choice: Choice, found: Maintained) -> Maintained:
        """Order the update by which the stack learns its tenant.

        Only updates that were ordered or run count against their maximum: tenants whose stacks cannot learn now, for
        example because an update has failed, must not keep the others from it.
        """
        # An update to a release that was withdrawn would be refused, and would list a healthy tenant as failed. One of
        # a tenant that is pinned to another release is refused until the tenant is unpinned.
        if tenant.version in choice.withdrawn or tenant.pinned_version not in (None, tenant.version):
            return found
        state = state_of(tenant, self.tenants.audits(tenant.tenant))
        if state is TenantState.READY and found.updating < _MAX_ORDERS:
            ordered = self.lifecycle.upgrade(tenant.tenant, tenant.version, Request(by=BY))
            # If nothing was started, it is tried again.
            return replace(found, updating=found.updating + 1) if isinstance(ordered, Accepted) else found
        return replace(found, updating=found.updating + 1) if state is TenantState.UPDATING else found

    def _forget(self, given: Metadata) -> bool:
        """Delete the record that says who has taken the stack. Nobody asks for it any more."""
        condition = Equals("gone_stack_id", given.gone_stack_id)
        return self.tenants.apply([Delete(MetadataKey(given.tenant), condition)])

    def _new(self) -> TenantId:
        name = "".join(each for each in self.new_name().lower() if each.isalnum())
        return TenantId.parse(f"{WARM_PREFIX}{name[-_NAME_LENGTH:]}")


def _seen(pool: Pool, warm: TenantId, member: Member, state: MemberState, found: Maintained) -> tuple[Pool, Maintained]:
    """The stack was seen in this state, in which no tenant can take it."""
    return pool.with_member(warm.value, replace(member, version=None, state=state)), found.plus(state)


def _failed(pool: Pool, tier: str, problem: str, at: datetime) -> Pool:
    return pool.with_tier(tier, replace(pool.tier(tier), problem=problem[:_MAX_PROBLEM], failed_at=at))


def _why_failed(records: TenantRecords, state: TenantState) -> str:
    if state is TenantState.FAILED:
        cause = root_cause_of(records.metadata, records.audits)
        return str(cause) if cause else "The reason is not recorded."
    if records.metadata is not None and records.metadata.was_served:
        return "A stack that was ready has lost its queue."
    return "The create of a stack has left no record."


def _ready_in(pool: Pool, tier: str) -> set[str]:
    return {name for name, each in pool.members.items() if each.tier == tier and each.state is MemberState.READY}
