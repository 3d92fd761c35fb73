"""The key shapes of the event plane. Nowhere else is one of these keys put together or taken apart.

Configuration is in the control plane's table, in partitions of its own, so that a function that faces the internet can
be kept from all others by their leading keys. ``{life}`` stands for ``{tenant}#{epoch}``: the rows of a tenant that was
deleted and created again share no partition with those of its predecessor.

| row            | pk               | sk              | ListingKey      | ListingSort                  |
|----------------|------------------|-----------------|-----------------|------------------------------|
| settings       | EVENTS#{tenant}  | CONFIG#main     | EVENTS#SETTINGS | {tenant}                     |
| purge          | EVENTS#{tenant}  | PURGE#{epoch}   | EVENTS#PURGE    | {requested}#{tenant}#{epoch} |
| key            | KEYHASH#{sha256} | KEY             |                 |                              |
| key, listed    | EVENTS#{life}    | KEY#{key id}    |                 |                              |
| source         | SRC#{source id}  | SOURCE          |                 |                              |
| source, listed | EVENTS#{life}    | SRC#{source id} |                 |                              |
| form           | FORM#{form id}   | FORM            |                 |                              |
| form, listed   | EVENTS#{life}    | FORM#{form id}  |                 |                              |
| connection     | {origin}         | CONN#{connection id} | EVENTS#CARE | {life}#{connection id}      |
|                |                  |                 | EVENTS#DISABLED | {life}#{connection id}       |
| its pointer    | EVENTS#{life}    | DEST#{connection id} |            |                              |
| usage, counted | EVENTS#{life}    | USAGE#{yyyy-mm} |                 |                              |
| usage, billed  | EVENTS#{life}    | USAGE#{yyyy-mm}#{dd} |            |                              |
| billed until   | EVENTS#{life}    | USAGE#BILLED    |                 |                              |

A connection is in the partition of its origin: SRC#{source id}, FORM#{form id}, or SRC#api#{life} for events that were
sent to the API. It is listed under EVENTS#CARE only while the sweep has to look after it. After that, a disabled one is
listed under EVENTS#DISABLED.

A purge that is finished has the ListingKey EVENTS#PURGED, and the time at which it was finished in its ListingSort.

Events are in a table of their own. Both of its indexes are sparse, and hold keys only:

| row         | pk                            | sk             | GSI1PK         | GSI1SK                          |
|-------------|-------------------------------|----------------|----------------|---------------------------------|
| event       | TENANT_ID#{life}#{shard}      | EVT#{event id} | {life}#{shard} | {status}#{timestamp}#{event id} |
| submission  | TENANT_ID#{life}#{shard}      | SUB#{event id} | {life}#{shard} | {status}#{timestamp}#{event id} |
| idempotency | IDEM#{life}#{source}#{sha256} | IDEM           |                |                                 |
| change      | CHANGES#{life}                | {time}_{digest} |               |                                 |

Deliveries are in the same table: :mod:`orchestrator.adapters.dynamodb.delivery_keys`.

| row                | GSI2PK                  | GSI2SK                              |
|--------------------|-------------------------|-------------------------------------|
| event              | {life}#{shard}          | {event type}#{timestamp}#{event id} |
| event of a webhook | SRC#{source id}#{shard} | EVT#{timestamp}#{event id}          |
| submission         | FORM#{form id}#{shard}  | TS#{timestamp}#{event id}           |
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from orchestrator.adapters.dynamodb.keys import Key, key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.events.event_ids import (
    IdRange,
    event_timestamp,
    is_submission,
    parse_event_id,
    received_at,
    shard_of,
)
from orchestrator.events.records import TenantEpoch
from orchestrator.events.resource_ids import IdPrefix, is_resource_id

STATUS_INDEX = "status-index"
TYPE_INDEX = "event-type-index"

EVENTS_PREFIX = "EVENTS#"
KEY_HASH_PREFIX = "KEYHASH#"
SOURCE_PREFIX = "SRC#"
FORM_PREFIX = "FORM#"
EVENT_PREFIX = "TENANT_ID#"
IDEMPOTENCY_PREFIX = "IDEM#"
DELIVERY_PREFIX = "EVT#"
"""The prefix of the partitions that hold an event's deliveries and attempts."""
CHANGES_PREFIX = "CHANGES#"
LISTED_SETTINGS = "EVENTS#SETTINGS"
LISTED_PURGES = "EVENTS#PURGE"
LISTED_FINISHED_PURGES = "EVENTS#PURGED"
PURGE_PREFIX = "PURGE#"
LISTED_CARE = "EVENTS#CARE"
LISTED_DISABLED = "EVENTS#DISABLED"
LISTED_KEY_PREFIX = "KEY#"
CONNECTION_PREFIX = "CONN#"
POINTER_PREFIX = "DEST#"
USAGE_PREFIX = "USAGE#"

# Configuration


def settings_key(tenant: TenantId) -> Key:
    return key(f"{EVENTS_PREFIX}{tenant}", "CONFIG#main")


def listed_settings(tenant: TenantId) -> tuple[str, str]:
    return LISTED_SETTINGS, tenant.value


def tenant_of_listing(position: str) -> TenantId:
    """The tenant at that position of the list of settings."""
    return TenantId.parse(position)


def purge_key(life: TenantEpoch) -> Key:
    return key(f"{EVENTS_PREFIX}{life.tenant}", f"{PURGE_PREFIX}{life.epoch}")


def listed_purge(life: TenantEpoch, requested_at: datetime) -> tuple[str, str]:
    return LISTED_PURGES, f"{timestamp(requested_at)}#{life}"


def listed_finished_purge(life: TenantEpoch, finished_at: datetime) -> tuple[str, str]:
    return LISTED_FINISHED_PURGES, f"{timestamp(finished_at)}#{life}"


def configuration_pk(life: TenantEpoch) -> str:
    return f"{EVENTS_PREFIX}{life}"


def api_key_key(digest: str) -> Key:
    return key(f"{KEY_HASH_PREFIX}{digest}", "KEY")


def listed_api_key_key(life: TenantEpoch, key_id: str) -> Key:
    return key(configuration_pk(life), f"{LISTED_KEY_PREFIX}{key_id}")


def source_key(source_id: str) -> Key:
    return key(f"{SOURCE_PREFIX}{source_id}", "SOURCE")


def listed_source_key(life: TenantEpoch, source_id: str) -> Key:
    return key(configuration_pk(life), f"{SOURCE_PREFIX}{source_id}")


def form_key(form_id: str) -> Key:
    return key(f"{FORM_PREFIX}{form_id}", "FORM")


def listed_form_key(life: TenantEpoch, form_id: str) -> Key:
    return key(configuration_pk(life), f"{FORM_PREFIX}{form_id}")


def origin_pk(life: TenantEpoch, origin: str) -> str:
    """The partition of the connections of an origin. Only the partition of the API's events has the life in its key."""
    # Imported here, because the functions that take events use this module, too, and must start fast.
    from orchestrator.events.delivery.records import API_ORIGIN

    if origin == API_ORIGIN:
        return f"{SOURCE_PREFIX}{API_ORIGIN}#{life}"
    return f"{FORM_PREFIX if is_resource_id(IdPrefix.FORM, origin) else SOURCE_PREFIX}{origin}"


def connection_key(life: TenantEpoch, origin: str, connection_id: str) -> Key:
    return key(origin_pk(life, origin), f"{CONNECTION_PREFIX}{connection_id}")


def pointer_key(life: TenantEpoch, connection_id: str) -> Key:
    """The row that says which origin a connection belongs to."""
    return key(configuration_pk(life), f"{POINTER_PREFIX}{connection_id}")


def listed_care(life: TenantEpoch, connection_id: str) -> tuple[str, str]:
    return LISTED_CARE, f"{life}#{connection_id}"


def listed_disabled(life: TenantEpoch, connection_id: str) -> tuple[str, str]:
    return LISTED_DISABLED, f"{life}#{connection_id}"


def listed_connection(place: str) -> tuple[TenantEpoch, str]:
    """The tenant's life and the connection's id in a place of these lists."""
    tenant, epoch, connection_id = place.split("#")
    return TenantEpoch(TenantId.parse(tenant), epoch), connection_id


def found_by(listed: Mapping[str, Any]) -> list[Key]:
    """The keys by which a key, a source, a form or a connection is found, from its row in the tenant's partition."""
    match listed["sk"]["S"].partition("#"):
        case "KEY", _, _:
            return [api_key_key(listed["key_hash"]["S"])]
        case "SRC", _, source_id:
            return [source_key(source_id)]
        case "FORM", _, form_id:
            return [form_key(form_id)]
        case "DEST", _, connection_id:
            tenant, epoch = listed["pk"]["S"].removeprefix(EVENTS_PREFIX).split("#")
            life = TenantEpoch(TenantId.parse(tenant), epoch)
            return [connection_key(life, listed["origin"]["S"], connection_id)]
    return []


def usage_key(life: TenantEpoch, month: str) -> Key:
    return key(configuration_pk(life), f"{USAGE_PREFIX}{month}")


def billed_prefix(month: str) -> str:
    """The beginning of the sort keys of all days of the month."""
    return f"{USAGE_PREFIX}{month}#"


def billed_day_key(life: TenantEpoch, day: datetime) -> Key:
    return key(configuration_pk(life), f"{USAGE_PREFIX}{day:%Y-%m#%d}")


def billed_until_key(life: TenantEpoch) -> Key:
    return key(configuration_pk(life), f"{USAGE_PREFIX}BILLED")


# Events


def shard_pk(life: TenantEpoch, shard: int) -> str:
    return f"{EVENT_PREFIX}{life}#{shard:x}"


def any_shard_pk(life: TenantEpoch) -> str:
    """A pattern for policies: the partitions of this life's events. No tenant id or epoch has a wildcard."""
    return f"{EVENT_PREFIX}{life}#?"


def any_index_pk(life: TenantEpoch) -> str:
    """A pattern for policies: this life's partitions of the indexes by status and by type."""
    return f"{life}#?"


def life_of(pk: str) -> TenantEpoch:
    """The tenant and epoch of an event's partition."""
    tenant, epoch, _shard = pk.removeprefix(EVENT_PREFIX).split("#")
    return TenantEpoch(TenantId.parse(tenant), epoch)


def event_key(life: TenantEpoch, event_id: str) -> Key:
    return key(shard_pk(life, shard_of(event_id)), event_sk(event_id))


def event_sk(event_id: str) -> str:
    return f"{'SUB' if is_submission(event_id) else 'EVT'}#{event_id}"


def by_time(within: IdRange, *, submissions: bool) -> tuple[str, str]:
    """The first and the last sort key of a range of ids, for a condition BETWEEN."""
    return _bounds("SUB#" if submissions else "EVT#", within, lambda event_id: event_id)


def event_id_of(sk: str) -> str:
    return parse_event_id(sk)


def status_index_pk(life: TenantEpoch, shard: int) -> str:
    return f"{life}#{shard:x}"


def status_index_sk(status: str, event_id: str) -> str:
    return f"{status}#{_position(event_id)}"


def by_status(status: str, within: IdRange) -> tuple[str, str]:
    return _bounds(f"{status}#", within)


def type_index_pk(life: TenantEpoch, shard: int) -> str:
    return f"{life}#{shard:x}"


def type_index_sk(event_type: str, event_id: str) -> str:
    """With the delimiter, ``user.created`` does not find ``user.created.failed``: no type contains a #."""
    return f"{event_type}#{_position(event_id)}"


def by_type(event_type: str, within: IdRange) -> tuple[str, str]:
    return _bounds(f"{event_type}#", within)


def source_index_pk(source_id: str, shard: int) -> str:
    return f"{SOURCE_PREFIX}{source_id}#{shard:x}"


def source_index_sk(event_id: str) -> str:
    return f"EVT#{_position(event_id)}"


def by_source(within: IdRange) -> tuple[str, str]:
    return _bounds("EVT#", within)


def form_index_pk(form_id: str, shard: int) -> str:
    return f"{FORM_PREFIX}{form_id}#{shard:x}"


def form_index_sk(event_id: str) -> str:
    return f"TS#{_position(event_id)}"


def by_form(within: IdRange) -> tuple[str, str]:
    return _bounds("TS#", within)


def type_of_index(sk: str) -> str:
    """The event type at that place of the index by type."""
    return sk.partition("#")[0]


def source_of_index(pk: str) -> str | None:
    return _resource_of_index(pk, SOURCE_PREFIX, IdPrefix.SOURCE)


def form_of_index(pk: str) -> str | None:
    return _resource_of_index(pk, FORM_PREFIX, IdPrefix.FORM)


def _resource_of_index(pk: str, prefix: str, kind: IdPrefix) -> str | None:
    """The id in a partition of sources or forms. A tenant with the id SRC has one that begins like those of sources."""
    resource_id = pk.removeprefix(prefix).partition("#")[0]
    return resource_id if pk.startswith(f"{prefix}{kind}_") else None


def _position(event_id: str) -> str:
    return f"{event_timestamp(received_at(event_id))}#{event_id}"


_LAST = "~"
"""Sorts after every character of an id or a timestamp."""


def _bounds(prefix: str, within: IdRange, place: Callable[[str], str] = _position) -> tuple[str, str]:
    """The sort keys between which a range of ids lies, both of them included."""
    low = high = prefix
    if within.after is not None:
        low += place(within.after) + _LAST
    elif within.first is not None:
        low += place(within.first)
    if within.before is None:
        return low, high + _LAST
    end = place(within.before)
    # No id lies between this text and the end, which is not included.
    return low, high + end[:-1] + chr(ord(end[-1]) - 1) + _LAST


def idempotency_key(life: TenantEpoch, source: str, name: str) -> Key:
    """``source`` keeps the keys of producers apart from the delivery ids of each webhook source."""
    return key(f"{IDEMPOTENCY_PREFIX}{life}#{source}#{hashlib.sha256(name.encode()).hexdigest()}", "IDEM")


def changes_pk(life: TenantEpoch) -> str:
    return f"{CHANGES_PREFIX}{life}"


def change_key(life: TenantEpoch, time: str, digest: str) -> Key:
    return key(changes_pk(life), f"{time}_{digest}")


def moment_of_change(sk: str) -> datetime:
    return datetime.fromisoformat(sk.partition("_")[0])
