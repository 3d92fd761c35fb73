"""The code in the README works."""

from __future__ import annotations

import re
import socket
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from stacks.project import ROOT
from tests.e2e.deployed import Deployed
from tests.e2e.operators import create, delete, ended
from tests.present import present

PYTHON = re.compile(r"From Python, with this package installed.*?```python\n(.*?)```", re.DOTALL)


@pytest.fixture
def queue_of(berth: Deployed, monkeypatch: pytest.MonkeyPatch) -> Any:
    found = present(PYTHON.search((ROOT / "README.md").read_text()))
    for name, value in berth.emulator.client_environment().items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BERTH_API_URL", berth.emulator.api_url(berth.outputs["ApiUrl"]))
    look_up = socket.getaddrinfo

    def names_under_localhost_are_this_machine(host: str, *more: Any, **named: Any) -> Any:
        return look_up("127.0.0.1" if host.endswith(".localhost") else host, *more, **named)

    monkeypatch.setattr(socket, "getaddrinfo", names_under_localhost_are_this_machine)
    names: dict[str, Any] = {}
    exec(found[1], names)
    return names["queue_of"]


def test_a_platform_gets_a_queue_from_python(queue_of: Any) -> None:
    assert "InboundQueue" in queue_of("readme-1")


def test_a_platform_gets_an_error_that_explains_the_problem(berth: Deployed, queue_of: Any) -> None:
    tenant = TenantId.parse("readme-2")
    assert ended(berth, create(berth, tenant)) == "SUCCEEDED"
    assert ended(berth, delete(berth, tenant, force="true")) == "SUCCEEDED"
    with pytest.raises(RuntimeError, match=r"readme-2 has no queue \(tenant-deleted\): Tenant readme-2 was deleted"):
        queue_of("readme-2")
