"""The checks of the simulations find every planted bug: :mod:`tests.planted.simulation` says in which seeds."""

from __future__ import annotations

import pytest

from tests.planted.bugs import PlantedBug, Search
from tests.planted.simulation import BUGS


@pytest.mark.parametrize("planted", BUGS.values(), ids=BUGS)
def test_a_planted_bug_is_found(planted: PlantedBug, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.plant(monkeypatch)
    assert isinstance(planted.caught_by, Search)
    assert planted.caught_by.find() is not None
