"""API keys of a tenant: create, list, rotate with an overlap, revoke."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from orchestrator.common.times import Clock
from orchestrator.events.api_keys import digest_of, new_key, visible_prefix
from orchestrator.events.configuring import ROUNDS, unsettled
from orchestrator.events.ports import ConfigurationTable
from orchestrator.events.records import ApiKey, EventSettings, KeyStatus, Scope, TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix, new_resource_id

MAX_KEYS = 50
"""The number of keys of a tenant. Keys that are revoked or expired give way to new ones."""
DEFAULT_OVERLAP = timedelta(hours=24)
MAX_OVERLAP = timedelta(days=30)
MAX_LIFETIME = timedelta(days=3650)


@dataclass(frozen=True, slots=True)
class IssuedKey:
    """A new key. The text of the key is nowhere else: it cannot be shown again."""

    text: str = field(repr=False)
    key: ApiKey
    replaced: ApiKey | None = None
    """The key that the new one takes over from, with the time until which it still works."""


class ConfiguringKeys:
    """``environment`` is part of every key, so that people can tell a live key from a test key."""

    def __init__(
        self,
        *,
        table: ConfigurationTable,
        clock: Clock,
        environment: str,
        make_key: Callable[[str], str] = new_key,
    ) -> None:
        self._table = table
        self._clock = clock
        self._environment = environment
        self._make_key = make_key

    def list(self, life: TenantEpoch) -> Sequence[ApiKey]:
        return self._table.api_keys(life)

    def create(
        self, settings: EventSettings, name: str, scopes: frozenset[Scope], *, expires_in: timedelta | None = None
    ) -> IssuedKey | Refused:
        def decide(now: datetime, _keys: Sequence[ApiKey]) -> IssuedKey:
            return self._issued(settings.life, name, scopes, now, expires_in)

        return self._add(settings, decide)

    def rotate(
        self, settings: EventSettings, key_id: str, *, overlap: timedelta = DEFAULT_OVERLAP
    ) -> IssuedKey | Refused:
        """Issue a key with the same name, scopes and lifetime. The old key works until the overlap is over."""

        def decide(now: datetime, keys: Sequence[ApiKey]) -> IssuedKey | Refused:
            old = next((key for key in keys if key.key_id == key_id), None)
            if old is None:
                return _unknown(settings.life, key_id)
            if not old.is_valid(now):
                return Refused(
                    EventRefusal.KEY_NOT_ACTIVE,
                    settings.life.tenant,
                    f"Tenant {settings.life.tenant}: the API key {key_id} is revoked or has expired, so it cannot be "
                    "rotated. Create a new key.",
                )
            issued = self._issued(settings.life, old.name, old.scopes, now, old.lifetime)
            end = now + overlap
            return replace(issued, replaced=replace(old, expires_at=min(old.expires_at or end, end)))

        return self._add(settings, decide)

    def revoke(self, life: TenantEpoch, key_id: str) -> ApiKey | Refused:
        """A key that is revoked already stays so."""
        for _ in range(ROUNDS):
            key = self._table.listed_api_key(life, key_id)
            if key is None:
                return _unknown(life, key_id)
            revoked = replace(key, status=KeyStatus.REVOKED)
            if revoked == key or self._table.change_api_key(key, revoked):
                return revoked
        raise unsettled(life.tenant)

    def _add(
        self, settings: EventSettings, decide: Callable[[datetime, Sequence[ApiKey]], IssuedKey | Refused]
    ) -> IssuedKey | Refused:
        """Write what ``decide`` makes of the tenant's keys, and decide again if they have changed meanwhile."""
        tenant = settings.life.tenant
        for _ in range(ROUNDS):
            # Read before the keys: adding a key after this read makes the write fail.
            current = self._table.settings(tenant)
            if current is None or current.life != settings.life:
                raise unsettled(tenant)
            now, keys = self._clock.now(), self._table.api_keys(settings.life)
            issued = decide(now, keys)
            if isinstance(issued, Refused):
                return issued
            dead = [key for key in keys if not key.is_valid(now)]
            surplus = len(keys) + 1 - MAX_KEYS
            if surplus > len(dead):
                return Refused(
                    EventRefusal.LIMIT_REACHED,
                    tenant,
                    f"Tenant {tenant} has {len(keys)} API keys that work, and {MAX_KEYS} is the limit. Revoke a key "
                    "that nobody uses, and try again.",
                )
            old = next((key for key in keys if issued.replaced and key.key_id == issued.replaced.key_id), None)
            changed = (old, issued.replaced) if old and issued.replaced and old != issued.replaced else None
            if self._table.add_api_key(issued.key, current, changed=changed, removed=dead[: max(0, surplus)]):
                return issued
        raise unsettled(tenant)

    def _issued(
        self, life: TenantEpoch, name: str, scopes: frozenset[Scope], now: datetime, lifetime: timedelta | None
    ) -> IssuedKey:
        text = self._make_key(self._environment)
        key = ApiKey(
            life=life,
            key_id=new_resource_id(IdPrefix.KEY),
            digest=digest_of(text),
            name=name,
            prefix=visible_prefix(text),
            scopes=scopes,
            status=KeyStatus.ACTIVE,
            created_at=now,
            expires_at=now + lifetime if lifetime else None,
            lifetime=lifetime,
        )
        return IssuedKey(text, key)


def _unknown(life: TenantEpoch, key_id: str) -> Refused:
    return Refused(
        EventRefusal.NO_SUCH_KEY,
        life.tenant,
        f"Tenant {life.tenant} has no API key {key_id}. List its keys to see their ids.",
    )
