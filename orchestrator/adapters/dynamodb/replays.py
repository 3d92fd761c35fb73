"""The rows of replays, in the table of events: there they expire by themselves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import delivery_keys, event_keys
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text
from orchestrator.common.times import parse_timestamp
from orchestrator.events.delivery.replays import Replay, ReplayStatus
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.records import TenantEpoch, UnreadableRow

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class DynamoReplays:
    """Implements :class:`orchestrator.events.delivery.replays.Replays`."""

    def __init__(self, client: DynamoDBClient, events_table: str) -> None:
        self._client = client
        self._table = events_table
        self._reads = Reads(client, events_table)

    def replay(self, life: TenantEpoch, replay_id: str) -> Replay | None:
        row = self._reads.get(delivery_keys.replay_key(life, replay_id))
        return replay_from(row) if row else None

    def of_tenant(self, life: TenantEpoch, *, after: str | None, limit: int) -> tuple[Sequence[Replay], str | None]:
        rows, cursor = self._reads.page_of_newest(delivery_keys.replays_pk(life), after=after, limit=limit)
        read = (read_row(row, replay_from) for row in rows)
        return [each for each in read if isinstance(each, Replay)], cursor

    def running(self) -> Iterator[Replay | UnreadableRow]:
        keys: list[Any] = []
        pages = self._client.get_paginator("query").paginate(**self._listed())
        with throttling():
            for page in pages:
                keys += [{"pk": row["pk"], "sk": row["sk"]} for row in page["Items"]]
        for row in self._reads.many(keys):
            found = read_row(row, replay_from)
            # The index may list a replay that runs no longer.
            if isinstance(found, UnreadableRow) or found.status is ReplayStatus.RUNNING:
                yield found

    def count_running(self, life: TenantEpoch) -> int:
        with throttling():
            return self._client.query(**self._listed(of=life), Select="COUNT")["Count"]

    def count_since(self, life: TenantEpoch, first_id: str) -> int:
        with throttling():
            return self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND sk >= :first",
                ExpressionAttributeValues={":pk": s(delivery_keys.replays_pk(life)), ":first": s(first_id)},
                Select="COUNT",
                ConsistentRead=True,
            )["Count"]

    def write(self, before: Replay | None, after: Replay) -> bool:
        if before is None:
            condition: Any = {"ConditionExpression": "attribute_not_exists(pk)"}
        else:
            condition = {
                "ConditionExpression": "revision = :revision",
                "ExpressionAttributeValues": {":revision": n(before.revision)},
            }
        try:
            with throttling():
                self._client.put_item(TableName=self._table, Item=replay_row(after), **condition)
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True

    def _listed(self, of: TenantEpoch | None = None) -> Any:
        condition, values = "GSI1PK = :pk", {":pk": s(delivery_keys.LISTED_REPLAYS)}
        if of is not None:
            condition += " AND begins_with(GSI1SK, :life)"
            values[":life"] = s(delivery_keys.listed_replay_sk(of, ""))
        return {
            "TableName": self._table,
            "IndexName": event_keys.STATUS_INDEX,
            "KeyConditionExpression": condition,
            "ExpressionAttributeValues": values,
        }


def replay_row(replay: Replay) -> Item:
    row: Item = {
        **delivery_keys.replay_key(replay.life, replay.replay_id),
        "origin": s(replay.origin),
        "since": s(event_timestamp(replay.since)),
        "until": s(event_timestamp(replay.until)),
        "created_at": s(event_timestamp(replay.created_at)),
        "created_by": s(replay.created_by),
        "status": s(replay.status),
        "revision": n(replay.revision),
        "ttl": n(int(replay.expires_at.timestamp())),
    }
    numbers = {
        "shards": replay.shards,
        "shard": replay.shard,
        "looked_at": replay.looked_at,
        "sent": replay.sent,
        "skipped": replay.skipped,
    }
    row |= {name: n(value) for name, value in numbers.items()}
    texts = {"connection_id": replay.connection_id, "after": replay.after, "reason": replay.reason}
    row |= {name: s(value) for name, value in texts.items() if value}
    flags = {"include_delivered": replay.include_delivered, "only_failed": replay.only_failed}
    row |= {name: {"BOOL": True} for name, is_set in flags.items() if is_set}
    row |= {"ended_at": s(event_timestamp(replay.ended_at))} if replay.ended_at else {}
    if replay.status is ReplayStatus.RUNNING:
        row["GSI1PK"] = s(delivery_keys.LISTED_REPLAYS)
        row["GSI1SK"] = s(delivery_keys.listed_replay_sk(replay.life, replay.replay_id))
    return row


def replay_from(row: Mapping[str, Any]) -> Replay:
    return Replay(
        life=delivery_keys.life_of_replay(row),
        replay_id=row["sk"]["S"],
        origin=row["origin"]["S"],
        since=parse_timestamp(row["since"]["S"]),
        until=parse_timestamp(row["until"]["S"]),
        created_at=parse_timestamp(row["created_at"]["S"]),
        created_by=text(row, "created_by") or "",
        shards=number(row, "shards", 1),
        connection_id=text(row, "connection_id"),
        include_delivered="include_delivered" in row,
        only_failed="only_failed" in row,
        status=ReplayStatus(row["status"]["S"]),
        reason=text(row, "reason") or "",
        ended_at=moment(row, "ended_at"),
        shard=number(row, "shard", 0),
        after=text(row, "after"),
        looked_at=number(row, "looked_at", 0),
        sent=number(row, "sent", 0),
        skipped=number(row, "skipped", 0),
        revision=number(row, "revision", 0),
    )
