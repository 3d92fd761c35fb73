"""Which permissions were seen used, after all else: docs/permissions.md says so.

The modules beside this one show it together. Run in several processes, each has a control plane of its own, and a part
of what is seen; so only a process that has run all of them can tell that nothing is missing.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.pairs import on_the_page, seen


def test_every_permission_was_seen_used_or_is_known_to_be_unproven(enforced: Enforced, modules: set[str]) -> None:
    used = seen(enforced)
    assert used <= on_the_page("Seen used") | on_the_page("Unproven")
    if {each.stem for each in Path(__file__).parent.glob("test_*.py")} <= modules:
        assert on_the_page("Seen used") - used == set()
