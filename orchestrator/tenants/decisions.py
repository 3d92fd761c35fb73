"""getQueue's decision, as a pure function of the tenant's records.

The decision follows from the tenant's state (:mod:`orchestrator.tenants.state`):

| state                          | decision                                                                     |
|--------------------------------|------------------------------------------------------------------------------|
| DELETING                       | BeingDeleted                                                                 |
| READY, UPDATING, UPDATE_FAILED | Ready                                                                        |
| PROVISIONING                   | Wait                                                                         |
| FAILED                         | Failed, with the root cause                                                  |
| FAILED, by a create of another release | StartCreate: the release that tenants are created at now may succeed |
| UNKNOWN                        | StartCreate                                                                  |
| DELETED                        | Deleted: only an explicit create restores the tenant                         |

If the tenant is pinned to a release that was withdrawn, NotProvisioned replaces StartCreate: its create would be
refused.

A getQueue that is deployed read-only starts nothing. These decisions replace StartCreate:

| state                                    | decision                                               |
|------------------------------------------|--------------------------------------------------------|
| FAILED, by a create of another release   | Failed, with the root cause                            |
| UNKNOWN, and no create was ever recorded | Unknown: nobody has created the tenant                 |
| UNKNOWN, after a create succeeded        | NotProvisioned: the queue was removed without Berth    |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.tenants.ready import Ready, ready
from orchestrator.tenants.records import Audit, Metadata, Operation, Status, TenantState
from orchestrator.tenants.state import DerivedState, creates_of, delete_of, derive_state, is_superseded

if TYPE_CHECKING:
    from orchestrator.releases.records import Release


@dataclass(frozen=True, slots=True)
class StartCreate:
    attempt: int
    is_new: bool = False
    """Nothing is recorded about the tenant, so the create would add a tenant."""


@dataclass(frozen=True, slots=True)
class Wait:
    execution: str
    expected_at: datetime | None = field(default=None, compare=False)
    """About when a create that waits gets its turn."""


@dataclass(frozen=True, slots=True)
class Failed:
    audit: Audit


@dataclass(frozen=True, slots=True)
class BeingDeleted:
    audit: Audit


@dataclass(frozen=True, slots=True)
class Deleted:
    audit: Audit


@dataclass(frozen=True, slots=True)
class Unknown:
    """Nobody has created the tenant, and getQueue does not create tenants here."""


@dataclass(frozen=True, slots=True)
class NotProvisioned:
    """There is no queue, and no create was started."""

    asking_provisions: bool = False
    """True if a call of getQueue would start a create."""
    withdrawn: str | None = None
    """The release that the tenant is pinned to, if it was withdrawn: then every create would be refused."""


@dataclass(frozen=True, slots=True)
class NoRelease:
    """No create was started, because the tenant's tier has no release."""

    tier: str


@dataclass(frozen=True, slots=True)
class FleetFull:
    """The maximum number of tenants is reached, so the create of a new tenant is not started."""

    tenants: int
    limit: int


@dataclass(frozen=True, slots=True)
class TooManyCreates:
    """The caller has started the maximum number of creates in this minute, so no other create is started."""

    limit: int
    retry_after_seconds: int


Decision = Ready | StartCreate | Wait | Failed | BeingDeleted | Deleted
ReadOnlyDecision = Ready | Wait | Failed | BeingDeleted | Deleted | Unknown | NotProvisioned
Limited = FleetFull | TooManyCreates


def tier_to_create(
    metadata: Metadata | None,
    audits: Sequence[Audit],
    default: str,
    release_of: Callable[[str], Release | None],
) -> str:
    """The tier in which a tenant is created if the request names none.

    A tenant keeps its tier until it is deleted, also if its create failed or its queue has vanished.
    """
    if metadata is not None and metadata.recorded_tier is not None:
        return metadata.recorded_tier
    # The tenant is from before there were tiers, or its metadata was lost.
    before = last_version(metadata, audits)
    release = release_of(before) if before else None
    return release.tier if release else default


def version_to_create(
    metadata: Metadata | None, audits: Sequence[Audit], current: str | None, is_available: Callable[[str], bool]
) -> str | None:
    """The release that a tenant is created at by default: its pin, the version that it had, or the current release of
    its tier; ``None`` if there is none.

    A tenant whose queue has vanished is created again at the version that it had, because nobody has upgraded it. If
    that release was withdrawn, the tenant is created at the current one. A pin is an operator's choice and stays: the
    create of a tenant that is pinned to a withdrawn release is refused, with the reason.
    """
    if metadata is not None and metadata.pinned_version is not None:
        return metadata.pinned_version
    before = last_version(metadata, audits)
    # The version of a tenant that is older than this control plane may never have been published here.
    return before if before not in (None, current) and is_available(before) else current


def last_version(metadata: Metadata | None, audits: Sequence[Audit]) -> str | None:
    """The version at which the tenant was served before its queue vanished, if it was."""
    return (metadata.last_version if metadata else None) or _latest_success(audits)


def _latest_success(audits: Sequence[Audit]) -> str | None:
    """The version of the tenant's latest successful operation since it was last deleted.

    It is needed only if the metadata does not have the version: the row was lost.
    """
    delete = delete_of(audits)
    lived = [audit for audit in audits if audit.operation is not Operation.DELETE and audit.status is Status.SUCCESS]
    if delete and delete.status is Status.SUCCESS:
        # Operations before that delete do not count.
        lived = [audit for audit in lived if is_superseded(delete, audits) and audit.updated_at > delete.updated_at]
    latest = max(lived, key=lambda audit: audit.updated_at, default=None)
    return latest.version if latest else None


def decide(
    metadata: Metadata | None,
    audits: Sequence[Audit],
    version: str,
    *,
    abandoned: Collection[str] = (),
) -> Decision:
    """Decide for one tenant. ``abandoned`` are executions that are recorded as Started but no longer run."""
    match derive_state(metadata, audits, abandoned=abandoned):
        case DerivedState(TenantState.DELETING, Audit() as delete):
            return BeingDeleted(delete)
        case DerivedState(TenantState.DELETED, Audit() as delete):
            return Deleted(delete)
        case DerivedState(TenantState.PROVISIONING, Audit() as create):
            # The create publishes the queue, whatever its version. Upgrading is another operation.
            return Wait(create.execution, create.expected_at)
        case DerivedState(TenantState.FAILED, Audit() as failed):
            if failed.operation is Operation.DELETE:
                return Failed(failed)
            tried = [each for each in creates_of(audits) if each.version == version and each.status is Status.FAILURE]
            if tried:
                return Failed(tried[0])
    if answer := ready(metadata):
        return answer
    numbers = [create.attempt for create in creates_of(audits) if create.version == version]
    return StartCreate(1 + max(numbers, default=0), is_new=not audits)


def decide_read_only(metadata: Metadata | None, audits: Sequence[Audit], version: str) -> ReadOnlyDecision:
    """Decide for one tenant where getQueue starts no creates."""
    decision = decide(metadata, audits, version)
    if not isinstance(decision, StartCreate):
        return decision
    derived = derive_state(metadata, audits)
    if derived.operation is None:
        return Unknown()
    return Failed(derived.operation) if derived.state is TenantState.FAILED else NotProvisioned()
