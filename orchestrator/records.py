"""What Berth remembers. Plain, frozen values; how they are stored is the adapters' business."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

from orchestrator.tenants import TenantId


class Operation(StrEnum):
    CREATE = "CREATE"
    UPDATE = "UPDATE"
    DELETE = "DELETE"


class Status(StrEnum):
    STARTED = "Started"
    SUCCESS = "Success"
    FAILURE = "Failure"


@dataclass(frozen=True, slots=True)
class RootCause:
    """Why an operation failed: the first thing that broke, not what broke after it."""

    resource: str
    resource_type: str
    reason: str

    def __str__(self) -> str:
        return f"{self.resource} ({self.resource_type}): {self.reason}"


@dataclass(frozen=True, slots=True)
class Queue:
    arn: str
    url: str


@dataclass(frozen=True, slots=True)
class Metadata:
    """The tenant's queue. It is served once an operation has published a version."""

    tenant: TenantId
    queue: Queue | None
    stack_id: str | None
    version: str | None
    created_at: datetime | None
    updated_at: datetime | None

    @property
    def published(self) -> bool:
        return self.version is not None and self.queue is not None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try at one operation. Its name is deterministic, so that starting it twice starts it once."""

    tenant: TenantId
    operation: Operation
    version: str
    number: int

    @property
    def name(self) -> str:
        return f"{self.operation.lower()}-{self.tenant.slug}-{self.version}-{self.number}"

    @property
    def client_token(self) -> str:
        """The same, in the narrower alphabet of CloudFormation's client request tokens."""
        return self.name.replace(".", "-")


@dataclass(frozen=True, slots=True)
class Run:
    """An attempt that is being executed. The execution is its fencing token."""

    attempt: Attempt
    execution: str
    started_at: datetime

    @property
    def tenant(self) -> TenantId:
        return self.attempt.tenant


@dataclass(frozen=True, slots=True)
class Lock:
    """The one run that owns the tenant now."""

    run: Run
    task_token: str | None


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


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One thing that happened. Appended, never changed."""

    tenant: TenantId
    at: datetime
    operation: Operation
    version: str
    attempt: int
    status: Status
    execution: str
    root_cause: RootCause | None = None


@dataclass(frozen=True, slots=True)
class Release:
    """A published tenant template. Immutable: a changed template needs a new version."""

    version: str
    template_url: str
    digest: str
    published_at: datetime


def timestamp(moment: datetime) -> str:
    """ISO 8601 in UTC with milliseconds: one width, so that text order is time order."""
    return moment.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)
