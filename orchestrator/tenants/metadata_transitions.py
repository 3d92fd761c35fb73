"""The rules for changes of a tenant's metadata outside its operations: descriptions, the stack's queue, corrections.

Pure functions from records to transitions, as in :mod:`orchestrator.tenants.operation_transitions`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.writes import (
    Check,
    Condition,
    Differs,
    Equals,
    Missing,
    Present,
    RowAbsent,
    RowExists,
    Update,
    all_of,
    any_of,
    still,
)
from orchestrator.tenants.changes import correction
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.records import UNKNOWN_CREATOR, Attempt, Audit, Metadata, Queue, Request, TenantState
from orchestrator.tenants.state import state_of
from orchestrator.tenants.writes import Announce, Append, LockKey, MetadataKey, Transition

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Pin, SeenTenant
    from orchestrator.tenants.stack_ports import Stack


def stack_not_gone(stack_id: str) -> Condition:
    """A condition of every write that names a tenant's stack.

    A stack that has withdrawn its queue is never served again.
    """
    return any_of(Missing("gone_stack_id"), Differs("gone_stack_id", stack_id))


# Labels and pin


def described(
    tenant: TenantId,
    metadata: Metadata | None,
    *,
    labels: Mapping[str, str] | None,
    pin: Pin,
    at: datetime,
    asked_for: Attempt | None,
    tier: str | None,
    only_if: SeenTenant | None,
    change: RecordedChange | None,
) -> Transition:
    """Set labels and pin of a tenant that exists, or whose create is about to start, in this tier.

    The transition applies only if labels and pin are still as in ``metadata``.
    """
    sets: dict[str, object] = {"updated_at": at}
    if asked_for is not None:
        sets |= {"asked_for": asked_for, "asked_for_at": at}
    if tier is not None:
        sets["recorded_tier"] = tier
    if labels is not None:
        sets["labels"] = labels
    if pin.version is not None:
        sets["pinned_version"] = pin.version
    conditions = [
        still("labels", metadata.labels if metadata and metadata.labelled else None),
        still("pinned_version", metadata.pinned_version if metadata else None),
    ]
    if tier is not None:
        # The tier of a tenant that has got a queue meanwhile is that of its queue.
        conditions += [still(name, getattr(metadata, name, None)) for name in ("recorded_tier", "version")]
        conditions.append(Present("queue") if metadata and metadata.queue else Missing("queue"))
    if asked_for is None:
        conditions += [RowExists(), Missing("withdrawn_by")]
    if only_if is not None:
        conditions += _unclaimed_since(only_if.metadata)
    clears = ("pinned_version",) if pin.lift and pin.version is None else ()
    update = Update(MetadataKey(tenant), sets, clears=clears, condition=all_of(*conditions))
    return [update, *([Append(change)] if change else [])]


def _unclaimed_since(seen: Metadata | None) -> Sequence[Condition]:
    """Nobody has created the tenant, or requested its create, since the metadata was read."""
    served = seen is not None and seen.version is not None
    return [
        still("created_by", seen.created_by if seen else None),
        Present("version") if served else Missing("version"),
        still("asked_for_at", seen.asked_for_at if seen else None),
    ]


# The queue of the tenant's stack


def queue_recorded(
    tenant: TenantId, *, stack_id: str, queue: Queue, at: datetime, seen: Metadata | None, change: RecordedChange | None
) -> Transition:
    """Record the stack's queue. A published queue is replaced only by its own stack, or if no stack is recorded."""
    conditions = [
        stack_not_gone(stack_id),
        any_of(Missing("stack_id"), Equals("stack_id", stack_id), Missing("version")),
    ]
    if seen is not None and seen.queue is not None:
        conditions.append(Equals("queue", seen.queue))
    update = Update(
        MetadataKey(tenant),
        {"queue": queue, "stack_id": stack_id, "updated_at": at},
        {"created_at": at},
        ("deployed",),
        all_of(*conditions),
    )
    return [update, *([Append(change)] if change else [])]


def marked_gone(tenant: TenantId, *, stack_id: str) -> Transition:
    """Record that the stack withdraws its queue. The condition fails once the stack is recorded as the tenant's."""
    not_recorded = any_of(Missing("stack_id"), Differs("stack_id", stack_id))
    return [Update(MetadataKey(tenant), {"gone_stack_id": stack_id}, condition=all_of(RowExists(), not_recorded))]


def queue_forgotten(seen: Metadata, *, stack_id: str) -> Transition:
    """Remove what the stack recorded. Labels, pin and owner stay.

    The stack's id is kept as ``gone_stack_id``, so that a run that saw the stack earlier does not publish it.
    """
    sets: dict[str, object] = {"gone_stack_id": stack_id, "listed_version": None}
    defaults: dict[str, object] = {}
    clears = ["queue", "stack_id", "version", "deployed", "resources"]
    if seen.version is not None:
        # The tenant was in service, and will be created again at this version if it is not being deleted.
        sets["last_version"] = seen.version
    if seen.published:  # Otherwise an operation is running and has set the listed state; only the version goes.
        sets["listed_state"] = TenantState.UNKNOWN
        # The next requester must not become the owner of this tenant, even if the owner was never recorded.
        defaults["created_by"] = UNKNOWN_CREATOR
        clears.append("root_cause")
    unchanged = all_of(*(still(name, getattr(seen, name)) for name in ("version", "withdrawn_by")))
    return [Update(MetadataKey(seen.tenant), sets, defaults, clears, all_of(Equals("stack_id", stack_id), unchanged))]


# Corrections by the reconciler


def corrected(
    seen: Metadata, stack: Stack, audits: Sequence[Audit], *, tier: str | None, request: Request, at: datetime
) -> Transition:
    """Make the metadata match the stack, if nobody has changed the metadata since it was read. ``tier`` is the tier of
    the stack's release, if that was published.

    A tenant that no operation has listed yet is listed from now on.
    """
    after = replace(
        seen,
        queue=stack.queue or seen.queue,
        stack_id=stack.stack_id,
        version=stack.version or seen.version,
        updated_at=at,
    )
    corrections: dict[str, object] = {
        "queue": after.queue,
        "stack_id": after.stack_id,
        "version": after.version,
        "resources": stack.resources,
        "updated_at": at,
    }
    # A survey that is continued later does not remember the outputs. The next operation records them.
    clears = ["deployed", *(["resources"] if stack.outputs and not stack.resources else [])]
    sets: dict[str, object] = {name: value for name, value in corrections.items() if value}
    sets |= {"listed_state": state_of(after, audits), "listed_version": after.version}
    if tier is not None:
        sets["recorded_tier"] = tier
    unchanged = all_of(
        RowExists(),
        *(still(name, getattr(seen, name)) for name in ("stack_id", "version", "gone_stack_id", "withdrawn_by")),
        *([Equals("queue", seen.queue)] if seen.queue else []),
    )
    return [
        Check(LockKey(seen.tenant), RowAbsent()),
        Update(MetadataKey(seen.tenant), sets, clears=clears, condition=unchanged),
        Append(correction(seen, after, request=request, at=at)),
        Announce(Relisting(seen.tenant, at)),
    ]
