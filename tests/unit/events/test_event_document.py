"""The event plane's OpenAPI document says what the Events API takes and answers: no less, and no more."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from orchestrator.api.event_configuration_routes import PUT_SETTINGS, TENANT_ROUTES
from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.for_operators import for_operators, of_tenant, tenant_in
from orchestrator.api.reading import read
from orchestrator.api.requesting import request_of
from orchestrator.api.route import AnyRoute, Audience
from orchestrator.common.errors import InvalidRequest
from tests.documents import EVENT_PLANE, IDS
from tests.fakes import ACME

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("route", EVENT_ROUTES, ids=lambda route: route.name)
def test_tenants_routes_take_an_api_key_public_routes_nothing_and_all_others_aws_credentials(route: AnyRoute) -> None:
    operation = EVENT_PLANE.operation_of(route)
    if route.audience is Audience.TENANT:
        assert operation["security"] == [{"bearer": []}, {"apiKey": []}]
        assert f"needs the scope {route.scope}" in operation["description"]
    elif route.audience is Audience.PUBLIC:
        assert operation["security"] == []
    else:
        assert "security" not in operation
    assert EVENT_PLANE.json["security"] == [{"sigv4": []}]


class TestForOperators:
    @pytest.mark.parametrize("route", TENANT_ROUTES, ids=lambda route: route.name)
    def test_an_operators_route_is_the_tenants_below_the_tenants_id(self, route: AnyRoute) -> None:
        made = for_operators(route)
        assert made is for_operators(route)
        assert made.key == f"{route.method} /tenants/{{tenantId}}{route.path}"
        assert (made.audience, made.scope, made.answers) == (Audience.OPERATOR, None, route.answers)
        assert issubclass(made.request, route.request)
        assert made in EVENT_ROUTES

    @pytest.mark.parametrize("route", TENANT_ROUTES, ids=lambda route: route.name)
    def test_the_function_reads_requests_as_the_client_sends_them(self, route: AnyRoute) -> None:
        for body in EVENT_PLANE.request_examples(route) or [{}]:
            asked = read(route, {"pathParameters": IDS, **({"body": json.dumps(body)} if route.has_body else {})})
            sent = request_of(for_operators(route), of_tenant(route, asked, ACME))
            assert sent.path.startswith("/tenants/acme/")
            event = {"pathParameters": IDS, "body": json.dumps(sent.body) if sent.body else None}
            heard = read(for_operators(route), event)
            assert tenant_in(heard) == ACME
            assert heard == of_tenant(route, asked, ACME)

    def test_settings_are_changed_by_operators_only(self) -> None:
        writing = [route for route in EVENT_ROUTES if route.path.endswith("/settings") and route.method != "GET"]
        assert writing == [PUT_SETTINGS]
        assert PUT_SETTINGS.audience is Audience.OPERATOR


@pytest.mark.parametrize("secret", [7, "", "hunter2" * 200, ["hunter2"], None, "hunter2\ud800"])
def test_a_secret_that_is_refused_is_not_repeated(secret: object) -> None:
    route = next(route for route in EVENT_ROUTES if route.name == "createSource")
    body = json.dumps({"name": "shop", "provider": "github", "secret": secret})
    with pytest.raises(InvalidRequest) as refused:
        read(route, {"body": body})
    assert "hunter2" not in str(refused.value)
    assert "secret" in str(refused.value) or "surrogate" in str(refused.value)


def test_a_request_with_a_secret_does_not_show_it() -> None:
    route = next(route for route in EVENT_ROUTES if route.name == "createSourceOfTenant")
    body = {"name": "shop", "provider": "github", "secret": "hunter2hunter2"}
    assert "hunter2" not in repr(read(route, {"pathParameters": IDS, "body": json.dumps(body)}))


def test_the_function_for_everybody_serves_the_paths_that_are_declared() -> None:
    """It does not load the declarations, which would slow down its start."""
    source = (ROOT / "lambdas" / "events" / "receive.py").read_text(encoding="utf-8")
    paths = {route.path for route in EVENT_ROUTES if route.audience is Audience.PUBLIC}
    assert set(re.findall(r'^_\w+ = "(/.+)"$', source, re.MULTILINE)) == paths
