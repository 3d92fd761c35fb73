"""Rollouts in the table, and the count of CloudFormation's throttles."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, throttling
from orchestrator.adapters.dynamodb import keys, rollout_rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, n, number, s
from orchestrator.adapters.dynamodb.writes import Writes
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.counting import Count, Reviews
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.ports import Registry
from orchestrator.rollouts.records import RecordedOrder, Rollout, RolloutStatus, Stage, TenantOutcome
from orchestrator.tenants.history import UnreadableEntry

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_MAX_TRIES = 5
"""How often the write of a tenant's turn is sent. Many turns write to the row of their stage."""
_LOST_RACE = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
_LOST_UPDATE = frozenset({"ConditionalCheckFailedException", "TransactionConflictException"})


class RolloutTable:
    """Implements the ports of rollouts' records and of throttles (:mod:`orchestrator.rollouts.ports`).

    Rollouts and stages are written as a whole, and only if their revision is still the one that was read. The turns of
    tenants add to the counters of their stage, and need no revision.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._writes = Writes(table)

    # Reading

    def rollout(self, rollout: str) -> Rollout | None:
        item = self._reads.get(keys.plan_key(rollout))
        return rollout_rows.rollout_from(item) if item else None

    def stages(self, rollout: str) -> Sequence[Stage]:
        items = self._reads.partition(keys.rollout_pk(rollout), keys.STAGE_PREFIX)
        return [rollout_rows.stage_from(item) for item in items]

    def stage(self, rollout: str, number: int) -> Stage | None:
        item = self._reads.get(keys.stage_key(rollout, number))
        return rollout_rows.stage_from(item) if item else None

    def rollouts(self, *, limit: int, after: str | None = None) -> Sequence[Rollout]:
        query: dict[str, Any] = {
            "IndexName": keys.LISTING_INDEX,
            "KeyConditionExpression": "ListingKey = :key",
            "ExpressionAttributeValues": {":key": s(keys.LISTED_ROLLOUTS)},
            "ScanIndexForward": False,
        }
        if after is not None:
            query["KeyConditionExpression"] += " AND ListingSort < :after"
            query["ExpressionAttributeValues"][":after"] = s(after)
        found: list[Rollout] = []
        while len(found) < limit:
            with throttling():
                page = self._client.query(TableName=self._table, Limit=limit - len(found), **query)
            found += map(rollout_rows.rollout_from, page["Items"])
            if "LastEvaluatedKey" not in page:
                break
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return found

    def registry(self) -> Registry:
        return rollout_rows.registry_from(self._reads.get(keys.registry_key()) or {})

    def tenant_outcome(self, rollout: str, tenant: TenantId) -> TenantOutcome | None:
        item = self._reads.get(keys.outcome_key(rollout, tenant))
        return rollout_rows.outcome_from(item) if item else None

    def outcomes(self, rollout: str) -> Iterable[TenantOutcome]:
        return map(rollout_rows.outcome_from, self._reads.partition(keys.rollout_pk(rollout), keys.OUTCOME_PREFIX))

    def reviews(self, rollout: str) -> Reviews | None:
        item = self._reads.get(keys.reviews_key(rollout))
        return rollout_rows.reviews_from(item) if item else None

    def failures(self, rollout: str, *, limit: int) -> Sequence[TenantOutcome]:
        listed = islice(self._reads.listed(keys.listed_failures(rollout), Limit=limit), limit)
        return [rollout_rows.outcome_from(item) for item in listed]

    def orders(self, rollout: str) -> Sequence[RecordedOrder | UnreadableEntry]:
        return [rollout_rows.order_from(item) for item in self._reads.partition(keys.rollout_history_pk(rollout))]

    # Writing

    def register(
        self, rollout: Rollout, stages: Sequence[Stage], *, revision: int, orders: Sequence[RecordedOrder] = ()
    ) -> bool:
        writes = [self._writes.put(rollout_rows.plan_row(rollout), condition="attribute_not_exists(pk)")]
        writes += [self._writes.put(rollout_rows.stage_row(stage)) for stage in stages]
        if not rollout.spec.dry_run:
            writes.append(self._register(rollout, revision))
        return self._transact([*writes, *map(self._append_order, orders)])

    def change(
        self,
        rollout: Rollout,
        *,
        revision: int | None = None,
        order: RecordedOrder | None = None,
        stage: Stage | None = None,
    ) -> bool:
        before = self.rollout(rollout.id)
        if before is None or before.revision != rollout.revision:
            return False
        writes = [
            self._replace(rollout_rows.plan_row(replace(rollout, revision=rollout.revision + 1)), rollout.revision)
        ]
        # The condition on the revision ensures that ``before`` is still current when this is written.
        if before.status.active != rollout.status.active and not rollout.spec.dry_run:
            writes.append(self._register(rollout, revision))
        writes += [self._replace_stage(stage)] if stage else []
        return self._transact([*writes, *([self._append_order(order)] if order else [])])

    def change_stage(self, stage: Stage, *, order: RecordedOrder | None = None) -> bool:
        return self._transact([self._replace_stage(stage), *([self._append_order(order)] if order else [])])

    def change_stages(self, stages: Sequence[Stage], *, order: RecordedOrder) -> bool:
        return self._transact([*map(self._replace_stage, stages), self._append_order(order)])

    def admit(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        is_running = self._writes.check(
            keys.plan_key(count.rollout),
            "#status = :running",
            values={":running": s(RolloutStatus.RUNNING)},
            names={"#status": "Status"},
        )
        return self._transact([is_running, *self._counted(count, outcome, before)], tries=_MAX_TRIES)

    def record(self, count: Count, outcome: TenantOutcome, *, before: TenantOutcome | None) -> bool:
        return self._transact(self._counted(count, outcome, before), tries=_MAX_TRIES)

    def slow_down(self, stage: Stage, pace: Pace) -> bool:
        update: dict[str, Any] = {"Key": keys.stage_key(stage.rollout, stage.number), **rollout_rows.slower(pace)}
        with throttling():
            try:
                self._client.update_item(TableName=self._table, **update)
            except ClientError as error:
                if error_code(error) not in _LOST_UPDATE:
                    raise
                return False
        return True

    # Throttles of CloudFormation

    def throttles(self) -> int:
        return number(self._reads.get(keys.pace_key()) or {}, "Throttles", 0)

    def note_throttled(self) -> None:
        # A throttle that is not counted does no harm: the throttled call is repeated, and the next throttle is counted.
        with suppress(Throttled), throttling():
            self._client.update_item(
                TableName=self._table,
                Key=keys.pace_key(),
                UpdateExpression="ADD Throttles :one",
                ExpressionAttributeValues={":one": n(1)},
            )

    # Single writes

    def _register(self, rollout: Rollout, revision: int | None) -> Item:
        """Add the rollout to the registry if it is active, otherwise remove it."""
        change = "ADD Active :id, Revision :one" if rollout.status.active else "DELETE Active :id ADD Revision :one"
        values: Item = {":id": {"SS": [rollout.id]}, ":one": n(1)}
        condition = None
        if revision == 0:
            condition = "attribute_not_exists(Revision)"
        elif revision is not None:
            condition, values[":read"] = "Revision = :read", n(revision)
        return self._writes.update(keys.registry_key(), change, values=values, condition=condition)

    def _append_order(self, order: RecordedOrder) -> Item:
        return self._writes.append(rollout_rows.order_row(order))

    def _replace_stage(self, stage: Stage) -> Item:
        return self._replace(rollout_rows.stage_row(replace(stage, revision=stage.revision + 1)), stage.revision)

    def _replace(self, row: Item, revision: int) -> Item:
        return self._writes.put(row, condition="Revision = :read", values={":read": n(revision)})

    def _counted(self, count: Count, outcome: TenantOutcome, before: TenantOutcome | None) -> list[Item]:
        """The writes of a tenant's turn: what it adds to its stage, and its outcome."""
        update = {"TableName": self._table, "Key": keys.stage_key(count.rollout, count.stage)}
        row = rollout_rows.outcome_row(outcome)
        put = self._writes.append(row) if before is None else self._writes.put(row, **rollout_rows.same_turn(before))
        writes: list[Item] = [{"Update": update | rollout_rows.counted(count)}, put]
        if count.reviewed:
            of_all = {"TableName": self._table, "Key": keys.reviews_key(count.rollout)}
            writes.append({"Update": of_all | rollout_rows.reviewed(count.reviewed)})
        return writes

    def _transact(self, writes: list[Any], *, tries: int = 1) -> bool:
        """``False`` if a condition failed or another write conflicted: the caller reads again.

        A transaction that only met another one at the same moment is sent up to ``tries`` times, because what was read
        may still be true.
        """
        with throttling():
            for _ in range(tries):
                try:
                    self._client.transact_write_items(TransactItems=writes)
                except ClientError as error:
                    codes = cancellation_codes(error)
                    if _LOST_RACE.isdisjoint(codes):
                        raise
                    if "ConditionalCheckFailed" in codes:
                        return False
                else:
                    return True
        return False
