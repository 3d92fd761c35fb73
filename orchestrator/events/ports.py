"""What the event plane needs from outside. Adapters implement these."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.records import ApiKey, EventSettings, Form, Source, TenantEpoch


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
