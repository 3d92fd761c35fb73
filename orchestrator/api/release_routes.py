"""The operators' routes for releases, with their problems."""

from __future__ import annotations

from orchestrator.api.fields import EmptyRequest
from orchestrator.api.problems import Problem
from orchestrator.api.release_models import (
    GetReleaseChanges,
    OrderRelease,
    ProposeRelease,
    ReleaseChanges,
    ReleaseChecked,
    ReleaseOrdered,
    ReleasePublished,
    Releases,
)
from orchestrator.api.route import Answer, Audience, Rate, Route
from orchestrator.api.tenant_routes import ALWAYS, RELEASE_WITHDRAWN, UNKNOWN_RELEASE
from orchestrator.releases.template_contract import MAX_TEMPLATE_BYTES
from orchestrator.tenants.admission import Refusal

# Problems

LAST_RELEASE = Problem(
    Refusal.LAST_RELEASE,
    409,
    "No other release is left",
    "Without the release, no earlier one would be left that new tenants could get. Promote another release first.",
)
RELEASE_IMMUTABLE = Problem(
    "release-immutable",
    409,
    "The version is published with another template",
    "A release never changes. Publish the template under another version.",
)
TEMPLATE_REFUSED = Problem(
    "template-refused",
    422,
    "The template does not keep the contract",
    "Nothing was published. Every finding says what to do.",
    required=("findings",),
)
_RELEASE_UNKNOWN = UNKNOWN_RELEASE.without_tenant("OrderedReleaseUnknown", "The version was never published.")
_COMPARED_RELEASE_UNKNOWN = UNKNOWN_RELEASE.without_tenant("ReleaseUnknown", "One of the versions was never published.")
_REINSTATE_FIRST = RELEASE_WITHDRAWN.without_tenant(
    "PromotedReleaseWithdrawn", "The release was withdrawn. Reinstate it first, if it is good after all."
)

# Routes

LIST_RELEASES: Route[EmptyRequest, Releases] = Route(
    name="listReleases",
    method="GET",
    path="/releases",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="List the published releases of the tenant stack, with the number of tenants at each",
    request=EmptyRequest,
    answers=(Answer(200, Releases, "The releases."),),
    problems=ALWAYS,
)
GET_RELEASE_CHANGES: Route[GetReleaseChanges, ReleaseChanges] = Route(
    name="getReleaseChanges",
    method="GET",
    path="/releases/{version}/changes",
    audience=Audience.OPERATOR,
    rate=Rate.READS,
    summary="Compare a release with another one, property by property",
    description="The templates are compared as they were published. Whether CloudFormation replaces a resource is not "
    "derived from them: `review` says whether a change set has shown that no queue is lost, and a dry run of a rollout "
    "says more.",
    request=GetReleaseChanges,
    answers=(Answer(200, ReleaseChanges, "The differences."),),
    problems=(*ALWAYS, _COMPARED_RELEASE_UNKNOWN),
)
_TEMPLATE_LIMIT = MAX_TEMPLATE_BYTES + 100_000
"""The longest template, and everything else of a request. API Gateway and Lambda take some megabytes."""

PUBLISH_RELEASE: Route[ProposeRelease, ReleasePublished] = Route(
    name="publishRelease",
    method="PUT",
    path="/releases/{version}",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Publish a template of your own as a release",
    description="The template is checked first, and refused with all findings. A published release never changes: the "
    "same template again changes nothing, and another one is refused. Publishing moves no tenant: start a rollout. In "
    "the tier standard it makes no release current: promote it. In other tiers the release that was published last is "
    "current where deployments make releases current.",
    request=ProposeRelease,
    answers=(Answer(200, ReleasePublished, "The release is published."),),
    problems=(*ALWAYS, RELEASE_IMMUTABLE, TEMPLATE_REFUSED),
    max_characters=_TEMPLATE_LIMIT,
)
CHECK_RELEASE: Route[ProposeRelease, ReleaseChecked] = Route(
    name="checkRelease",
    method="POST",
    path="/releases/{version}/check",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Check whether a template can be published",
    description="The same rules as for publishing. They include what the service role of tenants' stacks may do, and "
    "the queues of the release before. Nothing is published.",
    request=ProposeRelease,
    answers=(Answer(200, ReleaseChecked, "The findings."),),
    problems=ALWAYS,
    max_characters=_TEMPLATE_LIMIT,
)
_ORDERED = (Answer(200, ReleaseOrdered, "The release is as requested."),)


def _warning_about_withdrawal(request: OrderRelease) -> str:
    return (
        f"Nothing can be created at, upgraded to or rolled out to {request.version} any more, and rollouts to it halt."
    )


PROMOTE_RELEASE: Route[OrderRelease, ReleaseOrdered] = Route(
    name="promoteRelease",
    method="POST",
    path="/releases/{version}/promote",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Make a release current",
    description="New tenants of the release's tier get the current release. No tenant is moved. This lasts until "
    "another release is promoted. Where deployments make releases current, one of Berth's own is so only until another "
    "version is deployed, and one of another tier than standard until another one is published there.",
    request=OrderRelease,
    answers=_ORDERED,
    problems=(*ALWAYS, _RELEASE_UNKNOWN, _REINSTATE_FIRST),
)
WITHDRAW_RELEASE: Route[OrderRelease, ReleaseOrdered] = Route(
    name="withdrawRelease",
    method="POST",
    path="/releases/{version}/withdraw",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Take a bad release out: nothing chooses it any more",
    description="Rollouts to the release halt. If it was current, the newest earlier release that is not withdrawn is "
    "current. Tenants that are at it stay there and are served. Operations that have begun are finished.",
    request=OrderRelease,
    answers=_ORDERED,
    problems=(*ALWAYS, _RELEASE_UNKNOWN, LAST_RELEASE),
    warning=_warning_about_withdrawal,
)
REINSTATE_RELEASE: Route[OrderRelease, ReleaseOrdered] = Route(
    name="reinstateRelease",
    method="POST",
    path="/releases/{version}/reinstate",
    audience=Audience.OPERATOR,
    rate=Rate.ORDERS,
    summary="Take the withdrawal of a release back",
    description="The release is current again if it would be without its withdrawal. Rollouts that halted stay halted.",
    request=OrderRelease,
    answers=_ORDERED,
    problems=(*ALWAYS, _RELEASE_UNKNOWN),
)

ROUTES = (
    LIST_RELEASES,
    PUBLISH_RELEASE,
    CHECK_RELEASE,
    GET_RELEASE_CHANGES,
    PROMOTE_RELEASE,
    WITHDRAW_RELEASE,
    REINSTATE_RELEASE,
)
