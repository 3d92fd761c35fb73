"""docs/permissions.md lists every permission, as seen used or as unproven."""

from __future__ import annotations

from typing import Any

from tests.e2e.enforced.pairs import PAGE, granted, on_the_page


def test_the_page_lists_exactly_the_granted_permissions_each_once(
    with_key: dict[str, Any],
    with_warm_pool: dict[str, Any],
    events_with_key: dict[str, Any],
    events_with_mail: dict[str, Any],
) -> None:
    proven, unproven = on_the_page("Seen used"), on_the_page("Unproven")
    assert proven & unproven == set()
    given = (with_key, with_warm_pool, events_with_key, events_with_mail)
    counted = f"{len(proven)} of {len(proven | unproven)} pairs. The other {len(unproven)} are unproven"
    assert counted in PAGE.read_text(encoding="utf-8")
    assert proven | unproven == {pair for template in given for pair in granted(template)}
