"""What the event plane needs from outside. Adapters implement these."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.content import Packed
from orchestrator.events.records import ApiKey, Event, EventSettings, Form, Repetition, Source, TenantEpoch


class Tenants(Protocol):
    """All that the event plane knows of provisioning."""

    def incarnation(self, tenant: TenantId) -> str | None:
        """Which creation of the tenant is alive. ``None`` if the tenant does not exist, or is being deleted.

        A tenant that is deleted and created again is another incarnation.
        """
        ...


class Configuration(Protocol):
    """Consistent reads of a tenant's configuration: what was written before a read is seen by it."""

    def settings(self, tenant: TenantId) -> EventSettings | None: ...

    def api_key(self, digest: str) -> ApiKey | None: ...

    def source(self, source_id: str) -> Source | None: ...

    def form(self, form_id: str) -> Form | None: ...


class KeyUse(Protocol):
    def note(self, key: ApiKey, at: datetime) -> None:
        """Record that the key was used, unless a use in the last hour is on record already."""
        ...


class Usage(Protocol):
    """How many events a tenant has had accepted."""

    def used(self, life: TenantEpoch, at: datetime) -> int:
        """The number of events in the month of that moment. It may be behind by some seconds."""
        ...


class EventWrites(Protocol):
    def put(self, event: Event, packed: Packed, *, type_index: bool) -> None:
        """Keep the event, unless it is kept already. One write."""
        ...

    def mark(self, repetition: Repetition, at: datetime) -> Repetition:
        """Leave the mark, unless there is one that has not expired. Returns the mark that is there now."""
        ...


class Contents(Protocol):
    """Contents of events that are too large for their row."""

    def put(self, key: str, data: bytes) -> None: ...

    def get(self, key: str) -> bytes | None:
        """``None`` if the object has expired."""
        ...


class Secrets(Protocol):
    """Encryption of signing secrets. The context is bound to the secret: it decrypts in no other place."""

    def encrypt(self, plaintext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes: ...

    def decrypt(self, ciphertext: bytes, life: TenantEpoch, context: Mapping[str, str]) -> bytes: ...
