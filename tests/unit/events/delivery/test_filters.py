"""Which events a filter lets pass."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery.filters import (
    MAX_CHOICES,
    MAX_CONDITIONS,
    MAX_DEPTH,
    Filterable,
    check_filter,
    matches,
)

ORDER = Filterable(
    event_type="order.created",
    headers={"x-github-event": "push"},
    payload={"total": 120, "paid": True, "note": None, "tags": ["a"], "customer": {"country": "DE", "name": "Ada"}}
    | {"flags": [True, {"new": False}]},
)

PASSING: dict[str, dict[str, Any]] = {
    "an empty filter": {},
    "an equal type": {"event_type": "order.created"},
    "one of several types": {"event_type": {"$in": ["order.created", "order.paid"]}},
    "the beginning of a type": {"event_type": {"$startsWith": "order."}},
    "the end of a type": {"event_type": {"$endsWith": ".created"}},
    "any beginning": {"event_type": {"$startsWith": ""}},
    "a header": {"headers": {"x-github-event": "push"}},
    "a value deep inside": {"payload": {"customer": {"country": "DE"}}},
    "an equal number": {"payload": {"total": {"$eq": 120}}},
    "a float that equals an integer": {"payload": {"total": 120.0}},
    "another value": {"payload": {"total": {"$neq": 121}}},
    "a value that is missing differs": {"payload": {"discount": {"$neq": 5}}},
    "a range": {"payload": {"total": {"$gt": 119, "$lt": 121}}},
    "the bounds of a range": {"payload": {"total": {"$gte": 120, "$lte": 120}}},
    "the order of texts": {"payload": {"customer": {"name": {"$gt": "Aaron"}}}},
    "none of several": {"payload": {"customer": {"country": {"$nin": ["US", "CA"]}}}},
    "a key that is there": {"payload": {"note": {"$exist": True}}},
    "a key that is not there": {"payload": {"discount": {"$exist": False}}},
    "null": {"payload": {"note": None}},
    "an equal list": {"payload": {"tags": {"$eq": ["a"]}}},
    "an equal list of other things": {"payload": {"flags": {"$in": [[], [True, {"new": False}]]}}},
    "either": {"$or": [{"event_type": "order.paid"}, {"payload": {"total": {"$gt": 100}}}]},
    "both": {"$and": [{"event_type": "order.created"}, {"payload": {"paid": True}}]},
    "not the other": {"$not": {"event_type": "order.paid"}},
    "either of two values": {"payload": {"total": {"$or": [{"$lt": 10}, {"$gt": 100}]}}},
    "not a value": {"payload": {"total": {"$not": {"$lt": 100}}}},
}
REFUSING: dict[str, dict[str, Any]] = {
    "another type": {"event_type": "order.paid"},
    "the beginning is not the whole": {"event_type": "order"},
    "one of two conditions": {"event_type": "order.created", "payload": {"total": 1}},
    "true is not one": {"payload": {"paid": 1}},
    "true is not one in a list": {"payload": {"flags": {"$eq": [1, {"new": False}]}}},
    "false is not zero in an object": {"payload": {"flags": {"$eq": [True, {"new": 0}]}}},
    "a shorter list": {"payload": {"flags": {"$eq": [True]}}},
    "an object with another key": {"payload": {"flags": {"$eq": [True, {"new": False, "old": None}]}}},
    "a number is not a text": {"payload": {"total": {"$gt": "1"}}},
    "null has no order": {"payload": {"note": {"$lt": 1}}},
    "a missing key has no order": {"payload": {"discount": {"$gte": 0}}},
    "a missing key is not null": {"payload": {"discount": None}},
    "a path through a text": {"payload": {"customer": {"name": {"first": "Ada"}}}},
    "a path through a list": {"payload": {"tags": {"0": "a"}}},
    "neither": {"$or": [{"event_type": "a"}, {"event_type": "b"}]},
    "the beginning of a number": {"payload": {"total": {"$startsWith": "1"}}},
}


@pytest.mark.parametrize("document", PASSING.values(), ids=PASSING)
def test_an_event_passes(document: dict[str, Any]) -> None:
    check_filter(document)
    assert matches(document, ORDER)


@pytest.mark.parametrize("document", REFUSING.values(), ids=REFUSING)
def test_an_event_does_not_pass(document: dict[str, Any]) -> None:
    check_filter(document)
    assert not matches(document, ORDER)


def test_a_payload_that_is_not_json_passes_only_filters_that_do_not_look_into_it() -> None:
    event = Filterable("upload", {}, None)
    assert matches({"event_type": "upload"}, event)
    assert not matches({"payload": {"total": 1}}, event)


def nested(levels: int) -> Any:
    return {"key": nested(levels - 1)} if levels else 1


INVALID: dict[str, tuple[object, str]] = {
    "no object": ([], "it is not an object"),
    "an unknown field": ({"type": "a"}, "type: there is no such field. The fields are event_type, headers, payload"),
    "an unknown operator": ({"payload": {"a": {"$regex": ".*"}}}, r"payload.a.\$regex: there is no such operator"),
    "a list as a value": ({"payload": {"a": [1]}}, r"payload.a: a list is compared by \$eq or \$in"),
    "an empty $or": ({"$or": []}, r"\$or: it is not a list of objects"),
    "$or of values": ({"payload": {"a": {"$or": [1, 2]}}}, r"payload.a.\$or: it is not a list of objects"),
    "$not of a value": ({"$not": 1}, r"\$not: it is not an object"),
    "an unknown field inside $or": ({"$or": [{"a": 1}]}, r"\$or\[0\].a: there is no such field"),
    "$in without values": ({"event_type": {"$in": []}}, f"it is not a list of 1 to {MAX_CHOICES} values"),
    "too many choices": ({"event_type": {"$in": ["a"] * (MAX_CHOICES + 1)}}, f"1 to {MAX_CHOICES} values"),
    "$startsWith of a number": ({"event_type": {"$startsWith": 1}}, "it is not a text"),
    "$gt of a list": ({"payload": {"a": {"$gt": []}}}, "it is not a number or a text"),
    "$exist of a number": ({"payload": {"a": {"$exist": 1}}}, "it is not true or false"),
    "too deep": ({"payload": nested(MAX_DEPTH + 1)}, f"at most {MAX_DEPTH} levels"),
    "too many conditions": (
        {"payload": {str(number): number for number in range(MAX_CONDITIONS + 1)}},
        f"at most {MAX_CONDITIONS} conditions",
    ),
    "a type that no event has": ({"event_type": "a b"}, "event_type: 'a b' is not the type of any event. A type has"),
    "such a type inside $or": ({"$or": [{"event_type": "a#"}]}, r"\$or\[0\].event_type: 'a#' is not the type"),
    "such a type below $not": ({"event_type": {"$not": {"$eq": ""}}}, r"event_type.\$not.\$eq: '' is not the type"),
    "such a type in a list": ({"event_type": {"$nin": ["a", "-b"]}}, r"event_type.\$nin: '-b' is not the type"),
    "a type as long as a book": ({"event_type": "x" * 8_000}, r"\.\.\. is not the type.* such as order.created\.$"),
    "a beginning that no type has": ({"event_type": {"$startsWith": "order#"}}, "'order#' is not the type"),
    "an end that no type has": ({"event_type": {"$endsWith": "é"}}, "is not the type of any event"),
    "a number as a type": ({"event_type": {"$in": [1]}}, r"event_type.\$in: it is not a text"),
    "a key of a type": ({"event_type": {"name": "a"}}, "event_type.name: a type is a text, which has no keys"),
    "a header in capitals": ({"headers": {"X-Event": "a"}}, "headers.X-Event: names of headers are in lower case"),
}


@pytest.mark.parametrize(("document", "why"), INVALID.values(), ids=INVALID)
def test_an_invalid_filter_is_refused_with_the_place(document: object, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        check_filter(document)
