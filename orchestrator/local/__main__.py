"""The local control plane: ``python -m orchestrator.local up|down|status|env|reset|demo|tour``."""

import argparse
import os
import re
import shlex
import sys
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from orchestrator.cli.control_plane import STACK_VARIABLE
from orchestrator.cli.escaping import SafeConsole
from orchestrator.common.errors import BerthError
from orchestrator.local.access_key import GET_IT
from orchestrator.local.console import Steps
from orchestrator.local.deployment import deploy, forget, is_deployed, outputs
from orchestrator.local.emulator import Emulator
from orchestrator.local.errors import LocalError
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
            "[yellow]The emulator had crashed, or this machine had: what happened since it was last "
            f"stopped is lost.[/] Its log: {_shown(emulator.log)}"
        )
    with Steps.on(console) as steps:
        steps("Starting the emulator")
        emulator.start()
        deploy(emulator, steps, **context)
    name = context.get("name", DEFAULT_NAME)
    option = "" if name == DEFAULT_NAME else f" --stack {name}"
    console.print(
        f"\n{name} is up at [bold]{emulator.endpoint}[/]. Try:\n\n"
        f"  .venv/bin/berth get-queue acme --wait{option}   ask for a tenant's queue\n"
        "  make down                               stop it, keeping its state\n\n"
        f"For other tools (it takes only requests that are signed with its key):\n\n  {GET_IT}\n",
        highlight=False,
    )


def down(console: Console) -> None:
    """stop the control plane, keeping its state"""
    emulator = Emulator.running()
    if emulator is None:
        console.print("Nothing is running.")
        return
    with Steps.on(console) as steps:
        steps("Stopping the emulator")
        stopped = emulator.stop()
    if stopped is None:
        return
    for stack in stopped.interrupted:
        console.print(f"[yellow]Stack {stack} was being changed, and will never finish.[/]")
    if not stopped.state_kept:
        raise LocalError(f"It could not keep what happened since it was started. Its log: {_shown(emulator.log)}")
    console.print("Its state is kept: `make up` continues, `make reset` forgets.")


def status(console: Console) -> None:
    """say whether the control plane is up, and where"""
    emulator = Emulator.running()
    if emulator is None:
        crashed = "It had crashed. " if _chosen().has_crashed() else ""
        console.print(f"{crashed}Nothing is running: `make up` starts it.")
    elif not emulator.is_up():
        console.print(f"The emulator runs but does not answer at {emulator.endpoint}.", highlight=False)
    else:
        name = _name()
        deployed = "up" if is_deployed(emulator, name) else "up, but not deployed (`make up` does)"
        console.print(f"{name} is {deployed}, at {emulator.endpoint}.", highlight=False)
        console.print(f"For other tools: {GET_IT}", highlight=False, soft_wrap=True)


def env(console: Console) -> None:
    """print, for a shell to evaluate, the environment in which other tools talk to the control plane"""
    emulator = Emulator.running()
    if emulator is None:
        raise LocalError("Nothing is running. Start it: make up")
    variables = emulator.client_environment()
    if "ApiUrl" in (deployed := outputs(emulator, _name())):
        variables["BERTH_API_URL"] = emulator.api_url(deployed["ApiUrl"])
    for name in sorted(name for name in os.environ if name.startswith("AWS_") and name not in variables):
        console.out(f"unset {name}", highlight=False)
    for name, value in variables.items():
        console.out(f"export {name}={shlex.quote(value)}", highlight=False)


def reset(console: Console) -> None:
    """stop the control plane and forget its state"""
    emulator = Emulator.running() or _chosen()
    with Steps.on(console) as steps:
        steps("Forgetting everything")
        emulator.stop()
        emulator.forget_state()
        forget(emulator)


def demo(console: Console) -> None:
    """deploy, provision a tenant, use its queue, move a small fleet to a release, stop"""
    from orchestrator.local.demo import main as run_demo

    run_demo(console)


def tour(console: Console) -> None:
    """the same with everything that Berth does; BERTH_PICTURE names a file to draw it into, as SVG"""
    from orchestrator.local.tour import main as run_tour

    picture = os.environ.get("BERTH_PICTURE")
    if picture:
        console = SafeConsole(record=True, width=PICTURE_WIDTH)
    run_tour(console)
    if picture:
        drawn = console.export_svg(title="make tour")
        # Without the fonts that it would have a reader load from another site.
        Path(picture).write_text(_FONT_FACE.sub("", drawn))


COMMANDS = {command.__name__: command for command in (down, status, env, reset, demo, tour)}


def _chosen() -> Emulator:
    """On the port that was asked for; else the one that runs, or would run."""
    port = os.environ.get("BERTH_LOCAL_PORT")
    if not port:
        return Emulator.running() or Emulator()
    if not (port.isdecimal() and 0 < int(port) < 65536):
        raise LocalError(f"BERTH_LOCAL_PORT must be a port number, not {port!r}.")
    return Emulator(port=int(port))


def _name() -> str:
    """The control plane that `berth` talks to."""
    return os.environ.get(STACK_VARIABLE) or DEFAULT_NAME


def _setting(text: str) -> tuple[str, str]:
    """As the CDK takes it: ``berth:name=Berth-dev``."""
    name, _, value = text.partition("=")
    if not (name.startswith(_SETTINGS) and value):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form {_SETTINGS}SETTING=VALUE")
    return name.removeprefix(_SETTINGS), value


def _shown(path: Path) -> str:
    return os.path.relpath(path)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m orchestrator.local", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    starting = commands.add_parser(up.__name__, help=up.__doc__)
    starting.add_argument(
        "-c",
        "--context",
        type=_setting,
        action="append",
        default=[],
        metavar=f"{_SETTINGS}SETTING=VALUE",
        help="a setting other than the local one, as cdk takes it; berth:name deploys another control plane beside it",
    )
    for name, command in COMMANDS.items():
        commands.add_parser(name, help=command.__doc__)
    given = parser.parse_args()
    try:
        if given.command == up.__name__:
            up(SafeConsole(), dict(given.context))
        else:
            COMMANDS[given.command](SafeConsole())
    except BerthError as error:
        SafeConsole(stderr=True).print(f"[red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        SafeConsole(stderr=True).print("Interrupted. `make status` tells what is running.")
        return INTERRUPTED
    return 0


if __name__ == "__main__":
    sys.exit(main())
