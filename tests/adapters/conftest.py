"""AWS in process, by moto, and on the loopback interface, by the emulator: nothing here leaves the machine."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING, Any
from urllib.request import ProxyHandler, Request, build_opener

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.stub import Stubber
from moto import mock_aws

from orchestrator.adapters.dynamodb.keys import LISTING_INDEX
from orchestrator.adapters.dynamodb.rollouts import RolloutTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.emulator import ACCOUNT, Emulator, free_port
from orchestrator.tenants.records import Metadata, Operation, Status
from tests.adapters.quick_moto import quicken
from tests.adapters.tables import (
    LEGACY_OUTBOUND_QUEUE,
    LEGACY_QUEUE,
    LEGACY_TIME,
    LEGACY_VERSION,
    Legacy,
    Table,
    WholeTable,
)
from tests.fakes import ACME, InMemoryRollouts, InMemoryTable, an_audit

if TYPE_CHECKING:
    from moto.core.models import MockAWS
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.rollouts.ports import RolloutLedger

REGION = "eu-west-1"
TABLE = "berth"


@cache
def client(service: Any, emulator: Emulator | None = None) -> Any:
    """One client a service for all tests: making one costs more than using it."""
    key = {"aws_access_key_id": "test", "aws_secret_access_key": "test"}
    settings: Any = {**(emulator.session_settings() if emulator else key), "region_name": REGION}
    return boto3.client(service, **settings, endpoint_url=emulator.endpoint if emulator else None)


@pytest.fixture(scope="module")
def moto() -> Iterator[MockAWS]:
    """Started once a module: starting it costs more than most tests, emptying it next to nothing."""
    with pytest.MonkeyPatch.context() as patch, mock_aws(config={"lambda": {"use_docker": False}}) as started:
        quicken(patch)
        yield started


@pytest.fixture
def aws(moto: MockAWS, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty AWS account, in process."""
    moto.reset()
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """An emulator without a deployment."""
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("contracts"), keep_state=False)
    emulator.start()
    try:
        yield emulator
    finally:
        emulator.stop()


def scripted(name: str, service: str) -> Any:
    """A fixture: the service with scripted responses, all of which must be used."""

    @pytest.fixture(name=name)
    def stubber() -> Iterator[Stubber]:
        with Stubber(client(service)) as stubber:
            yield stubber
            stubber.assert_no_pending_responses()

    return stubber


apigateway = scripted("apigateway", "apigatewayv2")
cloudformation = scripted("cloudformation", "cloudformation")
cloudwatch = scripted("cloudwatch", "cloudwatch")
sqs = scripted("sqs", "sqs")
states = scripted("states", "stepfunctions")
sts = scripted("sts", "sts")


@pytest.fixture
def dynamodb(aws: None) -> DynamoDBClient:  # noqa: ARG001 - the account it is in
    return an_empty_table(client("dynamodb"))


def an_empty_table(dynamodb: DynamoDBClient) -> DynamoDBClient:
    """The table, with the keys and the index that the control plane gives it."""
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
    """The number of the next responses that are refused."""

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
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
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
        monkeypatch.setenv("BERTH_RESPONSE_URL_PREFIX", f"{heard.url}/")
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield heard
        server.shutdown()
        thread.join()


# One contract, kept by a fake and by the adapter on two kinds of AWS.


@dataclass(frozen=True)
class Account:
    """An AWS account, and nothing in it yet."""

    client: Callable[[str], Any]
    number: str


@pytest.fixture(params=["memory", "moto", "emulator"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def account(kind: str, request: pytest.FixtureRequest) -> Account | None:
    """An empty account of that kind; ``None`` in memory."""
    if kind == "memory":
        return None
    if kind == "moto":
        request.getfixturevalue("aws")
        return Account(client, "123456789012")
    emulator = request.getfixturevalue("emulator")
    empty(emulator)
    return Account(lambda service: client(service, emulator), ACCOUNT)


def empty(emulator: Emulator) -> None:
    """Delete everything in the emulator."""
    # The emulator is never behind this machine's proxy.
    opener = build_opener(ProxyHandler({}))
    key = emulator.session_settings()
    signed = AWSRequest("POST", f"{emulator.endpoint}/_ministack/reset")
    SigV4Auth(Credentials(key["aws_access_key_id"], key["aws_secret_access_key"]), "s3", REGION).add_auth(signed)
    with opener.open(Request(signed.url, method="POST", headers=dict(signed.headers.items())), timeout=10):
        pass


@pytest.fixture
def rows(account: Account | None) -> DynamoDBClient | None:
    return an_empty_table(account.client("dynamodb")) if account else None


@pytest.fixture
def table(rows: DynamoDBClient | None) -> Table:
    return WholeTable(rows, TABLE) if rows else InMemoryTable()


@pytest.fixture
def ledger(rows: DynamoDBClient | None) -> RolloutLedger:
    return RolloutTable(rows, TABLE) if rows else InMemoryRollouts()


@pytest.fixture
def legacy(table: Table, rows: DynamoDBClient | None) -> Legacy:
    if isinstance(table, InMemoryTable):
        return legacy_in_memory(table)
    assert rows
    return legacy_in_dynamodb(rows)


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
        row = {"pk": f"TENANT_ID#{tenant}", "sk": sort_key, **attributes}
        dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})

    def put_metadata(tenant: TenantId) -> None:
        put(
            tenant,
            "METADATA",
            CreatedAt="2020-08-31T16:02:16.808Z",
            UpdateAt="2020-08-31T16:02:16.808Z",
            Version=LEGACY_VERSION,
            OutboundQueueArn=LEGACY_OUTBOUND_QUEUE.arn,
            OutboundQueueUrl=LEGACY_OUTBOUND_QUEUE.url,
            InboundQueueArn=LEGACY_QUEUE.arn,
            InboundQueueUrl=LEGACY_QUEUE.url,
        )

    def put_audit(operation: Operation, status: Status, version: str | None) -> None:
        sort_key = f"AUDIT#{operation}" + (f"#{version}" if version else "")
        put(ACME, sort_key, Execution="arn:legacy", Status=status, UpdatedAt="2020-08-31T16:02:16.808Z")

    return Legacy(put_metadata, put_audit)
