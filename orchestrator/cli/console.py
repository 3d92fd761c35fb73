"""`berth console`: pages for operators, served on this machine with the operator's own credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import render
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.cli.invocation import Invocation

if TYPE_CHECKING:
    from orchestrator.console.visit import Place

EXAMPLES = """\
[bold]Examples[/]
  berth console                        open the console in a browser
  berth console --read-only            look, but change nothing
  berth console --no-open --port 8100  print the address, on this port
  berth console --profile prod         with an AWS CLI profile
"""
MISSING = "The console is not installed. Install it: pip install 'berth[console]'"


def console(
    context: typer.Context,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Show no buttons, and refuse everything that changes something.")
    ] = False,
    port: Annotated[int, typer.Option(metavar="PORT", min=0, max=65535, help="The port. Default: a free one.")] = 0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Print the address instead of opening a browser.")] = False,
) -> None:
    """Open the console: pages about tenants, rollouts and health in your browser.

    It runs until Ctrl-C, on 127.0.0.1 only, and does what you do with your own AWS credentials.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=False):
        # The console's packages are an extra, and take long to load, so only this command loads them.
        try:
            from orchestrator.console.server import serve
            from orchestrator.console.visit import Console
        except ModuleNotFoundError as error:
            raise ControlPlaneNotFound(f"{MISSING} ({error})") from None
        control_plane = here.find()
        served = Console(control_plane, place_of(control_plane, here.options.profile), read_only, here.world.now)
        serve(served, port=port, browser=not no_open, say=render.note)


def place_of(control_plane: ControlPlane, profile: str | None = None) -> Place:
    """Where the console acts, and as whom. ``profile`` is the AWS CLI profile that was named."""
    from orchestrator.console.visit import Place

    stack = control_plane.stack
    renew = f"aws sso login{f' --profile {profile}' if profile else ''}" if stack.account else "make up"
    return Place(stack.name, stack.where, stack.account, control_plane.caller(), stack.version, renew)
