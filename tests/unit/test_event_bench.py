"""The benchmarks of the event plane: sizes, partitions, and a load without a fault."""

from __future__ import annotations

from typing import Any

from bench.event_load_checks import Answers, Sending, Stored, sendings, wrong_answers, wrong_rows
from bench.event_partitions import EVENTS_PER_SECOND, accepted_by_berth
from bench.event_sizes import largest_payload
from tests.costs import COUNTS

# Sizes


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


# Partitions


def test_two_shards_take_a_thousand_events_per_second() -> None:
    assert accepted_by_berth(1, acknowledge=False) == EVENTS_PER_SECOND


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


def test_a_load_without_a_fault_has_no_problems() -> None:
    answers = answers_to(SMALL)
    assert wrong_answers(SMALL, answers) == []
    assert wrong_rows(rows_of(answers), answers) == []
