"""The functions that answer tenants, operators and Zapier about connections."""

from __future__ import annotations

import importlib
import json
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from lambdas import event_connections
from orchestrator.api.connection_routes import TENANT_ROUTES
from orchestrator.api.for_operators import for_operators
from orchestrator.api.reading import decode
from orchestrator.events.event_types import no_event_type
from tests.adapters.conftest import TABLE
from tests.adapters.events.functions import EventFunctions, HttpAnswer
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes import ACME

WEBHOOK = {"name": "Shop", "destination": "webhook", "address": "https://shop.example/hooks"}
ZAP = {"hookUrl": "https://hooks.zapier.com/hooks/standard/1/abc/", "event_type": "order.created"}
ROUTES = {route.key: route for route in (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES))}
SOURCE = {"name": "GitHub", "provider": "github"}


def is_documented(route: str, answer: HttpAnswer) -> bool:
    """True if the route declares the answer, and the answer has its model."""
    for each in ROUTES[route].answers:
        if each.status == answer.status:
            decode(each.model, answer.body, "the answer")
            return not set(answer.body) - {field.encode_name for field in msgspec.structs.fields(each.model)}
    return (answer.kind, answer.status) in {(each.kind, each.status) for each in ROUTES[route].problems}


def ids_of(route: Any, connection: HttpAnswer, subscription: HttpAnswer) -> dict[str, str]:
    ids = {"connectionId": connection.body["connection_id"], "subscriptionId": subscription.body["id"]}
    return {name: ids[name] for name in route.path_parameters}


BODIES = {"createConnection": WEBHOOK, "updateConnection": {"filter": {"event_type": "x"}}, "subscribeZap": ZAP}


def test_the_answers_are_those_that_are_declared(event_functions: EventFunctions) -> None:
    event_functions.key()
    operate = event_functions.operate
    connection, subscription = operate("POST /connections", body=WEBHOOK), operate("POST /zapier/hooks", body=ZAP)
    for each in event_connections.SERVED:
        route = each.route
        body = BODIES.get(route.name, {} if route.has_body else None)
        answer = operate(route.key, ids=ids_of(route, connection, subscription), body=body)
        assert answer.status < 300, (route.key, answer.body)
        assert is_documented(for_operators(route).key, answer), (route.key, answer.body)


def test_every_declared_route_is_served_to_tenants_and_operators(event_functions: EventFunctions) -> None:
    event_functions.operate("GET /settings")
    import lambdas.events.event_operators as operators
    import lambdas.events.tenant_events as tenants

    assert {route.key for route in TENANT_ROUTES} <= set(tenants.ROUTES)
    assert {for_operators(route).key for route in TENANT_ROUTES} <= set(operators.ROUTES)


def test_a_connection_needs_only_a_name(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    created = event_functions.ask("POST /connections", key, body={"name": "Own queue"})
    assert (created.status, created.body["destination"], created.body["origin"]) == (201, "queue", "api")
    assert (created.body["secret"], created.body["signed"], created.body["address"]) == (None, False, None)
    listed = event_functions.ask("GET /connections", key).body["connections"]
    assert listed == [{name: value for name, value in created.body.items() if name != "secret"}]


def test_a_secret_is_shown_once_and_not_to_be_cached(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    created = event_functions.ask("POST /connections", key, body=WEBHOOK)
    ids = {"connectionId": created.body["connection_id"]}
    rotated = event_functions.ask("POST /connections/{connectionId}/rotate", key, ids=ids)
    assert rotated.status == 201
    for answer in (created, rotated):
        assert answer.headers["Cache-Control"] == "no-store"
        secret = answer.body["secret"]
        assert secret.startswith("whsec_")
        shown = [
            event_functions.ask("GET /connections", key),
            event_functions.ask("GET /connections/{connectionId}", key, ids=ids),
            event_functions.ask("POST /connections/{connectionId}/pause", key, ids=ids),
            event_functions.operate("GET /changes"),
        ]
        assert secret not in json.dumps([each.body for each in shown])
        assert secret not in str(event_functions.dynamodb.scan(TableName=TABLE)["Items"])


@pytest.mark.parametrize("scopes", [("read",), ("write",), ("read", "write")])
def test_only_an_admin_key_changes_connections_and_a_reading_key_sees_them(
    event_functions: EventFunctions, scopes: tuple[str, ...]
) -> None:
    admin = event_functions.key("admin")
    connection = event_functions.ask("POST /connections", admin, body=WEBHOOK)
    subscription = event_functions.ask("POST /zapier/hooks", admin, body=ZAP)
    key = event_functions.key(*scopes)
    for route in TENANT_ROUTES:
        body = BODIES.get(route.name, {} if route.has_body else None)
        answer = event_functions.ask(route.key, key, ids=ids_of(route, connection, subscription), body=body)
        expected = 200 if route.scope == "read" and "read" in scopes else 403
        assert answer.status == expected, route.key


def test_a_key_reaches_nothing_of_another_tenant(event_functions: EventFunctions) -> None:
    event_functions.key("admin", tenant="globex")
    operate = event_functions.operate
    connection = operate("POST /connections", tenant="globex", body=WEBHOOK)
    subscription = operate("POST /zapier/hooks", tenant="globex", body=ZAP)
    source = operate("POST /sources", tenant="globex", body=SOURCE)
    before = operate("GET /connections", tenant="globex").body
    key = event_functions.key("admin")
    for route in TENANT_ROUTES:
        if route.path_parameters:
            body = BODIES.get(route.name, {} if route.has_body else None)
            answer = event_functions.ask(route.key, key, ids=ids_of(route, connection, subscription), body=body)
            # To unsubscribe what does not exist is done already.
            assert answer.status == (200 if route.name == "unsubscribeZap" else 404), route.key
            assert "globex" not in json.dumps(answer.body)
    stolen = event_functions.ask("POST /connections", key, body={**WEBHOOK, "origin": source.body["source_id"]})
    assert (stolen.status, stolen.kind) == (404, "no-such-source")
    assert event_functions.ask("GET /connections", key).body == {"connections": []}
    assert operate("GET /connections", tenant="globex").body == before


def test_a_tenant_cannot_choose_an_address_of_mail_but_an_operator_can(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    mail = {"name": "Mail", "destination": "email", "address": "ada@example.com"}
    assert (
        "berth:eventsMailFrom"
        in event_functions.ask("POST /connections", event_functions.key("admin"), body=mail).body["detail"]
    )
    monkeypatch.setenv("BERTH_EVENTS_MAIL_FROM", "events@berth.example")
    refused = event_functions.ask("POST /connections", event_functions.key("admin"), body=mail)
    assert (refused.status, refused.kind) == (400, "invalid-request")
    assert "operator" in refused.body["detail"]
    assert event_functions.operate("POST /connections", body=mail).status == 201


def test_our_own_host_is_no_destination_and_loopback_only_where_it_is_switched_on(
    event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = event_functions.key("admin")
    monkeypatch.setenv("BERTH_OWN_HOSTS", "api.berth.example")
    for address in ("https://api.berth.example/hooks/x", "http://127.0.0.1:3000/hook"):
        assert event_functions.ask("POST /connections", key, body={**WEBHOOK, "address": address}).status == 400
    monkeypatch.setenv("BERTH_LOOPBACK_DESTINATIONS", "true")
    local = {**WEBHOOK, "address": "http://127.0.0.1:3000/hook"}
    assert event_functions.ask("POST /connections", key, body=local).status == 201


def test_a_test_is_accepted_for_one_connection(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin", "read")
    created = event_functions.ask("POST /connections", key, body=WEBHOOK)
    ids = {"connectionId": created.body["connection_id"]}
    sent = event_functions.ask("POST /connections/{connectionId}/test", key, ids=ids)
    assert sent.status == 202
    event = event_functions.ask("GET /events/{eventId}", key, ids={"eventId": sent.body["event_id"]}).body
    assert (event["event_type"], event["metadata"]) == ("berth.test", {"only_connection": ids["connectionId"]})
    assert event["payload"]["connection_name"] == "Shop"
    assert event_functions.ask("GET /inbox", key).body["events"] == []


def test_zapier_subscribes_once_gets_samples_and_unsubscribes_twice(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    first = event_functions.ask("POST /zapier/hooks", key, body=ZAP)
    named = {"target_url": ZAP["hookUrl"], "event_type": ZAP["event_type"]}
    second = event_functions.ask("POST /zapier/hooks", key, body=named)
    assert (first.status, second.status) == (201, 201)
    assert first.body == second.body
    assert first.body["event_type"] == "order.created"
    samples = event_functions.ask("GET /zapier/sample", key, query={"event_type": "order.created"})
    assert samples.body == {"samples": [{"event_type": "order.created", "sample": True}]}
    ids = {"subscriptionId": first.body["id"]}
    for _ in range(2):
        assert event_functions.ask("DELETE /zapier/hooks/{subscriptionId}", key, ids=ids).status == 200
    assert event_functions.ask("GET /connections", key).body == {"connections": []}


def test_a_source_with_connections_is_deleted_after_them(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    source = event_functions.ask("POST /sources", key, body=SOURCE).body["source_id"]
    created = event_functions.ask("POST /connections", key, body={**WEBHOOK, "origin": source})
    refused = event_functions.ask("DELETE /sources/{sourceId}", key, ids={"sourceId": source})
    assert (refused.status, refused.kind) == (409, "has-connections")
    assert created.body["connection_id"] in refused.body["detail"]
    event_functions.ask("DELETE /connections/{connectionId}", key, ids={"connectionId": created.body["connection_id"]})
    assert event_functions.ask("DELETE /sources/{sourceId}", key, ids={"sourceId": source}).status == 200


@pytest.mark.parametrize(
    ("route", "body", "complaint"),
    [
        ("POST /connections", {}, "'name' is a required property"),
        ("POST /connections", {"name": "x", "destination": "pigeon"}, "destination"),
        ("POST /connections", {"name": "x", "origin": "SRC#api"}, "origin"),
        ("POST /connections", {"name": "x", "address": "https://shop.example/"}, "address"),
        ("POST /connections", {**WEBHOOK, "address": "https://localhost/"}, "not allowed"),
        ("POST /connections", {**WEBHOOK, "address": "https://[::1]/"}, "not allowed"),
        ("POST /connections", {**WEBHOOK, "filter": {"colour": 1}}, "colour"),
        ("POST /connections", {**WEBHOOK, "filter": {"event_type": "a b"}}, no_event_type("a b")),
        ("POST /connections", {**WEBHOOK, "filter": {"payload": {"$regex": "a+"}}}, r"\$regex"),
        ("POST /connections", {**WEBHOOK, "transform": {"eval": "1"}}, "eval"),
        ("POST /connections", {**WEBHOOK, "retry_seconds": [0]}, "retry_seconds"),
        ("POST /connections", {**WEBHOOK, "retry_seconds": [1] * 12}, "retry_seconds"),
        ("POST /connections", {**WEBHOOK, "retry_seconds": [604800]}, "7 days"),
        ("POST /zapier/hooks", {"event_type": "x"}, "target_url"),
        ("POST /zapier/hooks", {"hookUrl": "https://shop.example/"}, "zapier"),
    ],
)
def test_a_wrong_request_is_refused_with_the_reason_and_nothing_is_written(
    event_functions: EventFunctions, route: str, body: dict[str, Any], complaint: str
) -> None:
    key = event_functions.key("admin")
    event_functions.ask("GET /settings", key)
    before = event_functions.rows
    answer = event_functions.ask(route, key, body=body)
    assert (answer.status, answer.kind) == (400, "invalid-request")
    assert complaint.replace("\\", "") in answer.body["detail"]
    assert event_functions.rows == before


def test_a_tenant_sees_that_berth_itself_disabled_a_connection(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    connection_id = event_functions.ask("POST /connections", key, body=WEBHOOK).body["connection_id"]
    ports = importlib.import_module("lambdas.event_runtime").use_cases.ports
    (found,) = ports.configuration_table("key_1").connections(ports.configuration.settings(ACME).life)
    event_functions.clock.advance(timedelta(days=5))
    assert ports.connection_changes.disable(found, "It failed for 5 days.", event_functions.clock.now())
    (latest, *_) = event_functions.ask("GET /changes", key).body["changes"]
    assert (latest["changed_by"], latest["kind"]) == ("berth", "connection-disabled")
    shown = event_functions.ask("GET /connections/{connectionId}", key, ids={"connectionId": connection_id}).body
    assert (shown["status"], shown["reason"]) == ("disabled", "It failed for 5 days.")


def test_a_nested_or_huge_filter_is_refused(event_functions: EventFunctions) -> None:
    key = event_functions.key("admin")
    for inside in ("[" * 3000 + "]" * 3000, "1" * 5000, '"' + "x" * 9000 + '"'):
        body = f'{{"name": "x", "filter": {{"payload": {{"$eq": {inside}}}}}}}'
        answer = event_functions.ask("POST /connections", key, body=body)
        assert answer.status == 400, answer.body


def test_nothing_secret_is_logged(
    event_functions: EventFunctions,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
    key = event_functions.key("admin")
    hidden = {**WEBHOOK, "address": "https://shop.example/hunter2", "transform": {"set": {"password": "hunter2"}}}
    created = event_functions.ask("POST /connections", key, body=hidden)
    event_functions.ask("POST /connections", key, body={**hidden, "filter": {"x": "hunter2"}})
    logged = capsys.readouterr().out
    assert created.body["connection_id"] in logged
    assert [word for word in (key, created.body["secret"], "hunter2") if word in logged] == []
    assert "hunter2" not in str(event_functions.dynamodb.scan(TableName=EVENTS_TABLE)["Items"])
