"""Decodes API Gateway's events into the wire models of their routes, and refuses invalid requests with a reason."""

from __future__ import annotations

import base64
import binascii
import enum
import json
import math
import re
import types
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Union, get_args, get_origin

import msgspec

from orchestrator.api.fields import as_documented, converted
from orchestrator.api.route import RequestT, Route
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.input_limits import (
    ALARM_NAME_PATTERN,
    LABEL_NAME_PATTERN,
    LABEL_VALUE_PATTERN,
    REASON_PATTERN,
    check_can_be_handled,
)
from orchestrator.common.tenant_ids import TENANT_ID_PATTERN, TenantId
from orchestrator.common.tiers import NOT_A_TIER, TIER_PATTERN
from orchestrator.common.versions import VERSION_PATTERN

_HINTS = {
    VERSION_PATTERN: "is not a version like 1.2.3",
    TIER_PATTERN: NOT_A_TIER,
    REASON_PATTERN: "is not one line of printable text",
    TENANT_ID_PATTERN: "is not a tenant id: use letters, digits and dashes",
    LABEL_NAME_PATTERN: "is not the name of a label: 1 to 63 letters, digits and ._/- after a letter or digit",
    LABEL_VALUE_PATTERN: "is not the value of a label: up to 128 letters, digits, blanks and ._:/@+=-",
    ALARM_NAME_PATTERN: "is not the name of an alarm: 1 to 255 letters, digits, blanks and ._:/@+=()-",
}
_KINDS = {"str": "text", "int": "a whole number", "bool": "true or false", "array": "a list", "object": "an object"}
_BOUNDS = {">=": "too short: at least", "<=": "too long: at most"}
_SHOWN_CHARACTERS = 40

_PLACE = re.compile(r" - at (`key` in )?`(\$[^`]*)`\Z")
_STEP = re.compile(r"\.([A-Za-z_]\w*)|\[(\d+)\]|(\[\.\.\.\])")
_UNKNOWN_FIELD = re.compile(r"Object contains unknown field `(.*)`\Z", re.DOTALL)
_MISSING_FIELD = re.compile(r"Object missing required field `(.*)`\Z")
_PATTERN = re.compile(r"Expected `str` matching regex (.*)\Z", re.DOTALL)
_LENGTH = re.compile(r" of length (>=|<=) (\d+)")
_EXPECTED = re.compile(r"Expected `([^`]*)`(.*?)(?:, got `.*`)?\Z")


def read(route: Route[RequestT, Any], event: Mapping[str, Any]) -> RequestT:
    """The decoded request. Unknown parameters are refused, so that no caller believes that they had an effect."""
    given = _path_parameters(route, event)
    query, body = _query_of(event), _body_of(event, route.max_characters)
    if route.has_body:
        _refuse_any(query, "the query")
        fields, what = body, "the body"
    else:
        _refuse_any(body, "the body")
        fields, what = _typed(route.request, query), "the query"
    _refuse_any({name: value for name, value in fields.items() if name in given}, what)
    return decode(route.request, {**given, **fields}, what)


def decode(model: type[RequestT], given: object, what: str = "the body") -> RequestT:
    """Decode a document into a wire model. ``what`` names the document in messages."""
    check_can_be_handled(given, what)
    try:
        return converted(given, model)
    except msgspec.ValidationError as error:
        raise InvalidRequest(_explained(str(error), model, given, what)) from None


def _path_parameters(route: Route[Any, Any], event: Mapping[str, Any]) -> dict[str, Any]:
    parameters = event.get("pathParameters")
    known = parameters if isinstance(parameters, Mapping) else {}
    given = {name: known.get(name) for name in route.path_parameters}
    if "tenantId" in given:
        # The messages of TenantId.parse are more precise than those of a pattern.
        TenantId.parse(given["tenantId"])
    return given


def _query_of(event: Mapping[str, Any]) -> dict[str, str]:
    query = event.get("queryStringParameters")
    given = dict(query) if isinstance(query, Mapping) else {}
    if not all(isinstance(value, str) for value in given.values()):
        raise InvalidRequest("The query is not text.")
    return given


def _body_of(event: Mapping[str, Any], max_characters: int) -> dict[str, Any]:
    """The body as a JSON object. A missing body is an empty object."""
    text = event.get("body") or ""
    if not isinstance(text, str):
        raise InvalidRequest("The body is not text.")
    try:
        if event.get("isBase64Encoded"):
            text = base64.b64decode(text, validate=True).decode()
        if len(text) > max_characters:
            raise InvalidRequest(f"The body has {len(text)} characters; at most {max_characters} are allowed.")
        body = json.loads(text, parse_float=_number, parse_constant=_number) if text.strip() else {}
    except (ValueError, binascii.Error, RecursionError):
        raise InvalidRequest("The body is not JSON.") from None
    if not isinstance(body, dict):
        check_can_be_handled(body, "the body")
        raise InvalidRequest(f"the body: {shown(body)} is not an object")
    return body


def _number(text: str) -> float:
    """Parse 5.0 as 5: in JSON they are the same number.

    Python reads NaN and Infinity, which are not JSON, and takes 1e999 for infinite. Nobody could read them again.
    """
    number = float(text)
    if not math.isfinite(number):
        raise InvalidRequest(f"the body: {text[:_SHOWN_CHARACTERS]} is not a number of JSON, or is too large")
    return int(number) if number.is_integer() else number


def _refuse_any(given: Mapping[str, object], what: str) -> None:
    if given:
        raise InvalidRequest(f"{what}: {_unexpected(next(iter(given)))}")


def _unexpected(name: str) -> str:
    return f"Additional properties are not allowed ({shown(name)} was unexpected)"


# Flags and numbers in a query


def _typed(model: type[Any], query: Mapping[str, str]) -> dict[str, Any]:
    readers = _readers(model)
    return {name: readers[name](name, text) if name in readers else text for name, text in query.items()}


def _readers(model: type[Any]) -> Mapping[str, Callable[[str, str], object]]:
    """Parsers of flags and numbers, by field name."""
    return {field.encode_name: reader for field in msgspec.structs.fields(model) if (reader := _reader(field.type))}


def _reader(annotation: Any) -> Callable[[str, str], object] | None:
    parts = list(_parts(annotation))
    if bool in parts:
        return _flag
    if int not in parts:
        return None
    (bounds,) = (part for part in parts if isinstance(part, msgspec.Meta))
    lowest, highest = int(bounds.ge or 0), int(bounds.le or 0)
    return lambda name, text: _whole_number(name, text, lowest, highest)


def _parts(annotation: Any) -> Iterator[Any]:
    """The types and the rules in an annotation."""
    origin = get_origin(annotation)
    if origin is Annotated:
        yield from annotation.__metadata__
        yield from _parts(annotation.__origin__)
    elif origin in (Union, types.UnionType):
        for each in get_args(annotation):
            yield from _parts(each)
    else:
        yield annotation


def _flag(name: str, text: str) -> bool:
    if text not in ("true", "false"):
        raise InvalidRequest(f"{name}: {shown(text)} is neither true nor false")
    return text == "true"


def _whole_number(name: str, text: str, lowest: int, highest: int) -> int:
    # Python refuses to convert thousands of digits. No valid number here has more than nine.
    if re.fullmatch("0*[0-9]{1,9}", text) and lowest <= int(text[-9:]) <= highest:
        return int(text[-9:])
    raise InvalidRequest(f"{name}: {shown(text)} is not a whole number from {lowest} to {highest}")


# Messages about invalid values


def _explained(message: str, model: type[Any], given: object, what: str) -> str:
    """A short message from msgspec's, which mixes the place with the rule and quotes input of any length."""
    place = _PLACE.search(message)
    # The caller chose the name of an unknown field, and it may look like a place.
    if (unknown := _UNKNOWN_FIELD.match(message[: place.start()] if place else message)) is not None:
        return f"{_where(_steps(place), what)}: {_unexpected(unknown[1])}"
    rule, steps = message[: place.start()] if place else message, _steps(place)
    if (missing := _MISSING_FIELD.match(rule)) is not None:
        return f"{_where(steps, what)}: {missing[1]!r} is a required property"
    if (place and place[1]) or (steps and steps[-1] is ...):
        return _explained_entry(rule, model, given, steps, by_key=bool(place and place[1]))
    return f"{_where(steps, what)}: {_message_about(rule, model, steps, _at(given, steps))}"


def _explained_entry(rule: str, model: type[Any], given: object, steps: list[Any], *, by_key: bool) -> str:
    """Find the invalid entry of an object, which msgspec does not name: the first entry that is invalid on its own."""
    path = steps if by_key else steps[:-1]
    entries = _at(given, path)
    for name, value in entries.items() if isinstance(entries, dict) else ():
        try:
            converted(_replaced(given, path, {name: value}), model)
        except msgspec.ValidationError:
            if by_key:
                return f"{_where(path, '')}: {_message_about(rule, model, path, name)}"
            return f"{_where([*path, _brief(name)], '')}: {_message_about(rule, model, path, value)}"
    return f"{_where(path, '')}: {rule[:_SHOWN_CHARACTERS]}"


def _message_about(rule: str, model: type[Any], steps: list[Any], value: object) -> str:
    if _is_secret(model, steps):
        return "the value is not valid"
    if (pattern := _PATTERN.match(rule)) is not None:
        documented = _documented(pattern[1])
        if documented in _HINTS:
            return f"{shown(value)} {_HINTS[documented]}"
        example = _examples(model, steps, documented)
        return f"{shown(value)} " + (f"is not valid. {example}" if example else f"does not match {documented!r}")
    if rule.startswith("Invalid enum value"):
        return f"{shown(value)} is not one of {', '.join(_allowed(model, steps))}"
    if (expected := _EXPECTED.match(rule)) is not None:
        kinds = " or ".join(_KINDS.get(kind, kind) for kind in expected[1].split(" | "))
        if (length := _LENGTH.fullmatch(expected[2])) is not None:
            bound, unit = _BOUNDS[length[1]], "characters" if expected[1] == "str" else "entries"
            return "is empty" if value in ("", [], {}) else f"{shown(value)} is {bound} {length[2]} {unit}"
        return f"{shown(value)} is not {kinds}{expected[2]}"
    return f"{shown(value)} is not allowed"


def _is_secret(model: type[Any], steps: list[Any]) -> bool:
    """True for a field whose value must not appear in a message."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(model)}
    parts = _parts(fields.get(steps[0])) if steps else ()
    schemas = (part.extra_json_schema or {} for part in parts if isinstance(part, msgspec.Meta))
    return any(schema.get("writeOnly") for schema in schemas)


def _examples(model: type[Any], steps: list[Any], documented: str) -> str | None:
    """Examples of values with this pattern, which say more to people than the pattern; None if there are none."""
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(model)}
    for rules in _rules(fields.get(steps[0]) if steps else None):
        if rules.pattern and as_documented(rules.pattern) == documented and rules.examples:
            word = "An example" if len(rules.examples) == 1 else "Examples"
            return f"{word}: {', '.join(map(str, rules.examples))}"
    return None


def _rules(annotation: Any) -> Iterator[msgspec.Meta]:
    """The rules in an annotation, also those for the entries of a list."""
    for part in _parts(annotation):
        if isinstance(part, msgspec.Meta):
            yield part
        for inner in get_args(part):
            yield from _rules(inner)


def _documented(shown: str) -> str:
    """The pattern in the form of the OpenAPI document, from the Python literal in msgspec's message."""
    return as_documented(shown[1:-1].encode().decode("unicode_escape"))


def _allowed(model: type[Any], steps: list[Any]) -> list[str]:
    fields = {field.encode_name: field.type for field in msgspec.structs.fields(model)}
    parts = _parts(fields.get(steps[0])) if len(steps) == 1 else ()
    return [str(each) for part in parts if isinstance(part, type) and issubclass(part, enum.Enum) for each in part]


def _steps(place: re.Match[str] | None) -> list[Any]:
    """The steps to a place: field names, list indexes, and ``...`` for any entry."""
    found = _STEP.finditer(place[2]) if place else ()
    return [step[1] or (... if step[3] else int(step[2])) for step in found]


def _where(steps: list[Any], what: str) -> str:
    return ".".join(str(step) for step in steps if step is not ...) or what


def _at(given: Any, steps: list[Any]) -> Any:
    for step in steps:
        try:
            given = given[step]
        except (KeyError, IndexError, TypeError):
            return None
    return given


def _replaced(given: Any, steps: list[Any], value: object) -> Any:
    if not steps:
        return value
    changed = list(given) if isinstance(given, list) else dict(given)
    changed[steps[0]] = _replaced(given[steps[0]], steps[1:], value)
    return changed


def shown(value: object) -> str:
    """A value in a message: what cannot be printed is escaped, and a long one is cut."""
    if isinstance(value, str):
        is_long = len(value) > _SHOWN_CHARACTERS
        return f"{value[:_SHOWN_CHARACTERS]!a}... ({len(value)} characters)" if is_long else ascii(value)
    text = json.dumps(value)
    if len(text) <= _SHOWN_CHARACTERS + 2:
        return text
    return f"{text[:_SHOWN_CHARACTERS]}... ({len(text)} characters)"


def _brief(name: str) -> str:
    return ascii(name)[1:-1][:_SHOWN_CHARACTERS]
