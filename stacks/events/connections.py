"""The permissions of functions that change connections by themselves."""

from __future__ import annotations

from aws_cdk import aws_iam as iam

from stacks.common.table import TenantTable
from stacks.events.rows import CHANGE_ROWS, CONNECTION_ROWS
from stacks.events.table import EventsTable


def allow_changing_connections(role: iam.Role, *, table: TenantTable, events: EventsTable) -> None:
    """Let a role note the health of a connection, and disable it, which is on record."""
    table.allow(role, "GetItem", "UpdateItem", rows=CONNECTION_ROWS)
    events.allow(role, "PutItem", rows=CHANGE_ROWS)
