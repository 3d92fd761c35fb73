"""The operators' route that compares one tenant's records with its stack, as CloudFormation describes it now."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from orchestrator.api.fields import Moment, QueueArn, QueueUrl, Resources, TenantIdRequest, TenantIdText, Text, Wire
from orchestrator.api.problems import UNKNOWN_TENANT
from orchestrator.api.reconciliation_routes import Finding
from orchestrator.api.route import Answer, Audience, Rate, Route
from orchestrator.api.tenant_routes import ALWAYS
from orchestrator.reconciling import comparing

Agreement = Annotated[
    comparing.Agreement,
    Meta(
        title="Agreement",
        description="Whether a tenant's records and its stack agree. CHANGING: an operation or CloudFormation is "
        "changing the tenant, so a difference would say nothing.",
    ),
]


class CompareTenant(TenantIdRequest, frozen=True, kw_only=True):
    """The tenant to compare."""


class LiveStack(Wire, frozen=True, kw_only=True):
    """A tenant's stack, as CloudFormation describes it now."""

    stack_id: Text
    status: Annotated[Text, Meta(description="The stack's status in CloudFormation.", examples=["UPDATE_COMPLETE"])]
    status_reason: Text | None
    version: Annotated[Text | None, Meta(description="The release that the stack was made from.")]
    queue_url: QueueUrl | None
    queue_arn: QueueArn | None
    resources: Resources
    changed_at: Annotated[
        Moment | None, Meta(description="When the stack was last created or updated, by Berth or anyone else.")
    ]


class ComparedTenant(Wire, frozen=True, kw_only=True):
    """A tenant's records, compared with its stack."""

    tenant_id: TenantIdText
    agreement: Agreement
    compared_at: Moment
    stack: Annotated[
        LiveStack | None,
        Meta(description="null if there is no stack, or if this control plane has no permission to see it."),
    ]
    finding: Annotated[
        Finding | None, Meta(description="The difference, as a reconciliation reports it. null if there is none.")
    ]


COMPARE_TENANT: Route[CompareTenant, ComparedTenant] = Route(
    name="compareTenant",
    method="GET",
    path="/tenants/{tenantId}/stack",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Compare a tenant's records with its stack, as CloudFormation describes it now",
    description="Nothing is changed. CloudFormation allows few such requests per second, for the whole account: while "
    "it throttles, the answer is 503, and getTenant still answers.",
    request=CompareTenant,
    answers=(Answer(200, ComparedTenant, "The tenant's stack, and whether the records agree with it."),),
    problems=(*ALWAYS, UNKNOWN_TENANT),
)
ROUTES = (COMPARE_TENANT,)
