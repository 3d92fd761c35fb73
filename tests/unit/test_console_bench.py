"""The measurement of the console's page of tenants: both fleets fill the page, and the ratio is of equal pages."""

from __future__ import annotations

import pytest

from bench.console_page import console_page


def test_a_large_fleet_is_compared_with_a_small_one_on_pages_of_the_same_size() -> None:
    page, by_prefix = console_page(small=100, large=150, rounds=1)
    assert page.value > 0
    assert by_prefix.value > 0
    assert (page.unit, page.aim) == ("x", "<= 1.2")


def test_a_fleet_that_does_not_fill_the_page_is_not_measured() -> None:
    with pytest.raises(ValueError, match="The page shows 40 tenants"):
        console_page(small=40, large=100, rounds=1)
