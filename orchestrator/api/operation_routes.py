"""The operators' route for the newest operations of the whole fleet."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api.fields import Execution, Moment, Operation, TenantIdText, Version, Wire, WireRequest
from orchestrator.api.route import Answer, Audience, Rate, Route
from orchestrator.api.tenant_routes import ALWAYS
from orchestrator.tenants import recent

_PAGE = 50

ExecutionStatus = Annotated[
    recent.ExecutionStatus, Meta(title="ExecutionStatus", description="The status of an execution of Step Functions.")
]


class ListOperations(WireRequest, frozen=True, kw_only=True):
    limit: Annotated[int, Meta(ge=1, le=recent.MAX_RECENT, description="The number of operations.")] = _PAGE


class RecentOperation(Wire, frozen=True, kw_only=True):
    """One operation, as Step Functions lists it. The tenant has its result and its root cause."""

    tenant_id: Annotated[
        TenantIdText | None, Meta(description="null if somebody has started the execution by hand, with another name.")
    ]
    operation: Operation
    version: Annotated[Version | None, Meta(description="The release. null for a delete.")]
    status: ExecutionStatus
    execution: Execution
    started_at: Moment
    ended_at: Annotated[Moment | None, Meta(description="null while it is running.")]


class RecentOperations(Wire, frozen=True, kw_only=True):
    """The newest operations of all tenants."""

    operations: Annotated[list[RecentOperation], Meta(max_length=recent.MAX_RECENT, description="Newest first.")]


LIST_OPERATIONS: Route[ListOperations, RecentOperations] = Route(
    name="listOperations",
    method="GET",
    path="/operations",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the newest operations of all tenants, with the times that they took",
    description="Step Functions lists them, and keeps them for 90 days. It may take some seconds until one is listed, "
    "or has its new status.",
    request=ListOperations,
    answers=(Answer(200, RecentOperations, "The newest operations."),),
    problems=ALWAYS,
)
ROUTES = (LIST_OPERATIONS,)
