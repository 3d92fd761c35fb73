"""Authorises requests: the grant of an API key, a source or a form.

All reads behind a grant are consistent, and each of them is remembered for at most 10 seconds. So a revoked key, and
every key of a deleted tenant, stops within that time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING

from orchestrator.common.times import Clock
from orchestrator.events.api_keys import digest_of, is_key
from orchestrator.events.quotas import month_of
from orchestrator.events.records import ApiKey, EventSettings, Form, Scope, Source, TenantEpoch
from orchestrator.events.remembering import MAX_REMEMBERED, Remembered

if TYPE_CHECKING:
    from orchestrator.events.ports import Configuration, KeyUse, Tenants, Usage

REMEMBERED_SECONDS = 10.0
USE_IS_NOTED_EVERY = timedelta(hours=1)


class Denied(Enum):
    """Why a key is refused. A wrong, an expired and a revoked key look the same, in the answer and in the time."""

    UNKNOWN_KEY = "unknown key"
    MISSING_SCOPE = "missing scope"


@dataclass(frozen=True, slots=True)
class Standing:
    """The settings of a living tenant, and its usage in a month, when they were read."""

    settings: EventSettings
    used: int
    month: str
    """The month in which that was, such as ``2026-11``. It may be over by now."""
    submitted: int = 0
    """How many of the used events are submissions of forms."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A valid key of a living tenant."""

    standing: Standing
    key: ApiKey


class Authorising:
    def __init__(
        self,
        *,
        configuration: Configuration,
        tenants: Tenants,
        usage: Usage,
        key_use: KeyUse,
        clock: Clock,
        monotonic: Callable[[], float],
    ) -> None:
        self._configuration = configuration
        self._tenants = tenants
        self._usage = usage
        self._key_use = key_use
        self._clock = clock
        self._keys: Remembered[ApiKey] = Remembered(monotonic, clock, seconds=REMEMBERED_SECONDS)
        self._sources: Remembered[Source] = Remembered(monotonic, clock, seconds=REMEMBERED_SECONDS)
        self._forms: Remembered[Form] = Remembered(monotonic, clock, seconds=REMEMBERED_SECONDS)
        # Kept apart from keys, sources and forms: a result that was made from remembered results would be older.
        self._standings: Remembered[Standing] = Remembered(monotonic, clock, seconds=REMEMBERED_SECONDS)
        self._use_noted: dict[str, datetime] = {}

    def by_key(self, key: str | None, scope: Scope) -> Grant | Denied:
        if key is None or not is_key(key):
            return Denied.UNKNOWN_KEY
        digest = digest_of(key)
        if scope is Scope.ADMIN:
            # A revoked key must not have 10 seconds to make itself a successor.
            self._keys.forget(digest)
        found = self._keys.get(digest, lambda: self._configuration.api_key(digest))
        # This one read tells unknown, revoked and expired keys alike.
        if found is None or not found.is_valid(self._clock.now()):
            return Denied.UNKNOWN_KEY
        standing = self.standing(found.life)
        if standing is None:
            return Denied.UNKNOWN_KEY
        if not found.allows(scope):
            return Denied.MISSING_SCOPE
        self._note_use(found)
        return Grant(standing, found)

    def source(self, source_id: str) -> tuple[Source, Standing] | None:
        """The source, if it exists and its tenant lives. A paused source is returned, too."""
        source = self._sources.get(source_id, lambda: self._configuration.source(source_id))
        standing = source and self.standing(source.life)
        return (source, standing) if source and standing else None

    def form(self, form_id: str) -> tuple[Form, Standing] | None:
        """The form, if it exists and its tenant lives. A paused form is returned, too."""
        form = self._forms.get(form_id, lambda: self._configuration.form(form_id))
        standing = form and self.standing(form.life)
        return (form, standing) if form and standing else None

    def standing(self, life: TenantEpoch) -> Standing | None:
        """The settings of a tenant in this life of it. ``None`` if the tenant is dead, or lives again as another."""
        return self._standings.get(life, lambda: self._read_standing(life))

    def _read_standing(self, life: TenantEpoch) -> Standing | None:
        settings = self._configuration.settings(life.tenant)
        if settings is None or settings.life != life:
            return None
        if self._tenants.incarnation(life.tenant) != settings.incarnation:
            return None
        now = self._clock.now()
        used = self._usage.used(life, now)
        return Standing(settings, used.events, month_of(now), used.submissions)

    def _note_use(self, key: ApiKey) -> None:
        now = self._clock.now()
        last = self._use_noted.get(key.key_id)
        if last is None or now - last >= USE_IS_NOTED_EVERY:
            if len(self._use_noted) >= MAX_REMEMBERED:
                self._use_noted.clear()
            self._use_noted[key.key_id] = now
            self._key_use.note(key, now)
