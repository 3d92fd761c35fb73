"""The interfaces that adapters implement for publishing and using releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import RecordedReleaseChange, Release, ReleaseState
from orchestrator.releases.service_permissions import Permissions

Parameters = Callable[[TenantId, Release], Mapping[str, str]]
"""Returns the template parameters of a tenant's stack at a release."""


class Releases(Protocol):
    def release(self, version: str) -> Release | None: ...

    def releases(self) -> Sequence[Release]: ...

    def record_release(self, release: Release) -> Release:
        """Record the release unless its version is already recorded; return the recorded release.

        That is the given object itself if this call recorded it, and another one, even if it is equal, if not.
        """


class ReleaseStates(Protocol):
    """The state of all releases. It is read from the table every time, with strong consistency."""

    def state(self) -> ReleaseState: ...

    def change(self, state: ReleaseState, change: RecordedReleaseChange) -> bool:
        """Write the state, and append the change to the history of releases, in one transaction.

        ``False`` if the state has changed since it was read: its ``revision`` is the one that was read.
        """

    def changes(self, *, limit: int) -> Sequence[RecordedReleaseChange]:
        """The newest entries of the history, newest first."""


class PublishedTemplates(Protocol):
    def published(self, release: Release) -> str | None:
        """The template of the release, as it was published; ``None`` if somebody has changed or removed it since."""


class StackPolicies(Protocol):
    def permissions(self) -> Permissions:
        """The permissions in the managed policies that the operator has named for tenants' stacks, read each time."""


class TemplateStore(Protocol):
    def read(self, key: str) -> bytes:
        """Read a template that was uploaded with the deployment."""

    def publish(self, version: str, digest: str, template: bytes) -> str:
        """Store the template under its version and digest, and return its URL."""
