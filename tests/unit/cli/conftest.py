"""Runs the command line against an in-memory API, with a fake clock that sleeping advances."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from orchestrator.adapters.migration import Migration
from orchestrator.api.answers import answer
from orchestrator.api.responses import Response
from orchestrator.cli.api import Api, Document
from orchestrator.cli.app import app
from orchestrator.cli.control_plane import ControlPlane, DeployedStack, Options
from orchestrator.cli.errors import ControlPlaneNotFound, ExitCode
from orchestrator.cli.invocation import World
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.own_versions import berth_version
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.provisioning import Answer
from tests.fakes import ACME, NEXT_VERSION, NOON
from tests.fakes.migration import InMemoryMigration
from tests.unit.cli.fake_api import ADA, InMemoryApi, heard

# This machine's settings must not affect a test.
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

BERTH = get_command(app)
"""Built once, because building takes longer than most commands."""

API_URL = "https://a1b2c3.execute-api.eu-west-1.amazonaws.com/"
EVENTS_API_URL = "https://d4e5f6.execute-api.eu-west-1.amazonaws.com/"


@dataclass(frozen=True)
class Result:
    """The result of a command. Exceptions that the command does not catch are not caught here either."""

    exit_code: object
    stdout: str
    stderr: str

    @property
    def output(self) -> str:
        return self.stdout + self.stderr


@dataclass
class FakeQueue:
    messages: list[str]

    def send(self, body: str) -> None:
        self.messages.append(body)

    def receive(self) -> list[str]:
        received = list(self.messages)
        self.messages.clear()
        return received


@dataclass
class FakeControlPlane:
    """A deployed control plane, with its API."""

    there: InMemoryApi
    status: str = "UPDATE_COMPLETE"
    version: str | None = field(default_factory=berth_version)
    trouble: dict[str, Exception] = field(default_factory=dict)
    """Errors to raise, by the name of the method: caller, stack, events_stack, api, migration or queue."""
    messages: list[str] = field(default_factory=list)
    """The messages in the queue, which all tenants share here."""
    events: Api | None = None
    """The Events API, if there is an event plane."""
    events_status: str | None = None
    """The status of the event plane's stack, if there is one."""

    def caller(self) -> str:
        self._raise_trouble("caller")
        return ADA

    @property
    def stack(self) -> DeployedStack:
        self._raise_trouble("stack")
        own = {"Version": self.version} if self.version else {}
        outputs = {"ApiUrl": API_URL, "TemplateVersion": NEXT_VERSION, **own}
        return DeployedStack("Berth", "in eu-west-1", self.status, outputs, "111122223333")

    def api(self) -> InMemoryApi:
        self._raise_trouble("api")
        return self.there

    @property
    def events_stack(self) -> DeployedStack:
        self._raise_trouble("events_stack")
        if self.events_status is None:
            raise ControlPlaneNotFound("There is no stack BerthEvents in eu-west-1, so Berth has no event plane.")
        outputs = {"Version": self.version} if self.version else {}
        return DeployedStack("BerthEvents", "in eu-west-1", self.events_status, outputs)

    def events_api(self, key: str | None = None) -> Api:  # noqa: ARG002 - this API believes everybody
        if self.events is None:
            raise ControlPlaneNotFound("There is no stack BerthEvents in eu-west-1, so Berth has no event plane.")
        return self.events

    @property
    def events_api_url(self) -> str:
        return EVENTS_API_URL

    def queue(self, _url: str, _credentials: Document) -> FakeQueue:
        self._raise_trouble("queue")
        return FakeQueue(self.messages)

    def migration(self, sleep: Callable[[float], None]) -> Migration:  # noqa: ARG002 - the table is in memory
        self._raise_trouble("migration")
        world = self.there.world
        return InMemoryMigration(world.table, world.stacks, world.queues, world.clock)

    @property
    def api_url(self) -> str:
        return API_URL

    def _raise_trouble(self, asked: str) -> None:
        if asked in self.trouble:
            raise self.trouble[asked]


@dataclass
class Scene:
    """An in-memory control plane, and `berth` to run against it."""

    api: InMemoryApi = field(default_factory=InMemoryApi)
    events: Api | None = None
    """The Events API, if there is an event plane."""
    control_plane: ControlPlane | None = None
    """Replaces the healthy control plane."""
    connected_to: list[Options] = field(default_factory=list)
    trouble: BaseException | None = None
    """The error to raise when a command looks for the control plane."""
    trouble_asleep: BaseException | None = None
    now: float = 0.0
    pauses: list[float] = field(default_factory=list)
    meanwhile: list[Callable[[], object]] = field(default_factory=list)
    """Actions to run while the command sleeps, one per sleep."""
    typed: str | None = None
    """The input that is typed at the terminal. ``None`` means that there is no terminal."""
    is_a_terminal: bool = True
    """Without this, the input comes from a file."""
    environment: dict[str, str | None] = field(default_factory=lambda: dict(ENVIRONMENT))

    def queue_answers(self, *given: Answer | Response | ApiAnswer) -> None:
        self.api.queue_answers = list(map(self._as_heard, given))

    def berth(self, *arguments: str, exits: ExitCode | None = None) -> Result:
        """Run the command. ``exits`` is the exit code that it must have."""
        world = World(
            self._find,
            lambda: self.now,
            self._sleep,
            lambda: self.typed is not None and self.is_a_terminal,
            lambda: NOON + timedelta(seconds=self.now),
        )
        result = self.berth_in(world, arguments)
        assert exits in (None, result.exit_code), result.output
        return result

    def berth_in(self, world: World, arguments: Iterable[str]) -> Result:
        with CliRunner(env=self.environment).isolation(self.typed) as (stdout, stderr, _):
            try:
                BERTH.main(list(arguments), prog_name="berth", obj=world)
            except SystemExit as end:
                code = end.code
            sys.stdout.flush()
            sys.stderr.flush()
            return Result(code, stdout.getvalue().decode(), stderr.getvalue().decode())

    def has(self, tenant: TenantId = ACME, *, version: str = "0.1.0") -> None:
        """Create the tenant at this release."""
        assert self.api.create(tenant, pin=version).status == 202
        self.api.begin()
        self.api.succeed()
        self.api.create(tenant, unpin=True)
        self.api.asked.clear()
        self.api.sent.clear()

    def _find(self, options: Options) -> ControlPlane:
        self.connected_to.append(options)
        if self.trouble:
            raise self.trouble
        return self.control_plane or FakeControlPlane(self.api, events=self.events)

    def _sleep(self, seconds: float) -> None:
        if self.trouble_asleep:
            raise self.trouble_asleep
        self.pauses.append(seconds)
        self.now += seconds
        if self.meanwhile:
            self.meanwhile.pop(0)()

    @staticmethod
    def _as_heard(given: Answer | Response | ApiAnswer) -> ApiAnswer:
        if isinstance(given, ApiAnswer):
            return given
        return heard(given if isinstance(given, Response) else answer(ACME, given))


@pytest.fixture
def scene() -> Scene:
    return Scene()
