"""The rows of deliveries, beside the events."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, throttling
from orchestrator.adapters.dynamodb import delivery_keys, event_keys, expressions
from orchestrator.adapters.dynamodb.delivery_rows import (
    Stored,
    attempt_from,
    attempt_row,
    delivery_from,
    delivery_row,
    dispatched_from,
    key_of,
)
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, s
from orchestrator.common.writes import Put
from orchestrator.events.delivery.records import Attempt, Delivery, DeliveryRef, DispatchedEvent
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import TenantEpoch, UnreadableRow
from orchestrator.events.statuses import EventStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_CONDITION_FAILED = frozenset({"ConditionalCheckFailedException", "ConditionalCheckFailed"})
RecordT = TypeVar("RecordT")


class DynamoDeliveries:
    """Implements :class:`orchestrator.events.delivery.ports.DeliveryTable`.

    Lists of rows that belong to several tenants leave out a row that cannot be read, and ``report`` is told of it, so
    that it stops nobody else's deliveries.
    """

    def __init__(
        self, client: DynamoDBClient, table: str, *, report: Callable[[UnreadableRow], None] = lambda _row: None
    ) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._report = report

    def _readable(self, rows: Iterable[Item], read: Callable[[Item], RecordT]) -> list[RecordT]:
        records: list[RecordT] = []
        for row in rows:
            record = read_row(row, read)
            if isinstance(record, UnreadableRow):
                self._report(record)
            else:
                records.append(record)
        return records

    def event(self, life: TenantEpoch, event_id: str) -> DispatchedEvent | None:
        row = self._reads.get(event_keys.event_key(life, event_id))
        return dispatched_from(row) if row else None

    def delivery(self, ref: DeliveryRef) -> Delivery | None:
        row = self._reads.get(delivery_keys.delivery_key(ref))
        return delivery_from(row) if row else None

    def deliveries_of(self, refs: Sequence[DeliveryRef]) -> Mapping[DeliveryRef, Delivery]:
        rows = self._reads.many([delivery_keys.delivery_key(ref) for ref in dict.fromkeys(refs)])
        return {delivery.ref: delivery for delivery in self._readable(rows, delivery_from)}

    def deliveries(self, life: TenantEpoch, event_id: str) -> Sequence[Delivery]:
        pk = delivery_keys.deliveries_pk(life, event_id)
        return [delivery_from(row) for row in self._reads.partition(pk, "DLV#")]

    def attempts(self, life: TenantEpoch, event_id: str) -> Sequence[Attempt]:
        pk = delivery_keys.deliveries_pk(life, event_id)
        attempts = [attempt_from(row) for row in self._reads.partition(pk, "ATT#")]
        return sorted(attempts, key=lambda attempt: attempt.at)

    def due(
        self, shard: int, until: datetime, limit: int, *, latest_first: bool = False, cursor: str | None = None
    ) -> tuple[Sequence[DeliveryRef], str | None]:
        pk, end = delivery_keys.due_pk(shard), delivery_keys.due_until(until)
        if latest_first:
            rows = self._index(pk, limit, before=cursor or end, newest_first=True)
        else:
            rows = self._index(pk, limit, until=end, after=cursor)
        after = rows[-1]["GSI1SK"]["S"] if len(rows) == limit else None
        return self._readable(rows, delivery_keys.delivery_of), after

    def untried(
        self, life: TenantEpoch, shard: int, within: IdRange, *, submissions: bool, after: str | None
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        first, last = event_keys.by_time(within, submissions=submissions)
        pk = event_keys.shard_pk(life, shard)
        options: Any = {"ExclusiveStartKey": {"pk": s(pk), "sk": s(after)}} if after else {}
        with throttling():
            found = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
                FilterExpression=(
                    "#status IN (:received, :retrying) OR "
                    "(#status = :delivered AND attribute_not_exists(pending) AND attribute_not_exists(deliveries))"
                ),
                ExpressionAttributeNames={"#status": "status"},
                ExpressionAttributeValues={
                    ":pk": s(pk),
                    ":first": s(first),
                    ":last": s(last),
                    ":received": s(EventStatus.RECEIVED),
                    ":retrying": s(EventStatus.RETRYING),
                    ":delivered": s(EventStatus.DELIVERED),
                },
                ConsistentRead=True,
                **options,
            )
        cursor = found.get("LastEvaluatedKey")
        return self._readable(found["Items"], dispatched_from), cursor["sk"]["S"] if cursor else None

    def accepted(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[DispatchedEvent], str | None]:
        first, last = event_keys.by_time(within, submissions=submissions)
        if first > last:
            # DynamoDB refuses such a range.
            return [], None
        with throttling():
            found = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk BETWEEN :first AND :last",
                ExpressionAttributeValues={
                    ":pk": s(event_keys.shard_pk(life, shard)),
                    ":first": s(first),
                    ":last": s(last),
                },
                ConsistentRead=True,
                Limit=limit,
            )
        rows = found["Items"]
        after = event_keys.event_id_of(rows[-1]["sk"]["S"]) if rows and "LastEvaluatedKey" in found else None
        return self._readable(rows, dispatched_from), after

    def parked(self, connection_id: str, limit: int, *, after: str | None = None) -> Sequence[DeliveryRef]:
        rows = self._merged(delivery_keys.parked_pk, connection_id, limit, after=after)
        return [delivery_keys.delivery_of(row) for row in rows]

    def failed(self, connection_id: str, *, after: str | None, limit: int) -> tuple[Sequence[DeliveryRef], str | None]:
        rows = self._merged(delivery_keys.failed_pk, connection_id, limit + 1, before=after, newest_first=True)
        cursor = rows[limit - 1]["GSI1SK"]["S"] if len(rows) > limit else None
        return [delivery_keys.delivery_of(row) for row in rows[:limit]], cursor

    def apply(self, transition: Sequence[DeliveryWrite]) -> bool:
        writes: list[Any] = [self._request(write) for write in transition]
        try:
            with throttling():
                match writes:
                    # Without a transaction, a write costs half.
                    case [{"Update": update}]:
                        self._client.update_item(**update)
                    case [{"Put": put}]:
                        self._client.put_item(**put)
                    case [{"Delete": delete}]:
                        self._client.delete_item(**delete)
                    case _:
                        self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            if _CONDITION_FAILED.isdisjoint({error_code(error), *cancellation_codes(error)}):
                raise
            return False
        return True

    def _request(self, write: DeliveryWrite) -> Item:
        if isinstance(write, Put):
            # Deliveries and attempts are written whole.
            (record,) = write.fields.values()
            row = delivery_row(record) if isinstance(record, Delivery) else attempt_row(cast(Attempt, record))
            options = expressions.condition_options(write.condition, Stored(write.key))
            return {"Put": {"TableName": self._table, "Item": row, **options}}
        return expressions.transact_item(write, self._table, key_of(write.key), Stored(write.key))

    def _merged(
        self,
        partition: Callable[[str, int], str],
        connection_id: str,
        limit: int,
        *,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
    ) -> Sequence[Item]:
        """The first rows of a connection's list, over all of its shards."""
        shards = [
            self._index(partition(connection_id, shard), limit, after=after, before=before, newest_first=newest_first)
            for shard in range(delivery_keys.CONNECTION_SHARDS)
        ]
        ordered = heapq.merge(*shards, key=lambda row: str(row["GSI1SK"]["S"]), reverse=newest_first)
        return [row for row, _ in zip(ordered, range(limit), strict=False)]

    def _index(
        self,
        pk: str,
        limit: int,
        *,
        until: str | None = None,
        after: str | None = None,
        before: str | None = None,
        newest_first: bool = False,
    ) -> Sequence[Item]:
        condition, values = "GSI1PK = :pk", {":pk": s(pk)}
        if until is not None and after is not None:
            # Nothing is between a key and the same key with a blank at its end.
            condition += " AND GSI1SK BETWEEN :after AND :until"
            values |= {":after": s(f"{after} "), ":until": s(until)}
        elif until is not None:
            condition, values = f"{condition} AND GSI1SK <= :until", values | {":until": s(until)}
        elif after is not None:
            condition, values = f"{condition} AND GSI1SK > :after", values | {":after": s(after)}
        elif before is not None:
            condition, values = f"{condition} AND GSI1SK < :before", values | {":before": s(before)}
        with throttling():
            found = self._client.query(
                TableName=self._table,
                IndexName=event_keys.STATUS_INDEX,
                KeyConditionExpression=condition,
                ExpressionAttributeValues=values,
                ScanIndexForward=not newest_first,
                Limit=limit,
            )
        return list(found["Items"])
