"""Behaviour that all commands share: global options, help, and errors as one line and an exit code."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from rich.text import Text
from typer.main import get_command

from orchestrator.cli.app import app
from orchestrator.cli.commands import COMMANDS
from orchestrator.cli.control_plane import Options
from orchestrator.cli.errors import ExitCode
from orchestrator.common.own_versions import berth_version, template_version
from tests.unit.cli.conftest import Scene


def test_debug_shows_the_traceback(scene: Scene) -> None:
    scene.trouble = ZeroDivisionError("division by zero")
    result = scene.berth("--debug", "tenants", exits=ExitCode.UNEXPECTED)
    assert "Traceback (most recent call last)" in result.stderr


def test_a_closed_pipe_ends_the_command_quietly(scene: Scene) -> None:
    scene.trouble = BrokenPipeError(32, "Broken pipe")
    result = scene.berth("tenants")
    assert (result.exit_code, result.output) == (1, "")


@pytest.mark.parametrize("tenant", ["", "a/b", "-", "x" * 41, "acme\n", "a b", "ä"])
@pytest.mark.parametrize("command", ["get-queue", "create", "upgrade", "unpin", "retry", "delete", "tenant"])
def test_an_invalid_tenant_id_is_refused_before_any_request(scene: Scene, command: str, tenant: str) -> None:
    result = scene.berth(command, "--", tenant, exits=ExitCode.BAD_USAGE)
    assert result.stderr.startswith("Error: The tenant id ")
    assert result.stderr.count("\n") == 1
    assert scene.connected_to == []


@pytest.mark.parametrize(
    ("arguments", "options"),
    [
        (["tenants"], Options()),
        (["--local", "tenants"], Options(local=True)),
        (["tenants", "--local"], Options(local=True)),
        (["tenants", "--stack", "Other", "--region=eu-west-1"], Options(stack="Other", region="eu-west-1")),
        (["--profile", "prod", "tenant", "--region", "eu-west-1", "acme"], Options(region="eu-west-1", profile="prod")),
        (["tenants", "--version", "0.1.0", "--stack", "tenants"], Options(stack="tenants")),
        (["create", "acme", "--version", "0.1.0", "--label", "a=b", "--local"], Options(local=True)),
        (["--local", "rollout", "list"], Options(local=True)),
        (["rollout", "--stack", "Other", "status"], Options(stack="Other")),
        (["rollout", "start", "--to", "0.2.0", "--region", "eu-west-1", "--no-watch"], Options(region="eu-west-1")),
        (["rollout", "pause", "--profile=prod", "20261116-120000-0a1b"], Options(profile="prod")),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_global_options_may_come_before_or_after_the_command(
    scene: Scene, arguments: list[str], options: Options
) -> None:
    scene.berth(*arguments)
    assert scene.connected_to == [options]


@pytest.mark.parametrize("arguments", [["tenants", "--cursor", "\udcff"], ["tenants", "--stack=\udcff"], ["\udcff"]])
def test_arguments_that_are_not_utf8_are_refused(scene: Scene, arguments: list[str]) -> None:
    result = scene.berth(*arguments)
    assert (result.exit_code, scene.connected_to) == (ExitCode.BAD_USAGE, [])
    assert "is not UTF-8." in result.stderr


def test_after_two_dashes_nothing_is_an_option(scene: Scene) -> None:
    result = scene.berth("tenant", "--", "--local", exits=ExitCode.BAD_USAGE)
    assert "The tenant id '--local' is not valid" in result.stderr


@pytest.mark.parametrize("other", [["--region", "eu-west-1"], ["--profile", "prod"]], ids=" ".join)
def test_local_cannot_be_combined_with_options_for_aws(scene: Scene, other: list[str]) -> None:
    scene.berth("--local", *other, "tenants", exits=ExitCode.BAD_USAGE)
    assert scene.connected_to == []


def test_the_version_is_that_of_the_checkout(scene: Scene) -> None:
    result = scene.berth("--version")
    assert (result.exit_code, result.stdout) == (
        ExitCode.OK,
        f"berth {berth_version()}, tenant template {template_version()}\n",
    )


def test_after_a_bump_the_version_is_the_new_one_without_another_installation(
    scene: Scene, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bumped = tmp_path / "pyproject.toml"
    bumped.write_text('[project]\nversion = "9.8.7.dev6"\n')
    monkeypatch.setattr("orchestrator.common.own_versions.PROJECT", bumped)
    assert scene.berth("--version").stdout == f"berth 9.8.7.dev6, tenant template {template_version()}\n"


@pytest.mark.parametrize("command", [[], ["rollout", "start"], ["reconcile"], ["doctor"]], ids=" ".join)
def test_help_does_not_load_the_sdk(command: list[str]) -> None:
    ask_for_help = (
        "import sys\n"
        "from orchestrator.cli.app import app\n"
        f"app({[*command, '--help']}, standalone_mode=False)\n"
        "sys.exit(len({'boto3', 'botocore', 'jsonschema'} & sys.modules.keys()))\n"
    )
    ran = subprocess.run([sys.executable, "-c", ask_for_help], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.parametrize(
    ("arguments", "loaded"),
    [
        (["--version"], set()),
        (["tenants", "--help"], {"tenants"}),
        (["rollout", "start", "--help"], {"rollout"}),
        (["no-such-command"], set()),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_only_the_named_command_is_loaded(arguments: list[str], loaded: set[str]) -> None:
    run = (
        "import atexit, sys\n"
        "from orchestrator.cli.main import main\n"
        "atexit.register(lambda: print('MODULES', *sys.modules))\n"
        f"sys.argv = ['berth', *{arguments}]\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", run], capture_output=True, text=True, check=False)
    modules = ran.stdout.rpartition("MODULES")[2].split()
    assert "orchestrator.cli.app" in modules, ran.stderr
    of_commands = {f"orchestrator.cli.{command.module}": command.module for command in COMMANDS.values()}
    assert {of_commands[module] for module in modules if module in of_commands} == loaded


def commands_below(command: click.Command, *path: str) -> Iterator[tuple[tuple[str, ...], click.Command]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands_below(below, *path, name)


def test_no_line_of_a_longer_description_is_folded_at_80_columns() -> None:
    """The help keeps the lines of a paragraph, so a line that is folded leaves a stub behind."""
    folded = [
        (path, line)
        for path, command in commands_below(get_command(app))
        for paragraph in (command.help or "").split("\n\n")
        for line in paragraph.splitlines()
        if len(line) > 78 and "\n" in paragraph
    ]
    assert folded == []


@pytest.mark.parametrize(
    ("path", "epilog"),
    [(path, command.epilog) for path, command in commands_below(get_command(app)) if command.epilog],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_examples_fit_into_80_columns(scene: Scene, path: tuple[str, ...], epilog: str) -> None:
    result = scene.berth(*path, "--help", exits=ExitCode.OK)
    shown = {line.strip() for line in Text.from_ansi(result.stdout).plain.splitlines()}
    written = [Text.from_markup(line).plain.strip() for line in epilog.splitlines()]
    assert [line for line in written if line not in shown] == []
