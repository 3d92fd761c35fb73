"""The operators' routes for reconciliations and the health of the control plane."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Count,
    EmptyRequest,
    GivenReason,
    Moment,
    PositiveCount,
    Reason,
    ReconciliationId,
    TenantIdText,
    Text,
    Version,
    Wire,
    WireRequest,
    keys_of,
    or_default,
)
from orchestrator.api.problems import Problem
from orchestrator.api.route import RETRY_AFTER, RETRY_AFTER_SOMETIMES, Answer, Audience, Rate, Route, location
from orchestrator.api.tenant_routes import ALWAYS
from orchestrator.reconciling import health, records
from orchestrator.reconciling.records import MAX_FINDINGS, Spec
from orchestrator.tenants.admission import Refusal

MAX_ONLY = 100
"""The maximum number of tenants that a reconciliation can be limited to."""
MAX_LISTED = 50
"""The number of reconciliations in a list."""
ReconciliationStatus = Annotated[
    records.ReconciliationStatus,
    Meta(
        title="ReconciliationStatus",
        description="INCOMPLETE: time ran out, or AWS throttled the calls. Only a part was examined; its findings are "
        "listed.",
    ),
]
FindingKind = Annotated[
    records.Kind, Meta(title="FindingKind", description="The kind of difference between the records and AWS.")
]
Remedy = Annotated[
    records.Remedy,
    Meta(title="Remedy", description="The repair for a finding. none: a person has to decide."),
]
Verdict = Annotated[health.Verdict, Meta(title="Verdict", description="The result of a check, from best to worst.")]

# Requests


class StartReconciliation(WireRequest, frozen=True, kw_only=True):
    dry_run: Annotated[
        bool, Meta(description="Only report the differences. Nothing is written and no operation is started.")
    ] = False
    detect_drift: Annotated[
        bool,
        Meta(description="Let CloudFormation compare every tenant's stack with its resources, a few at a time."),
    ] = False
    only: (
        Annotated[
            list[TenantIdText],
            Meta(
                min_length=1,
                max_length=MAX_ONLY,
                description="Repair only the findings about these tenants. The other findings are only reported.",
            ),
        ]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET

    @property
    def spec(self) -> Spec:
        return Spec(
            detect_drift=self.detect_drift,
            dry_run=self.dry_run,
            reason=or_default(self.reason, ""),
            only=or_default(self.only),
        )


class ReconciliationIdRequest(WireRequest, frozen=True, kw_only=True):
    reconciliation_id: ReconciliationId


# Answers


class Coverage(Wire, frozen=True, kw_only=True):
    """The numbers of things that were examined so far."""

    operations: Count
    tenants: Count
    stacks: Annotated[Count, Meta(description="Stacks that have a tenant's name.")]
    all_stacks: Annotated[
        Count | None,
        Meta(description="All stacks in the account and region. null until they are counted."),
    ]
    drift: Annotated[Count, Meta(description="Stacks that CloudFormation compared with their resources.")]


class Finding(Wire, frozen=True, kw_only=True):
    """One difference, and the result of its repair."""

    kind: FindingKind
    subject: Annotated[
        Text, Meta(description="The tenant's id, or the stack's name or rollout's id if there is no tenant.")
    ]
    detail: Text
    remedy: Remedy
    advice: Annotated[Text | None, Meta(description="The action for a person to take, if there is no repair.")]
    result: Annotated[Text | None, Meta(description="The result of the repair. null if no repair was tried.")]
    repaired: bool
    ordered: bool


class Reconciliation(Wire, frozen=True, kw_only=True):
    """The progress and the findings of a reconciliation."""

    reconciliation_id: ReconciliationId
    status: ReconciliationStatus
    reason: Annotated[Text | None, Meta(description="The reason why it is INCOMPLETE.")]
    requested_by: Annotated[
        Text | None, Meta(description="The caller, as the history of the repaired tenants shows it.")
    ]
    requested_because: GivenReason
    dry_run: bool
    detect_drift: bool
    started_at: Moment
    updated_at: Moment
    looked_at: Coverage
    total: Annotated[Count, Meta(description="The number of findings.")]
    repaired: Annotated[Count, Meta(description="The number of findings that the reconciliation repaired itself.")]
    ordered: Annotated[
        Count,
        Meta(
            description="The number of findings for which a repairing operation was started. The tenant has its result."
        ),
    ]
    stuck: Annotated[Count, Meta(description="Operations that are past their deadline and could not be settled.")]
    counts: Annotated[
        dict[FindingKind, PositiveCount],
        keys_of("FindingKind"),
        Meta(description="The number of findings of each kind."),
    ]
    findings: Annotated[list[Finding], Meta(max_length=MAX_FINDINGS, description="The first findings.")]


class ReconciliationInBrief(Wire, frozen=True, kw_only=True):
    """A summary of one reconciliation."""

    reconciliation_id: ReconciliationId
    status: ReconciliationStatus
    requested_by: Text | None
    dry_run: bool
    detect_drift: bool
    started_at: Moment
    updated_at: Moment
    total: Annotated[Count, Meta(description="The number of findings.")]
    repaired: Count
    ordered: Count


class Survey(Wire, frozen=True, kw_only=True):
    """The latest scheduled survey of all tenants. It repairs nothing."""

    status: ReconciliationStatus
    started_at: Moment
    updated_at: Moment
    total: Annotated[Count, Meta(description="The number of findings.")]
    counts: Annotated[dict[FindingKind, PositiveCount], keys_of("FindingKind")]
    findings: Annotated[list[Finding], Meta(max_length=MAX_FINDINGS, description="The first findings.")]


class Reconciliations(Wire, frozen=True, kw_only=True):
    """The newest reconciliations, and the latest scheduled survey."""

    reconciliations: Annotated[
        list[ReconciliationInBrief], Meta(max_length=MAX_LISTED, description="Those that were requested, newest first.")
    ]
    survey: Annotated[Survey | None, Meta(description="null if none has run yet.")]


class HealthCheck(Wire, frozen=True, kw_only=True):
    """The result of one check."""

    name: Annotated[Text, Meta(description="The name of the check. Several checks may have the same name.")]
    verdict: Verdict
    detail: Text
    advice: Annotated[Text | None, Meta(description="The action to take, if there is one.")]


class Health(Wire, frozen=True, kw_only=True):
    """The health of the control plane."""

    version: Annotated[Text, Meta(description="The version of Berth.", examples=["0.10.0"])]
    template_version: Annotated[
        Version,
        Meta(description="The version of the tenants' template: the release that the deployment has published."),
    ]
    verdict: Verdict
    checks: Annotated[list[HealthCheck], Meta(min_length=1)]


# Problems

UNKNOWN_RECONCILIATION = Problem(
    Refusal.UNKNOWN_RECONCILIATION,
    404,
    "There is no such reconciliation",
    "There is no such reconciliation.",
    required=("reconciliationId",),
)

# Routes

START_RECONCILIATION: Route[StartReconciliation, Reconciliation] = Route(
    name="startReconciliation",
    method="POST",
    path="/reconciliations",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Start a reconciliation: compare the records with AWS, and repair the differences",
    description="The reconciliation records the true result of operations whose execution died, and compares every "
    "tenant with its stack. It repairs a difference by starting an operation or by correcting the record. It forces "
    "nothing, so no message is lost. It runs in the background, because it can take a while.",
    request=StartReconciliation,
    answers=(
        Answer(
            202,
            Reconciliation,
            "The reconciliation is recorded and about to run. Follow its progress at Location.",
            (RETRY_AFTER, location("reconciliation", "/reconciliations", "0-9a-f-")),
        ),
    ),
    problems=ALWAYS,
)
GET_RECONCILIATION: Route[ReconciliationIdRequest, Reconciliation] = Route(
    name="getReconciliation",
    method="GET",
    path="/reconciliations/{reconciliationId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Get one reconciliation: its progress, its findings and their repairs",
    request=ReconciliationIdRequest,
    answers=(
        Answer(
            200,
            Reconciliation,
            "The reconciliation. While it runs, the answer has Retry-After.",
            (RETRY_AFTER_SOMETIMES,),
        ),
    ),
    problems=(*ALWAYS, UNKNOWN_RECONCILIATION),
)
LIST_RECONCILIATIONS: Route[EmptyRequest, Reconciliations] = Route(
    name="listReconciliations",
    method="GET",
    path="/reconciliations",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the newest reconciliations, and what the latest scheduled survey has found",
    description="Requested reconciliations are kept for 90 days. Of the scheduled surveys only the latest is kept.",
    request=EmptyRequest,
    answers=(Answer(200, Reconciliations, "The newest reconciliations."),),
    problems=ALWAYS,
)
GET_DIAGNOSIS: Route[EmptyRequest, Health] = Route(
    name="getDiagnosis",
    method="GET",
    path="/diagnosis",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Get the health of the control plane",
    request=EmptyRequest,
    answers=(Answer(200, Health, "Every check, and the worst verdict. The status is 200 whatever the verdict."),),
    problems=ALWAYS,
)

ROUTES = (START_RECONCILIATION, GET_RECONCILIATION, LIST_RECONCILIATIONS, GET_DIAGNOSIS)
