"""Converts rows of the index of the fleet to tenants as they are listed."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from orchestrator.adapters.dynamodb import columns
from orchestrator.adapters.dynamodb.keys import (
    EXPIRY,
    METADATA,
    relisting_key,
    relisting_of,
    tenant_of,
    version_of_position,
)
from orchestrator.adapters.dynamodb.rows import UNREADABLE, describe, metadata_from
from orchestrator.adapters.dynamodb.tenant_values import root_cause_from
from orchestrator.adapters.dynamodb.values import Item, expiry, moment
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.listings import ListedTenant, Relisting, TenantInBrief
from orchestrator.tenants.records import RootCause, TenantState

RELISTINGS_KEPT_FOR = timedelta(days=1)
"""A list of the whole fleet takes seconds."""

_WITHOUT_DESCRIPTION = {"ListingSort", "Tier"}
"""The attributes of a tenant without labels and pin, as most tenants are."""


def listed_from(item: Mapping[str, Any], state: TenantState) -> ListedTenant | None:
    """A row that the index lists in that state. ``None`` if the row belongs to no tenant.

    An unreadable row must not hide the others, so it is listed with the state and version that the index has.
    """
    try:
        return _listed_from(item)
    except UNREADABLE as error:
        reason = f"The row cannot be read, so something other than Berth has written it ({describe(error)})."
    try:
        position = item["ListingSort"]["S"]
        return ListedTenant(
            tenant=tenant_of(item["pk"]["S"]),
            state=state,
            version=version_of_position(position) or None,
            pinned_version=None,
            labels={},
            queue=None,
            updated_at=None,
            root_cause=RootCause(item["sk"]["S"], "AWS::DynamoDB::Table", reason),
            position=position,
            readable=False,
        )
    except UNREADABLE:
        return None


def brief_from(item: Mapping[str, Any], state: TenantState) -> TenantInBrief | None:
    """A row that the index lists in that state. ``None`` if the row belongs to no tenant.

    The position has the tenant and its version: every write of a tenant's version also writes the position.
    """
    try:
        version, _, name = item["ListingSort"]["S"].rpartition("#")
        tenant = TenantId.parse(name)
        tier = item["Tier"]["S"] if "Tier" in item else STANDARD
    except UNREADABLE:
        return None
    if item.keys() <= _WITHOUT_DESCRIPTION:
        return TenantInBrief(tenant, state, version or None, None, {}, tier)
    try:
        pinned_version, labels = (columns.METADATA[column].read(item) for column in ("pinned_version", "labels"))
    except UNREADABLE:
        pinned_version, labels = None, {}
    return TenantInBrief(tenant, state, version or None, pinned_version, labels, tier)


def relisting_row(relisting: Relisting) -> Item:
    row = relisting_key(relisting.tenant, relisting.at) | {EXPIRY: expiry(relisting.at + RELISTINGS_KEPT_FOR)}
    return row | ({"Deleted": {"BOOL": True}} if relisting.deleted else {})


def relisting_from(item: Mapping[str, Any]) -> Relisting | None:
    """``None`` if something other than Berth has written the row."""
    try:
        return Relisting(*relisting_of(item["sk"]["S"]), deleted="Deleted" in item)
    except UNREADABLE:
        return None


def _listed_from(item: Mapping[str, Any]) -> ListedTenant:
    """Read from the tenant's metadata or, if the tenant is deleted, from the audit of its delete."""
    if item["sk"]["S"] != METADATA:
        return ListedTenant(
            tenant=tenant_of(item["pk"]["S"]),
            state=TenantState.DELETED,
            version=None,
            pinned_version=None,
            labels={},
            queue=None,
            updated_at=moment(item, "UpdatedAt"),
            root_cause=None,
            position=item["ListingSort"]["S"],
        )
    metadata = metadata_from(item)
    return ListedTenant(
        tenant=metadata.tenant,
        state=TenantState(item["State"]["S"]),
        version=metadata.version,
        pinned_version=metadata.pinned_version,
        labels=metadata.labels,
        queue=metadata.queue if metadata.published else None,
        updated_at=metadata.updated_at,
        root_cause=root_cause_from(item),
        position=item["ListingSort"]["S"],
        stack_id=metadata.stack_id,
        tier=metadata.tier,
    )
