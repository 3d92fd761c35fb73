"""One control plane on the emulator, deployed once by the real CDK, for all end-to-end tests."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import boto3
import pytest

from orchestrator.adapters import keys
from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.adapters.queue_api import QueueApi
from orchestrator.local.control_plane import LocalControlPlane
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.records import Attempt
from orchestrator.tenants import TenantId

Value = TypeVar("Value")

_PROVISIONED_WITHIN = 90.0


def eventually(look: Callable[[], Value | None], *, what: str, seconds: float = _PROVISIONED_WITHIN) -> Value:
    """Look until there is something to see. The condition is what is awaited; the time only bounds it."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if (seen := look()) is not None:
            return seen
    raise AssertionError(f"Not seen within {seconds:.0f} s: {what}")


@dataclass(frozen=True)
class Deployed:
    """The deployed control plane, as a platform and as an operator see it."""

    local: LocalControlPlane
    outputs: dict[str, str]

    def client(self, service: str) -> Any:
        return self.local.session().client(service)
