"""The routes that show deliveries, resend events and replay them: for tenants with a key, and for operators."""

from __future__ import annotations

import importlib
import json
import threading
from collections.abc import Sequence
from concurrent.futures import Future
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.adapters.delivery_queues import to_wire
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.adapters.dynamodb.event_keys import EVENTS_PREFIX, connection_key
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Attempt,
    Connection,
    Delivery,
    DeliveryRef,
    DeliveryState,
    TryResult,
    Verdict,
)
from orchestrator.events.delivery.resending import Resending
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.records import TenantEpoch
from stacks.common.function_code import module_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.functions import ADA, EventFunctions, http_event
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import ACME
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_sqs import SQSClient

GLOBEX = TenantId.parse("globex")
_PATIENCE = 30.0
"""Seconds that a test waits for another thread."""


class Context:
    def get_remaining_time_in_millis(self) -> int:
        return 50_000


class Scene:
    """The tenant acme, with a connection to its own queue."""

    def __init__(self, functions: EventFunctions) -> None:
        self.functions = functions
        self.key = functions.key()
        created = functions.ask("POST /connections", self.key, body={"name": "orders"})
        assert created.status == 201, created.body
        self.connection: str = created.body["connection_id"]
        self.table = DynamoDeliveries(functions.dynamodb, EVENTS_TABLE)
        (settings,) = (row for row in functions.rows if row["pk"]["S"] == f"{EVENTS_PREFIX}{ACME}")
        self.life = TenantEpoch(ACME, settings["epoch"]["S"])

    def send(self) -> str:
        self.functions.clock.advance(timedelta(milliseconds=1))
        event = http_event("POST /events", key=self.key, body={"event_type": "order.created", "payload": {}})
        return str(self.functions.call("ingest", event).body["event_id"])

    def failed(self) -> str:
        """An event whose delivery has failed."""
        return self._tried(DeliveryState.FAILED, ended_at=self.functions.clock.now() + timedelta(milliseconds=1))

    def retrying(self) -> str:
        """An event whose delivery has failed, and is tried again."""
        return self._tried(
            DeliveryState.RETRYING, dispatched=True, due=self.functions.clock.now() + timedelta(minutes=5)
        )

    def _tried(self, state: DeliveryState, *, dispatched: bool = False, **times: datetime) -> str:
        event_id, now = self.send(), self.functions.clock.now()
        event = present(self.table.event(self.life, event_id))
        if dispatched:
            assert self.table.apply(transitions.note_recipients(event, [self.connection], in_inbox=True))
            event = present(self.table.event(self.life, event_id))
        ref = DeliveryRef(self.life, event_id, self.connection)
        expires_at = event.event.expires_at
        failed = Delivery(ref, state, 1, now, expires_at, code=500, reason="out of order", **times)
        attempt = Attempt(
            ref, 1, now, delivered=False, code=500, milliseconds=3, text="out of order", expires_at=expires_at
        )
        assert self.table.apply(transitions.tried(event, None, failed, attempt))
        return event_id

    def filtered(self) -> str:
        """An event that no connection wants."""
        event_id = self.send()
        event = present(self.table.event(self.life, event_id))
        assert self.table.apply(transitions.note_recipients(event, [], in_inbox=False))
        return event_id

    def ask(self, route: str, **more: Any) -> Any:
        return self.functions.ask(route, self.key, **more)

    def sweep(self) -> None:
        importlib.import_module(module_of("sweep_deliveries")).handler({}, Context())

    def connections(self) -> Sequence[Connection]:
        ports = importlib.import_module("lambdas.event_runtime").use_cases.ports
        found: Sequence[Connection] = ports.connections.of_origin(self.life, API_ORIGIN)
        return found

    def messages(self) -> list[dict[str, Any]]:
        """The messages for other tries. None may be in the queue of first tries."""
        sqs: SQSClient = client("sqs")
        found = {}
        for name in ("first", "later"):
            url = sqs.get_queue_url(QueueName=name)["QueueUrl"]
            found[name] = sqs.receive_message(QueueUrl=url, MaxNumberOfMessages=10).get("Messages", [])
        assert found["first"] == []
        return [json.loads(each["Body"]) for each in found["later"]]


@pytest.fixture
def scene(event_functions: EventFunctions) -> Scene:
    return Scene(event_functions)


def test_the_attempts_of_an_event_are_shown(scene: Scene) -> None:
    event_id = scene.failed()
    answer = scene.ask("GET /events/{eventId}/attempts", ids={"eventId": event_id})
    now = event_timestamp(scene.functions.clock.now())
    delivery = {
        "event_id": event_id,
        "connection_id": scene.connection,
        "connection_name": "orders",
        "status": "failed",
        "tries": 1,
        "at": now,
        "due_at": None,
        "code": 500,
        "reason": "out of order",
        "resend": False,
    }
    assert (answer.status, answer.body["deliveries"]) == (200, [delivery])
    assert answer.body["attempts"] == [
        {
            "connection_id": scene.connection,
            "connection_name": "orders",
            "number": 1,
            "at": now,
            "delivered": False,
            "code": 500,
            "milliseconds": 3,
            "answer": "out of order",
            "resend": False,
        }
    ]
    by_operator = scene.functions.operate("GET /events/{eventId}/attempts", ids={"eventId": event_id})
    assert by_operator.body == answer.body


def test_failed_deliveries_of_a_connection_are_listed(scene: Scene) -> None:
    event_ids = [scene.failed() for _ in range(3)]
    ids = {"connectionId": scene.connection}
    first = scene.ask("GET /connections/{connectionId}/deliveries", ids=ids, query={"limit": "2"})
    assert [each["event_id"] for each in first.body["deliveries"]] == event_ids[:0:-1]
    assert {each["connection_name"] for each in first.body["deliveries"]} == {"orders"}
    more = {"limit": "2", "cursor": first.body["cursor"], "status": "failed"}
    second = scene.ask("GET /connections/{connectionId}/deliveries", ids=ids, query=more)
    assert ([each["event_id"] for each in second.body["deliveries"]], second.body["cursor"]) == ([event_ids[0]], None)


@pytest.mark.parametrize("status", ["retrying", "delivered", "nonsense"])
def test_other_deliveries_are_not_listed_by_connection(scene: Scene, status: str) -> None:
    ids = {"connectionId": scene.connection}
    answer = scene.ask("GET /connections/{connectionId}/deliveries", ids=ids, query={"status": status})
    assert (answer.status, answer.kind) == (400, "invalid-request")
    assert "failed" in answer.body["detail"]


@pytest.mark.parametrize("query", [{}, {"event_type": "order.created"}], ids=["by status", "by type"])
def test_lists_go_by_the_status_that_is_shown(scene: Scene, query: dict[str, str]) -> None:
    event_id = scene.retrying()

    def listed(status: str) -> dict[str, str]:
        answer = scene.ask("GET /events", query={"status": status, **query})
        return {each["event_id"]: each["status"] for each in answer.body["events"]}

    assert (listed("undelivered"), listed("retrying")) == ({event_id: "undelivered"}, {})
    scene.ask("POST /inbox/ack", body={"event_ids": [event_id]})
    assert (listed("undelivered"), listed("retrying")) == ({}, {event_id: "retrying"})


def test_the_name_of_a_connection_that_is_gone_is_unknown(scene: Scene) -> None:
    event_id = scene.failed()
    scene.functions.dynamodb.delete_item(TableName=TABLE, Key=connection_key(scene.life, API_ORIGIN, scene.connection))
    answer = scene.ask("GET /events/{eventId}/attempts", ids={"eventId": event_id})
    for each in (*answer.body["deliveries"], *answer.body["attempts"]):
        assert (each["connection_id"], each["connection_name"]) == (scene.connection, None)


def test_an_event_is_resent(scene: Scene) -> None:
    event_id = scene.failed()
    answer = scene.ask("POST /events/{eventId}/resend", ids={"eventId": event_id})
    assert answer.status == 202
    assert answer.body["results"] == [{"connection_id": scene.connection, "result": "sent"}]
    assert len(scene.messages()) == 1
    named = {"connection_id": scene.connection}
    again = scene.functions.operate("POST /events/{eventId}/resend", ids={"eventId": event_id}, body=named)
    assert (again.status, again.body["results"][0]["result"]) == (202, "due")


def test_an_event_of_which_nothing_failed_is_refused(scene: Scene) -> None:
    answer = scene.ask("POST /events/{eventId}/resend", ids={"eventId": scene.send()})
    assert (answer.status, answer.kind) == (409, "nothing-to-resend")


def test_a_replay_is_started_moved_on_and_shown(scene: Scene) -> None:
    scene.failed()
    scene.functions.clock.advance(timedelta(minutes=1))
    since = event_timestamp(scene.functions.clock.now() - timedelta(hours=1))
    started = scene.ask("POST /replays", body={"connection_id": scene.connection, "since": since})
    assert (started.status, started.body["status"], started.body["percent"]) == (202, "running", 0)
    scene.sweep()
    shown = scene.ask("GET /replays/{replayId}", ids={"replayId": started.body["replay_id"]})
    assert [shown.body[name] for name in ("status", "percent", "looked_at", "sent")] == ["finished", 100, 1, 1]
    assert len(scene.messages()) == 1
    assert scene.ask("GET /replays").body == {"replays": [shown.body], "cursor": None}


def test_a_resume_sends_what_is_parked_at_once(scene: Scene) -> None:
    event_id, ids = scene.failed(), {"connectionId": scene.connection}
    scene.ask("POST /connections/{connectionId}/pause", ids=ids)
    body = {"connection_id": scene.connection}
    answer = scene.ask("POST /events/{eventId}/resend", ids={"eventId": event_id}, body=body)
    assert (answer.body["results"][0]["result"], scene.messages()) == ("parked", [])
    assert scene.ask("POST /connections/{connectionId}/resume", ids=ids).body["status"] == "active"
    assert [each["event_id"] for each in scene.messages()] == [event_id]


def test_a_resume_succeeds_though_nothing_can_be_sent_at_once(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise ValueError("a row that nobody can read")

    ids = {"connectionId": scene.connection}
    scene.ask("POST /connections/{connectionId}/pause", ids=ids)
    monkeypatch.setattr(Resending, "wake", fail)
    assert scene.ask("POST /connections/{connectionId}/resume", ids=ids).status == 200


def test_a_replay_is_paused_resumed_and_cancelled(scene: Scene) -> None:
    since = event_timestamp(scene.functions.clock.now() - timedelta(hours=1))
    started = scene.functions.operate("POST /replays", body={"origin": "api", "since": since})
    assert started.body["created_by"] == ADA
    ids = {"replayId": started.body["replay_id"]}
    for order, status in (("pause", "paused"), ("resume", "running"), ("cancel", "cancelled"), ("cancel", "cancelled")):
        answer = scene.ask(f"POST /replays/{{replayId}}/{order}", ids=ids)
        assert (answer.status, answer.body["status"], answer.body["created_by"]) == (200, status, "operator")
    ended = scene.ask("POST /replays/{replayId}/resume", ids=ids)
    assert (ended.status, ended.kind) == (409, "replay-ended")


def test_another_tenants_ids_are_unknown(scene: Scene) -> None:
    event_id = scene.failed()
    since = event_timestamp(scene.functions.clock.now() - timedelta(hours=1))
    replay_id = scene.ask("POST /replays", body={"origin": "api", "since": since}).body["replay_id"]
    stranger = scene.functions.key(tenant="globex")
    named = {"connection_id": scene.connection}
    for route, ids, body, kind in (
        ("GET /events/{eventId}/attempts", {"eventId": event_id}, None, "unknown-event"),
        ("POST /events/{eventId}/resend", {"eventId": event_id}, named, "unknown-event"),
        ("GET /connections/{connectionId}/deliveries", {"connectionId": scene.connection}, None, "no-such-connection"),
        ("POST /replays", {}, {**named, "since": since}, "no-such-connection"),
        ("GET /replays/{replayId}", {"replayId": replay_id}, None, "no-such-replay"),
        ("POST /replays/{replayId}/cancel", {"replayId": replay_id}, None, "no-such-replay"),
    ):
        answer = scene.functions.ask(route, stranger, ids=ids, body=body)
        assert (answer.status, answer.kind) == (404, kind), route
    assert scene.functions.ask("GET /replays", stranger).body["replays"] == []
    assert scene.messages() == []


def test_keys_that_only_read_send_nothing_again(scene: Scene) -> None:
    reader = scene.functions.key("read", "write")
    event_id = scene.failed()
    shown = scene.functions.ask("GET /events/{eventId}/attempts", reader, ids={"eventId": event_id})
    assert shown.status == 200
    for route, ids in (("POST /events/{eventId}/resend", {"eventId": event_id}), ("POST /replays", {})):
        refused = scene.functions.ask(route, reader, ids=ids)
        assert (refused.status, refused.kind) == (403, "missing-scope")


def test_a_receiver_that_hangs_is_noted_before_its_try_has_ended(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    deliver_events = importlib.import_module(module_of("deliver_events"))
    started, noted = threading.Event(), threading.Event()

    class Hanging:
        def send(self, _outgoing: object) -> TryResult:
            started.set()
            assert noted.wait(_PATIENCE)
            return TryResult(Verdict.DELIVERED, 4_000, 200, "")

    note_slow, real_wait = deliver_events.delivering.note_slow, deliver_events.wait

    def note() -> None:
        note_slow()
        noted.set()

    def wait_a_little(tries: Sequence[Future[str]], timeout: float) -> object:
        assert timeout == 2.0
        assert started.wait(_PATIENCE)
        return real_wait(tries, timeout=0)

    monkeypatch.setattr(deliver_events.delivering, "_sender", Hanging())
    monkeypatch.setattr(deliver_events.delivering, "note_slow", note)
    monkeypatch.setattr(deliver_events, "wait", wait_a_little)
    message = DeliveryMessage(DeliveryRef(scene.life, scene.send(), scene.connection))
    records = {"Records": [{"messageId": "1", "body": to_wire(message)}]}
    assert deliver_events.handler(records, None) == {"batchItemFailures": []}
    (found,) = scene.connections()
    assert found.health.slow_since is not None
