"""Reconciliations: their specs, their findings, and the results of the repairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

SETTLING = "settling"
SURVEY = "survey"
"""The ids of the two scheduled reconciliations. Only the latest run of each is kept."""

POOL = "pool"
"""The id by which a schedule asks only for the pool of stacks that are kept ready."""

MAX_FINDINGS = 200
"""The maximum number of findings that are stored, so that they fit into a row and a response. All are counted."""


class Kind(StrEnum):
    """The kinds of findings."""

    UNFINISHED = "unfinished-operation"
    """An operation is recorded as Started, but its execution is dead or hangs."""
    ORPHAN_STACK = "orphan-stack"
    """There is a tenant's stack, but the tenant has no rows, or was deleted."""
    MISSING_STACK = "missing-stack"
    """The tenant was provisioned, but has no stack."""
    METADATA_DIFFERS = "metadata-differs"
    """The metadata does not match the stack."""
    DRIFTED = "stack-drifted"
    """CloudFormation reports that the stack's resources do not match its template."""
    UNKNOWN_VERSION = "unknown-version"
    """The tenant is at a version that was never published here."""
    VANISHED_QUEUE = "vanished-queue"
    """The stack is complete, but its queue does not exist."""
    BROKEN_STACK = "broken-stack"
    """The tenant is served and its latest operation has not failed, but its stack is broken."""
    FOREIGN_STACK = "foreign-stack"
    """A stack has a tenant's stack name, or the prefix of such names, but does not belong to a tenant."""
    NOT_ADOPTED = "not-adopted"
    """A tenant from before Berth is not in the index, or its stack is not recorded."""
    STALLED_ROLLOUT = "stalled-rollout"
    """A rollout is recorded as active, but has no running execution."""


class Remedy(StrEnum):
    """The repair of a finding. No repair loses a message, deletes a tenant that is served, or bypasses admission."""

    SETTLE = "settle"
    """Record how the operation ended, or that this is unknown, and free the lock."""
    CREATE = "create"
    """Create the tenant. An existing stack is used, a missing one is created."""
    RECREATE = "recreate"
    """Remove the queue that no longer exists from the metadata, then create the tenant."""
    DELETE = "delete"
    """Delete the remains of a deleted tenant, unless its queues hold messages."""
    CORRECT = "correct"
    """Make the metadata match the stack."""
    UPGRADE = "upgrade"
    """Upgrade the tenant to its pin or to the current release."""
    NONE = "none"
    """There is no repair. A person has to act."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    subject: str
    """The tenant's id; a stack's name or a rollout's id if there is no tenant."""
    detail: str
    remedy: Remedy
    advice: str = ""
    """The steps that a person can take if there is no repair."""
    result: str = ""
    """The result of the repair; empty if none was tried."""
    repaired: bool = False
    """True if the reconciliation itself has repaired the finding."""
    ordered: bool = False
    """True if an operation was started that repairs the finding. The tenant's state shows how it ends."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Spec:
    """The options of a reconciliation. Unfinished operations are always checked."""

    survey: bool = True
    """Check every tenant and every stack."""
    detect_drift: bool = False
    """Have CloudFormation detect the drift of every tenant's stack."""
    repair: bool = True
    """Repair findings. Operations whose executions died are always settled, except in a dry run."""
    dry_run: bool = False
    reason: str = ""
    """The reason that the requester gave."""
    only: Sequence[str] | None = None
    """Repair only the findings about these tenants. The others are only reported. ``None``: repair all."""

    def repairs(self, subject: str) -> bool:
        """True if a finding about this subject is repaired."""
        return self.repair and not self.dry_run and (self.only is None or subject in self.only)


class ReconciliationStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    INCOMPLETE = "INCOMPLETE"
    """The time ran out, or AWS throttled the requests. The findings are those up to that point."""


@dataclass(frozen=True, slots=True)
class Coverage:
    """How many operations, tenants and stacks a reconciliation has checked."""

    operations: int = 0
    tenants: int = 0
    stacks: int = 0
    """Tenants' stacks."""
    all_stacks: int | None = None
    """All stacks in this account and region; ``None`` if they were not counted."""
    drift: int = 0
    """Stacks whose drift was detected."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    id: str
    by: str
    spec: Spec
    status: ReconciliationStatus
    started_at: datetime
    updated_at: datetime
    coverage: Coverage = Coverage()
    counts: Mapping[Kind, int] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    """The first :data:`MAX_FINDINGS` findings."""
    repaired: int = 0
    ordered: int = 0
    stuck: int = 0
    """The number of operations that are past their deadline and could not be settled."""
    reason: str = ""
    """Why the reconciliation is incomplete."""

    @property
    def over(self) -> bool:
        return self.status in (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def left(self) -> int:
        """The number of findings without a repair."""
        return self.total - self.repaired - self.ordered
