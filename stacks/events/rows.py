"""The rows of the event plane, as permissions tell them apart: by the beginning of their partition keys."""

from __future__ import annotations

from orchestrator.adapters.dynamodb.event_keys import (
    CHANGES_PREFIX,
    EVENT_PREFIX,
    EVENTS_PREFIX,
    FORM_PREFIX,
    IDEMPOTENCY_PREFIX,
    KEY_HASH_PREFIX,
    SOURCE_PREFIX,
)

CONFIGURATION_ROWS = f"{EVENTS_PREFIX}*"
"""In the tenants' table: the settings of tenants, the lists of their keys, sources and forms, and their usage."""
KEY_ROWS = f"{KEY_HASH_PREFIX}*"
SOURCE_ROWS = f"{SOURCE_PREFIX}*"
FORM_ROWS = f"{FORM_PREFIX}*"

EVENT_ROWS = f"{EVENT_PREFIX}*"
"""In the table of events."""
REPETITION_ROWS = f"{IDEMPOTENCY_PREFIX}*"
CHANGE_ROWS = f"{CHANGES_PREFIX}*"
"""The record of changes of tenants' configuration."""

LIFE_ATTRIBUTES = ("CreatedAt", "WithdrawnBy")
"""The attributes of a tenant's row that say which creation of the tenant is alive (decision 39)."""
