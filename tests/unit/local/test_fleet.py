"""The fleet that `make console` makes: which tenant becomes what."""

from __future__ import annotations

import pytest

from orchestrator.local.fleet import NAMES, Fleet


@pytest.mark.parametrize("size", [10, 15, 30])
def test_every_tenant_becomes_one_thing_and_there_is_at_least_one_of_each(size: int) -> None:
    fleet = Fleet.of(size)
    parts = (fleet.failed, fleet.update_failed, fleet.deleted, fleet.deleting, fleet.busy, fleet.upgraded, fleet.ready)
    assert all(parts)
    assert sorted(name for part in parts for name in part) == sorted(NAMES[:size])


def test_there_are_thirty_names() -> None:
    assert len(set(NAMES)) == 30
