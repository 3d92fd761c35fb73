"""The rows of the event plane, as permissions tell them apart: by the beginning of their partition keys."""

from __future__ import annotations

from orchestrator.adapters.dynamodb.delivery_keys import DUE_PREFIX, LISTED_REPLAYS, PARKED_PREFIX, REPLAYS_PREFIX
from orchestrator.adapters.dynamodb.event_keys import (
    CHANGES_PREFIX,
    DELIVERY_PREFIX,
    EVENT_PREFIX,
    EVENTS_PREFIX,
    FORM_PREFIX,
    IDEMPOTENCY_PREFIX,
    KEY_HASH_PREFIX,
    SOURCE_PREFIX,
)

CONFIGURATION_ROWS = f"{EVENTS_PREFIX}*"
"""Rows of the tenants' table: the settings of tenants, the lists of their keys, sources and forms, and their usage."""
LIFE_ROWS = f"{EVENTS_PREFIX}*#*"
"""Those of these rows that belong to one life of a tenant: the lists and the usage. Settings have no epoch in their
key."""
KEY_ROWS = f"{KEY_HASH_PREFIX}*"
SOURCE_ROWS = f"{SOURCE_PREFIX}*"
FORM_ROWS = f"{FORM_PREFIX}*"

CONNECTION_ROWS = (SOURCE_ROWS, FORM_ROWS)
"""Connections are in the partition of the source or the form whose events they want."""

EVENT_ROWS = f"{EVENT_PREFIX}*"
"""Rows of the table of events."""
DELIVERY_ROWS = f"{DELIVERY_PREFIX}*"
"""The deliveries of an event, from the first failure on, and its attempts."""
REPETITION_ROWS = f"{IDEMPOTENCY_PREFIX}*"
REPLAY_ROWS = f"{REPLAYS_PREFIX}*"
"""Jobs that send events again."""
CHANGE_ROWS = f"{CHANGES_PREFIX}*"
"""The record of changes of tenants' configuration."""

LIFE_ATTRIBUTES = ("CreatedAt", "WithdrawnBy")
"""The attributes of a tenant's row that say which creation of the tenant is alive."""
QUEUE_ATTRIBUTES = (*LIFE_ATTRIBUTES, "InboundQueueUrl")
"""The same attributes, with the one that says where the tenant's queue is."""

DUE_INDEX_ROWS = f"{DUE_PREFIX}*"
"""Partitions of the index by status: deliveries by the time at which they are due."""
REPLAY_INDEX_ROWS = LISTED_REPLAYS
"""Replays that are running."""
PARKED_INDEX_ROWS = f"{PARKED_PREFIX}*"
"""The parked deliveries of each connection."""
