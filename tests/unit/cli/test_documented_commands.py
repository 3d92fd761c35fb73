"""The commands that documents name exist, with their options."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import typer

from orchestrator.cli.app import app

ROOT = Path(__file__).parents[3]
PAGES = [ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]
# Any: the types of commands are private to typer.
BERTH: Any = typer.main.get_command(app)
GLOBAL = {option for each in BERTH.params for option in each.opts} | {"--help", "--install-completion"}
READ_BY_DEFAULT = {"inbox", "replay"}
"""Groups that also take a tenant in place of a command."""
CODE = re.compile(r"^(?:\$ )?(?:\.venv/bin/)?(berth [a-z-].*)$|`(berth [a-z-][^`]*)`", re.MULTILINE)


def commands_of(page: Path) -> set[str]:
    """The commands in code, each without what follows it on its line."""
    found = CODE.findall(page.read_text(encoding="utf-8"))
    return {re.split(r"  | # | \| |[;>)]", line or span)[0].strip() for line, span in found}


def unknown(line: str) -> list[str]:
    """The words of a command line that are no command and no option of `berth`."""
    words, command, known = line.split()[1:], BERTH, set(GLOBAL)
    while words and hasattr(command, "commands"):
        word = words.pop(0).split("|")[0].rstrip(",")
        if word.startswith("-"):
            if word not in known:
                return [word]
            if word != "--local" and words:
                words.pop(0)
        elif word in command.commands:
            command = command.commands[word]
            known |= {option for each in command.params for option in (*each.opts, *each.secondary_opts)}
        elif command.name in READ_BY_DEFAULT:
            command = next(iter(command.commands.values()))
            known |= {option for each in command.params for option in each.opts}
        else:
            return [] if word.isupper() else [word]
    options = (word.partition("=")[0] for word in words if word.startswith("--"))
    return [option for option in options if option not in known]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_in_documents_exist(page: Path) -> None:
    assert {line: wrong for line in commands_of(page) if (wrong := unknown(line))} == {}
