"""The requests and answers of the operators' routes for releases."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Altered,
    GivenReason,
    Moment,
    Reason,
    RequestedBy,
    RolloutId,
    TemplateFinding,
    TenantIdText,
    Text,
    Tier,
    Version,
    Wire,
    WireRequest,
    keys_of,
)
from orchestrator.api.tenant_models import TenantCounts
from orchestrator.common.tiers import STANDARD
from orchestrator.releases import publishing, records, states
from orchestrator.releases.template_contract import FIRST_VERSION_OF_OPERATORS, MAX_NOTES
from orchestrator.rollouts import releasing
from orchestrator.rollouts.releasing import MAX_LISTED

HISTORY_SIZE = 50
"""The number of changes of the releases' state that are answered."""

PromotionMode = Annotated[
    states.PromotionMode,
    Meta(
        title="PromotionMode",
        description="When a release becomes current by itself. onDeploy: when it is deployed. afterRollout: when a "
        "rollout has moved the fleet to it without a failure.",
    ),
]


ReleaseOrder = Annotated[
    records.ReleaseOrder, Meta(title="ReleaseOrder", description="What somebody did with a release.")
]
ReleaseStatus = Annotated[
    releasing.ReleaseStatus,
    Meta(title="ReleaseStatus", description="UNCHANGED: the release was as requested before."),
]


Digest = Annotated[str, Meta(pattern=r"^[0-9a-f]{64}\Z", description="SHA-256 of the template.")]


class OrderRelease(WireRequest, frozen=True, kw_only=True):
    """An order names a release in its path, and takes a reason."""

    version: Version
    reason: Reason | UnsetType = UNSET


class ProposeRelease(WireRequest, frozen=True, kw_only=True):
    """A template that an operator wants to publish."""

    version: Annotated[Version, Meta(description=f"{FIRST_VERSION_OF_OPERATORS} or later.")]
    template: Annotated[
        dict[str, Any],
        Meta(description="The CloudFormation template, as JSON. docs/templates.md has the rules and an example."),
    ]
    notes: (
        Annotated[
            str,
            Meta(min_length=1, max_length=MAX_NOTES, description="What the release changes, for other operators."),
        ]
        | UnsetType
    ) = UNSET
    tier: Annotated[Tier, Meta(description="The tier whose tenants may be at the release.")] = STANDARD
    allow_replacement: Annotated[
        bool,
        Meta(description="Publish the template although it lacks a queue of the release before it."),
    ] = False

    def to_domain(self, by: str) -> publishing.Proposal:
        return publishing.Proposal(
            self.version,
            self.template,
            by,
            "" if self.notes is UNSET else self.notes,
            self.allow_replacement,
            self.tier,
        )


class GetReleaseChanges(WireRequest, frozen=True, kw_only=True):
    version: Annotated[Version, Meta(description="The release that tenants would be moved to.")]
    from_version: Annotated[Version, Meta(description="The release that the tenants are at.")]


class Withdrawal(Wire, frozen=True, kw_only=True):
    """A release was withdrawn: no create, upgrade, retry or rollout chooses it any more."""

    at: Moment
    requested_by: RequestedBy
    reason: GivenReason


class Release(Wire, frozen=True, kw_only=True):
    """A published release of the tenant stack."""

    version: Version
    digest: Digest
    template_url: Text
    published_at: Moment
    published_by: Annotated[
        RequestedBy, Meta(description="Who published an operator's own template. null if it came with a deployment.")
    ]
    notes: Annotated[
        Text | None,
        Meta(description="What is new in the release, in the words of its publisher."),
    ]
    tier: Annotated[Tier, Meta(description="The tier whose tenants may be at the release.")]
    current: Annotated[bool, Meta(description="True for the release that new tenants of its tier get.")]
    withdrawn: Annotated[Withdrawal | None, Meta(description="null unless the release is withdrawn.")]
    tenants: Annotated[TenantCounts, Meta(description="The tenants at this release.")]


class ReleaseHistoryEntry(Wire, frozen=True, kw_only=True):
    """One change of which release is current, or which releases are withdrawn."""

    at: Moment | None
    order: Annotated[ReleaseOrder | None, Meta(description="null if the entry cannot be read.")]
    version: str
    requested_by: RequestedBy
    reason: GivenReason
    altered: Altered


class ReleaseChecked(Wire, frozen=True, kw_only=True):
    """The findings of a check. Nothing was published."""

    version: Version
    digest: Digest
    findings: Annotated[list[TemplateFinding], Meta(description="Empty if the template can be published.")]
    compared_with: Annotated[
        Version | None,
        Meta(description="The release whose queues the template has to keep. null if none was compared."),
    ]


class ReleasePublished(Wire, frozen=True, kw_only=True):
    """The release is published. It never changes."""

    version: Version
    status: Annotated[
        Literal["PUBLISHED", "UNCHANGED"],
        Meta(description="UNCHANGED: the same template was published under this version before."),
    ]
    detail: Text
    digest: Digest
    template_url: Text
    published_at: Moment
    tier: Annotated[Tier, Meta(description="The tier whose tenants may be at the release.")]
    current: Annotated[Version, Meta(description="The release that new tenants of the tier get.")]


class Releases(Wire, frozen=True, kw_only=True):
    """The published releases, and the number of tenants at each."""

    current: Annotated[
        Version,
        Meta(
            description="The release that new tenants of the tier standard get, unless the request names another. "
            "tiers has the other tiers."
        ),
    ]
    tiers: Annotated[
        dict[Tier, Version | None],
        keys_of("Tier"),
        Meta(description="The current release of each tier. null if all releases of the tier are withdrawn."),
    ]
    default_tier: Annotated[Tier, Meta(description="The tier of new tenants, unless the request names another.")]
    deployed: Annotated[Version, Meta(description="The release that the deployment has published.")]
    promotion: PromotionMode
    counted_at: Annotated[
        Moment,
        Meta(description="The time when the tenants were counted. A large fleet is counted every few minutes."),
    ]
    releases: Annotated[list[Release], Meta(description="Newest first.")]
    elsewhere: Annotated[
        dict[str, TenantCounts],
        Meta(
            description="Tenants at versions that are not published releases, by version. Tenants without a version "
            "are under the empty text."
        ),
    ]
    history: Annotated[
        list[ReleaseHistoryEntry],
        Meta(
            max_length=HISTORY_SIZE,
            description="Who promoted, withdrew and reinstated which release, newest first. Entries are never changed "
            "or removed.",
        ),
    ]


class ReleaseOrdered(Wire, frozen=True, kw_only=True):
    """The release after the order."""

    version: Version
    status: ReleaseStatus
    detail: Text
    tier: Annotated[Tier, Meta(description="The tier of the release.")]
    current: Annotated[Version, Meta(description="The release that new tenants of the tier get now.")]
    current_before: Annotated[Version, Meta(description="The release that was current before the order.")]
    withdrawn: Annotated[Withdrawal | None, Meta(description="null unless the release is withdrawn.")]
    tenants: Annotated[
        list[TenantIdText],
        Meta(
            max_length=MAX_LISTED,
            description="Tenants that are at a release that was withdrawn. They stay there and are served. The index "
            "that they are read from lags by a moment.",
        ),
    ]
    has_more_tenants: Annotated[bool, Meta(description="True if more tenants are at the release than are listed.")]
    rollouts: Annotated[
        list[RolloutId],
        Meta(description="Rollouts that were moving tenants to a release that was withdrawn. They halt."),
    ]


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
        Meta(description="null if somebody has changed or removed a template since."),
    ]
    review: Annotated[
        KeptReview | None,
        Meta(
            description="null if no change set of this move was reviewed, or if the move replaces or removes a queue."
        ),
    ]
