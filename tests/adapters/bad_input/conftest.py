"""One control plane for all inputs of a module."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.adapters.bad_input.world import ControlPlane, a_control_plane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        yield plane
