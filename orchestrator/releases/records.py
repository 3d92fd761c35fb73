"""What is remembered of a release."""

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
    """The digest of the template without its own version: releases that differ in nothing else have the same."""
    notes: str = ""
    """What is new in it, from the changelog."""
    parameters: frozenset[str] = frozenset()
    """What the template can be given besides what every template is. Releases from before 0.7.0 have nothing here."""
