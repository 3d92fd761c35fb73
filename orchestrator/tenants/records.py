"""The records that Berth keeps, as plain, frozen values. The adapters define how they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from orchestrator.common.errors import InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
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
    """The state of a tenant."""

    READY = "READY"
    PROVISIONING = "PROVISIONING"
    UPDATING = "UPDATING"
    """The tenant is served during the update."""
    UPDATE_FAILED = "UPDATE_FAILED"
    """The latest update failed and was rolled back. The tenant is served as before."""
    FAILED = "FAILED"
    DELETING = "DELETING"
    DELETED = "DELETED"
    UNKNOWN = "UNKNOWN"


def release_of(operation: Operation, version: str | None) -> str | None:
    """The release of an operation. A delete has none, though a version is recorded with it."""
    return None if operation is Operation.DELETE else version


STATE_DURING: Mapping[Operation, TenantState] = {
    Operation.CREATE: TenantState.PROVISIONING,
    Operation.UPDATE: TenantState.UPDATING,
    Operation.DELETE: TenantState.DELETING,
}


START_GRACE_PERIOD = timedelta(minutes=1)
"""How long an accepted create counts as about to begin. After that, Step Functions shows whether it is running."""

UNKNOWN_CREATOR = "unknown"
"""The owner of a tenant that was created before owners were recorded."""

ALLOW_REPLACEMENT = "--allow-replacement"
"""The option that allows the loss of data. The reason of an update that was refused because of a loss names it."""

THROTTLING = "Berth::Throttling"
"""The resource type of a root cause that AWS's throttling has brought about, not a resource."""


@dataclass(frozen=True, slots=True)
class RootCause:
    """Why an operation failed: the first failure, not its consequences."""

    resource: str
    resource_type: str
    reason: str

    def __str__(self) -> str:
        return f"{self.resource} ({self.resource_type}): {self.reason}"

    @property
    def is_throttling(self) -> bool:
        """True if nothing is broken, and AWS only throttled the requests until the deadline."""
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
    """The tenant's queue and version. The queue is served once an operation has published it, until a delete withdraws
    it."""

    tenant: TenantId
    queue: Queue | None
    stack_id: str | None
    version: str | None
    created_at: datetime | None
    updated_at: datetime | None
    withdrawn_by: str | None = None
    """The execution that is deleting the tenant, or has tried to."""
    outbound_queue: Queue | None = None
    """Only tenants from before Berth have one. The next update removes it."""
    pinned_version: str | None = None
    """The release that the tenant is pinned to."""
    labels: Mapping[str, str] = field(default_factory=dict)
    labelled: bool = field(default=False, compare=False)
    """True once the tenant's labels were set, also if they were set to none."""
    deployed: str | None = None
    """The fingerprint of the release and parameters that the tenant's stack was last made from; ``None`` if unknown."""
    created_by: Requester | None = None
    """The tenant's owner: the requester of the first create that began since the tenant was last deleted, also if that
    create failed; ``None`` if the owner was never recorded. The rule is
    :func:`orchestrator.tenants.admission.owner_once_begun`."""
    asked_for: Attempt | None = None
    """The explicit create that was requested and has not begun."""
    asked_for_at: datetime | None = None
    """When that create was requested."""
    gone_stack_id: str | None = None
    """The latest stack that has withdrawn its queue. That stack is never served again."""
    last_version: str | None = None
    """The version at which the tenant was served, if its queue has vanished since."""
    given_to: str | None = None
    """The tenant that has taken the stack, if this is the record of a stack that was kept ready."""
    stack_changed_at: datetime | None = None
    """When CloudFormation last created or updated the stack, as the operation saw it that recorded ``deployed``. If the
    stack has another time now, somebody has changed it since."""
    resources: Mapping[str, str] = field(default_factory=dict)
    """The outputs of the tenant's stack besides its queue and version, by name, as the last operation published them.
    An operator's template chooses them."""
    recorded_tier: str | None = None
    """The tier as it is recorded: of the release that the tenant is at, or is to be created at. Tenants from before
    there were tiers have none recorded."""

    @property
    def tier(self) -> str:
        return self.recorded_tier or STANDARD

    @property
    def published(self) -> bool:
        return self.queue is not None and self.version is not None and self.withdrawn_by is None

    @property
    def has_tier_of_queue(self) -> bool:
        """True if the recorded tier is that of the tenant's queue, also while a delete may still give the queue back.

        Then only the operation that publishes another queue changes the tier.
        """
        return self.version is not None

    @property
    def was_served(self) -> bool:
        """True once an operation has published the tenant's queue, also if the queue has vanished since."""
        return self.version is not None or self.last_version is not None

    def is_still_to_come(self, run: Run) -> bool:
        """True if the tenant's next create was requested before this run ends, and has not begun.

        A create that was requested well before the run has begun by then, or died before it could begin.
        """
        return self.asked_for_at is not None and self.asked_for_at > run.asked_at - START_GRACE_PERIOD

    def create_accepted_at(self, now: datetime) -> Attempt | None:
        """The create that was accepted a moment ago, and has not begun.

        Step Functions may not show an execution that was started a moment ago, so the row alone counts for a minute.
        """
        recent = self.asked_for_at is not None and now - self.asked_for_at < START_GRACE_PERIOD
        return self.asked_for if recent else None


@dataclass(frozen=True, slots=True)
class Request:
    """The options of an operation, and its requester. A retry uses the same options again."""

    by: str = ""
    """The requester's name, for people to read."""
    resource: StackResource | None = None
    """The requesting resource, if a resource requests the operation. Only this, never ``by``, makes the resource the
    tenant's owner."""
    explicit: bool = False
    """Create: the tenant itself was requested, not only its queue. Only such a create restores a deleted tenant."""
    labels: Mapping[str, str] | None = None
    pin: str | None = None
    version: str | None = None
    """Update: the requested release. ``None``: the release that the tenant is pinned to, or the current one."""
    allow_downgrade: bool = False
    allow_replacement: bool = False
    """Update: allow the update to replace or remove a queue with its messages."""
    force: bool = False
    """Delete: delete the queue with its messages."""
    drain_seconds: int = 0
    """Delete: wait this long for the queue to become empty."""
    asked_at: datetime | None = None
    """The time of the request, if it is before the start of the execution."""
    own: bool = False
    """Delete: delete the tenant only if the requester owns it."""
    unserved: bool = False
    """Delete: delete the tenant only if it never had a queue. Any resource may create such a tenant afterwards."""
    tier: str | None = None
    """Create: the tier that was asked for. Update: the tier that the tenant is moved to. ``None``: its own tier."""
    reason: str = ""
    """The reason that the requester gave."""

    @property
    def requester(self) -> Requester:
        return self.by if self.resource is None else self.resource


_TOKEN_MAX_LENGTH = 128
"""The maximum length of CloudFormation's client request tokens."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at one operation. Its name is deterministic, so starting it twice runs one execution."""

    tenant: TenantId
    operation: Operation
    version: str
    number: int

    @property
    def name(self) -> str:
        # A delete has no version: only its number distinguishes it from other deletes.
        version = "" if self.operation is Operation.DELETE else f"{self.version}-"
        return f"{self.operation.lower()}-{self.tenant.slug}-{version}{self.number}"

    @property
    def release(self) -> str | None:
        return release_of(self.operation, self.version)

    @property
    def client_token(self) -> str:
        """The attempt's name with only those characters that CloudFormation allows in client request tokens."""
        return self.name.replace(".", "-")

    @staticmethod
    def tenant_of(client_token: str) -> TenantId | None:
        """The tenant of the attempt whose client token this token begins with. ``None`` if there is no such attempt."""
        operation, *parts = client_token[:_TOKEN_MAX_LENGTH].split("-")
        if operation.upper() not in Operation.__members__:
            return None
        # The longest match comes first, because a tenant id may itself end with what looks like a digest.
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
        """The time of the request. If a create and a delete race, the later request wins.

        It is never later than the start of the execution, because a time in the future would win over later requests.
        """
        return min(self.request.asked_at or self.started_at, self.started_at)


@dataclass(frozen=True, slots=True)
class Lock:
    """The lock of a tenant. It is held by one run, which owns the tenant."""

    run: Run
    task_token: str | None
    change_set: str | None = None
    """The id of the change set that the run has created. The run executes no other change set."""
    deployed: str | None = None
    """Update: the fingerprint that the metadata had when the run began. The metadata has none during an update."""
    stack_changed_at: datetime | None = None
    """Update: the same for the time of the stack's last change."""
    started_stack: str | None = None
    """The id of the stack that the run has last started to change, or has found as it is."""
    started_as: str | None = None
    """The outcome of that start: ``started``, ``clearing`` or ``unchanged``."""


@dataclass(frozen=True, slots=True)
class Audit:
    """The latest state of one operation on one tenant. Rows from before versions were recorded have no version."""

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
    """Delete: the execution of the explicit create that superseded the delete."""
    asked_at: datetime | None = None
    """The time of the operation's request. Rows from before Berth do not have it."""
    ticket: int | None = None
    """Create: the number of its place in the line, while it waits for its turn. It has no lock then."""
    expected_at: datetime | None = None
    """Create: about when the waiting create gets its turn."""
    waits_until: datetime | None = None
    """Create: until this time the waiting execution sleeps, unless it is woken. It need not be checked before."""

    @property
    def is_waiting(self) -> bool:
        return self.status is Status.STARTED and self.ticket is not None

    @property
    def seen_alive_at(self) -> datetime:
        """The latest time at which the operation is known to be alive, from its records alone."""
        return max(self.updated_at, self.waits_until or self.updated_at)


@dataclass(frozen=True, slots=True)
class TenantRecords:
    """All records of one tenant except its history."""

    metadata: Metadata | None
    audits: Sequence[Audit]
    lock: Lock | None

    def is_locked_by(self, run: Run) -> bool:
        return self.lock is not None and self.lock.run.execution == run.execution
