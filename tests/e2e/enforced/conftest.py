"""One control plane with permissions enforced, deployed once by the real CDK (see the package's docstring)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.local.emulator import ACCOUNT
from tests.e2e.enforced.control_plane import ADOPTER, Enforced
from tests.e2e.enforced.running import running
from tests.e2e.legacy import PREFIX


@pytest.fixture(scope="session")
def enforced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Enforced]:
    settings = {"legacyStackPrefixes": PREFIX, "adopterArn": f"arn:aws:iam::{ACCOUNT}:role/{ADOPTER}"}
    with running(tmp_path_factory.mktemp("enforced"), lambda _: settings) as enforced:
        yield enforced
        # This includes requests after the end of a test, such as events of its executions.
        assert enforced.denials() == []


@pytest.fixture(scope="session")
def modules() -> set[str]:
    """The modules of this folder that have run in this process."""
    return set()


@pytest.fixture(scope="module", autouse=True)
def _record_module(request: pytest.FixtureRequest, modules: set[str]) -> None:
    modules.add(request.path.stem)
