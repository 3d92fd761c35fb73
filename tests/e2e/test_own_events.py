"""Berth's own events: a change reaches other systems through the bus, and the connections of the operators' tenant."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.adapters.aws import SystemClock
from orchestrator.adapters.dynamodb.connections import DynamoConnectionChanges, DynamoConnections
from orchestrator.adapters.dynamodb.delivery_rows import delivery_row
from orchestrator.adapters.dynamodb.event_configuration import DynamoConfiguration
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.changes import BERTH, Recorder
from orchestrator.events.delivery.records import API_ORIGIN, Delivery, DeliveryRef, DeliveryState
from orchestrator.events.event_ids import new_event_id
from orchestrator.events.records import TenantEpoch
from tests.e2e.conftest import OPERATORS_TENANT
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.e2e.operators import delete, ended
from tests.fakes import NOON
from tests.present import present

TENANT = TenantId("announced")


class Inbox:
    """A queue, and the events that were received from it."""

    def __init__(self, berth: Deployed, url: str) -> None:
        self._sqs = berth.client("sqs")
        self._url = url
        self.details: list[dict[str, Any]] = []

    def receive(self, field: str, kind: str, tenant: TenantId) -> dict[str, Any]:
        """The event of this kind about this tenant. ``field`` of a message has the event."""

        def look() -> dict[str, Any] | None:
            found = self._sqs.receive_message(QueueUrl=self._url, MaxNumberOfMessages=10).get("Messages", [])
            for message in found:
                self._sqs.delete_message(QueueUrl=self._url, ReceiptHandle=message["ReceiptHandle"])
                self.details.append(json.loads(message["Body"])[field])
            about = [each for each in self.details if each["data"].get("tenant_id") == tenant.value]
            return next((each for each in about if each["kind"] == kind), None)

        return eventually(look, what=f"{kind} about {tenant}")


class Subscriber(Inbox):
    """A system that reacts to the events: a rule on the bus, with a queue as its target."""

    def __init__(self, berth: Deployed) -> None:
        url = berth.client("sqs").create_queue(QueueName="subscriber")["QueueUrl"]
        super().__init__(berth, url)
        events, bus = berth.client("events"), berth.names.own_events_bus
        described = self._sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["QueueArn"])["Attributes"]
        tenants = [TENANT.value, OPERATORS_TENANT.value]
        pattern = {"source": ["berth"], "detail": {"data": {"tenant_id": tenants}}}
        events.put_rule(Name="subscriber", EventBusName=bus, EventPattern=json.dumps(pattern))
        events.put_targets(Rule="subscriber", EventBusName=bus, Targets=[{"Id": "queue", "Arn": described["QueueArn"]}])

    def next(self, kind: str, tenant: TenantId = TENANT) -> dict[str, Any]:
        return self.receive("detail", kind, tenant)


class Operators(Inbox):
    """The operators' own tenant, with a connection to its queue."""

    def __init__(self, berth: Deployed) -> None:
        super().__init__(berth, berth.settled(OPERATORS_TENANT).body["queueUrl"])
        self.api = EventsApi(berth, OPERATORS_TENANT)
        self.api.operate("PUT", "/settings", {"plan": "free", "inbox": False})
        self.connection: str = self.api.operate("POST", "/connections", {"name": "on call"})["connection_id"]

    def next(self, kind: str, tenant: TenantId = TENANT) -> dict[str, Any]:
        return self.receive("payload", kind, tenant)


@pytest.fixture(scope="module")
def subscriber(berth: Deployed) -> Subscriber:
    return Subscriber(berth)


@pytest.fixture(scope="module")
def operators(berth: Deployed) -> Operators:
    return Operators(berth)


def test_a_tenants_life_is_published_and_delivered_to_the_operators_connection(
    berth: Deployed, subscriber: Subscriber, operators: Operators
) -> None:
    assert berth.settled(TENANT).status == 200
    provisioned = subscriber.next("tenant.provisioned")
    assert provisioned["control_plane"] == "Berth"
    assert provisioned["data"]["version"] == berth.outputs["Version"]
    assert ended(berth, delete(berth, TENANT)) == "SUCCEEDED"
    deleted = subscriber.next("tenant.deleted")
    assert deleted["id"] != provisioned["id"]
    assert operators.next("tenant.deleted") == deleted
    assert operators.next("tenant.provisioned") == provisioned


def test_a_delivery_that_failed_for_good_is_published(
    berth: Deployed, subscriber: Subscriber, operators: Operators
) -> None:
    delivery = Delivery(
        DeliveryRef(TenantEpoch(TENANT, "e1"), new_event_id(NOON, 0), "conn_1"),
        DeliveryState.FAILED,
        tries=8,
        first_try=NOON,
        expires_at=NOON,
        ended_at=NOON,
    )
    table = operators.api.outputs["EventsTableName"]
    berth.client("dynamodb").put_item(TableName=table, Item=delivery_row(delivery))
    assert subscriber.next("delivery.exhausted")["data"]["tries"] == 8
    assert operators.next("delivery.exhausted")["data"]["event_id"] == delivery.ref.event_id


def test_a_connection_that_is_disabled_is_published(
    berth: Deployed, subscriber: Subscriber, operators: Operators
) -> None:
    """This test is the last one: it disables the connection."""
    dynamodb, table = berth.client("dynamodb"), berth.outputs["TableName"]
    connections = DynamoConnections(dynamodb, table, report=pytest.fail)
    life = present(DynamoConfiguration(dynamodb, table).settings(OPERATORS_TENANT)).life
    connection = present(connections.connection(life, API_ORIGIN, operators.connection))
    changes = DynamoConnectionChanges(
        dynamodb,
        table,
        events_table=operators.api.outputs["EventsTableName"],
        recorder=Recorder(BERTH, SystemClock()),
    )
    assert changes.disable(connection, "410 Gone", SystemClock().now())
    disabled = subscriber.next("connection.disabled", OPERATORS_TENANT)
    assert (disabled["data"]["connection_id"], disabled["data"]["reason"]) == (operators.connection, "410 Gone")
