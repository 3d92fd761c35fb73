"""`make console`, up to the moment when an emulator would start, and the lines that say how far it is."""

from __future__ import annotations

import errno
import os
import socket
from io import StringIO
from pathlib import Path
from typing import ClassVar

import pytest
from rich.console import Console

from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.local import steps as steps_module
from orchestrator.local.console import main
from orchestrator.local.errors import LocalError
from orchestrator.local.home import take_lock
from orchestrator.local.showing import LOCK, Show
from orchestrator.local.steps import Steps
from tests.present import present


def test_a_port_that_is_taken_is_said_before_anything_starts() -> None:
    terminal = Console(file=StringIO())
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ControlPlaneNotFound, match=f"Port {port} of 127.0.0.1 cannot be used.*with --port"):
            main(terminal, port=port)
    assert terminal.file.getvalue() == ""  # type: ignore[attr-defined]


def test_a_second_one_in_the_same_home_is_refused_and_touches_nothing(tmp_path: Path) -> None:
    lock = present(take_lock(tmp_path / LOCK))
    try:
        with pytest.raises(LocalError, match=r"One is running already.*Ctrl-C"), Show.on(Console(), tmp_path):
            pytest.fail("it has started")
    finally:
        os.close(lock)
    assert [each.name for each in tmp_path.iterdir()] == [LOCK]


class ClosedTerminal(StringIO):
    """A terminal that is closed meanwhile."""

    is_closed = False

    def write(self, text: str) -> int:
        if self.is_closed:
            raise OSError(errno.EIO, "Input/output error")
        return super().write(text)


class FakeEmulator:
    """In place of an emulator, which takes seconds to start."""

    did: ClassVar[list[str]] = []

    def __init__(self, **_settings: object) -> None:
        self.did.clear()

    @staticmethod
    def running(_home: Path) -> None:
        """None was left over."""

    def start(self) -> None:
        self.did.append("start")

    def stop(self) -> None:
        self.did.append("stop")


def test_the_emulator_is_stopped_although_the_terminal_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    terminal = ClosedTerminal()

    def show() -> None:
        with Show.on(Console(file=terminal), tmp_path):
            terminal.is_closed = True

    monkeypatch.setattr("orchestrator.local.showing.Emulator", FakeEmulator)
    monkeypatch.setattr("orchestrator.local.showing.deploy", lambda *_: {})
    monkeypatch.setattr(Show, "__init__", lambda *_: None)
    with pytest.raises(OSError, match="Input/output error"):
        show()
    assert FakeEmulator.did == ["start", "stop"]


def test_a_step_says_how_far_it_is_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(steps_module, "monotonic", lambda: now)
    terminal = Console(file=StringIO())
    with Steps.on(terminal) as steps:
        steps.progress("nothing has begun")
        steps("Creating 30 tenants")
        steps.progress("1 of 30")
        now += steps_module.TELL_SECONDS
        steps.progress("12 of 30")
        steps.progress("13 of 30")
    printed = terminal.file.getvalue()  # type: ignore[attr-defined]
    assert printed.splitlines() == ["Creating 30 tenants ...", "  12 of 30", "✓ Creating 30 tenants (10.0 s)"]
