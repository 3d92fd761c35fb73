"""The permissions that the other modules of this folder used are those in docs/permissions.md.

If the tests run in several processes, each process has its own control plane and sees a part of the permissions. Only a
process that has run all modules can check that none is missing.
"""

from __future__ import annotations

from pathlib import Path

from tests.e2e.enforced.control_plane import Enforced
from tests.e2e.enforced.pairs import on_the_page, seen


def test_every_permission_was_used_or_is_listed_as_unproven(enforced: Enforced, modules: set[str]) -> None:
    used = seen(enforced)
    assert used <= on_the_page("Seen used") | on_the_page("Unproven")
    if {each.stem for each in Path(__file__).parent.glob("test_*.py")} <= modules:
        assert on_the_page("Seen used") - used == set()
