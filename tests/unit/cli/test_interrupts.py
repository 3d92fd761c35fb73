"""Ctrl-C at moments at which it is hard to handle."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
from rich.console import Console

from orchestrator.cli import main as entry
from orchestrator.cli.errors import ExitCode
from orchestrator.rollouts.records import RolloutStatus
from tests.fakes import execution_arn
from tests.unit.cli.conftest import TERMINAL, Scene


@pytest.fixture(autouse=True)
def _heed_interrupts() -> Iterator[None]:
    """Restore the default handler, because processes in the background ignore Ctrl-C."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


STEPS = ["set_live", "show_cursor", "push_render_hook", "clear_live", "pop_render_hook"]
"""The console's methods that rich calls when a display starts or stops."""


@pytest.fixture
def interrupt_before(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Press Ctrl-C right before this method is called."""

    def arm(name: str) -> None:
        step: Callable[..., object] = getattr(Console, name)

        def interrupted(*arguments: object) -> object:
            signal.raise_signal(signal.SIGINT)
            return step(*arguments)

        monkeypatch.setattr(Console, name, interrupted)

    return arm


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_while_the_display_of_a_wait_starts_or_stops(
    scene: Scene, interrupt_before: Callable[[str], None], step: str
) -> None:
    scene.environment |= TERMINAL
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    interrupt_before(step)
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.INTERRUPTED)
    assert "Error" not in result.stderr


@pytest.mark.parametrize("step", STEPS)
def test_an_interrupt_while_the_display_of_a_rollout_starts_or_stops(
    scene: Scene, interrupt_before: Callable[[str], None], step: str
) -> None:
    scene.has()
    scene.berth("rollout", "start")
    scene.api.is_now(status=RolloutStatus.RUNNING, execution=execution_arn(scene.api.newest.name))
    scene.environment |= TERMINAL
    scene.meanwhile = [lambda: scene.api.is_now(status=RolloutStatus.SUCCEEDED)]
    interrupt_before(step)
    result = scene.berth("rollout", "watch", exits=ExitCode.INTERRUPTED)
    assert "Error" not in result.stderr


def test_an_error_caused_by_an_interrupt_is_not_reported(scene: Scene) -> None:
    scene.trouble = IndexError("pop from empty list")
    scene.trouble.__context__ = KeyboardInterrupt()
    result = scene.berth("create", "acme", "--wait", exits=ExitCode.INTERRUPTED)
    assert "Error" not in result.stderr


def test_an_ignored_interrupt_stays_ignored(scene: Scene, interrupt_before: Callable[[str], None]) -> None:
    """Jobs in a shell's background ignore Ctrl-C."""
    scene.environment |= TERMINAL
    scene.meanwhile = [scene.api.begin, scene.api.succeed]
    interrupt_before("set_live")
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        assert scene.berth("create", "acme", "--wait").exit_code == ExitCode.OK
    finally:
        signal.signal(signal.SIGINT, before)


def test_an_interrupt_while_the_commands_are_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupts:
        def find_spec(
            self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
        ) -> ModuleSpec | None:
            if name == "orchestrator.cli.app":
                raise KeyboardInterrupt
            return None

    monkeypatch.delitem(sys.modules, "orchestrator.cli.app", raising=False)
    monkeypatch.setattr(sys, "meta_path", [Interrupts(), *sys.meta_path])
    with pytest.raises(SystemExit) as ended:
        entry.main()
    assert ended.value.code == entry.INTERRUPTED == ExitCode.INTERRUPTED
