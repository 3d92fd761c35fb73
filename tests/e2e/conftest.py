"""One control plane on the emulator, deployed once by the real CDK, for all end-to-end tests."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from tests.e2e.deployed import Deployed
from tests.e2e.own_templates import make_policy

OPERATORS_TENANT = TenantId("operators")


@pytest.fixture(scope="session")
def berth(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    emulator = Emulator(port=free_port(), home=tmp_path_factory.mktemp("berth"))
    emulator.start()
    try:
        settings = {"operatorsTenant": OPERATORS_TENANT.value, "stackPolicyArns": make_policy(emulator)}
        outputs = deploy(emulator, lambda _step: None, **settings)
        yield Deployed(emulator, outputs)
    finally:
        emulator.stop()
