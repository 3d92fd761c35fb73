"""The interfaces that the use cases need from the outside. ``adapters/`` implements them for AWS, ``tests/fakes`` in
memory."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.listings import ListedTenant, Relisting, TenantInBrief, VersionsInUse
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Lock,
    Metadata,
    Operation,
    Queue,
    Request,
    RootCause,
    Run,
    TenantRecords,
    TenantState,
)
from orchestrator.tenants.stack_resources import Requester

if TYPE_CHECKING:
    from orchestrator.tenants.decisions import Limited
    from orchestrator.tenants.ready import Ready
    from orchestrator.tenants.recent import RecentExecution
    from orchestrator.tenants.reviews import Review
    from orchestrator.tenants.turns import Place
    from orchestrator.tenants.writes import Transition


NewName = Callable[[], str]
"""Returns a new name that is unique and that nobody can guess."""


class Reviews(Protocol):
    """The reviews of updates that are kept: see :mod:`orchestrator.tenants.reviews`."""

    def review(self, move: str) -> Review | None:
        """The review that was kept for the move with this key."""

    def keep_review(self, review: Review) -> None:
        """Keep the review, unless one is kept for the same move."""


class Executions(Protocol):
    """The executions of the state machines."""

    def start(self, attempt: Attempt, request: Request) -> str | None:
        """Start the attempt's execution and return its ARN, also if it is running already.

        ``None`` if the execution has ended: every attempt is executed only once.
        """

    def execution_of(self, attempt: Attempt) -> str:
        """The ARN of the attempt's execution, whether it was ever started or not. No service is called."""

    def find_running(self, attempt: Attempt) -> str | None:
        """The attempt's execution, if it is running. Step Functions may not show one that was started a moment ago."""

    def is_running(self, execution: str) -> bool:
        """``False`` without a call for an execution of a machine that is not Berth's: rows may name any execution."""

    def is_berths(self, execution: str) -> bool:
        """True for an execution of one of Berth's machines, whether it ever ran or not. No service is called."""

    def confirmed(self, run: Run) -> Run | None:
        """The run, with the start time of its execution as Step Functions reports it.

        ``None`` unless the execution is running and was started with the run's attempt and request. Step Functions may
        not show an execution that was started a moment ago.
        """

    def is_over(self, execution: str) -> bool:
        """True once no function that the execution started can still be running.

        An aborted execution's last function may outlive it.
        """

    def how_it_ended(self, execution: str) -> str:
        """The end of a sentence that begins with "The execution": ``was aborted (by ada)``."""

    def recent(self, operation: Operation, *, limit: int) -> Sequence[RecentExecution]:
        """The newest executions of this operation's machine, the newest first."""

    def is_waiting(self, task_token: str) -> bool:
        """True if a state of one of Berth's machines waits with this token, which nobody else knows.

        It allows thirty times as many calls per second as :meth:`confirmed`.
        """

    def wake(self, task_token: str, result: Mapping[str, object] | None = None) -> bool:
        """Resume a waiting execution with this result of its state. ``False`` if it is no longer waiting."""


class UnfinishedWork(Protocol):
    """Unfinished work of tenants outside their queues, which a delete would lose. Another stack may answer, or none."""

    def unfinished(self, tenant: TenantId) -> Mapping[str, int]:
        """The number of unfinished things by the name of the place where they wait; at most a hundred are counted.

        Empty if there are none. Raises Unsettled if it cannot be found out.
        """


class TenantReader(Protocol):
    def metadata(self, tenant: TenantId) -> Metadata | None: ...

    def audits(self, tenant: TenantId) -> Sequence[Audit]: ...

    def history(
        self, tenant: TenantId, *, before: str | None = None, limit: int | None = None
    ) -> Sequence[HistoryEntry | RecordedChange | UnreadableEntry]:
        """The newest ``limit`` entries of the history, or those ``before`` a timestamp. The oldest comes first."""

    def lock(self, tenant: TenantId) -> Lock | None: ...

    def records(self, tenant: TenantId) -> TenantRecords:
        """Metadata, audits and lock, in one read."""


class TenantRows(TenantReader, Protocol):
    """The rows of tenants, as :class:`orchestrator.tenants.ledger.Ledger` writes them."""

    def audit(self, attempt: Attempt) -> Audit | None:
        """The audit of the attempt's operation, which may have been written by another attempt."""

    def metadata_of(self, tenants: Sequence[TenantId]) -> Sequence[Metadata]:
        """The metadata of those of these tenants that have any, in any order. Rows that cannot be read are left out."""

    def apply(self, transition: Transition) -> bool:
        """Make all of these writes. ``False`` if a condition does not hold, and then nothing is written."""


@dataclass(frozen=True, slots=True)
class Publication:
    """The queue, stack and version that an operation publishes for its tenant."""

    stack_id: str
    queue: Queue
    version: str
    deployed: str | None
    """The fingerprint of the release and parameters that the stack was made from, if known."""
    created_by: Requester | None = None
    """The tenant's owner; ``None`` keeps the recorded owner."""
    stack_changed_at: datetime | None = None
    """When CloudFormation last created or updated the stack, if known."""
    resources: Mapping[str, str] | None = None
    """The outputs of the stack besides the queue and the version; ``None`` keeps the recorded ones."""
    tier: str | None = None
    """The tier of the release; ``None`` keeps the recorded tier, because the version was never published."""


class OperationLedger(Protocol):
    """The writes of one operation. Each is one transaction, checks the fencing token, and may be repeated."""

    def begin(
        self,
        run: Run,
        *,
        at: datetime,
        release: Release | None = None,
        target: str | None = None,
        instead_of: Lock | None = None,
        restore: bool = False,
    ) -> Lock | None:
        """Take the tenant's lock and record Started. ``None`` on success, otherwise the lock that another run holds.

        In the same transaction, a delete withdraws the metadata, and an explicit create that is not refused marks the
        tenant's delete as superseded. ``release`` is the published release of the run's version, if there is one and it
        was not withdrawn.
        ``target`` is the fingerprint that the stack is to have. An update that is not refused, and that changes the
        recorded fingerprint, moves the fingerprint from the metadata to the lock.
        ``instead_of`` is a lock whose execution is dead: the run takes it over, and the dead run's operation is closed.
        ``restore`` serves the metadata again that the dead run, a delete, has withdrawn.
        """

    def wait_for_turn(self, run: Run, place: Place, *, at: datetime) -> None:
        """Record that the create waits for its turn: it is Started, but has no lock.

        Nothing is recorded while another operation owns the tenant.
        Raises :class:`orchestrator.common.errors.LostOwnership` if another attempt is later or is running.
        """

    def remember_token(self, run: Run, task_token: str) -> None: ...

    def remember_started(self, run: Run, task_token: str, *, stack_id: str, outcome: str) -> None:
        """Store the task token, the stack that was started, and the outcome of that start with the lock."""

    def remember_change_set(self, run: Run, change_set: str) -> None:
        """Store the id of the run's change set with the lock."""

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        """Publish the metadata, record Success and free the lock.

        Raises :class:`orchestrator.common.errors.StackHasGone` if that stack has withdrawn its queue.
        """

    def remove(self, run: Run, *, at: datetime) -> None:
        """Remove the metadata, record Success and free the lock.

        Labels and pin stay if the tenant's next create was requested already.
        """

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        """Record Failure and free the lock. ``False`` if another attempt is later or is running.

        ``restore`` serves the metadata again that this delete has withdrawn.
        """


class QueueMetadata(Protocol):
    """The part of the metadata that events of the tenant's stack keep up to date."""

    def record_queue(
        self,
        tenant: TenantId,
        *,
        stack_id: str,
        queue: Queue,
        at: datetime,
        seen: Metadata | None = None,
        change: RecordedChange | None = None,
    ) -> bool:
        """Record the stack's queue. ``False`` if the recorded queue is no longer the one that was ``seen``.

        ``change`` is the entry to append to the history, if any.

        Raises :class:`orchestrator.common.errors.StackHasGone` if that stack has withdrawn its queue, and
        :class:`orchestrator.common.errors.QueueOwnedElsewhere` if the tenant is served by another stack.
        """

    def mark_gone(self, tenant: TenantId, *, stack_id: str) -> bool:
        """Record that the stack must never be published again. The rest of the metadata stays.

        ``False`` if there is no metadata, or if the metadata names this stack.
        """

    def forget_queue(self, tenant: TenantId, *, stack_id: str, seen: Metadata | None = None) -> bool:
        """Remove the queue that the stack recorded, and never publish that stack again.

        ``False`` if the metadata names another stack, or if ``seen`` is given and is not the metadata any more. A
        delete of the stack gives none, because the queue goes whatever else has changed.
        """


@dataclass(frozen=True, slots=True)
class Pin:
    """A change of the tenant's pin. The default changes nothing."""

    version: str | None = None
    lift: bool = False

    def applied_to(self, pinned: str | None) -> str | None:
        return None if self.lift else self.version or pinned


@dataclass(frozen=True, slots=True)
class LabelEdit:
    """A change of some of a tenant's labels. It is applied to the labels that are there when it is written."""

    sets: Mapping[str, str]
    removes: Collection[str] = ()

    def applied_to(self, labels: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in labels.items() if name not in self.removes}
        return {**kept, **self.sets}


@dataclass(frozen=True, slots=True)
class SeenTenant:
    """The metadata that a caller has read before it writes; ``None`` if there was none."""

    metadata: Metadata | None

    def holds_for(self, now: Metadata | None) -> bool:
        """True if nobody has created the tenant, or requested its create, since the metadata was read."""
        return _claim(now) == _claim(self.metadata)


def _claim(metadata: Metadata | None) -> tuple[Requester | None, bool, datetime | None]:
    if metadata is None:
        return None, False, None
    return metadata.created_by, metadata.version is not None, metadata.asked_for_at


class TenantDescriptions(Protocol):
    """The labels and pin of a tenant, which are set without an operation."""

    def describe(
        self,
        tenant: TenantId,
        *,
        labels: Mapping[str, str] | LabelEdit | None,
        pin: Pin,
        request: Request,
        at: datetime,
        asked_for: Attempt | None = None,
        tier: str | None = None,
        only_if: SeenTenant | None = None,
    ) -> RecordedChange | None:
        """Set the given labels and pin, and append the change and its requester to the tenant's history.

        Both happen in one transaction, and nothing is written if nothing changes: the change that is returned then has
        equal values before and after. ``None`` if the tenant has no metadata or a delete has withdrawn it, unless its
        create is about to be started as the attempt ``asked_for``, in the tier ``tier``.
        ``None`` also if ``only_if`` is given and somebody has created the tenant, or requested its create, since then.
        """


class FleetReader(Protocol):
    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        """Tenants in one state, and at ``version`` if given, in the order of their positions, from ``after`` on.

        ``prefix`` is the beginning of their ids. It needs a version, because positions begin with the version.
        """

    def versions_in(self, state: TenantState) -> Iterable[str]:
        """The versions of the tenants in one state, in order. The version of tenants without one is empty."""

    def tenants_in_brief(self, state: TenantState) -> Iterable[TenantInBrief]: ...

    def relistings(self, *, since: datetime) -> Iterable[Relisting]:
        """The changes of places in the index since then, the oldest first: those of the last day, at most.

        Unlike the index itself, they do not lag: a change that is written is read.
        """

    def versions_in_use(self) -> VersionsInUse:
        """The number of tenants by version and state, in all states but DELETED."""

    def count_tenants(self) -> int:
        """The number of tenants in all states but DELETED, and of stacks that are kept ready."""

    def unfinished_operations(self) -> Iterable[Audit]:
        """The audits with the status Started, the oldest first."""


class CreateLimits(Protocol):
    def check(self, tenant: TenantId, *, is_new: bool, caller: str | None) -> Limited | None:
        """The limit that forbids starting this create; ``None`` if the create may be started.

        ``is_new`` if the tenant does not exist yet. ``caller`` is the caller whose creates are counted, if any.
        """


class WarmPool(Protocol):
    """The stacks that are kept ready: see :mod:`orchestrator.pool`."""

    def take(self, create: Attempt, request: Request) -> Ready | None:
        """Give a stack at the create's version to the new tenant, for good. ``None`` if there is none."""


class CreateCounts(Protocol):
    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:
        """Count a create of the tenant for the caller in the window that begins at ``window``.

        A create of the same tenant is counted once per window. Returns ``None`` if the create is counted. Otherwise the
        window is full, and its beginning is returned.
        """

    def is_counted(self, caller: str, tenant: TenantId, *, since: datetime) -> bool:
        """True if a create of the tenant was counted for the caller in a window that began at ``since`` or later."""


class Queues(Protocol):
    def answers(self, queue: Queue) -> bool:
        """True if the queue can be used now."""

    def messages(self, url: str) -> Messages | None:
        """The number of messages in the queue; ``None`` if the queue does not exist."""

    def dead_letter_queue(self, url: str) -> str | None:
        """The URL of the queue's dead-letter queue, if it has one."""
