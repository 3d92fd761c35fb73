"""Events are sent and read over HTTP: the functions themselves, with the events that API Gateway sends."""

from __future__ import annotations

import base64
import importlib
import json
import os
from datetime import timedelta
from typing import Any, NoReturn

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb.event_keys import CHANGES_PREFIX
from orchestrator.adapters.dynamodb.events import DynamoEventWrites
from orchestrator.adapters.event_ports import AwsEventPorts
from orchestrator.events.content import MAX_BODY_BYTES
from orchestrator.events.plans import MAX_BATCH
from orchestrator.events.rates import REQUESTS_SAVED_UP_SECONDS
from stacks.common.function_code import module_of
from tests.adapters.events.conftest import BUCKET, EVENTS_TABLE
from tests.adapters.events.functions import EventFunctions, HttpAnswer, http_event

ORDER = {"event_type": "order.created", "payload": {"order": 42}}


def send(
    functions: EventFunctions, key: str | None, body: object = ORDER, path: str = "/events", **more: Any
) -> HttpAnswer:
    functions.clock.advance(timedelta(milliseconds=1))
    return functions.call("ingest", http_event(f"POST {path}", key=key, body=body, **more))


def rows(functions: EventFunctions) -> list[dict[str, Any]]:
    """All rows but the record of changes of the configuration."""
    rows = functions.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]
    return [row for row in rows if not row["pk"]["S"].startswith(CHANGES_PREFIX)]


def test_an_event_is_accepted_and_read_again(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    answer = send(event_functions, key)
    assert answer.status == 202
    assert (answer.body["status"], answer.body["repeated"]) == ("undelivered", False)
    found = event_functions.ask("GET /events/{eventId}", key, ids={"eventId": answer.body["event_id"]})
    assert found.status == 200
    assert (found.body["event_type"], found.body["payload"]) == ("order.created", {"order": 42})
    assert found.body["source_ip"] == "192.0.2.1"
    assert found.body["timestamp"] == answer.body["timestamp"]


def test_a_payload_comes_back_byte_for_byte(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    text = '{"event_type": "a", "payload": {"price":  1.50, "price": 2, "name": "\\u00e9"}}'
    event_id = send(event_functions, key, text).body["event_id"]
    event = http_event("GET /events/{eventId}", key=key, ids={"eventId": event_id})
    result = importlib.import_module(module_of("tenant_events")).handler(event, None)
    assert '"payload":{"price":  1.50, "price": 2, "name": "\\u00e9"}' in result["body"]


def test_an_event_is_found_by_its_timestamp_and_id(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    sent = send(event_functions, key).body
    found = event_functions.ask(
        "GET /events/{eventId}", key, ids={"eventId": f"{sent['timestamp']}#{sent['event_id']}"}
    )
    assert found.body["event_id"] == sent["event_id"]


@pytest.mark.parametrize(
    ("body", "headers", "status", "kind"),
    [
        ("", {}, 400, "invalid-request"),
        ("not json", {}, 400, "invalid-request"),
        ({"event_type": "a#b", "payload": {}}, {}, 400, "invalid-request"),
        ({"event_type": "a"}, {}, 400, "invalid-request"),
        (ORDER, {"idempotency-key": "a b"}, 400, "invalid-request"),
        (ORDER, {"content-type": "text/plain"}, 415, "unsupported-media-type"),
        ({"event_type": "a", "payload": {"x": "y" * MAX_BODY_BYTES}}, {}, 413, "too-large"),
    ],
)
def test_a_bad_request_is_refused_and_writes_nothing(
    event_functions: EventFunctions, body: object, headers: dict[str, str], status: int, kind: str
) -> None:
    answer = send(event_functions, event_functions.key(), body, headers=headers)
    assert (answer.status, answer.kind) == (status, kind)
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert rows(event_functions) == []


def test_without_a_valid_key_nothing_is_accepted(event_functions: EventFunctions) -> None:
    event_functions.key()
    for key in (None, "bk_test_" + "x" * 43, "nonsense"):
        answer = send(event_functions, key)
        assert (answer.status, answer.kind) == (401, "unknown-key")
    assert rows(event_functions) == []


def test_a_key_without_the_scope_is_refused(event_functions: EventFunctions) -> None:
    reading, writing = event_functions.key("read"), event_functions.key("write")
    assert send(event_functions, reading).status == 403
    assert event_functions.ask("GET /events", writing).status == 403
    assert event_functions.ask("GET /inbox", reading).status == 200
    assert event_functions.ask("POST /inbox/ack", reading, body={"event_ids": []}).status == 403


def test_an_event_that_did_not_come_through_the_api_is_refused(event_functions: EventFunctions) -> None:
    event = http_event("POST /events", key=event_functions.key(), body=ORDER)
    event["stageVariables"] = {"proof": "guessed"}
    assert event_functions.call("ingest", event).status == 403
    assert event_functions.call("ingest", "nonsense").status == 403


def test_the_same_idempotency_key_is_one_event(event_functions: EventFunctions) -> None:
    key, headers = event_functions.key(), {"idempotency-key": "order-42"}
    first, second = (send(event_functions, key, headers=headers) for _ in range(2))
    assert first.body["event_id"] == second.body["event_id"]
    assert second.body["repeated"] is True
    other = send(event_functions, key, ORDER | {"payload": {"order": 43}}, headers=headers)
    assert (other.status, other.kind) == (409, "different-content")


def test_each_event_of_a_batch_has_its_own_outcome(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    batch = {"events": [ORDER, {"event_type": "#"}, ORDER, 7]}
    answer = send(event_functions, key, batch, "/events/batch")
    assert (answer.status, answer.body["accepted"], answer.body["refused"]) == (202, 2, 2)
    assert [each["status_code"] for each in answer.body["results"]] == [202, 400, 202, 400]
    assert len(rows(event_functions)) == 2


def test_a_failure_in_the_middle_of_a_batch_does_not_hide_what_was_accepted(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the caller would send the whole batch again, and the first events would be there twice."""
    key, write = event_functions.key(), DynamoEventWrites.put
    left = iter([True, False, True])

    def fail_once(writes: DynamoEventWrites, *given: Any, **more: Any) -> None:
        if not next(left):
            raise ClientError({"Error": {"Code": "InternalServerError"}}, "PutItem")
        write(writes, *given, **more)

    with monkeypatch.context() as patch:
        patch.setattr(DynamoEventWrites, "put", fail_once)
        answer = send(event_functions, key, {"events": [ORDER, ORDER, ORDER]}, "/events/batch")
    assert answer.status == 202
    assert (answer.body["accepted"], answer.body["refused"]) == (1, 2)
    assert [each["status_code"] for each in answer.body["results"]] == [202, 503, 503]
    assert len(rows(event_functions)) == 1


def test_a_batch_of_which_nothing_was_accepted_fails_as_a_whole(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ClientError({"Error": {"Code": "InternalServerError"}}, "PutItem")

    key = event_functions.key()
    monkeypatch.setattr(DynamoEventWrites, "put", fail)
    with pytest.raises(ClientError):
        send(event_functions, key, {"events": [{"event_type": "#"}, ORDER, ORDER]}, "/events/batch")


def test_the_key_of_a_batch_is_no_key_of_a_single_event(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    send(event_functions, key, {"events": [ORDER]}, "/events/batch", headers={"idempotency-key": "order"})
    for number in range(2):
        answer = send(event_functions, key, headers={"idempotency-key": f"order#{number}"})
        assert (answer.status, answer.body["repeated"]) == (202, False)


def test_a_batch_that_is_sent_again_is_accepted_once(event_functions: EventFunctions) -> None:
    key, headers = event_functions.key(), {"idempotency-key": "batch-1"}
    batch = {"events": [ORDER, ORDER | {"event_type": "other"}]}
    first, second = (send(event_functions, key, batch, "/events/batch", headers=headers) for _ in range(2))

    def ids(answer: HttpAnswer) -> list[str]:
        return [each["event"]["event_id"] for each in answer.body["results"]]

    assert ids(first) == ids(second)
    assert len(set(ids(first))) == 2


def test_a_tenant_over_its_plan_is_told_when_to_come_back(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AwsEventPorts, "monotonic", lambda _: 1000.0)
    key = event_functions.key()  # On the plan free: 10 events per second, and 25 at once.
    answers = [send(event_functions, key) for _ in range(MAX_BATCH + 1)]
    assert [answer.status for answer in answers] == [202] * MAX_BATCH + [429]
    assert (answers[-1].kind, answers[-1].headers["Retry-After"]) == ("over-plan", "1")


def test_a_batch_is_accepted_in_full_when_it_is_sent_again_after_the_wait(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr(AwsEventPorts, "monotonic", lambda _: now)
    key, headers = event_functions.key(), {"idempotency-key": "batch-1"}
    for _ in range(10):
        assert send(event_functions, key).status == 202
    batch = {"events": [ORDER] * MAX_BATCH}
    first = send(event_functions, key, batch, "/events/batch", headers=headers)
    assert (first.body["accepted"], first.body["refused"], first.headers["Retry-After"]) == (15, 10, "1")
    again = send(event_functions, key, batch, "/events/batch", headers=headers)
    # Those that were accepted before are, even while there is no room for any other.
    assert [each["status_code"] for each in again.body["results"]] == [202] * 15 + [429] * 10
    now += 1
    last = send(event_functions, key, batch, "/events/batch", headers=headers)
    assert (last.body["accepted"], "Retry-After" in last.headers) == (MAX_BATCH, False)
    assert send(event_functions, key).status == 429


def test_the_wait_is_as_long_as_all_refused_events_of_a_batch_take(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AwsEventPorts, "monotonic", lambda _: 1000.0)
    key, batch = event_functions.key(), {"events": [ORDER] * MAX_BATCH}
    answers = [send(event_functions, key, batch, "/events/batch") for _ in range(2)]
    assert [(each.body["refused"], each.headers.get("Retry-After")) for each in answers] == [(0, None), (25, "3")]


def test_an_event_that_was_refused_is_no_repetition_when_it_is_sent_again(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AwsEventPorts, "monotonic", lambda _: 1000.0)
    key, headers = event_functions.key(), {"idempotency-key": "order-1"}
    for _ in range(MAX_BATCH):
        send(event_functions, key)
    assert [send(event_functions, key, headers=headers).status for _ in range(2)] == [429, 429]


def test_a_withdrawn_tenants_key_stops(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    event_functions.withdraw()
    assert send(event_functions, key).status == 401
    assert event_functions.ask("GET /inbox", key).status == 401


def test_the_inbox_is_read_and_acknowledged(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    ids = [send(event_functions, key).body["event_id"] for _ in range(3)]
    page = event_functions.ask("GET /inbox", key, query={"limit": "2"})
    assert [event["event_id"] for event in page.body["events"]] == ids[:2]
    assert page.body["cursor"] == ids[1]
    acknowledged = event_functions.ask("POST /inbox/ack", key, body={"event_ids": ids[:2]})
    assert [each["result"] for each in acknowledged.body["results"]] == ["acknowledged"] * 2
    left = event_functions.ask("GET /inbox", key)
    assert [event["event_id"] for event in left.body["events"]] == ids[2:]
    delivered = event_functions.ask("GET /events", key, query={"status": "delivered"})
    assert {event["event_id"] for event in delivered.body["events"]} == set(ids[:2])


def test_an_inbox_that_is_off_says_so(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    event_functions.operate("PUT /settings", body={"inbox": False})
    answer = event_functions.operate("GET /inbox")
    assert (answer.status, answer.kind) == (409, "inbox-off")
    assert send(event_functions, key).status == 202


def test_an_operator_reads_any_tenants_events(event_functions: EventFunctions) -> None:
    event_id = send(event_functions, event_functions.key()).body["event_id"]
    listed = event_functions.operate("GET /events")
    assert [event["event_id"] for event in listed.body["events"]] == [event_id]
    event_functions.key(tenant="globex")
    assert event_functions.operate("GET /events", tenant="globex").body["events"] == []
    assert event_functions.operate("GET /events/{eventId}", tenant="globex", ids={"eventId": event_id}).status == 404


def test_a_key_reads_its_own_tenant_only(event_functions: EventFunctions) -> None:
    event_id = send(event_functions, event_functions.key()).body["event_id"]
    other = event_functions.key(tenant="globex")
    assert event_functions.ask("GET /events/{eventId}", other, ids={"eventId": event_id}).status == 404
    assert event_functions.ask("GET /events", other).body["events"] == []
    acknowledged = event_functions.ask("POST /inbox/ack", other, body={"event_ids": [event_id]})
    assert acknowledged.body["results"] == [{"event_id": event_id, "result": "unknown"}]


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "101"},
        {"cursor": "nonsense"},
        {"since": "yesterday!!"},
        {"until": "9999-12-31T23:59:59-14:00"},
        {"status": "lost"},
        {"event_type": "a", "source_id": "src_" + "0" * 24},
        {"kind": "all"},
        {"unknown": "1"},
    ],
)
def test_a_list_that_cannot_be_is_refused(event_functions: EventFunctions, query: dict[str, str]) -> None:
    answer = event_functions.ask("GET /events", event_functions.key(), query=query)
    assert (answer.status, answer.kind) == (400, "invalid-request")


def test_a_list_leaves_out_large_payloads_and_the_event_has_them(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    text = base64.b64encode(os.urandom(20_000)).decode()
    event_id = send(event_functions, key, {"event_type": "big", "payload": {"text": text}}).body["event_id"]
    (listed,) = event_functions.ask("GET /events", key).body["events"]
    assert listed["payload_omitted"] is True
    assert "payload" not in listed
    found = event_functions.ask("GET /events/{eventId}", key, ids={"eventId": event_id})
    assert found.body["payload"] == {"text": text}
    assert event_functions.ask("GET /inbox", key).body["events"][0]["payload"] == {"text": text}


def test_neither_key_nor_payload_is_logged(
    event_functions: EventFunctions,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "DEBUG")
    key = event_functions.key()
    send(event_functions, key, {"event_type": "a", "payload": {"card": "4242424242424242"}})
    send(event_functions, key, "not json 4242424242424242")
    event_functions.ask("GET /inbox", key)
    shown = capsys.readouterr()
    assert '"Asked about events"' in shown.out
    assert key not in shown.out + shown.err
    assert "4242424242424242" not in shown.out + shown.err


def test_the_bucket_has_what_the_row_names(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    text = base64.b64encode(os.urandom(20_000)).decode()
    send(event_functions, key, {"event_type": "big", "payload": {"text": text}})
    (row,) = rows(event_functions)
    s3 = importlib.import_module("tests.adapters.conftest").client("s3")
    (stored,) = s3.list_objects_v2(Bucket=BUCKET)["Contents"]
    assert stored["Key"] == row["payload_key"]["S"]


@pytest.mark.parametrize(
    ("route", "query"),
    [
        ("GET /inbox", {}),
        ("GET /events", {}),
        ("GET /events", {"event_type": "a"}),
        ("GET /events", {"status": "failed"}),
    ],
)
def test_a_cursor_that_nobody_was_given_is_refused(
    event_functions: EventFunctions, route: str, query: dict[str, str]
) -> None:
    forged = {**query, "cursor": "ffffffff-ffff-7fff-8fff-ffffffffffff"}
    assert event_functions.ask(route, event_functions.key(), query=forged).kind == "invalid-request"


LAMBDA_ANSWERS_WITH = 6 * 1024 * 1024


@pytest.mark.parametrize("route", ["GET /events", "GET /inbox"])
@pytest.mark.parametrize("character", ["\\", "\u00e9", "["], ids=["backslashes", "accents", "not JSON"])
def test_payloads_that_compress_well_do_not_make_an_answer_too_large(
    event_functions: EventFunctions, route: str, character: str
) -> None:
    key = event_functions.key()
    assert event_functions.operate("PUT /settings", body={"plan": "pro"}).status == 200
    source = event_functions.ask("POST /sources", key, body={"name": "any", "provider": "none"}).body["source_id"]
    text = character * ((MAX_BODY_BYTES - 100) // 2)
    hook = http_event(
        "POST /hooks/{sourceId}",
        ids={"sourceId": source},
        body=text if character == "[" else json.dumps({"a": text}, ensure_ascii=False),
        # A quotation mark takes four characters in the end: it is escaped as JSON, and again in Lambda's answer.
        headers={"x-note": '"' * 8000},
    )
    sent = [event_functions.call("receive", hook).body["event_id"] for _ in range(26)]
    shown: list[str] = []
    query = {"limit": "100"}
    while True:
        result = importlib.import_module(module_of("tenant_events")).handler(
            http_event(route, key=key, query=query), None
        )
        assert result["statusCode"] == 200
        assert len(json.dumps(result)) < LAMBDA_ANSWERS_WITH
        page = json.loads(result["body"])
        shown += [event["event_id"] for event in page["events"]]
        if page["cursor"] is None:
            break
        query = {"limit": "100", "cursor": page["cursor"]}
    assert sorted(shown) == sorted(sent)


def test_a_list_leaves_out_the_payloads_for_which_it_has_no_room(event_functions: EventFunctions) -> None:
    key = event_functions.key()
    for _ in range(6):
        send(event_functions, key, {"event_type": "a", "payload": {"a": "a" * 250_000}})
    listed = event_functions.ask("GET /events", key).body["events"]
    assert [event.get("payload_omitted", False) for event in listed] == [False] * 4 + [True] * 2
    last = event_functions.ask("GET /events/{eventId}", key, ids={"eventId": listed[-1]["event_id"]}).body
    assert len(last["payload"]["a"]) == 250_000


@pytest.mark.parametrize(
    "payload",
    ['{"a":' + "[" * 900 + "]" * 900 + "}", '{"a": ' + "1" * 5000 + "}", '{"a": 0.' + "1" * 5000 + "}"],
    ids=["nested deeply", "a long number", "a long fraction"],
)
def test_json_that_many_programs_cannot_read_is_shown_in_base64(event_functions: EventFunctions, payload: str) -> None:
    key = event_functions.key()
    assert send(event_functions, key, f'{{"event_type": "a", "payload": {payload}}}').status == 202
    for route in ("GET /events", "GET /inbox"):
        (event,) = event_functions.ask(route, key).body["events"]
        assert "payload" not in event
        assert base64.b64decode(event["payload_base64"]).decode() == payload


def test_a_tenant_that_asks_too_often_is_refused_and_others_are_not(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AwsEventPorts, "monotonic", lambda _: 1000.0)
    noisy, quiet = event_functions.key("read"), event_functions.key("read", tenant="globex")
    burst = 2 * REQUESTS_SAVED_UP_SECONDS
    answers = [event_functions.ask("GET /events", noisy) for _ in range(burst + 1)]
    assert [answer.status for answer in answers] == [200] * burst + [429]
    assert (answers[-1].kind, answers[-1].headers["Retry-After"]) == ("over-plan", "1")
    assert event_functions.ask("GET /keys", noisy).kind == "missing-scope"
    assert event_functions.ask("GET /events", quiet).status == 200
    assert event_functions.operate("GET /events").status == 200


def test_the_message_of_a_throttled_table_reaches_only_the_log_and_operators(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = event_functions.key()
    arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/berth"

    def throttled(**_: object) -> NoReturn:
        raise ClientError({"Error": {"Code": "ThrottlingException", "Message": f"Slow down: {arn}"}}, "GetItem")

    use_cases = importlib.import_module("lambdas.event_runtime").use_cases
    monkeypatch.setattr(use_cases.ports.configuration._client, "get_item", throttled)
    hook = http_event("POST /hooks/{sourceId}", ids={"sourceId": f"src_{'0' * 24}"}, body={})
    answers = [event_functions.call("receive", hook), send(event_functions, key), event_functions.ask("GET /keys", key)]
    assert [answer.kind for answer in answers] == ["try-again"] * 3
    assert not any(arn in answer.body["detail"] for answer in answers)
    assert arn in event_functions.operate("GET /keys").body["detail"]
