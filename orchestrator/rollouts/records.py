"""What is asked for in a rollout, and what is remembered about it. Plain, frozen values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.pacing import Pace
from orchestrator.tenants.records import RootCause

MAX_STAGES = 10


class RolloutStatus(StrEnum):
    PENDING = "PENDING"
    """Registered, and about to run."""
    RUNNING = "RUNNING"
    PAUSED = "PAUSED"
    """No tenant is started. Those that were are finished."""
    ABORTING = "ABORTING"
    """The same, and it will not go on."""
    SUCCEEDED = "SUCCEEDED"
    """Every tenant in it is where it was to be."""
    FAILED = "FAILED"
    """Every tenant had its turn, and some failed; no more than were tolerated."""
    HALTED = "HALTED"
    """It stopped itself: too many failed, or an alarm went off."""
    ABORTED = "ABORTED"

    @property
    def active(self) -> bool:
        """Whether it still has a claim on its tenants."""
        return self in _ACTIVE


_ACTIVE = frozenset({RolloutStatus.PENDING, RolloutStatus.RUNNING, RolloutStatus.PAUSED, RolloutStatus.ABORTING})


class StageStatus(StrEnum):
    WAITING = "WAITING"
    AWAITING_APPROVAL = "AWAITING_APPROVAL"
    RUNNING = "RUNNING"
    BAKING = "BAKING"
    """All of its tenants had their turn. Before the next stage begins, time shows whether they are well."""
    DONE = "DONE"


class Result(StrEnum):
    """What became of one tenant."""

    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    """It is at the release. Of a dry run: it would change."""
    UNCHANGED = "UNCHANGED"
    """Only of a dry run: nothing but its recorded version would change."""
    FAILED = "FAILED"
    SKIPPED = "SKIPPED"

    @property
    def settled(self) -> bool:
        return self is not Result.RUNNING


class Skip(StrEnum):
    """Why a tenant is left out."""

    CURRENT = "current"
    NEWER = "newer"
    """It would be a downgrade, and that was not allowed."""
    PINNED = "pinned"
    BUSY = "busy"
    """Another operation was at it. Only a dry run does not wait for that; before version 0.5.0 no rollout did."""
    NOT_PROVISIONED = "not-provisioned"
    DELETED = "deleted"
    UNKNOWN = "unknown"
    MOVED_SINCE = "moved-since"
    """To be returned to where it was, but it has been moved elsewhere since."""
    UNDER_WAY = "under-way"
    """To be returned to where it was, but its update has not even begun yet, and would come after that."""


@dataclass(frozen=True, slots=True)
class Share:
    """So many, or so many in a hundred."""

    number: int
    percent: bool = False

    def size_of(self, total: int) -> int:
        """How many that is: rounded up, so that a share of something is something."""
        return min(total, -(-total * self.number // 100) if self.percent else self.number)

    def bound_of(self, total: int) -> int:
        """The same, rounded down: no more than that."""
        return total * self.number // 100 if self.percent else self.number

    def __str__(self) -> str:
        return f"{self.number}%" if self.percent else str(self.number)


@dataclass(frozen=True, slots=True)
class StageWish:
    """One stage, as asked for."""

    size: Share | None
    """``None``: all that are left."""
    max_concurrency: int
    tolerated: Share
    """How many of its tenants may fail."""
    bake_seconds: int = 0
    alarm: str | None = None
    """A CloudWatch alarm that stops the rollout if it goes off during the bake."""
    approval: bool = False
    """Someone has to approve of it before it begins."""


@dataclass(frozen=True, slots=True)
class Wish:
    """A rollout, as asked for."""

    version: str | None
    """``None``: each tenant to the release that it was moved away from. Only to undo another rollout."""
    stages: tuple[StageWish, ...]
    tenants: tuple[TenantId, ...] | None = None
    """``None``: every tenant that is not at the release."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """Only tenants with all of these."""
    share: Share | None = None
    """Only so many of those that are to be moved."""
    allow_downgrade: bool = False
    allow_replacement: bool = False
    dry_run: bool = False
    sample: Share | None = None
    """Of a dry run: how many of the tenants are looked at. ``None``: all of them."""
    undo: str | None = None
    """The rollout whose tenants are returned."""
    retry: str | None = None
    """The rollout whose failed tenants are tried again."""


@dataclass(frozen=True, slots=True)
class Item:
    """One tenant and where it is to be moved."""

    tenant: TenantId
    version: str


@dataclass(frozen=True, slots=True)
class Skipped:
    """Who was left out for one reason. Not all of them are named."""

    count: int
    tenants: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stage:
    rollout: str
    number: int
    """From 1."""
    wish: StageWish
    total: int
    tolerated: int
    manifest: str
    """Where the list of its tenants is."""
    pace: Pace
    status: StageStatus = StageStatus.WAITING
    succeeded: int = 0
    """Of a dry run, those that would not change are among them."""
    failed: int = 0
    skipped: int = 0
    in_flight: int = 0
    forgiven: int = 0
    """Failures that an operator has seen when resuming: only later ones count against what is tolerated."""
    settled_before: int = 0
    """How many had been settled when the stage was last set going."""
    idle_rounds: int = 0
    """How often it was set going since the last tenant was settled."""
    approved_by: str | None = None
    started_at: datetime | None = None
    baked_until: datetime | None = None
    ended_at: datetime | None = None
    resumed_at: datetime | None = None
    """When an operator last let the stage go on after a halt, and so had seen what its alarm said until then."""
    moved_at: datetime | None = None
    """When a tenant was last admitted or settled."""
    revision: int = 0

    @property
    def settled(self) -> int:
        return self.succeeded + self.failed + self.skipped

    @property
    def too_many_failed(self) -> bool:
        return self.failed - self.forgiven > self.tolerated


@dataclass(frozen=True, slots=True)
class Rollout:
    id: str
    wish: Wish
    by: str
    created_at: datetime
    planned: tuple[int, ...]
    """How many tenants each stage has. A dry run has one stage in their place, with a sample of them."""
    total: int
    """How many tenants have their turn in it."""
    skipped: Mapping[Skip, Skipped]
    """Who was left out from the beginning."""
    status: RolloutStatus = RolloutStatus.PENDING
    reason: str = ""
    """Why it is in that status, where that is not obvious."""
    current_stage: int = 1
    attempt: int = 1
    """Each is an execution. A later one takes the place of one that died, or goes on with what was halted."""
    execution: str | None = None
    task_token: str | None = None
    ended_at: datetime | None = None
    start_reason: str = ""
    """Why it was started, in the words of whoever asked for it. The updates of its tenants say the same."""
    revision: int = 0

    @property
    def name(self) -> str:
        """Its execution's: deterministic, so that starting it twice starts it once."""
        return f"rollout-{self.id}-{self.attempt}"


class Order(StrEnum):
    """What somebody had done with a rollout."""

    START = "START"
    PAUSE = "PAUSE"
    RESUME = "RESUME"
    APPROVE = "APPROVE"
    ABORT = "ABORT"
    RETRY = "RETRY"
    UNDO = "UNDO"


@dataclass(frozen=True, slots=True)
class RecordedOrder:
    """One order, in the rollout's own history. Appended, never changed."""

    rollout: str
    at: datetime
    order: Order
    by: str
    reason: str = ""
    stage: int | None = None
    """Approve: the stage that was approved."""
    other: str | None = None
    """Retry and undo: the rollout that does it. Start: the rollout that is retried or undone."""
    altered: bool = False
    """The row does not say what its key says that it said: somebody has put another over it."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One tenant's turn in a rollout."""

    rollout: str
    stage: int
    item: Item
    execution: str
    """The child execution whose turn it is."""


@dataclass(frozen=True, slots=True)
class TenantOutcome:
    """What became of one tenant in one rollout: its own row."""

    rollout: str
    stage: int
    item: Item
    result: Result
    updated_at: datetime
    execution: str = ""
    """Of the child that was given the turn."""
    operation_attempt: int | None = None
    """Of the tenant's update."""
    from_version: str | None = None
    skip: Skip | None = None
    root_cause: RootCause | None = None
    changes: tuple[str, ...] = ()
    """Of a dry run: the resources that would change."""
