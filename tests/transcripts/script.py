"""The list of transcripts: for each command, the function that runs it."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.transcripts.shell import Shell
from tests.unit.cli.conftest import BERTH
from tests.unit.cli.test_main import commands_below

Script = Callable[[Shell], None]
SCRIPTS: dict[str, Script] = {}

COMMANDS: Mapping[str, bool] = {
    " ".join(path): any(parameter.required for parameter in command.params)
    for path, command in commands_below(BERTH)
    if not hasattr(command, "commands")
}
"""Every command, and whether it has an argument or option that must be given."""
GROUPS = [" ".join(path) for path, command in commands_below(BERTH) if hasattr(command, "commands")]


def script(name: str) -> Callable[[Script], Script]:
    def register(function: Script) -> Script:
        assert name not in SCRIPTS, f"There are two transcripts {name}."
        SCRIPTS[name] = function
        return function

    return register


def file_of(name: str) -> str:
    return f"commands/{name.replace(' ', '-')}.txt"


def transcript(name: str) -> str:
    """What the command prints and sends now."""
    with _fixed():
        shell = Shell()
        if name in COMMANDS:
            shell.run(f"{name} --help")
            if COMMANDS[name]:
                shell.run(name)
        SCRIPTS[name](shell)
        return shell.text


@contextmanager
def _fixed() -> Iterator[None]:
    """An empty working folder, and the same random values each time."""
    before = Path.cwd()
    with pytest.MonkeyPatch.context() as patch, TemporaryDirectory() as folder:
        patch.setattr(secrets, "token_hex", lambda size=32: "0a1b2c3d4e5f6071"[: 2 * size].ljust(2 * size, "0"))
        patch.setattr(secrets, "token_bytes", lambda size=32: b"k" * size)
        patch.delenv("BERTH_KEY", raising=False)
        os.chdir(folder)
        try:
            yield
        finally:
            os.chdir(before)
