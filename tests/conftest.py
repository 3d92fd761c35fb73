"""What all tests share. Property tests are the same at every run: what fails once fails again."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings

settings.register_profile("berth", derandomize=True, deadline=None, database=None, max_examples=100)
settings.load_profile("berth")

# Whatever account this shell is set up for, no test may depend on it or talk to it.
for _name in [name for name in os.environ if name.startswith("AWS_")]:
    del os.environ[_name]


# What needs a deployment or a synthesis shares one, in one process, when tests run in several.
_TOGETHER = {"e2e": "e2e", "stacks": "stacks"}
# These start an emulator of their own for each test.
_ALONE = {"test_demo.py", "test_local_emulator.py"}


@pytest.hookimpl(tryfirst=True)  # Before xdist reads the groups.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest first: the end-to-end tests mostly wait, and the others run meanwhile."""

    def group(item: pytest.Item) -> str | None:
        if item.path.name in _ALONE:
            return "own emulator"
        return _TOGETHER.get(item.path.relative_to(Path(__file__).parent).parts[0])

    order = ["e2e", "stacks", "own emulator", None]
    items.sort(key=lambda item: order.index(group(item)))
    for item in items:
        if name := group(item):
            item.add_marker(pytest.mark.xdist_group(name))
