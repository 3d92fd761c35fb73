"""The answers of the operators' routes for rollouts, and the fields of requests and answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Altered,
    Count,
    Execution,
    GivenReason,
    Labels,
    Moment,
    OnlyTrue,
    PositiveCount,
    RequestedBy,
    RetryAfterSeconds,
    RolloutId,
    RolloutStatus,
    RootCause,
    TenantIdText,
    Text,
    Tier,
    Version,
    Wire,
    keys_of,
    whole,
)
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.common.input_limits import ALARM_NAME_PATTERN
from orchestrator.rollouts import records
from orchestrator.rollouts.documents import REST
from orchestrator.rollouts.records import MAX_STAGES
from orchestrator.tenants import stack_ports

MAX_TENANTS = 500
"""The maximum number of tenants that a rollout may name. Each tenant is looked up while the operator waits."""
MAX_BAKE_SECONDS = 7 * 24 * 3600
MAX_CONCURRENCY = 1_000
MAX_FAILURES = 100
"""The maximum number of failed tenants that are read for an answer, so that a rollout can be watched that has many."""
MAX_CAUSES = 20
"""The maximum number of causes of failures in an answer. The most frequent causes come first."""
MAX_TENANTS_PER_CAUSE = 50
MAX_SKIPPED_NAMED = 20

_SHARE = "[1-9][0-9]{0,5}|([1-9][0-9]?|100)%"
_SIZE_IS = (
    'The number or the percentage of tenants in the stage, or "rest" for all remaining tenants. The last stage, and '
    'only the last, must be "rest".'
)

Share = Annotated[
    str,
    Meta(
        title="Share",
        description="A number or a percentage of tenants. Percentages are rounded up.",
        pattern=rf"^({_SHARE})\Z",
        examples=["5", "10%"],
    ),
]
Size = Annotated[str, Meta(description=_SIZE_IS, pattern=rf"^({_SHARE}|{REST})\Z", examples=["5", "10%", REST])]
Bound = Annotated[
    str,
    Meta(
        title="Bound",
        description="A number or a percentage of tenants.",
        pattern=r"^([0-9]{1,6}|([0-9]{1,2}|100)%)\Z",
        examples=["0", "5%"],
    ),
]
Concurrency = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_CONCURRENCY,
        description="The maximum number of tenants that are moved at once. A stage begins with fewer, and slows down "
        "when CloudFormation throttles. The control plane has a limit of its own.",
    ),
]
Tolerated = Annotated[
    Bound,
    Meta(
        description="The number or the percentage of the stage's tenants that may fail. Percentages are rounded down. "
        "Default: 0 for the first stage, 5% for the others."
    ),
]
NewTolerated = Annotated[Bound, Meta(description="The number or the percentage of a stage's tenants that may fail.")]
BakeSeconds = Annotated[
    int,
    Meta(
        ge=0,
        le=MAX_BAKE_SECONDS,
        description="How long the stage bakes: the time from the end of its updates until the next stage begins. The "
        "last stage that has tenants does not bake, unless it has an alarm.",
    ),
]
AlarmName = Annotated[
    Annotated[str, Meta(pattern=whole(ALARM_NAME_PATTERN))] | None,
    Meta(description="A CloudWatch alarm that halts the rollout if it goes off during bakeSeconds."),
]
Approval = Annotated[bool, Meta(description="True if an operator must approve the stage before it begins.")]
OnlyTenants = Annotated[
    list[TenantIdText], Meta(min_length=1, max_length=MAX_TENANTS, description="Move only these tenants.")
]
OnlyLabels = Annotated[Labels, Meta(description="Move only tenants that have all of these labels.")]
OnlyShare = Annotated[
    Share,
    Meta(description="Move only this share of the selected tenants. A larger share later includes the same tenants."),
]
Sample = Annotated[Share, Meta(description="The share of the tenants that a dry run examines. Default: all tenants.")]
StageNumber = Annotated[int, Meta(ge=1, le=MAX_STAGES)]
StageStatus = Annotated[
    records.StageStatus,
    Meta(
        title="StageStatus",
        description="BAKING: all tenants of the stage were tried, and the stage bakes for bakeSeconds.",
    ),
]
SkipReason = Annotated[records.Skip, Meta(title="SkipReason", description="The reason why a tenant is skipped.")]
TenantResult = Annotated[
    records.Result,
    Meta(
        title="TenantResult",
        description="The result for one tenant. In a dry run, SUCCEEDED means that the tenant would change, and "
        "UNCHANGED that it would not.",
    ),
]
Effect = Annotated[
    stack_ports.Effect,
    Meta(
        title="Effect",
        description="What becomes of a resource, as a change set says. MAY_REPLACE: CloudFormation finds out only "
        "during the update.",
    ),
]
Order = Annotated[records.Order, Meta(title="Order", description="An operator's order to a rollout.")]


class FullStageSpec(Wire, frozen=True, kw_only=True):
    """One stage of the request, with defaults filled in."""

    size: Size
    max_concurrency: Concurrency
    tolerated: Tolerated
    bake_seconds: BakeSeconds
    alarm: AlarmName
    approval: Approval


class RolloutSpec(Wire, frozen=True, kw_only=True):
    """The request for a rollout. Fields that were not given are left out, except for stages."""

    version: Version | UnsetType = UNSET
    tier: (
        Annotated[Tier, Meta(description="The tier whose tenants are moved, unless that is standard.")] | UnsetType
    ) = UNSET
    tenants: OnlyTenants | UnsetType = UNSET
    labels: OnlyLabels | UnsetType = UNSET
    share: OnlyShare | UnsetType = UNSET
    stages: Annotated[list[FullStageSpec], Meta(min_length=1, max_length=MAX_STAGES)]
    allow_downgrade: OnlyTrue | UnsetType = UNSET
    allow_replacement: OnlyTrue | UnsetType = UNSET
    dry_run: OnlyTrue | UnsetType = UNSET
    sample: Sample | UnsetType = UNSET
    undo: RolloutId | UnsetType = UNSET
    retry: RolloutId | UnsetType = UNSET


class SkippedTenants(Wire, frozen=True, kw_only=True):
    """The tenants that are skipped for one reason. If there are many, only some are named."""

    count: PositiveCount
    tenants: Annotated[list[TenantIdText], Meta(min_length=1, max_length=MAX_SKIPPED_NAMED)]


class RepairedTenants(Wire, frozen=True, kw_only=True):
    """Tenants that are at their target release already. They are updated all the same, because their last update
    failed. If there are many, only some are named."""

    count: PositiveCount
    tenants: Annotated[list[TenantIdText], Meta(min_length=1, max_length=MAX_SKIPPED_NAMED)]


Skipped = Annotated[
    dict[SkipReason, SkippedTenants],
    keys_of("SkipReason"),
    Meta(title="Skipped", description="The skipped tenants, by reason. If there are many, only some are named."),
]


class Stage(Wire, frozen=True, kw_only=True):
    """The progress of a stage."""

    number: PositiveCount
    status: StageStatus
    spec: FullStageSpec
    total: PositiveCount
    tolerated: Annotated[
        Count, Meta(description="The number of tenants that may fail, including the failures that a resume accepted.")
    ]
    succeeded: Count
    failed: Count
    skipped: Count
    in_flight: Count
    concurrency: Annotated[PositiveCount, Meta(description="The number of tenants that are moved at once now.")]
    approved_by: RequestedBy
    started_at: Moment | None
    ended_at: Moment | None
    baked_until: Moment | None


class RolloutInBrief(Wire, frozen=True, kw_only=True):
    """A summary of one rollout."""

    rollout_id: RolloutId
    status: RolloutStatus
    reason: Annotated[Text | None, Meta(description="The reason for the status, if it is not obvious.")]
    dry_run: bool
    version: Annotated[
        Version | None, Meta(description="The release to move to. null: each tenant returns to its previous release.")
    ]
    undo: Annotated[RolloutId | None, Meta(description="The rollout that this one undoes.")]
    retry: Annotated[RolloutId | None, Meta(description="The rollout whose failed tenants this one tries again.")]
    requested_by: Text
    created_at: Moment
    ended_at: Moment | None
    total: Annotated[PositiveCount, Meta(description="The number of tenants in the rollout.")]
    succeeded: Count
    failed: Count
    skipped_since: Annotated[
        Count, Meta(description="The number of tenants that were skipped later, when their turn came.")
    ]
    in_flight: Count
    current_stage: PositiveCount
    stage_count: Annotated[PositiveCount, Meta(description="The number of stages.")]
    stage_status: Annotated[StageStatus, Meta(description="The status of the current stage.")]
    baked_until: Annotated[Moment | None, Meta(description="The end of the current stage's bake, while it bakes.")]
    awaiting_stage: Annotated[StageNumber | None, Meta(description="The stage that awaits approval.")]


class RolloutProgress(RolloutInBrief, frozen=True, kw_only=True):
    execution: Annotated[Execution | None, Meta(description="null until the rollout runs.")]
    selected: Annotated[PositiveCount, Meta(description="The number of selected tenants. A dry run may examine fewer.")]
    planned: Annotated[
        list[PositiveCount],
        Meta(min_length=1, max_length=MAX_STAGES, description="The number of selected tenants in each stage."),
    ]
    spec: RolloutSpec
    skipped: Annotated[Skipped, Meta(description="The tenants that were skipped when the rollout was requested.")]
    repairs: RepairedTenants | None
    stages: Annotated[list[Stage], Meta(min_length=1, max_length=MAX_STAGES)]


class RolloutUnderWay(RolloutProgress, frozen=True, kw_only=True):
    """The rollout after the request."""

    retry_after_seconds: RetryAfterSeconds


class Failures(Wire, frozen=True, kw_only=True):
    """The tenants that failed for one cause."""

    root_cause: Annotated[RootCause, Meta(description="The cause, without names and ids that differ between tenants.")]
    count: PositiveCount
    tenants: Annotated[
        list[TenantIdText],
        Meta(
            min_length=1,
            max_length=MAX_TENANTS_PER_CAUSE,
            description="The tenants, or the first of them if there are many.",
        ),
    ]


class ResourceChange(Wire, frozen=True, kw_only=True):
    """A change of a resource, as the tenants' change sets say, and the number of tenants that would have it."""

    change: Text
    effect: Annotated[
        Effect | None,
        Meta(description="null if the change is about the stack as a whole; then there is no resource, either."),
    ]
    resource: Annotated[Text | None, Meta(description="The resource's logical id.")]
    resource_type: Text | None
    count: PositiveCount


class ReleaseMove(Wire, frozen=True, kw_only=True):
    """The number of tenants that would change by a move between two releases, which getReleaseChanges compares."""

    from_version: Version
    version: Version
    count: PositiveCount


class Changes(Wire, frozen=True, kw_only=True):
    """The result of a dry run."""

    tenants: Annotated[
        dict[TenantResult, PositiveCount],
        keys_of("TenantResult"),
        Meta(description="The number of tenants with each result."),
    ]
    resources: Annotated[
        list[ResourceChange],
        Meta(
            max_length=MAX_CAUSES,
            description="The changes of resources, the most frequent first.",
        ),
    ]
    moves: Annotated[
        list[ReleaseMove],
        Meta(
            max_length=MAX_CAUSES,
            description="The moves of the tenants that would change, the most frequent first.",
        ),
    ]


def _all_null(*names: str) -> dict[str, Any]:
    return {name: {"type": "null"} for name in names}


class RolloutOrder(Wire, frozen=True, kw_only=True):
    """One order to a rollout. Entries are appended, never changed."""

    at: Annotated[Moment | None, Meta(description="The time of the entry. null only if the row has none.")]
    order: Order | None
    requested_by: RequestedBy
    reason: GivenReason
    stage: Annotated[
        StageNumber | None,
        Meta(description="The stage that was approved, or whose bake or wait for approval was ended by a promotion."),
    ]
    rollout_id: Annotated[
        RolloutId | None,
        Meta(description="The rollout that retries or undoes this one. In a start: the rollout to retry or undo."),
    ]
    detail: Annotated[Text | None, Meta(description="The new values of a change.")]
    altered: Altered

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "oneOf": [
            {
                "description": "An order.",
                "properties": {"at": {"type": "string"}, "order": {"type": "string"}},
            },
            {
                "description": "A row of the rollout's history that Berth cannot read as an order: somebody added it "
                "by hand or overwrote an entry.",
                "properties": {
                    **_all_null("order", "requestedBy", "reason", "stage", "rolloutId", "detail"),
                    "altered": {"const": True},
                },
            },
        ]
    }


class Rollout(RolloutProgress, frozen=True, kw_only=True):
    """One rollout with all details."""

    failures: Annotated[
        list[Failures],
        Meta(max_length=MAX_CAUSES, description="The failed tenants by cause, the most frequent cause first."),
    ]
    failures_counted: Annotated[
        Count,
        Meta(
            description=f"The number of failed tenants that `failures` counts, at most {MAX_FAILURES}. If `failed` is "
            "greater, the others may have the same or other causes."
        ),
    ]
    changes: Annotated[Changes, Meta(description="The result of a dry run.")] | UnsetType = UNSET
    history: Annotated[
        list[RolloutOrder],
        Meta(description="The orders, with caller and reason."),
    ]

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "if": {"properties": {"dryRun": {"const": True}}},
        "then": {"required": ["changes"]},
        "else": {"properties": {"changes": False}},
    }


class Rollouts(Wire, frozen=True, kw_only=True):
    """One page of rollouts."""

    rollouts: Annotated[list[RolloutInBrief], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[RolloutId | None, Meta(description="The cursor for the next page. null on the last page.")]


class NothingToMove(Wire, frozen=True, kw_only=True):
    """No tenant needs to be moved."""

    status: Literal["UNCHANGED"]
    detail: Text
    skipped: Skipped


class RolloutUnchanged(Wire, frozen=True, kw_only=True):
    """The rollout is already in the requested state."""

    status: Literal["UNCHANGED"]
    detail: Text
