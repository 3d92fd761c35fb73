"""What publishing and using releases needs from the outside."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release

if TYPE_CHECKING:
    pass


Parameters = Callable[[TenantId, Release], Mapping[str, str]]
"""What the template of a release is given for a tenant."""


class Releases(Protocol):
    def release(self, version: str) -> Release | None: ...

    def releases(self) -> Sequence[Release]: ...

    def record_release(self, release: Release) -> Release:
        """Record it unless the version is recorded; return what is recorded then."""


class TemplateStore(Protocol):
    def read(self, key: str) -> bytes:
        """A template that was uploaded with the deployment."""

    def publish(self, version: str, digest: str, template: bytes) -> str:
        """Store the template under its version and digest, and return its URL."""
