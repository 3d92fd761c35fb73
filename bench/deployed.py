"""A control plane on its own emulator, for the time of a measurement."""

from __future__ import annotations

import io
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from boto3.session import Session
from botocore.config import Config

from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.client.client import Client
from orchestrator.client.transport import SignedHttp
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.tenants.records import Operation


@dataclass(frozen=True)
class Deployed:
    emulator: Emulator
    outputs: dict[str, str]

    def client(self, service: str, *, connections: int = 10) -> Any:
        """``connections`` is the number of threads that use the client at once."""
        session: Any = self._session
        config = Config(max_pool_connections=connections)
        return session.client(service, endpoint_url=self.emulator.endpoint, config=config)

    def api(self) -> Client:
        return Client(transport=self.http())

    def http(self, api: str | None = None) -> SignedHttp:
        """Requests to the control plane's API, or to another one whose URL is given."""
        credentials = self._session.get_credentials()
        assert credentials is not None
        url = self.emulator.api_url(api or self.outputs["ApiUrl"])
        return SignedHttp(url, credentials, self._session.region_name, connect_to=self.emulator.endpoint)

    def table(self, *, connections: int = 10) -> DynamoTable:
        return DynamoTable(self.client("dynamodb", connections=connections), self.outputs["TableName"])

    def machine(self, operation: Operation) -> str:
        return self.outputs[f"{operation.value.capitalize()}TenantMachineArn"]

    def executions(self) -> StepFunctionsExecutions:
        return StepFunctionsExecutions(lambda: self.client("stepfunctions"), self.machine)

    def function(self, name: str, code: str) -> str:
        """Create a function from this code, which has a ``handler``, and return its ARN."""
        archive = io.BytesIO()
        with zipfile.ZipFile(archive, "w") as files:
            files.writestr(f"{name}.py", code)
        created = self.client("lambda").create_function(
            FunctionName=name,
            Runtime="python3.13",
            Role=f"arn:aws:iam::000000000000:role/{name}",
            Handler=f"{name}.handler",
            Code={"ZipFile": archive.getvalue()},
            Timeout=60,
        )
        return str(created["FunctionArn"])

    @cached_property
    def _session(self) -> Session:
        return session_without_profile(self.emulator.session_settings())


@contextmanager
def deployed(*, real_waits: bool = False, **context: str) -> Iterator[Deployed]:
    """A deployed control plane. ``context`` has settings that override the local ones.

    With ``real_waits``, Wait states take as long as on AWS.
    """
    with tempfile.TemporaryDirectory() as home:
        emulator = Emulator(port=free_port(), home=Path(home), keep_state=False)
        if real_waits:
            emulator = replace(emulator, wait_scale=1.0)
        emulator.start()
        try:
            yield Deployed(emulator, deploy(emulator, lambda _step: None, **context))
        finally:
            emulator.stop()
