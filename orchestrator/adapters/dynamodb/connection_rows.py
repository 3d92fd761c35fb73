"""The rows of connections: :mod:`orchestrator.adapters.dynamodb.event_keys` has their keys."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_configuration import life_from, life_row
from orchestrator.adapters.dynamodb.keys import Key
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.adapters.dynamodb.writes import listing
from orchestrator.common.times import parse_timestamp
from orchestrator.events.delivery.records import Connection, ConnectionStatus, Destination, DestinationKind, Health
from orchestrator.events.delivery.retries import RetrySchedule

AS_READ = (
    "epoch",
    "revision",
    "failing_since",
    "slow_since",
    "open_until",
    "opened",
    "draining",
    "found_empty_at",
)
"""The attributes that say whether a connection is still as it was read: one of them differs after every change."""

DERIVED = ("ListingKey", "ListingSort")
"""The place of the row in the list of connections that need care, or are disabled."""


def key_of(connection: Connection) -> Key:
    return event_keys.connection_key(connection.life, connection.origin, connection.connection_id)


def connection_row(connection: Connection) -> Item:
    """The row without its key. It is listed only while it needs care, or is disabled."""
    health = connection.health
    optional: dict[str, Item | None] = {
        "filter": _document(connection.filter),
        "transform": _document(connection.transform),
        "retry": _waits(connection.retry),
        "secret": _binary(connection.secret),
        "former_secret": _binary(connection.former_secret),
        "former_secret_until": _time(connection.former_secret_until),
        "reason": s(connection.reason) if connection.reason else None,
        "failing_since": _time(health.failing_since),
        "slow_since": _time(health.slow_since),
        "open_until": _time(health.open_until),
        "opened": n(health.opened) if health.opened else None,
        "draining": {"BOOL": True} if connection.draining else None,
        "found_empty_at": _time(connection.found_empty_at),
        "enabled_at": _time(connection.enabled_at),
    }
    return {
        **life_row(connection.life),
        "connection_id": s(connection.connection_id),
        "origin": s(connection.origin),
        "name": s(connection.name),
        "destination": s(connection.destination.kind),
        "address": s(connection.destination.address),
        "status": s(connection.status),
        "created_at": time(connection.created_at),
        "revision": n(connection.revision),
        **{name: value for name, value in optional.items() if value is not None},
        **_listing(connection),
    }


def _listing(connection: Connection) -> Item:
    if connection.needs_care:
        return listing(event_keys.listed_care(connection.life, connection.connection_id))
    if connection.status is ConnectionStatus.DISABLED:
        return listing(event_keys.listed_disabled(connection.life, connection.connection_id))
    return {}


def connection_from(row: Mapping[str, Any]) -> Connection:
    return Connection(
        life=life_from(row),
        connection_id=row["connection_id"]["S"],
        origin=row["origin"]["S"],
        name=row["name"]["S"],
        destination=Destination(DestinationKind(row["destination"]["S"]), row["address"]["S"]),
        status=ConnectionStatus(row["status"]["S"]),
        created_at=parse_timestamp(row["created_at"]["S"]),
        filter=json.loads(row["filter"]["S"]) if "filter" in row else None,
        transform=json.loads(row["transform"]["S"]) if "transform" in row else None,
        retry=_schedule(row),
        secret=bytes(row["secret"]["B"]) if "secret" in row else None,
        former_secret=bytes(row["former_secret"]["B"]) if "former_secret" in row else None,
        former_secret_until=moment(row, "former_secret_until"),
        reason=text(row, "reason"),
        revision=number(row, "revision", 0),
        health=Health(
            failing_since=moment(row, "failing_since"),
            slow_since=moment(row, "slow_since"),
            open_until=moment(row, "open_until"),
            opened=number(row, "opened", 0),
        ),
        draining=row.get("draining", {}).get("BOOL", False),
        found_empty_at=moment(row, "found_empty_at"),
        enabled_at=moment(row, "enabled_at"),
    )


def pointer_row(connection: Connection) -> Item:
    """The row in the tenant's partition. It says where the connection is, and never changes."""
    return {**life_row(connection.life), "origin": s(connection.origin)}


def _document(document: Mapping[str, Any] | None) -> Item | None:
    """The document as JSON, because DynamoDB's own numbers are not those of JSON."""
    return s(json.dumps(document)) if document is not None else None


def _waits(schedule: RetrySchedule) -> Item | None:
    if schedule == RetrySchedule():
        return None
    return {"L": [n(int(wait.total_seconds())) for wait in schedule.waits]}


def _schedule(row: Mapping[str, Any]) -> RetrySchedule:
    if "retry" not in row:
        return RetrySchedule()
    return RetrySchedule(tuple(timedelta(seconds=int(wait["N"])) for wait in row["retry"]["L"]))


def _binary(value: bytes | None) -> Item | None:
    return {"B": value} if value else None


def _time(value: datetime | None) -> Item | None:
    return dict(time(value)) if value else None
