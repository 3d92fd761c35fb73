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

# The CDK's own check of templates takes half of every synthesis, and its findings are only warnings. Templates are
# checked by cdk-nag and cfn-lint. Set this before the CDK is imported.
os.environ["CDK_VALIDATION"] = "false"


_PARTS = {
    "own deployments": ("e2e/test_adopt.py", "e2e/test_demo.py", "e2e/test_key.py"),
    "e2e": ("e2e/",),
    "rollouts": (
        "e2e/test_rollouts.py",
        "e2e/test_tenant_queue.py",
        "e2e/test_update_tenant.py",
        "e2e/test_what_dies.py",
    ),
    "enforced": ("e2e/enforced/",),
    "stacks": ("stacks/",),
    "own emulators": ("e2e/test_local_", "e2e/test_side_by_side.py", "e2e/test_upgrade_of_berth.py"),
}
"""The tests that run in one process because they share a deployment or a synthesis, in the order in which the parts
start. A test belongs to the part with the longest matching path. The last one starts when another has ended."""


def _part(nodeid: str) -> str:
    """The part that a test belongs to, or else its own file."""
    file = nodeid.partition("::")[0]
    matching = {path: part for part, paths in _PARTS.items() for path in paths if f"tests/{path}" in file}
    return matching[max(matching, key=len)] if matching else file


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start the parts in their order: the end-to-end tests mostly wait, and the others run meanwhile."""
    parts = list(_PARTS)
    items.sort(key=lambda item: parts.index(part) if (part := _part(item.nodeid)) in parts else len(parts))


class _ByPart(LoadScopeScheduling):
    def _split_scope(self, nodeid: str) -> str:
        return _part(nodeid)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> LoadScopeScheduling:
    return _ByPart(config, log)
