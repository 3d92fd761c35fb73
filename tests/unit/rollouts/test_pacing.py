"""The limit on concurrent tenants starts low, grows with successes, and is lowered by throttling."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.rollouts.pacing import (
    DECREASE_FACTOR,
    MAX_INITIAL_LIMIT,
    MIN_INITIAL_LIMIT,
    REACTION_TIME,
    Pace,
)
from tests.fakes import NOON

CEILING = 50
INITIAL_LIMIT = Pace.initial(CEILING).at_once
LATER = NOON + REACTION_TIME


def in_flight_at(pace: Pace) -> int:
    return int(pace.limit)


def after_success(pace: Pace, in_flight: int) -> Pace:
    return pace.grown_by(pace.growth(in_flight))


def succeeding(pace: Pace, times: int) -> Pace:
    for _ in range(times):
        pace = after_success(pace, in_flight_at(pace))
    return pace


@pytest.mark.parametrize(
    ("ceiling", "first"),
    [(1_000, MAX_INITIAL_LIMIT), (CEILING, CEILING // 4), (12, MIN_INITIAL_LIMIT), (8, 8), (5, 5), (2, 2), (1, 1)],
)
def test_the_initial_limit_grows_with_the_ceiling_and_is_at_most_the_ceiling(ceiling: int, first: int) -> None:
    pace = Pace.initial(ceiling)

    assert pace.has_room(first - 1)
    assert not pace.has_room(first)


def test_during_slow_start_every_success_raises_the_limit_by_one() -> None:
    assert succeeding(Pace.initial(CEILING), 7).limit == INITIAL_LIMIT + 7


def test_after_throttling_a_full_round_of_successes_raises_the_limit_by_one() -> None:
    slowed = Pace(10.0, CEILING, slow_start=False)

    assert 10.9 < succeeding(slowed, 10).limit < 11.1


def test_throttling_lowers_the_limit_and_ends_slow_start() -> None:
    slowed = Pace(10.0, CEILING).with_throttles(1, NOON)

    assert slowed.limit == pytest.approx(10 * DECREASE_FACTOR)
    assert not slowed.slow_start


def test_throttling_never_lowers_the_limit_below_one() -> None:
    pace = Pace(1.0, CEILING)
    for number in range(1, 5):
        pace = pace.with_throttles(number, NOON + number * REACTION_TIME)

    assert pace.limit == 1.0
    assert pace.has_room(0)


def test_throttling_soon_after_a_decrease_causes_no_other_decrease() -> None:
    slowed = Pace(10.0, CEILING).with_throttles(1, NOON)

    again = slowed.with_throttles(2, LATER - timedelta(milliseconds=1))

    assert again.limit == slowed.limit
    assert again.with_throttles(2, LATER) == again, "and does not cause a decrease later"
    assert again.with_throttles(3, LATER).limit < slowed.limit


def test_throttles_that_were_seen_before_do_not_lower_the_limit_again() -> None:
    slowed = Pace(10.0, CEILING).with_throttles(3, NOON)

    assert slowed.with_throttles(3, LATER) == slowed


def test_a_stale_lower_count_of_throttles_changes_nothing() -> None:
    slowed = Pace(10.0, CEILING).with_throttles(3, NOON)

    assert slowed.with_throttles(2, LATER) == slowed


def test_the_limit_grows_only_if_it_was_fully_used() -> None:
    pace = Pace(10.0, CEILING)

    assert after_success(pace, 9) == pace
    assert after_success(pace, 10).limit == 11.0


def test_the_limit_never_exceeds_the_ceiling() -> None:
    assert succeeding(Pace.initial(5), 20).limit == 5.0


@pytest.mark.parametrize(
    ("earlier", "begins"),
    [
        (None, Pace(float(INITIAL_LIMIT), CEILING)),
        (Pace(33.0, 99, slow_start=False, throttles_seen=4, slowed_at=NOON), Pace(33.0, CEILING, False)),
        (Pace(2.0, CEILING, slow_start=False, throttles_seen=4), Pace(2.0, CEILING, False)),
        (Pace(1.0, 1), Pace(float(INITIAL_LIMIT), CEILING)),
        (Pace(99.0, 99), Pace(float(CEILING), CEILING)),
    ],
)
def test_a_stage_starts_with_the_limit_of_the_stage_before_and_ignores_earlier_throttles(
    earlier: Pace | None, begins: Pace
) -> None:
    begun = Pace.initial(CEILING).continued_from(earlier, throttles=9, now=LATER)

    assert begun == replace(begins, throttles_seen=9, slowed_at=LATER)
    assert begun.with_throttles(9, LATER) == begun


def test_throttling_by_the_first_calls_of_a_stage_is_seen_but_does_not_count() -> None:
    begun = Pace.initial(CEILING).continued_from(None, throttles=0, now=NOON)

    soon = begun.with_throttles(1, LATER - timedelta(milliseconds=1))

    assert soon == replace(begun, throttles_seen=1)
    assert soon.with_throttles(2, LATER).limit < begun.limit


def test_a_limit_above_the_ceiling_counts_as_the_ceiling() -> None:
    pace = Pace(9.0, 8)

    assert (pace.at_once, pace.growth(8)) == (8, 0.0)


EVENTS = st.lists(
    st.tuples(st.sampled_from(["success", "idle success", "throttle", "read"]), st.integers(0, 30)), max_size=80
)


@given(st.integers(1, 200), EVENTS)
def test_the_limit_is_always_between_one_and_the_ceiling(ceiling: int, events: list[tuple[str, int]]) -> None:
    pace, now, throttles = Pace.initial(ceiling), NOON, 0
    slowed: list[datetime] = []
    for what, seconds in events:
        before, now = pace, now + timedelta(seconds=seconds)
        match what:
            case "success":
                pace = after_success(pace, in_flight_at(pace))
                assert before.limit <= pace.limit <= before.limit + 1
            case "idle success":
                pace = after_success(pace, in_flight_at(pace) - 1)
                assert pace == before
            case "throttle":
                throttles += 1
                pace = pace.with_throttles(throttles, now)
            case _:
                pace = pace.with_throttles(throttles, now)
                assert pace == before
        if pace.slowed_at != before.slowed_at:
            slowed.append(now)
        assert 1 <= pace.limit <= ceiling
        assert pace.has_room(0)
        assert not pace.has_room(ceiling)
    assert all(second - first >= REACTION_TIME for first, second in pairwise(slowed))
