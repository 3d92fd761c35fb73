"""A tenant of the deployed event plane whose events are delivered, and what can be done to the functions that do it."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import Attempt, DispatchedEvent
from orchestrator.events.records import TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.present import present

ENDED = frozenset({EventStatus.DELIVERED, EventStatus.FAILED})

_TWICE = """
import boto3, json

def handler(event, _context):
    lambdas = boto3.client("lambda")
    for _ in range(2):
        answer = lambdas.invoke(FunctionName="{function}", Payload=json.dumps(event))
        assert "FunctionError" not in answer, answer["Payload"].read()
    return json.loads(answer["Payload"].read())
"""


class Delivering:
    """A tenant with settings and a key. It has no inbox, so an event is delivered once all connections have it."""

    def __init__(self, berth: Deployed, tenant: TenantId, operator: Deployed | None = None) -> None:
        self.berth = berth
        self.api = EventsApi(operator or berth, tenant)
        self._tenant = tenant
        self.api.operate("PUT", "/settings", {"plan": "pro", "inbox": False})
        self._key = self.api.operate("POST", "/keys", {"name": "e2e", "scopes": ["write"]})["key"]

    # The tenant

    def connect(self, name: str, **fields: Any) -> dict[str, Any]:
        created: dict[str, Any] = self.api.operate("POST", "/connections", {"name": name, **fields})
        return created

    def change(self, connection: dict[str, Any], action: str) -> None:
        self.api.operate("POST", f"/connections/{connection['connection_id']}/{action}", {})

    def disconnect(self, *connections: dict[str, Any]) -> None:
        for each in connections:
            self.api.operate("DELETE", f"/connections/{each['connection_id']}", {})

    def send(self, payload: object, event_type: str = "order.created") -> str:
        """Returns the id of the event."""
        body = json.dumps({"event_type": event_type, "payload": payload}).encode()
        given = {"X_Api_Key": self._key, "Content_Type": "application/json"}
        status, _, answer = self.api.send("POST", "/events", body, **given)
        assert status == 202, answer
        return str(answer["event_id"])

    def from_own_queue(self, count: int) -> list[dict[str, Any]]:
        """Messages in the tenant's own queue, which are deleted."""
        url, sqs = self.berth.ask(self._tenant).body["queueUrl"], self.berth.client("sqs")
        found: list[dict[str, Any]] = []

        def look() -> bool | None:
            answer = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10, MessageAttributeNames=["All"])
            for message in answer.get("Messages", []):
                found.append(json.loads(message["Body"]))
                sqs.delete_message(QueueUrl=url, ReceiptHandle=message["ReceiptHandle"])
            return True if len(found) >= count else None

        eventually(look, what=f"{count} messages in the tenant's queue")
        return found

    # The rows

    @property
    def life(self) -> TenantEpoch:
        row = self.berth.client("dynamodb").get_item(
            TableName=self.berth.outputs["TableName"],
            Key={"pk": {"S": f"EVENTS#{self._tenant}"}, "sk": {"S": "CONFIG#main"}},
        )["Item"]
        return TenantEpoch(self._tenant, row["epoch"]["S"])

    @property
    def table(self) -> DynamoDeliveries:
        return DynamoDeliveries(self.berth.client("dynamodb"), self.api.outputs["EventsTableName"])

    def event(self, event_id: str) -> DispatchedEvent:
        return present(self.table.event(self.life, event_id))

    def ended(self, event_id: str) -> DispatchedEvent:
        def look() -> DispatchedEvent | None:
            event = self.event(event_id)
            return event if event.event.status in ENDED else None

        return eventually(look, what=f"event {event_id} is delivered or failed", pause=0.5)

    def attempts(self, event_id: str) -> Sequence[Attempt]:
        return self.table.attempts(self.life, event_id)


# Faults


@contextmanager
def messages_come_again_soon(berth: Deployed, api: EventsApi) -> Iterator[None]:
    """A message that a function did not handle comes again after 360 seconds. Within this block, after two."""
    sqs, name = berth.client("sqs"), "VisibilityTimeout"
    urls = [api.outputs[output] for output in ("FirstQueueUrl", "LaterQueueUrl")]
    before = {url: sqs.get_queue_attributes(QueueUrl=url, AttributeNames=[name])["Attributes"][name] for url in urls}
    for url in urls:
        sqs.set_queue_attributes(QueueUrl=url, Attributes={name: "2"})
    try:
        yield
    finally:
        for url, value in before.items():
            sqs.set_queue_attributes(QueueUrl=url, Attributes={name: value})


def kill(berth: Deployed, function: str) -> int:
    """Kill the processes of a function, and return their number."""
    name = berth.function(function)
    return berth.kill_processes_of(lambda found: found == name)


@contextmanager
def everything_twice(berth: Deployed) -> Iterator[None]:
    """Within this block, each batch of the stream and of the queues is handed over twice."""
    functions = berth.client("lambda")
    added, replaced = [], []
    for name in ("dispatch_events", "deliver_events"):
        function = berth.function(name)
        twice = _function_that_calls_twice(berth, function, f"twice-{name}")
        for mapping in functions.list_event_source_mappings(FunctionName=function)["EventSourceMappings"]:
            functions.update_event_source_mapping(UUID=mapping["UUID"], Enabled=False)
            replaced.append(mapping["UUID"])
            options = {
                each: mapping[each]
                for each in ("EventSourceArn", "BatchSize", "FunctionResponseTypes", "FilterCriteria")
                if mapping.get(each)
            }
            if "/stream/" in mapping["EventSourceArn"]:
                options["StartingPosition"] = "LATEST"
            added.append(functions.create_event_source_mapping(FunctionName=twice, **options)["UUID"])
    try:
        yield
    finally:
        for each in added:
            functions.delete_event_source_mapping(UUID=each)
        for each in replaced:
            functions.update_event_source_mapping(UUID=each, Enabled=True)


def _function_that_calls_twice(berth: Deployed, function: str, name: str) -> str:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as code:
        code.writestr("twice.py", _TWICE.format(function=function))
    berth.client("lambda").create_function(
        FunctionName=name,
        Runtime="python3.13",
        Role=f"arn:aws:iam::000000000000:role/{name}",
        Handler="twice.handler",
        Timeout=60,
        Code={"ZipFile": archive.getvalue()},
    )
    return name
