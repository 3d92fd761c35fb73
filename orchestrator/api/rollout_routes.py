"""What operators ask for about rollouts: the requests, the answers, the problems, and the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from msgspec import UNSET, Meta, UnsetType, to_builtins

from orchestrator.api.fields import (
    Altered,
    Count,
    Execution,
    GivenReason,
    Labels,
    Moment,
    OnlyTrue,
    Reason,
    RequestedBy,
    RetryAfterSeconds,
    RolloutId,
    RolloutStatus,
    RootCause,
    SomeOf,
    TenantIdText,
    Text,
    Version,
    Wire,
    WireRequest,
    given,
    keys_of,
)
from orchestrator.api.problems import Problem
from orchestrator.api.route import RETRY_AFTER, Answer, Audience, Rate, Route, location
from orchestrator.api.tenant_routes import ALWAYS, DOWNGRADE, MAX_PAGE_SIZE, NOTHING_TO_RETRY, UNKNOWN_RELEASE
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts import records
from orchestrator.rollouts.documents import REST, wish_from
from orchestrator.rollouts.records import MAX_STAGES
from orchestrator.tenants.admission import Refusal
from orchestrator.tenants.fleet import PAGE_SIZE

MAX_TENANTS = 500
"""How many tenants a rollout may name. Each is looked up while the operator waits."""
MAX_BAKE_SECONDS = 7 * 24 * 3600
MAX_CONCURRENCY = 1_000
MAX_CAUSES = 20
"""How many causes of failures are told, the most frequent first."""
MAX_TENANTS_PER_CAUSE = 50
MAX_SKIPPED_NAMED = 20

_SHARE = "[1-9][0-9]{0,5}|([1-9][0-9]?|100)%"
_SIZE_IS = (
    "How many of the tenants, or how many in a hundred; or all that are left, which the last stage takes, and only "
    "that."
)

Share = Annotated[
    str,
    Meta(
        title="Share",
        description="So many, or so many in a hundred, rounded up.",
        pattern=rf"^({_SHARE})\Z",
        examples=["5", "10%"],
    ),
]
Size = Annotated[str, Meta(description=_SIZE_IS, pattern=rf"^({_SHARE}|{REST})\Z", examples=["5", "10%", REST])]
Bound = Annotated[
    str,
    Meta(
        title="Bound",
        description="So many, or so many in a hundred.",
        pattern=r"^([0-9]{1,6}|([0-9]{1,2}|100)%)\Z",
        examples=["0", "5%"],
    ),
]
Concurrency = Annotated[
    int,
    Meta(
        ge=1,
        le=MAX_CONCURRENCY,
        description="How many tenants are moved at once, at most. It begins with fewer, and goes down to fewer when "
        "CloudFormation throttles. No more than the control plane allows.",
    ),
]
Tolerated = Annotated[
    Bound,
    Meta(
        description="How many of its tenants may fail, or how many in a hundred, rounded down. None of the first "
        "stage's, unless it says so; 5% of the others'."
    ),
]
BakeSeconds = Annotated[
    int, Meta(ge=0, le=MAX_BAKE_SECONDS, description="How long to wait after it before the next begins.")
]
AlarmName = Annotated[
    Annotated[str, Meta(pattern=r"^[A-Za-z0-9 ._:/@+=()-]{1,255}\Z")] | None,
    Meta(description="A CloudWatch alarm that halts the rollout if it goes off until then."),
]
Approval = Annotated[bool, Meta(description="Whether someone has to approve of it before it begins.")]
OnlyTenants = Annotated[list[TenantIdText], Meta(min_length=1, max_length=MAX_TENANTS, description="Only these.")]
OnlyLabels = Annotated[Labels, Meta(description="Only tenants with all of these.")]
OnlyShare = Annotated[Share, Meta(description="Only so many of them. More of them later are these and others.")]
Sample = Annotated[Share, Meta(description="How many tenants a dry run looks at. Without it: all of them.")]
StageNumber = Annotated[int, Meta(ge=1, le=MAX_STAGES)]
StageStatus = Annotated[
    records.StageStatus,
    Meta(
        title="StageStatus",
        description="BAKING: all of its tenants had their turn, and time shows whether they are well.",
    ),
]
SkipReason = Annotated[records.Skip, Meta(title="SkipReason", description="Why a tenant is left out.")]
TenantResult = Annotated[
    records.Result,
    Meta(
        title="TenantResult",
        description="What became of a tenant. Of a dry run: SUCCEEDED would change, UNCHANGED would not.",
    ),
]
Order = Annotated[records.Order, Meta(title="Order", description="What somebody had done with a rollout.")]

# Requests


class StageWish(WireRequest, frozen=True, kw_only=True):
    """One stage, as asked for."""

    size: Size
    max_concurrency: Concurrency | UnsetType = UNSET
    tolerated: Tolerated | UnsetType = UNSET
    bake_seconds: BakeSeconds | UnsetType = UNSET
    alarm: AlarmName | UnsetType = UNSET
    approval: Approval = False


class StartRollout(WireRequest, frozen=True, kw_only=True):
    version: (
        Annotated[Version, Meta(description="The release to move to. Without it: the current one.")] | UnsetType
    ) = UNSET
    tenants: OnlyTenants | UnsetType = UNSET
    labels: OnlyLabels | UnsetType = UNSET
    share: OnlyShare | UnsetType = UNSET
    stages: (
        Annotated[
            list[StageWish],
            Meta(
                min_length=1,
                max_length=MAX_STAGES,
                description="One after the other. Without any: one tenant, then 10%, then the rest.",
            ),
        ]
        | UnsetType
    ) = UNSET
    allow_downgrade: Annotated[bool, Meta(description="Also back to an older release.")] = False
    allow_replacement: Annotated[
        bool, Meta(description="Also if that replaces or removes a queue, with the messages in it.")
    ] = False
    dry_run: Annotated[bool, Meta(description="Only find out what would change.")] = False
    sample: Sample | UnsetType = UNSET
    undo: (
        Annotated[
            RolloutId,
            Meta(description="The rollout whose tenants are returned to where they were, or to the version named."),
        ]
        | UnsetType
    ) = UNSET
    reason: Reason | UnsetType = UNSET

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "dependentSchemas": {
            "sample": {
                "description": "Only a dry run looks at a sample.",
                "required": ["dryRun"],
                "properties": {"dryRun": {"const": True}},
            },
            "undo": {"description": "It is about the tenants of that rollout.", "properties": {"tenants": False}},
        }
    }

    def wish(self, *, max_concurrency: int) -> records.Wish:
        """``max_concurrency`` is how many tenants the control plane moves at once, whatever is wished."""
        stages: list[StageWish] = given(self.stages, [])
        if [stage.size == REST for stage in stages] != [*(False for _ in stages[1:]), *(True for _ in stages[:1])]:
            raise InvalidRequest(f"stages: the last one, and only that, takes the {REST}.")
        if self.undo is not UNSET and self.tenants is not UNSET:
            raise InvalidRequest("undo: it is about the tenants of that rollout, so it does not go with tenants.")
        if self.sample is not UNSET and not self.dry_run:
            raise InvalidRequest("sample: only a dry run looks at a sample.")
        if any(given(stage.max_concurrency, 0) > max_concurrency for stage in stages):
            raise InvalidRequest(f"maxConcurrency: this control plane moves {max_concurrency} tenants at once at most.")
        return wish_from(to_builtins(self), max_concurrency=max_concurrency)


class OfRollout(WireRequest, frozen=True, kw_only=True):
    """A request that names a rollout in its path."""

    rollout_id: RolloutId


class OrderRollout(OfRollout, frozen=True, kw_only=True):
    """There is nothing more to say."""

    reason: Reason | UnsetType = UNSET


class ApproveStage(OfRollout, frozen=True, kw_only=True):
    """The stage that may begin."""

    stage: StageNumber
    reason: Reason | UnsetType = UNSET


class ListRollouts(WireRequest, frozen=True, kw_only=True):
    cursor: Annotated[RolloutId, Meta(description="From the page before.")] | UnsetType = UNSET
    limit: Annotated[int, Meta(ge=1, le=MAX_PAGE_SIZE, description="How many rollouts to a page.")] = PAGE_SIZE


# Answers


class FullStageWish(Wire, frozen=True, kw_only=True):
    """One stage, as asked for or as it is by default."""

    size: Size
    max_concurrency: Concurrency
    tolerated: Tolerated
    bake_seconds: BakeSeconds
    alarm: AlarmName
    approval: Approval


class RolloutWish(Wire, frozen=True, kw_only=True):
    """What was asked for. What was not said is left out, except for stages."""

    version: Version | UnsetType = UNSET
    tenants: OnlyTenants | UnsetType = UNSET
    labels: OnlyLabels | UnsetType = UNSET
    share: OnlyShare | UnsetType = UNSET
    stages: Annotated[list[FullStageWish], Meta(min_length=1, max_length=MAX_STAGES)]
    allow_downgrade: OnlyTrue | UnsetType = UNSET
    allow_replacement: OnlyTrue | UnsetType = UNSET
    dry_run: OnlyTrue | UnsetType = UNSET
    sample: Sample | UnsetType = UNSET
    undo: RolloutId | UnsetType = UNSET
    retry: RolloutId | UnsetType = UNSET


class SkippedTenants(Wire, frozen=True, kw_only=True):
    """Tenants that are left out for one reason. Not all of many are named."""

    count: SomeOf
    tenants: Annotated[list[TenantIdText], Meta(min_length=1, max_length=MAX_SKIPPED_NAMED)]


Skipped = Annotated[
    dict[SkipReason, SkippedTenants],
    keys_of("SkipReason"),
    Meta(title="Skipped", description="By the reason. Not all of them are named."),
]


class Stage(Wire, frozen=True, kw_only=True):
    """How far a stage is."""

    number: SomeOf
    status: StageStatus
    wish: FullStageWish
    total: SomeOf
    tolerated: Annotated[
        Count, Meta(description="How many may fail, with those that an operator has seen when resuming.")
    ]
    succeeded: Count
    failed: Count
    skipped: Count
    in_flight: Count
    concurrency: Annotated[SomeOf, Meta(description="How many are moved at once now.")]
    approved_by: RequestedBy
    started_at: Moment | None
    ended_at: Moment | None
    baked_until: Moment | None


class RolloutInBrief(Wire, frozen=True, kw_only=True):
    """One rollout at a glance."""

    rollout_id: RolloutId
    status: RolloutStatus
    reason: Annotated[Text | None, Meta(description="Why it is in that status, where that is not obvious.")]
    dry_run: bool
    version: Annotated[
        Version | None, Meta(description="null: each tenant to the release that it was moved away from.")
    ]
    undo: Annotated[RolloutId | None, Meta(description="The rollout whose tenants it returns.")]
    retry: Annotated[RolloutId | None, Meta(description="The rollout whose failed tenants it tries again.")]
    requested_by: Text
    created_at: Moment
    ended_at: Moment | None
    total: Annotated[SomeOf, Meta(description="How many tenants have their turn in it.")]


class RolloutProgress(RolloutInBrief, frozen=True, kw_only=True):
    execution: Annotated[Execution | None, Meta(description="null until it runs.")]
    current_stage: SomeOf
    selected: Annotated[SomeOf, Meta(description="How many tenants it is about. A dry run may look at fewer.")]
    planned: Annotated[
        list[SomeOf],
        Meta(min_length=1, max_length=MAX_STAGES, description="How many of them each stage has, or would have."),
    ]
    wish: RolloutWish
    skipped: Annotated[Skipped, Meta(description="Who was left out from the beginning.")]
    succeeded: Count
    failed: Count
    skipped_since: Annotated[Count, Meta(description="How many were left out when it was their turn.")]
    in_flight: Count
    stages: Annotated[list[Stage], Meta(min_length=1, max_length=MAX_STAGES)]


class RolloutUnderWay(RolloutProgress, frozen=True, kw_only=True):
    """The rollout as it is after what was asked for."""

    retry_after_seconds: RetryAfterSeconds


class Failures(Wire, frozen=True, kw_only=True):
    """The tenants that failed for one reason."""

    root_cause: Annotated[RootCause, Meta(description="What tells one tenant from another is left out of it.")]
    count: SomeOf
    tenants: Annotated[
        list[TenantIdText],
        Meta(min_length=1, max_length=MAX_TENANTS_PER_CAUSE, description="Not all of many."),
    ]


class ResourceChange(Wire, frozen=True, kw_only=True):
    """What would change, and in how many tenants."""

    change: Text
    count: SomeOf


class Changes(Wire, frozen=True, kw_only=True):
    """What a dry run found out."""

    tenants: Annotated[
        dict[TenantResult, SomeOf], keys_of("TenantResult"), Meta(description="How many there are of each result.")
    ]
    resources: Annotated[
        list[ResourceChange],
        Meta(
            max_length=MAX_CAUSES,
            description="What would change in how many tenants, the most frequent first.",
        ),
    ]


def _all_null(*names: str) -> dict[str, Any]:
    return {name: {"type": "null"} for name in names}


class RolloutOrder(Wire, frozen=True, kw_only=True):
    """One order. Entries are appended, never changed."""

    at: Annotated[Moment | None, Meta(description="null only where the row does not say.")]
    order: Order | None
    requested_by: RequestedBy
    reason: GivenReason
    stage: Annotated[StageNumber | None, Meta(description="The stage that was approved.")]
    rollout_id: Annotated[
        RolloutId | None,
        Meta(description="The rollout that retries or undoes this one; of a start, the one that is retried or undone."),
    ]
    altered: Altered

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "oneOf": [
            {
                "description": "An order.",
                "properties": {"at": {"type": "string"}, "order": {"type": "string"}},
            },
            {
                "description": "A row of the rollout's history that is no order at all: somebody has put it there, or "
                "over what was recorded.",
                "properties": {
                    **_all_null("order", "requestedBy", "reason", "stage", "rolloutId"),
                    "altered": {"const": True},
                },
            },
        ]
    }


class Rollout(RolloutProgress, frozen=True, kw_only=True):
    """One rollout in full."""

    failures: Annotated[
        list[Failures], Meta(max_length=MAX_CAUSES, description="By what failed, the most frequent first.")
    ]
    changes: Annotated[Changes, Meta(description="Of a dry run: what it found out.")] | UnsetType = UNSET
    history: Annotated[
        list[RolloutOrder],
        Meta(description="What was ordered, by whom and why. Rollouts from before 0.6.0 have none."),
    ]

    schema_rules: ClassVar[Mapping[str, Any]] = {
        "if": {"properties": {"dryRun": {"const": True}}},
        "then": {"required": ["changes"]},
        "else": {"properties": {"changes": False}},
    }


class Rollouts(Wire, frozen=True, kw_only=True):
    """One page of rollouts."""

    rollouts: Annotated[list[RolloutInBrief], Meta(max_length=MAX_PAGE_SIZE)]
    cursor: Annotated[RolloutId | None, Meta(description="Where the next page begins. null when this is the last.")]


class NothingToMove(Wire, frozen=True, kw_only=True):
    """No tenant has to be moved."""

    status: Literal["UNCHANGED"]
    detail: Text
    skipped: Skipped


class RolloutUnchanged(Wire, frozen=True, kw_only=True):
    """The rollout is already in the requested state."""

    status: Literal["UNCHANGED"]
    detail: Text


# Problems

UNKNOWN_ROLLOUT = Problem(
    Refusal.UNKNOWN_ROLLOUT,
    404,
    "There is no such rollout",
    "There is no such rollout; or one was to be undone that is a dry run, and moved nobody.",
    required=("rolloutId",),
)
UNKNOWN_ALARM = Problem(Refusal.UNKNOWN_ALARM, 422, "There is no such alarm", "There is no such CloudWatch alarm.")
ROLLOUT_IN_THE_WAY = Problem(
    Refusal.ROLLOUT_IN_THE_WAY,
    409,
    "A rollout is in the way",
    "That rollout has to be over first.",
    required=("rolloutId",),
)
ROLLOUT_OVER = Problem(
    Refusal.ROLLOUT_OVER,
    409,
    "The rollout is over",
    "The rollout has ended, or will not go on.",
    required=("rolloutId", "rolloutStatus"),
)
NOTHING_TO_APPROVE = Problem(
    Refusal.NOTHING_TO_APPROVE,
    409,
    "There is nothing to approve",
    "That stage does not await approval.",
    required=("rolloutId",),
    optional=("awaitingStage",),
)
_RELEASE_UNKNOWN = UNKNOWN_RELEASE.without_tenant("RolloutReleaseUnknown", "That version was never published.")
_ALL_DOWNGRADES = DOWNGRADE.without_tenant(
    "RolloutDowngrade", "That release is older than all of the tenants'. Allow the downgrade."
)
_NOTHING_FAILED = NOTHING_TO_RETRY.without_tenant(
    "NothingFailed", "The rollout has no failed tenants that could be retried."
)

# Routes

_AT_LOCATION = (RETRY_AFTER, location("rollout", "/rollouts", "0-9a-f-"))
_STARTED = Answer(
    202, RolloutUnderWay, "The rollout is recorded and about to run. See how it goes at Location.", _AT_LOCATION
)
_UNDER_WAY = Answer(202, RolloutUnderWay, "The rollout as it is now. See how it goes at Location.", _AT_LOCATION)
_UNCHANGED = Answer(200, RolloutUnchanged, "The rollout is already in the requested state.")

START_ROLLOUT: Route[StartRollout, RolloutUnderWay | NothingToMove] = Route(
    name="startRollout",
    method="POST",
    path="/rollouts",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Move tenants to a release, in stages",
    description="Or only find out what that would change: a dry run. The stages go on by themselves: after each, time "
    "shows whether its tenants are well; if too many failed or its alarm goes off, the rollout halts.",
    request=StartRollout,
    answers=(Answer(200, NothingToMove, "No tenant has to be moved."), _STARTED),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, _ALL_DOWNGRADES, ROLLOUT_IN_THE_WAY, _RELEASE_UNKNOWN, UNKNOWN_ALARM),
)
LIST_ROLLOUTS: Route[ListRollouts, Rollouts] = Route(
    name="listRollouts",
    method="GET",
    path="/rollouts",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="All rollouts, the newest first, a page at a time",
    request=ListRollouts,
    answers=(Answer(200, Rollouts, "A page of rollouts."),),
    problems=ALWAYS,
)
GET_ROLLOUT: Route[OfRollout, Rollout] = Route(
    name="getRollout",
    method="GET",
    path="/rollouts/{rolloutId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="One rollout: how far it is, and what failed, by cause",
    request=OfRollout,
    answers=(Answer(200, Rollout, "The rollout."),),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT),
)
PAUSE_ROLLOUT: Route[OrderRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="pauseRollout",
    method="POST",
    path="/rollouts/{rolloutId}/pause",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Start no more tenants, until it is resumed",
    description="Those that were started are finished.",
    request=OrderRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER),
)
RESUME_ROLLOUT: Route[OrderRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="resumeRollout",
    method="POST",
    path="/rollouts/{rolloutId}/resume",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Let a rollout go on: after a pause, after it halted, or after its execution died",
    description="After it halted, only further failures count against what is tolerated.",
    request=OrderRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER, ROLLOUT_IN_THE_WAY),
)
ABORT_ROLLOUT: Route[OrderRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="abortRollout",
    method="POST",
    path="/rollouts/{rolloutId}/abort",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Start no more tenants, ever",
    description="Those that were started are finished. What was moved stays moved: undo that by another rollout.",
    request=OrderRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER),
)
APPROVE_ROLLOUT: Route[ApproveStage, RolloutUnderWay | RolloutUnchanged] = Route(
    name="approveRollout",
    method="POST",
    path="/rollouts/{rolloutId}/approve",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Let a stage begin that waits for it",
    description="The stage is named, so that a request which arrives twice does not approve of the next one, too.",
    request=ApproveStage,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, NOTHING_TO_APPROVE),
)
RETRY_ROLLOUT: Route[OrderRollout, RolloutUnderWay] = Route(
    name="retryRollout",
    method="POST",
    path="/rollouts/{rolloutId}/retry",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Another rollout, of only the tenants that failed",
    description="With the same stages, to where they were to be moved.",
    request=OrderRollout,
    answers=(_STARTED,),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, _NOTHING_FAILED, ROLLOUT_IN_THE_WAY, UNKNOWN_ALARM),
)

ROUTES = (
    START_ROLLOUT,
    LIST_ROLLOUTS,
    GET_ROLLOUT,
    PAUSE_ROLLOUT,
    RESUME_ROLLOUT,
    ABORT_ROLLOUT,
    APPROVE_ROLLOUT,
    RETRY_ROLLOUT,
)
