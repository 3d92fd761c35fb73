"""What operators send to the API, checked and in the domain's words."""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from orchestrator.common.callers import caller
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.validation import LABELS, REASON, VERSION, Schema, object_of, valid
from orchestrator.tenants.deadlines import MOST_DRAIN_SECONDS
from orchestrator.tenants.fleet import PAGE_SIZE
from orchestrator.tenants.records import Request, TenantState

MOST_A_PAGE = 500

MOST_CHARACTERS = 65_536
"""Of a body: more than twice the longest that could be valid. To say what is wrong with a million things takes long."""

_FLAG = {"type": "boolean"}
_REASON = {"reason": REASON}
_CREATE = Schema(
    object_of({}, {"version": {"anyOf": [VERSION, {"type": "null"}]}, "labels": LABELS, **_REASON}, closed=True)
)
_UPGRADE = Schema(
    object_of({}, {"version": VERSION, "allowDowngrade": _FLAG, "allowReplacement": _FLAG, **_REASON}, closed=True)
)
_PIN = Schema(object_of({"version": VERSION}, _REASON, closed=True))
ONLY_A_REASON = Schema(object_of({}, _REASON, closed=True))
"""For orders that say nothing more than why."""
NUMBER_IN_A_QUERY = {"type": "string"}
"""What is in a query is text. :func:`number_of` tells whether it is a number."""
_DELETE = Schema(object_of({}, {"force": _FLAG, "drainSeconds": NUMBER_IN_A_QUERY, **_REASON}, closed=True))
_LIST = Schema(
    object_of(
        {},
        {
            "version": VERSION,
            "status": {"enum": [state.value for state in TenantState]},
            "cursor": {"type": "string", "minLength": 1, "maxLength": 400},
            "limit": NUMBER_IN_A_QUERY,
        },
        closed=True,
    )
)
_NOTHING = Schema(object_of({}, closed=True))


@dataclass(frozen=True, slots=True)
class CreateOrder:
    tenant: TenantId
    request: Request
    unpin: bool


@dataclass(frozen=True, slots=True)
class UpgradeOrder:
    tenant: TenantId
    version: str | None
    request: Request


@dataclass(frozen=True, slots=True)
class PinOrder:
    tenant: TenantId
    version: str
    request: Request


@dataclass(frozen=True, slots=True)
class Order:
    """A retry, a delete, or a pin that is lifted."""

    tenant: TenantId
    request: Request


@dataclass(frozen=True, slots=True)
class Listing:
    state: TenantState | None
    version: str | None
    cursor: str | None
    limit: int


def parse_create(event: Mapping[str, Any]) -> CreateOrder:
    tenant, body = parse_tenant(event), body_of(event, _CREATE)
    request = _asked(event, body, labels=body.get("labels"), pin=body.get("version"))
    return CreateOrder(tenant, request, unpin="version" in body and body["version"] is None)


def parse_upgrade(event: Mapping[str, Any]) -> UpgradeOrder:
    tenant, body = parse_tenant(event), body_of(event, _UPGRADE)
    request = _asked(
        event,
        body,
        allow_downgrade=body.get("allowDowngrade", False),
        allow_replacement=body.get("allowReplacement", False),
    )
    return UpgradeOrder(tenant, body.get("version"), request)


def parse_retry(event: Mapping[str, Any]) -> Order:
    tenant, body = parse_tenant(event), body_of(event, ONLY_A_REASON)
    return Order(tenant, _asked(event, body))


def parse_pin(event: Mapping[str, Any]) -> PinOrder:
    tenant, body = parse_tenant(event), body_of(event, _PIN)
    return PinOrder(tenant, body["version"], _asked(event, body))


def parse_unpin(event: Mapping[str, Any]) -> Order:
    """The reason is in the query: many clients and proxies drop the body of a DELETE."""
    tenant = _tenant(event)
    body_of(event, _NOTHING)
    return Order(tenant, _asked(event, valid(ONLY_A_REASON, query_of(event), what="the query")))


def parse_delete(event: Mapping[str, Any]) -> Order:
    """How to delete is in the query, for the same reason."""
    tenant = _tenant(event)
    body_of(event, _NOTHING)
    query = query_of(event)
    said: dict[str, object] = dict(query)
    if "force" in query:
        said["force"] = {"true": True, "false": False}.get(query["force"], query["force"])
    checked = valid(_DELETE, said, what="the query")
    drain_seconds = number_of(query, "drainSeconds", 0, lowest=0, highest=MOST_DRAIN_SECONDS)
    return Order(tenant, _asked(event, checked, force=checked.get("force", False), drain_seconds=drain_seconds))


def _asked(event: Mapping[str, Any], said: Mapping[str, Any], **more: Any) -> Request:
    """By whom, why, and what more."""
    return Request(by=caller(event), reason=said.get("reason", ""), **more)


def parse_tenant(event: Mapping[str, Any]) -> TenantId:
    """Only the tenant: what the query says besides would be ignored, and is refused instead."""
    tenant = _tenant(event)
    valid(_NOTHING, query_of(event), what="the query")
    return tenant


def parse_nothing(event: Mapping[str, Any]) -> None:
    """The route says it all: what the query says besides would be ignored, and is refused instead."""
    valid(_NOTHING, query_of(event), what="the query")


def parse_list(event: Mapping[str, Any]) -> Listing:
    query = valid(_LIST, query_of(event), what="the query")
    state = TenantState(query["status"]) if "status" in query else None
    return Listing(state, query.get("version"), query.get("cursor"), limit_of(query))


def limit_of(query: Mapping[str, str]) -> int:
    """How many are asked for at once."""
    return number_of(query, "limit", PAGE_SIZE, lowest=1, highest=MOST_A_PAGE)


def number_of(query: Mapping[str, str], name: str, default: int, *, lowest: int, highest: int) -> int:
    """A number in a query. However long the text, the answer says which numbers are allowed."""
    text = query.get(name)
    if text is None:
        return default
    # Python refuses to convert thousands of digits. Nine are more than any number here has.
    if re.fullmatch("0*[0-9]{1,9}", text) and lowest <= int(text[-9:]) <= highest:
        return int(text[-9:])
    raise InvalidRequest(f"{name}: {_shortened(text)} is not a whole number from {lowest} to {highest}")


def _shortened(text: str, most: int = 40) -> str:
    return ascii(text) if len(text) <= most else f"{text[:most]!a} and {len(text) - most} more characters"


def _tenant(event: Mapping[str, Any]) -> TenantId:
    return TenantId.parse(path_parameter(event, "tenantId"))


def path_parameter(event: Mapping[str, Any], name: str) -> object:
    parameters = event.get("pathParameters")
    return parameters.get(name) if isinstance(parameters, Mapping) else None


def query_of(event: Mapping[str, Any]) -> dict[str, str]:
    query = event.get("queryStringParameters")
    given = dict(query) if isinstance(query, Mapping) else {}
    if not all(isinstance(value, str) for value in given.values()):
        raise InvalidRequest("The query is not text.")
    return given


def body_of(event: Mapping[str, Any], schema: Any) -> dict[str, Any]:
    """The body as JSON. None is as good as an empty object."""
    text = event.get("body") or ""
    if not isinstance(text, str):
        raise InvalidRequest("The body is not text.")
    try:
        if event.get("isBase64Encoded"):
            text = base64.b64decode(text, validate=True).decode()
        if len(text) > MOST_CHARACTERS:
            raise InvalidRequest(f"The body has {len(text)} characters; at most {MOST_CHARACTERS} are allowed.")
        body = json.loads(text) if text.strip() else {}
    except (ValueError, binascii.Error, RecursionError):
        raise InvalidRequest("The body is not JSON.") from None
    return valid(schema, body, what="the body")
