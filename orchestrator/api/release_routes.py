"""The operators' route that compares two releases, with its models."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import Moment, Text, Version, Wire, WireRequest
from orchestrator.api.route import Answer, Audience, Rate, Route
from orchestrator.api.tenant_routes import ALWAYS, UNKNOWN_RELEASE

# Requests


class GetReleaseChanges(WireRequest, frozen=True, kw_only=True):
    version: Annotated[Version, Meta(description="The release that tenants would be moved to.")]
    from_version: Annotated[Version, Meta(description="The release that the tenants are at.")]


# Answers


class TemplateChange(Wire, frozen=True, kw_only=True):
    """A value that the templates of two releases do not have in common. It does not say what CloudFormation makes of
    it: a dry run does."""

    section: Annotated[Text, Meta(description="The section of the template.", examples=["Resources"])]
    logical_id: Annotated[Text, Meta(description="The name of the entry in the section.", examples=["InboundQueue"])]
    resource_type: Annotated[Text | None, Meta(description="null outside of the section Resources.")]
    path: Annotated[
        str,
        Meta(
            description="The place within the entry. Empty if the whole entry was added or removed.",
            examples=["Properties.VisibilityTimeout"],
        ),
    ]
    change: Literal["added", "removed", "changed"]
    before: Annotated[Any, Meta(description="The value in the earlier template, unless it was added.")] | UnsetType = (
        UNSET
    )
    after: Annotated[Any, Meta(description="The value in the later template, unless it was removed.")] | UnsetType = (
        UNSET
    )


class KeptReview(Wire, frozen=True, kw_only=True):
    """A change set of one tenant has shown that this move replaces and removes no queue. It holds for all tenants whose
    stacks are as Berth has left them."""

    reviewed_at: Moment
    change_set: Annotated[Text, Meta(description="The id of the change set.")]


class ReleaseChanges(Wire, frozen=True, kw_only=True):
    """The differences between the templates of two releases."""

    from_version: Version
    version: Version
    changes: Annotated[
        list[TemplateChange] | None,
        Meta(description="null if somebody has changed or removed a template since, or if one is too long."),
    ]
    review: Annotated[
        KeptReview | None,
        Meta(
            description="null if no change set of this move was reviewed, or if the move replaces or removes a queue."
        ),
    ]


_RELEASE_UNKNOWN = UNKNOWN_RELEASE.without_tenant("ReleaseUnknown", "One of the versions was never published.")

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
    problems=(*ALWAYS, _RELEASE_UNKNOWN),
)

ROUTES = (GET_RELEASE_CHANGES,)
