"""The rows of fleets of any size, for tables in memory. All tenants are ready, at one version."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator.adapters.dynamodb import columns, keys
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue, TenantState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
VERSION = "1.0.0"


def tenant(number: int) -> TenantId:
    return TenantId.parse(f"{number:08}-0000-4000-8000-000000000000")


def queue_of(tenant_id: TenantId) -> Queue:
    return Queue(
        f"arn:aws:sqs:eu-central-1:123456789012:berth-tenant-{tenant_id}-InboundQueue-ABCDEFGHIJKL",
        f"https://sqs.eu-central-1.amazonaws.com/123456789012/berth-tenant-{tenant_id}-InboundQueue-ABCDEFGHIJKL",
    )


def stack_id_of(tenant_id: TenantId) -> str:
    name = Names().stack_of(tenant_id)
    return f"arn:aws:cloudformation:eu-central-1:123456789012:stack/{name}/00000000-0000-0000-0000"


def tenant_row(number: int) -> Mapping[str, Any]:
    tenant_id = tenant(number)
    fields = {
        "queue": queue_of(tenant_id),
        "stack_id": stack_id_of(tenant_id),
        "version": VERSION,
        "created_at": NOW,
        "updated_at": NOW,
    }
    row: dict[str, Any] = {**keys.metadata_key(tenant_id), "State": {"S": TenantState.READY.value}}
    for name, value in fields.items():
        column = columns.METADATA_ROW[name]
        row |= dict(zip(column.names, column.values(tenant_id, value), strict=True))
    listing_key, listing_sort = keys.listed_tenant(tenant_id, TenantState.READY, VERSION)
    return row | {"ListingKey": {"S": listing_key}, "ListingSort": {"S": listing_sort}}


def fleet_counts_row(size: int, at: str) -> Mapping[str, Any]:
    """The kept counts of a fleet whose tenants are all ready, at one version."""
    counts = {VERSION: {TenantState.READY.value: size}}
    return {**keys.fleet_counts_key(), "UpdatedAt": {"S": at}, "Counts": {"S": json.dumps(counts)}}
