"""The table: tenants' metadata, audit, history and locks, and the releases."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, throttling
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.rows import Item, s, time
from orchestrator.adapters.dynamodb.writes import NOT_GONE, NOT_IN_THE_WAY, NOT_OVERTAKEN, Writes
from orchestrator.common.errors import LostOwnership, QueueOwnedElsewhere, StackHasGone, UnreadableRows, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants.changes import correction, description
from orchestrator.tenants.fleet import LISTED_STATES, root_cause_of, state_of
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    HistoryEntry,
    Lock,
    Metadata,
    Operation,
    Queue,
    RecordedChange,
    Request,
    RootCause,
    Run,
    Status,
    TenantState,
    UnreadableEntry,
)
from orchestrator.tenants.stack_resources import Requester

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.tenants.ports import ListedTenant, Pin, Publication, Seen, Stack

_ROUNDS = 10

_ABANDONED = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")


class DynamoTable:
    """Implements the reading and writing ports of :mod:`orchestrator.tenants.ports` on one table.

    Reads are consistent: a delete must be seen from its first moment, and a decision made on stale rows
    would start what has just ended. Only the fleet is read from the index, which lags a little.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._writes = Writes(table)

    # Reading one tenant

    def metadata(self, tenant: TenantId) -> Metadata | None:
        item = self._reads.get(keys.metadata_key(tenant))
        return rows.readable(rows.metadata_from, item) if item else None

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        items = self._reads.partition(keys.tenant_pk(tenant), keys.AUDIT_PREFIX)
        return [rows.readable(rows.audit_from, item) for item in items]

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry | RecordedChange | UnreadableEntry]:
        return [rows.history_from(item) for item in self._reads.partition(keys.history_pk(tenant))]

    def lock(self, tenant: TenantId) -> Lock | None:
        item = self._reads.get(keys.lock_key(tenant))
        return rows.readable(rows.lock_from, item) if item else None

    # Reading the fleet

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        query: dict[str, Any] = {
            "IndexName": keys.LISTING_INDEX,
            "KeyConditionExpression": "ListingKey = :key",
            "ExpressionAttributeValues": {":key": s(keys.listed_tenants(state))},
        }
        if version is not None:
            query["KeyConditionExpression"] += " AND begins_with(ListingSort, :at)"
            query["ExpressionAttributeValues"][":at"] = s(keys.listed_at(version))
        if after is not None:
            query["ExclusiveStartKey"] = keys.listing_position(state, after)
        found: list[ListedTenant] = []
        while len(found) < limit:
            with throttling():
                page = self._client.query(TableName=self._table, Limit=limit - len(found), **query)
            found += filter(None, (rows.listed_from(item, state) for item in page["Items"]))
            if "LastEvaluatedKey" not in page:
                break
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return found

    def versions_in_use(self) -> Mapping[str, Mapping[TenantState, int]]:
        counted: dict[str, dict[TenantState, int]] = {}
        for state in LISTED_STATES:
            for item in self._reads.listed(keys.listed_tenants(state), ProjectionExpression="ListingSort"):
                states = counted.setdefault(keys.version_at(item["ListingSort"]["S"]), {})
                states[state] = states.get(state, 0) + 1
        return counted

    def count_tenants(self) -> int:
        return sum(self._reads.count_listed(keys.listed_tenants(state)) for state in LISTED_STATES)

    def unfinished_operations(self) -> Iterable[Audit]:
        for item in self._reads.listed(keys.UNFINISHED_OPERATIONS):
            # One row that nobody can read must not keep all other operations from being settled.
            with suppress(UnreadableRows):
                yield rows.readable(rows.audit_from, item)

    # Writing one operation

    def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None, restore: bool = False) -> Lock | None:
        if instead_of is not None and self._take_over(run, instead_of.run, at, restore=restore):
            return None
        try:
            self._transact(run, self._beginning(run, at, "attribute_not_exists(pk)"))
        except LostOwnership:
            lock = self.lock(run.tenant)
            if lock is None:
                raise  # Nobody is in the way: this attempt has ended, or a later one has begun.
            # Our own: an earlier try went through and its answer was lost.
            return None if lock.run.execution == run.execution else lock
        return None

    def remember_token(self, run: Run, task_token: str) -> None:
        self._keep_with_lock(run, "TaskToken", task_token)

    def remember_changes(self, run: Run, change_set: str) -> None:
        self._keep_with_lock(run, "ChangeSet", change_set)

    def _keep_with_lock(self, run: Run, name: str, value: str) -> None:
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=keys.lock_key(run.tenant),
                    UpdateExpression=f"SET {name} = :value",
                    ConditionExpression="Execution = :me",
                    ExpressionAttributeValues={":value": s(value), ":me": s(run.execution)},
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                raise _lost(run) from error
            raise

    def revive(self, run: Run) -> None:
        self._transact(run, [self._writes.check_lock(run), self._writes.revive(run)])

    def touch(self, run: Run) -> None:
        self._transact(run, [self._writes.check_lock(run), self._writes.metadata_of_touched(run)])

    def publish(self, run: Run, publication: Publication, *, at: datetime) -> None:
        try:
            self._succeed(run, self._writes.metadata_of_published(run, publication, at), at)
        except LostOwnership:
            metadata = self.metadata(run.tenant)
            if metadata is not None and metadata.gone_stack_id == publication.stack_id:
                raise _gone(run.tenant, publication.stack_id) from None
            raise

    def remove(self, run: Run, *, at: datetime) -> None:
        metadata = self.metadata(run.tenant)
        keep = metadata is not None and metadata.is_still_to_come(run)
        self._succeed(run, self._writes.metadata_of_deleted(metadata, keep=keep) if metadata else None, at)

    def _succeed(self, run: Run, metadata: Item | None, at: datetime) -> None:
        writes = [
            *([metadata] if metadata else []),
            self._writes.audit(run, Status.SUCCESS, at),
            self._writes.history(run, Status.SUCCESS, at),
            self._writes.free_lock(run),
        ]
        try:
            self._transact(run, writes)
        except LostOwnership:
            if self._recorded(run, Status.SUCCESS):
                return  # An earlier try went through and its answer was lost.
            raise

    def fail(self, run: Run, cause: RootCause, at: datetime, *, restore: bool = False) -> bool:
        lock = self.lock(run.tenant)
        if lock is not None and lock.run.execution == run.execution:
            writes = [
                self._writes.audit(run, Status.FAILURE, at, cause),
                self._writes.free_lock(run),
                *self._metadata_after_failure(run, cause, at, restore=restore),
            ]
        else:
            # It never began, or is repeating itself: whoever came later, or is at it, is not overwritten.
            writes = [self._writes.audit(run, Status.FAILURE, at, cause, condition=NOT_IN_THE_WAY)]
            if lock is None:  # Else the holder says what state the tenant is in, now and when it ends.
                writes.append(self._writes.check_no_lock(run.tenant))
                writes += self._metadata_after_failure(run, cause, at, restore=False)
        writes.append(self._writes.history(run, Status.FAILURE, at, cause))
        try:
            self._transact(run, writes)
        except LostOwnership:
            return self._recorded(run, Status.FAILURE)
        return True

    def _metadata_after_failure(self, run: Run, cause: RootCause, at: datetime, *, restore: bool) -> list[Item]:
        """The state that the tenant is in once this failure is recorded. Nobody else holds the lock."""
        attempt = run.attempt
        failed = Audit(
            run.tenant, attempt.operation, attempt.version, Status.FAILURE, run.execution, at, attempt.number, cause
        )
        others = [audit for audit in self.audits(run.tenant) if audit.execution != run.execution]
        metadata = self.metadata(run.tenant)
        if metadata and restore:
            metadata = replace(metadata, withdrawn_by=None)
        audits = [*others, failed]
        state = state_of(metadata, audits)
        if state is TenantState.DELETED:
            # The audit of its delete lists it.
            keep = metadata is not None and metadata.is_still_to_come(run)
            return [self._writes.metadata_of_deleted(metadata, keep=keep)] if metadata else []
        version, cause_of_state = metadata.version if metadata else None, root_cause_of(metadata, audits)
        return [self._writes.metadata_of_failed(run.tenant, state, version, cause_of_state, restore=restore)]

    # What operators say about a tenant

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
        for _ in range(_ROUNDS):
            row = self._reads.get(keys.metadata_key(tenant))
            metadata = rows.metadata_from(row) if row else None
            if asked_for is None and (metadata is None or metadata.withdrawn_by):
                return False
            if only_if is not None and not only_if.holds_for(metadata):
                return False
            change = description(tenant, metadata, labels=labels, pin=pin, request=request, at=at)
            changes = change.before != change.after
            # Labels that are none for the first time are recorded: a create that waits does not set others then.
            says_labels = labels is None or (row is not None and "Labels" in row)
            if asked_for is None and not changes and says_labels:
                return True
            described = self._writes.metadata_of_described(
                tenant, row, labels=labels, pin=pin, at=at, asked_for=asked_for, only_if=only_if
            )
            if self._went_through([described, *([self._writes.change(change)] if changes else [])]):
                return True
        raise Unsettled(f"Tenant {tenant}: others changed what is said about it at the same moment. Ask again.")

    # What the tenant's stack keeps true

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
        values = {":arn": s(queue.arn), ":url": s(queue.url), ":stack": s(stack_id), ":at": time(at)}
        # A published queue is replaced only by its own stack, or by the first to say its stack id.
        condition = (
            f"({NOT_GONE}) AND (attribute_not_exists(StackId) OR StackId = :stack OR attribute_not_exists(Version))"
        )
        if seen is not None and seen.queue is not None:
            condition += " AND InboundQueueUrl = :seen"
            values[":seen"] = s(seen.queue.url)
        expression = (
            "SET InboundQueueArn = :arn, InboundQueueUrl = :url, StackId = :stack, "
            "CreatedAt = if_not_exists(CreatedAt, :at), UpdatedAt = :at REMOVE Deployed"
        )
        if change is None:
            recorded = self._update_metadata(tenant, expression, values, condition=condition)
        else:
            update = self._writes.update(keys.metadata_key(tenant), expression, values=values, condition=condition)
            recorded = self._went_through([update, self._writes.change(change)])
        if not recorded:
            metadata = self.metadata(tenant)
            if metadata is not None and metadata.gone_stack_id == stack_id:
                raise _gone(tenant, stack_id)
            if metadata is None or metadata.version is None or metadata.stack_id in (None, stack_id):
                return False
            raise QueueOwnedElsewhere(
                f"Tenant {tenant}: its queue belongs to another stack, so {stack_id} cannot provide it."
            )
        return True

    def mark_gone(self, tenant: TenantId, *, stack_id: str) -> None:
        self._update_metadata(
            tenant, "SET GoneStackId = :stack", {":stack": s(stack_id)}, condition="attribute_exists(pk)"
        )

    def forget_queue(self, tenant: TenantId, *, stack_id: str, vanished: bool) -> bool:
        expression, values, names = self._writes.forgotten(tenant, stack_id=stack_id, vanished=vanished)
        return self._update_metadata(tenant, expression, values, condition="StackId = :stack", names=names)

    # What a reconciliation puts right

    def correct(self, seen: Metadata, stack: Stack, *, request: Request, at: datetime) -> bool:
        row = self._reads.get(keys.metadata_key(seen.tenant))
        if row is None or rows.metadata_from(row) != seen:
            return False
        corrected = replace(
            seen,
            queue=stack.queue or seen.queue,
            stack_id=stack.stack_id,
            version=stack.version or seen.version,
            updated_at=at,
        )
        # A tenant that no operation has listed yet is listed from now on.
        state = state_of(corrected, self.audits(seen.tenant))
        writes = [
            self._writes.check_no_lock(seen.tenant),
            self._writes.metadata_of_corrected(row, corrected, state),
            self._writes.change(correction(seen, corrected, request=request, at=at)),
        ]
        return self._went_through(writes)

    # Releases

    def release(self, version: str) -> Release | None:
        item = self._reads.get(keys.release_key(version))
        return rows.release_from(item) if item else None

    def releases(self) -> Sequence[Release]:
        return [rows.release_from(item) for item in self._reads.partition(keys.RELEASES)]

    def record_release(self, release: Release) -> Release:
        try:
            with throttling():
                self._client.put_item(
                    TableName=self._table,
                    Item=keys.release_key(release.version) | rows.release_fields(release),
                    ConditionExpression="attribute_not_exists(pk)",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
        recorded = self.release(release.version)
        return recorded or release

    # How it is written

    def _beginning(
        self, run: Run, at: datetime, lock_condition: str, values: Item | None = None, *, restore: bool = False
    ) -> list[Item]:
        # Until the lock is ours another operation may publish another version. Then the list has the tenant at the
        # old one until this operation ends, and writes it again.
        metadata = self.metadata(run.tenant)
        return [
            self._writes.take_lock(run, lock_condition, values),
            self._writes.audit(run, Status.STARTED, at, condition=NOT_OVERTAKEN),
            self._writes.history(run, Status.STARTED, at),
            self._writes.metadata_of_begun(run, metadata, at, owner=self._new_owner(run, metadata), restore=restore),
        ]

    def _new_owner(self, run: Run, before: Metadata | None) -> Requester | None:
        """Whose tenant it is once the run has begun; ``None`` if that does not change.

        What a delete has left changes hands when the create ends: one that has begun may be refused all the same.
        """
        served_or_withdrawn = before is not None and (before.published or before.withdrawn_by is not None)
        if run.attempt.operation is not Operation.CREATE or served_or_withdrawn:
            return None
        # Only here: getQueue, which begins nothing and must start fast, reads the table, too.
        from orchestrator.tenants.admission import owner_once_begun

        # The audits say whose it is only where the metadata does not.
        said = before is None or before.created_by is not None
        owner = owner_once_begun(run.request, before, () if said else self.audits(run.tenant))
        return owner if before is None or before.created_by != owner else None

    def _take_over(self, run: Run, dead: Run, at: datetime, *, restore: bool) -> bool:
        """Take a dead run's lock, and close what it left open. ``False`` when the lock is no longer its own."""
        writes = self._beginning(run, at, "Execution = :dead", {":dead": s(dead.execution)}, restore=restore)
        writes.append(self._writes.history(dead, Status.FAILURE, at, _ABANDONED))
        if keys.audit_key(dead.attempt) != keys.audit_key(run.attempt) and self._recorded(dead, Status.STARTED):
            writes.append(self._writes.audit(dead, Status.FAILURE, at, _ABANDONED, condition=NOT_OVERTAKEN))
        try:
            self._transact(run, writes)
        except LostOwnership:
            return False
        return True

    def _transact(self, run: Run, writes: list[Any]) -> None:
        if not self._went_through(writes):
            raise _lost(run)

    def _went_through(self, writes: list[Any]) -> bool:
        """``False`` when one of the conditions does not hold; nothing is written then."""
        try:
            with throttling():
                self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            if "ConditionalCheckFailed" in cancellation_codes(error):
                return False
            raise
        return True

    def _update_metadata(
        self,
        tenant: TenantId,
        expression: str,
        values: Item,
        *,
        condition: str | None,
        names: dict[str, str] | None = None,
    ) -> bool:
        """Update what is there. ``False`` when the condition does not hold."""
        # DynamoDB takes neither an empty map of names nor an empty condition.
        optional: Any = {"ExpressionAttributeNames": names} if names else {}
        if condition:
            optional["ConditionExpression"] = condition
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=keys.metadata_key(tenant),
                    UpdateExpression=expression,
                    ExpressionAttributeValues=values,
                    **optional,
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    def _recorded(self, run: Run, status: Status) -> bool:
        """Whether this very run has recorded this outcome before."""
        item = self._reads.get(keys.audit_key(run.attempt))
        if item is None:
            return False
        audit = rows.audit_from(item)
        return audit.execution == run.execution and audit.status is status


def _gone(tenant: TenantId, stack_id: str) -> StackHasGone:
    return StackHasGone(
        f"Tenant {tenant}: the stack {stack_id} was deleted meanwhile and has taken its queue back. "
        f"Have the tenant created again: berth create {tenant}"
    )


def _lost(run: Run) -> LostOwnership:
    return LostOwnership(f"Tenant {run.tenant}: {run.attempt.name} no longer owns the tenant.")
