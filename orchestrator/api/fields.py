"""The values that requests and answers are made of: one word for one thing, with one rule.

A type with a title is a component of its own in the OpenAPI document.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType

from orchestrator.common.input_limits import (
    LABEL_NAME_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_LABELS,
    REASON_MAX_LENGTH,
    REASON_PATTERN,
)
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN, TenantId
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.rollouts import records as rollouts
from orchestrator.tenants import records
from orchestrator.tenants.credentials import Access as QueueAccess

T = TypeVar("T")


class Wire(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all wire models. Making one checks nothing: only reading one does.

    A client ignores fields of an answer that it does not know, so that answers may have more of them later.
    """

    schema_rules: ClassVar[Mapping[str, Any]] = {}
    """What the document says about the model beyond its fields, as a JSON schema."""


class WireRequest(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of requests, and of what is in them. A field that is not known is refused."""


class NothingMore(WireRequest, frozen=True, kw_only=True):
    """For routes whose path says it all."""


def whole(pattern: str) -> str:
    r"""The pattern of a whole text. Python's ``$`` would let a trailing newline through, ``\Z`` does not."""
    return pattern.removesuffix("$") + r"\Z"


def as_documented(pattern: str) -> str:
    r"""The pattern as JSON schemas have it, where ``$`` is the very end and ``\Z`` is unknown."""
    return pattern.removesuffix(r"\Z") + "$" if pattern.endswith(r"\Z") else pattern


def former_name_of(name: str) -> Meta:
    """A field that has another name now, and goes with the next minor version."""
    return Meta(description=f"The former name of {name}. It goes with 0.9.0.", extra_json_schema={"deprecated": True})


def keys_of(title: str) -> Meta:
    """An object whose keys are values of that type. msgspec checks them, but does not say so in a schema."""
    return Meta(extra_json_schema={"propertyNames": {"$ref": f"#/components/schemas/{title}"}})


# Tenants

TenantIdText = Annotated[
    str,
    Meta(
        title="TenantId",
        description="1 to 40 letters, digits and inner dashes. Ids that differ only by case are two tenants.",
        pattern=whole(TENANT_ID_PATTERN),
        max_length=TENANT_ID_MAX_LENGTH,
        examples=["acme"],
    ),
]
Version = Annotated[
    str,
    Meta(
        title="Version",
        description="A release of the tenant stack.",
        pattern=whole(VERSION_PATTERN),
        examples=["0.2.0"],
    ),
]
Labels = Annotated[
    dict[
        Annotated[str, Meta(pattern=whole(LABEL_NAME_PATTERN))],
        Annotated[str, Meta(pattern=whole(LABEL_VALUE_PATTERN))],
    ],
    Meta(
        title="Labels",
        description="What operators say about a tenant. Berth only keeps it.",
        max_length=MAX_LABELS,
        examples=[{"plan": "gold"}],
    ),
]
TenantState = Annotated[
    records.TenantState,
    Meta(
        title="TenantState",
        description="A tenant in one word. READY, UPDATING and UPDATE_FAILED are served their queue.",
    ),
]
QueueUrl = Annotated[str, Meta(title="QueueUrl", min_length=1)]
QueueArn = Annotated[str, Meta(title="QueueArn", min_length=1)]
Access = Annotated[QueueAccess, Meta(title="Access", description="What the credentials are for.")]

# Operations

Operation = Annotated[records.Operation, Meta(title="Operation", description="An upgrade is an UPDATE.")]
OperationVersion = Annotated[
    str | None,
    Meta(
        title="OperationVersion",
        description="The release that the operation is about. null for a delete, which is about the tenant, and in "
        "records from before there were versions.",
    ),
]
OperationStatus = Annotated[records.Status, Meta(title="OperationStatus", description="How far the operation is.")]
Attempt = Annotated[int, Meta(title="Attempt", description="Which try at the operation it is.", ge=1)]
Execution = Annotated[
    str, Meta(title="Execution", description="The ARN of the Step Functions execution.", min_length=1)
]

# What all have in common

Moment = Annotated[
    str,
    Meta(title="Moment", description="In UTC, with milliseconds.", extra_json_schema={"format": "date-time"}),
]
_ID = whole(ID_PATTERN)
_ID_IS = "When it was asked for, and something that tells it from others of that second."
RolloutId = Annotated[str, Meta(title="RolloutId", description=_ID_IS, pattern=_ID, examples=["20261116-023919-a21b"])]
RolloutStatus = Annotated[
    rollouts.RolloutStatus,
    Meta(
        title="RolloutStatus",
        description="PENDING, RUNNING, PAUSED and ABORTING keep other rollouts off its tenants. HALTED: it stopped "
        "itself. FAILED: every tenant had its turn, and some failed, but no more than were tolerated.",
    ),
]
ReconciliationId = Annotated[
    str, Meta(title="ReconciliationId", description=_ID_IS, pattern=_ID, examples=["20261116-023919-7c1e"])
]
AdoptionId = Annotated[
    str, Meta(title="AdoptionId", description=_ID_IS, pattern=_ID, examples=["20261116-023919-7c1e"])
]
RequestedBy = Annotated[
    Annotated[str, Meta(min_length=1)] | None,
    Meta(title="RequestedBy", description="The ARN of who asked for it, where that is known."),
]
Reason = Annotated[
    str,
    Meta(
        title="Reason",
        description="Why it is asked for, in one line. It is kept in the history with who asked.",
        pattern=whole(REASON_PATTERN),
        min_length=1,
        max_length=REASON_MAX_LENGTH,
    ),
]
GivenReason = Annotated[
    Reason | None,
    Meta(title="GivenReason", description="Why it was asked for, in the words of whoever did, where they said so."),
]
Altered = Annotated[
    bool,
    Meta(
        title="Altered",
        description="The entry does not say what it said when it was appended: somebody has put another over it.",
    ),
]
RetryAfterSeconds = Annotated[int, Meta(title="RetryAfterSeconds", description="As the header Retry-After.", ge=1)]
Count = Annotated[int, Meta(ge=0)]
SomeOf = Annotated[int, Meta(ge=1)]
"""A count of what is listed only if there is any."""
Text = Annotated[str, Meta(min_length=1)]
OnlyTrue = Annotated[bool, Meta(extra_json_schema={"const": True})]


class RootCause(Wire, frozen=True, kw_only=True):
    """Why an operation failed: the first thing that broke, not what broke after it."""

    resource: Annotated[str, Meta(description="The resource that failed first, by its name in the stack.")]
    type: Annotated[str, Meta(examples=["AWS::SQS::Queue"])]
    reason: Annotated[str, Meta(description="In AWS's own words.")]


class MessageCounts(Wire, frozen=True, kw_only=True):
    """As SQS estimates them."""

    visible: Count
    in_flight: Count
    delayed: Count


class ProblemMembers(Wire, frozen=True, kw_only=True):
    """All that problems say beyond type, title, status and detail. Each kind of problem names its members."""

    tenant_id: TenantIdText | UnsetType = UNSET
    tenant_state: TenantState | UnsetType = UNSET
    tenant_status: TenantState | UnsetType = UNSET
    operation: Operation | UnsetType = UNSET
    version: OperationVersion | UnsetType = UNSET
    attempt: Attempt | UnsetType = UNSET
    execution: Execution | UnsetType = UNSET
    root_cause: RootCause | UnsetType | None = UNSET
    tenants: Count | UnsetType = UNSET
    max_tenants: SomeOf | UnsetType = UNSET
    retry_after_seconds: RetryAfterSeconds | UnsetType = UNSET
    messages: (
        Annotated[
            dict[str, MessageCounts],
            Meta(
                min_length=1,
                extra_json_schema={
                    "propertyNames": {"enum": ["inbound queue", "dead-letter queue", "outbound queue"]},
                },
            ),
        ]
        | UnsetType
    ) = UNSET
    rollout_id: RolloutId | UnsetType = UNSET
    rollout_status: RolloutStatus | UnsetType = UNSET
    awaiting_stage: (
        Annotated[
            int, Meta(ge=1, le=rollouts.MAX_STAGES, description="The stage that does await approval, if there is one.")
        ]
        | UnsetType
    ) = UNSET
    reconciliation_id: ReconciliationId | UnsetType = UNSET
    adoption_id: AdoptionId | UnsetType = UNSET


class OfTenant(WireRequest, frozen=True, kw_only=True):
    """A request that names a tenant in its path."""

    tenant_id: TenantIdText

    @property
    def tenant(self) -> TenantId:
        return TenantId.parse(self.tenant_id)


def or_unset(value: T | None) -> T | UnsetType:
    """The value, or nothing at all if there is none."""
    return UNSET if value is None else value


def given(value: Any, default: Any = None) -> Any:
    """The value, or the default if the request did not say."""
    return default if value is UNSET else value
