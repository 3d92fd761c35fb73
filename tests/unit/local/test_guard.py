"""The guard admits requests that are signed with a known key, however clients sign, and refuses all others."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote, urlsplit
from xml.etree import ElementTree

import boto3
import pytest
from botocore.auth import S3SigV4Auth, S3SigV4QueryAuth, SigV4Auth, SigV4QueryAuth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from ministack.core.sigv4 import calculate_signature  # type: ignore[import-untyped]

from orchestrator.local.guard import (
    EXPIRED,
    NO_KEY,
    OTHER_BODY,
    STALE,
    UNSIGNED_BODY,
    UNSIGNED_HEADERS,
    WRONG_HOST,
    WRONG_SECRET,
    WRONG_SITE,
    Issued,
    guarded,
)

PORT = 4566
HERE = f"127.0.0.1:{PORT}"
KEY = Credentials("BERTHKEY", "secret")
SESSION = Credentials("ASIASESSION", "session secret", "token")
SECRETS = {("BERTHKEY", ""): "secret", ("ASIASESSION", "token"): "session secret"}
AWAITED = "0b0f4a53-93a3-4a83-a2c1-0f3ba9f2c7f1"
OPEN = ("0123abcd", "POST", "/hooks/src_1")


@dataclass
class Emulator:
    """Records its requests, and adds CORS headers to its responses."""

    asked: list[tuple[str, bytes]] = field(default_factory=list)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await send({"type": "lifespan.startup.complete"})
            return
        event = await receive()
        assert not event["more_body"]
        self.asked.append((scope["path"], event["body"]))
        headers = [(b"Access-Control-Allow-Origin", b"*"), (b"content-type", b"text/plain")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"", "more_body": False})


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def message(self) -> Any:
        if self.headers["content-type"] == "text/xml":
            return ElementTree.fromstring(self.body).findtext("Error/Message")
        return json.loads(self.body)["message"]


def exchange(emulator: Emulator, scope: Mapping[str, Any], *received: Mapping[str, Any]) -> list[Any]:
    coming: Iterator[Mapping[str, Any]] = iter(received)
    sent: list[Any] = []

    async def receive() -> Any:
        return next(coming)

    async def send(event: Any) -> None:
        sent.append(event)

    def secret(key: str, token: str) -> str | None:
        return SECRETS.get((key, token))

    def is_open(*request: str) -> bool:
        return request == OPEN

    app: Any = guarded(emulator, PORT, Issued(secret, lambda token: token == AWAITED, is_open))
    asyncio.run(app(scope, receive, send))
    return sent


def ask(
    emulator: Emulator,
    method: str,
    target: str,
    headers: Mapping[str, str] | None = None,
    body: bytes = b"",
    *more: bytes,
) -> Answer:
    """Send the request. A body of several parts is sent in these parts."""
    path, _, query = target.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in ({"Host": HERE} | dict(headers or {})).items()],
    }
    parts = (body, *more)
    events = [
        {"type": "http.request", "body": part, "more_body": number < len(parts)}
        for number, part in enumerate(parts, start=1)
    ]
    start, end = exchange(emulator, scope, *events)
    answered = {name.decode(): value.decode() for name, value in start["headers"]}
    return Answer(start["status"], answered, end["body"])


def signed(
    method: str,
    target: str,
    body: bytes = b"",
    *,
    service: str = "sqs",
    key: Credentials = KEY,
    host: str = HERE,
    **headers: str,
) -> dict[str, str]:
    request = AWSRequest(method, f"http://{host}{target}", headers={"Host": host, **headers}, data=body)
    signer = S3SigV4Auth if service == "s3" else SigV4Auth
    signer(key, service, "us-east-1").add_auth(request)
    return dict(request.headers.items())


def now() -> str:
    return datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ")


def signed_with_hash(method: str, target: str, shown: str, *, service: str = "s3") -> dict[str, str]:
    """Headers of a request whose x-amz-content-sha256 is this text instead of the body's hash."""
    request = AWSRequest(method, f"http://{HERE}{target}", headers={"Host": HERE, "X-Amz-Content-SHA256": shown})
    SigV4Auth(KEY, service, "us-east-1").add_auth(request)
    return dict(request.headers.items())


def in_chunks(date: str, seed: str, *chunks: bytes) -> bytes:
    scope, before, body = f"{date[:8]}/us-east-1/s3/aws4_request", seed, b""
    for chunk in chunks:
        hashes = [hashlib.sha256(each).hexdigest() for each in (b"", chunk)]
        text = "\n".join(["AWS4-HMAC-SHA256-PAYLOAD", date, scope, before, *hashes])
        before = calculate_signature(KEY.secret_key, date[:8], "us-east-1", "s3", text)
        body += f"{len(chunk):x};chunk-signature={before}\r\n".encode() + chunk + b"\r\n"
    return body


def presigned(method: str, target: str, *, service: str = "s3", expires: int = 60, **headers: str) -> str:
    request = AWSRequest(method, f"http://{HERE}{target}", headers=headers)
    signer = S3SigV4QueryAuth if service == "s3" else SigV4QueryAuth
    signer(KEY, service, "us-east-1", expires=expires).add_auth(request)
    url = urlsplit(str(request.url))
    return f"{url.path}?{url.query}"


@pytest.fixture
def emulator() -> Emulator:
    return Emulator()


@pytest.fixture
def signing(monkeypatch: pytest.MonkeyPatch) -> Callable[[timedelta], None]:
    """Makes clients sign with a clock that is this much ahead."""

    def later(by: timedelta) -> None:
        moment = (datetime.now(UTC) + by).replace(tzinfo=None)
        monkeypatch.setattr("botocore.auth.get_current_datetime", lambda: moment)

    return later


# Requests that are admitted


def test_a_signed_request_reaches_the_emulator_as_it_was_sent(emulator: Emulator) -> None:
    body = b'{"QueueName": "inbound"}'
    assert ask(emulator, "POST", "/", signed("POST", "/", body), body).status == 200
    assert emulator.asked == [("/", body)]


def test_a_body_in_parts_is_checked_and_passed_on_as_a_whole(emulator: Emulator) -> None:
    assert ask(emulator, "POST", "/", signed("POST", "/", b"onetwo"), b"one", b"two").status == 200
    assert emulator.asked == [("/", b"onetwo")]


@pytest.mark.parametrize(
    ("target", "service"),
    [
        ("/tenants/a%2Fb/queue?credentials=send", "execute-api"),
        ("/tenants/acme%20corp?a=1&a=2&empty=&blank=a%20b&slash=%2F", "execute-api"),
        ("/bucket/a%20key/with%2Bplus?list-type=2&prefix=a%2Fb", "s3"),
        ("/?Action=ListStacks&Version=2010-05-15", "cloudformation"),
        ("/2015-03-31/functions/arn%3Aaws%3Alambda%3Aus-east-1%3A000000000000%3Afunction%3Af/invocations", "lambda"),
    ],
)
def test_paths_and_queries_are_read_as_clients_sign_them(emulator: Emulator, target: str, service: str) -> None:
    assert ask(emulator, "GET", target, signed("GET", target, service=service)).status == 200


def test_a_client_that_leaves_the_hash_of_the_body_out_of_its_signed_headers_is_admitted(emulator: Emulator) -> None:
    """awscurl does this. The signature covers the hash nevertheless."""
    headers = signed("POST", "/", b"body") | {"x-amz-content-sha256": hashlib.sha256(b"body").hexdigest()}
    assert ask(emulator, "POST", "/", headers, b"body").status == 200


def test_an_upload_signed_in_chunks_is_admitted_if_each_chunk_matches_its_signature(emulator: Emulator) -> None:
    shown = "STREAMING-AWS4-HMAC-SHA256-PAYLOAD"
    headers = signed_with_hash("PUT", "/bucket/key", shown)
    seed = headers["Authorization"].rpartition("=")[2]
    body = in_chunks(headers["X-Amz-Date"], seed, b"data", b"")
    assert ask(emulator, "PUT", "/bucket/key", headers, body).status == 200
    assert ask(emulator, "PUT", "/bucket/key", headers, body.replace(b"data", b"atad")).message == WRONG_SECRET


def test_a_session_is_admitted_with_its_token_only(emulator: Emulator) -> None:
    assert ask(emulator, "GET", "/", signed("GET", "/", key=SESSION)).status == 200
    without = Credentials(SESSION.access_key, SESSION.secret_key)
    assert ask(emulator, "GET", "/", signed("GET", "/", key=without)).message == NO_KEY
    other = Credentials(SESSION.access_key, SESSION.secret_key, "another")
    assert ask(emulator, "GET", "/", signed("GET", "/", key=other)).message == NO_KEY


@pytest.mark.parametrize("key", [KEY, SESSION])
def test_a_presigned_url_is_admitted_until_it_expires(emulator: Emulator, key: Credentials) -> None:
    s3 = boto3.client(
        "s3",
        region_name="us-east-1",
        endpoint_url=f"http://{HERE}",
        aws_access_key_id=key.access_key,
        aws_secret_access_key=key.secret_key,
        aws_session_token=key.token,
        config=Config(signature_version="s3v4", s3={"addressing_style": "path"}),
    )
    url = urlsplit(s3.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "a key"}, ExpiresIn=60))
    assert ask(emulator, "GET", f"{url.path}?{url.query}").status == 200
    assert ask(emulator, "PUT", f"{url.path}?{url.query}").message == WRONG_SECRET
    longer = url.query.replace("X-Amz-Expires=60", "X-Amz-Expires=6000")
    assert ask(emulator, "GET", f"{url.path}?{longer}").message == WRONG_SECRET


@pytest.mark.parametrize("service", ["sqs", "s3"])
def test_a_presigned_url_that_has_expired_is_refused(
    emulator: Emulator, signing: Callable[[timedelta], None], service: str
) -> None:
    signing(timedelta(minutes=-10))
    assert ask(emulator, "GET", presigned("GET", "/bucket/key", service=service)).message == EXPIRED
    assert ask(emulator, "GET", presigned("GET", "/bucket/key", service=service, expires=3600)).status == 200


@pytest.mark.parametrize("expires", [7 * 24 * 3600 + 1, 10**9, 0, -1, ""], ids=repr)
def test_a_presigned_url_is_valid_for_at_most_seven_days(
    emulator: Emulator, signing: Callable[[timedelta], None], expires: Any
) -> None:
    signing(timedelta(seconds=-1))
    assert ask(emulator, "GET", presigned("GET", "/bucket/key", expires=expires)).message == EXPIRED
    assert ask(emulator, "GET", presigned("GET", "/bucket/key", expires=7 * 24 * 3600)).status == 200


def test_a_presigned_upload_may_have_any_body(emulator: Emulator) -> None:
    assert ask(emulator, "PUT", presigned("PUT", "/bucket/key"), {}, b"any").status == 200


@pytest.mark.parametrize(
    "host", [HERE, f"localhost:{PORT}", f"LocalHost:{PORT}", f"a1b2c3d4.execute-api.localhost:{PORT}"]
)
def test_every_name_of_this_machine_is_accepted(emulator: Emulator, host: str) -> None:
    assert ask(emulator, "GET", "/", signed("GET", "/", host=host)).status == 200


def test_the_health_check_needs_no_signature(emulator: Emulator) -> None:
    assert ask(emulator, "GET", "/_ministack/health").status == 200
    assert ask(emulator, "POST", "/_ministack/health").message == NO_KEY


def test_a_custom_resources_response_needs_no_signature_while_it_is_awaited(emulator: Emulator) -> None:
    assert ask(emulator, "PUT", f"/_ministack/cfn-response/{AWAITED}", {}, b"{}").status == 200
    assert emulator.asked == [(f"/_ministack/cfn-response/{AWAITED}", b"{}")]
    for method, path in (
        ("PUT", "/_ministack/cfn-response/another"),
        ("PUT", f"/_ministack/cfn-response/{AWAITED}/more"),
        ("PUT", AWAITED),
        ("POST", f"/_ministack/cfn-response/{AWAITED}"),
        ("GET", f"/_ministack/cfn-response/{AWAITED}"),
    ):
        assert ask(emulator, method, path).message == NO_KEY


# Requests that are refused


def test_a_request_without_a_signature_is_refused_with_advice(emulator: Emulator) -> None:
    answer = ask(emulator, "GET", "/")
    assert (answer.status, answer.message) == (403, NO_KEY)
    assert "python -m orchestrator.local env" in NO_KEY
    assert emulator.asked == []


@pytest.mark.parametrize(
    "authorization",
    [
        "",
        "Bearer BERTHKEY",
        "Basic QkVSVEhLRVk6c2VjcmV0",
        "AWS BERTHKEY:signature",
        "AWS4-HMAC-SHA256 ",
        "AWS4-HMAC-SHA256 Credential=BERTHKEY",
        "AWS4-HMAC-SHA256 Credential=BERTHKEY/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=",
        "AWS4-HMAC-SHA256 Credential=/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=0",
        "AWS4-ECDSA-P256-SHA256 Credential=BERTHKEY/20260101/sqs/aws4_request, SignedHeaders=host, Signature=0",
    ],
)
def test_a_malformed_signature_is_refused(emulator: Emulator, authorization: str) -> None:
    headers = {"Authorization": authorization, "X-Amz-Date": "20260101T000000Z"}
    assert ask(emulator, "GET", "/", headers).message == NO_KEY
    assert emulator.asked == []


@pytest.mark.parametrize(
    ("signature", "reason"), [("0", WRONG_SECRET), ("0" * 64, WRONG_SECRET), ("\u00e9", NO_KEY)], ids=repr
)
def test_an_invented_signature_is_refused(emulator: Emulator, signature: str, reason: str) -> None:
    scope = "BERTHKEY/20260101/us-east-1/sqs/aws4_request"
    headers = {
        "Authorization": f"AWS4-HMAC-SHA256 Credential={scope}, SignedHeaders=host, Signature={signature}",
        "X-Amz-Date": "20260101T000000Z",
    }
    assert ask(emulator, "GET", "/", headers).message == reason


def test_an_unknown_key_and_a_wrong_secret_are_refused(emulator: Emulator) -> None:
    assert ask(emulator, "GET", "/", signed("GET", "/", key=Credentials("test", "test"))).message == NO_KEY
    assert ask(emulator, "GET", "/", signed("GET", "/", key=Credentials("BERTHKEY", "test"))).message == WRONG_SECRET


def test_a_request_that_differs_from_what_was_signed_is_refused(emulator: Emulator) -> None:
    headers = signed("POST", "/?a=1", b"body")
    assert ask(emulator, "POST", "/?a=1", headers, b"another").message == WRONG_SECRET
    assert ask(emulator, "POST", "/?a=2", headers, b"body").message == WRONG_SECRET
    assert ask(emulator, "POST", "/b?a=1", headers, b"body").message == WRONG_SECRET
    assert ask(emulator, "PUT", "/?a=1", headers, b"body").message == WRONG_SECRET
    assert emulator.asked == []


# Attacks with a signed request that was seen


@pytest.mark.parametrize("by", [timedelta(minutes=-16), timedelta(days=-2000), timedelta(minutes=16)], ids=str)
def test_an_old_signature_and_one_from_the_future_are_refused(
    emulator: Emulator, signing: Callable[[timedelta], None], by: timedelta
) -> None:
    signing(by)
    assert ask(emulator, "GET", "/", signed("GET", "/")).message == STALE
    signing(by * 0.5 if abs(by) < timedelta(hours=1) else timedelta())
    assert ask(emulator, "GET", "/", signed("GET", "/")).status == 200


def test_a_presigned_url_from_the_future_is_refused(emulator: Emulator, signing: Callable[[timedelta], None]) -> None:
    signing(timedelta(days=1))
    assert ask(emulator, "GET", presigned("GET", "/bucket/key")).message == STALE


@pytest.mark.parametrize("service", ["sqs", "s3"])
def test_another_body_under_the_same_hash_is_refused(emulator: Emulator, service: str) -> None:
    shown = hashlib.sha256(b"body").hexdigest()
    headers = signed_with_hash("POST", "/", shown, service=service)
    assert ask(emulator, "POST", "/", headers, b"body").status == 200
    assert ask(emulator, "POST", "/", headers, b"another").message == OTHER_BODY


def test_the_hash_of_the_body_is_not_added_to_a_request_that_was_signed_without(emulator: Emulator) -> None:
    shown = {"x-amz-content-sha256": hashlib.sha256(b"body").hexdigest()}
    assert ask(emulator, "POST", "/", signed("POST", "/", b"body") | shown, b"another").message == OTHER_BODY
    nothing = {"x-amz-content-sha256": hashlib.sha256().hexdigest()}
    url = presigned("POST", "/", service="sqs")
    assert ask(emulator, "POST", url, nothing, b"another").message == OTHER_BODY


@pytest.mark.parametrize("expected", ["UNSIGNED-PAYLOAD", "STREAMING-UNSIGNED-PAYLOAD-TRAILER", "0" * 63, "A" * 64])
@pytest.mark.parametrize("service", ["sqs", "s3"])
def test_a_body_that_was_not_signed_is_refused(emulator: Emulator, service: str, expected: str) -> None:
    """No known client sends an unsigned body over HTTP."""
    headers = signed_with_hash("PUT", "/bucket/key", expected, service=service)
    assert ask(emulator, "PUT", "/bucket/key", headers, b"any").message == UNSIGNED_BODY


@pytest.mark.parametrize("name", ["X-Amz-Target", "x-amz-copy-source", "X-AMZ-META-a", "X-Amz-Security-Token"])
def test_an_unsigned_header_that_selects_a_service_is_refused(emulator: Emulator, name: str) -> None:
    refused = UNSIGNED_HEADERS if name != "X-Amz-Security-Token" else NO_KEY
    added = signed("PUT", "/bucket/key", service="s3") | {name: "any"}
    assert ask(emulator, "PUT", "/bucket/key", added).message.startswith(refused)
    url = presigned("PUT", "/bucket/key")
    assert ask(emulator, "PUT", url, {name: "any"}, b"any").message.startswith(UNSIGNED_HEADERS)
    assert emulator.asked == []


def test_a_header_that_was_signed_with_the_url_is_admitted(emulator: Emulator) -> None:
    meta = {"x-amz-meta-a": "any"}
    assert ask(emulator, "PUT", presigned("PUT", "/bucket/key", **meta), meta, b"any").status == 200


def test_a_presigned_url_of_s3_accepts_a_body_only_for_an_upload(emulator: Emulator) -> None:
    for method in ("GET", "POST", "DELETE"):
        url = presigned(method, "/")
        assert ask(emulator, method, url, {}, b"Action=CreateUser&UserName=evil").message == UNSIGNED_BODY
        assert ask(emulator, method, url).status == 200


@pytest.mark.parametrize("kind", ["application/x-www-form-urlencoded", "Application/X-WWW-Form-Urlencoded"])
def test_a_presigned_upload_that_is_a_form_is_refused(emulator: Emulator, kind: str) -> None:
    """The emulator treats a form as a request to any service."""
    form, url = {"Content-Type": kind}, presigned("PUT", "/bucket/key")
    assert ask(emulator, "PUT", url, form, b"Action=ListUsers").message == f"{UNSIGNED_HEADERS}content-type."
    assert ask(emulator, "PUT", url, {"Content-Type": "text/plain"}, b"Action=ListUsers").status == 200


def test_a_signature_that_does_not_cover_the_host_is_refused(emulator: Emulator) -> None:
    """The emulator finds APIs by their host."""
    request = AWSRequest("GET", f"http://{HERE}/", headers={"Host": HERE, "X-Amz-Date": now()})
    signer = SigV4Auth(KEY, "sqs", "us-east-1")
    date = request.context["timestamp"] = request.headers["X-Amz-Date"]
    empty = hashlib.sha256().hexdigest()
    canonical = f"GET\n/\n\nx-amz-date:{date}\n\nx-amz-date\n{empty}"
    signature = signer.signature(signer.string_to_sign(request, canonical), request)
    credential = f"{KEY.access_key}/{date[:8]}/us-east-1/sqs/aws4_request"
    authorization = f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=x-amz-date, Signature={signature}"
    answer = ask(emulator, "GET", "/", {"X-Amz-Date": date, "Authorization": authorization})
    assert answer.message == f"{UNSIGNED_HEADERS}host."


def test_a_presigned_url_next_to_an_authorization_header_is_refused(emulator: Emulator) -> None:
    """The emulator must not use another signature than the one that the guard checked."""
    scope = "BERTHKEY/20260101/us-east-1/s3/aws4_request"
    query = f"/?X-Amz-Credential={scope}&X-Amz-Signature=0"
    assert ask(emulator, "GET", query, {"Authorization": "x"}).message == NO_KEY
    assert ask(emulator, "GET", query).message == NO_KEY


@pytest.mark.parametrize(
    "host",
    [
        "",
        "127.0.0.1",
        "localhost",
        "127.0.0.1:80",
        f"evil.example:{PORT}",
        f"localhost.evil.example:{PORT}",
        f"evillocalhost:{PORT}",
        f".localhost:{PORT}",
        f"127.0.0.2:{PORT}",
        f"0.0.0.0:{PORT}",
        f"192.168.1.2:{PORT}",
        f"[::1]:{PORT}",
        f"{HERE}\n",
        f"{HERE},evil.example:{PORT}",
    ],
)
def test_other_hosts_are_refused_even_with_the_key(emulator: Emulator, host: str) -> None:
    headers = signed("GET", "/") | {"Host": host}
    answer = ask(emulator, "GET", "/", headers)
    assert (answer.status, answer.message) == (403, WRONG_HOST)


@pytest.mark.parametrize(
    "site",
    [
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "http://localhost:3000"},
        {"Origin": f"https://{HERE}"},
        {"Origin": f"http://localhost:{PORT}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": ""},
        {"Origin": f"http://{HERE}", "Sec-Fetch-Site": "cross-site"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/_ministack/health", f"/_ministack/cfn-response/{AWAITED}"])
def test_other_sites_are_refused_even_with_the_key(emulator: Emulator, path: str, site: dict[str, str]) -> None:
    for method in ("GET", "POST", "PUT", "OPTIONS"):
        answer = ask(emulator, method, path, signed(method, path) | site)
        assert (answer.status, answer.message) == (403, WRONG_SITE)
        assert not [name for name in answer.headers if name.lower().startswith("access-control")]
    assert emulator.asked == []


@pytest.mark.parametrize(
    "site", [{"Origin": f"http://{HERE}", "Sec-Fetch-Site": "same-origin"}, {"Sec-Fetch-Site": "none"}]
)
def test_its_own_pages_and_the_address_bar_are_not_another_site(emulator: Emulator, site: dict[str, str]) -> None:
    assert ask(emulator, "GET", "/_ministack/health", site).status == 200


def test_no_response_has_cors_headers(emulator: Emulator) -> None:
    assert ask(emulator, "GET", "/", signed("GET", "/")).headers == {"content-type": "text/plain"}


# Routes of an HTTP API that everybody may call

OPEN_HOST = f"0123abcd.execute-api.localhost:{PORT}"


@pytest.mark.parametrize("headers", [{}, {"Authorization": "Bearer bk_test_x"}, {"Origin": "https://shop.example"}])
def test_a_route_that_everybody_may_call_needs_no_signature(emulator: Emulator, headers: dict[str, str]) -> None:
    answer = ask(emulator, "POST", "/hooks/src_1", {"Host": OPEN_HOST, **headers}, b"{}")
    assert answer.status == 200
    assert answer.headers["Access-Control-Allow-Origin"] == "*", "the function says which pages may read"
    assert emulator.asked == [("/hooks/src_1", b"{}")]


@pytest.mark.parametrize(
    ("method", "path", "headers"),
    [
        ("POST", "/tenants/acme/settings", {"Host": OPEN_HOST}),
        ("DELETE", "/hooks/src_1", {"Host": OPEN_HOST}),
        ("POST", "/hooks/src_1", {"Host": f"4567abcd.execute-api.localhost:{PORT}"}),
        ("POST", "/hooks/src_1", {"Host": HERE}),
        ("POST", "/hooks/src_1", {"Host": OPEN_HOST, "X-Amz-Target": "DynamoDB_20120810.Scan"}),
    ],
    ids=["another route", "another method", "another API", "no API", "another service"],
)
def test_no_other_request_is_let_through_with_it(
    emulator: Emulator, method: str, path: str, headers: dict[str, str]
) -> None:
    assert ask(emulator, method, path, headers, b"{}").status == 403
    assert emulator.asked == []


def test_an_open_route_at_another_host_name_is_refused(emulator: Emulator) -> None:
    host = f"0123abcd.execute-api.localhost.evil.example:{PORT}"
    assert ask(emulator, "POST", "/hooks/src_1", {"Host": host}).status == 403


def test_a_websocket_is_closed_before_it_is_accepted(emulator: Emulator) -> None:
    sent = exchange(emulator, {"type": "websocket", "path": "/", "headers": []})
    assert [event["type"] for event in sent] == ["websocket.close"]


def test_lifespan_events_are_passed_to_the_emulator(emulator: Emulator) -> None:
    assert exchange(emulator, {"type": "lifespan"}) == [{"type": "lifespan.startup.complete"}]


def test_a_disconnected_client_gets_no_response(emulator: Emulator) -> None:
    headers = [(name.encode(), value.encode()) for name, value in signed("PUT", "/").items()]
    scope = {"type": "http", "method": "PUT", "path": "/", "raw_path": b"/", "query_string": b"", "headers": headers}
    assert exchange(emulator, scope, {"type": "http.disconnect"}) == []
    assert emulator.asked == []


def test_a_refused_head_request_gets_no_body(emulator: Emulator) -> None:
    answer = ask(emulator, "HEAD", "/bucket", signed("HEAD", "/bucket", service="s3", key=Credentials("test", "test")))
    assert (answer.status, answer.body) == (403, b"")
