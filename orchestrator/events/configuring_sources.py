"""Webhook sources of a tenant: create, list, pause, resume, delete."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.common.times import Clock
from orchestrator.events.configuring import ROUNDS, unsettled
from orchestrator.events.ports import ConfigurationTable, Secrets
from orchestrator.events.records import EventSettings, Provider, Source, SourceStatus, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix, new_resource_id
from orchestrator.events.signatures import check_secret_and_verification

MAX_SOURCES = 100

GENERATING_PROVIDERS = frozenset({Provider.GITHUB, Provider.STANDARD_WEBHOOKS, Provider.HMAC, Provider.SHARED_SECRET})
"""Senders whose secret is chosen by the receiver: if none is given, one is made. The others give theirs out."""
_SECRET_BYTES = 32


@dataclass(frozen=True, slots=True)
class NewSource:
    name: str
    provider: Provider
    secret: str | None = field(default=None, repr=False)
    verification: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CreatedSource:
    source: Source
    made_secret: str | None = field(default=None, repr=False)
    """The secret, if it was made here. It cannot be shown again."""


def secret_context(source_id: str) -> Mapping[str, str]:
    """The encryption context of a source's secret, besides its tenant."""
    return {"source": source_id}


class ConfiguringSources:
    def __init__(
        self,
        *,
        table: ConfigurationTable,
        secrets: Callable[[], Secrets],
        clock: Clock,
    ) -> None:
        self._table = table
        self._secrets = secrets
        self._clock = clock

    def list(self, life: TenantEpoch) -> Sequence[Source]:
        return self._table.sources(life)

    def find(self, life: TenantEpoch, source_id: str) -> Source | Refused:
        source = self._table.source(source_id)
        return source if source is not None and source.life == life else _unknown(life, source_id)

    def create(self, settings: EventSettings, new: NewSource) -> CreatedSource | Refused:
        life, tenant = settings.life, settings.life.tenant
        made = _made_secret(new.provider) if new.secret is None and new.provider in GENERATING_PROVIDERS else None
        text = new.secret or made
        check_secret_and_verification(new.provider, text, new.verification)
        source = Source(
            life=life,
            source_id=new_resource_id(IdPrefix.SOURCE),
            name=new.name,
            provider=new.provider,
            status=SourceStatus.ACTIVE,
            created_at=self._clock.now(),
            verification=new.verification,
        )
        if text is not None:
            encrypted = self._secrets().encrypt(text.encode(), life, secret_context(source.source_id))
            source = replace(source, secret=encrypted)
        for _ in range(ROUNDS):
            # Read before the sources: adding one after this read makes the write fail.
            current = self._table.settings(tenant)
            if current is None or current.life != life:
                raise unsettled(tenant)
            if (count := len(self._table.sources(life))) >= MAX_SOURCES:
                return Refused(
                    EventRefusal.LIMIT_REACHED,
                    tenant,
                    f"Tenant {tenant} has {count} sources, and {MAX_SOURCES} is the limit. Delete a source that nobody "
                    "uses, and try again.",
                )
            if self._table.add_source(source, current):
                return CreatedSource(source, made)
        raise unsettled(tenant)

    def set_status(self, life: TenantEpoch, source_id: str, status: SourceStatus) -> Source | Refused:
        """Pause or resume. A source that has the status already keeps it."""
        for _ in range(ROUNDS):
            source = self.find(life, source_id)
            if isinstance(source, Refused):
                return source
            changed = replace(source, status=status)
            if changed == source or self._table.change_source(source, changed):
                return changed
        raise unsettled(life.tenant)

    def delete(self, life: TenantEpoch, source_id: str) -> Source | Refused:
        """Delete the source. That is refused while there are connections of its events."""
        # Imported here, because the function that takes webhooks and forms uses this module, too, and must start fast.
        from orchestrator.events.configuring_connections import refusal_to_delete

        source = self.find(life, source_id)
        if isinstance(source, Refused):
            return source
        for _ in range(ROUNDS):
            # Read before the connections: adding one after this read makes the write fail.
            settings = self._table.settings(life.tenant)
            if settings is None or settings.life != life:
                raise unsettled(life.tenant)
            if refused := refusal_to_delete(self._table, life, source_id):
                return refused
            # A delete that another request has finished first is done, too.
            if self._table.remove_source(source, settings) or isinstance(self.find(life, source_id), Refused):
                return source
        raise unsettled(life.tenant)


def _made_secret(provider: Provider) -> str:
    random = secrets.token_bytes(_SECRET_BYTES)
    if provider is Provider.STANDARD_WEBHOOKS:
        return f"whsec_{base64.b64encode(random).decode()}"
    return random.hex()


def _unknown(life: TenantEpoch, source_id: str) -> Refused:
    return Refused(
        EventRefusal.NO_SUCH_SOURCE,
        life.tenant,
        f"Tenant {life.tenant} has no source {source_id}. List its sources to see their ids.",
    )
