"""Publishing an operator's own template as a release, without a deployment of Berth.

The template is stored under its digest before the release is recorded, so a request that dies in between leaves only
an object that nobody uses. The release is recorded once: publishing the same template again changes nothing, and
another template under the same version is refused. In the tier ``standard``, publishing makes no release
current; other tiers get their releases no other way: see :mod:`orchestrator.releases.states`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import readable
from orchestrator.common.versions import is_older, order
from orchestrator.releases.checking import Surroundings, check_operators_template
from orchestrator.releases.findings import Finding, Rule
from orchestrator.releases.published import canonical, content_digest
from orchestrator.releases.records import Release
from orchestrator.releases.template_contract import ALWAYS_GIVEN, is_operators
from orchestrator.releases.template_names import ReservedNames
from orchestrator.releases.template_queues import EarlierRelease

if TYPE_CHECKING:
    from orchestrator.common.times import Clock
    from orchestrator.releases.ports import PublishedTemplates, Releases, TemplateStore
    from orchestrator.releases.service_permissions import Permissions
    from orchestrator.releases.states import Choice


@dataclass(frozen=True, slots=True)
class Proposal:
    """A template that an operator wants to publish."""

    version: str
    template: Mapping[str, Any]
    by: str = ""
    notes: str = ""
    allow_replacement: bool = False
    """Whether the template may lack queues that the release before it has. Their messages would be lost."""
    tier: str = STANDARD
    """The tier whose tenants may be at the release."""


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings of a check. Without any, the template can be published."""

    version: str
    digest: str
    findings: Sequence[Finding]
    compared_with: str | None
    """The release whose queues the template has to keep."""


@dataclass(frozen=True, slots=True)
class Published:
    release: Release
    is_new: bool
    """False if the same template was published under this version before."""
    current: str
    """The release that new tenants get."""
    before: str | None = None
    """The release that new tenants got before; ``None`` if there was none, or if the release is not new."""

    @property
    def is_older_than_current(self) -> bool:
        """True if a newer release was current before this one was published. In tiers other than ``standard``, the
        release that was published last may be current, whatever its version is."""
        return self.before is not None and is_older(self.release.version, than=self.before)


@dataclass(frozen=True, slots=True)
class PublishedBefore:
    """Another template was published under this version, or in another tier, so nothing was done."""

    release: Release
    same_template: bool
    """True if only the tier is another one."""

    @property
    def how(self) -> str:
        where = (
            f"with this template, in the tier {self.release.tier}" if self.same_template else "with another template"
        )
        return f"{where}, at {readable(self.release.published_at)}"


@dataclass(frozen=True, slots=True)
class Publishing:
    releases: Releases
    store: TemplateStore
    templates: PublishedTemplates
    choose: Callable[[str], Choice]
    """Returns the releases of a tier that may be chosen."""
    permissions: Callable[[], Permissions]
    """Reads the permissions of the service role of tenants' stacks."""
    clock: Clock
    reserved: ReservedNames
    """The names of the control plane and its tenants."""

    def check(self, proposal: Proposal) -> Checked:
        """The findings, of which one may be that the version is taken."""
        checked = self._check(proposal)
        recorded = self.releases.release(proposal.version)
        before = _published_before(recorded, proposal) if recorded else None
        if before is None:
            return checked
        taken = Finding(
            Rule.VERSION,
            "",
            f"Release {proposal.version} was published before, {before.how}. A release never changes.",
            "Publish it under another version.",
        )
        return replace(checked, findings=[taken, *checked.findings])

    def _check(self, proposal: Proposal) -> Checked:
        before = None if proposal.allow_replacement else self._release_before(proposal)
        earlier = [each for each in [self._earlier(before)] if each is not None]
        surroundings = Surroundings(proposal.version, self.permissions(), earlier, self.reserved)
        return Checked(
            proposal.version,
            _digest(canonical(proposal.template)),
            check_operators_template(proposal.template, surroundings),
            earlier[0].version if earlier else None,
        )

    def publish(self, proposal: Proposal) -> Published | PublishedBefore | Checked:
        """Publish the template; return the findings instead if there are any."""
        template = canonical(proposal.template)
        recorded = self.releases.release(proposal.version)
        is_new, current_before = False, None
        if recorded is None:
            checked = self._check(proposal)
            if checked.findings:
                return checked
            release = Release(
                proposal.version,
                self.store.publish(proposal.version, checked.digest, template),
                checked.digest,
                self.clock.now(),
                content_digest(template, proposal.version),
                notes=proposal.notes,
                parameters=frozenset(proposal.template["Parameters"]) - ALWAYS_GIVEN,
                published_by=proposal.by,
                tier=proposal.tier,
            )
            current_before = self.choose(proposal.tier).current
            recorded = self.releases.record_release(release)
            is_new = recorded is release
        # Another request may have published the version since it was read.
        if before := _published_before(recorded, proposal):
            return before
        current = self.choose(proposal.tier).current or recorded.version
        return Published(recorded, is_new, current, current_before if is_new else None)

    def _release_before(self, proposal: Proposal) -> Release | None:
        """The release that most tenants would come from: the operators' previous one of the tier, or else the current
        one. The tenants of a new tier come from the tier ``standard``.
        """
        found = [each for each in self.releases.releases() if each.tier == proposal.tier and is_operators(each.version)]
        earlier = [each for each in found if is_older(each.version, than=proposal.version)]
        newest = max(earlier, key=lambda each: order(each.version), default=None)
        current = self.choose(proposal.tier if found else STANDARD).current
        return newest or (self.releases.release(current) if current else None)

    def _earlier(self, release: Release | None) -> EarlierRelease | None:
        """The template of the release; ``None`` if somebody has changed or removed it since it was published."""
        template = self.templates.published(release) if release else None
        return EarlierRelease.parse(release.version, template) if release and template else None


def _published_before(recorded: Release, proposal: Proposal) -> PublishedBefore | None:
    """``None`` if the recorded release is the proposed one."""
    same_template = recorded.digest == _digest(canonical(proposal.template))
    return None if same_template and recorded.tier == proposal.tier else PublishedBefore(recorded, same_template)


def _digest(template: bytes) -> str:
    return hashlib.sha256(template).hexdigest()
