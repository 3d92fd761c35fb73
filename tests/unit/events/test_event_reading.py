"""Reading the requests that send events."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from orchestrator.api.event_reading import (
    BodyTooLarge,
    NotJson,
    api_key_of,
    correlation_id_of,
    idempotency_key_of,
    json_body,
    raw_body,
    sent_event,
    sent_events,
    source_ip_of,
)
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.content import MAX_BODY_BYTES


def request(body: object = None, **headers: str) -> dict[str, Any]:
    return {"headers": {name.replace("_", "-"): value for name, value in headers.items()}, "body": body}


def test_the_payload_is_kept_byte_for_byte() -> None:
    event = sent_event(b'{"event_type": "order.created", "payload":  {"b": 1.50,  "a": "\\u00e9", "a": 2} }')
    assert event.event_type == "order.created"
    assert bytes(event.payload) == b'{"b": 1.50,  "a": "\\u00e9", "a": 2}'


@pytest.mark.parametrize("event_type", ["", "a#b", " a", "a b", "x" * 129, "é", "-a", "a\n"])
def test_a_type_that_the_index_cannot_hold_is_refused(event_type: str) -> None:
    with pytest.raises(InvalidRequest, match="event_type"):
        sent_event(json.dumps({"event_type": event_type, "payload": {}}).encode())


@pytest.mark.parametrize("payload", ["1", "[]", '"text"', "null", "true"])
def test_a_payload_that_is_no_object_is_refused(payload: str) -> None:
    with pytest.raises(InvalidRequest, match="payload: is not an object"):
        sent_event(f'{{"event_type": "a", "payload": {payload}}}'.encode())


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"null",
        b'{"event_type": "a"}',
        b'{"payload": {}}',
        b'{"event_type": 7, "payload": {}}',
        b'{"event_type": "a", "payload": {}, "more": 1}',
        b'{"event_type": "a", "payload": {"n": NaN}}',
        b'{"event_type": "a", "payload": {}} trailing',
        b'{"event_type": "a", "payload": ' + b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"}",
    ],
)
def test_a_body_that_is_no_event_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidRequest):
        sent_event(body)


def test_a_payload_above_256_kb_is_too_large() -> None:
    largest = b'{"a":"' + b"x" * (MAX_BODY_BYTES - 8) + b'"}'
    assert len(sent_event(b'{"event_type":"a","payload":' + largest + b"}").payload) == MAX_BODY_BYTES
    with pytest.raises(BodyTooLarge, match="262,145 bytes"):
        sent_event(b'{"event_type":"a","payload":' + largest[:-2] + b'x"}}')


def test_each_event_of_a_batch_is_read_by_itself() -> None:
    texts = sent_events(b'{"events": [{"event_type": "a", "payload": {}}, 7]}')
    assert texts == [b'{"event_type": "a", "payload": {}}', b"7"]


@pytest.mark.parametrize("count", [0, 26])
def test_a_batch_has_1_to_25_events(count: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 25 events"):
        sent_events(json.dumps({"events": [{}] * count}).encode())


@pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "application/jsonx", ""])
def test_only_json_is_accepted(content_type: str) -> None:
    event = request("{}", content_type=content_type)
    if content_type:
        with pytest.raises(NotJson):
            json_body(event, 100)
    else:
        assert json_body(event, 100) == b"{}"


@pytest.mark.parametrize(
    "content_type", ["application/json", "application/json; charset=utf-8", "application/cloudevents+json"]
)
def test_json_has_several_names(content_type: str) -> None:
    assert json_body(request("{}", content_type=content_type), 100) == b"{}"


def test_bytes_arrive_as_they_were_sent() -> None:
    data = bytes(range(256))
    assert raw_body({"body": base64.b64encode(data).decode(), "isBase64Encoded": True}) == data
    assert raw_body({"body": "é"}) == "é".encode()
    assert raw_body({}) == b""


@pytest.mark.parametrize("event", [{"body": 7}, {"body": "%%%", "isBase64Encoded": True}, {"body": "\ud800"}])
def test_a_body_without_bytes_is_refused(event: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        raw_body(event)


def test_a_body_that_is_not_utf_8_is_no_json() -> None:
    event = {"body": base64.b64encode(b'{"a": "\xff"}').decode(), "isBase64Encoded": True}
    with pytest.raises(InvalidRequest, match="UTF-8"):
        json_body(event, 100)


def test_the_key_comes_in_either_header() -> None:
    assert api_key_of(request(authorization="Bearer bk_live_x")) == "bk_live_x"
    assert api_key_of(request(authorization="bearer bk_live_x")) == "bk_live_x"
    assert api_key_of(request(x_api_key="bk_live_x")) == "bk_live_x"
    assert api_key_of(request(authorization="Basic eDp5")) is None
    assert api_key_of({}) is None


def test_an_idempotency_key_is_printable() -> None:
    assert idempotency_key_of(request(idempotency_key="order-1")) == "order-1"
    assert idempotency_key_of(request()) is None
    for key in ("", "a b", "x" * 256, "é"):
        with pytest.raises(InvalidRequest, match="Idempotency-Key"):
            idempotency_key_of(request(idempotency_key=key))


def test_an_unusable_correlation_id_is_left_out() -> None:
    assert correlation_id_of(request(x_correlation_id="req-1")) == {"correlation_id": "req-1"}
    assert correlation_id_of(request(x_correlation_id="a b")) == {}
    assert correlation_id_of(request()) == {}


def test_the_source_address_is_api_gateways() -> None:
    assert source_ip_of({"requestContext": {"http": {"sourceIp": "192.0.2.1"}}}) == "192.0.2.1"
    assert source_ip_of({"requestContext": 7}) is None
