"""Adopts the tenants of the system before Berth: lists their rows in the index, and records their stacks.

`berth adopt` runs this with the operator's credentials. It changes only rows. The rules about stacks are in
:mod:`orchestrator.tenants.own_stack`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import ACCESS_DENIED, throttling
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.dynamodb.values import s, text
from orchestrator.common.errors import InvalidTenantId, QueueOutOfReach, Throttled, UnreadableRows
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.times import Clock
from orchestrator.common.writes import Check, Delete, Equals, Missing, RowAbsent, StoredAs, Update, all_of
from orchestrator.releases.template_contract import INBOUND_QUEUE
from orchestrator.tenants.changes import adoption
from orchestrator.tenants.deadlines import LEGACY_MAX_RUN_TIME
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.names import Names
from orchestrator.tenants.operation_rows import empty_metadata, listing
from orchestrator.tenants.own_stack import has_unknown_stack, why_not_adopted_with
from orchestrator.tenants.records import Audit, Metadata, Operation, RootCause, Status, TenantState
from orchestrator.tenants.state import state_of
from orchestrator.tenants.writes import Announce, Append, AuditKey, LockKey, MetadataKey, Transition, Write

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.tenants.ports import Queues
    from orchestrator.tenants.records import Lock, Queue, Request
    from orchestrator.tenants.stack_ports import Stack, Stacks

ADOPTED = "adopted"
"""The value of ``revived_by`` in the audit of a delete that an adoption found to be superseded."""
_READ_UNITS_PER_SECOND = 1_000.0
"""The speed of the scan: a third of the capacity of one partition, which has to serve other reads as well."""
_MAX_AUDITS = 90
"""A transaction has at most 100 writes. Audits beyond this number stay as they are, and can still be read."""
_MAX_VERSION_BYTES = 100
_SCAN = "begins_with(pk, :tenant) AND (sk = :metadata OR (begins_with(sk, :audit) AND attribute_not_exists(Attempt)))"
_COMPARED = "ListingKey Version StackId InboundQueueUrl UpdatedAt UpdateAt WithdrawnBy AskedFor Labels PinnedVersion"
"""Every write of a metadata row changes at least one of these attributes."""
_CHANGED = "the tenant has changed meanwhile"
_LOST = "The system before Berth did not record how the operation ended."
_NO_STACK = (
    "No stack has its queue, so it is served but cannot be upgraded. Receive the messages that are left in the queue, "
    "and delete the queue by hand. Then delete the tenant, and create it again."
)


@dataclass(frozen=True, slots=True)
class Seen:
    """A tenant's rows as they were read."""

    tenant: TenantId
    metadata: Metadata | None
    audits: Mapping[AuditKey, Audit]
    """Old keys have no version, even if the audit has one."""
    earlier: frozenset[AuditKey]
    """The keys of the audits that the earlier system has written."""
    lock: Lock | None
    listed: bool
    stored: Mapping[str, object] | None
    """The metadata as the table stores it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A tenant that was found, and its records after the adoption. Without ``seen`` it is not adopted."""

    tenant_id: str
    detail: str
    seen: Seen | None = None
    metadata: Metadata | None = None
    audits: Mapping[AuditKey, Audit] = field(default_factory=dict)
    has_stack: bool = True
    """False if no stack has the queue, so the tenant stays a finding."""


def needs_adoption(seen: Seen, names: Names) -> bool:
    """True if the index lacks the tenant, its stack is unknown, or the earlier system left an operation unfinished."""
    if seen.metadata is not None and seen.metadata.version is None and not seen.earlier:
        return False  # A stack of Berth's has recorded the queue, and its create has not published it.
    unfinished = any(seen.audits[key].status is Status.STARTED for key in seen.earlier)
    return unfinished or not seen.listed or has_unknown_stack(seen.metadata, names)


def why_not_now(seen: Seen, now: datetime) -> str | None:
    if seen.metadata and len((seen.metadata.version or "").encode()) > _MAX_VERSION_BYTES:
        return f"Its version has more than {_MAX_VERSION_BYTES} bytes. Correct its rows in the table, or delete them."
    if seen.metadata and (queue := seen.metadata.queue) and queue.name != queue.arn.rpartition(":")[2]:
        return "Its row has the ARN of one queue and the URL of another. Correct the row in the table."
    if seen.lock is not None:
        return f"Its {seen.lock.run.attempt.operation} is running. Adopt it when that has ended."
    for audit in seen.audits.values():
        if audit.status is Status.STARTED and now - audit.updated_at < LEGACY_MAX_RUN_TIME:
            return (
                f"The system before Berth began {audit.operation} less than an hour ago: {audit.execution}. Switch "
                "that system off, and wait until its operations have ended."
            )
    return None


def ended(audit: Audit, *, served: bool) -> Audit:
    """The audit of the earlier system after the adoption. A tenant in service was created, and not deleted."""
    if audit.operation is Operation.DELETE and served:
        audit = replace(audit, revived_by=audit.revived_by or ADOPTED)
    if audit.status is not Status.STARTED:
        return audit
    if audit.operation is Operation.CREATE and served:
        return replace(audit, status=Status.SUCCESS)
    cause = RootCause("Execution", "AWS::StepFunctions::Execution", _LOST)
    return replace(audit, status=Status.FAILURE, root_cause=cause)


def closed(seen: Seen, audits: Mapping[AuditKey, Audit]) -> list[Audit]:
    return [audit for key, audit in audits.items() if audit.status is not seen.audits[key].status]


def transition(seen: Seen, plan: Plan, request: Request, at: datetime) -> Transition:
    """List the tenant, and number and close the audits of the earlier system, if no row has changed meanwhile."""
    metadata, audits = plan.metadata or empty_metadata(seen.tenant), [*plan.audits.values()]
    before, state = seen.metadata or empty_metadata(seen.tenant), state_of(plan.metadata, audits)
    deleted = state is TenantState.DELETED
    change = adoption(before, metadata, state=state, closed=closed(seen, plan.audits), request=request, at=at)
    key, unchanged = MetadataKey(seen.tenant), RowAbsent() if seen.stored is None else StoredAs(seen.stored)
    writes: list[Write] = [Check(LockKey(seen.tenant), RowAbsent()), Append(change)]
    writes.append(Announce(Relisting(seen.tenant, at, deleted=deleted)))
    if not deleted:
        sets, clears = listing(metadata, audits)
        sets |= _given(updated_at=metadata.updated_at or at, stack_id=metadata.stack_id, queue=metadata.queue)
        clears += ["former_updated_at", *([] if metadata.outbound_queue else ["outbound_queue"])]
        writes.append(Update(key, sets, clears=clears, condition=unchanged))
    elif seen.stored is not None and not seen.listed:
        writes.append(Delete(key, unchanged))  # The audit of its delete lists the tenant.
    changed, numbered = list[Write](), list[Write]()
    for each, old in seen.audits.items():
        new, is_delete = plan.audits[each], old.operation is Operation.DELETE
        same = all_of(Equals("status", old.status), Equals("execution", old.execution))
        if each in seen.earlier:
            sets = _given(attempt=1, status=new.status, root_cause=new.root_cause, revived_by=new.revived_by)
            sets |= {"listed": state} if is_delete and deleted else {}
            update = Update(each, sets, condition=all_of(Missing("attempt"), same))
            (changed if is_delete or old != new else numbered).append(update)
        elif is_delete and not deleted and old.status is Status.SUCCESS:
            changed.append(Update(each, clears=("listed",), condition=same))
    return [*writes, *[*changed, *numbered][:_MAX_AUDITS]]


def _given(**fields: object) -> dict[str, object]:
    return {name: value for name, value in fields.items() if value is not None}


@dataclass
class Migration:
    client: DynamoDBClient
    table: str
    stacks: Stacks
    stack_with: Callable[[Queue], Stack | None]
    """The stack that has the queue among its resources, as CloudFormation says."""
    queues: Queues
    clock: Clock
    sleep: Callable[[float], None]
    scanned: int = 0
    owners: dict[str | None, str] = field(default_factory=dict)
    """The tenant of each recorded stack, by stack id."""
    served: dict[str | None, str] = field(default_factory=dict)
    """The tenant of each inbound queue, by ARN."""

    def find(self, show: Callable[[str], None]) -> Iterator[Plan]:
        """All tenants that need an adoption. ``show`` shows the progress."""
        found = self.candidates(show)
        for number, tenant in enumerate(found):
            if number % 100 == 99:
                show(f"Checked {number + 1} of {len(found)} tenants")
            if not tenant.startswith(WARM_PREFIX) and (plan := self._plan(tenant)):
                yield plan

    def candidates(self, show: Callable[[str], None]) -> Collection[str]:
        """Scan the table: the tenants whose rows may need an adoption. Remembers the owners of stacks and queues."""
        found: dict[str, None] = {}
        values = {":tenant": s(keys.TENANT_PREFIX), ":metadata": s(keys.METADATA), ":audit": s(keys.AUDIT_PREFIX)}
        scan: dict[str, Any] = {"TableName": self.table, "FilterExpression": _SCAN, "ExpressionAttributeValues": values}
        scan["ProjectionExpression"] = "pk, sk, ListingKey, Version, StackId, InboundQueueArn"
        while True:
            with throttling():
                page = self.client.scan(**scan, ReturnConsumedCapacity="TOTAL")
            for row in page["Items"]:
                tenant = row["pk"]["S"].removeprefix(keys.TENANT_PREFIX)
                self.note(tenant, text(row, "StackId"), text(row, "InboundQueueArn"), listed="ListingKey" in row)
                if "ListingKey" not in row or ("Version" in row and "StackId" not in row):
                    found[tenant] = None
            self.scanned += page["ScannedCount"]
            if self.scanned >= 10_000:
                show(f"Read {self.scanned // 10_000 * 10_000} rows")
            if "LastEvaluatedKey" not in page:
                return found
            scan["ExclusiveStartKey"] = page["LastEvaluatedKey"]
            self.sleep(page["ConsumedCapacity"]["CapacityUnits"] / _READ_UNITS_PER_SECOND)

    def note(self, tenant: str, stack_id: str | None, queue_arn: str | None, *, listed: bool) -> None:
        """Remember the tenant of a stack and of a queue. A tenant in the index has them, whatever other rows claim."""
        for known, name in ((self.owners, stack_id), (self.served, queue_arn)):
            known[name] = tenant if listed else known.get(name, tenant)

    def _plan(self, tenant: str) -> Plan | None:
        try:
            seen = self.read(TenantId.parse(tenant))
            if not needs_adoption(seen, self.stacks.names):
                # Another adoption may have recorded its stack meanwhile.
                self.owners.setdefault(seen.metadata.stack_id if seen.metadata else None, tenant)
                return None
            reason = why_not_now(seen, self.clock.now())
            return Plan(tenant, reason) if reason else self._planned(seen)
        except (InvalidTenantId, UnreadableRows) as unreadable:
            return Plan(tenant, f"{unreadable}. Correct the tenant's rows in the table, or delete them.")
        except Throttled as throttled:
            return Plan(tenant, f"AWS throttled the requests about it: {throttled}. Repeat the adoption.")

    def read(self, tenant: TenantId) -> Seen:
        found = {row["sk"]["S"]: row for row in Reads(self.client, self.table).partition(keys.tenant_pk(tenant))}
        metadata, lock = found.get(keys.METADATA), found.get(keys.LOCK)
        stored = [row for name, row in found.items() if name.startswith(keys.AUDIT_PREFIX)]
        audits = [rows.readable(rows.audit_from, row) for row in stored]
        named = [AuditKey(tenant, *keys.operation_of(row["sk"]["S"])) for row in stored]
        if metadata is not None:
            listed = "ListingKey" in metadata or "AskedFor" in metadata  # A requested create lists the tenant.
        else:
            listed = not stored or any(
                text(row, "ListingKey") == keys.listed_tenants(TenantState.DELETED) for row in stored
            )
        return Seen(
            tenant,
            rows.readable(rows.metadata_from, metadata) if metadata else None,
            dict(zip(named, audits, strict=True)),
            frozenset(name for name, row in zip(named, stored, strict=True) if "Attempt" not in row),
            rows.readable(rows.lock_from, lock) if lock else None,
            listed,
            {name: metadata.get(name) for name in _COMPARED.split()} if metadata else None,
        )

    def _planned(self, seen: Seen) -> Plan:
        tenant, metadata, names = seen.tenant.value, seen.metadata, self.stacks.names
        queue = metadata.queue if metadata and (not seen.listed or has_unknown_stack(metadata, names)) else None
        stack = self.stack_with(queue) if queue else None
        after, details, has_stack = metadata, list[str](), True
        if metadata and queue and stack:
            queues = self.stacks.queues(stack.stack_id)
            owner = self.owners.get(stack.stack_id, tenant)
            if reason := why_not_adopted_with(stack, queues, metadata, names, owner, self.served, self._dead_letters):
                return Plan(tenant, reason)
            name, own = next(each for each in queues.items() if each[1].arn == queue.arn)
            # Rows may have a URL of an older SDK.
            after = replace(metadata, stack_id=stack.stack_id, queue=own)
            details.append(f"stack {stack.stack_id}")
            if name != INBOUND_QUEUE:
                details.append(f"its queue is {name} in the template, so an upgrade would replace it")
        elif (
            metadata and (other := metadata.stack_id) and not seen.listed and not names.is_stack_of(seen.tenant, other)
        ):
            # A delete of the tenant would delete that stack.
            return Plan(tenant, f"Its row names stack {other}, which does not have its queue. Remove StackId.")
        elif queue:
            details, has_stack = [_NO_STACK], False
        served = metadata is not None and metadata.published
        audits = {key: ended(each, served=served) if key in seen.earlier else each for key, each in seen.audits.items()}
        state = state_of(after, [*audits.values()])
        if stack and state is TenantState.DELETED:
            reason = f"The system before Berth recorded that it was deleted, but stack {stack.stack_id} has its queue."
            return Plan(tenant, f"{reason} Delete the stack, or if the tenant is in use, the row AUDIT#DELETE.")
        if stack:
            self.owners[stack.stack_id] = tenant
        details.insert(0, f"{state} at version {after.version}" if after and after.version else state.value)
        details += ["its next upgrade removes its outbound queue"] if after and after.outbound_queue else []
        details += [f"{each.operation} that never ended becomes {each.status}" for each in closed(seen, audits)]
        changes = stack is not None or not seen.listed or bool(closed(seen, audits))
        return Plan(tenant, "; ".join(details), seen if changes else None, after, audits, has_stack)

    def _dead_letters(self, queue: Queue) -> str | None:
        """The name of the queue's dead-letter queue, which may have any logical id in an earlier system's template."""
        with suppress(QueueOutOfReach):
            return (self.queues.dead_letter_queue(queue.url) or "").rpartition("/")[2] or None
        return None

    def adopt(self, plan: Plan, request: Request) -> str | None:
        """Why the tenant was not adopted; ``None`` if it was. Rows and stack may have changed since the plan."""
        now = self._plan(plan.tenant_id)
        if now is None or now.seen is None or now != plan:
            return now.detail if now and now.seen is None else _CHANGED
        try:
            return None if self.apply(transition(now.seen, now, request, self.clock.now())) else _CHANGED
        except ClientError as error:
            if error.response.get("Error", {}).get("Code") in ACCESS_DENIED:
                raise  # It is the same for all tenants.
            return str(error)  # Values of the earlier system may be too long for the index.
        except Throttled as error:
            return str(error)

    def apply(self, writes: Transition) -> bool:
        return DynamoTable(self.client, self.table).apply(writes)
