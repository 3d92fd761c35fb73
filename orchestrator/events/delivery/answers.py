"""The meaning of a try's end: delivered, to be tried again, or to be given up.

| answer                                            | meaning                                               |
|---------------------------------------------------|-------------------------------------------------------|
| 2xx                                               | delivered                                             |
| 410                                               | the receiver wants no events any more                 |
| any other with `webhook-delivery: abort-message`  | the receiver does not want this event again           |
| 3xx                                               | tried again; redirects are not followed               |
| 429, 502, 504, none in time                       | tried again; the receiver is overloaded               |
| any other, none at all                            | tried again                                           |
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from orchestrator.events.delivery.records import TryResult, Verdict
from orchestrator.events.delivery.retries import LONGEST_RETRY_AFTER

MAX_TEXT = 1_000
"""The characters of an answer that are kept."""

_GONE = 410
_OVERLOADED = frozenset({429, 502, 504})
_CONTROL_HEADER = "webhook-delivery"
_ABORT = "abort-message"
_RETRY_AFTER_SECONDS = re.compile(r"[0-9]{1,9}")
_MAX_LOCATION = 200


@dataclass(frozen=True, slots=True)
class ReceiverResponse:
    """An answer over HTTP."""

    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes
    """The beginning of the body."""


@dataclass(frozen=True, slots=True)
class Taken:
    """A queue or a mail server has taken the event."""


@dataclass(frozen=True, slots=True)
class Failure:
    """There was no answer, or a refusal. Another try may succeed."""

    text: str
    """Why. The tenant may read it, so it names no address and nothing of the inside."""
    slows: bool = False
    """True if the receiver is overloaded, or did not answer in time."""


@dataclass(frozen=True, slots=True)
class Unsendable:
    """The event can never be sent."""

    text: str


Result = ReceiverResponse | Taken | Failure | Unsendable


def try_result_of(result: Result, *, milliseconds: int, at: datetime) -> TryResult:
    """``at`` is when the answer came."""
    match result:
        case Taken():
            return TryResult(Verdict.DELIVERED, milliseconds)
        case Failure(text, slows):
            return TryResult(Verdict.RETRY, milliseconds, text=printable(text), slows=slows)
        case Unsendable(text):
            return TryResult(Verdict.GIVE_UP, milliseconds, text=printable(text))
        case ReceiverResponse():
            return _try_result_of_response(result, milliseconds, at)


def _try_result_of_response(response: ReceiverResponse, milliseconds: int, at: datetime) -> TryResult:
    verdict = _verdict(response)
    return TryResult(
        verdict,
        milliseconds,
        code=response.status,
        text=_text(response),
        retry_after=retry_after(response.headers.get("retry-after"), at) if verdict is Verdict.RETRY else None,
        slows=response.status in _OVERLOADED,
    )


def _verdict(response: ReceiverResponse) -> Verdict:
    if 200 <= response.status < 300:
        return Verdict.DELIVERED
    if response.status == _GONE:
        return Verdict.GONE
    if response.headers.get(_CONTROL_HEADER, "").strip().lower() == _ABORT:
        return Verdict.GIVE_UP
    return Verdict.RETRY


def _text(response: ReceiverResponse) -> str:
    if 300 <= response.status < 400:
        location = printable(response.headers.get("location", ""), _MAX_LOCATION)
        return f"The receiver redirects{f' to {location}' if location else ''}. Redirects are not followed."
    # A character has at most four bytes.
    return printable(response.body[: 4 * MAX_TEXT].decode(errors="replace"))


def printable(text: str, limit: int = MAX_TEXT) -> str:
    """The beginning of a text on one line. Characters that cannot be shown become blanks."""
    return "".join(each if each.isprintable() else " " for each in text[: 2 * limit]).strip()[:limit]


def retry_after(value: str | None, at: datetime) -> timedelta | None:
    """The wait that a receiver asks for, in seconds or until a date. ``None`` if it asks for none, or for nonsense."""
    if value is None:
        return None
    # Only blanks: Python also strips characters that it does not accept around a number.
    value = value.strip(" \t")
    if _RETRY_AFTER_SECONDS.fullmatch(value):
        wait = timedelta(seconds=int(value))
    else:
        try:
            until = parsedate_to_datetime(value)
            wait = (until if until.tzinfo else until.replace(tzinfo=UTC)) - at
        except (ValueError, TypeError, IndexError, OverflowError):
            return None
    return min(wait, LONGEST_RETRY_AFTER) if wait > timedelta() else None
