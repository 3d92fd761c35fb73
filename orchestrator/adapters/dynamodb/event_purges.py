"""Purges: their records, and the rows and objects that they delete.

Every key that is deleted contains the epoch, or is deleted on the condition that its row names the epoch. So a purge
cannot touch the rows of a successor.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.event_configuration import life_from
from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoEpochEnds
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.keys import Key, key
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.adapters.dynamodb.writes import listing
from orchestrator.common.errors import Throttled
from orchestrator.common.times import parse_timestamp
from orchestrator.events.content import content_prefixes
from orchestrator.events.delivery.records import API_ORIGIN
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import Deleted, Purge, RemainingEvent, TenantEpoch, UnreadableRow
from orchestrator.events.statuses import EventStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.adapters.event_contents import S3Contents

_CONDITION_FAILED = "ConditionalCheckFailedException"
_OPEN = "attribute_exists(pk) AND attribute_not_exists(finished_at)"
_MAX_REASON_CHARACTERS = 1000
_PAGE = 200
_MAX_BATCH = 25
"""The maximum number of writes of a BatchWriteItem."""


class DynamoPurges(DynamoEpochEnds):
    """Implements :class:`orchestrator.events.ports.Purges`."""

    def purge(self, life: TenantEpoch) -> Purge | None:
        row = self._get(event_keys.purge_key(life))
        return _purge_from(row) if row else None

    def open_purges(self) -> Iterator[Purge | UnreadableRow]:
        for row in Reads(self._client, self._table).listed(event_keys.LISTED_PURGES):
            yield read_row(row, _purge_from)

    def finished_purges(self, limit: int) -> Sequence[Purge]:
        rows = Reads(self._client, self._table).listed(
            event_keys.LISTED_FINISHED_PURGES, ScanIndexForward=False, Limit=limit
        )
        read = (read_row(row, _purge_from) for row in islice(rows, limit))
        return [each for each in read if isinstance(each, Purge)]

    def begin_step(self, life: TenantEpoch, at: datetime) -> None:
        self._update(life, "SET heartbeat_at = :at REMOVE failed_at, failure", {":at": time(at)})

    def note_events(self, life: TenantEpoch, rows: Sequence[str]) -> None:
        self._update(life, "SET last_events = :rows", {":rows": {"L": [s(row) for row in rows]}})

    def record_step(self, life: TenantEpoch, deleted: Deleted, clean_since: datetime | None, at: datetime) -> None:
        values = {
            ":at": time(at),
            ":events": n(deleted.events),
            ":objects": n(deleted.objects),
            ":rows": n(deleted.rows),
        }
        add = "ADD deleted_events :events, deleted_objects :objects, deleted_rows :rows"
        if clean_since is None:
            self._update(life, f"{add} SET heartbeat_at = :at REMOVE clean_since, last_events", values)
        else:
            clean = f"{add} SET heartbeat_at = :at, clean_since = :clean REMOVE last_events"
            self._update(life, clean, values | {":clean": time(clean_since)})

    def finish(self, purge: Purge, at: datetime) -> bool:
        place = listing(event_keys.listed_finished_purge(purge.life, at))
        values = {
            ":at": time(at),
            ":key": place["ListingKey"],
            ":sort": place["ListingSort"],
            ":clean": time(purge.clean_since or at),
        }
        expression = "SET finished_at = :at, heartbeat_at = :at, ListingKey = :key, ListingSort = :sort"
        return self._update(purge.life, expression, values, condition=f"{_OPEN} AND clean_since = :clean")

    def fail(self, life: TenantEpoch, reason: str, at: datetime) -> None:
        values = {":at": time(at), ":reason": s(reason[:_MAX_REASON_CHARACTERS])}
        self._update(life, "SET failed_at = :at, failure = :reason", values)

    def _update(self, life: TenantEpoch, expression: str, values: Item, condition: str = _OPEN) -> bool:
        """``False`` if the purge is finished, or does not exist, or the condition fails otherwise."""
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=event_keys.purge_key(life),
                    UpdateExpression=expression,
                    ConditionExpression=condition,
                    ExpressionAttributeValues=values,
                )
        except ClientError as error:
            if error_code(error) != _CONDITION_FAILED:
                raise
            return False
        return True


def _purge_from(row: Mapping[str, Any]) -> Purge:
    return Purge(
        life=life_from(row),
        requested_at=parse_timestamp(row["requested_at"]["S"]),
        heartbeat_at=moment(row, "heartbeat_at"),
        deleted=Deleted(
            events=number(row, "deleted_events", 0),
            objects=number(row, "deleted_objects", 0),
            rows=number(row, "deleted_rows", 0),
        ),
        clean_since=moment(row, "clean_since"),
        last_events=tuple(each["S"] for each in row.get("last_events", {"L": []})["L"]),
        failed_at=moment(row, "failed_at"),
        failure=text(row, "failure"),
        finished_at=moment(row, "finished_at"),
    )


class DynamoEventCounts:
    """Implements :class:`orchestrator.events.ports.EventCounts`."""

    def __init__(self, client: DynamoDBClient, events_table: str) -> None:
        self._client = client
        self._events_table = events_table

    def count(self, life: TenantEpoch, shard: int, within: IdRange) -> int:
        return sum(self._count(life, shard, within, submissions=submissions) for submissions in (False, True))

    def has_any(self, life: TenantEpoch, shard: int, within: IdRange) -> bool:
        for submissions in (False, True):
            with throttling():
                found = self._client.query(**self._query(life, shard, within, submissions=submissions), Limit=1)
            if found["Count"]:
                return True
        return False

    def _count(self, life: TenantEpoch, shard: int, within: IdRange, *, submissions: bool) -> int:
        query = self._query(life, shard, within, submissions=submissions)
        with throttling():
            return sum(page["Count"] for page in self._client.get_paginator("query").paginate(**query))

    def _query(self, life: TenantEpoch, shard: int, within: IdRange, *, submissions: bool) -> Any:
        first, last = event_keys.by_time(within, submissions=submissions)
        return {
            "TableName": self._events_table,
            "KeyConditionExpression": "pk = :pk AND sk BETWEEN :first AND :last",
            "ExpressionAttributeValues": {
                ":pk": s(event_keys.shard_pk(life, shard)),
                ":first": s(first),
                ":last": s(last),
            },
            "Select": "COUNT",
            "ConsistentRead": True,
        }


class DynamoRemains:
    """Implements :class:`orchestrator.events.ports.Remains`."""

    def __init__(self, client: DynamoDBClient, *, table: str, events_table: str, contents: S3Contents) -> None:
        self._client = client
        self._table = table
        self._events_table = events_table
        self._contents = contents

    def delete_configuration(self, life: TenantEpoch) -> int:
        rows = self._page(self._table, event_keys.configuration_pk(life))
        for row in rows:
            # The row that is found by the key's digest, or by the id, goes first: without the row that lists it, the
            # next step would not find it.
            for found in event_keys.found_by(row):
                self._delete(found, "epoch = :epoch", {":epoch": s(life.epoch)})
            self._delete({"pk": row["pk"], "sk": row["sk"]}, None, None)
        return len(rows) + self._delete_connections(life)

    def _delete_connections(self, life: TenantEpoch) -> int:
        """Connections of the API's events whose pointer is lost. Those of sources and forms have no key of a life."""
        rows = self._page(self._table, event_keys.origin_pk(life, API_ORIGIN), ProjectionExpression="pk, sk")
        for row in rows:
            self._delete(row, None, None)
        return len(rows)

    def delete_changes(self, life: TenantEpoch) -> int:
        return self._delete_partition(life, event_keys.changes_pk(life))

    def delete_replays(self, life: TenantEpoch) -> int:
        return self._delete_partition(life, delivery_keys.replays_pk(life))

    def events(self, life: TenantEpoch, shard: int) -> Sequence[RemainingEvent]:
        rows = self._page(
            self._events_table,
            event_keys.shard_pk(life, shard),
            ProjectionExpression="pk, sk, #status, retry_count, delivery_rows",
            ExpressionAttributeNames={"#status": "status"},
        )
        return [RemainingEvent(row["sk"]["S"], may_have_deliveries=_may_have_deliveries(row)) for row in rows]

    def delete_deliveries(self, life: TenantEpoch, event: RemainingEvent) -> None:
        pk = delivery_keys.deliveries_pk(life, event_keys.event_id_of(event.row))
        while self._delete_partition(life, pk):
            pass

    def delete_events(self, life: TenantEpoch, shard: int, events: Sequence[RemainingEvent]) -> int:
        pk = event_keys.shard_pk(life, shard)
        return self._delete_rows(life, [key(pk, each.row) for each in events])

    def _delete_partition(self, life: TenantEpoch, pk: str) -> int:
        """Delete a page of a partition of the table of events."""
        page = self._page(self._events_table, pk, ProjectionExpression="pk, sk")
        return self._delete_rows(life, [{"pk": row["pk"], "sk": row["sk"]} for row in page])

    def _delete_rows(self, life: TenantEpoch, keys: Sequence[Key]) -> int:
        deleted = 0
        for start in range(0, len(keys), _MAX_BATCH):
            deletes: Any = [{"DeleteRequest": {"Key": each}} for each in keys[start : start + _MAX_BATCH]]
            with throttling():
                result = self._client.batch_write_item(RequestItems={self._events_table: deletes})
            # Rows that are left unprocessed are on the next page.
            deleted += len(deletes) - len(result.get("UnprocessedItems", {}).get(self._events_table, ()))
        if keys and not deleted:
            raise Throttled(f"BatchWriteItem left all rows of {life.tenant} unprocessed.")
        return deleted

    def delete_contents(self, life: TenantEpoch) -> int:
        return sum(self._contents.delete_some(prefix) for prefix in content_prefixes(life))

    def _page(self, table: str, pk: str, **options: Any) -> list[Item]:
        with throttling():
            page = self._client.query(
                TableName=table,
                KeyConditionExpression="pk = :pk",
                ExpressionAttributeValues={":pk": s(pk)},
                ConsistentRead=True,
                Limit=_PAGE,
                **options,
            )
        return page["Items"]

    def _delete(self, row: Key, condition: str | None, values: Item | None) -> None:
        options: Any = {"ConditionExpression": condition, "ExpressionAttributeValues": values} if condition else {}
        try:
            with throttling():
                self._client.delete_item(TableName=self._table, Key=row, **options)
        except ClientError as error:
            # The row is gone already, or belongs to somebody else.
            if error_code(error) != _CONDITION_FAILED:
                raise


def _may_have_deliveries(row: Item) -> bool:
    """False for an event that was delivered at the first try, as most are, or that nobody wanted."""
    is_done = row["status"]["S"] in (EventStatus.DELIVERED, EventStatus.FILTERED)
    return not is_done or "retry_count" in row or "delivery_rows" in row
