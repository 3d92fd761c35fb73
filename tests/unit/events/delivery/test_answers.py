"""The meaning of answers for a delivery."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from orchestrator.events.delivery.answers import (
    MAX_TEXT,
    Failure,
    ReceiverResponse,
    Taken,
    Unsendable,
    retry_after,
    try_result_of,
)
from orchestrator.events.delivery.records import TryResult, Verdict
from orchestrator.events.delivery.retries import LONGEST_RETRY_AFTER
from tests.fakes import NOON


def answered(status: int, body: bytes = b"", **headers: str) -> TryResult:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return try_result_of(ReceiverResponse(status, named, body), milliseconds=7, at=NOON)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_2xx_is_delivered(status: int) -> None:
    assert answered(status, b"ok") == TryResult(Verdict.DELIVERED, 7, code=status, text="ok")


@pytest.mark.parametrize(
    "status", [101, 300, 301, 302, 307, 308, 400, 401, 404, 409, 418, 429, 500, 502, 503, 504, 999]
)
def test_every_other_status_is_tried_again(status: int) -> None:
    answer = answered(status)
    assert (answer.verdict, answer.code) == (Verdict.RETRY, status)


def test_410_means_that_the_receiver_wants_no_events_any_more() -> None:
    assert answered(410).verdict is Verdict.GONE
    assert answered(410, webhook_delivery="abort-message").verdict is Verdict.GONE


@pytest.mark.parametrize("value", ["abort-message", " Abort-Message "])
def test_a_receiver_can_refuse_an_event_for_good(value: str) -> None:
    assert answered(422, webhook_delivery=value).verdict is Verdict.GIVE_UP
    assert answered(200, webhook_delivery=value).verdict is Verdict.DELIVERED
    assert answered(422, webhook_delivery="continue").verdict is Verdict.RETRY


@pytest.mark.parametrize("status", [429, 502, 504])
def test_an_overloaded_receiver_slows_its_connection(status: int) -> None:
    assert answered(status).slows


@pytest.mark.parametrize("status", [200, 400, 410, 500, 503])
def test_other_answers_do_not_slow_it(status: int) -> None:
    assert not answered(status).slows


def test_a_redirect_says_where_to_and_that_it_is_not_followed() -> None:
    answer = answered(302, b"<html>", location="https://example.com/\x1bother" + "a" * 500)
    assert answer.text.startswith("The receiver redirects to https://example.com/ other")
    assert answer.text.endswith("a. Redirects are not followed.")
    assert len(answer.text) < 260
    assert answered(304).text == "The receiver redirects. Redirects are not followed."


def test_no_answer_is_tried_again() -> None:
    answer = try_result_of(Failure("No answer in time.", slows=True), milliseconds=15_000, at=NOON)
    assert answer == TryResult(Verdict.RETRY, 15_000, text="No answer in time.", slows=True)


def test_an_event_that_can_never_be_sent_is_given_up() -> None:
    answer = try_result_of(Unsendable("The content has expired."), milliseconds=1, at=NOON)
    assert answer == TryResult(Verdict.GIVE_UP, 1, text="The content has expired.")


def test_an_event_accepted_by_a_queue_or_a_mail_server_is_delivered() -> None:
    assert try_result_of(Taken(), milliseconds=3, at=NOON) == TryResult(Verdict.DELIVERED, 3)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"Not today.\r\n", "Not today."),
        ("Größe: 5 €".encode(), "Größe: 5 €"),
        (b"a\x00b\x1b[31mc\nd", "a b [31mc d"),
        (b"\xff\xfe", "\ufffd\ufffd"),
        ("a\u202eb".encode(), "a b"),
    ],
)
def test_the_text_of_an_answer_is_printable(body: bytes, text: str) -> None:
    assert answered(500, body).text == text


@pytest.mark.parametrize("character", ["a", "€", "😀", "\n"])
def test_the_text_of_an_answer_is_bounded(character: str) -> None:
    text = answered(500, (character * 20_000).encode()).text
    assert len(text) == (0 if character == "\n" else MAX_TEXT)


WAITS: dict[str, Any] = {
    "0": None,
    "1": timedelta(seconds=1),
    " 120 ": timedelta(minutes=2),
    "86401": LONGEST_RETRY_AFTER,
    "999999999": LONGEST_RETRY_AFTER,
    "9999999999": None,
    "9" * 5_000: None,
    "-5": None,
    "1.5": None,
    "\x1c5": None,
    "5\n": None,
    "\u0661\u0662": None,
    "": None,
    "soon": None,
    "120, 120": None,
    "Mon, 16 Nov 2026 12:10:00 GMT": timedelta(minutes=10),
    "Mon, 16 Nov 2026 12:10:00": timedelta(minutes=10),
    "Mon, 16 Nov 2026 14:10:00 +0200": timedelta(minutes=10),
    "Monday, 16-Nov-26 12:10:00 GMT": timedelta(minutes=10),
    "Mon, 16 Nov 2026 11:59:00 GMT": None,
    "Fri, 31 Dec 9999 23:59:59 GMT": LONGEST_RETRY_AFTER,
    "Fri, 31 Dec 99999 23:59:59 GMT": None,
    "Mon, 99 Nov 2026 12:10:00 GMT": None,
    "Mon, 16 Nov 2026 12:10:00 +9999999999": None,
    ",,,,": None,
    "0000-00-00": None,
}


@pytest.mark.parametrize(("value", "wait"), WAITS.items(), ids=lambda value: str(value)[:40])
def test_retry_after_is_heeded_within_bounds_and_nonsense_is_ignored(value: str, wait: timedelta | None) -> None:
    assert retry_after(value, NOON) == wait


def test_retry_after_counts_for_answers_that_are_tried_again() -> None:
    assert answered(503, retry_after="60").retry_after == timedelta(minutes=1)
    assert answered(200, retry_after="60").retry_after is None
    assert answered(410, retry_after="60").retry_after is None
    assert answered(500).retry_after is None
