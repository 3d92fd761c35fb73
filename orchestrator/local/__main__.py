"""The local control plane: ``python -m orchestrator.local up|diff|down|status|env|reset|demo|tour|console``."""

import argparse
import os
import re
import shlex
import signal
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from orchestrator.cli.control_plane import STACK_VARIABLE
from orchestrator.cli.escaping import SafeConsole
from orchestrator.common.errors import BerthError
from orchestrator.local.access_key import GET_IT
from orchestrator.local.deployment import compare, deploy, events_outputs, forget, is_deployed, outputs
from orchestrator.local.emulator import Emulator
from orchestrator.local.errors import LocalError
from orchestrator.local.fleet import SIZE, SMALLEST
from orchestrator.local.steps import Steps
from orchestrator.tenants.names import DEFAULT_NAME

INTERRUPTED = 130
_SETTINGS = "berth:"
PICTURE_WIDTH = 110
_FONT_FACE = re.compile(r"@font-face\s*{[^}]*}\s*")


def up(console: Console, context: dict[str, str]) -> None:
    """start the control plane, or bring the running one up to date"""
    emulator = _chosen()
    if emulator.has_crashed():
        console.print(
            "[yellow]The emulator or this machine crashed: changes since the last make down are lost.[/] "
            f"Log: {_relative(emulator.log)}"
        )
    with Steps.on(console) as steps:
        steps("Starting the emulator")
        emulator.start()
        deploy(emulator, steps, **context)
    name = context.get("name", DEFAULT_NAME)
    option = "" if name == DEFAULT_NAME else f" --stack {name}"
    console.print(
        f"\n{name} is up at [bold]{emulator.endpoint}[/]. Try:\n\n"
        f"  .venv/bin/berth get-queue acme --wait{option}\n      ask for a tenant's queue\n"
        f"{_try_events(option) if context.get('events', 'true') != 'false' else ''}"
        "  make down\n      stop it and keep its state\n\n"
        f"For other tools (requests must be signed with its key):\n\n  {GET_IT}\n",
        highlight=False,
    )


def diff(console: Console, context: dict[str, str]) -> None:
    """show what `up` with the same settings would change in the running control plane"""
    emulator = Emulator.running()
    if emulator is None:
        raise LocalError("The local control plane is not running. Start it: make up")
    name = context.get("name", DEFAULT_NAME)
    console.print(f"Comparing this checkout with {name} on the emulator at {emulator.endpoint}:", highlight=False)
    compare(emulator, **context)
    console.print("Nothing was deployed. `make up` with the same CDK_ARGS deploys this.", highlight=False)


def _try_events(option: str) -> str:
    """The commands with which the event plane is tried, once the tenant exists."""
    return (
        f"  .venv/bin/berth events settings acme --plan free{option}\n      let the tenant accept events\n"
        f"  .venv/bin/berth connections create acme --name Queue{option}\n      deliver them to its queue\n"
    )


def down(console: Console) -> None:
    """stop the control plane and keep its state"""
    emulator = Emulator.running()
    if emulator is None:
        console.print("The local control plane is not running.")
        return
    with Steps.on(console) as steps:
        steps("Stopping the emulator")
        stopped = emulator.stop()
    if stopped is None:
        return
    for stack in stopped.interrupted:
        console.print(f"[yellow]Stack {stack} was being changed, and its change will never finish.[/]")
    if not stopped.state_kept:
        raise LocalError(
            f"The emulator could not save its state: changes since its start are lost. Log: {_relative(emulator.log)}"
        )
    console.print("Its state is saved: `make up` starts it again, `make reset` deletes the state.")


def status(console: Console) -> None:
    """show whether the control plane is running, and its address"""
    emulator = Emulator.running()
    if emulator is None:
        crashed = "The emulator crashed. " if _chosen().has_crashed() else ""
        console.print(f"{crashed}The local control plane is not running: `make up` starts it.")
    elif not emulator.is_up():
        console.print(f"The emulator is running but does not answer at {emulator.endpoint}.", highlight=False)
    else:
        name = _name()
        if is_deployed(emulator, name):
            console.print(f"{name} is up, at {emulator.endpoint}.", highlight=False)
            for variable, url in _api_urls(emulator).items():
                console.print(f"{variable} is {url}", highlight=False, soft_wrap=True)
        else:
            console.print(
                f"The emulator is running at {emulator.endpoint}, but {name} is not deployed: `make up` deploys it.",
                highlight=False,
            )
        console.print(f"For other tools: {GET_IT}", highlight=False, soft_wrap=True)


def env(console: Console) -> None:
    """print the environment variables that other tools need, for a shell to evaluate"""
    emulator = Emulator.running()
    if emulator is None:
        raise LocalError("The local control plane is not running. Start it: make up")
    variables = emulator.client_environment() | _api_urls(emulator)
    for name in sorted(name for name in os.environ if name.startswith("AWS_") and name not in variables):
        console.out(f"unset {name}", highlight=False)
    for name, value in variables.items():
        console.out(f"export {name}={shlex.quote(value)}", highlight=False)


def _api_urls(emulator: Emulator) -> dict[str, str]:
    """The addresses of both APIs, by the environment variable for each."""
    found = {}
    if "ApiUrl" in (deployed := outputs(emulator, _name())):
        found["BERTH_API_URL"] = emulator.api_url(deployed["ApiUrl"])
    if "EventsApiUrl" in (events := events_outputs(emulator, _name())):
        found["BERTH_EVENTS_API_URL"] = emulator.api_url(events["EventsApiUrl"])
    return found


def reset(console: Console) -> None:
    """stop the control plane and delete its state"""
    emulator = Emulator.running() or _chosen()
    with Steps.on(console) as steps:
        steps("Deleting all state")
        emulator.stop()
        emulator.forget_state()
        forget(emulator)


def demo(console: Console) -> None:
    """deploy, provision a tenant, use its queue, roll out a release, deliver an event, stop"""
    from orchestrator.local.demo import main as run_demo

    run_demo(console)


def tour(console: Console) -> None:
    """a longer demo with all features; BERTH_PICTURE names an SVG file to save the output to"""
    from orchestrator.local.tour import main as run_tour

    picture = os.environ.get("BERTH_PICTURE")
    if picture:
        console = SafeConsole(record=True, width=PICTURE_WIDTH)
    run_tour(console)
    if picture:
        svg = console.export_svg(title="make tour")
        # Remove the fonts, which a reader's browser would load from another site.
        Path(picture).write_text(_FONT_FACE.sub("", svg))


def console(console: Console, tenants: int, port: int, no_open: bool) -> None:
    """deploy, make a fleet of tenants in all states, and open the console on it until Ctrl-C"""
    from orchestrator.local.console import main as show_console

    show_console(console, size=tenants, port=port, browser=not no_open)


WITH_SETTINGS = {command.__name__: command for command in (up, diff)}
COMMANDS = {command.__name__: command for command in (down, status, env, reset, demo, tour)}
SHOWS = frozenset({"demo", "tour", "console"})


def _chosen() -> Emulator:
    """The emulator on the port of BERTH_LOCAL_PORT; without it the running emulator, or one on the default port."""
    port = os.environ.get("BERTH_LOCAL_PORT")
    if not port:
        return Emulator.running() or Emulator()
    if not (port.isdecimal() and 0 < int(port) < 65536):
        raise LocalError(f"BERTH_LOCAL_PORT must be a port number, not {port!r}.")
    return Emulator(port=int(port))


def _name() -> str:
    """The name of the control plane that `berth` uses."""
    return os.environ.get(STACK_VARIABLE) or DEFAULT_NAME


def _setting(text: str) -> tuple[str, str]:
    """Parse a setting in the CDK's form: ``berth:name=Berth-dev``."""
    name, _, value = text.partition("=")
    if not (name.startswith(_SETTINGS) and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {_SETTINGS}SETTING=VALUE")
    return name.removeprefix(_SETTINGS), value


def _add_console(parser: argparse.ArgumentParser) -> None:
    sizes = range(SMALLEST, SIZE + 1)
    parser.add_argument(
        "--tenants",
        type=int,
        choices=sizes,
        default=SIZE,
        metavar="NUMBER",
        help=f"how many tenants the fleet has, from {SMALLEST} to {SIZE}: fewer are there sooner",
    )
    parser.add_argument("--port", type=int, default=0, help="the port of the console; default: a free one")
    parser.add_argument("--no-open", action="store_true", help="print the address instead of opening a browser")


def _relative(path: Path) -> str:
    return os.path.relpath(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, with_settings in WITH_SETTINGS.items():
        commands.add_parser(name, help=with_settings.__doc__).add_argument(
            "-c",
            "--context",
            type=_setting,
            action="append",
            default=[],
            metavar=f"{_SETTINGS}SETTING=VALUE",
            help="override a setting, in the CDK's form; berth:name means a second control plane beside the first",
        )
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.__doc__)
    _add_console(commands.add_parser(console.__name__, help=console.__doc__))
    arguments = parser.parse_args()
    if arguments.command in SHOWS:
        # A terminal that is closed, and a plain kill, end a show as Ctrl-C does: its emulator is stopped.
        for ending in (signal.SIGTERM, signal.SIGHUP):
            signal.signal(ending, signal.default_int_handler)
    try:
        if with_context := WITH_SETTINGS.get(arguments.command):
            with_context(SafeConsole(), dict(arguments.context))
        elif arguments.command == console.__name__:
            console(SafeConsole(), arguments.tenants, arguments.port, arguments.no_open)
        else:
            COMMANDS[arguments.command](SafeConsole())
    except BerthError as error:
        SafeConsole(stderr=True).print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        SafeConsole(stderr=True).print("Interrupted. `make status` shows what is running.")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
