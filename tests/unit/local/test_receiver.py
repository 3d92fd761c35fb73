"""The demo's receiver of webhooks."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from urllib.error import HTTPError
from urllib.request import ProxyHandler, Request, build_opener

from orchestrator.events.delivery.signing import new_signing_secret, signature_headers
from orchestrator.local.receiver import Hook, Receiver

BODY = b'{"order": 42}'


def post(url: str, headers: Mapping[str, str]) -> int:
    try:
        with build_opener(ProxyHandler({})).open(Request(url, BODY, dict(headers), method="POST")) as response:
            return int(response.status)
    except HTTPError as error:
        with error:
            return error.code


def signed(secret: str) -> Mapping[str, str]:
    return signature_headers("msg_1", BODY, [secret], datetime.now(UTC))


def test_it_fails_as_often_as_it_is_told_and_then_takes_what_is_signed() -> None:
    with Receiver.on_loopback(failures=1) as receiver:
        receiver.secret = new_signing_secret()
        assert [post(receiver.url, signed(receiver.secret)) for _ in range(2)] == [503, 200]
        assert [receiver.next(), receiver.next()] == [
            Hook("msg_1", '{"order": 42}', is_signed=True, answer=503),
            Hook("msg_1", '{"order": 42}', is_signed=True, answer=200),
        ]


def test_it_refuses_a_wrong_signature_and_one_that_is_missing() -> None:
    with Receiver.on_loopback(failures=0) as receiver:
        receiver.secret = new_signing_secret()
        assert post(receiver.url, signed(new_signing_secret())) == 401
        assert post(receiver.url, {}) == 401
        assert not receiver.next().is_signed


def test_only_this_machine_can_reach_it() -> None:
    with Receiver.on_loopback(failures=0) as receiver:
        assert receiver.url.startswith("http://127.0.0.1:")
