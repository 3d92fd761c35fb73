"""The operators' routes for rollouts, with their problems."""

from __future__ import annotations

from orchestrator.api.problems import NO_RELEASE, Problem
from orchestrator.api.rollout_models import NothingToMove, Rollout, Rollouts, RolloutUnchanged, RolloutUnderWay
from orchestrator.api.rollout_requests import (
    ApproveStage,
    ChangeRollout,
    ListRollouts,
    OrderRollout,
    PromoteStage,
    RolloutIdRequest,
    StartRollout,
)
from orchestrator.api.route import RETRY_AFTER, Answer, Audience, Rate, Route, location
from orchestrator.api.tenant_routes import (
    ALWAYS,
    DOWNGRADE,
    NOTHING_TO_RETRY,
    OTHER_TIER,
    RELEASE_WITHDRAWN,
    UNKNOWN_RELEASE,
)
from orchestrator.tenants.admission import Refusal

# Problems

UNKNOWN_ROLLOUT = Problem(
    Refusal.UNKNOWN_ROLLOUT,
    404,
    "There is no such rollout",
    "There is no such rollout, or the rollout to undo is a dry run, which moved no tenant.",
    required=("rolloutId",),
)
UNKNOWN_ALARM = Problem(Refusal.UNKNOWN_ALARM, 422, "There is no such alarm", "There is no such CloudWatch alarm.")
UNKNOWN_SELECTION = Problem(
    Refusal.UNKNOWN_SELECTION,
    422,
    "The selection names what does not exist",
    "The request names a tenant that does not exist, or a label that no tenant has. The detail says what there is. "
    "Nothing was started.",
)
ROLLOUT_IN_THE_WAY = Problem(
    Refusal.ROLLOUT_IN_THE_WAY,
    409,
    "A rollout has to end first",
    "The rollout named in rolloutId has to end first.",
    required=("rolloutId",),
)
ROLLOUT_OVER = Problem(
    Refusal.ROLLOUT_OVER,
    409,
    "The rollout is over",
    "The rollout has ended, has halted, is being aborted, or was undone, so that it does not take this order.",
    required=("rolloutId", "rolloutStatus"),
)
NOTHING_TO_APPROVE = Problem(
    Refusal.NOTHING_TO_APPROVE,
    409,
    "There is nothing to approve",
    "The stage does not await approval.",
    required=("rolloutId",),
    optional=("awaitingStage",),
)
NOTHING_TO_PROMOTE = Problem(
    Refusal.NOTHING_TO_PROMOTE,
    409,
    "There is no wait to end",
    "The stage neither bakes nor awaits approval, or it awaits approval and the request does not give it.",
    required=("rolloutId",),
    optional=("awaitingStage",),
)
_RELEASE_UNKNOWN = UNKNOWN_RELEASE.without_tenant("RolloutReleaseUnknown", "The version was never published.")
_RELEASE_WITHDRAWN = RELEASE_WITHDRAWN.without_tenant(
    "RolloutReleaseWithdrawn", "The release was withdrawn, so no rollout moves tenants to it."
)
_NO_RELEASE = NO_RELEASE.without_tenant("RolloutTierWithoutRelease", "The tier has no release to move tenants to.")
_OTHER_TIER = OTHER_TIER.without_tenant(
    "RolloutOfAnotherTier", "The release is of another tier than the request names."
)
_ALL_DOWNGRADES = DOWNGRADE.without_tenant(
    "RolloutDowngrade", "The release is older than the release of every tenant. To move them back, set allowDowngrade."
)
_NOTHING_FAILED = NOTHING_TO_RETRY.without_tenant(
    "NothingFailed", "The rollout has no failed tenants to retry, or was undone."
)

# Routes

_AT_LOCATION = (RETRY_AFTER, location("rollout", "/rollouts", "0-9a-f-"))
_STARTED = Answer(
    202, RolloutUnderWay, "The rollout is recorded and about to run. Follow its progress at Location.", _AT_LOCATION
)
_UNDER_WAY = Answer(
    202, RolloutUnderWay, "The rollout after the request. Follow its progress at Location.", _AT_LOCATION
)
_UNCHANGED = Answer(200, RolloutUnchanged, "The rollout is already in the requested state.")


def _warning_about_start(request: StartRollout) -> str | None:
    loses = request.allow_replacement and not request.dry_run
    lost = "queues with every message in them, and tables, buckets and other resources with their data"
    return f"This may replace or remove tenants' {lost}." if loses else None


def _warning_about_abort(request: OrderRollout) -> str:
    return f"This ends rollout {request.rollout_id} for good."


START_ROLLOUT: Route[StartRollout, RolloutUnderWay | NothingToMove] = Route(
    name="startRollout",
    method="POST",
    path="/rollouts",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Move tenants to a release, in stages",
    description="A dry run only reports what would change. Each stage bakes for bakeSeconds after its updates. Then "
    "the next stage begins by itself. The rollout halts if too many tenants failed or the stage's alarm goes off. Only "
    "tenants of the release's tier are moved.",
    request=StartRollout,
    answers=(Answer(200, NothingToMove, "No tenant needs to be moved."), _STARTED),
    problems=(
        *ALWAYS,
        UNKNOWN_ROLLOUT,
        _ALL_DOWNGRADES,
        ROLLOUT_IN_THE_WAY,
        _RELEASE_UNKNOWN,
        _RELEASE_WITHDRAWN,
        _NO_RELEASE,
        _OTHER_TIER,
        UNKNOWN_ALARM,
        UNKNOWN_SELECTION,
    ),
    warning=_warning_about_start,
)
LIST_ROLLOUTS: Route[ListRollouts, Rollouts] = Route(
    name="listRollouts",
    method="GET",
    path="/rollouts",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the rollouts, newest first, page by page",
    request=ListRollouts,
    answers=(Answer(200, Rollouts, "A page of rollouts."),),
    problems=ALWAYS,
)
GET_ROLLOUT: Route[RolloutIdRequest, Rollout] = Route(
    name="getRollout",
    method="GET",
    path="/rollouts/{rolloutId}",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Get one rollout: its progress, and its failures by cause",
    request=RolloutIdRequest,
    answers=(Answer(200, Rollout, "The rollout."),),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT),
)
PAUSE_ROLLOUT: Route[OrderRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="pauseRollout",
    method="POST",
    path="/rollouts/{rolloutId}/pause",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Pause a rollout",
    description="No further tenant is started until the rollout is resumed. Operations in flight finish.",
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
    summary="Resume a rollout that was paused, that halted, or whose execution died",
    description="If the rollout had halted, the failures so far are accepted, and only new ones count.",
    request=OrderRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER, ROLLOUT_IN_THE_WAY, _RELEASE_WITHDRAWN),
)
ABORT_ROLLOUT: Route[OrderRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="abortRollout",
    method="POST",
    path="/rollouts/{rolloutId}/abort",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Abort a rollout, or close one that has halted",
    description="No further tenant is started. Operations in flight finish. Tenants that were moved stay at their new "
    "release: to move them back, start a rollout with undo.",
    request=OrderRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER),
    warning=_warning_about_abort,
)
APPROVE_ROLLOUT: Route[ApproveStage, RolloutUnderWay | RolloutUnchanged] = Route(
    name="approveRollout",
    method="POST",
    path="/rollouts/{rolloutId}/approve",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Approve a stage that awaits approval",
    description="The request names the stage, so that a repeated request does not approve the next stage as well.",
    request=ApproveStage,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, NOTHING_TO_APPROVE),
)
PROMOTE_ROLLOUT: Route[PromoteStage, RolloutUnderWay | RolloutUnchanged] = Route(
    name="promoteRollout",
    method="POST",
    path="/rollouts/{rolloutId}/promote",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="End the bake of a stage, or its wait for approval",
    description="The request names the stage, so that a repeated request does not end the next wait as well. A wait "
    "for approval ends only if the request says so: approve. The "
    "stage's alarm is checked once more. A bake ends when the rollout checks it next, after up to 15 seconds or a "
    "120th of the bake.",
    request=PromoteStage,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER, NOTHING_TO_PROMOTE),
)
CHANGE_ROLLOUT: Route[ChangeRollout, RolloutUnderWay | RolloutUnchanged] = Route(
    name="changeRollout",
    method="POST",
    path="/rollouts/{rolloutId}/change",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Change the pace of a rollout that is under way",
    description="The new values apply to the current stage and to all later ones. If the concurrency is raised while a "
    "stage runs, updates in flight are finished before the stage goes on with the new concurrency.",
    request=ChangeRollout,
    answers=(_UNCHANGED, _UNDER_WAY),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, ROLLOUT_OVER),
)
RETRY_ROLLOUT: Route[OrderRollout, RolloutUnderWay] = Route(
    name="retryRollout",
    method="POST",
    path="/rollouts/{rolloutId}/retry",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Start a rollout of the tenants that failed",
    description="The new rollout has the same stages and the same target releases.",
    request=OrderRollout,
    answers=(_STARTED,),
    problems=(*ALWAYS, UNKNOWN_ROLLOUT, _NOTHING_FAILED, ROLLOUT_IN_THE_WAY, UNKNOWN_ALARM, _RELEASE_WITHDRAWN),
)

ROUTES = (
    START_ROLLOUT,
    LIST_ROLLOUTS,
    GET_ROLLOUT,
    PAUSE_ROLLOUT,
    RESUME_ROLLOUT,
    ABORT_ROLLOUT,
    APPROVE_ROLLOUT,
    PROMOTE_ROLLOUT,
    CHANGE_ROLLOUT,
    RETRY_ROLLOUT,
)
