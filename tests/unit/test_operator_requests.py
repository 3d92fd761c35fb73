"""What operators send: every field, and that whatever else is sent is refused and does no harm."""

from __future__ import annotations

import base64
import json
import sys
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api import tenant_routes as tenants
from orchestrator.api.fields import given as said
from orchestrator.api.reading import MAX_CHARACTERS, read
from orchestrator.api.tenant_routes import MAX_PAGE_SIZE, ListTenants
from orchestrator.common.callers import NOBODY_KNOWN, caller
from orchestrator.common.errors import InvalidRequest, InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import Request, TenantState
from tests.fakes import ACME

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
CALLER = {"authorizer": {"iam": {"userArn": ADA}}}

Parse = Callable[[dict[str, Any]], Any]


@dataclass(frozen=True)
class Order:
    """What a handler makes of a request."""

    tenant: TenantId
    request: Request
    version: str | None = None
    unpin: bool = False


def parse_create(event: dict[str, Any]) -> Order:
    request = read(tenants.CREATE_TENANT, event)
    return Order(request.tenant, request.to_domain(caller(event)), unpin=request.unpin)


def parse_upgrade(event: dict[str, Any]) -> Order:
    request = read(tenants.UPGRADE_TENANT, event)
    return Order(request.tenant, request.to_domain(caller(event)), said(request.version))


def parse_retry(event: dict[str, Any]) -> Order:
    request = read(tenants.RETRY_TENANT, event)
    return Order(request.tenant, Request(by=caller(event), reason=said(request.reason, "")))


def parse_delete(event: dict[str, Any]) -> Order:
    request = read(tenants.DELETE_TENANT, event)
    return Order(request.tenant, request.to_domain(caller(event)))


def parse_pin(event: dict[str, Any]) -> Order:
    request = read(tenants.PIN_TENANT, event)
    return Order(request.tenant, request.to_domain(caller(event)), request.version)


def parse_unpin(event: dict[str, Any]) -> Order:
    request = read(tenants.UNPIN_TENANT, event)
    return Order(request.tenant, request.to_domain(caller(event)))


def parse_tenant(event: dict[str, Any]) -> TenantId:
    return read(tenants.GET_TENANT, event).tenant


def parse_list(event: dict[str, Any]) -> ListTenants:
    return read(tenants.LIST_TENANTS, event)


def parse_nothing(event: dict[str, Any]) -> None:
    read(tenants.LIST_RELEASES, event)


WITH_TENANT: list[Parse] = [
    parse_create,
    parse_upgrade,
    parse_retry,
    parse_delete,
    parse_tenant,
    parse_pin,
    parse_unpin,
]
WITH_BODY: list[Parse] = [parse_create, parse_upgrade, parse_pin]
WITHOUT_BODY: list[Parse] = [parse_retry, parse_delete, parse_unpin]
EVERY: list[Parse] = [*WITH_TENANT, parse_list, parse_nothing]


def an_event(body: object = None, *, query: object = None, tenant: object = "acme", **more: object) -> dict[str, Any]:
    """As an HTTP API sends it."""
    event = {"pathParameters": {"tenantId": tenant}, "requestContext": CALLER, "queryStringParameters": query}
    if body is not None:
        event["body"] = body if isinstance(body, str) else json.dumps(body)
    return {**event, **more}


# Create


def test_a_create_needs_no_body() -> None:
    assert parse_create(an_event()) == Order(ACME, Request(by=ADA))


@pytest.mark.parametrize("body", ["", "  \n", "{}", None])
def test_an_empty_body_equals_no_body(body: str | None) -> None:
    assert parse_create(an_event(body=body)) == Order(ACME, Request(by=ADA))
    assert parse_upgrade(an_event(body=body)) == Order(ACME, Request(by=ADA))


def test_a_create_may_pin_and_label() -> None:
    body = {"version": "0.1.0", "labels": {"team": "billing", "stage": ""}}
    assert parse_create(an_event(body)) == Order(
        ACME, Request(by=ADA, pin="0.1.0", labels={"team": "billing", "stage": ""})
    )


def test_a_version_of_null_removes_the_pin_and_no_version_keeps_it() -> None:
    assert parse_create(an_event({"version": None})) == Order(ACME, Request(by=ADA), unpin=True)
    assert not parse_create(an_event({"labels": {}})).unpin


def test_labels_may_be_removed() -> None:
    assert parse_create(an_event({"labels": {}})).request.labels == {}
    assert parse_create(an_event({})).request.labels is None


def test_a_body_can_set_neither_explicit_nor_the_caller() -> None:
    for field in ("explicit", "by", "requestedBy", "force", "tenantId"):
        with pytest.raises(InvalidRequest, match=field):
            parse_create(an_event({field: True}))


@pytest.mark.parametrize(
    "version",
    [
        "",
        "1",
        "0.1",
        "0.1.0.0",
        "v0.1.0",
        "0.1.0\n",
        " 0.1.0",
        "0.1.x",
        "00000.1.0",
        "\u0660.\u0661.\u0660",
        1,
        0.1,
        [],
    ],
)
def test_an_invalid_version_is_refused(version: object) -> None:
    for parse in WITH_BODY:
        with pytest.raises(InvalidRequest, match="version"):
            parse(an_event({"version": version}))


def test_only_a_create_may_have_a_version_of_null() -> None:
    for parse in (parse_upgrade, parse_pin):
        with pytest.raises(InvalidRequest, match="version"):
            parse(an_event({"version": None}))


@pytest.mark.parametrize(
    "labels",
    [
        None,
        [],
        "team=billing",
        {"team": None},
        {"team": 1},
        {"team": ["billing"]},
        {"": "billing"},
        {"-team": "billing"},
        {"te am": "billing"},
        {"team\n": "billing"},
        {"t" * 64: "billing"},
        {"team": "b" * 129},
        {"team": "billing\n"},
        {"team": "<b>"},
        {"team": "\u0000"},
        {f"label-{number}": "" for number in range(21)},
    ],
)
def test_invalid_labels_are_refused(labels: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_create(an_event({"labels": labels}))


@pytest.mark.parametrize(
    "labels",
    [
        {"t" * 63: "b" * 128},
        {"a.b/c-d_9": "A b._:/@+=-9"},
        {f"label-{number}": "" for number in range(20)},
    ],
)
def test_labels_at_the_limits_are_accepted(labels: dict[str, str]) -> None:
    assert parse_create(an_event({"labels": labels})).request.labels == labels


# Upgrade


def test_an_upgrade_may_name_a_version_and_set_flags() -> None:
    body = {"version": "0.2.0", "allowDowngrade": True, "allowReplacement": True}
    assert parse_upgrade(an_event(body)) == Order(
        ACME, Request(by=ADA, allow_downgrade=True, allow_replacement=True), "0.2.0"
    )


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("allowDowngrade", Request(by=ADA, allow_downgrade=True)),
        ("allowReplacement", Request(by=ADA, allow_replacement=True)),
    ],
)
def test_each_flag_allows_only_its_own_change(field: str, expected: Request) -> None:
    assert parse_upgrade(an_event({field: True})).request == expected
    assert parse_upgrade(an_event({field: False})).request == Request(by=ADA)


@pytest.mark.parametrize("value", ["true", "false", 1, 0, None, [], {}])
@pytest.mark.parametrize("field", ["allowDowngrade", "allowReplacement"])
def test_only_true_and_false_are_flags(field: str, value: object) -> None:
    with pytest.raises(InvalidRequest, match=field):
        parse_upgrade(an_event({field: value}))


@pytest.mark.parametrize("field", ["labels", "force", "allowdowngrade", "allow_downgrade", "by", "explicit"])
def test_an_upgrade_refuses_unknown_fields(field: str) -> None:
    with pytest.raises(InvalidRequest, match=field):
        parse_upgrade(an_event({field: True}))


# Pin and unpin


def test_a_pin_names_the_version_to_stay_at() -> None:
    assert parse_pin(an_event({"version": "0.1.0"})) == Order(ACME, Request(by=ADA), "0.1.0")


@pytest.mark.parametrize("body", [None, "", {}])
def test_a_pin_to_nothing_is_refused(body: object) -> None:
    with pytest.raises(InvalidRequest, match="version"):
        parse_pin(an_event(body))


@pytest.mark.parametrize("field", ["labels", "allowDowngrade", "tenantId", "pin"])
def test_a_pin_refuses_unknown_fields(field: str) -> None:
    with pytest.raises(InvalidRequest, match=field):
        parse_pin(an_event({"version": "0.1.0", field: True}))


def test_an_unpin_names_only_the_tenant() -> None:
    assert parse_unpin(an_event()) == Order(ACME, Request(by=ADA))


# Why


WHY = "Ticket 4711"
ORDERS: dict[str, tuple[Callable[[dict[str, Any]], Any], dict[str, Any]]] = {
    "create": (parse_create, {}),
    "upgrade": (parse_upgrade, {}),
    "retry": (parse_retry, {}),
    "pin": (parse_pin, {"version": "0.1.0"}),
}


@pytest.mark.parametrize("order", ORDERS)
def test_every_order_takes_a_reason(order: str) -> None:
    parse, body = ORDERS[order]
    assert parse(an_event({**body, "reason": WHY})).request.reason == WHY
    assert parse(an_event(body)).request.reason == ""


@pytest.mark.parametrize("parse", [parse_delete, parse_unpin])
def test_routes_without_a_body_take_the_reason_in_the_query(parse: Callable[[dict[str, Any]], Any]) -> None:
    assert parse(an_event(query={"reason": WHY})).request == Request(by=ADA, reason=WHY)
    with pytest.raises(InvalidRequest, match="reason"):
        parse(an_event({"reason": WHY}))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("reason", ["", "x" * 501, "two\nlines", "\x1b[2J", "\x9b31m", "\u202e", 7, None], ids=ascii)
def test_a_reason_that_is_not_one_line_of_printable_text_is_refused(order: str, reason: object) -> None:
    parse, body = ORDERS[order]
    with pytest.raises(InvalidRequest, match="reason"):
        parse(an_event({**body, "reason": reason}))


def test_neither_takes_a_query() -> None:
    for parse, body in ((parse_pin, {"version": "0.1.0"}), (parse_unpin, None)):
        with pytest.raises(InvalidRequest, match="force"):
            parse(an_event(body, query={"force": "true"}))


# Retry and delete


def test_a_retry_has_only_caller_and_tenant() -> None:
    assert parse_retry(an_event()) == Order(ACME, Request(by=ADA))


@pytest.mark.parametrize("parse", WITHOUT_BODY)
@pytest.mark.parametrize("body", [{"force": True}, {"version": "0.1.0"}, [], 1, "nonsense"])
def test_a_body_is_refused_on_routes_that_read_none(parse: Parse, body: object) -> None:
    with pytest.raises(InvalidRequest):
        parse(an_event(body))


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (None, Request(by=ADA)),
        ({}, Request(by=ADA)),
        ({"force": "true"}, Request(by=ADA, force=True)),
        ({"force": "false"}, Request(by=ADA)),
        ({"drainSeconds": "0"}, Request(by=ADA)),
        ({"drainSeconds": "1"}, Request(by=ADA, drain_seconds=1)),
        ({"drainSeconds": "01200"}, Request(by=ADA, drain_seconds=1_200)),
        ({"drainSeconds": "600", "force": "false"}, Request(by=ADA, drain_seconds=600)),
    ],
)
def test_the_options_of_a_delete_are_in_the_query(query: dict[str, str] | None, expected: Request) -> None:
    assert parse_delete(an_event(query=query)) == Order(ACME, expected)


@pytest.mark.parametrize(
    "query",
    [
        {"force": "yes"},
        {"force": ""},
        {"force": "True"},
        {"force": "1"},
        {"force": "true,false"},
        {"drainSeconds": ""},
        {"drainSeconds": "-1"},
        {"drainSeconds": "+1"},
        {"drainSeconds": "1.5"},
        {"drainSeconds": "1e3"},
        {"drainSeconds": "10s"},
        {"drainSeconds": "²"},
        {"drainSeconds": " 5"},
        {"drainSeconds": "5\n"},
        {"drainSeconds": "1201"},
        {"drainSeconds": "99999"},
        {"drainSeconds": "9" * 5_000},
        {"drain": "60"},
        {"Force": "true"},
        {"force": "true", "really": "true"},
    ],
)
def test_a_delete_with_invalid_options_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        parse_delete(an_event(query=query))


@pytest.mark.parametrize("given", ["1201", "999999", "9" * 5_000, "-1", "1.5", "many"])
def test_a_number_out_of_range_is_refused_with_the_range(given: str) -> None:
    with pytest.raises(InvalidRequest, match=r"^drainSeconds: .* is not a whole number from 0 to 1200$"):
        parse_delete(an_event(query={"drainSeconds": given}))
    with pytest.raises(InvalidRequest, match=r"^limit: .* is not a whole number from 1 to 500$"):
        parse_list(an_event(query={"limit": given}))


@pytest.mark.parametrize("value", [5, 5.0, True, None, [], {}, ["true"]])
@pytest.mark.parametrize("name", ["force", "drainSeconds", "limit", "status", "version", "cursor"])
def test_a_query_that_is_not_text_is_refused(name: str, value: object) -> None:
    for parse in (parse_delete, parse_list, parse_tenant, parse_nothing):
        with pytest.raises(InvalidRequest):
            parse(an_event(query={name: value}))


# Looking


def test_a_look_at_a_tenant_or_at_the_releases_takes_no_query() -> None:
    assert parse_tenant(an_event()) == ACME
    parse_nothing(an_event())
    for parse in (parse_tenant, parse_nothing):
        with pytest.raises(InvalidRequest, match="verbose"):
            parse(an_event(query={"verbose": "true"}))


def test_a_list_is_of_everything_unless_it_is_filtered() -> None:
    assert parse_list({}) == ListTenants()


@pytest.mark.parametrize("state", list(TenantState))
def test_a_list_may_be_filtered_and_continued(state: TenantState) -> None:
    query = {"status": state.value, "version": "0.1.0", "cursor": "a cursor", "limit": "7"}
    assert parse_list(an_event(query=query)) == ListTenants(status=state, version="0.1.0", cursor="a cursor", limit=7)


def test_a_list_takes_the_former_name_of_the_state_as_well() -> None:
    assert parse_list(an_event(query={"status": "FAILED"})).wanted_state is TenantState.FAILED
    assert parse_list(an_event(query={"state": "READY"})).wanted_state is TenantState.READY
    assert parse_list(an_event(query={"state": "READY", "status": "FAILED"})).wanted_state is TenantState.READY
    assert parse_list(an_event()).wanted_state is None


@pytest.mark.parametrize("limit", ["1", "500", "0500"])
def test_page_sizes_at_the_limits_are_accepted(limit: str) -> None:
    assert parse_list(an_event(query={"limit": limit})).limit == int(limit) <= MAX_PAGE_SIZE


@pytest.mark.parametrize(
    "query",
    [
        {"limit": "0"},
        {"limit": "501"},
        {"limit": "-1"},
        {"limit": "ten"},
        {"limit": ""},
        {"limit": "10000000"},
        {"limit": "\u0661"},
        {"limit": "5\n"},
        {"status": "ready"},
        {"status": ""},
        {"status": "READY,FAILED"},
        {"version": "latest"},
        {"version": "0.1.0\n"},
        {"cursor": ""},
        {"cursor": "c" * 401},
        {"state": "ready"},
    ],
)
def test_a_list_with_invalid_parameters_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        parse_list(an_event(query=query))


# What routes share


def test_a_page_has_a_size_unless_one_is_asked_for_and_never_another_than_it_may() -> None:
    assert parse_list({}).limit == PAGE_SIZE
    assert parse_list(an_event(query={"limit": str(MAX_PAGE_SIZE)})).limit == MAX_PAGE_SIZE
    for limit in ("0", str(MAX_PAGE_SIZE + 1)):
        with pytest.raises(InvalidRequest, match="limit"):
            parse_list(an_event(query={"limit": limit}))


# Who and whom


@pytest.mark.parametrize("parse", WITH_TENANT)
@pytest.mark.parametrize(
    "tenant", [None, "", "-acme", "acme-", "ac me", "acme\n", "../acme", "acme#", "a" * 41, 1, ["acme"], "ácme"]
)
def test_an_invalid_tenant_id_is_refused(parse: Parse, tenant: object) -> None:
    with pytest.raises(InvalidTenantId):
        parse(an_event(tenant=tenant))


@pytest.mark.parametrize("parse", WITH_TENANT)
@pytest.mark.parametrize("parameters", [None, {}, [], "acme", {"tenant": "acme"}])
def test_a_path_without_a_tenant_is_refused(parse: Parse, parameters: object) -> None:
    with pytest.raises(InvalidTenantId):
        parse({"pathParameters": parameters})


def test_who_invokes_the_function_directly_is_not_known_by_name() -> None:
    event = {"pathParameters": {"tenantId": "acme"}}
    for parse in (parse_create, parse_upgrade, parse_retry, parse_delete):
        assert parse(event).request == Request(by=NOBODY_KNOWN)


# Bodies


@pytest.mark.parametrize("parse", WITH_BODY)
@pytest.mark.parametrize(
    "body",
    [
        "nonsense",
        "{",
        '{"version": }',
        '{"version": "0.1.0"',
        "{'version': '0.1.0'}",
        '{"version": "0.1.0"} {}',
        "version=0.1.0",
        "\x00",
        "\ufeff{}",
        "9" * 5_000,
    ],
)
def test_a_body_that_is_not_json_is_refused(parse: Parse, body: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(an_event(body=body))


@pytest.mark.parametrize("parse", WITH_BODY)
@pytest.mark.parametrize("body", ["[]", "[{}]", "1", "1.5", "true", "null", '"text"', "NaN", "Infinity"])
def test_json_that_is_not_an_object_is_refused(parse: Parse, body: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(an_event(body=body))


@pytest.mark.parametrize("parse", WITH_BODY)
@pytest.mark.parametrize("body", [1, True, ["{}"], {"version": "0.1.0"}, b"{}"])
def test_a_body_that_is_not_text_is_refused(parse: Parse, body: object) -> None:
    with pytest.raises(InvalidRequest):
        parse({"pathParameters": {"tenantId": "acme"}, "body": body})


def test_a_body_may_come_in_base64() -> None:
    body = base64.b64encode(b'{"version": "0.1.0"}').decode()
    assert parse_create(an_event(body=body, isBase64Encoded=True)).request.pin == "0.1.0"


@pytest.mark.parametrize(
    "body",
    [
        "{}",
        "no base64!",
        "e30",
        "é",
        base64.b64encode(b"\xff\xfe").decode(),
        base64.b64encode(b"nonsense").decode(),
    ],
)
def test_a_body_that_is_not_base64_of_json_is_refused(body: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_create(an_event(body=body, isBase64Encoded=True))


NESTED: dict[str, Callable[[int], str]] = {
    "lists": lambda depth: "[" * depth + "]" * depth,
    "objects": lambda depth: '{"labels": ' * depth + "{}" + "}" * depth,
    "lists among labels": lambda depth: '{"labels": ' + "[" * depth + "]" * depth + "}",
    "lists for a version": lambda depth: '{"version": ' + "[" * depth + "]" * depth + "}",
}


def can_be_read(text: str) -> bool:
    try:
        json.loads(text)
    except RecursionError:
        return False
    return True


@pytest.mark.parametrize("encoded", [False, True])
def test_a_body_that_is_larger_than_any_valid_one_is_refused_at_once(encoded: bool) -> None:
    """To say what is wrong with half a million labels would take longer than the function has."""
    body = json.dumps({"labels": {f"{number}": 1 for number in range(500_000)}})
    sent = base64.b64encode(body.encode()).decode() if encoded else body
    with pytest.raises(InvalidRequest, match="characters"):
        parse_create(an_event(sent, isBase64Encoded=encoded))


def test_a_body_that_holds_half_a_character_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        parse_create(an_event('{"labels": {"team": "\\ud800"}}'))


@pytest.mark.parametrize("nested", NESTED)
def test_a_deeply_nested_body_is_refused(nested: str) -> None:
    """Just below what can be read at all is what can still be read, but no longer be printed: none may be left out."""
    nest = NESTED[nested]
    limit = sys.getrecursionlimit()
    deepest = bisect_left(range(limit), True, key=lambda depth: not can_be_read(nest(depth)))
    for depth in [2, 3, 10, *range(deepest - 12, deepest + 3), 10 * limit]:
        with pytest.raises(InvalidRequest):
            parse_create(an_event(body=nest(depth)))


def test_a_refusal_names_the_place_and_is_short() -> None:
    with pytest.raises(InvalidRequest, match=r"labels\.team") as refused:
        parse_create(an_event({"labels": {"team": "<" * 60_000}}))
    assert len(str(refused.value)) < 500


@pytest.mark.parametrize("parse", WITH_BODY)
def test_a_body_that_is_longer_than_any_that_is_valid_is_not_even_read(parse: Parse) -> None:
    body = '{"version": "0.1.0"}'
    parse(an_event(body=body.ljust(MAX_CHARACTERS)))
    for encoded in (False, True):
        longer = body.ljust(MAX_CHARACTERS + 1)
        sent = base64.b64encode(longer.encode()).decode() if encoded else longer
        with pytest.raises(InvalidRequest, match=f"at most {MAX_CHARACTERS}"):
            parse(an_event(body=sent, isBase64Encoded=encoded))


# Whatever is sent

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=10), inner, max_size=4),
    max_leaves=10,
)
NAMES = st.sampled_from(
    ["version", "labels", "allowDowngrade", "allowReplacement", "force", "drainSeconds", "status", "cursor", "limit"]
)
LIKELY = st.sampled_from(["0.1.0", "true", "READY", "10", "", True, False, None, {"team": "billing"}])
OBJECTS = st.dictionaries(NAMES | st.text(max_size=5), LIKELY | JSON, max_size=4)
BODIES = (
    st.none()
    | st.text(max_size=50)
    | (OBJECTS | JSON).map(json.dumps)
    | OBJECTS.map(json.dumps).map(lambda text: base64.b64encode(text.encode()).decode())
    | JSON
)
EVENTS = st.fixed_dictionaries(
    {},
    optional={
        "pathParameters": st.just({"tenantId": "acme"}) | JSON,
        "queryStringParameters": st.none() | OBJECTS | st.dictionaries(NAMES, st.text(max_size=6)) | JSON,
        "body": BODIES,
        "isBase64Encoded": st.booleans() | JSON,
        "requestContext": st.just(CALLER) | JSON,
    },
)


# Making up an event costs more than parsing it, so each is given to all.
@given(event=EVENTS)
def test_every_event_is_accepted_or_refused_without_other_errors(event: dict[str, Any]) -> None:
    for parse in EVERY:
        try:
            order = parse(event)
        except InvalidRequest as refused:
            assert str(refused)  # noqa: PT017 - either is fine, but not without a word
        else:
            check_understood(order)


def check_understood(order: object) -> None:
    """What went through is of the types and within the bounds that everything further in relies on."""
    if isinstance(order, ListTenants):
        assert 1 <= order.limit <= MAX_PAGE_SIZE
    if isinstance(order, Order):
        request = order.request
        assert isinstance(request.by, str)
        assert not request.explicit
        assert request.labels is None or all(isinstance(value, str) for value in request.labels.values())
        assert all(isinstance(flag, bool) for flag in (request.force, request.allow_downgrade))
        assert isinstance(request.allow_replacement, bool)
        assert 0 <= request.drain_seconds <= 1_200


@given(body=OBJECTS)
def test_a_body_is_accepted_whole_or_refused(body: dict[str, Any]) -> None:
    """Nothing that was said is silently left out."""
    try:
        order = parse_upgrade(an_event(body))
    except InvalidRequest:
        return
    said = {
        "version": order.version,
        "allowDowngrade": order.request.allow_downgrade,
        "allowReplacement": order.request.allow_replacement,
    }
    assert body == {name: said[name] for name in body}
