"""New events are read from the stream as they were accepted, and a record that cannot be read stops no other."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest

from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.dispatch_stream import read_new_events
from orchestrator.adapters.dynamodb.event_rows import event_from
from orchestrator.events.accepting import NewEvent
from orchestrator.events.authorising import Standing
from orchestrator.events.records import Content
from tests.adapters.events.lives import EVENTS_TABLE, LARGE, SMALL, Lives
from tests.fakes.events import ACME_LIFE

Json = dict[str, Any]

SUBMISSION = NewEvent("form.submitted", Content(b"name=Ada", {"a": "b"}), form_id=f"form_{'0' * 24}")


def as_lambda_hands_it_over(row: Json, event_name: str = "INSERT") -> Json:
    """A record of the stream. Lambda hands over JSON, in which bytes are base64."""
    keys = {name: row[name] for name in ("pk", "sk")}
    text = json.dumps(
        {"eventName": event_name, "dynamodb": {"Keys": keys, "NewImage": row, "SequenceNumber": "7"}},
        default=lambda value: base64.b64encode(value).decode(),
    )
    record: Json = json.loads(text)
    return record


def row_of(lives: Lives, new: NewEvent = SMALL) -> Json:
    settings = lives.settings()
    event_id = lives.accept(Standing(settings, 0, "2026-11"), new)
    key: Any = event_keys.event_key(settings.life, event_id)
    return dict(lives.dynamodb.get_item(TableName=EVENTS_TABLE, Key=key)["Item"])


@pytest.mark.parametrize("new", [SMALL, LARGE, SUBMISSION], ids=["small", "in S3", "submission"])
def test_a_new_event_is_read_as_it_was_accepted(lives: Lives, new: NewEvent) -> None:
    row = row_of(lives, new)
    read = read_new_events({"Records": [as_lambda_hands_it_over(row)]})
    assert read.unreadable == []
    (dispatched,) = read.events
    assert dispatched.event == event_from(row)
    assert (dispatched.pending, dispatched.entries) == (None, None)


@pytest.mark.parametrize("event_name", ["MODIFY", "REMOVE"])
def test_only_new_rows_are_read(lives: Lives, event_name: str) -> None:
    read = read_new_events({"Records": [as_lambda_hands_it_over(row_of(lives), event_name)]})
    assert (read.events, read.unreadable) == ([], [])


def test_rows_that_are_no_events_are_left_out(lives: Lives) -> None:
    row: Any = event_keys.idempotency_key(ACME_LIFE, "api", "k") | {"event_id": {"S": "1"}}
    assert lives
    assert read_new_events({"Records": [as_lambda_hands_it_over(row)]}).events == []


@pytest.mark.parametrize(
    "change",
    [
        {"status": {"S": "lost"}},
        {"sk": {"S": "EVT#1"}},
        {"payload": {"B": "not base64"}},
        {"ttl": {"N": "soon"}},
    ],
)
def test_a_record_that_cannot_be_read_is_named_and_stops_no_other(lives: Lives, change: Json) -> None:
    row = row_of(lives)
    bad = as_lambda_hands_it_over(row)
    bad["dynamodb"]["NewImage"] |= change
    bad["dynamodb"]["Keys"] |= {name: value for name, value in change.items() if name == "sk"}
    read = read_new_events({"Records": [bad, as_lambda_hands_it_over(row)]})
    assert [each.event.event_id for each in read.events] == [event_keys.event_id_of(row["sk"]["S"])]
    (named,) = read.unreadable
    assert (named["pk"], named["sequence_number"]) == (row["pk"]["S"], "7")


@pytest.mark.parametrize("event", [None, {}, {"Records": [None]}, {"Records": [{"dynamodb": {}}]}])
def test_anything_else_has_no_events(event: object) -> None:
    assert read_new_events(event).events == []
