"""Filters: which events a connection wants.

A filter is a JSON document. ``event_type``, ``headers`` and ``payload`` name what is compared, and a path goes into the
payload by its keys:

    {"event_type": "order.created",
     "payload": {"total": {"$gte": 100}, "customer": {"country": {"$in": ["DE", "FR"]}}}}

A value without an operator has to be equal. All conditions of a document have to hold; ``$or`` and ``$not`` say
otherwise. There are no regular expressions, because one of them could keep a function busy for ever.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.event_types import is_event_type, no_event_type

MAX_DEPTH = 8
MAX_CONDITIONS = 100
MAX_CHOICES = 100
_FIELDS = ("event_type", "headers", "payload")
_MISSING = object()
"""The value at a path that the payload does not have."""


@dataclass(frozen=True, slots=True)
class Filterable:
    """The parts of an event that filters look at."""

    event_type: str
    headers: Mapping[str, str]
    """Names in lower case."""
    payload: object
    """The JSON value, or ``None`` if the payload is not JSON."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _equal(value: object, given: object) -> bool:
    """Equality of JSON values: unlike in Python, true is not 1, also within lists and objects."""
    if isinstance(value, bool) or isinstance(given, bool):
        return value is given
    if isinstance(value, list) and isinstance(given, list):
        return len(value) == len(given) and all(map(_equal, value, given))
    if isinstance(value, dict) and isinstance(given, dict):
        return value.keys() == given.keys() and all(_equal(value[key], given[key]) for key in given)
    return value == given


def _ordered(compare: Callable[[Any, Any], bool]) -> Callable[[object, object], bool]:
    """Numbers are compared with numbers and texts with texts. Anything else has no order, so the condition fails."""

    def holds(value: object, given: object) -> bool:
        both_numbers = _is_number(value) and _is_number(given)
        both_texts = isinstance(value, str) and isinstance(given, str)
        return (both_numbers or both_texts) and compare(value, given)

    return holds


def _is_in(value: object, given: object) -> bool:
    return isinstance(given, list) and any(_equal(value, each) for each in given)


OPERATORS: Mapping[str, Callable[[object, object], bool]] = {
    "$eq": _equal,
    "$neq": lambda value, given: not _equal(value, given),
    "$gt": _ordered(lambda value, given: value > given),
    "$gte": _ordered(lambda value, given: value >= given),
    "$lt": _ordered(lambda value, given: value < given),
    "$lte": _ordered(lambda value, given: value <= given),
    "$in": _is_in,
    "$nin": lambda value, given: not _is_in(value, given),
    "$startsWith": lambda value, given: isinstance(value, str) and value.startswith(str(given)),
    "$endsWith": lambda value, given: isinstance(value, str) and value.endswith(str(given)),
    "$exist": lambda value, given: (value is not _MISSING) is given,
}
_TEXT_OPERATORS = ("$startsWith", "$endsWith")
_LIST_OPERATORS = ("$in", "$nin")
_ORDER_OPERATORS = ("$gt", "$gte", "$lt", "$lte")


def matches(document: Mapping[str, Any], event: Filterable) -> bool:
    """True if the event passes the filter. An empty filter lets every event pass. The document was checked before."""
    fields = {"event_type": event.event_type, "headers": dict(event.headers), "payload": event.payload}
    return _holds(document, fields)


def _holds(condition: Any, value: object) -> bool:
    if not isinstance(condition, Mapping):
        return _equal(value, condition)
    return all(_entry_holds(name, given, value) for name, given in condition.items())


def _entry_holds(name: str, given: Any, value: object) -> bool:
    match name:
        case "$and":
            return all(_holds(each, value) for each in given)
        case "$or":
            return any(_holds(each, value) for each in given)
        case "$not":
            return not _holds(given, value)
        case _ if name in OPERATORS:
            return OPERATORS[name](value, given)
        case _:
            return _holds(given, value.get(name, _MISSING) if isinstance(value, dict) else _MISSING)


def check_filter(document: object) -> None:
    """Raises :class:`InvalidRequest` if the document is not a filter. The message says where."""
    if not isinstance(document, dict):
        raise _invalid("", "it is not an object")
    _Checker().check_fields(document, "")


class _Checker:
    def __init__(self) -> None:
        self._conditions = 0

    def check_fields(self, document: dict[str, Any], path: str, depth: int = 0) -> None:
        """A part of the filter that is about the event as a whole."""
        for name, given in document.items():
            here = f"{path}.{name}".lstrip(".")
            if name in ("$and", "$or"):
                for number, each in enumerate(self._alternatives(given, here, depth)):
                    self.check_fields(each, f"{here}[{number}]", depth + 1)
            elif name == "$not":
                if not isinstance(given, dict):
                    raise _invalid(here, "it is not an object")
                self._go_deeper(here, depth)
                self.check_fields(given, here, depth + 1)
            elif name in _FIELDS:
                if name == "headers":
                    _check_header_names(given, here)
                self._check_condition(given, here, depth)
                if name == "event_type":
                    _check_types(given, here)
            else:
                raise _invalid(here, f"there is no such field. The fields are {', '.join(_FIELDS)}")

    def _check_condition(self, condition: Any, path: str, depth: int) -> None:
        self._conditions += 1
        if self._conditions > MAX_CONDITIONS:
            raise _invalid(path, f"a filter has at most {MAX_CONDITIONS} conditions")
        if isinstance(condition, list):
            raise _invalid(path, "a list is compared by $eq or $in")
        if not isinstance(condition, dict):
            return
        self._go_deeper(path, depth)
        for name, given in condition.items():
            here = f"{path}.{name}"
            if name in ("$and", "$or"):
                for number, each in enumerate(self._alternatives(given, here, depth)):
                    self._check_condition(each, f"{here}[{number}]", depth + 1)
            elif name == "$not":
                self._check_condition(given, here, depth + 1)
            elif name in OPERATORS:
                _check_operand(name, given, here)
            elif name.startswith("$"):
                known = ", ".join((*OPERATORS, "$and", "$or", "$not"))
                raise _invalid(here, f"there is no such operator. The operators are {known}")
            else:
                self._check_condition(given, here, depth + 1)

    def _alternatives(self, given: Any, path: str, depth: int) -> Sequence[dict[str, Any]]:
        if not isinstance(given, list) or not given or not all(isinstance(each, dict) for each in given):
            raise _invalid(path, "it is not a list of objects")
        self._go_deeper(path, depth)
        return given

    def _go_deeper(self, path: str, depth: int) -> None:
        if depth >= MAX_DEPTH:
            raise _invalid(path, f"a filter is at most {MAX_DEPTH} levels deep")


def _check_header_names(given: Any, path: str) -> None:
    for name in given if isinstance(given, dict) else ():
        if not name.startswith("$") and name != name.lower():
            raise _invalid(f"{path}.{name}", "names of headers are in lower case")


def _check_types(condition: Any, path: str) -> None:
    """Refuse what no event has as its type: such a condition would let no event pass, or every one."""
    if not isinstance(condition, dict):
        _check_type(condition, path)
        return
    for name, given in condition.items():
        here = f"{path}.{name}"
        if name in ("$and", "$or"):
            for number, each in enumerate(given):
                _check_types(each, f"{here}[{number}]")
        elif name == "$not":
            _check_types(given, here)
        elif name in OPERATORS:
            _check_types_in(name, given, here)
        else:
            raise _invalid(here, "a type is a text, which has no keys")


def _check_types_in(operator: str, given: Any, path: str) -> None:
    match operator:
        case "$eq" | "$neq":
            _check_type(given, path)
        case "$in" | "$nin":
            for each in given:
                _check_type(each, path)
        case "$startsWith" if given:
            # Whatever a type begins with could be a whole type.
            _check_type(given, path)
        case "$endsWith" if not is_event_type(f"x{given}"):
            _check_type(given, path)


def _check_type(given: object, path: str) -> None:
    if not isinstance(given, str):
        raise _invalid(path, "it is not a text")
    if not is_event_type(given):
        raise _invalid(path, no_event_type(given).rstrip("."))


def _check_operand(name: str, given: object, path: str) -> None:
    if name in _TEXT_OPERATORS and not isinstance(given, str):
        raise _invalid(path, "it is not a text")
    if name in _LIST_OPERATORS and not (isinstance(given, list) and 0 < len(given) <= MAX_CHOICES):
        raise _invalid(path, f"it is not a list of 1 to {MAX_CHOICES} values")
    if name in _ORDER_OPERATORS and not (_is_number(given) or isinstance(given, str)):
        raise _invalid(path, "it is not a number or a text")
    if name == "$exist" and not isinstance(given, bool):
        raise _invalid(path, "it is not true or false")


def _invalid(path: str, why: str) -> InvalidRequest:
    return InvalidRequest(f"filter: {path + ': ' if path else ''}{why}."[:500])
