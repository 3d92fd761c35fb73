"""getQueue, decided: a pure function from what the records say to what to answer.

| metadata  | latest operation             | decision                                            |
|-----------|------------------------------|-----------------------------------------------------|
| any       | DELETE started               | BeingDeleted                                        |
| published | any other                    | Ready: also while an update runs, or after it failed |
| none      | none for the current version | StartCreate                                         |
| none      | CREATE started               | Wait                                                |
| none      | CREATE failed                | Failed, with the root cause                         |
| none      | CREATE succeeded             | StartCreate: the queue vanished behind Berth's back |
| none      | DELETE succeeded             | Deleted: only an explicit create brings it back     |
| none      | DELETE failed                | Failed, with the root cause                         |

Where getQueue only looks, nothing is started, and these take the place of StartCreate:

| latest operation              | decision                                                          |
|-------------------------------|-------------------------------------------------------------------|
| none                          | Unknown: nobody has created the tenant                            |
| CREATE of an older version failed | Failed, with the root cause                                   |
| CREATE succeeded              | NotProvisioned: the queue vanished behind Berth's back                   |

"None" includes metadata that no operation has published yet (the stack records its queue before it is usable) and
metadata that a delete has withdrawn. An explicit create marks the delete as revived, which then counts no more.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from orchestrator.tenants.records import Audit, Metadata, Operation, Queue, Status


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


def revived(delete: Audit, creates: Sequence[Audit]) -> bool:
    """Whether the tenant was created again after that delete.

    Rows from before versions have no mark for it; there the order of time decides.
    """
    return delete.revived_by is not None or any(
        create.version is None and create.updated_at > delete.updated_at for create in creates
    )


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
    creates = [audit for audit in audits if audit.operation is Operation.CREATE]
    delete = next((audit for audit in audits if audit.operation is Operation.DELETE), None)
    lived = [audit for audit in audits if audit.operation is not Operation.DELETE and audit.status is Status.SUCCESS]
    if delete and delete.status is Status.SUCCESS:
        # Whatever was there before that delete was another life of the tenant.
        lived = [audit for audit in lived if revived(delete, creates) and audit.updated_at > delete.updated_at]
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

    def in_progress(audit: Audit) -> bool:
        return audit.status is Status.STARTED and audit.execution not in abandoned

    delete = next((audit for audit in audits if audit.operation is Operation.DELETE), None)
    if delete and in_progress(delete):
        return BeingDeleted(delete)

    if answer := ready(metadata):
        return answer

    creates = [audit for audit in audits if audit.operation is Operation.CREATE]
    next_attempt = 1 + max((audit.attempt for audit in creates if audit.version == version), default=0)
    if delete and not revived(delete, creates):
        return Deleted(delete) if delete.status is Status.SUCCESS else Failed(delete)

    for create in creates:
        # Whatever its version: it will publish the queue, and upgrading is another operation.
        if in_progress(create):
            return Wait(create.execution)
    for create in creates:
        if create.status is Status.FAILURE and create.version == version:
            return Failed(create)
    return StartCreate(next_attempt, another=not audits)


def look(metadata: Metadata | None, audits: Sequence[Audit], version: str) -> Seen:
    """Decide for one tenant where asking for a queue creates nothing."""
    decision = decide(metadata, audits, version)
    if not isinstance(decision, StartCreate):
        return decision
    creates = [audit for audit in audits if audit.operation is Operation.CREATE]
    latest = max(creates, key=lambda create: create.updated_at, default=None)
    if latest is None:
        return Unknown()
    return Failed(latest) if latest.status is Status.FAILURE else NotProvisioned()
