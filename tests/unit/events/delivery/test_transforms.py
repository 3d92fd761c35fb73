"""How a transform changes a payload."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery.transforms import MAX_BYTES, MAX_PATH_KEYS, MAX_STEPS, check_transform, transformed

ORDER: dict[str, Any] = {"total": 120, "customer": {"name": "Ada", "card": "4242"}, "tags": ["a"]}

CHANGES: dict[str, tuple[dict[str, Any], object]] = {
    "nothing": ({}, ORDER),
    "a removed key": ({"remove": ["customer.card"]}, {**ORDER, "customer": {"name": "Ada"}}),
    "a removed key that is not there": ({"remove": ["customer.iban", "a.b.c", "tags.x"]}, ORDER),
    "a renamed key": (
        {"rename": {"customer.name": "called"}},
        {**ORDER, "customer": {"called": "Ada", "card": "4242"}},
    ),
    "a renamed key that is not there": ({"rename": {"customer.iban": "account"}}, ORDER),
    "a new key": ({"set": {"currency": "EUR"}}, {**ORDER, "currency": "EUR"}),
    "new objects on the way": ({"set": {"shop.country": "DE"}}, {**ORDER, "shop": {"country": "DE"}}),
    "a value that gives way to an object": ({"set": {"total.amount": 1}}, {**ORDER, "total": {"amount": 1}}),
    "a wrapped payload": ({"wrap": "order"}, {"order": ORDER}),
    "all steps in their order": (
        {"remove": ["tags", "customer"], "rename": {"total": "amount"}, "set": {"amount": 1}, "wrap": "order"},
        {"order": {"amount": 1}},
    ),
}


@pytest.mark.parametrize(("document", "expected"), CHANGES.values(), ids=CHANGES)
def test_a_payload_is_changed(document: dict[str, Any], expected: object) -> None:
    check_transform(document)
    assert transformed(document, ORDER) == expected


def test_the_event_itself_stays_as_it_is() -> None:
    transformed({"set": {"customer.name": "Eve"}, "remove": ["total"]}, ORDER)
    assert ORDER["customer"]["name"] == "Ada"
    assert "total" in ORDER


@pytest.mark.parametrize("payload", [[1, 2], "text", 7, None])
def test_a_payload_that_is_no_object_is_only_wrapped(payload: object) -> None:
    assert transformed({"remove": ["a"], "set": {"b": 1}, "wrap": "data"}, payload) == {"data": payload}


INVALID: dict[str, tuple[object, str]] = {
    "no object": ("remove", "it is not an object"),
    "an unknown step": ({"eval": "1+1"}, "there is no step 'eval'. The steps are remove, rename, set, wrap"),
    "no list of paths": ({"remove": "a"}, "remove is a list of paths"),
    "a path that is no text": ({"remove": [1]}, "a path is at most"),
    "an empty path": ({"remove": [""]}, "a path is at most"),
    "a path with an empty key": ({"set": {"a..b": 1}}, "a path is at most"),
    "a path that is too deep": ({"set": {".".join("a" * (MAX_PATH_KEYS + 1)): 1}}, "a path is at most"),
    "a new name with a dot": ({"rename": {"a": "b.c"}}, "a new name is a text without dots"),
    "a wrapper that is no text": ({"wrap": 1}, "a new name is a text without dots"),
    "too many steps": ({"remove": [f"a{number}" for number in range(MAX_STEPS + 1)]}, f"more than {MAX_STEPS} steps"),
    "too large": ({"set": {"a": "x" * MAX_BYTES}}, f"larger than {MAX_BYTES} bytes"),
}


@pytest.mark.parametrize(("document", "why"), INVALID.values(), ids=INVALID)
def test_an_invalid_transform_is_refused(document: object, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        check_transform(document)
