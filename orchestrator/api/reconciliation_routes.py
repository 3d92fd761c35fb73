"""What operators ask for about reconciliations, adoptions and the control plane's own health."""

from __future__ import annotations

from typing import Annotated

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    AdoptionId,
    Count,
    GivenReason,
    Moment,
    NothingMore,
    Reason,
    ReconciliationId,
    SomeOf,
    Text,
    Version,
    Wire,
    WireRequest,
    given,
    keys_of,
    whole,
)
from orchestrator.api.problems import Problem
from orchestrator.api.route import RETRY_AFTER, RETRY_AFTER_SOMETIMES, Answer, Audience, Rate, Route, location
from orchestrator.api.tenant_routes import ALWAYS
from orchestrator.reconciling import health, records
from orchestrator.reconciling.records import MOST_FINDINGS, Wish
from orchestrator.tenants.admission import Refusal

CURSOR_PATTERN = "^[A-Za-z0-9_-]{1,41000}$"
"""As adoptions return it: two partition keys and a sort key that somebody else wrote, of up to 5,120 bytes. JSON may
spell each byte with six characters, and Base64 needs four characters for three."""

AdoptionCursor = Annotated[
    str,
    Meta(title="AdoptionCursor", description="Where the table is looked at next.", pattern=whole(CURSOR_PATTERN)),
]
ReconciliationStatus = Annotated[
    records.ReconciliationStatus,
    Meta(
        title="ReconciliationStatus",
        description="INCOMPLETE: time ran out, or AWS had none. Only a part was looked at, and what was found is told.",
    ),
]
FindingKind = Annotated[
    records.Kind, Meta(title="FindingKind", description="Where what is recorded and what is true differ.")
]
Remedy = Annotated[
    records.Remedy,
    Meta(title="Remedy", description="What a repair does about it. none: a person has to look."),
]
Verdict = Annotated[health.Verdict, Meta(title="Verdict", description="From the best to the worst.")]

# Requests


class StartReconciliation(WireRequest, frozen=True, kw_only=True):
    dry_run: Annotated[bool, Meta(description="Nothing is written and nothing ordered.")] = False
    detect_drift: Annotated[
        bool,
        Meta(description="Have CloudFormation compare every tenant's stack with its resources, a few at a time."),
    ] = False
    reason: Reason | UnsetType = UNSET

    @property
    def wish(self) -> Wish:
        return Wish(detect_drift=self.detect_drift, dry_run=self.dry_run, reason=given(self.reason, ""))


class StartAdoption(WireRequest, frozen=True, kw_only=True):
    dry_run: Annotated[bool, Meta(description="Nothing is written.")] = False
    cursor: AdoptionCursor | UnsetType = UNSET
    reason: Reason | UnsetType = UNSET

    @property
    def wish(self) -> Wish:
        return Wish(
            survey=False,
            adopt=True,
            dry_run=self.dry_run,
            cursor=given(self.cursor),
            reason=given(self.reason, ""),
        )


class OfReconciliation(WireRequest, frozen=True, kw_only=True):
    reconciliation_id: ReconciliationId


class OfAdoption(WireRequest, frozen=True, kw_only=True):
    adoption_id: AdoptionId


# Answers


class LookedAt(Wire, frozen=True, kw_only=True):
    """How much was looked at so far."""

    operations: Count
    tenants: Count
    stacks: Annotated[Count, Meta(description="With a tenant's name.")]
    all_stacks: Annotated[
        Count | None,
        Meta(description="In the account and region, whoever they belong to; null as long as they were not counted."),
    ]
    drift: Annotated[Count, Meta(description="Stacks that CloudFormation compared with their resources.")]
    rows: Annotated[Count, Meta(description="Rows of the table, to find tenants that are in no list.")]


class Finding(Wire, frozen=True, kw_only=True):
    """One difference, and what came of it."""

    kind: FindingKind
    subject: Annotated[
        Text, Meta(description="The tenant's id; a stack's name or a rollout's id where there is no tenant.")
    ]
    detail: Text
    remedy: Remedy
    advice: Annotated[Text | None, Meta(description="What a person can do, where no repair does it.")]
    result: Annotated[Text | None, Meta(description="What came of the repair; null when none was tried.")]
    repaired: bool
    ordered: bool


class Reconciliation(Wire, frozen=True, kw_only=True):
    """How far a reconciliation is, and what it found."""

    reconciliation_id: ReconciliationId
    status: ReconciliationStatus
    reason: Annotated[Text | None, Meta(description="Why it is incomplete.")]
    requested_by: Annotated[Text | None, Meta(description="As the history of what it repairs has it.")]
    requested_because: GivenReason
    dry_run: bool
    detect_drift: bool
    started_at: Moment
    updated_at: Moment
    looked_at: LookedAt
    total: Annotated[Count, Meta(description="How many findings there are.")]
    repaired: Annotated[Count, Meta(description="How many findings the reconciliation has put right itself.")]
    ordered: Annotated[
        Count,
        Meta(description="For how many findings an operation was ordered that puts it right. The tenant has its end."),
    ]
    stuck: Annotated[Count, Meta(description="Operations that are past their deadline and could not be settled.")]
    counts: Annotated[dict[FindingKind, SomeOf], keys_of("FindingKind"), Meta(description="All findings, by kind.")]
    findings: Annotated[list[Finding], Meta(max_length=MOST_FINDINGS, description="The first of them.")]


class UnlistedTenant(Wire, frozen=True, kw_only=True):
    """A tenant from before Berth."""

    tenant_id: Annotated[str, Meta(description="As its rows have it. It need not be valid.")]
    detail: Annotated[Text, Meta(description="What was found, or why it is not adopted.")]
    adoptable: bool
    adopted: bool
    result: Annotated[Text | None, Meta(description="What came of its adoption; null when that was not tried.")]
    advice: Annotated[Text | None, Meta(description="What a person can do where it cannot be adopted.")]


class Adoption(Wire, frozen=True, kw_only=True):
    """How far an adoption is, and whom it found."""

    adoption_id: AdoptionId
    status: ReconciliationStatus
    reason: Annotated[Text | None, Meta(description="Why it is incomplete.")]
    requested_by: Annotated[Text | None, Meta(description="As the history of those whom it adopts has it.")]
    requested_because: GivenReason
    dry_run: bool
    started_at: Moment
    updated_at: Moment
    rows: Annotated[Count, Meta(description="How many rows were looked at.")]
    total: Annotated[Count, Meta(description="How many unlisted tenants were found.")]
    adopted: Annotated[Count, Meta(description="How many of them were adopted.")]
    tenants: Annotated[
        list[UnlistedTenant],
        Meta(max_length=MOST_FINDINGS, description="All that were found, unless their texts are too long."),
    ]
    cursor: Annotated[
        AdoptionCursor | None,
        Meta(description="Where another adoption goes on; null when the whole table was looked at."),
    ]


class HealthCheck(Wire, frozen=True, kw_only=True):
    """One thing that was looked at."""

    name: Annotated[Text, Meta(description="What was looked at. There may be several checks of one name.")]
    verdict: Verdict
    detail: Text
    advice: Annotated[Text | None, Meta(description="What to do about it.")]


class Health(Wire, frozen=True, kw_only=True):
    """Whether the control plane itself is well."""

    version: Version
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
UNKNOWN_ADOPTION = Problem(
    Refusal.UNKNOWN_ADOPTION,
    404,
    "There is no such adoption",
    "There is no such adoption.",
    required=("adoptionId",),
)

# Routes

START_RECONCILIATION: Route[StartReconciliation, Reconciliation] = Route(
    name="startReconciliation",
    method="POST",
    path="/reconciliations",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Have what is recorded compared with what is true, and differences repaired",
    description="Operations whose execution died get the end that is true, every tenant is compared with its stack, "
    "and what differs is put right: by an operation as operators order it, or by correcting what is recorded. Nothing "
    "is forced, and no message is lost. It takes a while, so it runs by itself.",
    request=StartReconciliation,
    answers=(
        Answer(
            202,
            Reconciliation,
            "The reconciliation is recorded and about to run. See how it goes at Location.",
            (RETRY_AFTER, location("reconciliation", "/reconciliations", "0-9a-f-")),
        ),
    ),
    problems=ALWAYS,
)
GET_RECONCILIATION: Route[OfReconciliation, Reconciliation] = Route(
    name="getReconciliation",
    method="GET",
    path="/reconciliations/{reconciliationId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="One reconciliation: how far it is, what it found, and what came of it",
    request=OfReconciliation,
    answers=(
        Answer(
            200,
            Reconciliation,
            "The reconciliation. Retry-After, as long as it goes on.",
            (RETRY_AFTER_SOMETIMES,),
        ),
    ),
    problems=(*ALWAYS, UNKNOWN_RECONCILIATION),
)
START_ADOPTION: Route[StartAdoption, Adoption] = Route(
    name="startAdoption",
    method="POST",
    path="/adoptions",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Have tenants from before Berth brought into its lists",
    description="Looks at every row of the table. Tenants that an earlier system has written there are listed, and "
    "their stacks recorded; no stack and no queue is changed. Asking again does no harm. It takes a while, so it runs "
    "by itself. An adoption that is INCOMPLETE and has a cursor is gone on with by another one, from there.",
    request=StartAdoption,
    answers=(
        Answer(
            202,
            Adoption,
            "The adoption is recorded and about to run. See how it goes at Location.",
            (RETRY_AFTER, location("adoption", "/adoptions", "0-9a-f-")),
        ),
    ),
    problems=ALWAYS,
)
GET_ADOPTION: Route[OfAdoption, Adoption] = Route(
    name="getAdoption",
    method="GET",
    path="/adoptions/{adoptionId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="One adoption: how far it is, whom it found, and what came of it",
    request=OfAdoption,
    answers=(Answer(200, Adoption, "The adoption. Retry-After, as long as it goes on.", (RETRY_AFTER_SOMETIMES,)),),
    problems=(*ALWAYS, UNKNOWN_ADOPTION),
)
GET_DIAGNOSIS: Route[NothingMore, Health] = Route(
    name="getDiagnosis",
    method="GET",
    path="/diagnosis",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Whether the control plane itself is well",
    request=NothingMore,
    answers=(Answer(200, Health, "Every check, and the worst verdict of all. It is 200 also if that is bad."),),
    problems=ALWAYS,
)

ROUTES = (START_RECONCILIATION, GET_RECONCILIATION, START_ADOPTION, GET_ADOPTION, GET_DIAGNOSIS)
