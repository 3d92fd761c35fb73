"""The types of the values in requests and answers. Each type is defined once, with its limits.

A type with a title is a component of its own in the OpenAPI document.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, convert

from orchestrator.common.input_limits import (
    LABEL_NAME_PATTERN,
    LABEL_VALUE_PATTERN,
    MAX_LABELS,
    REASON_MAX_LENGTH,
    REASON_PATTERN,
)
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN, TenantId
from orchestrator.common.tiers import TIER_PATTERN
from orchestrator.common.times import ID_PATTERN
from orchestrator.common.versions import VERSION_PATTERN
from orchestrator.releases import findings
from orchestrator.rollouts import records as rollouts
from orchestrator.tenants import records
from orchestrator.tenants.credentials import Access as QueueAccess

T = TypeVar("T")


class Wire(Struct, frozen=True, kw_only=True, rename="camel"):
    """The base of all wire models. A model is validated when it is decoded, not when it is constructed.

    Clients ignore unknown fields of an answer, so that later versions can add fields.
    """

    schema_rules: ClassVar[Mapping[str, Any]] = {}
    """A JSON schema that the document adds to the schema of the model's fields."""


class WireRequest(Wire, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The base of requests and of their parts. Unknown fields are refused."""


class EmptyRequest(WireRequest, frozen=True, kw_only=True):
    """The request of routes that take no parameters."""


def whole(pattern: str) -> str:
    r"""A pattern that matches the whole text. Python's ``$`` accepts a trailing newline, ``\Z`` does not."""
    return pattern.removesuffix("$") + r"\Z"


def as_documented(pattern: str) -> str:
    r"""The pattern for a JSON schema, where ``$`` matches only the end of the text and ``\Z`` is not supported."""
    return pattern.removesuffix(r"\Z") + "$" if pattern.endswith(r"\Z") else pattern


def keys_of(title: str) -> Meta:
    """An object whose keys are of the type with this title. msgspec checks keys, but its schemas do not say so."""
    return Meta(extra_json_schema={"propertyNames": {"$ref": f"#/components/schemas/{title}"}})


# Tenants

TenantIdText = Annotated[
    str,
    Meta(
        title="TenantId",
        description="1 to 40 letters, digits and inner dashes. Tenant ids are case-sensitive.",
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
Tier = Annotated[
    str,
    Meta(
        title="Tier",
        description="The name of a tier: a kind of tenants, which has its own releases.",
        pattern=whole(TIER_PATTERN),
        examples=["gold"],
    ),
]
Labels = Annotated[
    dict[
        Annotated[str, Meta(pattern=whole(LABEL_NAME_PATTERN))],
        Annotated[str, Meta(pattern=whole(LABEL_VALUE_PATTERN))],
    ],
    Meta(
        title="Labels",
        description="Labels that operators attach to a tenant. Rollouts can select tenants by label.",
        max_length=MAX_LABELS,
        examples=[{"plan": "gold"}],
    ),
]
TenantState = Annotated[
    records.TenantState,
    Meta(
        title="TenantState",
        description="The state of a tenant. getQueue answers with the queue if the tenant is READY, UPDATING or "
        "UPDATE_FAILED.",
    ),
]
QueueUrl = Annotated[str, Meta(title="QueueUrl", min_length=1)]
Resources = Annotated[
    dict[str, str],
    Meta(
        title="Resources",
        description="The outputs of the tenant's stack, by name, besides its queue and its version. The release's "
        "template chooses them.",
        examples=[{"FilesBucket": "berth-tenant-acme-822b33ad-files-1jz4qk2x"}],
    ),
]
QueueArn = Annotated[str, Meta(title="QueueArn", min_length=1)]
Access = Annotated[QueueAccess, Meta(title="Access", description="The access that the credentials give.")]

# Operations

Operation = Annotated[
    records.Operation, Meta(title="Operation", description="The kind of operation. An upgrade is an UPDATE.")
]
OperationVersion = Annotated[
    str | None,
    Meta(
        title="OperationVersion",
        description="The release that the operation creates the tenant at or moves it to. null for a delete, and in "
        "records that were written before releases had versions.",
    ),
]
OperationStatus = Annotated[records.Status, Meta(title="OperationStatus", description="The status of the operation.")]
Attempt = Annotated[
    int,
    Meta(
        title="Attempt",
        description="The number of the attempt at the operation, counted from 1. 0: the tenant took a stack that was "
        "kept ready.",
        ge=0,
    ),
]
Execution = Annotated[
    str, Meta(title="Execution", description="The ARN of the Step Functions execution.", min_length=1)
]

# Common types

Moment = Annotated[
    str,
    Meta(title="Moment", description="A time in UTC, with milliseconds.", extra_json_schema={"format": "date-time"}),
]
_ID = whole(ID_PATTERN)
_ID_IS = "The time of the request in UTC, with a suffix that distinguishes requests of the same second."
RolloutId = Annotated[str, Meta(title="RolloutId", description=_ID_IS, pattern=_ID, examples=["20261116-023919-a21b"])]
RolloutStatus = Annotated[
    rollouts.RolloutStatus,
    Meta(
        title="RolloutStatus",
        description="While a rollout is PENDING, RUNNING, PAUSED or ABORTING, no other rollout can move its tenants. "
        "HALTED: the rollout stopped itself. FAILED: every tenant was tried, and some failed, but no more than were "
        "tolerated.",
    ),
]
ReconciliationId = Annotated[
    str, Meta(title="ReconciliationId", description=_ID_IS, pattern=_ID, examples=["20261116-023919-7c1e"])
]
RequestedBy = Annotated[
    Annotated[str, Meta(min_length=1)] | None,
    Meta(title="RequestedBy", description="The ARN of the caller that made the request. null if it is unknown."),
]
Reason = Annotated[
    str,
    Meta(
        title="Reason",
        description="The reason for the request, in one line. The history keeps the reason with the caller.",
        pattern=whole(REASON_PATTERN),
        min_length=1,
        max_length=REASON_MAX_LENGTH,
    ),
]
GivenReason = Annotated[
    Reason | None,
    Meta(
        title="GivenReason",
        description="The reason that the caller gave for the request. null if the caller gave none.",
    ),
]
Altered = Annotated[
    bool,
    Meta(
        title="Altered",
        description="True if the entry is not as Berth wrote it: somebody changed, overwrote or added it by hand.",
    ),
]
RetryAfterSeconds = Annotated[
    int, Meta(title="RetryAfterSeconds", description="The same number as in the header Retry-After.", ge=1)
]
WaitSeconds = Annotated[
    int,
    Meta(
        title="WaitSeconds",
        description="Many creates were requested at once, and this one waits for its turn: about so many seconds.",
        ge=0,
    ),
]
Count = Annotated[int, Meta(ge=0)]
PositiveCount = Annotated[int, Meta(ge=1)]
"""A count that is at least 1."""
Text = Annotated[str, Meta(min_length=1)]
OnlyTrue = Annotated[bool, Meta(extra_json_schema={"const": True})]


class RootCause(Wire, frozen=True, kw_only=True):
    """The first failure of an operation. Later failures, which are often its consequences, are left out."""

    resource: Annotated[str, Meta(description="The logical id of the resource that failed first.")]
    type: Annotated[str, Meta(examples=["AWS::SQS::Queue"])]
    reason: Annotated[str, Meta(description="The error message from AWS.")]


TemplateRule = Annotated[findings.Rule, Meta(title="TemplateRule", description="A rule of the contract for templates.")]


class TemplateFinding(Wire, frozen=True, kw_only=True):
    """A rule of the contract that a template does not keep."""

    rule: TemplateRule
    place: Annotated[
        str,
        Meta(
            description="The place in the template. Empty for the template as a whole.",
            examples=["Resources.Files.Properties.BucketName"],
        ),
    ]
    problem: Text
    advice: Annotated[Text, Meta(description="What to do about it.")]


class MessageCounts(Wire, frozen=True, kw_only=True):
    """The numbers of messages in a queue, as estimated by SQS."""

    visible: Count
    in_flight: Count
    delayed: Count


class ProblemMembers(Wire, frozen=True, kw_only=True):
    """The members of problems besides type, title, status and detail. Each kind of problem names its own."""

    tenant_id: TenantIdText | UnsetType = UNSET
    tenant_state: TenantState | UnsetType = UNSET
    operation: Operation | UnsetType = UNSET
    version: OperationVersion | UnsetType = UNSET
    attempt: Attempt | UnsetType = UNSET
    execution: Execution | UnsetType = UNSET
    root_cause: RootCause | UnsetType | None = UNSET
    tenants: Count | UnsetType = UNSET
    max_tenants: PositiveCount | UnsetType = UNSET
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
            int, Meta(ge=1, le=rollouts.MAX_STAGES, description="The stage that awaits approval, if there is one.")
        ]
        | UnsetType
    ) = UNSET
    reconciliation_id: ReconciliationId | UnsetType = UNSET
    findings: list[TemplateFinding] | UnsetType = UNSET


class TenantIdRequest(WireRequest, frozen=True, kw_only=True):
    """A request that names a tenant in its path."""

    tenant_id: TenantIdText

    @property
    def tenant(self) -> TenantId:
        return TenantId.parse(self.tenant_id)


def or_unset(value: T | None) -> T | UnsetType:
    """The value, or UNSET in place of None, so that the field is left out."""
    return UNSET if value is None else value


def or_default(value: Any, default: Any = None) -> Any:
    """The value, or the default if the request left the field out."""
    return default if value is UNSET else value


_known_models: set[object] = set()
_first_use = threading.Lock()


def converted(value: object, model: type[T] | None) -> T:
    """The value as an instance of the model.

    msgspec 0.22 prepares a model when it is first used, and two threads that do so at once crash the process.
    """
    if model in _known_models:
        return convert(value, model)
    with _first_use:
        try:
            return convert(value, model)
        finally:
            _known_models.add(model)
