"""The counter of each month, and the number of events of each hour that is billed: one row per day."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.event_unreadable import read_row
from orchestrator.adapters.dynamodb.event_usage import DynamoUsage
from orchestrator.adapters.dynamodb.keys import Key
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, n, number, time
from orchestrator.common.times import parse_timestamp
from orchestrator.events.records import Added, TenantEpoch, UnreadableRow, Used

_REMEMBERED_BATCHES = 32
"""About 640 bytes in the row. A batch that failed holds up its part of the stream, so few others come in between."""
_HOUR_PREFIX = "hour_"


def _billed_until_in(row: Item) -> datetime:
    return parse_timestamp(row["billed_until"]["S"])


class DynamoUsageWrites(DynamoUsage):
    """Implements :class:`orchestrator.events.ports.UsageCounts` and ``BilledUsage``."""

    def add(self, life: TenantEpoch, month: str, used: Used, batch: bytes, at: datetime) -> Added:
        # A batch has one place by its digest, so remembering it costs no read, and the row stays below a write unit.
        place = f"batch_{batch[0] % _REMEMBERED_BATCHES:02d}"
        values = {":events": n(used.events), ":submissions": n(used.submissions), ":at": time(at)}
        try:
            self._update(
                event_keys.usage_key(life, month),
                f"ADD events :events, submissions :submissions SET updated_at = :at, {place} = :batch",
                values | {":batch": {"B": batch}},
                ConditionExpression=f"attribute_not_exists({place}) OR {place} <> :batch",
            )
        except ClientError as error:
            match error_code(error):
                case "ConditionalCheckFailedException":
                    return Added.REPEATED
                case "ValidationException":
                    # The attribute is not a number.
                    return Added.DAMAGED
            raise
        return Added.DONE

    def billed_until(self, life: TenantEpoch) -> datetime | UnreadableRow | None:
        row = Reads(self._client, self._table).get(event_keys.billed_until_key(life))
        return read_row(row, _billed_until_in) if row else None

    def all_billed_until(self, lives: Sequence[TenantEpoch]) -> Mapping[TenantEpoch, datetime | UnreadableRow]:
        by_pk = {event_keys.configuration_pk(life): life for life in lives}
        rows = Reads(self._client, self._table).many([event_keys.billed_until_key(life) for life in by_pk.values()])
        return {by_pk[row["pk"]["S"]]: read_row(row, _billed_until_in) for row in rows}

    def set_hour(self, life: TenantEpoch, hour: datetime, events: int, at: datetime) -> None:
        self._update(
            event_keys.billed_day_key(life, hour),
            f"SET {_HOUR_PREFIX}{hour:%H} = :events, updated_at = :at",
            {":events": n(events), ":at": time(at)},
        )

    def set_billed_until(self, life: TenantEpoch, until: datetime) -> None:
        self._update(event_keys.billed_until_key(life), "SET billed_until = :until", {":until": time(until)})

    def billed(self, life: TenantEpoch, month: str) -> int:
        rows = Reads(self._client, self._table).partition(
            event_keys.configuration_pk(life), event_keys.billed_prefix(month)
        )
        return sum(number(row, name, 0) for row in rows for name in row if name.startswith(_HOUR_PREFIX))

    def _update(self, key: Key, expression: str, values: Item, **options: Any) -> None:
        with throttling():
            self._client.update_item(
                TableName=self._table, Key=key, UpdateExpression=expression, ExpressionAttributeValues=values, **options
            )
