"""Requests to the API, as a server on this machine receives them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import EndpointConnectionError

from orchestrator.adapters.queue_api import ApiAnswer, QueueApi
from orchestrator.tenants import TenantId

API = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com"
REGION = "eu-west-1"
ACME = TenantId("acme")


@dataclass
class Server:
    """Remembers what it was asked, and answers as it was told to."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    told = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            told.requests.append((self.path, dict(self.headers)))
            self.send_response(told.status)
            for name, value in told.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(told.body)

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


def expected_authorization(path: str, headers: dict[str, str], signer: Credentials) -> str:
    """What the server would work out: the signature over the API's own host and the path as received."""
    signed = headers["Authorization"].partition("SignedHeaders=")[2].partition(",")[0].split(";")
    received = {name.lower(): value for name, value in headers.items()}
    request = AWSRequest("GET", f"{API}{path}", headers={name: received[name] for name in signed})
    request.context["timestamp"] = headers["X-Amz-Date"]
    auth = SigV4Auth(signer, "execute-api", REGION)
    signature = auth.signature(auth.string_to_sign(request, auth.canonical_request(request)), request)
    return f"AWS4-HMAC-SHA256 Credential={auth.scope(request)}, SignedHeaders={';'.join(signed)}, Signature={signature}"


@pytest.mark.parametrize("endpoint", [API, f"{API}/"])
def test_the_request_is_signed_for_the_apis_own_host_wherever_it_is_sent(server: Server, endpoint: str) -> None:
    QueueApi(endpoint, credentials(), REGION, connect_to=server.url).get_queue(ACME)
    [(path, headers)] = server.requests
    assert path == "/tenants/acme/queue"
    assert headers["Host"] == "a1b2c3.execute-api.eu-west-1.amazonaws.com"
    assert headers["X-Amz-Security-Token"] == "session-token"
    assert headers["Authorization"] == expected_authorization(path, headers, credentials())
    assert "host;" in headers["Authorization"]


def test_a_request_goes_to_the_endpoint_itself_unless_told_otherwise(server: Server) -> None:
    QueueApi(server.url, credentials(), REGION).get_queue(ACME)
    [(_, headers)] = server.requests
    assert headers["Host"] == server.url.removeprefix("http://")


def test_no_tenant_id_can_reach_another_path(server: Server) -> None:
    # Made without parse(), which lets none of these characters through.
    api = QueueApi(API, credentials(), REGION, connect_to=server.url)
    api.get_queue(TenantId("../a b?c#d%2F"))
    [(path, headers)] = server.requests
    assert path == "/tenants/..%2Fa%20b%3Fc%23d%252F/queue"
    assert headers["Authorization"] == expected_authorization(path, headers, credentials())


def test_renewed_credentials_are_used(server: Server) -> None:
    current = credentials()
    api = QueueApi(API, current, REGION, connect_to=server.url)
    api.get_queue(ACME)
    current.access_key = "AKIDRENEWED"
    api.get_queue(ACME)
    assert ["AKIDRENEWED" in headers["Authorization"] for _, headers in server.requests] == [False, True]


def test_an_answer(server: Server) -> None:
    server.status, server.headers = 202, {"Retry-After": "2"}
    server.body = json.dumps({"status": "PROVISIONING"}).encode()
    api = QueueApi(API, credentials(), REGION, connect_to=server.url)
    assert api.get_queue(ACME) == ApiAnswer(202, {"status": "PROVISIONING"}, 2.0)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]", b"\xff"])
def test_an_answer_that_is_not_a_json_object(server: Server, body: bytes) -> None:
    server.status, server.body = 502, body
    api = QueueApi(API, credentials(), REGION, connect_to=server.url)
    assert api.get_queue(ACME) == ApiAnswer(502, {}, None)


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon"])
def test_a_retry_after_that_is_no_number_of_seconds_is_left_alone(server: Server, value: str) -> None:
    server.status, server.headers = 503, {"Retry-After": value}
    assert QueueApi(API, credentials(), REGION, connect_to=server.url).get_queue(ACME).retry_after is None


def test_a_proxy_is_not_asked_for_a_local_api(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert QueueApi(API, credentials(), REGION, connect_to=server.url).get_queue(ACME).status == 200


def test_an_api_that_cannot_be_reached() -> None:
    # No port 0 ever listens.
    with pytest.raises(EndpointConnectionError):
        QueueApi(API, credentials(), REGION, connect_to="http://127.0.0.1:0").get_queue(ACME)
