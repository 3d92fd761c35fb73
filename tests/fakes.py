"""The ports of :mod:`orchestrator.ports`, in memory, and a few examples that tests share.

``InMemoryTable`` keeps the same contract as the DynamoDB adapter: ``tests/adapters/test_table.py`` runs against both.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from orchestrator.errors import LostOwnership, QueueOwnedElsewhere, Throttled
from orchestrator.ports import OperationLedger, ResourceEvent, Stack
from orchestrator.records import (
    Attempt,
    Audit,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    Queue,
    Release,
    RootCause,
    Run,
    Status,
    parse_timestamp,
    timestamp,
)
from orchestrator.tenants import TenantId

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)
VERSION = "0.1.0"
ACME = TenantId.parse("acme")
QUEUE = Queue("arn:aws:sqs:eu-west-1:000000000000:acme-inbound", "https://sqs.eu-west-1.amazonaws.com/0/acme-inbound")
OTHER_QUEUE = Queue("arn:aws:sqs:eu-west-1:000000000000:other", "https://sqs.eu-west-1.amazonaws.com/0/other")
QUEUE_TABOO = RootCause("InboundQueue", "AWS::SQS::Queue", "Access to the resource is denied.")


def an_attempt(
    number: int = 1, *, tenant: TenantId = ACME, operation: Operation = Operation.CREATE, version: str = VERSION
) -> Attempt:
    return Attempt(tenant, operation, version, number)


def a_run(
    number: int = 1,
    *,
    tenant: TenantId = ACME,
    operation: Operation = Operation.CREATE,
    version: str = VERSION,
    started_at: datetime = NOON,
) -> Run:
    attempt = an_attempt(number, tenant=tenant, operation=operation, version=version)
    return Run(attempt, execution_arn(attempt.name), started_at)


def an_audit(
    status: Status,
    operation: Operation = Operation.CREATE,
    *,
    tenant: TenantId = ACME,
    version: str | None = VERSION,
    attempt: int = 1,
    at: datetime = NOON,
    execution: str | None = None,
    root_cause: RootCause | None = None,
) -> Audit:
    name = execution or execution_arn(f"{operation.lower()}-{version}-{attempt}")
    return Audit(tenant, operation, version, status, name, at, attempt, root_cause)


def a_release(version: str = VERSION, *, digest: str = "d" * 64) -> Release:
    return Release(version, f"https://releases.s3.eu-west-1.amazonaws.com/{version}.json", digest, NOON)


def execution_arn(name: str) -> str:
    return f"arn:aws:states:eu-west-1:000000000000:execution:create-tenant:{name}"


def take(ledger: OperationLedger, run: Run, *, instead_of: Lock | None = None) -> Lock | None:
    """Begin at the moment in which the execution started."""
    return ledger.begin(run, at=run.started_at, instead_of=instead_of)


class FakeClock:
    def __init__(self, now: datetime = NOON) -> None:
        self._now = now

    def now(self) -> datetime:
        return self._now

    def advance(self, by: timedelta) -> None:
        self._now += by


class FakeExecutions:
    """Executions by name, as Step Functions starts them: a name is used once."""

    def __init__(self) -> None:
        self.inputs: dict[str, dict[str, object]] = {}
        """What every execution ever started was given."""
        self.running: set[str] = set()
        self.asked_about: list[str] = []
        self.waiting: set[str] = set()
        """Task tokens that are being waited on."""
        self.woken: list[str] = []

    def start(self, machine_input: dict[str, object], name: str) -> str | None:
        execution = execution_arn(name)
        if execution in self.inputs:
            return execution if execution in self.running else None
        self.inputs[execution] = machine_input
        self.running.add(execution)
        return execution

    def is_running(self, execution: str) -> bool:
        self.asked_about.append(execution)
        return execution in self.running

    def wake(self, task_token: str) -> bool:
        self.woken.append(task_token)
        was_waiting = task_token in self.waiting
        self.waiting.discard(task_token)
        return was_waiting

    def end(self, execution: str) -> None:
        """It succeeds, fails, times out or is aborted: from now on it does not run."""
        self.running.remove(execution)


AuditKey = tuple[Operation, str | None]


@dataclass
class _Tenant:
    """The rows under one tenant's partition key."""

    metadata: Metadata | None = None
    lock: Lock | None = None
    audits: dict[AuditKey, Audit] = field(default_factory=dict)
    unnumbered: set[AuditKey] = field(default_factory=set)
    """Audit rows from before attempts were counted."""
    history: dict[str, HistoryEntry] = field(default_factory=dict)


class InMemoryTable:
    """The table. Every write is all or nothing, as a transaction is."""

    def __init__(self) -> None:
        self._tenants: dict[TenantId, _Tenant] = {}
        self._releases: dict[str, Release] = {}

    # Reading

    def metadata(self, tenant: TenantId) -> Metadata | None:
        return self._of(tenant).metadata

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        audits = self._of(tenant).audits
        return [audits[key] for key in sorted(audits, key=lambda key: f"{key[0]}#{key[1] or ''}")]

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry]:
        history = self._of(tenant).history
        return [history[key] for key in sorted(history)]

    def lock(self, tenant: TenantId) -> Lock | None:
        return self._of(tenant).lock

    def published_tenants(self) -> Iterable[Metadata]:
        published = [t.metadata for t in self._tenants.values() if t.metadata and t.metadata.version]
        return sorted(published, key=lambda metadata: f"{metadata.version}#{metadata.tenant}")

    def operations(self, status: Status) -> Iterable[Audit]:
        audits = [audit for t in self._tenants.values() for audit in t.audits.values() if audit.status is status]
        return sorted(audits, key=lambda audit: f"{timestamp(audit.updated_at)}#{audit.tenant}")

    # Writing one operation

    def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None) -> Lock | None:
        rows = self._of(run.tenant)
        if rows.lock and rows.lock.run.execution == run.execution:
            return None
        dead = instead_of.run if instead_of else None
        if rows.lock and not (dead and rows.lock.run.execution == dead.execution):
            return rows.lock
        if not self._may_write(run):
            if rows.lock is None:
                raise LostOwnership(run.attempt.name)
            return rows.lock
        if dead and rows.lock:
            self._close_abandoned(dead, at)
        rows.lock = Lock(_stored_run(run), None)
        self._write(run, Status.STARTED, at)
        return None

    def remember_token(self, run: Run, task_token: str) -> None:
        rows = self._of(run.tenant)
        if rows.lock is None or rows.lock.run.execution != run.execution:
            raise LostOwnership(run.attempt.name)
        rows.lock = replace(rows.lock, task_token=task_token)

    def publish(self, run: Run, *, stack_id: str, queue: Queue, version: str, at: datetime) -> None:
        rows = self._of(run.tenant)
        if not self._owns(run):
            if self._recorded(run, Status.SUCCESS):
                return
            raise LostOwnership(run.attempt.name)
        created_at = rows.metadata.created_at if rows.metadata else None
        rows.metadata = Metadata(run.tenant, queue, stack_id, version, created_at or _stored(at), _stored(at))
        self._write(run, Status.SUCCESS, at)
        rows.lock = None

    def fail(self, run: Run, cause: RootCause, at: datetime) -> bool:
        if not self._owns(run) and not self._may_write(run):
            return self._recorded(run, Status.FAILURE)
        self._write(run, Status.FAILURE, at, cause)
        if self._owns(run):
            self._of(run.tenant).lock = None
        return True

    # What the tenant's stack keeps true

    def record_queue(self, tenant: TenantId, *, stack_id: str, queue: Queue, at: datetime) -> None:
        rows = self._of(tenant)
        old = rows.metadata or Metadata(tenant, None, None, None, None, None)
        if old.version is not None and old.stack_id not in (None, stack_id):
            raise QueueOwnedElsewhere(stack_id)
        created_at = old.created_at or _stored(at)
        rows.metadata = replace(old, queue=queue, stack_id=stack_id, created_at=created_at, updated_at=_stored(at))

    def forget_queue(self, tenant: TenantId, *, stack_id: str) -> bool:
        rows = self._of(tenant)
        if rows.metadata is None or rows.metadata.stack_id != stack_id:
            return False
        rows.metadata = None
        return True

    # Releases

    def release(self, version: str) -> Release | None:
        return self._releases.get(version)

    def record_release(self, release: Release) -> Release:
        return self._releases.setdefault(release.version, release)

    # Rows that today's code does not write

    def plant_metadata(self, metadata: Metadata) -> None:
        self._of(metadata.tenant).metadata = metadata

    def plant_audit(self, audit: Audit, *, numbered: bool = True) -> None:
        key = (audit.operation, None if audit.operation is Operation.DELETE else audit.version)
        self._of(audit.tenant).audits[key] = audit
        if not numbered:
            self._of(audit.tenant).unnumbered.add(key)

    # How it is kept

    def _of(self, tenant: TenantId) -> _Tenant:
        return self._tenants.setdefault(tenant, _Tenant())

    def _owns(self, run: Run) -> bool:
        lock = self._of(run.tenant).lock
        return lock is not None and lock.run.execution == run.execution

    def _may_write(self, run: Run) -> bool:
        rows, key = self._of(run.tenant), _audit_key(run.attempt)
        audit = rows.audits.get(key)
        if audit is None or key in rows.unnumbered or audit.attempt < run.attempt.number:
            return True
        return audit.execution == run.execution and audit.status is Status.STARTED

    def _recorded(self, run: Run, status: Status) -> bool:
        audit = self._of(run.tenant).audits.get(_audit_key(run.attempt))
        return audit is not None and audit.execution == run.execution and audit.status is status

    def _close_abandoned(self, run: Run, at: datetime) -> None:
        cause = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")
        if self._recorded(run, Status.STARTED):
            self._write_audit(run, Status.FAILURE, at, cause)
        self._write_history(run, Status.FAILURE, at, cause)

    def _write(self, run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> None:
        self._write_audit(run, status, at, cause)
        self._write_history(run, status, at, cause)

    def _write_audit(self, run: Run, status: Status, at: datetime, cause: RootCause | None) -> None:
        attempt, rows = run.attempt, self._of(run.tenant)
        rows.audits[_audit_key(attempt)] = Audit(
            run.tenant, attempt.operation, attempt.version, status, run.execution, _stored(at), attempt.number, cause
        )
        rows.unnumbered.discard(_audit_key(attempt))

    def _write_history(self, run: Run, status: Status, at: datetime, cause: RootCause | None) -> None:
        attempt = run.attempt
        self._of(run.tenant).history[f"{timestamp(at)}#{attempt.name}#{status}"] = HistoryEntry(
            run.tenant, _stored(at), attempt.operation, attempt.version, attempt.number, status, run.execution, cause
        )


def _audit_key(attempt: Attempt) -> AuditKey:
    return attempt.operation, None if attempt.operation is Operation.DELETE else attempt.version


def _stored(moment: datetime) -> datetime:
    return parse_timestamp(timestamp(moment))


def _stored_run(run: Run) -> Run:
    return replace(run, started_at=_stored(run.started_at))


@dataclass
class FakeStack:
    """One stack, living or deleted, and its events, newest first."""

    stack: Stack
    client_token: str
    template_url: str = ""
    events: list[ResourceEvent] = field(default_factory=list)


class FakeStacks:
    """CloudFormation. What was asked for is under way until :meth:`settle` is called."""

    def __init__(self) -> None:
        self.all: dict[str, FakeStack] = {}
        """By stack id, deleted ones included."""
        self.failures: deque[str] = deque()
        """Reasons for which the next creations fail and are rolled back."""
        self.throttled_calls = 0
        """How many of the next calls are refused."""
        self.calls: list[str] = []

    @property
    def living(self) -> list[Stack]:
        return [fake.stack for fake in self.all.values() if fake.stack.status != "DELETE_COMPLETE"]

    def find(self, name_or_id: str) -> Stack | None:
        self._called("find")
        if name_or_id in self.all:
            return self.all[name_or_id].stack
        return next((stack for stack in self.living if _name(stack.stack_id) == name_or_id), None)

    def create(self, tenant: TenantId, *, template_url: str, client_token: str) -> str | None:
        self._called("create")
        for stack in self.living:
            if _name(stack.stack_id) == tenant.stack_name:
                same_request = self.all[stack.stack_id].client_token == client_token
                return stack.stack_id if same_request else None
        stack_id = self.stack_id(tenant)
        self.plant(Stack(stack_id, "CREATE_IN_PROGRESS", "", tenant.value, None, None), client_token, template_url)
        return stack_id

    def delete(self, stack_id: str, *, client_token: str) -> None:  # noqa: ARG002 - the port's
        self._called("delete")
        if stack_id in self.all and self.all[stack_id].stack.status != "DELETE_COMPLETE":
            self.change(stack_id, "DELETE_IN_PROGRESS")

    def events(self, stack_id: str) -> Iterable[ResourceEvent]:
        self._called("events")
        return list(self.all[stack_id].events)

    # Arranging

    def stack_id(self, tenant: TenantId) -> str:
        """The id that the next stack of this tenant gets."""
        return f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{tenant.stack_name}/{len(self.all) + 1}"

    def plant(self, stack: Stack, client_token: str = "", template_url: str = "") -> Stack:
        self.all[stack.stack_id] = FakeStack(stack, client_token, template_url)
        self._tell(stack.stack_id, stack.status)
        return stack

    def change(self, stack_id: str, status: str, reason: str = "", **changes: object) -> None:
        fake = self.all[stack_id]
        fake.stack = replace(fake.stack, status=status, status_reason=reason, **changes)  # type: ignore[arg-type]
        self._tell(stack_id, status, reason)

    def settle(self, *, queue: Queue = QUEUE, version: str = VERSION) -> None:
        """Let everything that is under way come to its end."""
        for stack in self.living:
            if stack.status == "DELETE_IN_PROGRESS":
                self.change(stack.stack_id, "DELETE_COMPLETE")
            elif stack.status == "CREATE_IN_PROGRESS" and self.failures:
                reason = self.failures.popleft()
                failed = ResourceEvent(NOON, "InboundQueue", "AWS::SQS::Queue", "CREATE_FAILED", reason, False, False)
                self.all[stack.stack_id].events.insert(0, failed)
                self.change(stack.stack_id, "ROLLBACK_IN_PROGRESS", "Failed to create: [InboundQueue].")
                self.change(stack.stack_id, "ROLLBACK_COMPLETE")
            elif stack.status == "CREATE_IN_PROGRESS":
                self.change(stack.stack_id, "CREATE_COMPLETE", queue=queue, version=version)

    def _tell(self, stack_id: str, status: str, reason: str = "") -> None:
        event = ResourceEvent(NOON, _name(stack_id), "AWS::CloudFormation::Stack", status, reason, True, False)
        self.all[stack_id].events.insert(0, event)

    def _called(self, method: str) -> None:
        self.calls.append(method)
        if self.throttled_calls:
            self.throttled_calls -= 1
            raise Throttled(f"{method}: Rate exceeded")


def _name(stack_id: str) -> str:
    return stack_id.split("/")[1]


class FakeQueues:
    """Queues that answer at once, or only after they were asked some times."""

    def __init__(self, *, silent_for: int = 0) -> None:
        self.silent_for = silent_for
        self.asked: list[Queue] = []

    def answers(self, queue: Queue) -> bool:
        self.asked.append(queue)
        return len(self.asked) > self.silent_for


class FakeTemplates:
    def __init__(self, uploads: dict[tuple[str, str], bytes] | None = None) -> None:
        self.uploads = uploads or {}
        self.published: dict[tuple[str, str], bytes] = {}

    def read(self, bucket: str, key: str) -> bytes:
        return self.uploads[bucket, key]

    def publish(self, version: str, digest: str, template: bytes) -> str:
        self.published[version, digest] = template
        return f"https://s3.eu-west-1.amazonaws.com/releases/{version}/{digest}.json"
