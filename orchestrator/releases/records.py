"""The record of a release, which never changes, and the state of all releases, which does."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import timestamp


@dataclass(frozen=True, slots=True)
class Release:
    """A published tenant template. Immutable: a changed template needs a new version."""

    version: str
    template_url: str
    digest: str
    published_at: datetime
    content: str = ""
    """The digest of the template without its own version number. Empty for releases from before it was recorded."""
    notes: str = ""
    """The release notes: those beside Berth's own template, or those of the operator who published the release."""
    parameters: frozenset[str] = frozenset()
    """The template's parameters besides those that every template has."""
    published_by: str = ""
    """The caller who published an operator's own template. Empty for releases that a deployment has published."""
    tier: str = STANDARD
    """The tier whose tenants may be at the release."""


@dataclass(frozen=True, slots=True)
class Withdrawal:
    """A release that nothing may choose any more: who withdrew it, when and why."""

    at: datetime
    by: str
    reason: str = ""

    def sentence(self, version: str) -> str:
        """The beginning of a sentence: ``Release 0.2.0 was withdrawn by ada at ... (queues lose messages)``."""
        reason = f" ({self.reason})" if self.reason else ""
        return f"Release {version} was withdrawn by {self.by or 'somebody'} at {timestamp(self.at)}{reason}"


@dataclass(frozen=True, slots=True)
class Promotion:
    """The release that was made current last."""

    version: str
    at: datetime
    by: str
    reason: str = ""
    instead_of: str | None = None
    """The release that would have been current without the promotion: the deployed version, or in other tiers the one
    that was published last. The promotion lasts until that is another one. ``None`` if deployments promote nothing."""


@dataclass(frozen=True, slots=True)
class ReleaseState:
    """The facts about releases that change. They are one row, so that one conditional write changes them."""

    promotions: Mapping[str, Promotion] = field(default_factory=dict)
    """The latest promotion of each tier that has one."""
    withdrawn: Mapping[str, Withdrawal] = field(default_factory=dict)
    kept_by: str = ""
    """The request of the deployment that made promotions independent of deployments."""
    revision: int = 0


class ReleaseOrder(StrEnum):
    PROMOTE = "PROMOTE"
    WITHDRAW = "WITHDRAW"
    REINSTATE = "REINSTATE"


@dataclass(frozen=True, slots=True)
class RecordedReleaseChange:
    """One entry in the history of releases. The history is append-only."""

    version: str
    at: datetime | None
    order: ReleaseOrder | None
    """``None`` if the entry cannot be read."""
    by: str
    reason: str = ""
    altered: bool = False
    """True if the row's content does not match its key, so somebody has overwritten it."""
