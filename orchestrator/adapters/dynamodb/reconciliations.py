"""The rows of reconciliations, and the function that runs them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from datetime import timedelta
from functools import cached_property
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, expiry, s, time
from orchestrator.common.times import parse_timestamp, timestamp
from orchestrator.reconciling.fleet_counts import FleetCounts
from orchestrator.reconciling.records import (
    LATEST_SCAN,
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
from orchestrator.tenants.records import TenantState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_lambda import LambdaClient

KEPT_FOR = timedelta(days=90)
"""The time for which a requested reconciliation is kept. Scheduled ones replace each other."""
_SCHEDULED = frozenset({SETTLING, SURVEY, LATEST_SCAN})

_MAX_TEXT = 1_000
"""Characters per text of a finding, so that one finding leaves room for the others."""

_MAX_SUBJECT = 128
"""The maximum length of a stack's name. Rows of other systems may have longer keys."""

_MAX_BYTES = 320_000
"""Bytes of all findings together: a row may have 400 KB, and an adoption's cursors take up to 82 KB of them. Findings
that do not fit are counted, but not stored."""


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

    def fleet_counts(self) -> FleetCounts | None:
        item = self._reads.get(keys.fleet_counts_key())
        if item is None:
            return None
        counts = json.loads(item["Counts"]["S"])
        by_version = {
            version: {TenantState(state): count for state, count in states.items()}
            for version, states in counts.items()
        }
        return FleetCounts(parse_timestamp(item["UpdatedAt"]["S"]), by_version)

    def keep_fleet_counts(self, counts: FleetCounts) -> None:
        row = {"UpdatedAt": time(counts.at), "Counts": s(json.dumps(counts.by_version, sort_keys=True))}
        with throttling():
            self._client.put_item(TableName=self._table, Item=keys.fleet_counts_key() | row)


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
        "Wish": s(json.dumps(asdict(reconciliation.spec))),
        "Came": s(
            json.dumps(
                {
                    "lookedAt": asdict(reconciliation.coverage),
                    "counts": reconciliation.counts,
                    "findings": list(_within_size(reconciliation.findings)),
                    "repaired": reconciliation.repaired,
                    "ordered": reconciliation.ordered,
                    "stuck": reconciliation.stuck,
                    "cursor": reconciliation.cursor,
                    "scannedAt": timestamp(reconciliation.scanned_at) if reconciliation.scanned_at else None,
                }
            )
        ),
    }


def _reconciliation_from(item: Mapping[str, Any]) -> Reconciliation:
    progress = json.loads(item["Came"]["S"])
    return Reconciliation(
        id=item["sk"]["S"],
        by=item["RequestedBy"]["S"],
        spec=Spec(**json.loads(item["Wish"]["S"])),
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
        # In rows from before 0.7.0, orders are counted as repairs.
        ordered=progress.get("ordered", 0),
        stuck=progress["stuck"],
        reason=item["Reason"]["S"],
        cursor=progress.get("cursor"),
        scanned_at=parse_timestamp(progress["scannedAt"]) if progress.get("scannedAt") else None,
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
