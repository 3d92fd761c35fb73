"""Reads of the table of events. No read scans the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.delivery_rows import dispatched_from
from orchestrator.adapters.dynamodb.event_rows import delivered_at_value, event_from
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, s
from orchestrator.events.delivery.acknowledging import acknowledge
from orchestrator.events.delivery.records import DispatchedEvent
from orchestrator.events.event_ids import IdRange
from orchestrator.events.records import Event, TenantEpoch
from orchestrator.events.statuses import UNDELIVERED, EventStatus

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


@dataclass(frozen=True, slots=True)
class _Keys:
    """The keys of the table, or of one of its indexes."""

    index: str | None
    pk: str
    sk: str


_TABLE = _Keys(None, "pk", "sk")
_BY_STATUS = _Keys(event_keys.STATUS_INDEX, "GSI1PK", "GSI1SK")
_BY_TYPE = _Keys(event_keys.TYPE_INDEX, "GSI2PK", "GSI2SK")


class DynamoEventReads:
    """Implements :class:`orchestrator.events.ports.EventReads` and ``Acknowledgements``."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def read(self, life: TenantEpoch, event_ids: Sequence[str]) -> Mapping[str, Event]:
        if not event_ids:
            return {}
        if len(event_ids) == 1:
            with throttling():
                key = event_keys.event_key(life, event_ids[0])
                found = self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True)
            return {event_ids[0]: event_from(found["Item"])} if "Item" in found else {}
        keys = [event_keys.event_key(life, event_id) for event_id in dict.fromkeys(event_ids)]
        rows = Reads(self._client, self._table).many(keys)
        return {event.event_id: event for event in map(event_from, rows)}

    def by_time(
        self, life: TenantEpoch, shard: int, within: IdRange, limit: int, *, submissions: bool
    ) -> tuple[Sequence[Event], bool]:
        bounds = event_keys.by_time(within, submissions=submissions)
        rows, more = self._query(_TABLE, event_keys.shard_pk(life, shard), bounds, limit)
        return [event_from(row) for row in rows], more

    def by_status(
        self, life: TenantEpoch, status: str, shard: int, within: IdRange, limit: int, *, newest_first: bool
    ) -> tuple[Sequence[str], bool]:
        pk, bounds = event_keys.status_index_pk(life, shard), event_keys.by_status(status, within)
        rows, more = self._query(_BY_STATUS, pk, bounds, limit, newest_first=newest_first)
        return [event_keys.event_id_of(row["sk"]["S"]) for row in rows], more

    def by_type(
        self, life: TenantEpoch, event_type: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        return self._by_index(
            life, event_keys.type_index_pk(life, shard), event_keys.by_type(event_type, within), limit
        )

    def by_source(
        self, life: TenantEpoch, source_id: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        return self._by_index(life, event_keys.source_index_pk(source_id, shard), event_keys.by_source(within), limit)

    def by_form(
        self, life: TenantEpoch, form_id: str, shard: int, within: IdRange, limit: int
    ) -> tuple[Sequence[str], bool]:
        return self._by_index(life, event_keys.form_index_pk(form_id, shard), event_keys.by_form(within), limit)

    def acknowledge(self, life: TenantEpoch, event_id: str, at: datetime) -> bool:
        return acknowledge(_InboxRows(self._client, self._table), life, event_id, at)

    def _by_index(self, life: TenantEpoch, pk: str, bounds: tuple[str, str], limit: int) -> tuple[Sequence[str], bool]:
        rows, more = self._query(_BY_TYPE, pk, bounds, limit)
        # The id of a source or form comes from the caller, and its partition does not name the tenant.
        if any(event_keys.life_of(row["pk"]["S"]) != life for row in rows):
            return [], False
        return [event_keys.event_id_of(row["sk"]["S"]) for row in rows], more

    def _query(
        self, where: _Keys, pk: str, bounds: tuple[str, str], limit: int, *, newest_first: bool = True
    ) -> tuple[Sequence[Item], bool]:
        first, last = bounds
        if first > last:
            # DynamoDB refuses such a range. It comes from a cursor that is older than the beginning of the list.
            return [], False
        options: Any = {"IndexName": where.index} if where.index else {}
        with throttling():
            found = self._client.query(
                TableName=self._table,
                KeyConditionExpression="#pk = :pk AND #sk BETWEEN :first AND :last",
                ExpressionAttributeNames={"#pk": where.pk, "#sk": where.sk},
                ExpressionAttributeValues={":pk": s(pk), ":first": s(first), ":last": s(last)},
                ScanIndexForward=not newest_first,
                Limit=limit,
                **options,
            )
        return list(found["Items"]), "LastEvaluatedKey" in found


class _InboxRows(DynamoDeliveries):
    """Implements :class:`orchestrator.events.delivery.acknowledging.InboxRows`."""

    def acknowledge_at_once(self, life: TenantEpoch, event_id: str, at: datetime) -> DispatchedEvent | bool:
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=event_keys.event_key(life, event_id),
                    UpdateExpression="SET #status = :delivered, delivered_at = :at REMOVE GSI1PK, GSI1SK",
                    ConditionExpression="begins_with(GSI1SK, :undelivered) AND attribute_not_exists(pending)",
                    ExpressionAttributeNames={"#status": "status"},
                    ExpressionAttributeValues={
                        ":delivered": s(EventStatus.DELIVERED),
                        ":at": delivered_at_value(at),
                        ":undelivered": s(f"{UNDELIVERED}#"),
                    },
                    ReturnValuesOnConditionCheckFailure="ALL_OLD",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            response: Any = error.response
            row = response.get("Item")
            return dispatched_from(row) if row else False
        return True
