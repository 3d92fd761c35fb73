"""When a delivery is tried again."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import accumulate

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery.retries import DEFAULT_WAITS, JITTER, MAX_DURATION, RetrySchedule, retry_schedule

NOON = datetime(2026, 11, 16, 12, tzinfo=UTC)


def planned(draw: float = 0.5) -> list[datetime | None]:
    """When each try comes, if every one fails at once."""
    times: list[datetime | None] = []
    now = NOON
    for failed in range(1, RetrySchedule().tries + 1):
        due = RetrySchedule().next_try(failed, first_try=NOON, now=now, draw=lambda: draw)
        times.append(due)
        now = due or now
    return times


def test_there_are_eight_tries_over_twenty_seven_and_a_half_hours() -> None:
    assert planned() == [*(NOON + wait for wait in accumulate(DEFAULT_WAITS)), None]
    assert sum(DEFAULT_WAITS, timedelta()) == timedelta(hours=27, minutes=35, seconds=5)


@pytest.mark.parametrize(("draw", "factor"), [(0.0, 1 - JITTER), (1.0, 1 + JITTER)])
def test_every_wait_varies_by_a_fifth(draw: float, factor: float) -> None:
    waits = [wait * factor for wait in DEFAULT_WAITS]
    assert planned(draw)[:-1] == [NOON + each for each in accumulate(waits)]


def try_after(retry_after: timedelta, *, first_try: datetime = NOON) -> datetime | None:
    return RetrySchedule().next_try(1, first_try=first_try, now=NOON, draw=lambda: 0.5, retry_after=retry_after)


def test_a_receiver_can_ask_for_a_longer_wait() -> None:
    assert try_after(timedelta(hours=2)) == NOON + timedelta(hours=2)


def test_a_receiver_cannot_ask_for_a_shorter_wait() -> None:
    assert try_after(timedelta(seconds=1)) == NOON + DEFAULT_WAITS[0]


def test_a_receiver_cannot_ask_for_more_than_a_day() -> None:
    assert try_after(timedelta(days=99)) == NOON + timedelta(days=1)


def test_no_try_comes_after_seven_days() -> None:
    assert try_after(timedelta(hours=2), first_try=NOON - MAX_DURATION) is None


def test_a_connection_may_have_a_schedule_of_its_own() -> None:
    assert retry_schedule([1, 60]) == RetrySchedule((timedelta(seconds=1), timedelta(minutes=1)))


def test_a_connection_may_do_without_retries() -> None:
    schedule = retry_schedule([])
    assert schedule.next_try(1, first_try=NOON, now=NOON, draw=lambda: 0.5) is None


@pytest.mark.parametrize(
    ("seconds", "why"),
    [
        ([60] * 12, "at most 12 tries"),
        ([0], "at least 1 second"),
        ([7 * 86_400], "have to end within 7 days"),
    ],
)
def test_a_schedule_is_bounded(seconds: list[int], why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        retry_schedule(seconds)
