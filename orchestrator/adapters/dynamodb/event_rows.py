"""The rows of events. The attributes have the names that producers and receivers know; what a key says is not repeated.

| attribute      | stored                                                          |
|----------------|-----------------------------------------------------------------|
| `tenant_id`    | in pk                                                           |
| `event_id`     | in sk                                                           |
| `timestamp`    | in the event id                                                 |
| `received_at`  | in the event id                                                 |
| `event_type`   | in GSI2SK if the tenant has the index by type                   |
| `source_id`    | in GSI2PK                                                       |
| `form_id`      | in GSI2PK                                                       |
| `retry_count`  | unless it is 0                                                  |
| `content_type` | unless it is application/json                                   |
| `method`       | unless it is POST                                               |
| `headers`      | in `payload`, packed with the body                              |
| `payload`      | the packed content, or the key of its S3 object in `payload_key` |
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.values import Item, n, number, s, text
from orchestrator.events.content import Packed, unpack
from orchestrator.events.event_ids import event_timestamp, shard_of
from orchestrator.events.records import Event
from orchestrator.events.statuses import UNDELIVERED, EventStatus

_USUAL_CONTENT_TYPE = "application/json"
_USUAL_METHOD = "POST"


def event_row(event: Event, packed: Packed, *, type_index: bool) -> Item:
    row: Item = event_keys.event_key(event.life, event.event_id)
    row |= {"status": s(event.status), "ttl": n(int(event.expires_at.timestamp()))}
    row |= {"payload": {"B": packed.data}} if event.content_key is None else {"payload_key": s(event.content_key)}
    row |= _index(event, type_index=type_index)
    if "GSI2SK" not in row or event.source_id or event.form_id:
        row["event_type"] = s(event.event_type)
    optional: dict[str, Item] = {
        "packing": s(packed.packing),
        "content_type": s(event.content_type if event.content_type != _USUAL_CONTENT_TYPE else ""),
        "method": s(event.method if event.method != _USUAL_METHOD else ""),
        "source_ip": s(event.source_ip or ""),
        "metadata": {"M": {name: s(value) for name, value in event.metadata.items()}},
    }
    row |= {name: value for name, value in optional.items() if any(value.values())}
    if event.in_inbox:
        row["GSI1PK"] = s(event_keys.status_index_pk(event.life, shard_of(event.event_id)))
        row["GSI1SK"] = s(event_keys.status_index_sk(UNDELIVERED, event.event_id))
    return row


def _index(event: Event, *, type_index: bool) -> Item:
    shard = shard_of(event.event_id)
    if event.source_id:
        pk, sk = event_keys.source_index_pk(event.source_id, shard), event_keys.source_index_sk(event.event_id)
    elif event.form_id:
        pk, sk = event_keys.form_index_pk(event.form_id, shard), event_keys.form_index_sk(event.event_id)
    elif type_index:
        pk = event_keys.type_index_pk(event.life, shard)
        sk = event_keys.type_index_sk(event.event_type, event.event_id)
    else:
        return {}
    return {"GSI2PK": s(pk), "GSI2SK": s(sk)}


def event_from(row: Mapping[str, Any]) -> Event:
    """The event without its content if that is in S3: ``content_key`` names the object."""
    pk, sk = row["pk"]["S"], row["sk"]["S"]
    index = text(row, "GSI2PK") or ""
    packed = packed_from(row)
    delivered = text(row, "delivered_at")
    return Event(
        life=event_keys.life_of(pk),
        event_id=event_keys.event_id_of(sk),
        status=EventStatus(row["status"]["S"]),
        event_type=text(row, "event_type") or event_keys.type_of_index(row["GSI2SK"]["S"]),
        content=unpack(packed) if packed else None,
        expires_at=datetime.fromtimestamp(number(row, "ttl", 0), UTC),
        source_id=event_keys.source_of_index(index),
        form_id=event_keys.form_of_index(index),
        content_type=text(row, "content_type") or _USUAL_CONTENT_TYPE,
        method=text(row, "method") or _USUAL_METHOD,
        source_ip=text(row, "source_ip"),
        metadata={name: value["S"] for name, value in row.get("metadata", {"M": {}})["M"].items()},
        retry_count=number(row, "retry_count", 0),
        delivered_at=datetime.fromisoformat(delivered) if delivered else None,
        content_key=text(row, "payload_key"),
        packing=text(row, "packing") or "",
        in_inbox=(text(row, "GSI1SK") or "").startswith(f"{UNDELIVERED}#"),
    )


def packed_from(row: Mapping[str, Any]) -> Packed | None:
    """The content that is in the row. ``None`` if it is in S3."""
    return Packed(bytes(row["payload"]["B"]), text(row, "packing") or "") if "payload" in row else None


def delivered_at_value(at: datetime) -> Item:
    return s(event_timestamp(at))
