"""What the use cases need from the outside. ``adapters/`` has it for AWS, ``tests/fakes`` in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import Enum, auto
from typing import TYPE_CHECKING, Protocol

from orchestrator.common.stack_arns import StackArn
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    HistoryEntry,
    Lock,
    Messages,
    Metadata,
    Queue,
    RecordedChange,
    Request,
    RootCause,
    Run,
    TenantRecords,
    TenantState,
    UnreadableEntry,
)
from orchestrator.tenants.stack_resources import Requester, StackResource

if TYPE_CHECKING:
    from orchestrator.tenants.decisions import Limited
    from orchestrator.tenants.names import Names
    from orchestrator.tenants.writes import Transition


NewName = Callable[[], str]
"""Makes up a name that nobody can guess, and that nobody was given before."""


class Executions(Protocol):
    """The machines' executions."""

    def start(self, attempt: Attempt, request: Request) -> str | None:
        """Start the attempt's execution, and return it, also when it is running already.

        ``None`` when it has ended: an attempt is made once.
        """

    def execution_of(self, attempt: Attempt) -> str:
        """The attempt's execution, whether it was ever started or not. Nobody is asked."""

    def find_running(self, attempt: Attempt) -> str | None:
        """The attempt's execution, if it runs. One that was started a moment ago may not be seen yet."""

    def is_running(self, execution: str) -> bool:
        """``False`` for an execution that is not of Berth's machines, without asking anybody: rows may name any."""

    def is_berths(self, execution: str) -> bool:
        """True for an execution of one of Berth's machines, whether it ever ran or not. No service is asked."""

    def confirmed(self, run: Run) -> Run | None:
        """The run, with the time at which its execution was started, whatever the run itself says about that.

        ``None`` unless the execution is running, and was started with the run's attempt and request. An execution that
        was started a moment ago may not be seen yet.
        """

    def is_over(self, execution: str) -> bool:
        """Whether nothing of it can still be at work: of an aborted one the function that it had called may be."""

    def how_it_ended(self, execution: str) -> str:
        """In words that go on from "the execution": ``was aborted (by ada)``."""

    def wake(self, task_token: str) -> bool:
        """Let a waiting execution go on. ``False`` when it is no longer waiting."""


class TenantReader(Protocol):
    def metadata(self, tenant: TenantId) -> Metadata | None: ...

    def audits(self, tenant: TenantId) -> Sequence[Audit]: ...

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry | RecordedChange | UnreadableEntry]:
        """All that ever happened to the tenant, in order."""

    def lock(self, tenant: TenantId) -> Lock | None: ...


class TenantRows(TenantReader, Protocol):
    """The rows of tenants, as :class:`orchestrator.tenants.ledger.Ledger` writes them."""

    def records(self, tenant: TenantId) -> TenantRecords:
        """Metadata, audits and lock, in one read."""

    def audit(self, attempt: Attempt) -> Audit | None:
        """The latest state of the attempt's operation, which may be another attempt's."""

    def apply(self, transition: Transition) -> bool:
        """Make all of these writes. ``False`` when one of the conditions does not hold; nothing is written then."""


@dataclass(frozen=True, slots=True)
class Publication:
    """What an operation publishes about its tenant."""

    stack_id: str
    queue: Queue
    version: str
    deployed: str | None
    """The fingerprint of what the stack was made from, if that is known."""
    created_by: Requester | None = None
    """Who brought the tenant into being; ``None`` leaves what is recorded."""


class OperationLedger(Protocol):
    """Writes of one operation. Each is one transaction, checks the fencing token, and may be repeated."""

    def begin(
        self,
        run: Run,
        *,
        at: datetime,
        release: Release | None = None,
        instead_of: Lock | None = None,
        restore: bool = False,
    ) -> Lock | None:
        """Take the tenant's lock and record Started. ``None`` when taken, else the lock that is in the way.

        A delete withdraws the metadata in the same moment, and an explicit create that is not refused marks the
        tenant's delete as overcome. ``release`` is the published release of the run's version, if it is one.
        ``instead_of`` names a lock whose execution is dead: it is taken over, and its operation closed. ``restore``
        serves the metadata again that the dead delete has withdrawn.
        """

    def remember_token(self, run: Run, task_token: str) -> None: ...

    def remember_changes(self, run: Run, change_set: str) -> None:
        """Keep, with the lock, the id of the changes that were drawn up for the run."""

    def touch(self, run: Run) -> None:
        """From now on nobody knows what the stack is made from, until an operation has finished."""

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        """Publish the metadata, record Success and free the lock.

        Raises :class:`orchestrator.common.errors.StackHasGone` if that stack has taken its queue back.
        """

    def remove(self, run: Run, *, at: datetime) -> None:
        """Forget the metadata, record Success and free the lock.

        What was said about the tenant stays if its next create was asked for already.
        """

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        """Record Failure and free the lock. ``False`` when another attempt has taken its place, or is at it.

        ``restore`` serves the metadata again that this delete has withdrawn.
        """


class QueueMetadata(Protocol):
    """The part of the metadata that the tenant's stack itself keeps true."""

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
        """Record the stack's queue. ``False`` when another queue is on record than in the metadata that was ``seen``.

        ``change`` is what the history says about it.

        Raises :class:`orchestrator.common.errors.StackHasGone` if that stack has taken its queue back, and
        :class:`orchestrator.common.errors.QueueOwnedElsewhere` if the tenant is served by another stack.
        """

    def mark_gone(self, tenant: TenantId, *, stack_id: str) -> None:
        """That stack is never published again. Nothing is forgotten by it."""

    def forget_queue(self, tenant: TenantId, *, stack_id: str, vanished: bool) -> bool:
        """Forget what that stack recorded, and that it may ever be published again.

        ``vanished`` when nobody meant the queue to go. ``False`` when the metadata is another stack's.
        """


@dataclass(frozen=True, slots=True)
class Pin:
    """What to do about the tenant's pin. By default it stays as it is."""

    version: str | None = None
    lift: bool = False

    def applied_to(self, pinned: str | None) -> str | None:
        return None if self.lift else self.version or pinned


@dataclass(frozen=True, slots=True)
class Seen:
    """What somebody has seen of a tenant before writing: its metadata, or that there was none."""

    metadata: Metadata | None

    def holds_for(self, now: Metadata | None) -> bool:
        """True if nobody has brought the tenant into being, or asked for it, since it was seen."""
        return _claim(now) == _claim(self.metadata)


def _claim(metadata: Metadata | None) -> tuple[Requester | None, bool, datetime | None]:
    if metadata is None:
        return None, False, None
    return metadata.created_by, metadata.version is not None, metadata.asked_for_at


class TenantDescriptions(Protocol):
    """What may be said about a tenant without an operation on it."""

    def describe(
        self,
        tenant: TenantId,
        *,
        labels: Mapping[str, str] | None,
        pin: Pin,
        request: Request,
        at: datetime,
        asked_for: Attempt | None = None,
        only_if: Seen | None = None,
    ) -> bool:
        """Set what is given, and append to the tenant's history what it was before, and who asked for it.

        Both, or neither; what is so already is neither written nor recorded. ``False`` when a delete has withdrawn the
        tenant, or when it has no metadata. With the create that was ``asked_for`` and is about to be started also such
        a tenant is described.
        With ``only_if`` nothing is set, either, when somebody has brought the tenant into being, or has asked for it,
        since it was seen.
        """


@dataclass(frozen=True, slots=True)
class ListedTenant:
    """A tenant as the index has it."""

    tenant: TenantId
    state: TenantState
    version: str | None
    pinned_version: str | None
    labels: Mapping[str, str]
    queue: Queue | None
    updated_at: datetime | None
    root_cause: RootCause | None
    position: str
    """Where it stands among those of the same state."""
    stack_id: str | None = None
    readable: bool = True
    """False if the tenant's row cannot be read. The root cause says why then."""


class FleetReader(Protocol):
    def tenants_in(
        self, state: TenantState, *, version: str | None = None, after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        """Tenants in one state, at one version if given, by position, after that one if given."""

    def versions_in_use(self) -> Mapping[str, Mapping[TenantState, int]]:
        """How many tenants are at which version, by state. Those without a version are at the empty one."""

    def count_tenants(self) -> int:
        """How many tenants there are, whatever state they are in. Deleted ones are not there."""

    def unfinished_operations(self) -> Iterable[Audit]:
        """Those that say Started, oldest first."""


class CreateLimits(Protocol):
    def check(self, tenant: TenantId, *, another: bool, caller: str | None) -> Limited | None:
        """Why a create that is about to be started must not be; ``None`` when it may.

        ``another`` when the tenant is not there yet. ``caller`` is whom the create is counted for, if for anybody.
        """


class CreateCounts(Protocol):
    def count(self, caller: str, tenant: TenantId, *, window: datetime, limit: int) -> datetime | None:
        """Count a create of that tenant for that caller, in the window that begins then: once, however often.

        ``None`` when it is counted. Otherwise the window is full, and its beginning is returned.
        """

    def is_counted(self, caller: str, tenant: TenantId, *, since: datetime) -> bool:
        """Whether a create of that tenant was counted for that caller, in a window that began then or later."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A tenant's stack as CloudFormation describes it."""

    stack_id: str
    status: str
    status_reason: str
    tenant_id: str | None
    queue: Queue | None
    """The queue that the stack's outputs name. Whoever wrote the template chose them, so nobody is served from here:
    see :meth:`Stacks.queue`."""
    version: str | None
    ours: bool
    """Whether the stack's service role is that of this deployment. Nobody else may pass that role."""
    attached: frozenset[str] = frozenset()
    """The topics that CloudFormation notifies and the alarms that roll the stack back, as somebody has added them."""
    parameters: Mapping[str, str] = field(default_factory=dict, hash=False)
    """All parameters of the stack's template, with the values that the stack was made with."""


@dataclass(frozen=True, slots=True)
class ResourceEvent:
    """One line of a stack's event list."""

    at: datetime
    resource: str
    resource_type: str
    status: str
    reason: str
    is_stack: bool
    cancelled: bool
    """Given up because another resource had failed."""
    client_token: str = ""
    """The token of the request that this is an effect of."""


class ChangeSetState(Enum):
    PENDING = auto()
    READY = auto()
    EMPTY = auto()
    """There is nothing to change."""
    EXECUTED = auto()
    STALE = auto()
    """The stack has changed since."""
    FAILED = auto()


@dataclass(frozen=True, slots=True)
class Change:
    """What would happen to one resource."""

    resource: str
    resource_type: str
    physical_id: str
    removes: bool
    """It is removed, or replaced by another, or might be."""


@dataclass(frozen=True, slots=True)
class ChangeSet:
    id: str
    stack_id: str
    state: ChangeSetState
    reason: str = ""
    changes: Sequence[Change] = ()
    parameters: Mapping[str, str] = field(default_factory=dict)
    extras: Sequence[str] = ()
    """What it was drawn up with besides a template, a role and parameters. Berth asks for nothing else."""
    attached: frozenset[str] = frozenset()
    """What the stack would have attached afterwards. Berth leaves what the stack has."""


class Stacks(Protocol):
    """CloudFormation. Every method may raise :class:`orchestrator.common.errors.Throttled`."""

    @property
    def names(self) -> Names:
        """The names of the control plane whose tenants' stacks these are."""

    def find(self, name_or_id: str) -> Stack | None: ...

    def queue(self, stack_id: str) -> Queue | None:
        """The tenant's queue among the stack's own resources, as CloudFormation lists them now."""

    def queues(self, stack_id: str) -> Mapping[str, Queue]:
        """All queues among the stack's own resources, by the names that the template gives them.

        Queues that are being deleted, or could not be, are among them.
        """

    def create(self, tenant: TenantId, *, release: Release, client_token: str) -> str | None:
        """Create the tenant's stack and return its id. ``None`` when one of that name has just appeared."""

    def delete(self, stack_id: str, *, client_token: str) -> None: ...

    def draw_up_changes(self, tenant: TenantId, stack_id: str, *, release: Release, name: str) -> str | None:
        """Have CloudFormation work out what the release would change, under this name, and return the changes' id.

        ``None`` when something of that name was drawn up already, by whomever.
        """

    def changes(self, stack_id: str, change_set: str) -> ChangeSet | None:
        """What was drawn up, by its id or its name."""

    def template_digest(self, stack_id: str, change_set: str) -> str | None:
        """The digest of the template of these changes; ``None`` when it is none that a release could have.

        Raises :class:`orchestrator.common.errors.Conflict` if there are no such changes any more.
        """

    def make_changes(self, stack_id: str, change_set: str, *, client_token: str) -> None:
        """By their id: a name may stand for something else by now."""

    def forget_changes(self, stack_id: str, change_set: str) -> None: ...

    def roll_back(self, stack_id: str, *, client_token: str) -> None:
        """Undo a failed update that was not undone."""

    def continue_rollback(self, stack_id: str, *, client_token: str) -> None:
        """Go on with undoing an update, where that had failed."""

    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        """Newest first."""


@dataclass(frozen=True, slots=True)
class ResourceState:
    """A resource of a stack as CloudFormation describes it."""

    resource_type: str
    status: str
    physical_id: str
    """Empty while the resource has none."""
    changed_at: datetime | None
    """When the status became what it is, if CloudFormation says so."""


class StackResources(Protocol):
    """Custom resources that our functions answer for, in our own stack and in those of other teams.

    Every method may raise :class:`orchestrator.common.errors.Throttled`.
    """

    def resource(self, resource: StackResource) -> ResourceState | None: ...

    def stack_status(self, stack: StackArn) -> str | None: ...


class Queues(Protocol):
    def answers(self, queue: Queue) -> bool:
        """Whether the queue can be used now."""

    def messages(self, url: str) -> Messages | None:
        """What the queue holds; ``None`` when there is no such queue."""

    def dead_letter_queue(self, url: str) -> str | None:
        """The URL of the queue to which this one moves what nobody could handle."""
