"""What a function is configured with: its environment, read once and typed, failing fast."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

from orchestrator.errors import MissingSetting


@dataclass(frozen=True)
class Settings:
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)

    def _required(self, name: str) -> str:
        value = self.environment.get(name)
        if not value:
            raise MissingSetting(f"The environment variable {name} is not set. Deploy the control plane again.")
        return value

    @property
    def table(self) -> str:
        return self._required("BERTH_TABLE")

    @property
    def version(self) -> str:
        return self._required("BERTH_VERSION")

    @property
    def create_machine(self) -> str:
        return self._required("BERTH_CREATE_MACHINE")

    @property
    def stack_role(self) -> str:
        return self._required("BERTH_STACK_ROLE")

    @property
    def metadata_service_token(self) -> str:
        return self._required("BERTH_METADATA_SERVICE_TOKEN")

    @property
    def deployment_mode(self) -> str:
        return self._required("BERTH_DEPLOYMENT_MODE")

    @property
    def release_bucket(self) -> str:
        return self._required("BERTH_RELEASE_BUCKET")
