"""The benchmark of the console's page of tenants runs on small fleets."""

from __future__ import annotations

from bench.console_page import console_page


def test_a_large_fleet_is_compared_with_a_small_one_on_pages_of_the_same_size() -> None:
    page, by_prefix = console_page(small=100, large=150, rounds=1)
    assert page.value > 0
    assert by_prefix.value > 0
    assert (page.unit, page.aim) == ("x", "<= 1.2")
