"""docs/permissions.md lists every permission, as seen used or as unproven."""

from __future__ import annotations

from typing import Any

from tests.e2e.enforced.pairs import granted, on_the_page


def test_every_permission_is_on_the_page_once_and_no_other_is(with_key: dict[str, Any]) -> None:
    proven, unproven = on_the_page("Seen used"), on_the_page("Unproven")
    assert proven & unproven == set()
    assert proven | unproven == granted(with_key)
