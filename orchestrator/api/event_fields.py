"""The types of the values in requests and answers of the event plane.

The names are in snake case, as the producers and receivers of events know them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct

from orchestrator.api.fields import whole
from orchestrator.events.event_ids import EVENT_ID_PATTERN
from orchestrator.events.event_types import EVENT_TYPE_PATTERN


class EventWire(Struct, frozen=True, kw_only=True):
    """The base of all wire models of the event plane. Clients ignore unknown fields of an answer."""

    schema_rules: ClassVar[Mapping[str, Any]] = {}
    """A JSON schema that the document adds to the schema of the model's fields."""


class EventRequest(EventWire, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of requests and of their parts. Unknown fields are refused."""


EventId = Annotated[
    str,
    Meta(title="EventId", pattern=whole(EVENT_ID_PATTERN), description="A UUID of version 7. Ids sort by time."),
]
EventType = Annotated[
    str,
    Meta(
        title="EventType",
        pattern=whole(EVENT_TYPE_PATTERN),
        description="Letters, digits and . _ : / -, such as order.created.",
        examples=["order.created"],
    ),
]
EventTime = Annotated[
    str,
    Meta(
        title="EventTime",
        pattern=whole(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z$"),
        description="In UTC, with microseconds.",
    ),
]
