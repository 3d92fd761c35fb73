"""The changes of tenants' stacks between two published releases, and whether a change set of that move is known.

The templates say which properties differ. Whether a queue is replaced is known only if a change set was reviewed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.comparing import TemplateChange, changes_between
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.reviews import Move, Review, shared_parameters

if TYPE_CHECKING:
    from orchestrator.releases.ports import Parameters, PublishedTemplates, Releases
    from orchestrator.releases.records import Release
    from orchestrator.tenants.ports import Reviews

_ANY_TENANT = TenantId.parse("any")
"""A review is the same for all tenants, so its parameters are those of any tenant, without the tenant's id."""


@dataclass(frozen=True, slots=True)
class ReleaseChanges:
    origin: str
    target: str
    changes: Sequence[TemplateChange] | None
    """``None`` if one of the templates is not as it was published."""
    review: Review | None
    """The kept review of the move by tenants that have the parameters which this control plane gives now."""


@dataclass(frozen=True, slots=True)
class ComparingReleases:
    releases: Releases
    templates: PublishedTemplates
    reviews: Reviews
    parameters: Parameters

    def compare(self, origin: str, target: str) -> ReleaseChanges | Refused:
        before, after = self.releases.release(origin), self.releases.release(target)
        if before is None or after is None:
            unknown = origin if before is None else target
            return Refused(
                Refusal.UNKNOWN_RELEASE,
                f"Version {unknown} was never published. See the published versions: berth releases",
            )
        move = Move(before, self._shared(before), after, self._shared(after))
        return ReleaseChanges(origin, target, self._changes(before, after), self.reviews.review(move.key))

    def _shared(self, release: Release) -> dict[str, str]:
        return shared_parameters(self.parameters(_ANY_TENANT, release))

    def _changes(self, before: Release, after: Release) -> Sequence[TemplateChange] | None:
        one, other = self.templates.published(before), self.templates.published(after)
        if one is None or other is None:
            return None
        return list(changes_between(json.loads(one), json.loads(other)))
