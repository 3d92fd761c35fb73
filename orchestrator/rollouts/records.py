"""The spec of a rollout, and the recorded state of rollouts, stages and tenants. All of them are frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.pacing import Pace
from orchestrator.tenants.records import RootCause

MAX_STAGES = 10
MAX_REASON = 2_000
"""The maximum length of the reason for a rollout's status."""


class RolloutStatus(StrEnum):
    PENDING = "PENDING"
    """Registered, but its execution has not begun yet."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """No further tenant is started. Updates that are already running are finished."""
    ABORTING = "ABORTING"
    """Like PAUSED, but the rollout cannot be resumed."""
    SUCCEEDED = "SUCCEEDED"
    """Every tenant of the rollout is at its requested version, or was skipped."""
    FAILED = "FAILED"
    """Every tenant had its turn and some failed, but no more than were tolerated."""
    HALTED = "HALTED"
    """The rollout stopped itself: too many tenants failed, an alarm went off, or it could not go on."""
    ABORTED = "ABORTED"

    @property
    def active(self) -> bool:
        """True while the rollout has a claim on its tenants, so that no other rollout can move them."""
        return self in _ACTIVE


_ACTIVE = frozenset({RolloutStatus.PENDING, RolloutStatus.RUNNING, RolloutStatus.PAUSED, RolloutStatus.ABORTING})


class StageStatus(StrEnum):
    WAITING = "WAITING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    RUNNING = "RUNNING"
    BAKING = "BAKING"
    """All tenants of the stage had their turn. The rollout waits, and watches the stage's alarm, before it goes on."""
    DONE = "DONE"


class Result(StrEnum):
    """The result of one tenant's turn."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    """The tenant is at the release. In a dry run: the update would change the tenant's stack."""
    UNCHANGED = "UNCHANGED"
    """Only in a dry run: the update would change nothing but the tenant's recorded version."""
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"

    @property
    def settled(self) -> bool:
        return self is not Result.RUNNING


class Skip(StrEnum):
    """The reason why a tenant is skipped."""

    CURRENT = "current"
    NEWER = "newer"
    """Moving the tenant would be a downgrade, and the spec does not allow downgrades."""
    PINNED = "pinned"
    BUSY = "busy"
    """Another operation owned the tenant. Only dry runs skip busy tenants."""
    NOT_PROVISIONED = "not-provisioned"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    MOVED_SINCE = "moved-since"
    """Undo and retry: the tenant was moved to yet another version after the earlier rollout."""
    WITHDRAWN = "withdrawn"
    """Undo: the release that the tenant had before was withdrawn."""
    OTHER_TIER = "other-tier"
    """The tenant is of another tier than the release."""
    UNDER_WAY = "under-way"
    """Undo: the earlier rollout's update of the tenant has not begun yet, so it would reverse the undo afterwards."""


@dataclass(frozen=True, slots=True)
class Share:
    """A number of tenants, or a percentage of them."""

    number: int
    percent: bool = False

    def size_of(self, total: int) -> int:
        """The number of tenants in this share. Percentages are rounded up, so that no share is empty."""
        return min(total, -(-total * self.number // 100) if self.percent else self.number)

    def bound_of(self, total: int) -> int:
        """The number of tenants in this share as an upper limit. Percentages are rounded down."""
        return total * self.number // 100 if self.percent else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True)
class StageSpec:
    """The spec of one stage."""

    size: Share | None
    """``None``: all remaining tenants."""
    max_concurrency: int
    tolerated: Share
    """The maximum number of the stage's tenants that may fail before the rollout halts."""
    bake_seconds: int = 0
    alarm: str | None = None
    """A CloudWatch alarm that halts the rollout if the alarm goes off during the bake."""
    approval: bool = False
    """True if an operator has to approve the stage before it begins."""


@dataclass(frozen=True, slots=True)
class Spec:
    """The spec of a rollout."""

    version: str | None
    """``None``, only for an undo: each tenant goes back to the version that it had before."""
    stages: tuple[StageSpec, ...]
    tenants: tuple[TenantId, ...] | None = None
    """``None``: every tenant that is not at the release."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only tenants with all of these labels are moved."""
    tier: str | None = None
    """The tier of the release, whose tenants are moved. ``None``: the tier ``standard``; or, for an undo without a
    version, each tenant's own."""
    share: Share | None = None
    """The share of the selected tenants that is moved. ``None``: all of them."""
    allow_downgrade: bool = False
    allow_replacement: bool = False
    dry_run: bool = False
    sample: Share | None = None
    """The share of the tenants that a dry run reviews. ``None``: all of them."""
    undo: str | None = None
    """The rollout to undo."""
    retry: str | None = None
    """The rollout whose failed tenants are retried."""


@dataclass(frozen=True, slots=True)
class Item:
    """One tenant and its target version."""

    tenant: TenantId
    version: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """The tenants that were skipped for one reason."""

    count: int
    tenants: tuple[str, ...]
    """The first few of the tenants."""


@dataclass(frozen=True, slots=True)
class Repairs:
    """The tenants that are at their target version already, and are updated all the same: their last update failed."""

    count: int
    tenants: tuple[str, ...]
    """The first few of the tenants."""


@dataclass(frozen=True, slots=True)
class Stage:
    rollout: str
    number: int
    """Counted from 1."""
    spec: StageSpec
    total: int
    tolerated: int
    manifest: str
    """The location of the list of the stage's tenants."""
    pace: Pace
    status: StageStatus = StageStatus.WAITING
    succeeded: int = 0
    """In a dry run this includes the tenants that would not change."""
    failed: int = 0
    skipped: int = 0
    in_flight: int = 0
    forgiven: int = 0
    """The number of failures when an operator last resumed the rollout. They no longer count as too many."""
    settled_before: int = 0
    """The number of settled tenants when the stage's map was last started."""
    map_concurrency: int | None = None
    """The concurrency with which the stage's map was last started; ``None`` before its first start."""
    idle_rounds: int = 0
    """The number of times in a row that the stage's map was started and settled no tenant."""
    approved_by: str | None = None
    started_at: datetime | None = None
    baked_until: datetime | None = None
    ended_at: datetime | None = None
    resumed_at: datetime | None = None
    """The time of the last halt by the stage's alarm, or of the resume after it. Earlier alarms no longer count."""
    moved_at: datetime | None = None
    """The time when a tenant of the stage was last admitted or settled."""
    revision: int = 0

    @property
    def settled(self) -> int:
        return self.succeeded + self.failed + self.skipped

    @property
    def outgrows_map(self) -> bool:
        """True if the stage may have more tenants in flight than its map can run, since an operator has changed it."""
        return self.map_concurrency is not None and self.spec.max_concurrency > self.map_concurrency

    @property
    def too_many_failed(self) -> bool:
        return self.failed - self.forgiven > self.tolerated


@dataclass(frozen=True, slots=True)
class Rollout:
    id: str
    spec: Spec
    by: str
    created_at: datetime
    planned: tuple[int, ...]
    """The planned number of tenants of each stage. A dry run plans them too, but runs one stage with a sample."""
    total: int
    """The number of tenants that have a turn in the rollout."""
    skipped: Mapping[Skip, Skipped]
    """The tenants that were skipped when the rollout was planned."""
    status: RolloutStatus = RolloutStatus.PENDING
    reason: str = ""
    """The reason for the status, where the status does not explain itself."""
    current_stage: int = 1
    attempt: int = 1
    """The number of the execution. A new execution replaces one that died, or resumes a halted rollout."""
    attempted_at: datetime | None = None
    """The time when the execution was last requested. ``None``: when the rollout was created."""
    execution: str | None = None
    task_token: str | None = None
    ended_at: datetime | None = None
    repairs: Repairs | None = None
    """``None`` if there are none."""
    start_reason: str = ""
    """The operator's reason for the rollout. It is also the reason of the tenants' updates."""
    revision: int = 0

    @property
    def name(self) -> str:
        """The name of the execution. It is deterministic, so that two starts result in one execution."""
        return f"rollout-{self.id}-{self.attempt}"


@dataclass(frozen=True, slots=True)
class NewPace:
    """The values to change. ``None``: the value stays as it is."""

    max_concurrency: int | None = None
    tolerated: Share | None = None
    bake_seconds: int | None = None

    def __str__(self) -> str:
        parts = {
            "at once": self.max_concurrency,
            "may fail": self.tolerated,
            "bake seconds": self.bake_seconds,
        }
        return ", ".join(f"{name}: {value}" for name, value in parts.items() if value is not None)


class Order(StrEnum):
    """An operator's command to a rollout."""

    START = "START"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    APPROVE = "APPROVE"
    ABORT = "ABORT"
    RETRY = "RETRY"
    UNDO = "UNDO"
    PROMOTE = "PROMOTE"
    CHANGE = "CHANGE"


@dataclass(frozen=True, slots=True)
class RecordedOrder:
    """One order in the rollout's history. The history is append-only."""

    rollout: str
    at: datetime
    order: Order
    by: str
    reason: str = ""
    stage: int | None = None
    """APPROVE and PROMOTE: the stage that is approved, or whose wait is ended."""
    other: str | None = None
    """RETRY and UNDO: the rollout that retries or undoes this one. START: the rollout that is retried or undone."""
    detail: str = ""
    """CHANGE: the new values."""
    altered: bool = False
    """True if the row's content does not match its key, so somebody has overwritten it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One tenant's turn in a rollout."""

    rollout: str
    stage: int
    item: Item
    execution: str
    """The child execution of the map that has the turn."""


@dataclass(frozen=True, slots=True)
class TenantOutcome:
    """The outcome of one tenant in one rollout. It has a row of its own."""

    rollout: str
    stage: int
    item: Item
    result: Result
    updated_at: datetime
    execution: str = ""
    """The child execution that was admitted. Empty if the turn ended without a result."""
    operation_attempt: int | None = None
    """The attempt number of the tenant's update."""
    from_version: str | None = None
    skip: Skip | None = None
    root_cause: RootCause | None = None
    changes: tuple[str, ...] = ()
    """Only in a dry run: the resources that would change."""
    interruptions: int = 0
    """The number of the tenant's updates that ended in this rollout while their operation was open."""
