"""Settings of all tests. Property tests try the same examples in every run, so a failure repeats."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("berth")

# No test may use the account of this shell.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]


_PARTS = {
    "own emulator": (
        "e2e/test_adopt.py",
        "e2e/test_demo.py",
        "e2e/test_key.py",
        "e2e/test_local_emulator.py",
        "e2e/test_local_guard.py",
        "e2e/test_side_by_side.py",
        "e2e/test_upgrade_of_berth.py",
    ),
    "enforced": ("e2e/enforced/",),
    "rollouts": ("e2e/test_rollouts.py", "e2e/test_what_dies.py"),
    "e2e": ("e2e/",),
    "stacks": ("stacks/",),
}
"""What runs in one process when tests run in several, the longest first: the tests that share a deployment or a
synthesis. A test is of the first part that names it. The parts of end-to-end tests take about as long as each other."""


def _part(nodeid: str) -> str:
    """The part that a test is of; a file of its own when it shares nothing."""
    file = nodeid.partition("::")[0]
    return next((part for part, paths in _PARTS.items() if any(f"tests/{path}" in file for path in paths)), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: the end-to-end tests mostly wait, and the others run meanwhile."""
    parts = list(_PARTS)
    items.sort(key=lambda item: parts.index(part) if (part := _part(item.nodeid)) in parts else len(parts))


class _ByPart(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _part(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByPart(config, log)
