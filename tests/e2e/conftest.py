"""One control plane on the emulator, deployed once by the real CDK, for all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from tests.e2e.deployed import Deployed
from tests.e2e.operators import an_earlier_release
from tests.e2e.own_templates import make_policy


@pytest.fixture(scope="session")
def shared_emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("berth"))
    emulator.start()
    try:
        yield emulator
    finally:
        emulator.stop()


@pytest.fixture(scope="session")
def shared_settings(shared_emulator: Emulator) -> dict[str, str]:
    """The settings of the deployment that most modules share. A test that deploys again needs the same."""
    return {"stackPolicyArns": make_policy(shared_emulator)}


@pytest.fixture(scope="session")
def berth(shared_emulator: Emulator, shared_settings: dict[str, str]) -> Deployed:
    deployed = Deployed(shared_emulator, deploy(shared_emulator, lambda _step: None, **shared_settings))
    an_earlier_release(deployed)
    return deployed
