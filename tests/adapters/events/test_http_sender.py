"""Webhooks over loopback: to checked addresses only, within one deadline, whatever a receiver does."""

from __future__ import annotations

import gc
import random
import socket
import ssl
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from ipaddress import ip_address
from itertools import count
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from standardwebhooks import Webhook

from orchestrator.adapters import http_sender
from orchestrator.adapters.http_sender import (
    CLOSED,
    MAX_BODY_BYTES,
    NOT_ALLOWED,
    NOT_HTTP,
    NOT_RESOLVED,
    REFUSED,
    TOO_LONG,
    HttpWebhooks,
    public_certificates,
    resolve,
)
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.answers import MAX_TEXT, Failure, ReceiverResponse, try_result_of
from orchestrator.events.delivery.records import TryResult, Verdict
from orchestrator.events.delivery.signing import new_signing_secret
from orchestrator.events.delivery.webhook_request import WebhookRequest
from tests.fakes import NOON
from tests.fakes.receivers import (
    LOOPBACK,
    Authority,
    Connected,
    FakeNames,
    Received,
    Receiver,
    answers,
    closes,
    drips,
    hangs,
    http,
    never_ends,
    redirects_to,
    sends,
    sends_and_hangs,
    sends_session_tickets,
)
from tests.fakes.sending import SendingWorld, a_connection, encrypted, outgoing
from tests.unit.events.delivery.test_addresses import INSIDE, MALFORMED
from tests.unit.events.delivery.test_addresses import NOT_ALLOWED as NOT_ALLOWED_URLS

LOCAL = AddressRules(plain_http=True, loopback=True)
NAME = "receiver.example"
SHORT = 0.2
"""Seconds, for tests in which nothing has to happen before the deadline."""


@pytest.fixture(autouse=True)
def _only_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    """A mistake must not send anything to anybody."""
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        assert ip_address(address[0]).is_loopback, address
        connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", guarded)


@pytest.fixture(autouse=True, scope="module")
def _nothing_stays_open() -> Iterator[None]:
    """An open socket would warn when it is collected, and warnings are errors."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


def no_names(name: str, _seconds: float) -> list[str]:
    raise AssertionError(f"{name} was looked up")


def sender(**given: Any) -> HttpWebhooks:
    return HttpWebhooks(given.pop("rules", LOCAL), resolve=given.pop("resolve", no_names), **given)


def post(
    url: str, body: bytes = b"{}", headers: dict[str, str] | None = None, **given: Any
) -> ReceiverResponse | Failure:
    return sender(**given).post(WebhookRequest(url, headers or {"content-type": "application/json"}, body))


def answered(result: ReceiverResponse | Failure) -> ReceiverResponse:
    assert isinstance(result, ReceiverResponse), result
    return result


class TestExchanges:
    def test_a_request_arrives_as_it_is(self) -> None:
        body = bytes(range(256)) * 900
        with Receiver(answers(202, b"thanks", x_more="1")) as receiver:
            result = post(receiver.url_of(LOOPBACK, "/a%20b?c=d"), body, {"content-type": "image/png", "x-a": "1"})
        assert result == ReceiverResponse(202, {"x-more": "1", "content-length": "6"}, b"thanks")
        assert receiver.requests == [
            Received(
                "POST",
                "/a%20b?c=d",
                {
                    "host": f"127.0.0.1:{receiver.port}",
                    "accept-encoding": "identity",
                    "content-length": str(len(body)),
                    "content-type": "image/png",
                    "x-a": "1",
                    "connection": "close",
                },
                body,
            )
        ]

    def test_an_empty_payload_is_sent(self) -> None:
        with Receiver() as receiver:
            assert answered(post(receiver.url, b"")).status == 200
        assert receiver.requests[0].headers["content-length"] == "0"

    def test_a_redirect_is_not_followed(self) -> None:
        with Receiver() as other, Receiver(redirects_to(other.url)) as receiver:
            assert answered(post(receiver.url)).status == 302
        assert other.connections == 0

    def test_a_proxy_of_the_environment_is_not_used(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with Receiver() as proxy, Receiver() as receiver:
            for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
                monkeypatch.setenv(name, proxy.url)
            assert answered(post(receiver.url)).status == 200
        assert (proxy.connections, receiver.connections) == (0, 1)

    def test_nothing_is_remembered_between_requests(self) -> None:
        with Receiver(answers(200, set_cookie="a=b")) as receiver:
            webhooks = sender()
            for _ in range(2):
                webhooks.post(WebhookRequest(receiver.url, {}, b""))
        assert receiver.connections == 2
        assert "cookie" not in receiver.requests[1].headers

    def test_a_compressed_response_stays_compressed(self) -> None:
        with Receiver(answers(500, b"\x1f\x8b bomb", content_encoding="gzip")) as receiver:
            assert answered(post(receiver.url)).body == b"\x1f\x8b bomb"

    def test_the_first_of_several_headers_with_one_name_counts(self) -> None:
        twice = b"HTTP/1.1 503 Busy\r\nRetry-After: 1\r\nretry-after: 2\r\ncontent-length: 0\r\n\r\n"
        with Receiver(sends(twice)) as receiver:
            assert answered(post(receiver.url)).headers["retry-after"] == "1"

    def test_an_answer_in_chunks_is_put_together(self) -> None:
        chunked = http(500, transfer_encoding="chunked", content_length="0").replace(b"content-length: 0\r\n", b"")
        with Receiver(sends(chunked + b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nx-end: 1\r\n\r\n")) as receiver:
            assert answered(post(receiver.url)).body == b"abcde"

    def test_an_interim_answer_is_not_the_answer(self) -> None:
        with Receiver(sends(b"HTTP/1.1 100 Continue\r\n\r\n" + http(201))) as receiver:
            assert answered(post(receiver.url)).status == 201

    def test_a_receiver_may_answer_before_it_has_read_everything(self) -> None:
        """It then resets the connection, and the answer may be lost; but nothing is raised."""
        with Receiver(answers(413, b"too large"), reads=False) as receiver:
            result = post(receiver.url, b"a" * 2_000_000)
        assert isinstance(result, Failure) or result.status == 413

    def test_several_are_sent_at_once(self) -> None:
        """Each receiver answers only when all requests have arrived."""
        together = Barrier(5, timeout=10)

        def waits(connected: Connected, request: Received) -> None:
            together.wait()
            connected.send(http(200, request.body))

        webhooks = sender()
        with Receiver(waits) as receiver, ThreadPoolExecutor(5) as pool:
            requests = [WebhookRequest(receiver.url, {}, b"%d" % number) for number in range(5)]
            bodies = [answered(each).body for each in pool.map(webhooks.post, requests)]
        assert bodies == [b"0", b"1", b"2", b"3", b"4"]


OK = b"HTTP/1.1 200 OK\r\n"
LIES = {
    "longer than it says": http(500, b"abcdef", content_length="3"),
    "shorter than it says": http(500, b"abc", content_length="100"),
    "a negative length": http(500, b"abc", content_length="-1"),
    "a length that is no number": http(500, b"abc", content_length="many"),
    "an endless length": http(500, b"abc", content_length="9" * 400),
    "a chunk that is cut": b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nff\r\nabc",
    "a chunk with a bad size": b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nabc",
    "a chunk with a negative size": b"HTTP/1.1 500 No\r\ntransfer-encoding: chunked\r\n\r\n-3\r\nabc",
    "both": b"HTTP/1.1 500 No\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    "bad headers": b"HTTP/1.1 500 No\r\nno colon\r\n: no name\r\n\xff\xfe: a\r\n folded\r\n\r\nabc",
}


class TestReceiversThatLie:
    @pytest.mark.parametrize("said", LIES.values(), ids=LIES)
    def test_the_status_counts(self, said: bytes) -> None:
        with Receiver(sends(said)) as receiver:
            result = answered(post(receiver.url))
        assert result.status == 500
        assert result.body in (b"", b"abc")

    @pytest.mark.parametrize(
        "said",
        [
            *(b"SSH-2.0-OpenSSH_9.2\r\n", b"\x00\x01\x02", b"HTTP/1.1\r\n\r\n", b"HTTP/1.1 two OK\r\n\r\n"),
            *(b"HTTP/3 200 OK\r\n\r\n", b"HTTP/1.1 99 Low\r\n\r\n", b"HTTP/1.1 1000 High\r\n\r\n", b"<html>" * 100),
        ],
        ids=repr,
    )
    def test_an_answer_that_is_not_http_is_a_failure(self, said: bytes) -> None:
        with Receiver(sends(said)) as receiver:
            assert post(receiver.url) == Failure(NOT_HTTP)

    @pytest.mark.parametrize("part", [closes, sends(b"")])
    def test_a_receiver_that_closes_without_an_answer(self, part: Any) -> None:
        with Receiver(part) as receiver:
            assert post(receiver.url) == Failure(CLOSED)

    def test_a_receiver_that_closes_in_its_headers_has_said_its_status(self) -> None:
        with Receiver(sends(b"HTTP/1.1 500 No\r\nretry-after: 5")) as receiver:
            assert answered(post(receiver.url)).status == 500

    def test_a_port_on_which_nobody_listens_is_a_refused_connection(self) -> None:
        with Receiver() as receiver:
            pass
        assert post(receiver.url) == Failure(REFUSED)


SAID = (
    http(200, b"ok"),
    http(500, b"abc", retry_after="5"),
    http(429, b"x" * 30, retry_after="Mon, 16 Nov 2026 12:10:00 GMT", webhook_delivery="abort-message"),
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.0 302 x\r\nlocation: /a\r\n\r\n",
)
ODD = (
    *(
        b"\r\n",
        b"\r\n\r\n",
        b"\n",
        b"\x00",
        b"\x1c",
        b"\x85",
        b"\xff",
        b"\xb2",
        b":",
        b" ",
        b"-1",
        b"9" * 30,
        b"HTTP/1.1 ",
    ),
    *(b"Content-Length: -5\r\n", b"Transfer-Encoding: chunked\r\n", b"ffffffffffffffff\r\n", b"-1\r\n"),
)


def garbled(rng: random.Random) -> bytes:
    """An answer with a few bytes replaced, removed, repeated or put in."""
    said = bytearray(rng.choice(SAID))
    for _ in range(rng.randint(1, 6)):
        at, until = sorted(rng.randrange(len(said) + 1) for _ in range(2))
        change = rng.randrange(4)
        if change == 0:
            said[at : at + 1] = bytes([rng.randrange(256)])
        elif change == 1:
            del said[at : min(until, at + 10)]
        elif change == 2:
            said[at:at] = said[at:until]
        else:
            said[at:at] = rng.choice(ODD)
    return bytes(said)


@pytest.mark.parametrize("seed", range(4))
def test_every_response_of_a_receiver_has_a_result(seed: int) -> None:
    rng = random.Random(seed)
    script = [garbled(rng) for _ in range(100)]
    webhooks = sender()
    with Receiver(*map(sends, script)) as receiver:
        for said in script:
            result = webhooks.post(WebhookRequest(receiver.url, {}, b"{}"))
            answer = try_result_of(result, milliseconds=1, at=NOON)
            assert answer.text.isprintable(), said
            assert len(answer.text) <= MAX_TEXT, said


class TestSizes:
    def test_16_kb_of_an_answer_are_read(self) -> None:
        with Receiver(answers(500, b"a" * 100_000)) as receiver:
            assert answered(post(receiver.url)).body == b"a" * MAX_BODY_BYTES

    @pytest.mark.parametrize(
        "head",
        [http(200, content_length="999999999999"), OK + b"\r\n", OK + b"transfer-encoding: chunked\r\n\r\n"],
        ids=["long", "until it ends", "in chunks"],
    )
    def test_an_endless_body_ends(self, head: bytes) -> None:
        more = b"1000\r\n" + b"a" * 4_096 + b"\r\n" if b"chunked" in head else b"a" * 4_096
        with Receiver(never_ends(head, more)) as receiver:
            result = answered(post(receiver.url))
        assert (result.status, len(result.body)) == (200, MAX_BODY_BYTES)

    @pytest.mark.parametrize(
        ("beginning", "more"),
        [
            (OK, b"x-a: " + b"a" * 1_000 + b"\r\n"),
            (OK + b"x-a: ", b"a" * 4_096),
            (b"HTTP/1.1 200 ", b"a" * 4_096),
            (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
            (OK, b"a:b\r\n"),
        ],
        ids=["many", "a long one", "a long status line", "interim answers without an end", "more than 100"],
    )
    def test_endless_headers_are_refused(self, beginning: bytes, more: bytes) -> None:
        with Receiver(never_ends(beginning, more)) as receiver:
            assert post(receiver.url) == Failure(TOO_LONG)

    def test_endless_chunks_of_nothing_end(self) -> None:
        head = OK + b"transfer-encoding: chunked\r\n\r\n"
        with Receiver(never_ends(head, b"1\r\na\r\n")) as receiver:
            result = answered(post(receiver.url))
        assert result.status == 200
        assert 0 < len(result.body) <= MAX_BODY_BYTES

    def test_endless_trailers_end(self) -> None:
        head = OK + b"transfer-encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n"
        with Receiver(never_ends(head, b"x-a: b\r\n")) as receiver:
            assert answered(post(receiver.url)).body == b"abc"


IN_TIME = Failure("The receiver did not answer within 0.2 seconds.", slows=True)


class TestTheDeadline:
    @pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200", OK, OK + b"x-a: b\r\n"], ids=repr)
    def test_a_receiver_that_hangs_before_its_status_and_headers_are_whole(self, beginning: bytes) -> None:
        with Receiver(sends_and_hangs(beginning)) as receiver:
            assert post(receiver.url, seconds=SHORT) == IN_TIME

    def test_a_receiver_that_hangs_in_its_body_has_said_its_status(self) -> None:
        with Receiver(sends_and_hangs(http(200, b"abc", content_length="10"))) as receiver:
            assert answered(post(receiver.url, seconds=1)).body == b"abc"

    def test_a_receiver_that_takes_nothing(self) -> None:
        with Receiver(hangs, reads=False) as receiver:
            assert post(receiver.url, b"a" * 20_000_000, seconds=SHORT) == IN_TIME

    @pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 ", OK + b"x-a: "], ids=repr)
    def test_a_receiver_that_drips(self, beginning: bytes) -> None:
        """Each byte comes in time, and all of them together do not."""
        with Receiver(drips(beginning)) as receiver:
            assert post(receiver.url, seconds=SHORT) == IN_TIME

    def test_the_deadline_is_for_all_reads_together(self) -> None:
        """Every look at the clock takes a second, so the deadline is over after a few reads, however quick they are."""
        ticks = count()
        with Receiver(drips(every=0)) as receiver:
            result = post(receiver.url, seconds=15, monotonic=lambda: float(next(ticks)))
        assert result == Failure("The receiver did not answer within 15 seconds.", slows=True)
        assert next(ticks) < 20

    def test_a_body_that_drips_is_read_until_the_deadline(self) -> None:
        with Receiver(drips(http(200, content_length="1000000"))) as receiver:
            result = answered(post(receiver.url, seconds=1))
        assert result.status == 200
        assert set(result.body) == {ord("a")}

    def test_a_handshake_that_never_ends(self, authority: Authority, tmp_path: Path) -> None:
        tls = authority.serving(tmp_path, LOOPBACK)
        with Receiver(tls=tls, accepts=False) as receiver:
            assert post(receiver.url, seconds=SHORT, tls=lambda: authority.trusting) == IN_TIME

    def test_a_lookup_that_takes_too_long(self) -> None:
        names = FakeNames({NAME: [TimeoutError()]})
        assert post(f"https://{NAME}/", resolve=names, seconds=SHORT) == IN_TIME

    def test_a_lookup_has_what_is_left_of_the_deadline(self) -> None:
        given: list[float] = []

        def noted(_name: str, seconds: float) -> list[str]:
            given.append(seconds)
            return []

        post(f"https://{NAME}/", resolve=noted, seconds=15, monotonic=lambda: 1.0)
        assert given == [15.0]


def _without_tickets(authority: Authority, folder: Path) -> tuple[ssl.SSLContext, Path]:
    """The context of a receiver that sends no session tickets by itself, and the file that it writes its keys to."""
    tls, keys = authority.serving(folder, LOOPBACK), folder / "keys"
    tls.num_tickets, tls.keylog_filename = 0, str(keys)
    return tls, keys


class TestTls:
    def test_endless_messages_of_tls_itself_end(self, authority: Authority, tmp_path: Path) -> None:
        """OpenSSL reads session tickets without saying so, for as long as they come."""
        tls, keys = _without_tickets(authority, tmp_path)
        with Receiver(sends_session_tickets(keys), tls=tls) as receiver:
            assert post(receiver.url, tls=lambda: authority.trusting) == Failure(TOO_LONG)

    def test_the_deadline_is_for_messages_of_tls_itself_too(self, authority: Authority, tmp_path: Path) -> None:
        """Every look at the clock takes a second."""
        ticks = count()
        tls, keys = _without_tickets(authority, tmp_path)
        with Receiver(sends_session_tickets(keys), tls=tls) as receiver:
            result = post(
                receiver.url, seconds=15, monotonic=lambda: float(next(ticks)), tls=lambda: authority.trusting
            )
        assert result == Failure("The receiver did not answer within 15 seconds.", slows=True)
        assert next(ticks) < 20

    def test_a_few_messages_of_tls_itself_are_no_obstacle(self, authority: Authority, tmp_path: Path) -> None:
        tls, keys = _without_tickets(authority, tmp_path)
        with Receiver(sends_session_tickets(keys, records=2), tls=tls) as receiver:
            assert answered(post(receiver.url, tls=lambda: authority.trusting)).status == 200

    def test_the_name_is_in_the_handshake_the_host_header_and_the_certificate(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        names = FakeNames({NAME: [[LOOPBACK]]})
        with Receiver(answers(200, b"ok"), tls=authority.serving(tmp_path, NAME)) as receiver:
            result = post(receiver.url_of(NAME), resolve=names, tls=lambda: authority.trusting)
        assert answered(result).body == b"ok"
        (request,) = receiver.requests
        assert request.server_name == NAME
        assert request.headers["host"] == f"{NAME}:{receiver.port}"

    def test_an_address_may_have_a_certificate(self, authority: Authority, tmp_path: Path) -> None:
        with Receiver(tls=authority.serving(tmp_path, LOOPBACK)) as receiver:
            assert answered(post(receiver.url, tls=lambda: authority.trusting)).status == 200
        assert receiver.requests[0].server_name is None

    @pytest.mark.parametrize("names", [["other.example"], ["example"], ["*.receiver.example"], [LOOPBACK]])
    def test_a_certificate_for_another_name_is_refused(
        self, authority: Authority, tmp_path: Path, names: list[str]
    ) -> None:
        resolving = FakeNames({NAME: [[LOOPBACK]]})
        with Receiver(tls=authority.serving(tmp_path, *names)) as receiver:
            result = post(receiver.url_of(NAME), resolve=resolving, tls=lambda: authority.trusting)
        assert isinstance(result, Failure)
        assert result.text.startswith("The certificate of the receiver is not valid: Hostname mismatch")
        assert LOOPBACK not in result.text
        assert receiver.requests == []

    def test_a_certificate_that_has_expired_is_refused(self, authority: Authority, tmp_path: Path) -> None:
        with Receiver(tls=authority.serving(tmp_path, LOOPBACK, expired=True)) as receiver:
            result = post(receiver.url, tls=lambda: authority.trusting)
        assert result == Failure("The certificate of the receiver is not valid: certificate has expired.")
        assert receiver.requests == []

    def test_a_certificate_that_no_public_authority_has_signed_is_refused(
        self, authority: Authority, tmp_path: Path
    ) -> None:
        with Receiver(tls=authority.serving(tmp_path, LOOPBACK)) as receiver:
            result = post(receiver.url, tls=public_certificates)
        assert isinstance(result, Failure)
        assert result.text.startswith("The certificate of the receiver is not valid: ")
        assert receiver.requests == []

    def test_a_receiver_without_tls_is_a_failure(self, authority: Authority) -> None:
        with Receiver(sends(b"HTTP/1.1 400 Use TLS\r\n\r\n"), reads=False) as receiver:
            result = post(receiver.url.replace("http:", "https:"), tls=lambda: authority.trusting)
        assert isinstance(result, Failure)
        assert not result.slows
        assert result.text.startswith("There is no TLS connection to the receiver: ") or result.text == CLOSED


class TestAddresses:
    @pytest.mark.parametrize("inside", [address for address in INSIDE if address])
    def test_a_name_of_an_address_inside_gets_nothing(self, inside: str) -> None:
        for addresses in ([inside], ["8.8.8.8", inside], ["2606:4700::1111", inside]):
            names = FakeNames({NAME: [addresses]})
            assert post(f"https://{NAME}/", rules=AddressRules(), resolve=names) == Failure(NOT_ALLOWED)

    def test_loopback_is_inside(self) -> None:
        with Receiver() as receiver:
            url = receiver.url.replace("http:", "https:")
            assert isinstance(post(url, rules=AddressRules()), Failure)
            names = FakeNames({NAME: [[LOOPBACK]]})
            url = f"https://{NAME}:{receiver.port}/"
            assert post(url, rules=AddressRules(), resolve=names) == Failure(NOT_ALLOWED)
        assert receiver.connections == 0

    @pytest.mark.parametrize("url", [*NOT_ALLOWED_URLS, *MALFORMED], ids=lambda url: url[:40])
    def test_an_address_that_was_configured_before_it_was_forbidden_gets_nothing(self, url: str) -> None:
        rules = AddressRules(own_hosts=frozenset({"hooks.berth.example"}))
        result = post(url, rules=rules)
        assert isinstance(result, Failure)
        assert result.text.startswith("address: a webhook cannot be sent there")

    def test_a_name_that_answers_otherwise_a_moment_later_changes_nothing(self) -> None:
        """DNS rebinding: the name is looked up once, and the connection goes to the address that was checked."""
        names = FakeNames({NAME: [[LOOPBACK], ["169.254.169.254"]]})
        with Receiver() as receiver:
            result = post(receiver.url_of(NAME), resolve=names)
        assert answered(result).status == 200
        assert names.looked_up == [NAME]
        assert receiver.connections == 1

    def test_the_name_is_looked_up_again_for_every_try(self) -> None:
        names = FakeNames({NAME: [[LOOPBACK], ["169.254.169.254"]]})
        with Receiver() as receiver:
            webhooks = sender(resolve=names)
            first, second = (webhooks.post(WebhookRequest(receiver.url_of(NAME), {}, b"")) for _ in range(2))
        assert answered(first).status == 200
        assert second == Failure(NOT_ALLOWED)
        assert receiver.connections == 1

    @pytest.mark.parametrize("error", [socket.gaierror(-2, "Name or service not known"), OSError()])
    def test_a_name_without_an_address_is_tried_again(self, error: OSError) -> None:
        names = FakeNames({NAME: [error]})
        assert post(f"https://{NAME}/", resolve=names) == Failure(NOT_RESOLVED)

    def test_plain_http_goes_to_loopback_only(self) -> None:
        names = FakeNames({NAME: [["8.8.8.8"]]})
        assert post(f"http://{NAME}/", resolve=names) == Failure(NOT_ALLOWED)
        assert post("http://8.8.8.8/") == Failure(NOT_ALLOWED)
        with Receiver() as receiver:
            assert isinstance(post(receiver.url, rules=AddressRules(loopback=True)), Failure)
        assert receiver.connections == 0

    def test_ipv6_is_used_if_there_is_nothing_else(self, monkeypatch: pytest.MonkeyPatch) -> None:
        opened: list[int] = []

        def refusing(family: int, _kind: int) -> socket.socket:
            opened.append(family)
            raise OSError(101, "Network is unreachable")

        monkeypatch.setattr(http_sender.socket, "socket", refusing)
        result = post("https://[2606:4700::1111]/")
        assert result == Failure("There is no connection to the receiver: Network is unreachable.")
        assert opened == [socket.AF_INET6]


class TestLookups:
    """By the resolver of the operating system, and without a name server."""

    def test_localhost_is_loopback(self) -> None:
        assert all(ip_address(each).is_loopback for each in resolve("localhost", 10))

    def test_a_name_is_not_searched_in_other_domains(self, monkeypatch: pytest.MonkeyPatch) -> None:
        asked: list[str] = []

        def answering(name: str, *_: object, **__: object) -> list[Any]:
            asked.append(name)
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))]

        monkeypatch.setattr(socket, "getaddrinfo", answering)
        assert resolve(NAME, 10) == ["8.8.8.8"]
        assert asked == [f"{NAME}."]

    @pytest.mark.parametrize("error", [socket.gaierror(-2, "unknown"), UnicodeError("label too long")])
    def test_a_lookup_that_fails(self, error: Exception, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(*_: object, **__: object) -> None:
            raise error

        monkeypatch.setattr(socket, "getaddrinfo", failing)
        assert post(f"https://{NAME}/", resolve=resolve) == Failure(NOT_RESOLVED)

    def test_a_lookup_that_hangs_holds_nobody_up(self, monkeypatch: pytest.MonkeyPatch) -> None:
        ended = Barrier(2, timeout=10)

        def hanging(*_: object, **__: object) -> list[Any]:
            ended.wait()
            return []

        monkeypatch.setattr(socket, "getaddrinfo", hanging)
        assert post(f"https://{NAME}/", resolve=resolve, seconds=SHORT) == IN_TIME
        ended.wait()


def test_a_receiver_verifies_the_signature_with_the_library_of_standard_webhooks(
    authority: Authority, tmp_path: Path
) -> None:
    """The whole way: signed, encrypted, over loopback, and verified; the second try has the same id."""
    secret, names = new_signing_secret(), FakeNames({NAME: [[LOOPBACK]]})
    world = SendingWorld(sender(resolve=names, tls=lambda: authority.trusting))
    with Receiver(answers(500, b"not yet"), answers(204), tls=authority.serving(tmp_path, NAME)) as receiver:
        connection = a_connection(address=receiver.url_of(NAME), secret=encrypted(secret))
        tries = [world.sending.send(outgoing(connection=connection, at=datetime.now(UTC))) for _ in range(2)]
    assert tries == [TryResult(Verdict.RETRY, 0, code=500, text="not yet"), TryResult(Verdict.DELIVERED, 0, code=204)]
    for request in receiver.requests:
        assert Webhook(secret).verify(request.body, request.headers) == {"total": 120}
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
