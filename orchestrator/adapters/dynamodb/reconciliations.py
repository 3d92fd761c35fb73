"""The rows of reconciliations, and the function that runs them."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.transacting import cancelled
from orchestrator.adapters.dynamodb.values import Item, expiry, n, number, s, time
from orchestrator.common.times import parse_timestamp
from orchestrator.reconciling.checkpoints import Checkpoint, Phase, Position
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.ports import SurveyedStack
from orchestrator.reconciling.records import (
    SETTLING,
    SURVEY,
    Coverage,
    Finding,
    Kind,
    Reconciliation,
    ReconciliationStatus,
    Remedy,
    Spec,
)
from orchestrator.tenants.records import Queue, TenantState
from orchestrator.tenants.stack_ports import Stack

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient

KEPT_FOR = timedelta(days=90)
"""The time for which a requested reconciliation is kept. Scheduled ones replace each other."""
_SCHEDULED = frozenset({SETTLING, SURVEY})

_CHECKPOINT_KEPT_FOR = timedelta(days=7)
"""The time for which the position of a survey is kept, and the stacks that it has listed."""

_MAX_TEXT = 1_000
"""Characters per text of a finding, so that one finding leaves room for the others."""

_MAX_SUBJECT = 128
"""The maximum length of a stack's name. Rows of other systems may have longer keys."""

_MAX_BYTES = 320_000
"""Bytes of all findings together: a row may have 400 KB. Findings that do not fit are counted, but not stored."""


class ReconciliationTable:
    """Implements the ledgers of reconciliations and of the fleet's counts (:mod:`orchestrator.reconciling.ports`)."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)

    def record_reconciliation(self, reconciliation: Reconciliation) -> None:
        with throttling():
            self._client.put_item(TableName=self._table, Item=_row(reconciliation))

    def reconciliation(self, reconciliation: str) -> Reconciliation | None:
        item = self._reads.get(keys.reconciliation_key(reconciliation))
        return _reconciliation_from(item) if item else None

    def requested_reconciliations(self, *, limit: int) -> Sequence[Reconciliation]:
        # Ids of requested ones begin with digits, and those of all other rows with letters. The rows of a survey that
        # is not finished begin with its id, and are left out.
        newest_first = self._reads.newest_first(keys.RECONCILIATIONS, before=keys.AFTER_REQUESTED)
        requested = (item for item in newest_first if "#" not in item["sk"]["S"])
        return [_reconciliation_from(item) for item in islice(requested, limit)]

    def fleet_counts(self) -> FleetCounts | None:
        item = self._reads.get(keys.fleet_counts_key())
        if item is None:
            return None
        counts = json.loads(item["Counts"]["S"])
        by_version = {
            version: {TenantState(state): count for state, count in states.items()}
            for version, states in counts.items()
        }
        return FleetCounts(parse_timestamp(item["UpdatedAt"]["S"]), by_version, number(item, "Warm", 0))

    def keep_fleet_counts(self, counts: FleetCounts) -> None:
        row = {
            "UpdatedAt": time(counts.at),
            "Counts": s(json.dumps(counts.by_version, sort_keys=True)),
            "Warm": n(counts.warm),
        }
        with throttling():
            self._client.put_item(TableName=self._table, Item=keys.fleet_counts_key() | row)

    # Surveys that are not finished

    def unfinished_surveys(self) -> frozenset[str]:
        item = self._reads.get(keys.unfinished_surveys_key()) or {}
        return frozenset(item.get("Ids", {"SS": []})["SS"])

    def checkpoint(self, reconciliation: str) -> Checkpoint | None:
        item = self._reads.get(keys.checkpoint_key(reconciliation))
        return _checkpoint_from(item, reconciliation) if item else None

    def save_checkpoint(self, checkpoint: Checkpoint) -> bool:
        # A scheduled survey has the id of its predecessor, but not its beginning.
        condition = "Revision = :read AND StartedAt = :started"
        values = {":started": time(checkpoint.reconciliation.started_at)}
        if checkpoint.revision:
            values[":read"] = n(checkpoint.revision)
        else:
            condition = "attribute_not_exists(pk) OR StartedAt <> :started"
        position = {
            "Put": {
                "TableName": self._table,
                "Item": _checkpoint_row(checkpoint),
                "ConditionExpression": condition,
                "ExpressionAttributeValues": values,
            }
        }
        # Both are written together: nobody would continue a saved survey that is not among the unfinished ones.
        unfinished = self._change_of_unfinished("ADD Ids :id", checkpoint.reconciliation.id)
        return not cancelled(self._client, [position, {"Update": unfinished}])

    def end_survey(self, reconciliation: str) -> None:
        with throttling():
            self._client.update_item(**self._change_of_unfinished("DELETE Ids :id", reconciliation))

    def _change_of_unfinished(self, expression: str, reconciliation: str) -> dict[str, Any]:
        return {
            "TableName": self._table,
            "Key": keys.unfinished_surveys_key(),
            "UpdateExpression": expression,
            "ExpressionAttributeValues": {":id": {"SS": [reconciliation]}},
        }

    def store_stacks(
        self, reconciliation: Reconciliation, list_id: str, number: int, stacks: Sequence[SurveyedStack]
    ) -> None:
        row = {
            **keys.surveyed_stacks_key(reconciliation.id, list_id, number),
            keys.EXPIRY: expiry(reconciliation.started_at + _CHECKPOINT_KEPT_FOR),
            "Stacks": {"B": zlib.compress(json.dumps([_stack_values(each) for each in stacks]).encode())},
        }
        with throttling():
            self._client.put_item(TableName=self._table, Item=row)

    def stored_stacks(self, reconciliation: Reconciliation, list_id: str, number: int) -> Sequence[SurveyedStack]:
        item = self._reads.get(keys.surveyed_stacks_key(reconciliation.id, list_id, number))
        if item is None:
            raise LookupError(f"Reconciliation {reconciliation.id}: part {number} of its list of stacks is missing.")
        return [_stack_from(values) for values in json.loads(zlib.decompress(item["Stacks"]["B"]))]


class LambdaReconciliations:
    """Implements :class:`orchestrator.reconciling.ports.ReconciliationStarter`.

    The function is looked up when it is started, because its own settings cannot contain its name.
    """

    def __init__(self, make_client: Callable[[], LambdaClient], function: Callable[[], str]) -> None:
        self._make_client = make_client
        self._function = function

    @cached_property
    def _client(self) -> LambdaClient:
        return self._make_client()

    def start_reconciliation(self, reconciliation: str) -> None:
        payload = json.dumps({"reconciliationId": reconciliation})
        with throttling():
            self._client.invoke(FunctionName=self._function(), InvocationType="Event", Payload=payload)


def _row(reconciliation: Reconciliation) -> Item:
    return {
        **keys.reconciliation_key(reconciliation.id),
        **({} if reconciliation.id in _SCHEDULED else {keys.EXPIRY: expiry(reconciliation.updated_at + KEPT_FOR)}),
        "RequestedBy": s(reconciliation.by),
        "Status": s(reconciliation.status),
        "Reason": s(reconciliation.reason),
        "StartedAt": time(reconciliation.started_at),
        "UpdatedAt": time(reconciliation.updated_at),
        # Stored as JSON, because they are always read as a whole.
        "Spec": s(json.dumps(_spec_document(reconciliation.spec))),
        "Came": s(
            json.dumps(
                {
                    "lookedAt": asdict(reconciliation.coverage),
                    "counts": reconciliation.counts,
                    "findings": list(_within_size(reconciliation.findings)),
                    "repaired": reconciliation.repaired,
                    "ordered": reconciliation.ordered,
                    "stuck": reconciliation.stuck,
                }
            )
        ),
    }


def _spec_document(spec: Spec) -> dict[str, object]:
    """The spec. ``only`` is left out if it is not given, because functions of the version before do not know it."""
    return {name: value for name, value in asdict(spec).items() if name != "only" or value is not None}


def _reconciliation_from(item: Mapping[str, Any]) -> Reconciliation:
    progress = json.loads(item["Came"]["S"])
    return Reconciliation(
        id=item["sk"]["S"],
        by=item["RequestedBy"]["S"],
        spec=Spec(**json.loads(item["Spec"]["S"])),
        status=ReconciliationStatus(item["Status"]["S"]),
        started_at=parse_timestamp(item["StartedAt"]["S"]),
        updated_at=parse_timestamp(item["UpdatedAt"]["S"]),
        coverage=Coverage(**progress["lookedAt"]),
        counts={Kind(kind): count for kind, count in progress["counts"].items()},
        findings=tuple(
            Finding(**{**finding, "kind": Kind(finding["kind"]), "remedy": Remedy(finding["remedy"])})
            for finding in progress["findings"]
        ),
        repaired=progress["repaired"],
        ordered=progress["ordered"],
        stuck=progress["stuck"],
        reason=item["Reason"]["S"],
    )


def _checkpoint_row(checkpoint: Checkpoint) -> Item:
    position, saved = checkpoint.position, checkpoint.reconciliation
    place = {
        "phase": position.phase,
        "after": position.after,
        "state": position.state,
        "list": position.list_id,
        "restarts": position.restarts,
        "chunks": position.chunks,
        "detections": dict(position.detections),
    }
    return {
        **_row(saved),
        **keys.checkpoint_key(saved.id),
        keys.EXPIRY: expiry(saved.started_at + _CHECKPOINT_KEPT_FOR),
        "Position": s(json.dumps(place)),
        "Marks": {"B": zlib.compress(position.marks)},
        "ClaimedUntil": time(checkpoint.claimed_until),
        "Revision": n(checkpoint.revision + 1),
    }


def _checkpoint_from(item: Mapping[str, Any], reconciliation: str) -> Checkpoint:
    place = json.loads(item["Position"]["S"])
    position = Position(
        Phase(place["phase"]),
        place["after"],
        TenantState(place["state"]) if place["state"] else None,
        place["list"],
        place["restarts"],
        place["chunks"],
        zlib.decompress(item["Marks"]["B"]),
        place["detections"],
    )
    saved = replace(_reconciliation_from(item), id=reconciliation)
    claimed_until = parse_timestamp(item["ClaimedUntil"]["S"])
    return Checkpoint(saved, position, claimed_until, int(item["Revision"]["N"]))


def _stack_values(each: SurveyedStack) -> list[object]:
    """The details of a stack that a survey compares. The names repeat each other, so they compress well."""
    stack = each.stack
    queue = [stack.queue.arn, stack.queue.url] if stack.queue else None
    return [each.name, stack.stack_id, stack.status, stack.tenant_id, queue, stack.version, stack.ours]


def _stack_from(values: Any) -> SurveyedStack:
    name, stack_id, status, tenant_id, queue, version, ours = values
    return SurveyedStack(
        name, Stack(stack_id, status, "", tenant_id, Queue(*queue) if queue else None, version, ours=ours)
    )


def _within_size(findings: Iterable[Finding]) -> Iterator[dict[str, object]]:
    size = 0
    for finding in findings:
        document = asdict(_bounded(finding))
        size += len(json.dumps(document))
        if size > _MAX_BYTES:
            return
        yield document


def _bounded(finding: Finding) -> Finding:
    return replace(
        finding,
        subject=finding.subject[:_MAX_SUBJECT],
        detail=finding.detail[:_MAX_TEXT],
        advice=finding.advice[:_MAX_TEXT],
        result=finding.result[:_MAX_TEXT],
    )
