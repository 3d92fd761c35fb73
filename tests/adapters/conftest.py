"""AWS in process, by moto: nothing here leaves the machine."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.adapters.keys import LISTING_INDEX
from orchestrator.adapters.rollouts import RolloutTable
from orchestrator.records import Metadata, Operation, Status
from orchestrator.tenants import TenantId
from tests.adapters.tables import (
    LEGACY_OUTBOUND_QUEUE,
    LEGACY_QUEUE,
    LEGACY_TIME,
    LEGACY_VERSION,
    Legacy,
    Table,
)
from tests.fakes import ACME, InMemoryRollouts, InMemoryTable, an_audit

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.rollouts.ports import RolloutLedger

REGION = "eu-west-1"
TABLE = "berth"


@cache
def client(service: Any) -> Any:
    """One client a service for all tests: making one costs more than using it."""
    return boto3.client(service, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty AWS account."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    with mock_aws():
        yield


@pytest.fixture
def dynamodb(aws: None) -> DynamoDBClient:  # noqa: ARG001 - the account it is in
    return an_empty_table()


def an_empty_table() -> DynamoDBClient:
    """The table, with the keys and the index that the control plane gives it."""
    dynamodb: DynamoDBClient = client("dynamodb")
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "ListingKey", "ListingSort")
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": LISTING_INDEX,
                "KeySchema": [
                    {"AttributeName": "ListingKey", "KeyType": "HASH"},
                    {"AttributeName": "ListingSort", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    return dynamodb


@dataclass
class Endpoint:
    """Where CloudFormation takes the answers of custom resources."""

    url: str = ""
    answers: list[dict[str, Any]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    content_types: list[str | None] = field(default_factory=list)
    refusals: int = 0
    """How many of the next answers are refused."""

    def event(self, **changes: Any) -> dict[str, Any]:
        return {
            "RequestType": "Create",
            "ResponseURL": f"{self.url}/signed?Signature=a%2Fb",
            "StackId": "arn:aws:cloudformation:eu-central-1:000000000000:stack/" + "x" * 62 + "/" + "0" * 36,
            "RequestId": "5478764e-a29b-4f27-b4c3-4bcdf0ef9c6d",
            "LogicalResourceId": "L" * 255,
            **changes,
        }


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    heard = Endpoint()

    class Handler(BaseHTTPRequestHandler):
        def do_PUT(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            heard.answers.append(json.loads(body))
            heard.sizes.append(len(body))
            heard.content_types.append(self.headers["Content-Type"])
            self.send_response(503 if heard.refusals else 200)
            heard.refusals = max(0, heard.refusals - 1)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            """Nothing: pytest's output is for failures."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        heard.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield heard
        server.shutdown()
        thread.join()


# The table, twice: a contract is what both keep.


@pytest.fixture(params=["memory", "dynamodb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(kind: str, request: pytest.FixtureRequest) -> Table:
    return InMemoryTable() if kind == "memory" else DynamoTable(request.getfixturevalue("dynamodb"), TABLE)


@pytest.fixture
def ledger(kind: str, request: pytest.FixtureRequest) -> RolloutLedger:
    return InMemoryRollouts() if kind == "memory" else RolloutTable(request.getfixturevalue("dynamodb"), TABLE)


@pytest.fixture
def legacy(table: Table, request: pytest.FixtureRequest) -> Legacy:
    if isinstance(table, InMemoryTable):
        return legacy_in_memory(table)
    return legacy_in_dynamodb(request.getfixturevalue("dynamodb"))


def legacy_in_memory(memory: InMemoryTable) -> Legacy:
    def plant_metadata(tenant: TenantId) -> None:
        metadata = Metadata(
            tenant,
            LEGACY_QUEUE,
            None,
            LEGACY_VERSION,
            LEGACY_TIME,
            LEGACY_TIME,
            outbound_queue=LEGACY_OUTBOUND_QUEUE,
        )
        memory.plant_metadata(metadata, listed=False)

    def plant_audit(operation: Operation, status: Status, version: str | None) -> None:
        audit = an_audit(status, operation, version=version, at=LEGACY_TIME, execution="arn:legacy")
        memory.plant_audit(audit, numbered=False)

    return Legacy(plant_metadata, plant_audit)


def legacy_in_dynamodb(dynamodb: DynamoDBClient) -> Legacy:
    def put(tenant: TenantId, sort_key: str, **attributes: str) -> None:
        row = {"pk": f"TENANT_ID#{tenant}", "sk": sort_key, "UpdatedAt": "2020-08-31T16:02:16.808Z", **attributes}
        dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})

    def put_metadata(tenant: TenantId) -> None:
        put(
            tenant,
            "METADATA",
            CreatedAt="2020-08-31T16:02:16.808Z",
            Version=LEGACY_VERSION,
            OutboundQueueArn=LEGACY_OUTBOUND_QUEUE.arn,
            OutboundQueueUrl=LEGACY_OUTBOUND_QUEUE.url,
            InboundQueueArn=LEGACY_QUEUE.arn,
            InboundQueueUrl=LEGACY_QUEUE.url,
        )

    def put_audit(operation: Operation, status: Status, version: str | None) -> None:
        put(ACME, f"AUDIT#{operation}" + (f"#{version}" if version else ""), Execution="arn:legacy", Status=status)

    return Legacy(put_metadata, put_audit)
