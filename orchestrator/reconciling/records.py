"""What a reconciliation is asked to do, what it has found, and what came of that."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

SETTLING = "settling"
SURVEY = "survey"
"""The two that run by themselves. Of each only the latest is kept, under this id."""

LATEST_LOOK = "latest-look"
"""The id of a copy of the latest one that an operator asked for and that looked for tenants from before Berth."""

MAX_FINDINGS = 200
"""As many are kept in full; all are counted. It has to fit a row, and an answer."""


class Kind(StrEnum):
    """Where what is recorded and what is true differ."""

    UNFINISHED = "unfinished-operation"
    """An operation says Started, and its execution is dead or hangs."""
    ORPHAN_STACK = "orphan-stack"
    """A tenant's stack, and no row of such a tenant, or only that it was deleted."""
    MISSING_STACK = "missing-stack"
    """A tenant that was provisioned, and no stack."""
    METADATA_DIFFERS = "metadata-differs"
    """The metadata says one thing about the queue, the stack another."""
    DRIFTED = "stack-drifted"
    """The stack's resources are not as its template has them, by CloudFormation's own word."""
    UNKNOWN_VERSION = "unknown-version"
    """A tenant at a version that was never published here."""
    VANISHED_QUEUE = "vanished-queue"
    """The stack stands, and its queue does not exist."""
    BROKEN_STACK = "broken-stack"
    """A tenant is served, no operation on it has failed, and its stack does not stand."""
    FOREIGN_STACK = "foreign-stack"
    """A stack that bears a tenant's name, or the prefix of one, and is no tenant's."""
    UNLISTED = "unlisted-tenant"
    """A tenant from before Berth, which the index does not have: neither rollouts nor surveys see it."""
    STALLED_ROLLOUT = "stalled-rollout"
    """A rollout that goes on, by its row, and has no execution."""


class Remedy(StrEnum):
    """What a repair would do. None of them loses a message, deletes what is served or goes past admission."""

    SETTLE = "settle"
    """Record how the operation ended, or that nobody knows; free the lock."""
    CREATE = "create"
    """Have the tenant created: the stack that stands is adopted, one that is gone is made anew."""
    RECREATE = "recreate"
    """Forget the queue that is gone, then have the tenant created."""
    DELETE = "delete"
    """Have what is left of a deleted tenant deleted, unless there are messages in it."""
    CORRECT = "correct"
    """Have the metadata say what the stack says."""
    UPGRADE = "upgrade"
    """Have the tenant moved to the release that it ought to be at."""
    ADOPT = "adopt"
    """Bring the tenant into the index. Only an adoption does that."""
    NONE = "none"
    """A person has to look."""


@dataclass(frozen=True, slots=True)
class Finding:
    kind: Kind
    subject: str
    """The tenant's id; a stack's name or a rollout's id where there is no tenant."""
    detail: str
    remedy: Remedy
    advice: str = ""
    """What a person can do, where no repair does it."""
    result: str = ""
    """What came of the repair; empty when none was tried."""
    repaired: bool = False
    """Put right by the reconciliation itself."""
    ordered: bool = False
    """An operation was ordered that puts it right. How that ends, the tenant says."""

    def __str__(self) -> str:
        return f"{self.kind}: {self.subject}: {self.detail}"


@dataclass(frozen=True, slots=True)
class Spec:
    """What is asked for. Unfinished operations are always looked at."""

    survey: bool = True
    """Whether every tenant and every stack is looked at."""
    detect_drift: bool = False
    """Whether CloudFormation is asked to compare every tenant's stack with its resources."""
    repair: bool = True
    """Whether findings are repaired. Operations that died are settled unless it is a dry run."""
    dry_run: bool = False
    reason: str = ""
    """Why, in the words of whoever asks."""
    adopt: bool = False
    """An adoption: tenants that the index does not have are brought into it, and nothing else is done."""
    cursor: str | None = None
    """Where an adoption goes on that an earlier one has left off."""


class ReconciliationStatus(StrEnum):
    PENDING = "PENDING"
    RUNNING = "RUNNING"
    DONE = "DONE"
    INCOMPLETE = "INCOMPLETE"
    """Time ran out, or AWS had none: what was looked at is told, the rest was not."""


@dataclass(frozen=True, slots=True)
class Coverage:
    operations: int = 0
    tenants: int = 0
    stacks: int = 0
    """Of tenants."""
    all_stacks: int | None = None
    """In this account and region, whoever they belong to; ``None`` when they were not counted."""
    drift: int = 0
    rows: int = 0
    """Of the whole table, to find tenants that the index does not have."""


@dataclass(frozen=True, slots=True)
class Reconciliation:
    id: str
    by: str
    spec: Spec
    status: ReconciliationStatus
    started_at: datetime
    updated_at: datetime
    looked_at: Coverage = Coverage()
    counts: Mapping[Kind, int] = field(default_factory=dict)
    findings: Sequence[Finding] = ()
    """The first of them, up to :data:`MAX_FINDINGS`."""
    repaired: int = 0
    ordered: int = 0
    stuck: int = 0
    """Operations that are past their deadline and could not be settled."""
    reason: str = ""
    """Why it is incomplete."""
    cursor: str | None = None
    """Where the next adoption has to go on; ``None`` when the whole table was looked at."""
    scanned_at: datetime | None = None
    """When a survey has last looked at every row of the table, and has found no unlisted tenant."""

    @property
    def over(self) -> bool:
        return self.status in (ReconciliationStatus.DONE, ReconciliationStatus.INCOMPLETE)

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    @property
    def left(self) -> int:
        """How many findings nothing was done about."""
        return self.total - self.repaired - self.ordered

    @property
    def unlisted(self) -> int:
        """How many tenants from before Berth were found and not adopted."""
        found = self.counts.get(Kind.UNLISTED, 0)
        return found - self.repaired if self.spec.adopt else found


def counted(findings: Sequence[Finding]) -> Mapping[Kind, int]:
    return dict(Counter(finding.kind for finding in findings))
