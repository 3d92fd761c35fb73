"""The routes for usage, and for the purges of deleted tenants."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.event_configuration_models import (
    NoParameters,
    Plan,
)
from orchestrator.api.event_fields import EventRequest, EventWire
from orchestrator.api.event_routes import BY_KEY
from orchestrator.api.fields import Moment, TenantIdText, whole
from orchestrator.api.for_operators import for_operators
from orchestrator.api.problems import INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN
from orchestrator.api.route import Answer, AnyRoute, Audience, Rate, Route
from orchestrator.events.records import Scope

Month = Annotated[
    str,
    Meta(
        title="Month",
        pattern=whole(r"^20[0-9]{2}-(?:0[1-9]|1[0-2])$"),
        description="A month in UTC.",
        examples=["2026-11"],
    ),
]
Number = Annotated[int, Meta(ge=0)]
PurgeStatus = Annotated[
    Literal["waiting", "running", "failed", "done"],
    Meta(
        description="waiting: an execution starts within the hour. failed: the last execution failed, and another one "
        "starts within the hour.",
    ),
]


class GetUsage(EventRequest, frozen=True, kw_only=True):
    """Without a month, the current one."""

    month: Month | UnsetType = UNSET


class Usage(EventWire, frozen=True, kw_only=True):
    """The number of events that were accepted in a month."""

    tenant_id: TenantIdText
    month: Month
    plan: Plan
    events: Annotated[int, Meta(ge=0, description="The count that the limit is checked against, some seconds late.")]
    events_per_month: Annotated[int, Meta(ge=1, description="The limit of the plan.")]
    billed: Annotated[int, Meta(ge=0, description="The exact number of events in the hours that were counted.")]
    billed_until: Annotated[
        Moment | None,
        Meta(
            description="The end of the last hour that was recorded. Hours without events are recorded once the day "
            "is over, or with the next events."
        ),
    ]


class Purge(EventWire, frozen=True, kw_only=True):
    """The deletion of everything that a deleted tenant has left in the event plane."""

    tenant_id: TenantIdText
    epoch: Annotated[str, Meta(description="Which life of the tenant is purged.")]
    status: PurgeStatus
    stuck: Annotated[bool, Meta(description="True if the purge should have been finished long ago.")]
    requested_at: Moment
    worked_on_at: Moment | None
    finished_at: Moment | None
    failure: Annotated[str | None, Meta(description="Why the last execution failed.")]
    deleted_events: Number
    deleted_objects: Annotated[int, Meta(ge=0, description="Contents of events in S3.")]
    deleted_rows: Annotated[int, Meta(ge=0, description="Keys, sources, forms and rows of usage.")]


class Purges(EventWire, frozen=True, kw_only=True):
    """All open purges, oldest first; then the last that were finished, newest first."""

    purges: list[Purge]


GET_USAGE: Route[GetUsage, Usage] = Route(
    name="getUsage",
    method="GET",
    path="/usage",
    audience=Audience.TENANT,
    scope=Scope.READ,
    rate=Rate.EVENT_READS,
    summary="Get the number of events in a month, and the limit of the plan",
    request=GetUsage,
    answers=(Answer(200, Usage, "The usage."),),
    problems=BY_KEY,
)
LIST_PURGES: Route[NoParameters, Purges] = Route(
    name="listPurges",
    method="GET",
    path="/purges",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the purges of deleted tenants",
    request=NoParameters,
    answers=(Answer(200, Purges, "The purges."),),
    problems=(INVALID_REQUEST, NOT_THROUGH_THE_API, TRY_AGAIN),
)

ROUTES: tuple[AnyRoute, ...] = (GET_USAGE, for_operators(GET_USAGE), LIST_PURGES)
