"""Which tenants a rollout moves, in which stage; and who is left out, and why. Pure functions."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import Item, Share, Skip, Skipped, StageWish, TenantOutcome, Wish
from orchestrator.tenants.records import TenantState

NAMED_AT_MOST = 20
"""How many of those that are left out for one reason are named."""

_BUSY = frozenset({TenantState.PROVISIONING, TenantState.UPDATING, TenantState.DELETING})
_SERVED = frozenset({TenantState.READY, TenantState.UPDATE_FAILED})


@dataclass(frozen=True, slots=True)
class Candidate:
    """A tenant, as far as it matters here."""

    tenant: TenantId
    state: TenantState
    version: str | None
    pinned_version: str | None
    labels: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Selected:
    items: Sequence[Item]
    """In the order of their turns."""
    skipped: Mapping[Skip, Skipped]


@dataclass(slots=True)
class _LeftOut:
    tenants: dict[Skip, list[str]] = field(default_factory=dict)

    def add(self, tenant: TenantId, why: Skip) -> None:
        self.tenants.setdefault(why, []).append(tenant.value)

    def told(self) -> dict[Skip, Skipped]:
        return {
            why: Skipped(len(names), tuple(sorted(names)[:NAMED_AT_MOST]))
            for why, names in sorted(self.tenants.items())
        }


def select(wish: Wish, version: str, fleet: Iterable[Candidate]) -> Selected:
    """Of the fleet, those that the wish is about and that can be moved."""
    asked_for = None if wish.tenants is None else frozenset(wish.tenants)
    left_out = _LeftOut()
    found: set[TenantId] = set()
    items: list[Item] = []
    # A tenant that changes state while the fleet is being read is listed twice: the later sighting counts.
    for tenant in {candidate.tenant: candidate for candidate in fleet}.values():
        if asked_for is not None and tenant.tenant not in asked_for:
            continue
        found.add(tenant.tenant)
        if not has_labels(tenant, wish.labels):
            continue
        why = _why_not(wish, tenant, version)
        if why is None:
            items.append(Item(tenant.tenant, version))
        else:
            left_out.add(tenant.tenant, why)
    for unknown in (asked_for or frozenset()) - found:
        left_out.add(unknown, Skip.UNKNOWN)
    return Selected(_some_of(wish.share, in_order(items, version)), left_out.told())


def select_to_return(
    wish: Wish,
    moved: Iterable[TenantOutcome],
    fleet: Mapping[TenantId, Candidate],
    *,
    under_way: Collection[TenantId] = (),
) -> Selected:
    """Those that another rollout has moved, each back to where it was, or to the version wished for.

    ``under_way`` are those whose update is yet to begin: whatever is done now, it would be undone by that.
    """
    left_out = _LeftOut()
    items: list[Item] = []
    for outcome in moved:
        tenant, back = outcome.item.tenant, wish.version or outcome.from_version
        now = fleet.get(tenant)
        if now is not None and not has_labels(now, wish.labels):
            continue
        there = now is not None and now.state is not TenantState.DELETED
        if tenant in under_way:
            left_out.add(tenant, Skip.UNDER_WAY)
            continue
        if now is not None and there and now.version not in (outcome.item.version, back):
            left_out.add(tenant, Skip.MOVED_SINCE)
        elif back is None:
            left_out.add(tenant, Skip.UNKNOWN)  # Nobody knows where it was.
        else:
            items.append(Item(tenant, back))
    return _select_these(wish, items, fleet, left_out)


def select_again(wish: Wish, failed: Iterable[TenantOutcome], fleet: Mapping[TenantId, Candidate]) -> Selected:
    """Those that failed in another rollout, each to where it was to be moved."""
    left_out = _LeftOut()
    items: list[Item] = []
    for outcome in failed:
        now = fleet.get(outcome.item.tenant)
        at = now.version if now is not None and now.state in _SERVED else None
        if (
            at is not None
            and outcome.from_version is not None
            and at not in (outcome.from_version, outcome.item.version)
        ):
            left_out.add(outcome.item.tenant, Skip.MOVED_SINCE)
        else:
            items.append(outcome.item)
    return _select_these(wish, items, fleet, left_out)


def _select_these(
    wish: Wish, wanted: Iterable[Item], fleet: Mapping[TenantId, Candidate], left_out: _LeftOut
) -> Selected:
    items: list[Item] = []
    for item in wanted:
        now = fleet.get(item.tenant)
        # It had a turn once, so it was there: a tenant that is not there any more was deleted.
        why = Skip.DELETED if now is None else _why_not(wish, now, item.version)
        if why is None:
            items.append(item)
        else:
            left_out.add(item.tenant, why)
    return Selected(_some_of(wish.share, in_order(items, wish.version or "")), left_out.told())


def skip_reason(
    version: str,
    *,
    state: TenantState,
    at: str | None,
    pinned_to: str | None,
    allow_downgrade: bool,
    waits_for_busy: bool,
) -> Skip | None:
    """Why a tenant in that state, at that version, cannot or need not be moved to the release.

    A busy tenant may be served again when whoever is at it has ended: also a delete may be refused. Its update waits
    for that. A dry run changes nothing, so it has nothing to wait with.
    """
    if state is TenantState.DELETED:
        return Skip.DELETED
    busy = state in _BUSY
    if busy and not waits_for_busy:
        return Skip.BUSY
    if not busy and (state not in _SERVED or at is None):
        return Skip.NOT_PROVISIONED
    if state is TenantState.PROVISIONING:
        at = None  # Its row may still say where it was before it was deleted.
    moves = state is TenantState.UPDATING
    if at == version and not moves:
        return Skip.CURRENT
    if pinned_to not in (None, version):
        return Skip.PINNED
    if at is not None and not moves and is_older(version, than=at) and not allow_downgrade:
        return Skip.NEWER
    return None


def _why_not(wish: Wish, tenant: Candidate, version: str) -> Skip | None:
    return skip_reason(
        version,
        state=tenant.state,
        at=tenant.version,
        pinned_to=tenant.pinned_version,
        allow_downgrade=wish.allow_downgrade,
        waits_for_busy=not wish.dry_run,
    )


def in_order(items: Iterable[Item], salt: str) -> list[Item]:
    """By chance, but always the same: a dry run has the same canary as the rollout, and other releases have others."""
    return sorted(items, key=lambda item: hashlib.sha256(f"{salt}/{item.tenant}".encode()).digest())


def divide(items: Sequence[Item], stages: Sequence[StageWish]) -> list[Sequence[Item]]:
    """The tenants of each stage: shares are of all of them. Stages that nobody is left for are empty."""
    divided: list[Sequence[Item]] = []
    begun = 0
    for stage in stages:
        left = len(items) - begun
        size = left if stage.size is None else min(left, stage.size.size_of(len(items)))
        divided.append(items[begun : begun + size])
        begun += size
    return divided


def has_labels(tenant: Candidate, labels: Mapping[str, str]) -> bool:
    return all(tenant.labels.get(name) == value for name, value in labels.items())


def _some_of(share: Share | None, items: Sequence[Item]) -> Sequence[Item]:
    return items if share is None else items[: share.size_of(len(items))]
