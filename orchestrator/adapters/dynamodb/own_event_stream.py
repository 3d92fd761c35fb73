"""Records of the tables' streams that say that something changed which Berth publishes.

Lambda's filters hold most other records back: ``TENANTS_FILTERS`` for the stream of tenants, rollouts and connections,
``DELIVERIES_FILTER`` for the stream of events and their deliveries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.connection_rows import connection_from
from orchestrator.adapters.dynamodb.delivery_keys import DELIVERY_ROW_PREFIX
from orchestrator.adapters.dynamodb.delivery_rows import delivery_from
from orchestrator.adapters.dynamodb.event_keys import CONNECTION_PREFIX
from orchestrator.adapters.dynamodb.event_stream import names_of_record
from orchestrator.adapters.dynamodb.history_rows import history_from
from orchestrator.adapters.dynamodb.rollout_rows import rollout_from
from orchestrator.adapters.dynamodb.rows import UNREADABLE
from orchestrator.adapters.dynamodb.values import Item, text
from orchestrator.events.delivery.records import ConnectionStatus, DeliveryState
from orchestrator.own_events import changes
from orchestrator.own_events.kinds import OwnEvent
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.records import Status

TENANTS_FILTERS: Sequence[Mapping[str, Any]] = (
    {
        "eventName": ["INSERT"],
        "dynamodb": {
            "Keys": {"pk": {"S": [{"prefix": keys.HISTORY_PREFIX}]}},
            "NewImage": {"Status": {"S": [Status.SUCCESS.value, Status.FAILURE.value]}},
        },
    },
    {
        "dynamodb": {
            "Keys": {"pk": {"S": [{"prefix": keys.ROLLOUT_PREFIX}]}, "sk": {"S": [keys.PLAN]}},
            "NewImage": {"Status": {"S": [RolloutStatus.HALTED.value, RolloutStatus.SUCCEEDED.value]}},
        },
    },
    {
        "dynamodb": {
            "Keys": {"sk": {"S": [{"prefix": CONNECTION_PREFIX}]}},
            "NewImage": {"status": {"S": [ConnectionStatus.DISABLED.value]}},
        },
    },
)

DELIVERIES_FILTER: Mapping[str, Any] = {
    "dynamodb": {
        "Keys": {"sk": {"S": [{"prefix": DELIVERY_ROW_PREFIX}]}},
        "NewImage": {"state": {"S": [DeliveryState.FAILED.value]}},
    },
}


@dataclass(frozen=True, slots=True)
class StreamChanges:
    events: Sequence[OwnEvent]
    unreadable: Sequence[Mapping[str, str]]
    """The keys of records that no change can be read from."""


def read_changes(event: object) -> StreamChanges:
    events: dict[str, OwnEvent] = {}
    unreadable: list[Mapping[str, str]] = []
    records = event.get("Records", []) if isinstance(event, dict) else []
    for record in records if isinstance(records, list) else []:
        try:
            change = _change_in(record)
        except UNREADABLE:
            unreadable.append(names_of_record(record))
        else:
            if change is not None:
                events[change.id] = change
    return StreamChanges(list(events.values()), unreadable)


def _change_in(record: Mapping[str, Any]) -> OwnEvent | None:
    """``None`` for a record that says nothing that is published."""
    stream = record["dynamodb"]
    new, old = stream.get("NewImage"), stream.get("OldImage", {})
    if new is None:
        return None
    pk, sk = stream["Keys"]["pk"]["S"], stream["Keys"]["sk"]["S"]
    # The secrets of connections are left out: they are the only binary values.
    row: Item = {name: value for name, value in new.items() if "B" not in value} | keys.key(pk, sk)
    name, at = f"{pk} {sk}", datetime.fromtimestamp(float(stream["ApproximateCreationDateTime"]), UTC)
    if pk.startswith(keys.HISTORY_PREFIX):
        return _ended(row, name) if record["eventName"] == "INSERT" and "Operation" in row else None
    if pk.startswith(keys.ROLLOUT_PREFIX) and sk == keys.PLAN:
        before = text(old, "Status")
        return changes.rollout_ended(RolloutStatus(before) if before else None, rollout_from(row), row=name, at=at)
    if sk.startswith(CONNECTION_PREFIX):
        before = text(old, "status")
        return changes.connection_disabled(
            ConnectionStatus(before) if before else None, connection_from(row), row=name, at=at
        )
    if sk.startswith(DELIVERY_ROW_PREFIX):
        return changes.delivery_exhausted(delivery_from(row), row=name, at=at)
    return None


def _ended(row: Item, name: str) -> OwnEvent | None:
    entry = history_from(row)
    if not isinstance(entry, HistoryEntry) or entry.altered:
        raise ValueError("not an entry that Berth has appended")
    return changes.operation_ended(entry, row=name)
