"""getQueue, decided: a pure function from what the records say to what to answer.

It follows from the tenant's state (:mod:`orchestrator.tenants.state`):

| state                          | decision                                                                     |
|--------------------------------|------------------------------------------------------------------------------|
| DELETING                       | BeingDeleted                                                                 |
| READY, UPDATING, UPDATE_FAILED | Ready                                                                        |
| PROVISIONING                   | Wait                                                                         |
| FAILED                         | Failed, with the root cause                                                  |
| FAILED, by a create of another release | StartCreate: the release that tenants are created at now may mend it |
| UNKNOWN                        | StartCreate                                                                  |
| DELETED                        | Deleted: only an explicit create brings it back                              |

Where getQueue only looks, nothing is started, and these take the place of StartCreate:

| state                                    | decision                                               |
|------------------------------------------|--------------------------------------------------------|
| FAILED, by a create of another release   | Failed, with the root cause                            |
| UNKNOWN, and no create was ever recorded | Unknown: nobody has created the tenant                 |
| UNKNOWN, after a create succeeded        | NotProvisioned: the queue vanished behind Berth's back |
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Status, TenantState
from orchestrator.tenants.state import Standing, creates_of, delete_of, is_overcome, standing


@dataclass(frozen=True, slots=True)
class Ready:
    queue: Queue
    version: str


@dataclass(frozen=True, slots=True)
class StartCreate:
    attempt: int
    another: bool = False
    """Nothing is recorded of the tenant: it would be one more."""


@dataclass(frozen=True, slots=True)
class Wait:
    execution: str


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
    """Nobody has created the tenant, and asking for its queue does not."""


@dataclass(frozen=True, slots=True)
class NotProvisioned:
    """There is no queue, and nothing was started to make one."""

    asking_provisions: bool = False
    """Whether asking for the queue would."""


@dataclass(frozen=True, slots=True)
class FleetFull:
    """There are as many tenants as there may be, so a create of another one is not started."""

    tenants: int
    limit: int


@dataclass(frozen=True, slots=True)
class TooManyCreates:
    """The caller has started as many creates in this minute as it may, so another one is not started."""

    limit: int
    retry_after_seconds: int


Decision = Ready | StartCreate | Wait | Failed | BeingDeleted | Deleted
Seen = Ready | Wait | Failed | BeingDeleted | Deleted | Unknown | NotProvisioned
Limited = FleetFull | TooManyCreates


def ready(metadata: Metadata | None) -> Ready | None:
    """The short cut that needs nothing but the metadata: a delete withdraws it in its first step."""
    if metadata is None or not metadata.published or metadata.version is None or metadata.queue is None:
        return None
    return Ready(metadata.queue, metadata.version)


def version_to_create(
    metadata: Metadata | None, audits: Sequence[Audit], current: str, is_published: Callable[[str], bool]
) -> str:
    """The release that a tenant is created at, if nobody names one: its pin, the one that it had, or the current one.

    A tenant whose queue has vanished comes back at the version that it had: nobody has asked for another one.
    """
    if metadata is not None and metadata.pinned_version is not None:
        return metadata.pinned_version
    before = (metadata.last_version if metadata else None) or _last_version(audits)
    # A tenant that is older than this control plane may have had a version that was never published here.
    return before if before not in (None, current) and is_published(before) else current


def _last_version(audits: Sequence[Audit]) -> str | None:
    """The version that the tenant's latest successful operation gave it, since it was last deleted.

    Only for tenants whose metadata does not say it: their queue vanished before 0.7.0, or the row was lost.
    """
    delete = delete_of(audits)
    lived = [audit for audit in audits if audit.operation is not Operation.DELETE and audit.status is Status.SUCCESS]
    if delete and delete.status is Status.SUCCESS:
        # Whatever was there before that delete was another life of the tenant.
        lived = [audit for audit in lived if is_overcome(delete, audits) and audit.updated_at > delete.updated_at]
    latest = max(lived, key=lambda audit: audit.updated_at, default=None)
    return latest.version if latest else None


def decide(
    metadata: Metadata | None,
    audits: Sequence[Audit],
    version: str,
    *,
    abandoned: Collection[str] = (),
) -> Decision:
    """Decide for one tenant. ``abandoned`` names executions that say Started but no longer run."""
    match standing(metadata, audits, abandoned=abandoned):
        case Standing(TenantState.DELETING, Audit() as delete):
            return BeingDeleted(delete)
        case Standing(TenantState.DELETED, Audit() as delete):
            return Deleted(delete)
        case Standing(TenantState.PROVISIONING, Audit() as create):
            # Whatever its version: it will publish the queue, and upgrading is another operation.
            return Wait(create.execution)
        case Standing(TenantState.FAILED, Audit() as failed):
            if failed.operation is Operation.DELETE:
                return Failed(failed)
            tried = [each for each in creates_of(audits) if each.version == version and each.status is Status.FAILURE]
            if tried:
                return Failed(tried[0])
    if answer := ready(metadata):
        return answer
    numbers = [create.attempt for create in creates_of(audits) if create.version == version]
    return StartCreate(1 + max(numbers, default=0), another=not audits)


def look(metadata: Metadata | None, audits: Sequence[Audit], version: str) -> Seen:
    """Decide for one tenant where asking for a queue creates nothing."""
    decision = decide(metadata, audits, version)
    if not isinstance(decision, StartCreate):
        return decision
    found = standing(metadata, audits)
    if found.operation is None:
        return Unknown()
    return Failed(found.operation) if found.state is TenantState.FAILED else NotProvisioned()
