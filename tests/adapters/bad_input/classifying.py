"""The events that functions may accept, defined again without the parsers: by hand, and by the OpenAPI documents.

Only accepted events are classified, so this may be slow where the parsers are not.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from functools import partial
from string import ascii_letters, digits
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.validators import extend

from tests.documents import CONTROL_PLANE, EVENT_PLANE

DOCUMENTS = (CONTROL_PLANE.json, EVENT_PLANE.json)

_COMPONENTS = {"schemas": {**DOCUMENTS[1]["components"]["schemas"], **DOCUMENTS[0]["components"]["schemas"]}}
"""Schemas that both documents have are the same."""


def is_tenant_id(value: object) -> bool:
    return (
        isinstance(value, str)
        and 1 <= len(value) <= 40
        and set(value) <= set(ascii_letters + digits + "-")
        and "-" not in (value[0], value[-1])
    )


def is_version(value: object) -> bool:
    parts = value.split(".") if isinstance(value, str) else []
    return len(parts) == 3 and all(1 <= len(part) <= 4 and set(part) <= set(digits) for part in parts)


def is_id(value: object) -> bool:
    """True for the id of a rollout or a reconciliation: 20261116-120000-abcd."""
    parts = value.split("-") if isinstance(value, str) else []
    return [len(part) for part in parts] == [8, 6, 4] and (
        set(parts[0] + parts[1]) <= set(digits) and set(parts[2]) <= set(digits + "abcdef")
    )


def is_resource_id(prefix: str, value: object) -> bool:
    """True for the id of an API key, a source or a form: a prefix such as key_, and 24 hexadecimal digits."""
    rest = value.removeprefix(f"{prefix}_") if isinstance(value, str) and value.startswith(f"{prefix}_") else ""
    return len(rest) == 24 and set(rest) <= set(digits + "abcdef")


def is_text(value: object) -> bool:
    """True for a text of a reasonable length that every service accepts."""
    return isinstance(value, str) and 0 < len(value) <= 4_096 and _is_utf8(value)


def is_whole(value: object, most: int) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | float) and 1 <= value <= most and value == int(value)


def is_moment(value: object) -> bool:
    try:
        return isinstance(value, str) and bool(datetime.fromisoformat(value))
    except ValueError:
        return False


def _is_utf8(text: str) -> bool:
    try:
        return bool(text.encode())
    except UnicodeEncodeError:
        return False


def at(event: object, *path: str) -> Any:
    """The value at that path, or None."""
    for name in path:
        event = event.get(name) if isinstance(event, dict) else None
    return event


# The API


def statuses(route: str) -> set[int]:
    """The statuses of the route in the document, without faults. A route that is not in it may have any of them."""
    operation = _operation(route)
    documented = {int(status) for status in operation["responses"]} if operation else {200, 202, 400, 404, 409}
    return {status for status in documented if status < 500}


def request_is_documented(route: str, event: Mapping[str, Any]) -> bool:
    """Whether what was accepted is a request as the document has it."""
    names = re.findall(r"\{(\w+)\}", route)
    return (
        all(_IDS.get(name, is_id)(at(event, "pathParameters", name)) for name in names)
        and _query_is_documented(route, at(event, "queryStringParameters"))
        and _body_is_documented(route, event)
    )


_EVENT_ID = re.compile("[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}")
_IDS: Mapping[str, Callable[[object], bool]] = {
    "tenantId": is_tenant_id,
    "version": is_version,
    "keyId": partial(is_resource_id, "key"),
    "sourceId": partial(is_resource_id, "src"),
    "formId": partial(is_resource_id, "form"),
    "replayId": partial(is_resource_id, "rpl"),
    # The documents also allow the timestamp before the id.
    "eventId": lambda value: isinstance(value, str) and bool(_EVENT_ID.fullmatch(value.rpartition("#")[2])),
    **dict.fromkeys(("connectionId", "subscriptionId"), partial(is_resource_id, "conn")),
}
"""The ids of rollouts and reconciliations are alike."""


def _operation(route: str) -> Any:
    method, _, path = route.partition(" ")
    found = (document["paths"].get(path, {}).get(method.lower()) for document in DOCUMENTS)
    return next(filter(None, found), None)


def _query_is_documented(route: str, query: object) -> bool:
    operation = _operation(route)
    if not isinstance(query, dict) or not operation:
        return True  # None is sent, or nothing is known of it.
    known = {each["name"]: each["schema"] for each in operation.get("parameters", ()) if each.get("in") == "query"}
    return all(name in known and _is_one_of(known[name], text) for name, text in query.items())


def _is_one_of(schema: Mapping[str, Any], text: object) -> bool:
    """In a query everything is text."""
    if schema.get("type") == "boolean":
        return text in ("true", "false")
    if schema.get("type") == "integer":
        return isinstance(text, str) and bool(re.fullmatch("[0-9]{1,5}", text)) and _fits(schema, int(text))
    return _fits(schema, text)


def _body_is_documented(route: str, event: Mapping[str, Any]) -> bool:
    if route.startswith("GET "):
        return True  # Nobody reads it.
    body = event.get("body") or ""
    if event.get("isBase64Encoded"):
        body = base64.b64decode(body).decode()
    operation = _operation(route)
    if not body.strip() or not operation:
        return True
    nothing = {"type": "object", "maxProperties": 0}
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", nothing)
    limit = 1_100_000 if "/releases/" in route else 2**16
    return len(body) <= limit and _fits(schema, json.loads(body))


def _whole(_validator: object, pattern: str, text: object, _schema: object) -> Iterator[ValidationError]:
    if isinstance(text, str) and not re.fullmatch(pattern, text):
        yield ValidationError(pattern)


_Strict = extend(Draft202012Validator, {"pattern": _whole})  # type: ignore[no-untyped-call]


def _fits(schema: Mapping[str, Any], value: object) -> bool:
    return bool(_Strict({**schema, "components": _COMPONENTS}).is_valid(value))


# The machines


def is_run(event: object) -> bool:
    """True for the payload of a state of a tenant's machine."""
    given = at(event, "execution", "Input")
    return (
        is_text(at(event, "execution", "Id"))
        and is_moment(at(event, "execution", "StartTime"))
        and is_tenant_id(at(given, "tenantId"))
        and at(given, "operation") in ("CREATE", "UPDATE", "DELETE")
        and is_version(at(given, "version"))
        and is_whole(at(given, "attempt"), 99_999)
    )


def is_rollout_step(event: object) -> bool:
    given = at(event, "execution", "Input")
    return (
        is_text(at(event, "execution", "Id"))
        and is_id(at(given, "rolloutId"))
        and is_whole(at(given, "attempt"), 9_999)
    )


def is_turn(event: object) -> bool:
    return (
        is_id(at(event, "rolloutId"))
        and is_tenant_id(at(event, "tenantId"))
        and is_version(at(event, "version"))
        and is_whole(at(event, "stage"), 10)
        and is_text(at(event, "execution"))
    )


# Custom resources


def is_resource_request(event: object) -> bool:
    return at(event, "RequestType") in ("Create", "Update", "Delete") and all(
        is_text(at(event, name)) for name in ("StackId", "RequestId", "LogicalResourceId", "ResponseURL")
    )


def claims_to_be_a_resources(event: object) -> bool:
    """It names a resource of a stack of this account and region, whatever else it says."""
    stack, resource = at(event, "StackId"), at(event, "LogicalResourceId")
    return (
        is_resource_request(event)
        and bool(re.fullmatch("arn:aws:cloudformation:eu-west-1:000000000000:stack/[A-Za-z0-9-]+/[A-Za-z0-9-]+", stack))
        and bool(re.fullmatch("[A-Za-z0-9]+", resource))
        and isinstance(at(event, "ResourceProperties"), dict)
    )


def asks_for_tenant_queue(event: object) -> bool:
    tenant, version = at(event, "ResourceProperties", "TenantId"), at(event, "ResourceProperties", "Version")
    return is_resource_request(event) and is_tenant_id(tenant) and (version is None or is_version(version))


def tells_of_metadata(event: object) -> bool:
    given = at(event, "ResourceProperties")
    arn, url = at(given, "InboundQueueArn"), at(given, "InboundQueueUrl")
    said = is_resource_request(event) and is_tenant_id(at(given, "TenantId")) and is_text(arn) and is_text(url)
    return said and _is_stack_of(at(given, "TenantId"), at(event, "StackId"))


def _is_stack_of(tenant: object, stack_id: object) -> bool:
    name = f"berth-tenant-{tenant}-{hashlib.sha256(str(tenant).encode()).hexdigest()[:8]}"
    arn = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{name}/"
    return isinstance(stack_id, str) and stack_id.startswith(arn) and stack_id.removeprefix(arn).isalnum()


def asks_for_release(event: object) -> bool:
    given = at(event, "ResourceProperties")
    digest = at(given, "Digest")
    return (
        is_resource_request(event)
        and is_version(at(given, "Version"))
        and isinstance(digest, str)
        and bool(re.fullmatch("[0-9a-f]{64}", digest))
    )


def asks_for_rollout(event: object) -> bool:
    return is_resource_request(event) and is_version(at(event, "ResourceProperties", "Version"))


def asks_for_proof(event: object) -> bool:
    generation = at(event, "ResourceProperties", "Generation")
    return is_resource_request(event) and isinstance(generation, str) and bool(re.fullmatch("[0-9]+", generation))
