"""The benchmarks of the event plane measure correctly: sizes, partitions, the documents' designs, and lost events."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from bench.event_designs import DESIGNS
from bench.event_load_checks import BATCH, Answers, Sending, Stored, sendings, wrong_answers, wrong_rows
from bench.event_partitions import EVENTS_PER_SECOND, accepted_by_berth, done_by_design
from bench.event_sizes import a_row, largest_payload
from bench.item_sizes import put_units
from tests.costs import COUNTS

# Sizes

BOTH = [(False, False), (True, False), (False, True), (True, True)]


@pytest.mark.parametrize(("type_index", "inbox"), BOTH)
def test_one_byte_more_than_the_largest_payload_costs_another_write_unit(type_index: bool, inbox: bool) -> None:
    largest = largest_payload(type_index=type_index, inbox=inbox)
    fitting, beyond = (
        put_units(a_row(b"x" * size, type_index=type_index, inbox=inbox)) for size in (largest, largest + 1)
    )
    assert (fitting["table"], beyond["table"]) == (1, 2)
    assert sum(fitting.values()) == 1 + type_index + inbox
    assert sum(beyond.values()) == 2 + type_index + inbox


def test_the_largest_payloads() -> None:
    names = {
        "no index": (False, False),
        "type index": (True, False),
        "inbox": (False, True),
        "type index and inbox": (True, True),
    }
    assert COUNTS["sizes"] == {
        name: {
            column: largest_payload(type_index=type_index, inbox=inbox, delivered=delivered)
            for column, delivered in (("bytes of payload", False), ("delivered", True))
        }
        for name, (type_index, inbox) in names.items()
    }


# Designs and partitions


def test_the_documents_designs_cost_what_their_writes_cost() -> None:
    assert {design.document: design.units for design in DESIGNS} == {
        "ferryhook": 10,
        "zapier-triggers": 7,
        "events-api": 5,
        "formbridge": 3,
    }


def test_two_shards_take_a_thousand_events_per_second() -> None:
    assert accepted_by_berth(1, acknowledge=False) == EVENTS_PER_SECOND


@pytest.mark.parametrize(
    ("document", "done"), [("ferryhook", 333), ("zapier-triggers", 333), ("events-api", 333), ("formbridge", 500)]
)
def test_one_partition_per_tenant_takes_fewer(document: str, done: int) -> None:
    (design,) = (each for each in DESIGNS if each.document == document)
    assert done_by_design(design, 1) == done


# The load


SMALL = list(sendings(3, 200))


def answers_to(sent: list[Sending]) -> Answers:
    """The answers that the product should give."""
    answers = Answers()
    for sending in sent:
        results: list[dict[str, Any]] = [
            {"status_code": 202, "event": {"event_id": f"id-of-{event.name}"}}
            if event.is_good
            else {"status_code": 400}
            for event in sending.events
        ]
        if sending.is_batch:
            answers.note(sending, 202, {"results": results})
        else:
            answers.note(sending, results[0]["status_code"], results[0].get("event", {}))
    return answers


def rows_of(answers: Answers) -> list[Stored]:
    return [Stored(tenant, each, name) for (tenant, name), ids in answers.accepted.items() for each in ids]


def test_the_load_has_large_events_bad_ones_and_requests_that_are_made_twice() -> None:
    once = {each.idempotency_key: each for each in SMALL}.values()
    events = [event for sending in once for event in sending.events]
    assert len(events) == len({event.name for event in events}) == 200
    assert sum("filling" in str(event.document) for event in events) == 100
    assert 0 < sum(not event.is_good for event in events) < 20
    assert len(once) < len(SMALL)
    assert {len(sending.events) for sending in once} >= {1, BATCH}
    assert {sending.tenant for sending in once} == {0, 1, 2}


def test_a_load_without_a_fault_has_no_problems() -> None:
    answers = answers_to(SMALL)
    assert wrong_answers(SMALL, answers) == []
    assert wrong_rows(rows_of(answers), answers) == []


def test_an_event_that_is_lost_doubled_invented_or_of_another_tenant_is_found() -> None:
    answers = answers_to(SMALL)
    rows = rows_of(answers)
    first = rows[0]
    moved = Stored(first.tenant + 1, first.event_id, first.name)
    bad_tenant, bad_name = min(answers.refused)
    for wrong in (
        rows[1:],
        [*rows, first],
        [*rows, Stored(first.tenant, "another id", first.name)],
        [*rows[1:], moved],
        [*rows, Stored(bad_tenant, "its id", bad_name)],
        [*rows[1:], Stored(first.tenant, first.event_id, "")],
    ):
        assert wrong_rows(wrong, answers), Counter(wrong)


def test_a_repetition_with_another_id_and_a_good_event_that_was_refused_are_found() -> None:
    answers = answers_to(SMALL)
    (tenant, name), ids = next(iter(answers.accepted.items()))
    ids.add("another id")
    assert wrong_answers(SMALL, answers) == [f"{name}: good, but accepted 2 times"]
    del answers.accepted[tenant, name]
    assert wrong_answers(SMALL, answers) == [f"{name}: good, but accepted 0 times"]
