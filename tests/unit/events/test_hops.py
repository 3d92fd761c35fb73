"""The hop count ends loops of events."""

from __future__ import annotations

import pytest

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.hops import MAX_HOPS, TooManyHops, hops_metadata, hops_of


def test_a_request_of_anybody_else_has_no_hops_behind_it() -> None:
    assert hops_of({}) == 0


@pytest.mark.parametrize("hops", range(MAX_HOPS + 1))
def test_the_first_four_hops_are_counted(hops: int) -> None:
    assert hops_of({"berth-hops": str(hops)}) == hops


@pytest.mark.parametrize("hops", [5, 6, 999])
def test_the_fifth_hop_is_refused(hops: int) -> None:
    assert hops_of({"berth-hops": str(hops)}) == TooManyHops(hops, limit=4)


def test_the_highest_of_several_hop_counts_is_used() -> None:
    assert hops_of({"berth-hops": "1, 3,2"}) == 3
    assert isinstance(hops_of({"berth-hops": "1,5"}), TooManyHops)


@pytest.mark.parametrize("text", ["", "-1", "1.0", "one", "\u0661", "1,", "1000", "9" * 5_000])
def test_a_count_that_is_no_number_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest, match="Berth-Hops"):
        hops_of({"berth-hops": text})


def test_hops_are_kept_with_the_event_if_there_are_any() -> None:
    assert hops_metadata(0) == {}
    assert hops_metadata(3) == {"hops": "3"}
