"""A tenant's state, derived from its records: the one place that does so.

getQueue's decision, the list of tenants, admission and the reconciler read it from here, so they cannot disagree.

| metadata  | operations                              | state                                        |
|-----------|-----------------------------------------|----------------------------------------------|
| any       | DELETE started                          | DELETING                                     |
| published | latest is an UPDATE: started, failed    | UPDATING, UPDATE_FAILED: served all the while |
| published | any other                               | READY                                        |
| none      | DELETE counts: succeeded, failed        | DELETED, FAILED                              |
| none      | a CREATE is started                     | PROVISIONING                                 |
| none      | latest CREATE: failed                   | FAILED                                       |
| none      | latest CREATE: succeeded                | UNKNOWN: the queue vanished behind Berth's back |
| none      | none                                    | UNKNOWN                                      |

"None" includes metadata that no operation has published yet, and metadata that a delete has withdrawn. A delete counts
until an explicit create has overcome it. The version that tenants are created at makes no difference to the state: a
tenant whose create failed is FAILED until another create begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.tenants.records import Audit, Metadata, Operation, RootCause, Status, TenantState


@dataclass(frozen=True, slots=True)
class Standing:
    """A state, and the operation that brought the tenant into it, if there was one."""

    state: TenantState
    operation: Audit | None = None

    @property
    def root_cause(self) -> RootCause | None:
        """Why the tenant is in a failed state, if it is in one."""
        failed = self.state in (TenantState.FAILED, TenantState.UPDATE_FAILED)
        return self.operation.root_cause if self.operation and failed else None


def standing(metadata: Metadata | None, audits: Sequence[Audit], *, abandoned: Collection[str] = ()) -> Standing:
    """``abandoned`` names executions that say Started but no longer run: they count as failed."""

    def is_running(audit: Audit) -> bool:
        return audit.status is Status.STARTED and audit.execution not in abandoned

    delete = delete_of(audits)
    if delete and is_running(delete):
        return Standing(TenantState.DELETING, delete)
    if metadata is not None and metadata.published:
        latest = _latest(audits, Operation.CREATE, Operation.UPDATE)
        if latest is None or latest.operation is not Operation.UPDATE or latest.status is Status.SUCCESS:
            return Standing(TenantState.READY, latest)
        return Standing(TenantState.UPDATING if is_running(latest) else TenantState.UPDATE_FAILED, latest)
    if delete and delete_counts(audits):
        return Standing(TenantState.DELETED if delete.status is Status.SUCCESS else TenantState.FAILED, delete)
    create = _latest(filter(is_running, audits), Operation.CREATE)
    if create is not None:
        return Standing(TenantState.PROVISIONING, create)
    create = _latest(audits, Operation.CREATE)
    if create is None or create.status is Status.SUCCESS:
        return Standing(TenantState.UNKNOWN, create)
    return Standing(TenantState.FAILED, create)


def state_of(metadata: Metadata | None, audits: Sequence[Audit]) -> TenantState:
    """A tenant in one word."""
    return standing(metadata, audits).state


def root_cause_of(metadata: Metadata | None, audits: Sequence[Audit]) -> RootCause | None:
    return standing(metadata, audits).root_cause


def delete_of(audits: Sequence[Audit]) -> Audit | None:
    return next((audit for audit in audits if audit.operation is Operation.DELETE), None)


def creates_of(audits: Sequence[Audit]) -> list[Audit]:
    return [audit for audit in audits if audit.operation is Operation.CREATE]


def delete_counts(audits: Sequence[Audit]) -> bool:
    """True if the tenant was deleted, or was to be and is not wholly, and was not created since."""
    delete = delete_of(audits)
    return delete is not None and not is_overcome(delete, audits)


def is_deleted(audits: Sequence[Audit]) -> bool:
    delete = delete_of(audits)
    return delete is not None and delete.status is Status.SUCCESS and delete_counts(audits)


def is_overcome(delete: Audit, audits: Sequence[Audit]) -> bool:
    """True if the tenant was created again after that delete.

    Rows from before versions have no mark for it; there the order of time decides.
    """
    return delete.revived_by is not None or any(
        create.version is None and create.updated_at > delete.updated_at for create in creates_of(audits)
    )


def latest_create(audits: Sequence[Audit]) -> Audit | None:
    return _latest(audits, Operation.CREATE)


def _latest(audits: Iterable[Audit], *operations: Operation) -> Audit | None:
    of_these = [audit for audit in audits if audit.operation in operations]
    return max(of_these, key=lambda audit: audit.updated_at, default=None)
