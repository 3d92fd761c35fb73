"""What the use cases need from the outside. ``adapters/`` has it for AWS, ``tests/fakes.py`` in memory."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from orchestrator.records import Audit, HistoryEntry, Lock, Metadata, Queue, Release, RootCause, Run, Status
from orchestrator.tenants import TenantId


class Clock(Protocol):
    def now(self) -> datetime: ...


class Executions(Protocol):
    """The machines' executions."""

    def start(self, machine_input: dict[str, object], name: str) -> str | None:
        """Start the execution of that name, and return it, also when it is running already.

        ``None`` when an execution of that name has ended: names are used once.
        """

    def is_running(self, execution: str) -> bool: ...

    def wake(self, task_token: str) -> bool:
        """Let a waiting execution go on. ``False`` when it is no longer waiting."""


class TenantReader(Protocol):
    def metadata(self, tenant: TenantId) -> Metadata | None: ...

    def audits(self, tenant: TenantId) -> Sequence[Audit]: ...

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry]: ...

    def lock(self, tenant: TenantId) -> Lock | None: ...


class OperationLedger(Protocol):
    """Writes of one operation. Each is one transaction, checks the fencing token, and may be repeated."""

    def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None) -> Lock | None:
        """Take the tenant's lock and record Started. ``None`` when taken, else the lock that is in the way.

        ``instead_of`` names a lock whose execution is dead: it is taken over, and its operation closed.
        """

    def remember_token(self, run: Run, task_token: str) -> None: ...

    def publish(self, run: Run, *, stack_id: str, queue: Queue, version: str, at: datetime) -> None:
        """Publish the metadata, record Success and free the lock."""

    def fail(self, run: Run, cause: RootCause, at: datetime) -> bool:
        """Record Failure and free the lock. ``False`` when a later attempt has already taken its place."""


class QueueMetadata(Protocol):
    """The part of the metadata that the tenant's stack itself keeps true."""

    def record_queue(self, tenant: TenantId, *, stack_id: str, queue: Queue, at: datetime) -> None: ...

    def forget_queue(self, tenant: TenantId, *, stack_id: str) -> bool: ...


class FleetReader(Protocol):
    def published_tenants(self) -> Iterable[Metadata]: ...

    def operations(self, status: Status) -> Iterable[Audit]: ...


class TableReader(TenantReader, FleetReader, Protocol):
    """One tenant, and all of them."""


class Releases(Protocol):
    def release(self, version: str) -> Release | None: ...

    def record_release(self, release: Release) -> Release:
        """Record it unless the version is recorded; return what is recorded then."""


class TemplateStore(Protocol):
    def read(self, bucket: str, key: str) -> bytes: ...

    def publish(self, version: str, digest: str, template: bytes) -> str:
        """Store the template under its version and digest, and return its URL."""


@dataclass(frozen=True, slots=True)
class Stack:
    """A tenant's stack as CloudFormation describes it."""

    stack_id: str
    status: str
    status_reason: str
    tenant_id: str | None
    queue: Queue | None
    version: str | None


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


class Stacks(Protocol):
    """CloudFormation. Every method may raise :class:`orchestrator.errors.Throttled`."""

    def find(self, name_or_id: str) -> Stack | None: ...

    def create(self, tenant: TenantId, *, template_url: str, client_token: str) -> str | None:
        """Create the tenant's stack and return its id. ``None`` when one of that name has just appeared."""

    def delete(self, stack_id: str, *, client_token: str) -> None: ...

    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        """Newest first."""


class Queues(Protocol):
    def answers(self, queue: Queue) -> bool:
        """Whether the queue can be used now."""
