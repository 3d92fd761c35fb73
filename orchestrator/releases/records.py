"""The record of a release."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


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
    """The release notes, from the changelog."""
    parameters: frozenset[str] = frozenset()
    """The template's parameters besides those that every template has. Empty for releases from before 0.7.0."""
