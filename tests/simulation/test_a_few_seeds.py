"""The promises hold in a few seeds of each simulation. ``make test-fast`` plays these, ``make test`` more besides."""

from __future__ import annotations

import pytest

from tests.simulation.__main__ import MANY, What

SEEDS = {What.TENANTS: range(2_000, 2_100), What.ROLLOUTS: range(2_000, 2_060), What.EVENTS: range(2_000, 2_050)}


@pytest.mark.parametrize("what", SEEDS, ids=lambda what: what.name.lower())
def test_the_promises_hold_in_a_few_seeds(what: What) -> None:
    for seed in SEEDS[what]:
        MANY[what](seed)
