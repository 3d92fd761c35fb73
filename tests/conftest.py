"""What all tests share. Property tests are the same at every run: what fails once fails again."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=60)
settings.load_profile("berth")

# Whatever account this shell is set up for, no test may depend on it or talk to it.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]


def _part(nodeid: str) -> str:
    """What runs in one process when tests run in several: what shares a deployment or a synthesis, else a file."""
    file = nodeid.partition("::")[0]
    if file.endswith(("e2e/test_demo.py", "e2e/test_local_emulator.py")):
        return "own emulator"
    if file.endswith(("e2e/test_rollouts.py", "e2e/test_what_dies.py")):
        return "rollouts"  # As long as all other end-to-end tests together: worth a deployment of its own.
    return next((part for part in ("e2e", "stacks") if f"tests/{part}/" in file), file)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: the end-to-end tests mostly wait, and the others run meanwhile."""
    parts = ["e2e", "rollouts", "own emulator", "stacks"]
    items.sort(key=lambda item: parts.index(part) if (part := _part(item.nodeid)) in parts else len(parts))


class _ByPart(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _part(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByPart(config, log)
