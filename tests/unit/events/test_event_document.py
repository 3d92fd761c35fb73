"""docs/openapi-events.json says what the Events API takes and answers: no less, and no more."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from orchestrator.api import openapi
from orchestrator.api.event_configuration_routes import PUT_SETTINGS, TENANT_ROUTES
from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.for_operators import for_operators, of_tenant, tenant_in
from orchestrator.api.reading import decode, read
from orchestrator.api.requesting import request_of
from orchestrator.api.route import AnyRoute, Audience
from orchestrator.common.errors import InvalidRequest
from tests.fakes import ACME

API = openapi.EVENT_PLANE
DOCUMENT: dict[str, Any] = json.loads(API.document.read_text(encoding="utf-8"))
IDS = {
    "tenantId": "acme",
    "keyId": f"key_{'0' * 24}",
    "sourceId": f"src_{'0' * 24}",
    "formId": f"form_{'0' * 24}",
    "eventId": "0193f1c0-4a00-7000-8000-00000000a1b0",
}


def test_the_document_is_generated_from_the_routes() -> None:
    assert API.document.read_text(encoding="utf-8") == openapi.written(API), "it is stale: make openapi"


def test_a_title_names_one_type() -> None:
    titles = Counter(title for title, _ in set(openapi._named_types(API)))
    assert set(titles.values()) == {1}


def references(part: object) -> Iterator[str]:
    if isinstance(part, dict):
        yield from ([part["$ref"]] if isinstance(part.get("$ref"), str) else [])
        for inner in part.values():
            yield from references(inner)
    elif isinstance(part, list):
        for inner in part:
            yield from references(inner)


def test_every_reference_leads_to_a_component_and_every_component_is_referred_to() -> None:
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in DOCUMENT["components"].items()
        if kind != "securitySchemes"
        for name in named
    }
    assert set(references(DOCUMENT)) == components


def resolved(part: dict[str, Any]) -> dict[str, Any]:
    found: Any = DOCUMENT
    for step in part["$ref"].split("/")[1:] if "$ref" in part else []:
        found = found[step]
    return found if "$ref" in part else part


def operation_of(route: AnyRoute) -> dict[str, Any]:
    found: dict[str, Any] = DOCUMENT["paths"][route.path][route.method.lower()]
    return found


def media_types() -> Iterator[tuple[str, dict[str, Any]]]:
    for route in EVENT_ROUTES:
        operation = operation_of(route)
        for kind, media in operation.get("requestBody", {}).get("content", {}).items():
            yield f"{route.name} {kind}", media
        for status, response in operation["responses"].items():
            for kind, media in resolved(response)["content"].items():
                yield f"{route.name} {status} {kind}", media


MEDIA_TYPES = dict(media_types())


@pytest.mark.parametrize("media", MEDIA_TYPES.values(), ids=MEDIA_TYPES)
def test_there_are_examples_and_the_schema_allows_them(media: dict[str, Any]) -> None:
    examples = shown(media) if "examples" in media else [media["example"]]
    assert examples
    for example in examples:
        Draft202012Validator({**media["schema"], "components": DOCUMENT["components"]}).validate(example)


def shown(media: dict[str, Any]) -> list[Any]:
    return [resolved(each)["value"] for each in media["examples"].values()]


@pytest.mark.parametrize("route", EVENT_ROUTES, ids=lambda route: route.name)
def test_the_wire_models_accept_the_examples(route: AnyRoute) -> None:
    operation = operation_of(route)
    for answer in route.answers:
        for example in shown(resolved(operation["responses"][str(answer.status)])["content"]["application/json"]):
            decode(answer.model, example)
    for example in shown(operation["requestBody"]["content"]["application/json"]) if "requestBody" in operation else ():
        read(route, {"pathParameters": IDS, "body": json.dumps(example)})


@pytest.mark.parametrize("route", EVENT_ROUTES, ids=lambda route: route.name)
def test_tenants_routes_take_an_api_key_and_operators_routes_aws_credentials(route: AnyRoute) -> None:
    operation = operation_of(route)
    if route.audience is Audience.TENANT:
        assert operation["security"] == [{"bearer": []}, {"apiKey": []}]
        assert f"needs the scope {route.scope}" in operation["description"]
    elif route.audience is Audience.OPERATOR:
        assert "security" not in operation
    assert DOCUMENT["security"] == [{"sigv4": []}]


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
    def test_what_a_client_sends_is_what_the_function_reads(self, route: AnyRoute) -> None:
        operation = operation_of(route)
        bodies = shown(operation["requestBody"]["content"]["application/json"]) if "requestBody" in operation else [{}]
        for body in bodies:
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
