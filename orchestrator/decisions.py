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

"None" includes metadata that no operation has published yet (the stack records its queue before it is usable) and
metadata that a delete has withdrawn. An explicit create marks the delete as revived, which then counts no more.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from orchestrator.records import Audit, Metadata, Operation, Queue, Status


@dataclass(frozen=True, slots=True)
class Ready:
    queue: Queue
    version: str


@dataclass(frozen=True, slots=True)
class StartCreate:
    attempt: int


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


Decision = Ready | StartCreate | Wait | Failed | BeingDeleted | Deleted


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
    return StartCreate(next_attempt)
