"""The table: tenants' metadata, audit, history and locks, and the releases."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters import keys, rows
from orchestrator.adapters.aws import cancellation_codes, error_code, throttling
from orchestrator.adapters.rows import Item, n, s, time
from orchestrator.errors import LostOwnership, QueueOwnedElsewhere
from orchestrator.records import (
    Audit,
    HistoryEntry,
    Lock,
    Metadata,
    Queue,
    Release,
    RootCause,
    Run,
    Status,
)
from orchestrator.tenants import TenantId

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_NOT_OVERTAKEN = (
    "attribute_not_exists(pk) OR attribute_not_exists(Attempt) OR Attempt < :attempt "
    "OR (Execution = :me AND #status = :started)"
)
"""For writes of an audit row by a run that may not hold the lock; the holder's are fenced by the lock itself."""

_ABANDONED = RootCause("Execution", "AWS::StepFunctions::Execution", "The execution ended without recording how.")


class DynamoTable:
    """Implements the reading and writing ports of :mod:`orchestrator.ports` on one table.

    Reads are consistent: a delete must be seen from its first moment, and a decision made on stale rows
    would start what has just ended.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    # Reading one tenant

    def metadata(self, tenant: TenantId) -> Metadata | None:
        item = self._get(keys.metadata_key(tenant))
        return rows.metadata_from(item) if item else None

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        return [rows.audit_from(item) for item in self._query_tenant(tenant, keys.AUDIT_PREFIX)]

    def history(self, tenant: TenantId) -> Sequence[HistoryEntry]:
        return [rows.history_from(item) for item in self._query_tenant(tenant, keys.HISTORY_PREFIX)]

    def lock(self, tenant: TenantId) -> Lock | None:
        item = self._get(keys.lock_key(tenant))
        return rows.lock_from(item) if item else None

    # Reading the fleet

    def published_tenants(self) -> Iterable[Metadata]:
        return map(rows.metadata_from, self._query_listing(keys.LISTING_TENANTS))

    def operations(self, status: Status) -> Iterable[Audit]:
        return map(rows.audit_from, self._query_listing(keys.listing_of_operations(status)))

    # Writing one operation

    def begin(self, run: Run, *, at: datetime, instead_of: Lock | None = None) -> Lock | None:
        if instead_of is not None and self._take_over(run, instead_of.run, at):
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
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=keys.lock_key(run.tenant),
                    UpdateExpression="SET TaskToken = :token",
                    ConditionExpression="Execution = :me",
                    ExpressionAttributeValues={":token": s(task_token), ":me": s(run.execution)},
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                raise _lost(run) from error
            raise

    def publish(self, run: Run, *, stack_id: str, queue: Queue, version: str, at: datetime) -> None:
        listing_key, listing_sort = keys.listed_tenant(run.tenant, version)
        metadata = self._update(
            keys.metadata_key(run.tenant),
            "SET InboundQueueArn = :arn, InboundQueueUrl = :url, StackId = :stack, Version = :version, "
            "CreatedAt = if_not_exists(CreatedAt, :at), UpdatedAt = :at, "
            "ListingKey = :listing, ListingSort = :sort",
            values={
                ":arn": s(queue.arn),
                ":url": s(queue.url),
                ":stack": s(stack_id),
                ":version": s(version),
                ":at": time(at),
                ":listing": s(listing_key),
                ":sort": s(listing_sort),
            },
        )
        writes = [
            metadata,
            self._audit(run, Status.SUCCESS, at),
            self._history(run, Status.SUCCESS, at),
            self._free(run),
        ]
        try:
            self._transact(run, writes)
        except LostOwnership:
            if self._recorded(run, Status.SUCCESS):
                return  # An earlier try went through and its answer was lost.
            raise

    def fail(self, run: Run, cause: RootCause, at: datetime) -> bool:
        lock = self.lock(run.tenant)
        if lock is not None and lock.run.execution == run.execution:
            writes = [self._audit(run, Status.FAILURE, at, cause), self._free(run)]
        else:
            # It never began, or is repeating itself: whoever came later is not overwritten.
            writes = [self._audit(run, Status.FAILURE, at, cause, condition=_NOT_OVERTAKEN)]
        writes.append(self._history(run, Status.FAILURE, at, cause))
        try:
            self._transact(run, writes)
        except LostOwnership:
            return self._recorded(run, Status.FAILURE)
        return True

    # What the tenant's stack keeps true

    def record_queue(self, tenant: TenantId, *, stack_id: str, queue: Queue, at: datetime) -> None:
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=keys.metadata_key(tenant),
                    UpdateExpression=(
                        "SET InboundQueueArn = :arn, InboundQueueUrl = :url, StackId = :stack, "
                        "CreatedAt = if_not_exists(CreatedAt, :at), UpdatedAt = :at"
                    ),
                    # A published queue is replaced only by its own stack, or by the first to say its stack id.
                    ConditionExpression=(
                        "attribute_not_exists(StackId) OR StackId = :stack OR attribute_not_exists(Version)"
                    ),
                    ExpressionAttributeValues={
                        ":arn": s(queue.arn),
                        ":url": s(queue.url),
                        ":stack": s(stack_id),
                        ":at": time(at),
                    },
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            raise QueueOwnedElsewhere(
                f"Tenant {tenant}: its queue belongs to another stack, so {stack_id} cannot provide it."
            ) from error

    def forget_queue(self, tenant: TenantId, *, stack_id: str) -> bool:
        try:
            with throttling():
                self._client.delete_item(
                    TableName=self._table,
                    Key=keys.metadata_key(tenant),
                    ConditionExpression="StackId = :stack",
                    ExpressionAttributeValues={":stack": s(stack_id)},
                )
        except ClientError as error:
            if error_code(error) == "ConditionalCheckFailedException":
                return False
            raise
        return True

    # Releases

    def release(self, version: str) -> Release | None:
        item = self._get(keys.release_key(version))
        return rows.release_from(item) if item else None

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

    def _audit(
        self,
        run: Run,
        status: Status,
        at: datetime,
        cause: RootCause | None = None,
        *,
        condition: str | None = None,
    ) -> Item:
        item: Item = keys.audit_key(run.attempt) | {
            "Status": s(status),
            "Execution": s(run.execution),
            "UpdatedAt": time(at),
            "Version": s(run.attempt.version),
            "Attempt": n(run.attempt.number),
        }
        if cause:
            item["RootCause"] = rows.root_cause_value(cause)
        if status is not Status.SUCCESS:
            listing_key, listing_sort = keys.listed_operation(run.tenant, status, at)
            item |= {"ListingKey": s(listing_key), "ListingSort": s(listing_sort)}
        if condition is None:
            return self._put(item)
        return self._put(
            item,
            condition=condition,
            names={"#status": "Status"},
            values={":attempt": n(run.attempt.number), ":me": s(run.execution), ":started": s(Status.STARTED)},
        )

    def _history(self, run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> Item:
        return self._put(
            keys.history_key(run.attempt, at, status) | rows.history_fields(run, status, at, cause),
            condition="attribute_not_exists(pk)",
        )

    def _beginning(self, run: Run, at: datetime, lock_condition: str, values: Item | None = None) -> list[Item]:
        return [
            self._put(keys.lock_key(run.tenant) | rows.lock_fields(run), condition=lock_condition, values=values),
            self._audit(run, Status.STARTED, at, condition=_NOT_OVERTAKEN),
            self._history(run, Status.STARTED, at),
        ]

    def _take_over(self, run: Run, dead: Run, at: datetime) -> bool:
        """Take a dead run's lock, and close what it left open. ``False`` when the lock is no longer its own."""
        writes = self._beginning(run, at, "Execution = :dead", {":dead": s(dead.execution)})
        writes.append(self._history(dead, Status.FAILURE, at, _ABANDONED))
        if keys.audit_key(dead.attempt) != keys.audit_key(run.attempt) and self._recorded(dead, Status.STARTED):
            writes.append(self._audit(dead, Status.FAILURE, at, _ABANDONED, condition=_NOT_OVERTAKEN))
        try:
            self._transact(run, writes)
        except LostOwnership:
            return False
        return True

    def _free(self, run: Run) -> Item:
        return {
            "Delete": {
                "TableName": self._table,
                "Key": keys.lock_key(run.tenant),
                "ConditionExpression": "Execution = :me",
                "ExpressionAttributeValues": {":me": s(run.execution)},
            }
        }

    def _put(
        self,
        item: Item,
        *,
        condition: str | None = None,
        values: Item | None = None,
        names: dict[str, str] | None = None,
    ) -> Item:
        put: Item = {"TableName": self._table, "Item": item}
        if condition:
            put["ConditionExpression"] = condition
        if values:
            put["ExpressionAttributeValues"] = values
        if names:
            put["ExpressionAttributeNames"] = names
        return {"Put": put}

    def _update(self, key: keys.Key, expression: str, *, values: Item) -> Item:
        return {
            "Update": {
                "TableName": self._table,
                "Key": key,
                "UpdateExpression": expression,
                "ExpressionAttributeValues": values,
            }
        }

    def _transact(self, run: Run, writes: list[Any]) -> None:
        try:
            with throttling():
                self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            if "ConditionalCheckFailed" in cancellation_codes(error):
                raise _lost(run) from error
            raise

    def _recorded(self, run: Run, status: Status) -> bool:
        """Whether this very run has recorded this outcome before."""
        item = self._get(keys.audit_key(run.attempt))
        if item is None:
            return False
        audit = rows.audit_from(item)
        return audit.execution == run.execution and audit.status is status

    def _get(self, key: keys.Key) -> Item | None:
        with throttling():
            response = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
        return response.get("Item")

    def _query_tenant(self, tenant: TenantId, prefix: str) -> Iterator[Item]:
        return self._query(
            KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
            ExpressionAttributeValues={":pk": s(keys.tenant_pk(tenant)), ":prefix": s(prefix)},
            ConsistentRead=True,
        )

    def _query_listing(self, listing_key: str) -> Iterator[Item]:
        return self._query(
            IndexName=keys.LISTING_INDEX,
            KeyConditionExpression="ListingKey = :key",
            ExpressionAttributeValues={":key": s(listing_key)},
        )

    def _query(self, **query: Any) -> Iterator[Item]:
        pages = self._client.get_paginator("query").paginate(TableName=self._table, **query)
        with throttling():
            for page in pages:
                yield from page["Items"]


def _lost(run: Run) -> LostOwnership:
    return LostOwnership(f"Tenant {run.tenant}: {run.attempt.name} no longer owns the tenant.")
