"""`berth console`, up to the moment when it serves."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest

from orchestrator.cli.errors import ExitCode
from tests.unit.cli.conftest import Scene
from tests.unit.cli.fake_api import ADA


class Served:
    """In place of a server that runs until it is interrupted."""

    def __init__(self) -> None:
        self.calls: list[tuple[object, dict[str, object]]] = []

    def __call__(self, console: object, **options: object) -> None:
        self.calls.append((console, options))


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> Served:
    served = Served()
    monkeypatch.setattr("orchestrator.console.server.serve", served)
    return served


def test_the_console_knows_where_it_is_and_who_asks(scene: Scene, served: Served) -> None:
    scene.berth("console", exits=ExitCode.OK)
    ((console, options),) = served.calls
    place = console.place  # type: ignore[attr-defined]
    assert (place.name, place.where, place.account, place.caller) == ("Berth", "in eu-west-1", "111122223333", ADA)
    assert place.renew == "aws sso login"
    assert (console.read_only, options["port"], options["browser"]) == (False, 0, True)  # type: ignore[attr-defined]


def test_the_options_reach_the_server(scene: Scene, served: Served) -> None:
    scene.berth("console", "--read-only", "--port", "8100", "--no-open", "--profile", "prod", exits=ExitCode.OK)
    ((console, options),) = served.calls
    assert console.place.renew == "aws sso login --profile prod"  # type: ignore[attr-defined]
    assert (console.read_only, options["port"], options["browser"]) == (True, 8100, False)  # type: ignore[attr-defined]


def test_without_the_extra_the_error_says_what_to_install(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "orchestrator.console.server", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = scene.berth("console", exits=ExitCode.NO_CONTROL_PLANE)
    assert "pip install 'berth[console]'" in result.stderr


def test_a_port_that_is_taken_is_an_error_with_advice(scene: Scene) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        result = scene.berth("console", "--no-open", "--port", str(port), exits=ExitCode.NO_CONTROL_PLANE)
    assert f"Port {port} of 127.0.0.1 cannot be used" in result.stderr
    assert "--port" in result.stderr


def test_loading_the_command_line_loads_nothing_of_the_console() -> None:
    extra = ("starlette", "jinja2", "uvicorn")
    code = f"import sys, orchestrator.cli.app; print([each for each in {extra} if each in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
