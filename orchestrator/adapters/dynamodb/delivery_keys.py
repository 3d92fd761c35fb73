"""The key shapes of deliveries, which are in the table of events. Nowhere else is one of these keys put together.

| row      | pk                    | sk                           |
|----------|-----------------------|------------------------------|
| delivery | EVT#{life}#{event id} | DLV#{connection id}          |
| attempt  | EVT#{life}#{event id} | ATT#{connection id}#{number} |
| replay   | REPLAYS#{life}        | {replay id}                  |

The index by status lists a delivery by what is to be done with it:

| state    | GSI1PK                            | GSI1SK                                  |
|----------|-----------------------------------|-----------------------------------------|
| retrying | DUE#{shard of 16}                 | {due}#{life}#{event id}#{connection id} |
| parked   | PARK#{connection id}#{shard of 4} | {event id}                              |
| failed   | DEAD#{connection id}#{shard of 4} | {failed at}#{event id}                  |

and a replay while it is running:

| state    | GSI1PK | GSI1SK             |
|----------|--------|--------------------|
| running  | REPLAY | {life}#{replay id} |
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from orchestrator.adapters.dynamodb.event_keys import DELIVERY_PREFIX
from orchestrator.adapters.dynamodb.keys import Key, key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.events.delivery.records import DeliveryRef
from orchestrator.events.event_ids import parse_event_id
from orchestrator.events.records import TenantEpoch

DELIVERY_ROW_PREFIX = "DLV#"
REPLAYS_PREFIX = "REPLAYS#"
LISTED_REPLAYS = "REPLAY"
DUE_PREFIX = "DUE#"
PARKED_PREFIX = "PARK#"
FAILED_PREFIX = "DEAD#"

DUE_SHARDS = 16
CONNECTION_SHARDS = 4
"""The number of shards of the lists of a connection's parked and failed deliveries."""


def deliveries_pk(life: TenantEpoch, event_id: str) -> str:
    return f"{DELIVERY_PREFIX}{life}#{event_id}"


def delivery_key(ref: DeliveryRef) -> Key:
    return key(deliveries_pk(ref.life, ref.event_id), f"{DELIVERY_ROW_PREFIX}{ref.connection_id}")


def attempt_key(ref: DeliveryRef, number: int) -> Key:
    return key(deliveries_pk(ref.life, ref.event_id), f"ATT#{ref.connection_id}#{number:03}")


def delivery_of(row: Mapping[str, Any]) -> DeliveryRef:
    """The delivery that a row, or its place in an index, belongs to."""
    tenant, epoch, event_id = row["pk"]["S"].removeprefix(DELIVERY_PREFIX).split("#")
    connection_id = row["sk"]["S"].split("#")[1]
    return DeliveryRef(TenantEpoch(TenantId.parse(tenant), epoch), parse_event_id(f"EVT#{event_id}"), connection_id)


def attempt_number_of(row: Mapping[str, Any]) -> int:
    return int(row["sk"]["S"].split("#")[2])


def due_pk(shard: int) -> str:
    return f"{DUE_PREFIX}{shard:02x}"


def due_sk(due: datetime, ref: DeliveryRef) -> str:
    return f"{timestamp(due)}#{ref.life}#{ref.event_id}#{ref.connection_id}"


def due_shard(ref: DeliveryRef) -> int:
    return _spread(f"{ref.event_id}{ref.connection_id}", DUE_SHARDS)


def due_until(until: datetime) -> str:
    """The sort key before which everything is due at that time."""
    return f"{timestamp(until)}~"


def parked_pk(connection_id: str, shard: int) -> str:
    return f"{PARKED_PREFIX}{connection_id}#{shard}"


def failed_pk(connection_id: str, shard: int) -> str:
    return f"{FAILED_PREFIX}{connection_id}#{shard}"


def failed_sk(at: datetime, event_id: str) -> str:
    return f"{timestamp(at)}#{event_id}"


def connection_shard(ref: DeliveryRef) -> int:
    return _spread(ref.event_id, CONNECTION_SHARDS)


def replays_pk(life: TenantEpoch) -> str:
    return f"{REPLAYS_PREFIX}{life}"


def replay_key(life: TenantEpoch, replay_id: str) -> Key:
    return key(replays_pk(life), replay_id)


def listed_replay_sk(life: TenantEpoch, replay_id: str) -> str:
    return f"{life}#{replay_id}"


def life_of_replay(row: Mapping[str, Any]) -> TenantEpoch:
    tenant, epoch = row["pk"]["S"].removeprefix(REPLAYS_PREFIX).split("#")
    return TenantEpoch(TenantId.parse(tenant), epoch)


def _spread(text: str, shards: int) -> int:
    return zlib.crc32(text.encode()) % shards
