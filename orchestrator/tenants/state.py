"""A tenant's state, derived from its records. It is derived only here.

getQueue, the list of tenants, admission and the reconciler all use this module, so they cannot disagree.

| metadata  | operations                              | state                                        |
|-----------|-----------------------------------------|----------------------------------------------|
| any       | DELETE started                          | DELETING                                     |
| published | latest is an UPDATE: started, failed    | UPDATING, UPDATE_FAILED: the tenant is served |
| published | any other                               | READY                                        |
| none      | DELETE in effect, and an explicit CREATE that was requested later waits for its turn | PROVISIONING |
| none      | DELETE in effect: succeeded, failed     | DELETED, FAILED                              |
| none      | a CREATE is started                     | PROVISIONING                                 |
| none      | latest CREATE: failed                   | FAILED                                       |
| none      | latest CREATE: succeeded                | UNKNOWN: the queue was removed without Berth |
| none      | none                                    | UNKNOWN                                      |

"None" includes metadata that no operation has published yet, and metadata that a delete has withdrawn. A delete is in
effect until an explicit create supersedes it. The version that tenants are created at makes no difference to the state:
a tenant whose create failed is FAILED until another create begins.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from orchestrator.tenants.records import Attempt, Audit, Metadata, Operation, RootCause, Run, Status, TenantState


@dataclass(frozen=True, slots=True)
class DerivedState:
    """A state, and the operation that led to it, if there was one."""

    state: TenantState
    operation: Audit | None = None

    @property
    def root_cause(self) -> RootCause | None:
        """The root cause of a failed state."""
        failed = self.state in (TenantState.FAILED, TenantState.UPDATE_FAILED)
        return self.operation.root_cause if self.operation and failed else None


def derive_state(
    metadata: Metadata | None, audits: Sequence[Audit], *, abandoned: Collection[str] = ()
) -> DerivedState:
    """Derive the state. ``abandoned`` are executions that are recorded as Started but no longer run.

    Their operations count as failed.
    """

    def is_running(audit: Audit) -> bool:
        return audit.status is Status.STARTED and audit.execution not in abandoned

    delete = delete_of(audits)
    if delete and is_running(delete):
        return DerivedState(TenantState.DELETING, delete)
    if metadata is not None and metadata.published:
        latest = _latest(audits, Operation.CREATE, Operation.UPDATE)
        if latest is None or latest.operation is not Operation.UPDATE or latest.status is Status.SUCCESS:
            return DerivedState(TenantState.READY, latest)
        return DerivedState(TenantState.UPDATING if is_running(latest) else TenantState.UPDATE_FAILED, latest)
    if delete and is_delete_in_effect(audits) and waiting_create(audits) is None:
        return DerivedState(TenantState.DELETED if delete.status is Status.SUCCESS else TenantState.FAILED, delete)
    create = _latest(filter(is_running, audits), Operation.CREATE)
    if create is not None:
        return DerivedState(TenantState.PROVISIONING, create)
    create = _latest(audits, Operation.CREATE)
    if create is None or create.status is Status.SUCCESS:
        return DerivedState(TenantState.UNKNOWN, create)
    return DerivedState(TenantState.FAILED, create)


def state_of(metadata: Metadata | None, audits: Sequence[Audit]) -> TenantState:
    return derive_state(metadata, audits).state


def root_cause_of(metadata: Metadata | None, audits: Sequence[Audit]) -> RootCause | None:
    return derive_state(metadata, audits).root_cause


def delete_of(audits: Sequence[Audit]) -> Audit | None:
    return next((audit for audit in audits if audit.operation is Operation.DELETE), None)


def creates_of(audits: Sequence[Audit]) -> list[Audit]:
    return [audit for audit in audits if audit.operation is Operation.CREATE]


def waiting_create(audits: Sequence[Audit]) -> Audit | None:
    """The create that waits for its turn, and will not be refused then because the tenant was deleted since."""
    waiting = _latest((audit for audit in audits if audit.is_waiting), Operation.CREATE)
    if waiting is None or not is_delete_in_effect(audits):
        return waiting
    delete = delete_of(audits)
    deleted_at = delete.asked_at if delete else None
    is_later = deleted_at is None or (waiting.asked_at is not None and waiting.asked_at > deleted_at)
    return waiting if waiting.request.explicit and is_later else None


def own_waiting(audits: Sequence[Audit], run: Run) -> Audit | None:
    """The record that this create waits, or has waited, for its turn; ``None`` once it has begun."""
    return next((audit for audit in audits if audit.execution == run.execution and audit.is_waiting), None)


def is_delete_in_effect(audits: Sequence[Audit]) -> bool:
    """True if the tenant was deleted, also if the delete failed half-way, and was not created since."""
    delete = delete_of(audits)
    return delete is not None and not is_superseded(delete, audits)


def is_deleted(audits: Sequence[Audit]) -> bool:
    delete = delete_of(audits)
    return delete is not None and delete.status is Status.SUCCESS and is_delete_in_effect(audits)


def is_superseded(delete: Audit, audits: Sequence[Audit]) -> bool:
    """True if the tenant was created again after that delete.

    Creates from before versions were recorded do not mark the delete. For them, the times of the rows decide.
    """
    return delete.revived_by is not None or any(
        create.version is None and create.updated_at > delete.updated_at for create in creates_of(audits)
    )


def latest_create(audits: Sequence[Audit]) -> Audit | None:
    return _latest(audits, Operation.CREATE)


def _latest(audits: Iterable[Audit], *operations: Operation) -> Audit | None:
    candidates = [audit for audit in audits if audit.operation in operations]
    return max(candidates, key=lambda audit: audit.updated_at, default=None)


def run_of(audit: Audit) -> Run:
    """The run of an audit. Audits do not have the start time; the time when Started was recorded is close to it."""
    attempt = Attempt(audit.tenant, audit.operation, audit.version or "", audit.attempt)
    return Run(attempt, audit.execution, audit.updated_at, audit.request)
