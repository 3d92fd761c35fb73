"""The routes for the record of changes of a tenant's event configuration."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.event_fields import EventRequest, EventTime, EventWire
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.fields import whole
from orchestrator.api.for_operators import for_operators
from orchestrator.api.route import Answer, AnyRoute, Audience, Rate, Route
from orchestrator.events import records
from orchestrator.events.records import Scope

MAX_PAGE_SIZE = 100

ChangeKind = Annotated[records.ChangeKind, Meta(title="ChangeKind", description="What was changed.")]
ChangeCursor = Annotated[
    str,
    Meta(
        title="ChangeCursor",
        description="The cursor of the previous page.",
        pattern=whole(r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}\.[0-9]{6}Z_[0-9a-f]{16}$"),
    ),
]
Attributes = Annotated[dict[str, str], Meta(description="The attributes that differ. No secret is among them.")]


class ListChanges(EventRequest, frozen=True, kw_only=True):
    cursor: ChangeCursor | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="The size of a page.")] = 50


class Change(EventWire, frozen=True, kw_only=True):
    """One change of the configuration."""

    changed_at: EventTime
    changed_by: Annotated[
        str,
        Meta(description="The id of an API key, the ARN of an operator, or berth. Tenants see operator for an ARN."),
    ]
    kind: ChangeKind
    subject: Annotated[
        str | None, Meta(description="The id of the key, source, form or connection. null for settings.")
    ]
    before: Attributes
    after: Attributes


class Changes(EventWire, frozen=True, kw_only=True):
    """Changes of the configuration, newest first."""

    changes: list[Change]
    cursor: Annotated[str | None, Meta(description="The cursor for the next page. null on the last page.")]


LIST_CHANGES: Route[ListChanges, Changes] = Route(
    name="listChanges",
    method="GET",
    path="/changes",
    audience=Audience.TENANT,
    scope=Scope.ADMIN,
    rate=Rate.EVENT_READS,
    summary="List the changes of settings, keys, sources and forms",
    description="Changes are kept for 400 days, and end with the tenant.",
    request=ListChanges,
    answers=(Answer(200, Changes, "The changes, newest first."),),
    problems=BY_KEY,
)

ROUTES: tuple[AnyRoute, ...] = (LIST_CHANGES, for_operators(LIST_CHANGES))
