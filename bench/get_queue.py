"""Compares getQueue with the minimum for its work: one bare read, one bare import."""

from __future__ import annotations

import contextlib
import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3

from bench.cold_starts import cold_import_of, next_client_of
from bench.measure import Result, interleaved, silence
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.tenants.ledger import Ledger
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Attempt, Operation, Queue, Run

TABLE = "bench"
MODULE = "lambdas.api.get_queue"
_FUNCTION_ENVIRONMENT = {
    "BERTH_TABLE": TABLE,
    "BERTH_TEMPLATE_VERSION": "0.1.0",
    "BERTH_LINGER_SECONDS": "60",
    "BERTH_CREATE_ON_GET_QUEUE": "true",
    "BERTH_RETRY_AFTER_SECONDS": "5",
    "BERTH_CREATE_MACHINE": "arn:aws:states:us-east-1:000000000000:stateMachine:bench",
    "BERTH_UPDATE_MACHINE": "arn:aws:states:us-east-1:000000000000:stateMachine:bench-update",
    "BERTH_DELETE_MACHINE": "arn:aws:states:us-east-1:000000000000:stateMachine:bench-delete",
    "BERTH_SERVICE": "get_queue",
    "BERTH_METRICS_NAMESPACE": "Berth",
    "AWS_DEFAULT_REGION": "us-east-1",
}


def cold_import(rounds: int = 15) -> list[Result]:
    return [
        *cold_import_of("getQueue", MODULE, _FUNCTION_ENVIRONMENT, rounds),
        *next_client_of("getQueue", MODULE, "stepfunctions", "Step Functions", _FUNCTION_ENVIRONMENT, rounds),
    ]


def ready_path() -> list[Result]:
    """The whole handler for a tenant in service, compared with a bare GetItem of the same row."""
    tenant = TenantId.parse("acme")
    with a_table() as client, silence():
        publish(Ledger(DynamoTable(client, TABLE)), tenant)
        handled, read = _handler_and_bare_read(client, tenant)
    return [
        Result("getQueue ready path / bare GetItem, p50", round(handled / read, 3), "x", "<= 1.05"),
        Result("getQueue ready path, p50", round(handled, 2), "ms", ""),
    ]


def _handler_and_bare_read(client: Any, tenant: TenantId, rounds: int = 1_000) -> tuple[float, float]:
    handler = importlib.import_module(MODULE).handler
    event = {"version": "2.0", "pathParameters": {"tenantId": tenant.value}}
    key = keys.metadata_key(tenant)

    def handled() -> None:
        if handler(event, None)["statusCode"] != 200:
            raise RuntimeError("The ready path was not taken.")

    def bare() -> None:
        client.get_item(TableName=TABLE, Key=key, ConsistentRead=True)

    interleaved(handled, bare, 50)
    return interleaved(handled, bare, rounds)


@contextlib.contextmanager
def a_table() -> Iterator[Any]:
    with tempfile.TemporaryDirectory() as home:
        emulator = Emulator(port=free_port(), home=Path(home), keep_state=False)
        emulator.start()
        try:
            os.environ.pop("AWS_PROFILE", None)  # A profile for AWS need not exist here.
            os.environ.update({**emulator.client_environment(), **_FUNCTION_ENVIRONMENT})
            client = boto3.client("dynamodb")
            client.create_table(
                TableName=TABLE,
                BillingMode="PAY_PER_REQUEST",
                KeySchema=[
                    {"AttributeName": "pk", "KeyType": "HASH"},
                    {"AttributeName": "sk", "KeyType": "RANGE"},
                ],
                AttributeDefinitions=[
                    {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "ListingKey", "ListingSort")
                ],
                GlobalSecondaryIndexes=[
                    {
                        "IndexName": keys.LISTING_INDEX,
                        "KeySchema": [
                            {"AttributeName": "ListingKey", "KeyType": "HASH"},
                            {"AttributeName": "ListingSort", "KeyType": "RANGE"},
                        ],
                        "Projection": {"ProjectionType": "ALL"},
                    }
                ],
            )
            yield client
        finally:
            emulator.stop()


def publish(ledger: Ledger, tenant: TenantId, version: str = "0.1.0") -> None:
    moment = parse_timestamp("2026-01-01T00:00:00Z")
    run = Run(Attempt(tenant, Operation.CREATE, version, 1), f"arn:aws:states:::execution:bench:{tenant}", moment)
    queue = Queue("arn:aws:sqs:us-east-1:000000000000:acme", "https://sqs.us-east-1.amazonaws.com/000000000000/acme")
    ledger.begin(run, at=moment)
    stack_id = f"arn:aws:cloudformation:::stack/{tenant}/1"
    ledger.publish(run, Publication(stack_id, queue, version, None), at=moment)
