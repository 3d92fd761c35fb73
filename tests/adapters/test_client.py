"""Requests to the API, as a server on this machine receives them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, HTTPServer
from threading import Thread
from urllib.parse import parse_qsl

import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import EndpointConnectionError

from orchestrator.api import comparison_routes as comparisons
from orchestrator.api import operation_routes as operations
from orchestrator.api import queue_routes as queues
from orchestrator.api import reconciliation_routes as reconciliations
from orchestrator.api import release_models, rollout_requests, tenant_models
from orchestrator.api import release_routes as releases
from orchestrator.api import rollout_routes as rollouts
from orchestrator.api import tenant_routes as tenants
from orchestrator.api.event_configuration_models import (
    CreateKey,
    NoParameters,
)
from orchestrator.api.event_configuration_routes import (
    CREATE_KEY,
    LIST_KEYS,
)
from orchestrator.api.fields import EmptyRequest, TenantIdRequest, Wire
from orchestrator.api.reading import read
from orchestrator.api.requesting import request_of
from orchestrator.api.route import AnyRoute
from orchestrator.api.routes import ROUTES
from orchestrator.client.client import Client
from orchestrator.client.errors import RequestRefused
from orchestrator.client.transport import ApiAnswer, SignedHttp
from orchestrator.common.errors import InvalidRequest
from orchestrator.events.records import Scope
from orchestrator.tenants.records import TenantState
from tests.present import present
from tests.unit.cli.fake_api import EVENT_EXAMPLES

API = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com"
REGION = "eu-west-1"
ACME = TenantIdRequest(tenant_id="acme")
REQUEST = request_of(queues.GET_QUEUE, ACME)


@dataclass(frozen=True)
class Received:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes


@dataclass
class Server:
    """Records requests, and gives the configured answer."""

    url: str = ""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b"{}"
    requests: list[Received] = field(default_factory=list)


@pytest.fixture
def server() -> Iterator[Server]:
    recorder = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_any(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            recorder.requests.append(Received(self.command, self.path, dict(self.headers), body))
            self.send_response(recorder.status)
            for name, value in recorder.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(recorder.body)

        do_GET = do_PUT = do_POST = do_DELETE = do_any  # noqa: N815 - the names are http.server's

        def log_message(self, *_: object) -> None:
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as http:
        recorder.url = f"http://127.0.0.1:{http.server_port}"
        thread = Thread(target=http.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield recorder
        http.shutdown()
        thread.join()


def client(server: Server) -> Client:
    return Client(transport=SignedHttp(API, credentials(), REGION, connect_to=server.url))


def credentials() -> Credentials:
    return Credentials("AKIDEXAMPLE", "secret", "session-token")


def expected_authorization(received: Received, signer: Credentials) -> str:
    """The signature that API Gateway would compute: over its own host, and over everything else as received.

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
    SignedHttp(endpoint, credentials(), REGION, connect_to=server.url).send(REQUEST)
    [received] = server.requests
    assert received.path == "/tenants/acme/queue"
    assert received.headers["Host"] == "a1b2c3.execute-api.eu-west-1.amazonaws.com"
    assert received.headers["X-Amz-Security-Token"] == "session-token"
    assert received.headers["Authorization"] == expected_authorization(received, credentials())
    assert "host;" in received.headers["Authorization"]


def test_a_request_goes_to_the_endpoint_itself_by_default(server: Server) -> None:
    SignedHttp(server.url, credentials(), REGION).send(REQUEST)
    [received] = server.requests
    assert received.headers["Host"] == server.url.removeprefix("http://")


def test_no_tenant_id_can_reach_another_path(server: Server) -> None:
    # The model is constructed, not decoded: decoding would refuse these characters.
    client(server).send_request(queues.GET_QUEUE, TenantIdRequest(tenant_id="../a b?c#d%2F"))
    [received] = server.requests
    assert received.path == "/tenants/..%2Fa%20b%3Fc%23d%252F/queue"
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


ID = "20261116-120000-ab12"
WHY = "a & b"
REQUESTS: list[tuple[AnyRoute, Wire, str, dict[str, object] | None]] = [
    (queues.GET_QUEUE, ACME, "/tenants/acme/queue", None),
    (queues.GET_SEND_CREDENTIALS, ACME, "/tenants/acme/queue/credentials/send", None),
    (queues.GET_RECEIVE_CREDENTIALS, ACME, "/tenants/acme/queue/credentials/receive", None),
    (tenants.CREATE_TENANT, tenant_models.CreateTenant(tenant_id="acme"), "/tenants/acme", None),
    (
        tenants.CREATE_TENANT,
        tenant_models.CreateTenant(tenant_id="acme", version="0.2.0", labels={"team": "blue @ green"}, reason=WHY),
        "/tenants/acme",
        {"version": "0.2.0", "labels": {"team": "blue @ green"}, "reason": WHY},
    ),
    (
        tenants.CREATE_TENANT,
        tenant_models.CreateTenant(tenant_id="acme", version=None),
        "/tenants/acme",
        {"version": None},
    ),
    (
        tenants.UPGRADE_TENANT,
        tenant_models.UpgradeTenant(tenant_id="acme", version="0.2.0", allow_downgrade=True),
        "/tenants/acme/upgrade",
        {"version": "0.2.0", "allowDowngrade": True},
    ),
    (tenants.RETRY_TENANT, tenant_models.RetryTenant(tenant_id="acme"), "/tenants/acme/retry", None),
    (tenants.DELETE_TENANT, tenant_models.DeleteTenant(tenant_id="acme"), "/tenants/acme", None),
    (
        tenants.DELETE_TENANT,
        tenant_models.DeleteTenant(tenant_id="acme", force=True, drain_seconds=60, reason=WHY),
        "/tenants/acme?force=true&drainSeconds=60&reason=a%20%26%20b",
        None,
    ),
    (
        tenants.LABEL_TENANT,
        tenant_models.LabelTenant(tenant_id="acme", set={"plan": "gold"}, remove=["trial"]),
        "/tenants/acme/labels",
        {"set": {"plan": "gold"}, "remove": ["trial"]},
    ),
    (
        tenants.PIN_TENANT,
        tenant_models.PinTenant(tenant_id="acme", version="0.2.0"),
        "/tenants/acme/pin",
        {"version": "0.2.0"},
    ),
    (tenants.UNPIN_TENANT, tenant_models.UnpinTenant(tenant_id="acme"), "/tenants/acme/pin", None),
    (tenants.GET_TENANT, tenant_models.GetTenant(tenant_id="acme"), "/tenants/acme", None),
    (tenants.LIST_TENANTS, tenant_models.ListTenants(), "/tenants", None),
    (
        tenants.LIST_TENANTS,
        tenant_models.ListTenants(label="plan=gold,team=a b", pinned=True),
        "/tenants?label=plan%3Dgold%2Cteam%3Da%20b&pinned=true",
        None,
    ),
    (
        tenants.LIST_TENANTS,
        tenant_models.ListTenants(state=TenantState.UPDATE_FAILED, version="0.1.0", cursor="a-b_c", limit=5),
        "/tenants?state=UPDATE_FAILED&version=0.1.0&cursor=a-b_c&limit=5",
        None,
    ),
    (releases.LIST_RELEASES, EmptyRequest(), "/releases", None),
    (
        releases.WITHDRAW_RELEASE,
        release_models.OrderRelease(version="0.2.0", reason="it is bad"),
        "/releases/0.2.0/withdraw",
        {"reason": "it is bad"},
    ),
    (releases.PROMOTE_RELEASE, release_models.OrderRelease(version="0.2.0"), "/releases/0.2.0/promote", None),
    (releases.REINSTATE_RELEASE, release_models.OrderRelease(version="0.2.0"), "/releases/0.2.0/reinstate", None),
    (
        releases.GET_RELEASE_CHANGES,
        release_models.GetReleaseChanges(version="0.2.0", from_version="0.1.0"),
        "/releases/0.2.0/changes?fromVersion=0.1.0",
        None,
    ),
    (
        rollouts.START_ROLLOUT,
        rollout_requests.StartRollout(version="0.2.0", stages=[rollout_requests.StageSpec(size="rest", alarm=None)]),
        "/rollouts",
        {"version": "0.2.0", "stages": [{"size": "rest", "alarm": None}]},
    ),
    (rollouts.LIST_ROLLOUTS, rollout_requests.ListRollouts(cursor=ID, limit=5), f"/rollouts?cursor={ID}&limit=5", None),
    (rollouts.GET_ROLLOUT, rollout_requests.RolloutIdRequest(rollout_id=ID), f"/rollouts/{ID}", None),
    *(
        (route, rollout_requests.OrderRollout(rollout_id=ID, reason=WHY), f"/rollouts/{ID}/{verb}", {"reason": WHY})
        for verb, route in (
            ("pause", rollouts.PAUSE_ROLLOUT),
            ("resume", rollouts.RESUME_ROLLOUT),
            ("abort", rollouts.ABORT_ROLLOUT),
            ("retry", rollouts.RETRY_ROLLOUT),
        )
    ),
    (
        rollouts.APPROVE_ROLLOUT,
        rollout_requests.ApproveStage(rollout_id=ID, stage=2),
        f"/rollouts/{ID}/approve",
        {"stage": 2},
    ),
    (
        rollouts.PROMOTE_ROLLOUT,
        rollout_requests.PromoteStage(rollout_id=ID, stage=2),
        f"/rollouts/{ID}/promote",
        {"stage": 2},
    ),
    (
        rollouts.CHANGE_ROLLOUT,
        rollout_requests.ChangeRollout(rollout_id=ID, max_concurrency=5, reason=WHY),
        f"/rollouts/{ID}/change",
        {"maxConcurrency": 5, "reason": WHY},
    ),
    (
        releases.PUBLISH_RELEASE,
        release_models.ProposeRelease(version="2.1.0", template={"Resources": {}}, tier="gold", notes="A table."),
        "/releases/2.1.0",
        {"template": {"Resources": {}}, "tier": "gold", "notes": "A table."},
    ),
    (
        releases.CHECK_RELEASE,
        release_models.ProposeRelease(version="2.1.0", template={"Resources": {}}),
        "/releases/2.1.0/check",
        {"template": {"Resources": {}}},
    ),
    (
        tenants.MOVE_TENANT,
        tenant_models.MoveTenant(tenant_id="acme", tier="gold", reason=WHY),
        "/tenants/acme/move",
        {"tier": "gold", "reason": WHY},
    ),
    (comparisons.COMPARE_TENANT, comparisons.CompareTenant(tenant_id="acme"), "/tenants/acme/stack", None),
    (operations.LIST_OPERATIONS, operations.ListOperations(limit=5), "/operations?limit=5", None),
    (reconciliations.LIST_RECONCILIATIONS, EmptyRequest(), "/reconciliations", None),
    (
        reconciliations.START_RECONCILIATION,
        reconciliations.StartReconciliation(detect_drift=True),
        "/reconciliations",
        {"detectDrift": True},
    ),
    (
        reconciliations.GET_RECONCILIATION,
        reconciliations.ReconciliationIdRequest(reconciliation_id=ID),
        f"/reconciliations/{ID}",
        None,
    ),
    (reconciliations.GET_DIAGNOSIS, EmptyRequest(), "/diagnosis", None),
]


def test_the_requests_cover_every_route() -> None:
    assert {route.key for route, *_ in REQUESTS} == {route.key for route in ROUTES}


@pytest.mark.parametrize(("route", "model", "path", "body"), REQUESTS)
def test_every_request_is_signed_with_its_query_and_its_body(
    server: Server, route: AnyRoute, model: Wire, path: str, body: dict[str, object] | None
) -> None:
    assert client(server).send_request(route, model).status == 200
    [received] = server.requests
    assert (received.method, received.path) == (route.method, path)
    assert (json.loads(received.body) if received.body else None) == body
    assert received.headers.get("Content-Type") == ("application/json" if body is not None else None)
    assert ("content-type" in received.headers["Authorization"]) == (body is not None)
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


@pytest.mark.parametrize(("route", "model"), [(route, model) for route, model, *_ in REQUESTS])
def test_a_sent_request_is_decoded_to_the_same_model(route: AnyRoute, model: Wire) -> None:
    request = request_of(route, model)
    named = present(re.fullmatch(re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", route.path), request.path))
    event = {
        "pathParameters": named.groupdict(),
        "queryStringParameters": dict(request.query),
        "body": None if request.body is None else json.dumps(request.body),
    }
    assert read(route, event) == model


@pytest.mark.parametrize("value", ["a b", "a+b", "a&b=c", "100%", "ä/ö", "~-_.", "a%20b", "=", "?#"])
def test_a_query_with_special_characters_arrives_unchanged(server: Server, value: str) -> None:
    client(server).send_request(tenants.LIST_TENANTS, tenant_models.ListTenants(cursor=value, version="0.1.0"))
    [received] = server.requests
    assert parse_qsl(received.path.partition("?")[2]) == [("version", "0.1.0"), ("cursor", value)]
    assert received.headers["Authorization"] == expected_authorization(received, credentials())


def test_a_body_that_was_changed_in_transit_has_a_wrong_signature(server: Server) -> None:
    client(server).send_request(tenants.CREATE_TENANT, tenant_models.CreateTenant(tenant_id="acme", version="0.2.0"))
    [received] = server.requests
    changed = replace(received, body=received.body.replace(b"0.2.0", b"0.1.0"))
    assert changed.headers["Authorization"] != expected_authorization(changed, credentials())


def test_an_answer_is_not_shown_by_accident() -> None:
    assert "secret" not in repr(ApiAnswer(200, {"credentials": {"secretAccessKey": "secret"}}))


def test_renewed_credentials_are_used(server: Server) -> None:
    current = credentials()
    http = SignedHttp(API, current, REGION, connect_to=server.url)
    http.send(REQUEST)
    current.access_key = "AKIDRENEWED"
    http.send(REQUEST)
    assert ["AKIDRENEWED" in each.headers["Authorization"] for each in server.requests] == [False, True]


def test_an_answer_has_status_body_and_retry_after(server: Server) -> None:
    server.status, server.headers = 202, {"Retry-After": "2"}
    server.body = json.dumps({"state": "PROVISIONING"}).encode()
    assert client(server).send_request(queues.GET_QUEUE, ACME) == ApiAnswer(202, {"state": "PROVISIONING"}, 2.0)


@pytest.mark.parametrize("body", [b"", b"<html>Bad gateway</html>", b"[1]", b"\xff"])
def test_an_answer_that_is_not_a_json_object_has_an_empty_body(server: Server, body: bytes) -> None:
    server.status, server.body = 502, body
    assert client(server).send_request(queues.GET_QUEUE, ACME) == ApiAnswer(502, {}, None)


@pytest.mark.parametrize("value", ["Wed, 21 Oct 2026 07:28:00 GMT", "-1", "soon"])
def test_a_retry_after_that_is_not_a_number_of_seconds_is_ignored(server: Server, value: str) -> None:
    server.status, server.headers = 503, {"Retry-After": value}
    assert client(server).send_request(queues.GET_QUEUE, ACME).retry_after is None


def test_requests_to_a_local_api_bypass_the_proxy(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert client(server).send_request(queues.GET_QUEUE, ACME).status == 200


def test_an_unreachable_api_is_a_connection_error() -> None:
    # Nothing listens on port 0.
    with pytest.raises(EndpointConnectionError):
        SignedHttp(API, credentials(), REGION, connect_to="http://127.0.0.1:0").send(REQUEST)


class TestWithAnApiKey:
    KEY = f"bk_live_{'A' * 43}"

    def test_the_key_is_sent_and_nothing_is_signed(self, server: Server) -> None:
        server.status, server.body = 201, json.dumps(EVENT_EXAMPLES["models"]["IssuedKey"]).encode()
        made = Client.with_key(server.url, self.KEY).call(CREATE_KEY, CreateKey(name="shop", scopes=[Scope.WRITE]))
        (received,) = server.requests
        assert (received.method, received.path) == ("POST", "/keys")
        assert received.headers["Authorization"] == f"Bearer {self.KEY}"
        assert json.loads(received.body) == {"name": "shop", "scopes": ["write"]}
        assert not [name for name in received.headers if name.lower().startswith("x-amz-")]
        assert made.key.startswith("bk_live_")
        assert made.key not in repr(made)

    @pytest.mark.parametrize("around", ["{}\n", "key: {}\nname: Shop", "{}\x00", "{}€"])
    def test_text_that_is_not_a_key_is_refused_and_not_quoted(self, server: Server, around: str) -> None:
        with pytest.raises(InvalidRequest) as refused:
            Client.with_key(server.url, around.format(self.KEY)).call(LIST_KEYS, NoParameters())
        assert self.KEY not in str(refused.value)
        assert server.requests == []

    def test_a_refusal_says_why(self, server: Server) -> None:
        server.status = 401
        server.body = b'{"type": "urn:berth:problem:unknown-key", "detail": "The API key is missing, ..."}'
        with pytest.raises(RequestRefused) as refused:
            Client.with_key(server.url, self.KEY).call(LIST_KEYS, NoParameters())
        assert (refused.value.kind, refused.value.status) == ("unknown-key", 401)
        assert self.KEY not in str(refused.value)
