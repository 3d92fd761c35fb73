"""The event plane's functions in this process, with their tables on an emulator of their own."""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3

from bench.event_settings import BUCKET, EVENTS_TABLE, FUNCTION_ENVIRONMENT, PROOF, TABLE
from bench.item_sizes import INDEXES
from bench.measure import silence
from orchestrator.adapters import aws
from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.adapters.dynamodb.keys import metadata_key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.configuring import SettingsChange
from orchestrator.events.configuring_keys import IssuedKey
from orchestrator.events.plans import Plan
from orchestrator.events.records import EventSettings, Scope
from orchestrator.local.emulator import Emulator, free_port

TENANT = TenantId.parse("0123456789abcdef0123456789abcdef0123")
"""As long as a UUID."""
DEFAULTS = SettingsChange(plan=Plan.PRO)


@dataclass(frozen=True)
class EventPlane:
    client: Any
    settings: EventSettings
    key: str

    def handler(self, function: str) -> Callable[[object, object], dict[str, Any]]:
        handler: Callable[[object, object], dict[str, Any]] = importlib.import_module(
            f"lambdas.events.{function}"
        ).handler
        return handler

    def request(self, route: str, **more: Any) -> dict[str, Any]:
        """The event that API Gateway sends for a request with the tenant's key."""
        return {
            "version": "2.0",
            "routeKey": route,
            "headers": {"authorization": f"Bearer {self.key}", "content-type": "application/json"},
            "requestContext": {"http": {"method": route.partition(" ")[0], "sourceIp": "192.0.2.1"}},
            "stageVariables": {"proof": PROOF},
            "isBase64Encoded": False,
            **more,
        }


@contextlib.contextmanager
def event_plane() -> Iterator[EventPlane]:
    with emulated_tables() as client:
        yield made(client)


@contextlib.contextmanager
def emulated_tables() -> Iterator[Any]:
    """Empty tables, on an emulator that the functions use from now on. Yields a client for them."""
    with tempfile.TemporaryDirectory() as home:
        emulator = Emulator(port=free_port(), home=Path(home), keep_state=False)
        emulator.start()
        try:
            os.environ.pop("AWS_PROFILE", None)  # A profile for AWS need not exist here.
            os.environ.update({**FUNCTION_ENVIRONMENT, **emulator.client_environment()})
            forget_clients()
            session = boto3.session.Session()
            client = session.client("dynamodb")
            make_tables(client)
            session.client("s3").create_bucket(Bucket=BUCKET)
            with silence():
                yield client
        finally:
            emulator.stop()


def forget_clients() -> None:
    """Clients of a measurement before are for an emulator that is gone. Functions make theirs when they are loaded."""
    aws._session.cache_clear()
    for name in [name for name in sys.modules if name.partition(".")[0] == "lambdas"]:
        del sys.modules[name]


def made(client: Any, tenant: TenantId = TENANT, change: SettingsChange = DEFAULTS) -> EventPlane:
    """A living tenant with settings and a key."""
    client.put_item(TableName=TABLE, Item={**metadata_key(tenant), "CreatedAt": {"S": "2026-01-01T00:00:00.000Z"}})
    use_cases = importlib.import_module("lambdas.event_runtime").use_cases
    settings = use_cases.configuring("bench").change_settings(tenant, change)
    issued = use_cases.configuring_keys("bench").create(settings, "bench", frozenset({Scope.READ, Scope.WRITE}))
    assert isinstance(issued, IssuedKey)
    # Read again, because making a key changes the settings' revision.
    found = DynamoConfiguration(client, TABLE).settings(tenant)
    assert found is not None
    return EventPlane(client, found, issued.text)


def make_tables(client: Any) -> None:
    """Both tables, with the keys that the stacks give them."""
    _make_table(client, TABLE, {})
    _make_table(client, EVENTS_TABLE, INDEXES)


def _make_table(client: Any, name: str, indexes: Mapping[str, tuple[str, str]]) -> None:
    attributes = ["pk", "sk", *(each for keys in indexes.values() for each in keys)]
    more: Any = {}
    if indexes:
        more["GlobalSecondaryIndexes"] = [
            {"IndexName": index, "KeySchema": _schema(*keys), "Projection": {"ProjectionType": "KEYS_ONLY"}}
            for index, keys in indexes.items()
        ]
    client.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        KeySchema=_schema("pk", "sk"),
        AttributeDefinitions=[{"AttributeName": each, "AttributeType": "S"} for each in attributes],
        **more,
    )


def _schema(pk: str, sk: str) -> list[dict[str, str]]:
    return [{"AttributeName": pk, "KeyType": "HASH"}, {"AttributeName": sk, "KeyType": "RANGE"}]


def body_of(response: Mapping[str, Any], status: int) -> dict[str, Any]:
    if response["statusCode"] != status:
        raise RuntimeError(f"Answered {response['statusCode']}: {response['body']}")
    body: dict[str, Any] = json.loads(response["body"])
    return body
