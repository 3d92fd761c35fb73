"""The table of events."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_rows import event_row
from orchestrator.adapters.dynamodb.values import Item, n, number, s
from orchestrator.events.content import Packed
from orchestrator.events.records import Event, Repetition, TenantEpoch

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_CONDITION_FAILED = "ConditionalCheckFailedException"


class DynamoEventWrites:
    """Implements :class:`orchestrator.events.ports.EventWrites`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def put(self, event: Event, packed: Packed, *, type_index: bool) -> None:
        row = event_row(event, packed, type_index=type_index)
        # The id is new, or belongs to a repetition of the same event. So a row that is there already is this event,
        # written by an earlier try, and may have been delivered since: it must not be written over.
        self._put(row, "attribute_not_exists(pk)")

    def mark(self, repetition: Repetition, at: datetime) -> Repetition:
        row: Item = event_keys.idempotency_key(repetition.life, repetition.source, repetition.key)
        row |= {
            "event_id": s(repetition.event_id),
            "digest": s(repetition.digest),
            "ttl": n(int(repetition.expires_at.timestamp())),
        }
        # DynamoDB deletes expired rows days later.
        expired = {":now": n(int(at.timestamp()))}
        found = self._put(row, "attribute_not_exists(pk) OR #ttl <= :now", expired, {"#ttl": "ttl"})
        if found is None:
            return repetition
        return Repetition(
            repetition.life,
            repetition.source,
            repetition.key,
            found["event_id"]["S"],
            found["digest"]["S"],
            repetition.expires_at,
        )

    def is_marked(self, life: TenantEpoch, source: str, key: str, at: datetime) -> bool:
        with throttling():
            found = self._client.get_item(
                TableName=self._table, Key=event_keys.idempotency_key(life, source, key), ConsistentRead=True
            )
        return number(found.get("Item", {}), "ttl", 0) > int(at.timestamp())

    def _put(
        self, row: Item, condition: str, values: Item | None = None, names: dict[str, str] | None = None
    ) -> Item | None:
        """``None`` when the row is put. Otherwise the row that is in the way."""
        options: Any = {"ConditionExpression": condition, "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}
        if values:
            options["ExpressionAttributeValues"] = values
        if names:
            options["ExpressionAttributeNames"] = names
        try:
            with throttling():
                self._client.put_item(TableName=self._table, Item=row, **options)
        except ClientError as error:
            if error_code(error) != _CONDITION_FAILED:
                raise
            response: dict[str, Any] = dict(error.response)
            found: Item = response.get("Item") or {}
            return found
        return None
