"""The rows of deliveries and attempts, and what the row of an event says of its deliveries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, assert_never, cast

from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.event_rows import delivered_at_value, event_from
from orchestrator.adapters.dynamodb.keys import Key as RowKey
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Attempt,
    Delivery,
    DeliveryEntry,
    DeliveryState,
    DispatchedEvent,
)
from orchestrator.events.delivery.writes import AttemptKey, DeliveryKey, EventKey, Key
from orchestrator.events.event_ids import shard_of

Row = Mapping[str, Any]


def key_of(key: Key) -> RowKey:
    match key:
        case EventKey(life, event_id):
            return event_keys.event_key(life, event_id)
        case DeliveryKey(ref):
            return delivery_keys.delivery_key(ref)
        case AttemptKey(ref, number_):
            return delivery_keys.attempt_key(ref, number_)
        case _:
            assert_never(key)


# Reading


def dispatched_from(row: Row) -> DispatchedEvent:
    entries = row.get("deliveries")
    pending = row.get("pending")
    return DispatchedEvent(
        event_from(row),
        pending=frozenset(pending["SS"]) if pending else None,
        entries=None if entries is None else {name: _entry_from(each["M"]) for name, each in entries["M"].items()},
    )


def delivery_from(row: Row) -> Delivery:
    return Delivery(
        ref=delivery_keys.delivery_of(row),
        state=DeliveryState(row["state"]["S"]),
        tries=number(row, "tries", 0),
        first_try=cast(datetime, moment(row, "first_try")),
        expires_at=_expiry(row),
        origin=text(row, "origin") or API_ORIGIN,
        tries_before=number(row, "tries_before", 0),
        due=moment(row, "due"),
        sent=number(row, "sent", 0),
        leased_until=moment(row, "leased_until"),
        planned=moment(row, "planned"),
        asked="asked" in row,
        resend="resend" in row,
        replay_id=text(row, "replay_id") or "",
        lost=number(row, "lost", 0),
        code=_code(row),
        reason=text(row, "reason") or "",
        ended_at=moment(row, "ended_at"),
        revision=number(row, "revision", 0),
    )


def attempt_from(row: Row) -> Attempt:
    return Attempt(
        ref=delivery_keys.delivery_of(row),
        number=delivery_keys.attempt_number_of(row),
        at=cast(datetime, moment(row, "at")),
        delivered="delivered" in row,
        code=_code(row),
        milliseconds=number(row, "ms", 0),
        text=text(row, "answer") or "",
        expires_at=_expiry(row),
        resend="resend" in row,
    )


def _entry_from(entry: Row) -> DeliveryEntry:
    return DeliveryEntry(
        # Most deliveries succeed at the first try, so these are not stored.
        state=DeliveryState(text(entry, "state") or DeliveryState.DELIVERED),
        tries=number(entry, "tries", 1),
        at=cast(datetime, moment(entry, "at")),
        code=_code(entry),
        milliseconds=number(entry, "ms", 0),
        reason=text(entry, "reason") or "",
    )


def _code(row: Row) -> int | None:
    return number(row, "code", 0) or None


def _expiry(row: Row) -> datetime:
    return datetime.fromtimestamp(number(row, "ttl", 0), UTC)


# Writing


@dataclass(frozen=True, slots=True)
class Stored:
    """Implements :class:`orchestrator.adapters.dynamodb.expressions.Stored`."""

    key: Key

    def attributes(self, name: str) -> Sequence[str]:
        return ["GSI1PK", "GSI1SK"] if name == "indexed_as" else [name]

    def values(self, name: str, value: Any) -> Sequence[Item]:
        match name.partition(".")[0], self.key:
            case "indexed_as", EventKey(life, event_id):
                pk = event_keys.status_index_pk(life, shard_of(event_id))
                return [s(pk), s(event_keys.status_index_sk(value, event_id))]
            case "pending", _:
                return [{"SS": sorted(value)}]
            case "deliveries", _ if isinstance(value, DeliveryEntry):
                return [{"M": _entry_value(value)}]
            case "deliveries", _:
                return [{"M": {each: {"M": _entry_value(entry)} for each, entry in value.items()}}]
            case "delivered_at", _:
                return [delivered_at_value(value)]
            case "status", _:
                return [s(value)]
            case _:
                return [n(value)]


def delivery_row(delivery: Delivery) -> Item:
    row: Item = {
        **delivery_keys.delivery_key(delivery.ref),
        "state": s(delivery.state),
        "first_try": time(delivery.first_try),
        "ttl": n(int(delivery.expires_at.timestamp())),
        "revision": n(delivery.revision),
        **_listed(delivery),
    }
    row |= _numbers(
        tries=delivery.tries,
        tries_before=delivery.tries_before,
        sent=delivery.sent,
        lost=delivery.lost,
        code=delivery.code or 0,
    )
    row |= _times(
        due=delivery.due,
        planned=delivery.planned,
        leased_until=delivery.leased_until,
        ended_at=delivery.ended_at,
    )
    row |= _texts(
        reason=delivery.reason,
        origin=delivery.origin if delivery.origin != API_ORIGIN else "",
        replay_id=delivery.replay_id,
    )
    flags = {"asked": delivery.asked, "resend": delivery.resend}
    return row | {name: {"BOOL": True} for name, is_set in flags.items() if is_set}


def attempt_row(attempt: Attempt) -> Item:
    row: Item = {
        **delivery_keys.attempt_key(attempt.ref, attempt.number),
        "at": time(attempt.at),
        "ttl": n(int(attempt.expires_at.timestamp())),
    }
    row |= _numbers(code=attempt.code or 0, ms=attempt.milliseconds)
    row |= _texts(answer=attempt.text)
    flags = {"delivered": attempt.delivered, "resend": attempt.resend}
    return row | {name: {"BOOL": True} for name, is_set in flags.items() if is_set}


def _entry_value(entry: DeliveryEntry) -> Item:
    value: Item = {"at": time(entry.at)}
    value |= _numbers(code=entry.code or 0, ms=entry.milliseconds)
    value |= {} if entry.tries == 1 else {"tries": n(entry.tries)}
    value |= _texts(reason=entry.reason)
    return value | ({} if entry.state is DeliveryState.DELIVERED else {"state": s(entry.state)})


def _listed(delivery: Delivery) -> Item:
    ref = delivery.ref
    shard = delivery_keys.connection_shard(ref)
    match delivery.state, delivery.due, delivery.ended_at:
        case DeliveryState.RETRYING, datetime() as due, _:
            pk, sk = delivery_keys.due_pk(delivery_keys.due_shard(ref)), delivery_keys.due_sk(due, ref)
        case DeliveryState.PARKED, _, _:
            pk, sk = delivery_keys.parked_pk(ref.connection_id, shard), ref.event_id
        case DeliveryState.FAILED, _, datetime() as at:
            pk = delivery_keys.failed_pk(ref.connection_id, shard)
            sk = delivery_keys.failed_sk(at, ref.event_id)
        case _:
            return {}
    return {"GSI1PK": s(pk), "GSI1SK": s(sk)}


def _numbers(**numbers: int) -> Item:
    return {name: n(value) for name, value in numbers.items() if value}


def _times(**times: datetime | None) -> Item:
    return {name: time(value) for name, value in times.items() if value}


def _texts(**texts: str) -> Item:
    return {name: s(value) for name, value in texts.items() if value}
