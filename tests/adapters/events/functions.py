"""The functions of the event plane that answer over HTTP, as Lambda calls them, on AWS in process."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters import aws as aws_clients
from orchestrator.adapters import event_ports
from orchestrator.adapters.dynamodb.event_keys import KEY_HASH_PREFIX
from orchestrator.common.callers import digest_of
from orchestrator.common.tenant_ids import TenantId
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE
from tests.adapters.handlers.functions import PROOF, session
from tests.fakes import ACME, FakeClock
from tests.functions import forget_functions

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ADA = "arn:aws:sts::123456789012:assumed-role/operator/ada"
GLOBEX = TenantId.parse("globex")


@dataclass(frozen=True)
class HttpAnswer:
    status: int
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def kind(self) -> str:
        """The kind of a problem."""
        return str(self.body.get("type", "")).rpartition(":")[2]


def http_event(
    route: str,
    *,
    ids: dict[str, str] | None = None,
    body: object = None,
    key: str | None = None,
    query: dict[str, str] | None = None,
    headers: dict[str, str] | None = None,
    by: str | None = None,
) -> dict[str, Any]:
    """An event of API Gateway: payload format 2.0, header names in lower case, no empty fields."""
    method, path = route.split(" ")
    for name, value in (ids or {}).items():
        path = path.replace(f"{{{name}}}", value)
    text = body if body is None or isinstance(body, str) else json.dumps(body)
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "rawPath": path,
        "rawQueryString": "",
        "headers": {
            "accept": "*/*",
            "host": "a1b2c3.execute-api.eu-west-1.amazonaws.com",
            **({"content-type": "application/json"} if text is not None else {}),
            **({"authorization": f"Bearer {key}"} if key else {}),
            **(headers or {}),
        },
        "requestContext": {
            "accountId": "123456789012",
            "apiId": "a1b2c3",
            "domainName": "a1b2c3.execute-api.eu-west-1.amazonaws.com",
            "http": {"method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "192.0.2.1"},
            "routeKey": route,
            "stage": "$default",
            **({"authorizer": {"iam": {"userArn": by}}} if by else {}),
        },
        "isBase64Encoded": False,
        "stageVariables": {"proof": PROOF},
    }
    if ids:
        event["pathParameters"] = ids
    if query:
        event["queryStringParameters"] = query
    if text is not None:
        event["body"] = text
    return event


@dataclass
class EventFunctions:
    dynamodb: DynamoDBClient
    clock: FakeClock

    def call(self, name: str, event: object) -> HttpAnswer:
        result = importlib.import_module(module_of(name)).handler(event, None)
        return HttpAnswer(result["statusCode"], result["headers"], json.loads(result["body"] or "{}"))

    def operate(self, route: str, *, tenant: str = "acme", **more: Any) -> HttpAnswer:
        """Call a route as an operator: ``GET /keys`` for the route below the tenant's id."""
        method, path = route.split(" ")
        ids = {"tenantId": tenant, **more.pop("ids", {})}
        event = http_event(f"{method} /tenants/{{tenantId}}{path}", ids=ids, by=ADA, **more)
        return self.call("event_operators", event)

    def ask(self, route: str, key: str | None, **more: Any) -> HttpAnswer:
        """Call a route as a tenant."""
        return self.call("tenant_events", http_event(route, key=key, **more))

    # Arranging

    def serve(self, tenant: TenantId = ACME, created_at: str = "2026-11-16T11:00:00.000Z") -> None:
        """Let the tenant be alive: what the event plane sees of it."""
        row = {"pk": f"TENANT_ID#{tenant}", "sk": "METADATA", "CreatedAt": created_at}
        self.dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})

    def withdraw(self, tenant: TenantId = ACME) -> None:
        self.dynamodb.update_item(
            TableName=TABLE,
            Key={"pk": {"S": f"TENANT_ID#{tenant}"}, "sk": {"S": "METADATA"}},
            UpdateExpression="SET WithdrawnBy = :by",
            ExpressionAttributeValues={":by": {"S": "arn:delete"}},
        )

    def key(self, *scopes: str, tenant: str = "acme") -> str:
        """A new key of the tenant, which is alive and has settings."""
        self.serve(TenantId.parse(tenant))
        assert self.operate("PUT /settings", tenant=tenant, body={}).status == 200
        answer = self.operate("POST /keys", tenant=tenant, body={"name": "tests", "scopes": list(scopes or ("admin",))})
        assert answer.status == 201, answer.body
        return str(answer.body["key"])

    @property
    def rows(self) -> list[dict[str, Any]]:
        return self.dynamodb.scan(TableName=TABLE)["Items"]

    @property
    def key_rows(self) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["pk"]["S"].startswith(KEY_HASH_PREFIX)]


@contextmanager
def event_functions_at(
    dynamodb: DynamoDBClient, clock: FakeClock, patch: pytest.MonkeyPatch
) -> Iterator[EventFunctions]:
    """The functions with the time of this clock. A function reads its settings and makes its clients when it is loaded,
    so it is loaded anew."""
    environment = {
        "BERTH_TABLE": TABLE,
        "BERTH_EVENTS_TABLE": EVENTS_TABLE,
        "BERTH_CONTENTS_BUCKET": BUCKET,
        "BERTH_EVENTS_ENVIRONMENT": "test",
        "BERTH_VERSION": "0.0.0",
        "BERTH_FIRST_QUEUE": client("sqs").create_queue(QueueName="first")["QueueUrl"],
        "BERTH_LATER_QUEUE": client("sqs").create_queue(QueueName="later")["QueueUrl"],
        "BERTH_SECRETS_KEY": client("kms").create_key()["KeyMetadata"]["Arn"],
        "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
        "BERTH_SERVICE": "berth",
        "BERTH_METRICS_NAMESPACE": "Berth",
        "AWS_LAMBDA_LOG_LEVEL": "FATAL",
    }
    for name, value in environment.items():
        patch.setenv(name, value)
    patch.setattr(aws_clients, "_session", session)
    patch.setattr(event_ports, "SystemClock", lambda: clock)
    forget_functions()
    yield EventFunctions(dynamodb, clock)
    forget_functions()
