"""Pure functions that select the tenants of a rollout, divide them into stages, and say why others are skipped."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.common.versions import is_older
from orchestrator.rollouts.records import Item, Repairs, Share, Skip, Skipped, Spec, StageSpec, TenantOutcome
from orchestrator.tenants.listings import TenantInBrief
from orchestrator.tenants.records import TenantState

MAX_NAMED = 20
"""The maximum number of skipped tenants that are named per reason."""

_BUSY = frozenset({TenantState.PROVISIONING, TenantState.UPDATING, TenantState.DELETING})
_SERVED = frozenset({TenantState.READY, TenantState.UPDATE_FAILED})


Candidate = TenantInBrief
"""A tenant that may be selected."""


@dataclass(frozen=True, slots=True)
class Selected:
    items: Sequence[Item]
    """The tenants to move, in the order of their turns."""
    skipped: Mapping[Skip, Skipped]
    repairs: Repairs | None = None
    """The tenants among ``items`` that are at their target version already. Their last update failed."""


@dataclass(slots=True)
class _SkippedTenants:
    tenants: dict[Skip, list[str]] = field(default_factory=dict)

    def add(self, tenant: TenantId, reason: Skip) -> None:
        self.tenants.setdefault(reason, []).append(tenant.value)

    def summary(self) -> dict[Skip, Skipped]:
        return {
            reason: Skipped(len(names), tuple(sorted(names)[:MAX_NAMED]))
            for reason, names in sorted(self.tenants.items())
        }


def select(spec: Spec, version: str, fleet: Iterable[Candidate]) -> Selected:
    """Select the tenants of the fleet that the spec asks for and that can be moved."""
    requested = None if spec.tenants is None else frozenset(spec.tenants)
    skipped = _SkippedTenants()
    found: set[TenantId] = set()
    items: list[Item] = []
    # A tenant that changes state while the fleet is being read may be listed twice: the later entry counts.
    candidates = {candidate.tenant: candidate for candidate in fleet}
    for tenant in candidates.values():
        if requested is not None and tenant.tenant not in requested:
            continue
        found.add(tenant.tenant)
        if not has_labels(tenant, spec.labels):
            continue
        reason = _skip_reason(spec, tenant, version)
        if reason is None:
            items.append(Item(tenant.tenant, version))
        else:
            skipped.add(tenant.tenant, reason)
    for unknown in (requested or frozenset()) - found:
        skipped.add(unknown, Skip.UNKNOWN)
    taken = _take(spec.share, in_order(items, version))
    return Selected(taken, skipped.summary(), _repairs(taken, candidates))


def select_for_undo(
    spec: Spec,
    moved: Iterable[TenantOutcome],
    fleet: Mapping[TenantId, Candidate],
    *,
    under_way: Collection[TenantId] = (),
    withdrawn: Collection[str] = (),
) -> Selected:
    """Select the tenants that another rollout has moved: each goes back to its earlier version, or to the spec's.

    ``under_way`` are the tenants whose update has not begun yet. That update would reverse the undo afterwards.
    Nobody goes back to a release that was ``withdrawn``.
    """
    skipped = _SkippedTenants()
    items: list[Item] = []
    for outcome in moved:
        tenant, back = outcome.item.tenant, spec.version or outcome.from_version
        now = fleet.get(tenant)
        if now is not None and not has_labels(now, spec.labels):
            continue
        exists = now is not None and now.state is not TenantState.DELETED
        if tenant in under_way:
            skipped.add(tenant, Skip.UNDER_WAY)
            continue
        if now is not None and exists and now.version not in (outcome.item.version, back):
            skipped.add(tenant, Skip.MOVED_SINCE)
        elif back is None:
            skipped.add(tenant, Skip.UNKNOWN)  # The tenant's earlier version is not on record.
        elif back in withdrawn:
            skipped.add(tenant, Skip.WITHDRAWN)
        else:
            items.append(Item(tenant, back))
    return _select_these(spec, items, fleet, skipped)


def select_for_retry(spec: Spec, failed: Iterable[TenantOutcome], fleet: Mapping[TenantId, Candidate]) -> Selected:
    """Select the tenants that failed in another rollout. Each keeps its target version."""
    skipped = _SkippedTenants()
    items: list[Item] = []
    for outcome in failed:
        now = fleet.get(outcome.item.tenant)
        at = now.version if now is not None and now.state in _SERVED else None
        if (
            at is not None
            and outcome.from_version is not None
            and at not in (outcome.from_version, outcome.item.version)
        ):
            skipped.add(outcome.item.tenant, Skip.MOVED_SINCE)
        else:
            items.append(outcome.item)
    return _select_these(spec, items, fleet, skipped)


def _select_these(
    spec: Spec, candidates: Iterable[Item], fleet: Mapping[TenantId, Candidate], skipped: _SkippedTenants
) -> Selected:
    items: list[Item] = []
    for item in candidates:
        now = fleet.get(item.tenant)
        # The tenant had a turn in an earlier rollout, so it existed: if it is not listed any more, it was deleted.
        reason = Skip.DELETED if now is None else _skip_reason(spec, now, item.version)
        if reason is None:
            items.append(item)
        else:
            skipped.add(item.tenant, reason)
    taken = _take(spec.share, in_order(items, spec.version or ""))
    return Selected(taken, skipped.summary(), _repairs(taken, fleet))


def _repairs(items: Iterable[Item], fleet: Mapping[TenantId, Candidate]) -> Repairs | None:
    names = sorted(item.tenant.value for item in items if _needs_repair(fleet[item.tenant], item.version))
    return Repairs(len(names), tuple(names[:MAX_NAMED])) if names else None


def _needs_repair(tenant: Candidate, version: str) -> bool:
    return tenant.version == version and tenant.state is TenantState.UPDATE_FAILED


def skip_reason(
    version: str,
    *,
    state: TenantState,
    at: str | None,
    pinned_to: str | None,
    allow_downgrade: bool,
    waits_for_busy: bool,
) -> Skip | None:
    """The reason why a tenant in that state, at that version, cannot or need not be moved to the release.

    A busy tenant may be served again when its current operation has ended, even if that is a delete, which may be
    refused. The tenant's update waits for the operation. A dry run starts no update that could wait.
    """
    if state is TenantState.DELETED:
        return Skip.DELETED
    busy = state in _BUSY
    if busy and not waits_for_busy:
        return Skip.BUSY
    if not busy and (state not in _SERVED or at is None):
        return Skip.NOT_PROVISIONED
    if state is TenantState.PROVISIONING:
        at = None  # The tenant's row may still have the version from before the tenant was deleted.
    updating = state is TenantState.UPDATING
    # After a failed update, an update to the tenant's own version repairs its stack.
    if at == version and not updating and state is not TenantState.UPDATE_FAILED:
        return Skip.CURRENT
    if pinned_to not in (None, version):
        return Skip.PINNED
    if at is not None and not updating and is_older(version, than=at) and not allow_downgrade:
        return Skip.NEWER
    return None


def is_of_another_tier(spec: Spec, tier: str) -> bool:
    """True if the rollout does not move tenants of this tier.

    An undo without a version moves each tenant back to a release of its own tier.
    """
    return spec.version is not None and tier != (spec.tier or STANDARD)


def _skip_reason(spec: Spec, tenant: Candidate, version: str) -> Skip | None:
    if is_of_another_tier(spec, tenant.tier) and tenant.state is not TenantState.DELETED:
        return Skip.OTHER_TIER
    return skip_reason(
        version,
        state=tenant.state,
        at=tenant.version,
        pinned_to=tenant.pinned_version,
        allow_downgrade=spec.allow_downgrade,
        waits_for_busy=not spec.dry_run,
    )


def in_order(items: Iterable[Item], salt: str) -> list[Item]:
    """Sort the tenants pseudo-randomly.

    The order depends only on the tenants and the salt, which is the release: a dry run reviews the same canary as the
    rollout, and each release has another canary.
    """
    return sorted(items, key=lambda item: hashlib.sha256(f"{salt}/{item.tenant}".encode()).digest())


def divide(items: Sequence[Item], stages: Sequence[StageSpec]) -> list[Sequence[Item]]:
    """The tenants of each stage. A stage's size is a share of all tenants. Stages for which none are left are empty."""
    divided: list[Sequence[Item]] = []
    taken = 0
    for stage in stages:
        left = len(items) - taken
        size = left if stage.size is None else min(left, stage.size.size_of(len(items)))
        divided.append(items[taken : taken + size])
        taken += size
    return divided


def has_labels(tenant: Candidate, labels: Mapping[str, str]) -> bool:
    return all(tenant.labels.get(name) == value for name, value in labels.items())


def _take(share: Share | None, items: Sequence[Item]) -> Sequence[Item]:
    return items if share is None else items[: share.size_of(len(items))]
