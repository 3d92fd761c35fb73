"""Requests of operators: each route takes what its declaration allows, and refuses everything else with a reason."""

from __future__ import annotations

import base64
import json
import re
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from orchestrator.api import tenant_routes as tenants
from orchestrator.api.connection_routes import CREATE_CONNECTION
from orchestrator.api.fields import or_default as sent
from orchestrator.api.fields import whole
from orchestrator.api.reading import read
from orchestrator.api.rollout_models import MAX_CONCURRENCY
from orchestrator.api.rollout_routes import START_ROLLOUT
from orchestrator.api.route import AnyRoute, Audience
from orchestrator.api.routes import ROUTES as ALL_ROUTES
from orchestrator.api.tenant_models import ListTenants
from orchestrator.common.callers import NOBODY_KNOWN, caller
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import Request, TenantState
from tests.documents import CONTROL_PLANE
from tests.fakes import ACME

Json = dict[str, Any]

DOCUMENT: Json = CONTROL_PLANE.json
ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
CALLER = {"authorizer": {"iam": {"userArn": ADA}}}
ROUTES = [route for route in ALL_ROUTES if route.audience is Audience.OPERATOR]
WITH_BODY = [route for route in ROUTES if route.has_body]
IDS = {"tenantId": "acme", "version": "0.2.0"} | dict.fromkeys(
    ("rolloutId", "reconciliationId"), "20261116-120000-0001"
)
REQUIRED: dict[str, Json] = {
    "publishRelease": {"template": {}},
    "checkRelease": {"template": {}},
    "pinTenant": {"version": "0.1.0"},
    "moveTenant": {"tier": "gold"},
    "approveRollout": {"stage": 1},
    "promoteRollout": {"stage": 1},
}
"""The smallest body of each route that needs one."""

for_each_route = pytest.mark.parametrize("route", ROUTES, ids=lambda route: route.name)
for_each_route_with_body = pytest.mark.parametrize("route", WITH_BODY, ids=lambda route: route.name)


def an_event(body: object = None, *, query: object = None, ids: object = IDS, **more: object) -> Json:
    """A request as an HTTP API sends it."""
    event = {"pathParameters": ids, "requestContext": CALLER, "queryStringParameters": query}
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    return {**event, **more}


def understood(route: AnyRoute, event: Json) -> Any:
    """The request, or ``None`` if it is refused."""
    try:
        request = read(route, event)
        if route is START_ROLLOUT:
            request.spec(max_concurrency=MAX_CONCURRENCY)
    except InvalidRequest as refusal:
        assert str(refusal)  # noqa: PT017 - a refusal without a reason is an error
        return None
    return request


# The declaration


def resolved(schema: Json) -> Json:
    found = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]] if "$ref" in schema else {}
    return {**found, **schema}


def validator(schema: Json) -> Draft202012Validator:
    return Draft202012Validator({**for_python(schema), "components": COMPONENTS})


def for_python(schema: Any) -> Any:
    """The schema with patterns for Python, whose `$` lets a trailing newline through."""
    if isinstance(schema, dict):
        return {key: whole(part) if key == "pattern" else for_python(part) for key, part in schema.items()}
    return [for_python(part) for part in schema] if isinstance(schema, list) else schema


COMPONENTS = for_python(DOCUMENT["components"])


def schema_of(route: AnyRoute) -> Json:
    """The schema of the body, or of the query as an object."""
    declared = DOCUMENT["paths"][route.path][route.method.lower()]
    if "requestBody" in declared:
        return resolved(declared["requestBody"]["content"]["application/json"]["schema"])
    query = [each for each in declared.get("parameters", ()) if each["in"] == "query"]
    return {"properties": {each["name"]: each["schema"] for each in query}, "additionalProperties": False}


@dataclass(frozen=True)
class Field:
    """A field of a request, or of a stage inside of the request."""

    route: AnyRoute
    name: str
    schema: Json
    of_stage: bool = False

    def __str__(self) -> str:
        return f"{self.route.name}.{'stages.' if self.of_stage else ''}{self.name}"

    def request(self, value: object) -> Json:
        """The smallest request with this field."""
        given = {"stages": [{"size": "rest", self.name: value}]} if self.of_stage else {self.name: value}
        return {**REQUIRED.get(self.route.name, {}), **given}

    def values(self) -> Iterator[object]:
        """Values of every type, and those at both sides of each limit of the field."""
        yield from [None, True, False, 0, 1, -1, 1.5, "", "true", "text", [], ["acme"], {}, {"team": "billing"}]
        for part in parts_of(self.schema):
            limits = {name: part[name] for name in ("minimum", "maximum", "minLength", "maxLength") if name in part}
            for name, limit in limits.items():
                around = [max(limit - 1, 0), limit, limit + 1]
                yield from around if name.startswith(("minimum", "maximum")) else ("x" * length for length in around)
            yield from (each for value in part.get("enum", ()) for each in (value, value.swapcase(), f"{value},"))
            if "maxItems" in part and (items := VALUES.get(name_of(part["items"]))):
                yield from (items[0][:1] * count for count in (part["maxItems"], part["maxItems"] + 1))
                yield from ([value] for value in items[1])
            yield from (each for values in VALUES.get(name_of(part), ()) for each in values)


def name_of(schema: Json) -> str:
    return str(schema.get("$ref", "")).rpartition("/")[2]


def parts_of(schema: Json) -> Iterator[Json]:
    yield (found := resolved(schema))
    for part in found.get("anyOf", ()):
        yield from parts_of(part)


def fields_of(route: AnyRoute) -> Iterator[Field]:
    properties = schema_of(route)["properties"]
    yield from (Field(route, name, schema) for name, schema in properties.items())
    if "stages" in properties:
        stage = resolved(properties["stages"]["items"])["properties"]
        yield from (Field(route, name, schema, of_stage=True) for name, schema in stage.items())


FIELDS = [field for route in ROUTES for field in fields_of(route)]
for_each_field_of_a_body = pytest.mark.parametrize("field", [each for each in FIELDS if each.route.has_body], ids=str)
for_each_field_of_a_query = pytest.mark.parametrize("field", [f for f in FIELDS if not f.route.has_body], ids=str)

VALUES: dict[str, tuple[list[object], list[object]]] = {
    "Version": (
        ["0.1.0", "9999.9999.9999"],
        ["1", "0.1", "0.1.0.0", "v0.1.0", "0.1.0\n", " 0.1.0", "0.1.x", "00000.1.0", "\u0660.\u0661.\u0660", "latest"],
    ),
    "Labels": (
        [{"t" * 63: "b" * 128}, {"a.b/c-d_9": "A b._:/@+=-9"}, {f"n{number}": "" for number in range(20)}],
        [
            *({name: "billing"} for name in ("", "-team", "te am", "team\n", "t" * 64)),
            *({"team": value} for value in (None, 1, ["billing"], "b" * 129, "billing\n", "<b>", "\u0000")),
            {f"n{number}": "" for number in range(21)},
        ],
    ),
    "Reason": (
        ["Ticket 4711", "x" * 500],
        ["x" * 501, "two\nlines", "a\tb", "\x1b[2J", "\x9b31m", "\u202eback to front"],
    ),
    "TenantId": (
        ["acme", "A-1", "a" * 40],
        ["-acme", "acme-", "ac me", "acme\n", "../acme", "acme#", "a" * 41, 1, ["acme"], "ácme", None, ""],
    ),
    "Share": (["1", "999999", "1%", "100%"], ["0", "0%", "101%", "1000000", "01", "5.5%", "all"]),
    "Bound": (["0", "0%", "00", "100%", "999999"], ["101%", "-1", "1000000"]),
    "RolloutId": (["20261116-120000-0001"], ["latest", "20261116-120000-0001\n", "../tenants"]),
}
"""For each named type: values that it allows, and values that it refuses."""
VALUES["ReconciliationId"] = VALUES["RolloutId"]


@pytest.mark.parametrize("name", VALUES)
def test_a_named_type_allows_and_refuses_these_values(name: str) -> None:
    allowed, refused = VALUES[name]
    declared = validator({"$ref": f"#/components/schemas/{name}"})
    assert [value for value in [*allowed, *refused] if declared.is_valid(value)] == allowed


@for_each_field_of_a_body
def test_a_body_is_accepted_whole_if_and_only_if_the_declaration_allows_it(field: Field) -> None:
    declared = validator(schema_of(field.route))
    for value in field.values():
        body = field.request(value)
        request = understood(field.route, an_event(body))
        # No schema can say that the last stage, and only the last, takes the rest.
        in_order = not field.of_stage or field.name != "size" or value == "rest"
        assert (request is not None) == (declared.is_valid(body) and in_order), value
        if request is not None and not field.of_stage:
            assert msgspec.to_builtins(request).get(field.name, value) == value


@for_each_field_of_a_query
def test_a_query_is_accepted_whole_if_and_only_if_the_declaration_allows_it(field: Field) -> None:
    declared, kind = validator(schema_of(field.route)), resolved(field.schema)["type"]
    numerals = ["007", "+1", "1.5", "1e3", "10s", "\u0661", "\u00b2", " 5", "5\n", "9" * 5_000]
    for value in [*field.values(), *numerals]:
        text = value if isinstance(value, str) else json.dumps(value)
        meant = text if kind == "string" else {"true": True, "false": False}.get(text, text)
        if kind == "integer" and re.fullmatch("[0-9]{1,9}", text):
            meant = int(text)
        request = understood(field.route, an_event(query={field.name: text}))
        assert (request is not None) == declared.is_valid({field.name: meant}), text
        if request is not None:
            assert msgspec.to_builtins(request).get(field.name, meant) == meant


NUMBERS_IN_QUERIES = [
    each for each in FIELDS if not each.route.has_body and resolved(each.schema).get("type") == "integer"
]


@pytest.mark.parametrize("field", NUMBERS_IN_QUERIES, ids=str)
def test_a_number_out_of_range_is_refused_with_the_range(field: Field) -> None:
    limits = resolved(field.schema)
    reason = rf"^{field.name}: .* is not a whole number from {limits['minimum']} to {limits['maximum']}$"
    for text in (str(limits["maximum"] + 1), "9" * 5_000, "-1", "1.5", "many"):
        with pytest.raises(InvalidRequest, match=reason):
            read(field.route, an_event(query={field.name: text}))


@for_each_route
def test_a_field_that_the_route_does_not_declare_is_refused_by_name(route: AnyRoute) -> None:
    declared = {field.name for field in FIELDS if field.route is route and not field.of_stage}
    others = {field.name for field in FIELDS} | {"by", "explicit", "requestedBy", *route.path_parameters}
    misspelled = {name.swapcase() for name in declared} | {re.sub("([A-Z])", r"_\1", name).lower() for name in declared}
    for name in (others | misspelled) - declared:
        event = (
            an_event({**REQUIRED.get(route.name, {}), name: True}) if route.has_body else an_event(query={name: "1"})
        )
        with pytest.raises(InvalidRequest, match=name):
            read(route, event)


@pytest.mark.parametrize("name", REQUIRED)
def test_a_missing_required_field_is_refused_by_name(name: str) -> None:
    (route,) = (route for route in ROUTES if route.name == name)
    (required,) = schema_of(route)["required"]
    for body in (None, "", {}):
        with pytest.raises(InvalidRequest, match=required):
            read(route, an_event(body))


def test_every_required_field_is_known_here() -> None:
    needed = {route.name: schema_of(route).get("required", []) for route in ROUTES}
    assert {name: list(REQUIRED.get(name, {})) for name in needed} == needed


@for_each_route
def test_fields_are_refused_in_the_other_place(route: AnyRoute) -> None:
    """PUT and POST take a body, GET and DELETE a query, because many clients drop the body of a GET or a DELETE."""
    for field in fields_of(route):
        if route.has_body:
            event = an_event(REQUIRED.get(route.name), query={field.name: "true"})
        else:
            event = an_event({field.name: True})
        with pytest.raises(InvalidRequest, match=field.name):
            read(route, event)


@pytest.mark.parametrize("route", [route for route in ROUTES if not route.has_body], ids=lambda route: route.name)
@pytest.mark.parametrize("query", [5, 5.0, True, None, [], {}, ["true"]], ids=str)
def test_a_query_that_is_not_text_is_refused(route: AnyRoute, query: object) -> None:
    for name in ("force", "limit", "status"):
        with pytest.raises(InvalidRequest):
            read(route, an_event(query={name: query}))


@pytest.mark.parametrize("route", [route for route in ROUTES if route.path_parameters], ids=lambda route: route.name)
def test_a_path_without_a_valid_id_is_refused(route: AnyRoute) -> None:
    (name,) = route.path_parameters
    type_name = name[0].upper() + name[1:]
    for ids in (None, {}, [], "acme", {"id": "acme"}, *({name: value} for value in VALUES[type_name][1])):
        with pytest.raises(InvalidRequest):
            read(route, an_event(REQUIRED.get(route.name), ids=ids))


# Bodies


@for_each_route_with_body
@pytest.mark.parametrize(
    "body",
    [
        *("nonsense", "{", '{"version": }', '{"version": "0.1.0"', "{'version': '0.1.0'}", '{"version": "0.1.0"} {}'),
        *("version=0.1.0", "\x00", "\ufeff{}", "9" * 5_000),
        *("[]", "[{}]", "1", "1.5", "true", "null", '"text"', "NaN", "Infinity"),
    ],
    ids=lambda body: ascii(body)[:20],
)
def test_a_body_that_is_not_a_json_object_is_refused(route: AnyRoute, body: str) -> None:
    with pytest.raises(InvalidRequest):
        read(route, an_event(body))


INFINITE = ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 400 + ".5")


@pytest.mark.parametrize("route", [*WITH_BODY, CREATE_CONNECTION], ids=lambda route: route.name)
@pytest.mark.parametrize("number", INFINITE, ids=lambda number: number[:10])
def test_a_number_that_is_not_finite_is_refused(route: AnyRoute, number: str) -> None:
    for body in (f'{{"reason": {number}}}', f'{{"name": "x", "transform": {{"set": {{"a": [{number}]}}}}}}'):
        with pytest.raises(InvalidRequest, match=re.escape(number[:40])) as refused:
            read(route, an_event(body))
        assert len(str(refused.value)) < 120


@for_each_route_with_body
@pytest.mark.parametrize("body", [1, True, ["{}"], {"version": "0.1.0"}, b"{}"], ids=str)
def test_a_body_that_is_not_text_is_refused(route: AnyRoute, body: object) -> None:
    with pytest.raises(InvalidRequest):
        read(route, an_event() | {"body": body})


@pytest.mark.parametrize("route", [route for route in WITH_BODY if route.name not in REQUIRED], ids=lambda r: r.name)
@pytest.mark.parametrize("body", ["", "  \n", "{}", None])
def test_an_empty_body_equals_no_body(route: AnyRoute, body: str | None) -> None:
    assert read(route, an_event(body)) == read(route, an_event())


def encoded(text: bytes) -> str:
    return base64.b64encode(text).decode()


def test_a_body_may_be_encoded_in_base64() -> None:
    event = an_event(encoded(b'{"version": "0.1.0"}'), isBase64Encoded=True)
    assert read(tenants.CREATE_TENANT, event).version == "0.1.0"


@pytest.mark.parametrize("body", ["{}", "no base64!", "e30", "é", encoded(b"\xff\xfe"), encoded(b"nonsense")])
def test_a_body_that_is_not_base64_of_json_is_refused(body: str) -> None:
    with pytest.raises(InvalidRequest):
        read(tenants.CREATE_TENANT, an_event(body, isBase64Encoded=True))


def test_a_body_that_holds_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        read(tenants.CREATE_TENANT, an_event('{"labels": {"team": "\\ud800"}}'))


NESTED: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "objects": lambda depth: '{"labels": ' * depth + "{}" + "}" * depth,
    "lists among labels": lambda depth: '{"labels": ' + "[" * depth + "]" * depth + "}",
    "lists for a version": lambda depth: '{"version": ' + "[" * depth + "]" * depth + "}",
}


def can_be_parsed(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("nested", NESTED)
def test_a_deeply_nested_body_is_refused(nested: str) -> None:
    """Just below the depth that cannot be parsed are depths that can be parsed but not printed. Try all of them."""
    nest = NESTED[nested]
    limit = sys.getrecursionlimit()
    deepest = bisect_left(range(limit), True, key=lambda depth: not can_be_parsed(nest(depth)))
    for depth in [2, 3, 10, *range(deepest - 12, deepest + 3), 10 * limit]:
        with pytest.raises(InvalidRequest):
            read(tenants.CREATE_TENANT, an_event(nest(depth)))


def test_a_refusal_names_the_place_and_is_short() -> None:
    with pytest.raises(InvalidRequest, match=r"labels\.team") as refused:
        read(tenants.CREATE_TENANT, an_event({"labels": {"team": "<" * 60_000}}))
    assert len(str(refused.value)) < 500


MANY_LABELS = json.dumps({"labels": dict.fromkeys(map(str, range(100_000)), 1)})


@for_each_route_with_body
@pytest.mark.parametrize("base_64", [False, True])
def test_a_body_beyond_the_maximum_length_is_refused_unread(route: AnyRoute, base_64: bool) -> None:
    """To say what is wrong with a hundred thousand labels would take longer than the function has."""
    body = json.dumps(REQUIRED.get(route.name, {}))
    read(route, an_event(body.ljust(route.max_characters)))
    for longer in (body.ljust(route.max_characters + 1), MANY_LABELS):
        with pytest.raises(InvalidRequest, match=f"at most {route.max_characters}"):
            read(route, an_event(encoded(longer.encode()) if base_64 else longer, isBase64Encoded=base_64))


# The use cases' requests


@pytest.mark.parametrize(
    ("route", "body", "expected"),
    [
        (tenants.CREATE_TENANT, None, Request(by=ADA)),
        (
            tenants.CREATE_TENANT,
            {"version": "0.1.0", "labels": {"team": "billing", "stage": ""}, "reason": "Ticket 4711"},
            Request(by=ADA, pin="0.1.0", labels={"team": "billing", "stage": ""}, reason="Ticket 4711"),
        ),
        (tenants.CREATE_TENANT, {"labels": {}}, Request(by=ADA, labels={})),
        (tenants.CREATE_TENANT, {"version": None}, Request(by=ADA)),
        (tenants.UPGRADE_TENANT, {"version": "0.2.0", "reason": "Why"}, Request(by=ADA, reason="Why")),
        (tenants.UPGRADE_TENANT, {"allowDowngrade": True}, Request(by=ADA, allow_downgrade=True)),
        (tenants.UPGRADE_TENANT, {"allowReplacement": True}, Request(by=ADA, allow_replacement=True)),
        (tenants.UPGRADE_TENANT, {"allowDowngrade": False, "allowReplacement": False}, Request(by=ADA)),
        (tenants.LABEL_TENANT, {"remove": ["plan"], "reason": "Why"}, Request(by=ADA, reason="Why")),
        (tenants.PIN_TENANT, {"version": "0.1.0", "reason": "Why"}, Request(by=ADA, reason="Why")),
        (tenants.UNPIN_TENANT, {"reason": "Why"}, Request(by=ADA, reason="Why")),
        (tenants.DELETE_TENANT, {}, Request(by=ADA)),
        (tenants.DELETE_TENANT, {"force": "true", "reason": "Why"}, Request(by=ADA, force=True, reason="Why")),
        (tenants.DELETE_TENANT, {"drainSeconds": "01200", "force": "false"}, Request(by=ADA, drain_seconds=1_200)),
    ],
    ids=str,
)
def test_a_request_becomes_a_request_of_the_domain(route: AnyRoute, body: Any, expected: Request) -> None:
    event = an_event(body) if route.has_body else an_event(query=body)
    request = read(route, event)
    assert (request.tenant, request.to_domain(caller(event))) == (ACME, expected)


def test_a_version_of_null_removes_the_pin_and_no_version_keeps_it() -> None:
    assert read(tenants.CREATE_TENANT, an_event({"version": None})).unpin
    assert not read(tenants.CREATE_TENANT, an_event({"labels": {}})).unpin


def test_an_upgrade_and_a_pin_name_the_version() -> None:
    assert sent(read(tenants.UPGRADE_TENANT, an_event({"version": "0.2.0"})).version) == "0.2.0"
    assert sent(read(tenants.UPGRADE_TENANT, an_event()).version) is None
    assert read(tenants.PIN_TENANT, an_event({"version": "0.1.0"})).version == "0.1.0"


def test_the_caller_of_a_direct_invocation_is_unknown() -> None:
    event = {"pathParameters": IDS}
    assert read(tenants.CREATE_TENANT, event).to_domain(caller(event)) == Request(by=NOBODY_KNOWN)


def test_a_list_has_no_filter_and_the_default_page_size_unless_the_query_has_them() -> None:
    assert read(tenants.LIST_TENANTS, {}) == ListTenants() == ListTenants(limit=PAGE_SIZE)
    query = {"state": "READY", "version": "0.1.0", "cursor": "a cursor", "limit": "7"}
    expected = ListTenants(state=TenantState.READY, version="0.1.0", cursor="a cursor", limit=7)
    assert read(tenants.LIST_TENANTS, an_event(query=query)) == expected


# Any event

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(sorted({field.name for field in FIELDS}))
LIKELY = st.sampled_from(["0.1.0", "true", "READY", "10", "", True, False, None, {"team": "billing"}])
OBJECTS = st.dictionaries(NAMES | st.text(max_size=5), LIKELY | JSON, max_size=4)
BODIES = (
    st.none()
    | st.text(max_size=50)
    | (OBJECTS | JSON).map(json.dumps)
    | OBJECTS.map(json.dumps).map(lambda text: encoded(text.encode()))
    | JSON
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "pathParameters": st.just(IDS) | JSON,
        "queryStringParameters": st.none() | OBJECTS | st.dictionaries(NAMES, st.text(max_size=6)) | JSON,
        "body": BODIES,
        "isBase64Encoded": st.booleans() | JSON,
        "requestContext": st.just(CALLER) | JSON,
    },
)


# Generating an event costs more than reading it, so every route reads it.
@given(event=EVENTS)
def test_every_event_is_accepted_or_refused_without_other_errors(event: Json) -> None:
    for route in ROUTES:
        if (request := understood(route, event)) is not None:
            # The models check values when they decode: what was accepted is within all limits.
            msgspec.convert(msgspec.to_builtins(request), route.request)
            assert isinstance(caller(event), str)


@given(body=OBJECTS)
def test_a_body_is_accepted_whole_or_refused(body: Json) -> None:
    for route in WITH_BODY:
        if (request := understood(route, an_event(body))) is not None:
            response = msgspec.to_builtins(request)
            assert body == {name: response.get(name, value) for name, value in body.items()}
