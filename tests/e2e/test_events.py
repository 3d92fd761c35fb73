"""Events through the deployed Events API: sent with a key, kept once, listed, read from the inbox, acknowledged."""

from __future__ import annotations

import json
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Attempt, Operation, Request
from tests.e2e.deployed import Deployed, eventually
from tests.e2e.events_api import EventsApi
from tests.e2e.operators import delete, ended

TENANT = TenantId("sending")
LARGE = "x" * 200_000


class Producer:
    """A tenant with an API key."""

    def __init__(self, berth: Deployed) -> None:
        self._api = EventsApi(berth, TENANT)
        self._api.operate("PUT", "/settings", {"plan": "pro"})
        self._key = self._api.operate("POST", "/keys", {"name": "e2e", "scopes": ["read", "write"]})["key"]

    def ask(self, method: str, path: str, document: object = None, **headers: str) -> tuple[int, Any]:
        body = b"" if document is None else json.dumps(document).encode()
        given = {"X_Api_Key": self._key, "Content_Type": "application/json"} | headers
        status, _, answer = self._api.send(method, path, body, **given)
        return status, answer

    def send(self, event_type: str, payload: object, **headers: str) -> dict[str, Any]:
        status, answer = self.ask("POST", "/events", {"event_type": event_type, "payload": payload}, **headers)
        assert status == 202, answer
        assert isinstance(answer, dict)
        return answer

    def ids(self, path: str) -> list[str]:
        status, answer = self.ask("GET", path)
        assert status == 200, answer
        return [event["event_id"] for event in answer["events"]]


@pytest.fixture(scope="module")
def producer(berth: Deployed) -> Producer:
    assert berth.settled(TENANT).status == 200
    return Producer(berth)


def test_an_event_is_sent_once_listed_and_acknowledged(producer: Producer) -> None:
    first = producer.send("order.created", {"order": 42}, Idempotency_Key="order-42")
    again = producer.send("order.created", {"order": 42}, Idempotency_Key="order-42")
    assert (first["repeated"], again["repeated"], again["event_id"]) == (False, True, first["event_id"])
    other = {"event_type": "order.created", "payload": {"order": 43}}
    assert producer.ask("POST", "/events", other, Idempotency_Key="order-42")[0] == 409
    large = producer.send("order.paid", {"large": LARGE})
    oldest_first = [first["event_id"], large["event_id"]]

    assert producer.ids("/events") == oldest_first[::-1]
    assert producer.ids("/events?event_type=order.paid") == oldest_first[1:]
    _, shown = producer.ask("GET", f"/events/{large['event_id']}")
    assert (shown["payload"], shown["status"]) == ({"large": LARGE}, "undelivered")

    assert producer.ids("/inbox") == oldest_first
    status, answer = producer.ask("POST", "/inbox/ack", {"event_ids": oldest_first[:1]})
    assert (status, [each["result"] for each in answer["results"]]) == (200, ["acknowledged"])
    assert producer.ids("/inbox") == oldest_first[1:]
    assert producer.ask("GET", f"/events/{first['event_id']}")[1]["status"] == "delivered"


def test_a_batch_with_a_bad_event_keeps_the_good_ones(producer: Producer) -> None:
    good, bad = {"event_type": "a", "payload": {}}, {"event_type": "a#b", "payload": {}}
    status, answer = producer.ask("POST", "/events/batch", {"events": [good, bad]})
    assert (status, answer["accepted"], answer["refused"]) == (202, 1, 1)
    assert [each["status_code"] for each in answer["results"]] == [202, 400]


def test_a_tenants_own_programs_get_credentials_for_its_events(berth: Deployed, producer: Producer) -> None:
    assert producer.send("a", {})
    issued = EventsApi(berth, TENANT).operate("POST", "/events/credentials", {})
    assert issued["table"] == EventsApi(berth, TENANT).outputs["EventsTableName"]
    assert all(each.startswith(f"TENANT_ID#{TENANT}#") for each in issued["partitions"])


def test_unfinished_events_stop_a_delete_whoever_starts_it(berth: Deployed, producer: Producer) -> None:
    producer.send("a", {})
    waiting = len(producer.ids("/inbox"))
    refused = delete(berth, TENANT)
    assert (refused.status, refused.body["type"]) == (409, "urn:berth:problem:queue-not-empty")
    assert refused.body["messages"] == {"inbox of events": {"visible": waiting, "inFlight": 0, "delayed": 0}}

    execution = berth.start(Attempt(TENANT, Operation.DELETE, berth.release, 1), Request(by="a test"))
    assert berth.ended(execution)["status"] == "FAILED"
    assert f"inbox of events: {waiting} visible" in str(berth.table.history(TENANT)[-1].root_cause)
    # The tenant is in service again.
    eventually(lambda: producer.ask("GET", "/inbox")[0] == 200 or None, what="the key works again", pause=1)


def test_a_deleted_tenants_key_stops(berth: Deployed, producer: Producer) -> None:
    """This test is the last one: it deletes the tenant."""
    producer.ask("POST", "/inbox/ack", {"event_ids": producer.ids("/inbox")})
    assert ended(berth, delete(berth, TENANT)) == "SUCCEEDED"

    def stopped() -> bool | None:
        event = {"event_type": "a", "payload": {}}
        return (producer.ask("POST", "/events", event)[0] == 401 and producer.ask("GET", "/events")[0] == 401) or None

    assert eventually(stopped, what="the end of the ten seconds for which a key is remembered", pause=1)
