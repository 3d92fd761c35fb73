"""The largest payload with which the row of an event is one write unit."""

from __future__ import annotations

from datetime import UTC, datetime

from bench.item_sizes import UNIT_BYTES, item_size
from orchestrator.adapters.dynamodb.delivery_rows import Stored
from orchestrator.adapters.dynamodb.event_rows import event_row
from orchestrator.adapters.dynamodb.values import Item
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.content import Packed
from orchestrator.events.delivery.records import INBOX, DeliveryEntry, DeliveryState
from orchestrator.events.delivery.writes import EventKey
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import Content, Event, TenantEpoch
from orchestrator.events.statuses import EventStatus

EVENT_TYPE = "order.created"
_RECEIVED = datetime(2026, 11, 17, 12, 0, 1, 123456, tzinfo=UTC)
"""Its ttl does not end in zeros, which would not be counted."""
_EPOCH_LENGTH = 16


def largest_payload(*, type_index: bool, inbox: bool, tenant_length: int = 36, delivered: bool = False) -> int:
    """In bytes, of an event from the longest IPv4 address, without a correlation id.

    ``delivered`` is the row after a connection was sent the event, at the first try. It may still be in the inbox.
    """
    row = a_row(b"", type_index=type_index, inbox=inbox, tenant_length=tenant_length)
    return UNIT_BYTES - item_size(row | _delivered(inbox=inbox) if delivered else row)


def _delivered(*, inbox: bool) -> Item:
    stored = Stored(EventKey(TenantEpoch(TenantId.parse("a"), "0"), new_event_id(_RECEIVED, 0)))
    entry = DeliveryEntry(DeliveryState.DELIVERED, 1, _RECEIVED, code=200, milliseconds=15_001)
    changed: dict[str, object] = {"deliveries": {f"conn_{'0' * 24}": entry}}
    changed |= (
        {"pending": frozenset({INBOX})} if inbox else {"status": EventStatus.DELIVERED, "delivered_at": _RECEIVED}
    )
    return {name: stored.values(name, value)[0] for name, value in changed.items()}


def a_row(payload: bytes, *, type_index: bool, inbox: bool, tenant_length: int = 36) -> Item:
    event = Event(
        TenantEpoch(TenantId.parse("a" * tenant_length), "0" * _EPOCH_LENGTH),
        new_event_id(_RECEIVED, 0),
        EventStatus.RECEIVED,
        EVENT_TYPE,
        Content(payload),
        _RECEIVED,
        source_ip="203.255.255.255",
        in_inbox=inbox,
    )
    return event_row(event, Packed(payload, ""), type_index=type_index)
