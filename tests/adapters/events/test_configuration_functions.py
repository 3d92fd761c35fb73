"""The functions that answer tenants and operators about settings, keys, sources and forms."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from lambdas import event_configuration
from orchestrator.api.event_configuration_routes import PUT_SETTINGS, TENANT_ROUTES
from orchestrator.api.for_operators import for_operators
from orchestrator.api.reading import decode
from tests.adapters.events.functions import ADA, GLOBEX, EventFunctions, HttpAnswer, http_event

SOURCE = {"name": "GitHub", "provider": "github", "secret": "correct horse battery"}
FORM = {"name": "Contact", "origins": ["https://acme.example"]}
ROUTES = {route.key: route for route in (*TENANT_ROUTES, *map(for_operators, TENANT_ROUTES), PUT_SETTINGS)}


def is_documented(route: str, answer: HttpAnswer) -> bool:
    """True if the route declares the answer, and the answer has its model."""
    declared = ROUTES[route]
    for each in declared.answers:
        if each.status == answer.status:
            decode(each.model, answer.body, "the answer")
            unknown = set(answer.body) - {field.encode_name for field in msgspec.structs.fields(each.model)}
            return not unknown
    return (answer.kind, answer.status) in {(each.kind, each.status) for each in declared.problems}


class TestOperators:
    def test_settings_are_made_changed_and_read(self, event_functions: EventFunctions) -> None:
        event_functions.serve()
        made = event_functions.operate("PUT /settings", body={"plan": "pro", "inbox": True})
        assert made.status == 200
        assert (made.body["plan"], made.body["inbox"], made.body["shards"]) == ("pro", True, 2)
        assert made.body["retention_hours"] == 720
        changed = event_functions.operate("PUT /settings", body={"tenant_name": "Acme"})
        assert event_functions.operate("GET /settings").body == changed.body == {**made.body, "tenant_name": "Acme"}
        assert is_documented("PUT /tenants/{tenantId}/settings", changed)

    def test_a_tenant_that_is_not_alive_has_no_settings(self, event_functions: EventFunctions) -> None:
        for answer in (
            event_functions.operate("PUT /settings", body={}),
            event_functions.operate("GET /settings"),
            event_functions.operate("POST /keys", body={"name": "a", "scopes": ["read"]}),
        ):
            assert (answer.status, answer.kind, answer.body["tenantId"]) == (404, "unknown-tenant", "acme")
        assert not event_functions.rows

    def test_a_tenant_without_settings_has_nothing_to_configure(self, event_functions: EventFunctions) -> None:
        event_functions.serve()
        answer = event_functions.operate("POST /sources", body=SOURCE)
        assert (answer.status, answer.kind) == (404, "no-event-settings")
        assert "berth events settings acme" in answer.body["detail"]

    def test_the_answers_are_those_that_are_declared(self, event_functions: EventFunctions) -> None:
        event_functions.key()
        operate = event_functions.operate
        key = operate("POST /keys", body={"name": "a", "scopes": ["read"], "expires_in_seconds": 60})
        source, form = operate("POST /sources", body=SOURCE), operate("POST /forms", body=FORM)
        ids = {
            "keyId": key.body["key_id"],
            "sourceId": source.body["source_id"],
            "formId": form.body["form_id"],
        }
        bodies = {"createKey": {"name": "b", "scopes": ["write"]}, "createSource": SOURCE, "createForm": FORM}
        bodies["updateForm"] = {"origins": []}
        for each in event_configuration.SERVED:
            route = each.route
            given = {name: ids[name] for name in route.path_parameters}
            body = bodies.get(route.name, {} if route.has_body else None)
            answer = operate(route.key, ids=given, body=body)
            assert answer.status < 300, (route.key, answer.body)
            assert is_documented(for_operators(route).key, answer), (route.key, answer.body)

    def test_every_declared_route_is_served_to_tenants_and_operators(self, event_functions: EventFunctions) -> None:
        event_functions.operate("GET /settings")
        import lambdas.events.event_operators as operators
        import lambdas.events.tenant_events as tenants

        assert {route.key for route in TENANT_ROUTES} <= set(tenants.ROUTES)
        assert {for_operators(route).key for route in TENANT_ROUTES} | {PUT_SETTINGS.key} <= set(operators.ROUTES)


class TestTenants:
    def test_an_admin_key_configures_its_own_tenant(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("admin")
        created = event_functions.ask("POST /sources", key, body=SOURCE)
        assert created.status == 201
        assert created.body["tenant_id"] == "acme"
        listed = event_functions.ask("GET /sources", key)
        assert [each["source_id"] for each in listed.body["sources"]] == [created.body["source_id"]]

    @pytest.mark.parametrize("scopes", [("read",), ("write",), ("read", "write")])
    def test_any_other_key_configures_nothing(self, event_functions: EventFunctions, scopes: tuple[str, ...]) -> None:
        key = event_functions.key(*scopes)
        before = event_functions.rows
        for route in ("GET /keys", "GET /sources", "GET /forms"):
            assert event_functions.ask(route, key).kind == "missing-scope"
        answer = event_functions.ask("POST /keys", key, body={"name": "more", "scopes": ["admin"]})
        assert (answer.status, answer.kind) == (403, "missing-scope")
        assert event_functions.rows == before

    def test_a_key_that_reads_events_may_see_the_settings(self, event_functions: EventFunctions) -> None:
        answer = event_functions.ask("GET /settings", event_functions.key("read"))
        assert (answer.status, answer.body["tenant_id"], answer.body["plan"]) == (200, "acme", "free")
        assert event_functions.ask("GET /settings", event_functions.key("write")).status == 403

    def test_no_key_changes_settings_which_cost_money(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("admin")
        answer = event_functions.ask("PUT /tenants/{tenantId}/settings", key, ids={"tenantId": "acme"}, body={})
        assert answer.status == 400
        assert "no route" in answer.body["detail"]

    @pytest.mark.parametrize("key", [None, "", "bk_test_short", f"bk_test_{'A' * 43}"])
    def test_without_a_valid_key_everything_is_401(self, event_functions: EventFunctions, key: str | None) -> None:
        event_functions.key()
        for route in TENANT_ROUTES:
            ids = dict.fromkeys(route.path_parameters, "x")
            answer = event_functions.ask(route.key, key, ids=ids, body="{" if route.has_body else None)
            assert (answer.status, answer.kind) == (401, "unknown-key")
            assert answer.headers["WWW-Authenticate"] == "Bearer"

    def test_the_key_may_come_in_a_header_of_its_own(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("read")
        assert event_functions.ask("GET /settings", None, headers={"x-api-key": key}).status == 200

    def test_a_revoked_admin_key_cannot_make_itself_a_successor(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("admin")
        (listed,) = event_functions.ask("GET /keys", key).body["keys"]
        event_functions.operate("DELETE /keys/{keyId}", ids={"keyId": listed["key_id"]})
        # Another function may remember a key for 10 seconds. Here no time has passed at all.
        answer = event_functions.ask("POST /keys", key, body={"name": "again", "scopes": ["admin"]})
        assert answer.status == 401
        assert len(event_functions.key_rows) == 1

    def test_a_key_of_a_tenant_that_is_being_deleted_configures_nothing(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("admin")
        event_functions.withdraw()
        assert event_functions.ask("POST /forms", key, body=FORM).status == 401

    def test_a_key_of_the_predecessor_is_no_key_of_the_tenant(self, event_functions: EventFunctions) -> None:
        old = event_functions.key("admin")
        event_functions.serve(created_at="2026-11-17T11:00:00.000Z")
        event_functions.operate("PUT /settings", body={})
        assert event_functions.ask("GET /keys", old).status == 401
        assert event_functions.operate("GET /keys").body == {"keys": []}


class TestOneTenantAndAnother:
    @pytest.fixture
    def others(self, event_functions: EventFunctions) -> dict[str, str]:
        """The ids of a key, a source and a form of globex."""
        event_functions.key("admin", tenant="globex")
        (key,) = event_functions.operate("GET /keys", tenant="globex").body["keys"]
        source = event_functions.operate("POST /sources", tenant="globex", body=SOURCE)
        form = event_functions.operate("POST /forms", tenant="globex", body=FORM)
        return {
            "keyId": key["key_id"],
            "sourceId": source.body["source_id"],
            "formId": form.body["form_id"],
        }

    def rows_of_globex(self, functions: EventFunctions) -> list[Any]:
        return [row for row in functions.rows if "globex" in json.dumps(row, default=str)]

    def test_a_key_reaches_nothing_of_another_tenant(
        self, event_functions: EventFunctions, others: dict[str, str]
    ) -> None:
        key = event_functions.key("admin")
        before = self.rows_of_globex(event_functions)
        for route in TENANT_ROUTES:
            if not route.path_parameters:
                continue
            ids = {name: others[name] for name in route.path_parameters}
            answer = event_functions.ask(route.key, key, ids=ids, body={} if route.has_body else None)
            assert answer.status == 404, route.key
            assert answer.kind.startswith("no-such-")
            assert "globex" not in json.dumps(answer.body)
        for route_key in ("GET /keys", "GET /sources", "GET /forms"):
            assert "globex" not in json.dumps(event_functions.ask(route_key, key).body)
        assert self.rows_of_globex(event_functions) == before

    def test_a_request_cannot_name_another_tenant(
        self, event_functions: EventFunctions, others: dict[str, str]
    ) -> None:
        assert others
        key = event_functions.key("admin")
        form = {**FORM, "tenantId": "globex"}
        assert event_functions.ask("POST /forms", key, body=form).status == 400
        assert event_functions.ask("POST /forms", key, body={**FORM, "tenant_id": "globex"}).status == 400
        assert event_functions.ask("GET /forms", key, query={"tenantId": "globex"}).status == 400
        answer = event_functions.ask("POST /forms", key, ids={"tenantId": "globex"}, body=FORM)
        assert (answer.status, answer.body["tenant_id"]) == (201, "acme")
        headers = {"x-tenant-id": "globex"}
        answer = event_functions.ask("POST /forms", key, headers=headers, body=FORM)
        assert answer.body["tenant_id"] == "acme"

    def test_an_operator_reaches_a_tenants_resources_under_its_own_id_only(
        self, event_functions: EventFunctions, others: dict[str, str]
    ) -> None:
        event_functions.key()
        ids = {"sourceId": others["sourceId"]}
        assert event_functions.operate("GET /sources/{sourceId}", ids=ids).status == 404
        assert event_functions.operate("GET /sources/{sourceId}", ids=ids, tenant=GLOBEX.value).status == 200


class TestKeysOverHttp:
    def test_a_key_is_shown_once_and_not_to_be_cached(self, event_functions: EventFunctions) -> None:
        admin = event_functions.key("admin")
        created = event_functions.ask("POST /keys", admin, body={"name": "shop", "scopes": ["write"]})
        assert created.headers["Cache-Control"] == "no-store"
        assert created.body["key"].startswith("bk_test_")
        assert created.body["prefix"] == created.body["key"][: len("bk_test_") + 6]
        listed = event_functions.ask("GET /keys", admin)
        assert created.body["key"] not in json.dumps(listed.body)
        assert created.body["key"] not in str(event_functions.rows)

    def test_a_rotated_key_works_until_the_overlap_is_over(self, event_functions: EventFunctions) -> None:
        old = event_functions.key("read", "admin")
        (listed,) = event_functions.operate("GET /keys").body["keys"]
        event_functions.clock.advance(timedelta(minutes=1))
        rotate = {"ids": {"keyId": listed["key_id"]}, "body": {"overlap_seconds": 3600}}
        new = event_functions.operate("POST /keys/{keyId}/rotate", **rotate).body
        assert new["replaced"]["expires_at"] == "2026-11-16T13:01:00.000Z"
        for key in (old, new["key"]):
            assert event_functions.ask("GET /keys", key).status == 200
        event_functions.clock.advance(timedelta(hours=1))
        assert event_functions.ask("GET /keys", old).status == 401
        answer = event_functions.ask("GET /keys", new["key"])
        assert [each["status"] for each in answer.body["keys"]] == ["expired", "active"]

    def test_a_rotation_needs_no_body(self, event_functions: EventFunctions) -> None:
        event_functions.key("read")
        (listed,) = event_functions.operate("GET /keys").body["keys"]
        answer = event_functions.operate("POST /keys/{keyId}/rotate", ids={"keyId": listed["key_id"]})
        assert answer.body["replaced"]["expires_at"] == "2026-11-17T12:00:00.000Z"

    def test_the_last_use_is_listed(self, event_functions: EventFunctions) -> None:
        event_functions.ask("GET /settings", event_functions.key("read"))
        (listed,) = event_functions.operate("GET /keys").body["keys"]
        assert listed["last_used_at"] == "2026-11-16T12:00:00.000Z"


class TestSecrets:
    def test_a_given_secret_is_in_no_answer_and_in_no_row(self, event_functions: EventFunctions) -> None:
        event_functions.key()
        created = event_functions.operate("POST /sources", body=SOURCE)
        ids = {"sourceId": created.body["source_id"]}
        answers = [
            created,
            event_functions.operate("GET /sources"),
            event_functions.operate("GET /sources/{sourceId}", ids=ids),
            event_functions.operate("POST /sources/{sourceId}/pause", ids=ids),
        ]
        assert created.body["secret"] is None
        assert SOURCE["secret"] not in json.dumps([answer.body for answer in answers])
        assert SOURCE["secret"] not in str(event_functions.rows)

    def test_a_made_secret_is_shown_once(self, event_functions: EventFunctions) -> None:
        event_functions.key()
        created = event_functions.operate("POST /sources", body={"name": "GitHub", "provider": "github"})
        secret = created.body["secret"]
        assert len(secret) == 64
        assert created.headers["Cache-Control"] == "no-store"
        assert secret not in json.dumps(event_functions.operate("GET /sources").body) + str(event_functions.rows)

    def test_nothing_secret_is_logged(
        self,
        event_functions: EventFunctions,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", "INFO")
        key = event_functions.key("admin")
        event_functions.ask("POST /sources", key, body=SOURCE)
        event_functions.ask("POST /sources", key, body={**SOURCE, "secret": "tiny"})
        made = event_functions.ask("POST /sources", key, body={"name": "GitHub", "provider": "github"}).body["secret"]
        event_functions.ask("POST /sources", key + "x", body=SOURCE)
        logged = capsys.readouterr().out
        assert [word for word in (key, SOURCE["secret"], "tiny", made) if word in logged] == []
        lines = [line for line in map(json.loads, logged.splitlines()) if line.get("message") == "Asked about events"]
        assert [(line["route"], line["status"]) for line in lines[2:]] == [
            ("POST /sources", 201),
            ("POST /sources", 400),
            ("POST /sources", 201),
            ("POST /sources", 401),
        ]
        assert lines[1]["caller"] == ADA
        assert lines[2]["tenant_id"] == "acme"
        assert lines[2]["by_key"].startswith("key_")
        assert lines[2]["source_id"].startswith("src_")
        assert "caller" not in lines[2]


class TestBadInput:
    @pytest.fixture
    def rows_before(self, event_functions: EventFunctions) -> list[dict[str, Any]]:
        event_functions.key()
        return event_functions.rows

    @pytest.mark.parametrize(
        ("route", "body", "complaint"),
        [
            ("POST /keys", {"name": "a"}, "'scopes' is a required property"),
            ("POST /keys", {"name": "a", "scopes": []}, "scopes"),
            ("POST /keys", {"name": "a", "scopes": ["root"]}, "scopes"),
            ("POST /keys", {"name": "", "scopes": ["read"]}, "name"),
            ("POST /keys", {"name": "a\nb", "scopes": ["read"]}, "one line of printable text"),
            ("POST /keys", {"name": "a", "scopes": ["read"], "expires_in_seconds": 1}, "expires_in_seconds"),
            ("POST /sources", {"name": "a", "provider": "ftp"}, "provider"),
            ("POST /sources", {"name": "a", "provider": "stripe"}, "secret"),
            ("POST /sources", {"name": "a", "provider": "none", "secret": "x" * 20}, "secret"),
            ("POST /sources", {"name": "a", "provider": "hmac"}, "header"),
            ("POST /sources", {"name": "a", "provider": "github", "verification": {"color": "red"}}, "verification"),
            ("POST /forms", {"name": "a", "origins": ["acme.example"]}, "origins"),
            ("POST /forms", {"name": "a", "origins": ["https://acme.example/"]}, "origins"),
            ("POST /forms", {"name": "a", "origins": ["https://acme.example\n"]}, "origins"),
            ("POST /forms", {"name": "a", "origins": ["https://a.example"] * 21}, "origins"),
            ("POST /forms", {"name": "a", "redirect_url": "https://acme.example/"}, "redirect_url"),
            ("POST /forms", {"name": "a", "redirect_url": "javascript:alert(1)"}, "redirect_url"),
            ("POST /forms", {"name": "a", "honeypot": "a b"}, "honeypot"),
            ("PUT /settings", {"plan": "enterprise"}, "plan"),
            ("PUT /settings", {"shards": 16}, "unexpected"),
            ("PUT /settings", {"epoch": "0"}, "unexpected"),
        ],
    )
    def test_a_request_that_is_not_valid_is_400_and_says_why(
        self,
        event_functions: EventFunctions,
        rows_before: list[dict[str, Any]],
        route: str,
        body: object,
        complaint: str,
    ) -> None:
        answer = event_functions.operate(route, body=body)
        assert (answer.status, answer.kind) == (400, "invalid-request")
        assert complaint in answer.body["detail"]
        assert event_functions.rows == rows_before

    @pytest.mark.parametrize("content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
    def test_a_body_that_is_not_json_by_its_type_is_415(
        self, event_functions: EventFunctions, rows_before: list[dict[str, Any]], content_type: str
    ) -> None:
        answer = event_functions.operate("POST /forms", body=FORM, headers={"content-type": content_type})
        assert (answer.status, answer.kind) == (415, "unsupported-media-type")
        assert event_functions.rows == rows_before

    def test_json_in_base64_is_json(self, event_functions: EventFunctions) -> None:
        event_functions.key()
        body = base64.b64encode(json.dumps(FORM).encode()).decode()
        event = http_event("POST /tenants/{tenantId}/forms", ids={"tenantId": "acme"}, body=body, by=ADA)
        assert event_functions.call("event_operators", {**event, "isBase64Encoded": True}).status == 201

    @pytest.mark.parametrize("tenant", ["a#b", "a" * 41, "", "acme\n", "../acme"])
    def test_a_tenant_id_that_is_none_is_400(self, event_functions: EventFunctions, tenant: str) -> None:
        assert event_functions.operate("GET /settings", tenant=tenant).status == 400

    @pytest.mark.parametrize("key_id", ["key_", "key_XYZ", "src_" + "0" * 24, "key_" + "0" * 24 + "\n", "KEY#1"])
    def test_an_id_that_is_none_is_400(self, event_functions: EventFunctions, key_id: str) -> None:
        event_functions.key()
        assert event_functions.operate("DELETE /keys/{keyId}", ids={"keyId": key_id}).status == 400

    def test_a_limit_that_is_reached_is_409(
        self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        event_functions.key()
        monkeypatch.setattr("orchestrator.events.configuring_forms.MAX_FORMS", 0)
        answer = event_functions.operate("POST /forms", body=FORM)
        assert (answer.status, answer.kind, answer.body["tenantId"]) == (409, "limit-reached", "acme")

    def test_a_function_that_is_called_without_the_api_does_nothing(self, event_functions: EventFunctions) -> None:
        key = event_functions.key("admin")
        before = event_functions.rows
        forged: list[Callable[[dict[str, Any]], object]] = [
            lambda event: event.pop("stageVariables"),
            lambda event: event.update(stageVariables={"proof": "guess"}),
        ]
        for forge in forged:
            for name, event in (
                ("tenant_events", http_event("POST /forms", key=key, body=FORM)),
                (
                    "event_operators",
                    http_event(
                        "PUT /tenants/{tenantId}/settings", ids={"tenantId": "acme"}, by=ADA, body={"plan": "team"}
                    ),
                ),
            ):
                forge(event)
                answer = event_functions.call(name, event)
                assert (answer.status, answer.kind) == (403, "not-through-the-api")
        for name in ("tenant_events", "event_operators"):
            for nothing in (None, [], "x", {}, {"routeKey": ["GET /keys"]}):
                assert event_functions.call(name, nothing).status == 403
        assert event_functions.rows == before

    def test_throttling_is_503_with_a_time_to_come_back(
        self, event_functions: EventFunctions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        event_functions.key()
        from lambdas.event_runtime import use_cases
        from orchestrator.common.errors import Throttled

        def throttled(*_: object) -> None:
            raise Throttled("GetItem: slow down")

        monkeypatch.setattr(type(use_cases.ports.configuration_table("a test")), "settings", throttled)
        answer = event_functions.operate("GET /settings")
        assert (answer.status, answer.kind) == (503, "try-again")
        assert int(answer.headers["Retry-After"]) > 0
