"""Temporary credentials with which a tenant's own programs read its events from the table, without the API."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from orchestrator.events.records import EventSettings


@dataclass(frozen=True, slots=True)
class EventCredentials:
    """The secrets are left out of ``repr``, so that they are not logged by accident."""

    table: str
    partitions: Sequence[str]
    """The partition keys of the tenant's events."""
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime


class EventAccess(Protocol):
    def issue(self, settings: EventSettings, *, source_identity: str) -> EventCredentials:
        """Credentials that read the events of the tenant with these settings, and nothing else.

        ``source_identity`` is the caller. CloudTrail records it with every use of the credentials.
        """
        ...
