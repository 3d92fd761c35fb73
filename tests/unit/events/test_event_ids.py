"""Event ids carry their time and shard."""

from __future__ import annotations

import uuid
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.event_ids import (
    event_timestamp,
    first_id_at,
    is_submission,
    new_event_id,
    parse_event_id,
    received_at,
    shard_of,
)

MOMENTS = st.integers(0, 10**16).map(
    lambda microseconds: datetime(2020, 1, 1, tzinfo=UTC) + timedelta(microseconds=microseconds)
)
SHARDS = st.integers(0, 15)


@given(MOMENTS, SHARDS)
def test_an_id_tells_its_microsecond_and_its_shard(moment: datetime, shard: int) -> None:
    event_id = new_event_id(moment, shard)
    assert received_at(event_id) == moment
    assert shard_of(event_id) == shard
    assert parse_event_id(event_id) == event_id


@given(MOMENTS, SHARDS, st.booleans())
def test_an_id_tells_whether_it_is_of_a_submission(moment: datetime, shard: int, submission: bool) -> None:
    event_id = new_event_id(moment, shard, submission=submission)
    assert is_submission(event_id) is submission
    assert shard_of(event_id) == shard


@given(MOMENTS, SHARDS)
def test_an_id_is_a_uuid_of_version_7(moment: datetime, shard: int) -> None:
    event_id = uuid.UUID(new_event_id(moment, shard))
    assert (event_id.version, event_id.variant) == (7, uuid.RFC_4122)


@given(st.lists(MOMENTS, min_size=2, max_size=2, unique=True).map(sorted))
def test_ids_and_timestamps_sort_by_time(moments: list[datetime]) -> None:
    earlier, later = moments
    assert new_event_id(earlier, 15) < new_event_id(later, 0)
    assert event_timestamp(earlier) < event_timestamp(later)


def test_an_id_of_a_time_after_the_year_9999_is_refused() -> None:
    last = new_event_id(datetime.max.replace(tzinfo=UTC), 15)
    assert received_at(parse_event_id(last)) == datetime.max.replace(tzinfo=UTC)
    with pytest.raises(InvalidRequest, match="not valid"):
        parse_event_id("ffffffff-ffff-7fff-8fff-ffffffffffff")


@given(MOMENTS, SHARDS)
def test_the_first_id_of_a_moment_is_not_above_any_id_of_that_moment(moment: datetime, shard: int) -> None:
    assert first_id_at(moment) <= new_event_id(moment, shard) < first_id_at(moment + timedelta(microseconds=1))


def test_ids_of_one_moment_differ() -> None:
    moment = datetime(2026, 11, 17, 12, tzinfo=UTC)
    assert len({new_event_id(moment, 3) for _ in range(1000)}) == 1000


def test_an_id_is_found_behind_its_timestamp() -> None:
    event_id = new_event_id(datetime(2026, 11, 17, 12, tzinfo=UTC), 0)
    assert parse_event_id(f"2026-11-17T12:00:00.000000Z#{event_id}") == event_id


@pytest.mark.parametrize(
    "text", ["", "x", None, 7, "550e8400-e29b-41d4-a716-446655440000", "019365AB-0000-7000-8000-000000000000", "#"]
)
def test_anything_else_is_refused(text: object) -> None:
    with pytest.raises(InvalidRequest, match="UUID of version 7"):
        parse_event_id(text)


def test_a_trailing_newline_is_refused() -> None:
    with pytest.raises(InvalidRequest):
        parse_event_id(new_event_id(datetime(2026, 11, 17, tzinfo=UTC), 0) + "\n")
