"""Berth's own events: a change reaches other systems through the bus."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
from orchestrator.adapters.dynamodb.delivery_rows import delivery_row
from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.changes import BERTH, Recorder
from orchestrator.events.delivery.records import API_ORIGIN, Delivery, DeliveryRef, DeliveryState
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import TenantEpoch
from orchestrator.own_events.kinds import Kind, schema_of
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.e2e.operators import delete, ended
from tests.fakes import NOON
from tests.present import present

TENANT, CONNECTED = TenantId("announced"), TenantId("connected")


class Subscriber:
    """A system that reacts to the events: a rule on the bus, with a queue as its target."""

    def __init__(self, berth: Deployed) -> None:
        self._sqs = berth.client("sqs")
        self._url = self._sqs.create_queue(QueueName="subscriber")["QueueUrl"]
        self._events: list[dict[str, Any]] = []
        events, bus = berth.client("events"), berth.names.own_events_bus
        described = self._sqs.get_queue_attributes(QueueUrl=self._url, AttributeNames=["QueueArn"])["Attributes"]
        tenants = [TENANT.value, CONNECTED.value]
        pattern = {"source": ["berth"], "detail": {"data": {"tenant_id": tenants}}}
        events.put_rule(Name="subscriber", EventBusName=bus, EventPattern=json.dumps(pattern))
        events.put_targets(Rule="subscriber", EventBusName=bus, Targets=[{"Id": "queue", "Arn": described["QueueArn"]}])

    def next(self, kind: Kind, tenant: TenantId = TENANT) -> dict[str, Any]:
        """The data of the event of this kind about this tenant, which must be as its schema says."""

        def look() -> dict[str, Any] | None:
            found = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", [])
            for message in found:
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
                self._events.append(json.loads(message["Body"]))
            about = [each for each in self._events if each["detail"]["data"].get("tenant_id") == tenant.value]
            return next((each for each in about if each["detail-type"] == kind), None)

        event: dict[str, Any] = eventually(look, what=f"{kind} about {tenant}")
        detail: dict[str, Any] = event["detail"]
        Draft202012Validator(schema_of(kind)).validate(detail)
        assert (event["source"], detail["kind"], detail["control_plane"]) == ("berth", kind, "Berth")
        return detail


@pytest.fixture(scope="module")
def subscriber(berth: Deployed) -> Subscriber:
    return Subscriber(berth)


def test_the_create_and_the_delete_of_a_tenant_are_published(berth: Deployed, subscriber: Subscriber) -> None:
    assert berth.settled(TENANT).status == 200
    provisioned = subscriber.next(Kind.TENANT_PROVISIONED)
    assert provisioned["data"]["version"] == berth.release
    assert ended(berth, delete(berth, TENANT)) == "SUCCEEDED"
    assert subscriber.next(Kind.TENANT_DELETED)["id"] != provisioned["id"]


def test_a_delivery_that_failed_for_good_is_published(berth: Deployed, subscriber: Subscriber) -> None:
    delivery = Delivery(
        DeliveryRef(TenantEpoch(TENANT, "e1"), new_event_id(NOON, 0), "conn_1"),
        DeliveryState.FAILED,
        tries=8,
        first_try=NOON,
        expires_at=NOON,
        ended_at=NOON,
    )
    table = EventsApi(berth, TENANT).outputs["EventsTableName"]
    berth.client("dynamodb").put_item(TableName=table, Item=delivery_row(delivery))
    data = subscriber.next(Kind.DELIVERY_EXHAUSTED)["data"]
    assert (data["event_id"], data["tries"]) == (delivery.ref.event_id, 8)


def test_a_connection_that_is_disabled_is_published(berth: Deployed, subscriber: Subscriber) -> None:
    assert berth.settled(CONNECTED).status == 200
    api = EventsApi(berth, CONNECTED)
    api.operate("PUT", "/settings", {"plan": "free", "inbox": False})
    connection_id: str = api.operate("POST", "/connections", {"name": "on call"})["connection_id"]
    dynamodb, table = berth.client("dynamodb"), berth.outputs["TableName"]
    connections = DynamoConnections(dynamodb, table, report=pytest.fail)
    life = present(DynamoConfiguration(dynamodb, table).settings(CONNECTED)).life
    connection = present(connections.connection(life, API_ORIGIN, connection_id))
    changes = DynamoConnectionChanges(
        dynamodb, table, events_table=api.outputs["EventsTableName"], recorder=Recorder(BERTH, SystemClock())
    )
    assert changes.disable(connection, "410 Gone", SystemClock().now())
    data = subscriber.next(Kind.CONNECTION_DISABLED, CONNECTED)["data"]
    assert (data["connection_id"], data["reason"]) == (connection_id, "410 Gone")
