"""One control plane on the emulator, deployed once by the real CDK, for all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from tests.e2e.deployed import Deployed

OPERATORS_TENANT = TenantId("operators")


@pytest.fixture(scope="session")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("berth"))
    emulator.start()
    try:
        outputs = deploy(emulator, lambda _step: None, operatorsTenant=OPERATORS_TENANT.value)
        yield Deployed(emulator, outputs)
    finally:
        emulator.stop()
