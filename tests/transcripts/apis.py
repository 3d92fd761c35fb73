"""Both HTTP APIs, one line per field: everything in the OpenAPI documents that a client depends on."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator
from typing import Any

from orchestrator.api.openapi import documented_method, written
from orchestrator.api.openapi_schemas import SCHEMA, Api
from orchestrator.api.route import AnyRoute, Header

Json = dict[str, Any]

FOR_PEOPLE = frozenset({"description", "examples", "example", "title"})
INNER = "  "
LINE = 110
_NOTHING: Json = {}


def snapshot(api: Api) -> str:
    document = json.loads(written(api))
    operations = {each["operationId"]: each for path in document["paths"].values() for each in path.values()}
    schemas: Json = document["components"]["schemas"]
    problems = {name for name, schema in schemas.items() if "allOf" in schema and "unevaluatedProperties" in schema}
    bodies = {_name(_body_schema(operation)) for operation in operations.values()}
    lines = ["# Routes. A field ends in ? if it may be left out. Every route may also answer as API Gateway does."]
    for route in sorted(api.routes, key=lambda each: (each.path, each.method)):
        lines += ["", *_route(route, operations[route.name], schemas)]
    lines += ["", "", "# Types", ""]
    for name, schema in sorted(schemas.items()):
        if name not in problems | bodies:
            lines += _component(name, schema)
    lines += ["", "", "# Problems, with the members that they have besides type, title, status and detail", ""]
    for name in sorted(problems):
        lines += _problem(name, schemas[name])
    return "\n".join(lines) + "\n"


def _route(route: AnyRoute, operation: Json, schemas: Json) -> Iterator[str]:
    shown = route.method if route.method.lower() == documented_method(route) else f"{route.method} (any method)"
    limits = f", at most {route.max_characters} characters" if route.has_body else ""
    scope = f", scope {route.scope}" if route.scope else ""
    yield f"{shown} {route.path}: {route.name} for {route.audience}{scope}, rate {route.rate}{limits}"
    if route.bodies:
        yield f"{INNER}body of {', '.join(route.bodies)}"
    for each in operation.get("parameters", ()):
        optional = "" if each.get("required") else "?"
        yield from _field(f"{INNER}{each['in']} {each['name']}{optional}", each["schema"], INNER)
    body = _body_schema(operation)
    if body:
        needed = "" if operation["requestBody"].get("required") else "?"
        yield from _field(f"{INNER}body{needed}", schemas[_name(body)], INNER)
    for answer in route.answers:
        model = answer.model.__name__ if answer.model else "nothing"
        yield f"{INNER}{answer.status} {model}{_headers(answer.headers)}"
    problems = sorted(f"{each.status} {each.kind}{_variant(each.kind, each.name)}" for each in route.problems)
    yield from textwrap.wrap(
        f"{INNER}problems: {', '.join(problems)}", LINE, subsequent_indent=INNER * 2, break_on_hyphens=False
    )


def _variant(kind: str, name: str) -> str:
    """The name of a problem's schema, if the kind does not say it: problems of a kind may have different members."""
    return "" if name == "".join(part.capitalize() for part in kind.split("-")) else f" as {name}"


def _headers(headers: tuple[Header, ...]) -> str:
    shown = (f"{each.name}{'' if each.required else '?'}: {_type(dict(each.schema))}" for each in headers)
    return f", headers {'; '.join(shown)}" if headers else ""


def _component(name: str, schema: Json) -> Iterator[str]:
    yield from _field(name, schema, "")


def _problem(name: str, schema: Json) -> Iterator[str]:
    rest = {key: value for key, value in schema.items() if key not in ("allOf", "unevaluatedProperties")}
    members = dict(rest.pop("properties"))
    kind, status = members.pop("type")["const"], members.pop("status")["const"]
    required = rest.pop("required", ())
    short = kind.rpartition(":")[2]
    yield f"{status} {short}{_variant(short, name)}{_rest(rest)}"
    for member, its in members.items():
        yield from _field(f"{INNER}{member}{'' if member in required else '?'}", its, INNER)


def _field(head: str, schema: Json, indent: str) -> Iterator[str]:
    """The lines of one field: those of an object have one line for each of its own fields."""
    if "properties" not in schema:
        yield from _wrapped(f"{head}: {_type(schema)}", indent)
        return
    rest = {key: value for key, value in schema.items() if key not in ("properties", "required", "type")}
    is_closed = rest.pop("additionalProperties", None) is False
    yield f"{head}:{'' if is_closed else ' open'}{_rest(rest)}"
    for name, member in schema["properties"].items():
        optional = "" if name in schema.get("required", ()) else "?"
        yield from _field(f"{indent}{INNER}{name}{optional}", member, indent + INNER)


def _wrapped(line: str, indent: str) -> Iterator[str]:
    """The line, with long alternatives each on a line of its own."""
    parts = line.split(" | ") if len(line) > LINE else [line]
    yield parts[0]
    yield from (f"{indent}{INNER}| {part}" for part in parts[1:])


def _type(schema: Json) -> str:
    rest = dict(schema)
    if "$ref" in rest:
        shown = rest.pop("$ref").removeprefix(SCHEMA)
    elif "const" in rest:
        shown = json.dumps(rest.pop("const"))
        rest.pop("type", None)
    elif "enum" in rest:
        shown = " | ".join(map(json.dumps, rest.pop("enum")))
        rest.pop("type", None)
    elif "anyOf" in rest:
        shown = " | ".join(map(_type, rest.pop("anyOf")))
    elif "oneOf" in rest:
        shown = " | ".join(map(_type, rest.pop("oneOf")))
    elif rest.get("type") == "array":
        del rest["type"]
        shown = f"[{_type(rest.pop('items', _NOTHING))}]"
    elif rest.get("type") == "object":
        del rest["type"]
        members = rest.pop("properties", _NOTHING)
        required = rest.pop("required", ())
        fields = [f"{name}{'' if name in required else '?'}: {_type(each)}" for name, each in members.items()]
        others = rest.pop("additionalProperties", True)
        names = _type(rest.pop("propertyNames")) if "propertyNames" in rest else "..."
        fields += [] if others is False else [f"{names}: {'any' if others is True else _type(others)}"]
        shown = f"{{{', '.join(fields)}}}"
    else:
        kind = rest.pop("type", "any")
        shown = kind if isinstance(kind, str) else " | ".join(kind)
    return f"{shown}{_rest(rest)}"


def _rest(schema: Json) -> str:
    """The bounds and rules of a type, as they are."""
    bounds = [f"{key}={json.dumps(_for_machines(value))}" for key, value in schema.items() if key not in FOR_PEOPLE]
    return f" ({', '.join(bounds)})" if bounds else ""


def _for_machines(value: Any) -> Any:
    if isinstance(value, list):
        return [_for_machines(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {key: _for_machines(each) for key, each in value.items() if key != "description" or isinstance(each, dict)}


def _body_schema(operation: Json) -> Json:
    content = operation.get("requestBody", _NOTHING).get("content", _NOTHING)
    found: Json = content.get("application/json", _NOTHING).get("schema", _NOTHING)
    return found


def _name(schema: Json) -> str:
    return str(schema.get("$ref", "")).removeprefix(SCHEMA)
