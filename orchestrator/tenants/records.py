"""What Berth remembers. Plain, frozen values; how they are stored is the adapters' business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Literal

from orchestrator.common.errors import InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.stack_resources import Requester, StackResource


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Status(StrEnum):
    STARTED = "Started"
    SUCCESS = "Success"
    FAILURE = "Failure"


class TenantState(StrEnum):
    """A tenant in one word."""

    READY = "READY"
    PROVISIONING = "PROVISIONING"
    UPDATING = "UPDATING"
    """Served all the while."""
    UPDATE_FAILED = "UPDATE_FAILED"
    """Served as before: the latest update failed and was undone."""
    FAILED = "FAILED"
    DELETING = "DELETING"
    DELETED = "DELETED"
    UNKNOWN = "UNKNOWN"


def release_of(operation: Operation, version: str | None) -> str | None:
    """The release that an operation is about. A delete is about none, though a version is recorded with it."""
    return None if operation is Operation.DELETE else version


STATE_DURING: Mapping[Operation, TenantState] = {
    Operation.CREATE: TenantState.PROVISIONING,
    Operation.UPDATE: TenantState.UPDATING,
    Operation.DELETE: TenantState.DELETING,
}


ACCEPTED_FOR = timedelta(minutes=1)
"""For so long a create that was accepted is believed to be about to begin. Then Step Functions shows whether it is."""

UNKNOWN_CREATOR = "unknown"
"""Who brought a tenant into being that was there before creators were recorded."""

THROTTLING = "Berth::Throttling"
"""The type of a root cause that is no resource's."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """Why an operation failed: the first thing that broke, not what broke after it."""

    resource: str
    resource_type: str
    reason: str

    def __str__(self) -> str:
        return f"{self.resource} ({self.resource_type}): {self.reason}"

    @property
    def is_throttling(self) -> bool:
        """Whether nothing broke: AWS just never had the time."""
        return self.resource_type == THROTTLING


@dataclass(frozen=True, slots=True)
class Queue:
    arn: str
    url: str

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class Metadata:
    """The tenant's queue. It is served once an operation has published a version, until a delete withdraws it."""

    tenant: TenantId
    queue: Queue | None
    stack_id: str | None
    version: str | None
    created_at: datetime | None
    updated_at: datetime | None
    withdrawn_by: str | None = None
    """The execution that is deleting, or has tried to delete, the tenant."""
    outbound_queue: Queue | None = None
    """Only tenants from before 0.1.0 have one. The next update takes it away."""
    pinned_version: str | None = None
    """The release that the tenant is to stay at."""
    labels: Mapping[str, str] = field(default_factory=dict)
    labelled: bool = field(default=False, compare=False)
    """True once somebody has said which labels the tenant has, also if that was none."""
    deployed: str | None = None
    """The fingerprint of what the tenant's stack was last made from; ``None`` when that is not known for sure."""
    created_by: Requester | None = None
    """Whose tenant it is: who asked for the first create that began since the tenant was last deleted, also if it
    failed; ``None`` when that was never recorded. The rule is
    :func:`orchestrator.tenants.admission.owner_once_begun`."""
    asked_for: Attempt | None = None
    """The explicit create that was asked for, until it begins: the tenant is still to come."""
    asked_for_at: datetime | None = None
    """When it was asked for."""
    gone_stack_id: str | None = None
    """The latest stack that has taken its queue back. It is never served again."""
    last_version: str | None = None
    """The version at which the tenant was served, if its queue has vanished since."""

    @property
    def published(self) -> bool:
        return self.version is not None and self.queue is not None and self.withdrawn_by is None

    @property
    def was_served(self) -> bool:
        """True once an operation has published the tenant's queue, also if the queue has vanished since."""
        return self.version is not None or self.last_version is not None

    def is_still_to_come(self, run: Run) -> bool:
        """Whether the tenant's next create was asked for by the time that this run ends, and has not begun.

        A create that was asked for well before the run was has begun by then, or died before it could.
        """
        return self.asked_for_at is not None and self.asked_for_at > run.asked_at - ACCEPTED_FOR


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for beyond the operation itself, and by whom. A retry asks for the same again."""

    by: str = ""
    """Who asks, for people to read."""
    resource: StackResource | None = None
    """The resource that asks, if it is one. By this alone, and never by ``by``, a tenant is known to belong to it."""
    explicit: bool = False
    """Create: someone asked for the tenant itself, not just for its queue. Only that brings a deleted one back."""
    labels: Mapping[str, str] | None = None
    pin: str | None = None
    version: str | None = None
    """Update: the release that was named. ``None``: the one that the tenant is pinned to, or the current one."""
    allow_downgrade: bool = False
    allow_replacement: bool = False
    """Update: also if that replaces or removes a queue, with the messages in it."""
    force: bool = False
    """Delete: also with messages in the queue."""
    drain_seconds: int = 0
    """Delete: wait this long for the queue to become empty."""
    asked_at: datetime | None = None
    """When it was asked for, if that was before its execution started."""
    own: bool = False
    """Delete: only a tenant that was brought into being by whoever asks for it."""
    unserved: bool = False
    """Delete: only a tenant that never had a queue. Whoever wants it next need not bring anything back."""
    reason: str = ""
    """Why, in the words of whoever asks."""

    @property
    def requester(self) -> Requester:
        return self.by if self.resource is None else self.resource


_TOKEN_MAX_LENGTH = 128
"""CloudFormation accepts no longer client request tokens."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one operation. Its name is deterministic, so that starting it twice starts it once."""

    tenant: TenantId
    operation: Operation
    version: str
    number: int

    @property
    def name(self) -> str:
        # A delete is of the tenant, not of a version: its number alone tells it from the others.
        version = "" if self.operation is Operation.DELETE else f"{self.version}-"
        return f"{self.operation.lower()}-{self.tenant.slug}-{version}{self.number}"

    @property
    def release(self) -> str | None:
        return release_of(self.operation, self.version)

    @property
    def client_token(self) -> str:
        """The same, in the narrower alphabet of CloudFormation's client request tokens."""
        return self.name.replace(".", "-")

    @staticmethod
    def tenant_of(client_token: str) -> TenantId | None:
        """The tenant of the attempt whose client token this one begins with. ``None`` if it is no attempt's."""
        operation, *parts = client_token[:_TOKEN_MAX_LENGTH].split("-")
        if operation.upper() not in Operation.__members__:
            return None
        # The longest, because an id may itself end as if with a digest.
        for length in range(len(parts), 0, -1):
            with suppress(InvalidTenantId):
                return TenantId.of_slug("-".join(parts[:length]))
        return None


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that is being executed. The execution is its fencing token."""

    attempt: Attempt
    execution: str
    started_at: datetime
    request: Request = Request()

    @property
    def tenant(self) -> TenantId:
        return self.attempt.tenant

    @property
    def asked_at(self) -> datetime:
        """Of a create and a delete that race, the one that was asked for later has its way.

        Nobody can ask after the execution was started: a time to come would overrule whatever is asked for later.
        """
        return min(self.request.asked_at or self.started_at, self.started_at)


@dataclass(frozen=True, slots=True)
class Lock:
    """The one run that owns the tenant now."""

    run: Run
    task_token: str | None
    change_set: str | None = None
    """The id of the changes that the run had CloudFormation draw up. Nothing else is ever executed for it."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The latest state of one operation on one tenant. Rows from before versions have none."""

    tenant: TenantId
    operation: Operation
    version: str | None
    status: Status
    execution: str
    updated_at: datetime
    attempt: int
    root_cause: RootCause | None = None
    request: Request = Request()
    revived_by: str | None = None
    """Of a delete: the execution of the explicit create that came after it."""
    asked_at: datetime | None = None
    """When the operation was asked for. Rows from before 0.5.0 do not say."""


@dataclass(frozen=True, slots=True)
class TenantRecords:
    """All that is recorded of one tenant, but for its history."""

    metadata: Metadata | None
    audits: Sequence[Audit]
    lock: Lock | None

    def is_locked_by(self, run: Run) -> bool:
        return self.lock is not None and self.lock.run.execution == run.execution


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened in an operation. Appended, never changed."""

    tenant: TenantId
    at: datetime
    operation: Operation
    version: str
    attempt: int
    status: Status
    execution: str
    root_cause: RootCause | None = None
    requested_by: str = ""
    request: Request | None = None
    """All that was asked for. Rows from before 0.6.0 only say by whom."""
    altered: bool = False
    """The row does not say what its key says that it said: somebody has put another over it."""


class ChangeKind(StrEnum):
    """What was changed on record without an operation."""

    DESCRIBE = "DESCRIBE"
    """Somebody said something about the tenant: its labels, or its pin."""
    CORRECT = "CORRECT"
    """A reconciliation made the metadata say what the stack says."""
    REPLACE = "REPLACE"
    """The tenant's stack has another queue, and no operation is at work on it: somebody changed the stack."""
    ADOPT = "ADOPT"
    """The tenant was there before Berth, and has been brought into the index."""


@dataclass(frozen=True, slots=True)
class RecordedChange:
    """One change of what is recorded about a tenant. Appended, never changed."""

    tenant: TenantId
    at: datetime
    kind: ChangeKind
    request: Request
    before: Mapping[str, object]
    after: Mapping[str, object]
    altered: bool = False
    """As of an operation's entry."""


@dataclass(frozen=True, slots=True)
class UnreadableEntry:
    """A row of history that is no entry at all: somebody has put it there, or over what was recorded."""

    at: datetime | None
    """As its key says; ``None`` if not even the key says when."""
    altered: Literal[True] = True


@dataclass(frozen=True, slots=True)
class Messages:
    """How many messages a queue holds, as SQS estimates it."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed

    def __str__(self) -> str:
        return f"{self.visible} visible, {self.in_flight} in flight, {self.delayed} delayed"
