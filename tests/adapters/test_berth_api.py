"""Requests to the API, as a server on this machine receives them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qsl

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import EndpointConnectionError

from orchestrator.adapters.berth_api import ApiAnswer, BerthApi
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.records import TenantState

API = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com"
REGION = "eu-west-1"
ACME = TenantId("acme")
ROLLOUT = "/rollouts/20261116-120000-ab12"


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Remembers what it was asked, and answers as it was told to."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    requests: list[Received] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            told.requests.append(Received(self.command, self.path, dict(self.headers), body))
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815 - the names are http.server's

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        told.url = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield told
        http.shutdown()
        thread.join()


def credentials() -> Credentials:
    return Credentials("AKIDEXAMPLE", "secret", "session-token")


def expected_authorization(received: Received, signer: Credentials) -> str:
    """What API Gateway would work out: the signature over its own host, and over all else as it was received.

    The query goes through botocore's own encoding, from its decoded names and values.
    """
    path, _, query = received.path.partition("?")
    signed = received.headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    headers = {name.lower(): value for name, value in received.headers.items()}
    request = AWSRequest(
        received.method,
        f"{API}{path}",
        params=parse_qsl(query, strict_parsing=True) if query else None,
        headers={name: headers[name] for name in signed},
        data=received.body,
    )
    request.context["timestamp"] = received.headers["X-Amz-Date"]
    auth = SigV4Auth(signer, "execute-api", REGION)
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, SignedHeaders={';'.join(signed)}, Signature={signature}"


@pytest.mark.parametrize("endpoint", [API, f"{API}/"])
def test_the_request_is_signed_for_the_apis_own_host_wherever_it_is_sent(server: Server, endpoint: str) -> None:
    BerthApi(endpoint, credentials(), REGION, connect_to=server.url).get_queue(ACME)
    [received] = server.requests
    assert received.path == "/tenants/acme/queue"
    assert received.headers["Host"] == "a1b2c3.execute-api.eu-west-1.amazonaws.com"
    assert received.headers["X-Amz-Security-Token"] == "session-token"
    assert received.headers["Authorization"] == expected_authorization(received, credentials())
    assert "host;" in received.headers["Authorization"]


def test_a_request_goes_to_the_endpoint_itself_unless_told_otherwise(server: Server) -> None:
    BerthApi(server.url, credentials(), REGION).get_queue(ACME)
    [received] = server.requests
    assert received.headers["Host"] == server.url.removeprefix("http://")


def test_no_tenant_id_can_reach_another_path(server: Server) -> None:
    # Made without parse(), which lets none of these characters through.
    api = BerthApi(API, credentials(), REGION, connect_to=server.url)
    api.get_queue(TenantId("../a b?c#d%2F"))
    [received] = server.requests
    assert received.path == "/tenants/..%2Fa%20b%3Fc%23d%252F/queue"
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


@pytest.mark.parametrize(
    ("ask", "method", "path", "body"),
    [
        (
            lambda api: api.get_credentials(ACME, Access.SEND),
            "POST",
            "/tenants/acme/queue/credentials/send",
            None,
        ),
        (
            lambda api: api.get_credentials(ACME, Access.RECEIVE),
            "POST",
            "/tenants/acme/queue/credentials/receive",
            None,
        ),
        (lambda api: api.create(ACME), "PUT", "/tenants/acme", {}),
        (
            lambda api: api.create(ACME, pin="0.2.0", labels={"team": "blue & green, 100%"}),
            "PUT",
            "/tenants/acme",
            {"version": "0.2.0", "labels": {"team": "blue & green, 100%"}},
        ),
        (lambda api: api.create(ACME, unpin=True), "PUT", "/tenants/acme", {"version": None}),
        (
            lambda api: api.upgrade(ACME, "0.2.0", allow_downgrade=True),
            "POST",
            "/tenants/acme/upgrade",
            {"version": "0.2.0", "allowDowngrade": True, "allowReplacement": False},
        ),
        (
            lambda api: api.upgrade(ACME, allow_replacement=True),
            "POST",
            "/tenants/acme/upgrade",
            {"allowDowngrade": False, "allowReplacement": True},
        ),
        (lambda api: api.retry(ACME), "POST", "/tenants/acme/retry", None),
        (lambda api: api.delete(ACME), "DELETE", "/tenants/acme", None),
        (
            lambda api: api.delete(ACME, force=True, drain_seconds=60),
            "DELETE",
            "/tenants/acme?force=true&drainSeconds=60",
            None,
        ),
        (lambda api: api.pin(ACME, "0.2.0"), "PUT", "/tenants/acme/pin", {"version": "0.2.0"}),
        (lambda api: api.unpin(ACME), "DELETE", "/tenants/acme/pin", None),
        (
            lambda api: api.pin(ACME, "0.2.0", reason="a & b"),
            "PUT",
            "/tenants/acme/pin",
            {"version": "0.2.0", "reason": "a & b"},
        ),
        (lambda api: api.unpin(ACME, reason="a & b"), "DELETE", "/tenants/acme/pin?reason=a%20%26%20b", None),
        (lambda api: api.create(ACME, reason="a & b"), "PUT", "/tenants/acme", {"reason": "a & b"}),
        (lambda api: api.retry(ACME, reason="a & b"), "POST", "/tenants/acme/retry", {"reason": "a & b"}),
        (
            lambda api: api.delete(ACME, force=True, reason="a & b"),
            "DELETE",
            "/tenants/acme?force=true&reason=a%20%26%20b",
            None,
        ),
        (
            lambda api: api.order_rollout("20261116-120000-0a1b", "pause", reason="a & b"),
            "POST",
            "/rollouts/20261116-120000-0a1b/pause",
            {"reason": "a & b"},
        ),
        (
            lambda api: api.approve_stage("20261116-120000-0a1b", 2, reason="a & b"),
            "POST",
            "/rollouts/20261116-120000-0a1b/approve",
            {"stage": 2, "reason": "a & b"},
        ),
        (
            lambda api: api.reconcile(reason="a & b"),
            "POST",
            "/reconciliations",
            {"dryRun": False, "detectDrift": False, "reason": "a & b"},
        ),
        (lambda api: api.tenant(ACME), "GET", "/tenants/acme", None),
        (lambda api: api.tenants(), "GET", "/tenants", None),
        (
            lambda api: api.tenants(state=TenantState.UPDATE_FAILED, version="0.1.0", cursor="a-b_c", limit=5),
            "GET",
            "/tenants?status=UPDATE_FAILED&version=0.1.0&cursor=a-b_c&limit=5",
            None,
        ),
        (lambda api: api.releases(), "GET", "/releases", None),
        (
            lambda api: api.start_rollout({"version": "0.2.0", "labels": {"tier": "gold"}}),
            "POST",
            "/rollouts",
            {"version": "0.2.0", "labels": {"tier": "gold"}},
        ),
        (lambda api: api.order_rollout("20261116-120000-ab12", "pause"), "POST", f"{ROLLOUT}/pause", None),
        (lambda api: api.approve_stage("20261116-120000-ab12", 2), "POST", f"{ROLLOUT}/approve", {"stage": 2}),
        (lambda api: api.rollout("20261116-120000-ab12"), "GET", ROLLOUT, None),
        (lambda api: api.rollouts(), "GET", "/rollouts", None),
        (
            lambda api: api.rollouts(cursor="20261116-120000-ab12", limit=5),
            "GET",
            "/rollouts?cursor=20261116-120000-ab12&limit=5",
            None,
        ),
        (lambda api: api.reconcile(), "POST", "/reconciliations", {"dryRun": False, "detectDrift": False}),
        (
            lambda api: api.reconcile(dry_run=True),
            "POST",
            "/reconciliations",
            {"dryRun": True, "detectDrift": False},
        ),
        (
            lambda api: api.reconcile(detect_drift=True),
            "POST",
            "/reconciliations",
            {"dryRun": False, "detectDrift": True},
        ),
        (
            lambda api: api.reconciliation("20261116-120000-ab12"),
            "GET",
            "/reconciliations/20261116-120000-ab12",
            None,
        ),
        (lambda api: api.health(), "GET", "/diagnosis", None),
    ],
)
def test_every_request_is_signed_with_its_query_and_its_body(
    server: Server,
    ask: Callable[[BerthApi], ApiAnswer],
    method: str,
    path: str,
    body: dict[str, object] | None,
) -> None:
    assert ask(BerthApi(API, credentials(), REGION, connect_to=server.url)).status == 200
    [received] = server.requests
    assert (received.method, received.path) == (method, path)
    assert (json.loads(received.body) if received.body else None) == body
    assert received.headers.get("Content-Type") == ("application/json" if body is not None else None)
    assert ("content-type" in received.headers["Authorization"]) == (body is not None)
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


@pytest.mark.parametrize("value", ["a b", "a+b", "a&b=c", "100%", "ä/ö", "~-_.", "a%20b", "=", "?#"])
def test_a_query_arrives_as_it_was_meant_whatever_is_in_it(server: Server, value: str) -> None:
    BerthApi(API, credentials(), REGION, connect_to=server.url).tenants(cursor=value, version="0.1.0")
    [received] = server.requests
    assert parse_qsl(received.path.partition("?")[2]) == [("version", "0.1.0"), ("cursor", value)]
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


def test_a_body_that_was_changed_on_the_way_has_the_wrong_signature(server: Server) -> None:
    BerthApi(API, credentials(), REGION, connect_to=server.url).create(ACME, pin="0.2.0")
    [received] = server.requests
    changed = replace(received, body=received.body.replace(b"0.2.0", b"0.1.0"))
    assert changed.headers["Authorization"] != expected_authorization(changed, credentials())


def test_an_answer_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(ApiAnswer(200, {"credentials": {"secretAccessKey": "secret"}}))


def test_renewed_credentials_are_used(server: Server) -> None:
    current = credentials()
    api = BerthApi(API, current, REGION, connect_to=server.url)
    api.get_queue(ACME)
    current.access_key = "AKIDRENEWED"
    api.get_queue(ACME)
    assert ["AKIDRENEWED" in each.headers["Authorization"] for each in server.requests] == [False, True]


def test_an_answer(server: Server) -> None:
    server.status, server.headers = 202, {"Retry-After": "2"}
    server.body = json.dumps({"status": "PROVISIONING"}).encode()
    api = BerthApi(API, credentials(), REGION, connect_to=server.url)
    assert api.get_queue(ACME) == ApiAnswer(202, {"status": "PROVISIONING"}, 2.0)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]", b"\xff"])
def test_an_answer_that_is_not_a_json_object(server: Server, body: bytes) -> None:
    server.status, server.body = 502, body
    api = BerthApi(API, credentials(), REGION, connect_to=server.url)
    assert api.get_queue(ACME) == ApiAnswer(502, {}, None)


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon"])
def test_a_retry_after_that_is_no_number_of_seconds_is_left_alone(server: Server, value: str) -> None:
    server.status, server.headers = 503, {"Retry-After": value}
    assert BerthApi(API, credentials(), REGION, connect_to=server.url).get_queue(ACME).retry_after is None


def test_a_proxy_is_not_asked_for_a_local_api(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert BerthApi(API, credentials(), REGION, connect_to=server.url).get_queue(ACME).status == 200


def test_an_api_that_cannot_be_reached() -> None:
    # No port 0 ever listens.
    with pytest.raises(EndpointConnectionError):
        BerthApi(API, credentials(), REGION, connect_to="http://127.0.0.1:0").get_queue(ACME)
