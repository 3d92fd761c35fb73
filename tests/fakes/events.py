"""Fakes of what the event plane needs from outside, and examples of its records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.api_keys import digest_of, new_key, visible_prefix
from orchestrator.events.authorising import Standing
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    Destination,
    DestinationKind,
)
from orchestrator.events.plans import Plan
from orchestrator.events.quotas import month_of
from orchestrator.events.records import (
    ApiKey,
    EventSettings,
    Form,
    KeyStatus,
    Scope,
    Source,
    TenantEpoch,
    Used,
)
from tests.fakes.examples import ACME, NOON

EPOCH = "5f3a9c01"
ACME_LIFE = TenantEpoch(ACME, EPOCH)
OPERATOR = "arn:aws:sts::123456789012:assumed-role/operator/ada"
INCARNATION = "2026-01-01T00:00:00.000Z"
NEXT_INCARNATION = "2026-02-01T00:00:00.000Z"


def event_settings(life: TenantEpoch = ACME_LIFE, **changes: Any) -> EventSettings:
    settings = EventSettings(
        life, INCARNATION, Plan.PRO, shards=1, inbox=True, type_index=True, created_at=NOON, updated_at=NOON
    )
    return replace(settings, **changes)


def standing(used: int = 0, **changes: Any) -> Standing:
    return Standing(event_settings(**changes), used, month_of(NOON))


def api_key(key: str | None = None, life: TenantEpoch = ACME_LIFE, **changes: Any) -> ApiKey:
    key = key or new_key("test")
    record = ApiKey(
        life, "key_1", digest_of(key), "tests", visible_prefix(key), frozenset({Scope.WRITE}), KeyStatus.ACTIVE, NOON
    )
    return replace(record, **changes)


def connection(**changes: Any) -> Connection:
    """A connection of acme's API events to its own queue."""
    record = Connection(
        life=ACME_LIFE,
        connection_id="conn_" + "c" * 24,
        origin=API_ORIGIN,
        name="orders",
        destination=Destination(DestinationKind.QUEUE),
        status=ConnectionStatus.ACTIVE,
        created_at=NOON,
    )
    return replace(record, **changes)


@dataclass
class Watch:
    """A clock that only moves when a test moves it."""

    seconds: float = 1000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class FakeTenants:
    """Implements :class:`orchestrator.events.ports.Tenants`."""

    incarnations: dict[TenantId, str] = field(default_factory=lambda: {ACME: INCARNATION})
    withdrawn: set[TenantId] = field(default_factory=set)

    def incarnation(self, tenant: TenantId) -> str | None:
        return None if tenant in self.withdrawn else self.incarnations.get(tenant)

    def has_ended(self, tenant: TenantId, incarnation: str) -> bool:
        return self.incarnations.get(tenant) != incarnation


@dataclass
class FakeConfiguration:
    """Implements :class:`orchestrator.events.ports.Configuration`, and counts its reads."""

    all_settings: dict[TenantId, EventSettings] = field(default_factory=dict)
    api_keys: dict[str, ApiKey] = field(default_factory=dict)
    sources: dict[str, Source] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)
    reads: int = 0

    def settings(self, tenant: TenantId) -> EventSettings | None:
        self.reads += 1
        return self.all_settings.get(tenant)

    def api_key(self, digest: str) -> ApiKey | None:
        self.reads += 1
        return self.api_keys.get(digest)

    def source(self, source_id: str) -> Source | None:
        self.reads += 1
        return self.sources.get(source_id)

    def form(self, form_id: str) -> Form | None:
        self.reads += 1
        return self.forms.get(form_id)


@dataclass
class FakeUsage:
    """Implements :class:`orchestrator.events.ports.Usage`."""

    counts: dict[TenantEpoch, int] = field(default_factory=dict)

    def used(self, life: TenantEpoch, at: datetime) -> Used:  # noqa: ARG002 - one month for all
        return Used(self.counts.get(life, 0))


@dataclass
class FakeKeyUse:
    """Implements :class:`orchestrator.events.ports.KeyUse`."""

    noted: list[tuple[str, datetime]] = field(default_factory=list)

    def note(self, key: ApiKey, at: datetime) -> None:
        self.noted.append((key.key_id, at))


@dataclass
class FakePurgeExecutions:
    """Implements :class:`orchestrator.events.ports.PurgeExecutions`: one per epoch and hour."""

    started: list[tuple[TenantEpoch, str]] = field(default_factory=list)

    def start(self, life: TenantEpoch, at: datetime) -> bool:
        name = life, f"{at:%Y%m%dT%H}"
        if name in self.started:
            return False
        self.started.append(name)
        return True


@dataclass
class FakeSecrets:
    """Implements :class:`orchestrator.events.ports.Secrets`: whoever names another context gets nothing."""

    def encrypt(self, plaintext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes:
        return repr((str(life), sorted(context.items()))).encode() + b"|" + plaintext[::-1]

    def decrypt(self, ciphertext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes:
        bound, _, reversed_text = ciphertext.partition(b"|")
        if bound != repr((str(life), sorted(context.items()))).encode():
            raise ValueError("The secret belongs to another context.")
        return reversed_text[::-1]
