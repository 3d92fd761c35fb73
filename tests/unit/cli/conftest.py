"""The command line, run against a control plane in memory and a clock that sleeping moves."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from typer.testing import CliRunner, Result

from orchestrator.adapters.queue_api import ApiAnswer
from orchestrator.answers import Response, answer
from orchestrator.cli.control_plane import ControlPlane, Options
from orchestrator.cli.main import World, app
from orchestrator.get_queue import Answer
from orchestrator.tenants import TenantId
from tests.fakes import ACME, InMemoryTable

# What this machine is set up for must not decide a test.
ENVIRONMENT: dict[str, str | None] = {
    "AWS_ACCESS_KEY_ID": None,
    "AWS_ENDPOINT_URL": None,
    "AWS_PROFILE": None,
    "COLUMNS": "80",
    "FORCE_COLOR": None,
    "TTY_COMPATIBLE": None,
    "TTY_INTERACTIVE": None,
}
TERMINAL = {"FORCE_COLOR": "1", "TERM": "xterm"}


def heard(response: Response) -> ApiAnswer:
    """A response of getQueue's function, as it is heard through the API."""
    retry_after = response.headers.get("Retry-After")
    return ApiAnswer(response.status, response.body, float(retry_after) if retry_after else None)


class ScriptedApi:
    """Gives one answer after the other, and the last one for ever."""

    def __init__(self) -> None:
        self.script: list[ApiAnswer] = []
        self.asked: list[TenantId] = []

    def get_queue(self, tenant: TenantId) -> ApiAnswer:
        self.asked.append(tenant)
        return self.script.pop(0) if len(self.script) > 1 else self.script[0]


@dataclass
class Scene:
    """A control plane in memory, and `berth` to run against it."""

    table: InMemoryTable = field(default_factory=InMemoryTable)
    queue_api: ScriptedApi = field(default_factory=ScriptedApi)
    connected_to: list[Options] = field(default_factory=list)
    trouble: BaseException | None = None
    """Raised when a command looks for the control plane."""
    trouble_asleep: BaseException | None = None
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    environment: dict[str, str | None] = field(default_factory=lambda: dict(ENVIRONMENT))

    def api_answers(self, *given: Answer | Response | ApiAnswer) -> None:
        self.queue_api.script = list(map(self._as_heard, given))

    def berth(self, *arguments: str) -> Result:
        return self.berth_in(World(self._connect, lambda: self.now, self._sleep), arguments)

    def berth_in(self, world: World, arguments: Iterable[str]) -> Result:
        return CliRunner(env=self.environment).invoke(app, list(arguments), obj=world)

    def _connect(self, options: Options) -> ControlPlane:
        self.connected_to.append(options)
        if self.trouble:
            raise self.trouble
        return self

    def _sleep(self, seconds: float) -> None:
        if self.trouble_asleep:
            raise self.trouble_asleep
        self.pauses.append(seconds)
        self.now += seconds

    @staticmethod
    def _as_heard(given: Answer | Response | ApiAnswer) -> ApiAnswer:
        if isinstance(given, ApiAnswer):
            return given
        return heard(given if isinstance(given, Response) else answer(ACME, given))


@pytest.fixture
def scene() -> Scene:
    return Scene()
