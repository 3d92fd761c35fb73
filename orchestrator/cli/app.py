"""`berth`: its commands and global options."""

from __future__ import annotations

from importlib import metadata
from itertools import islice
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from orchestrator.cli import (
    adopt,
    connections,
    deliveries,
    events,
    forms,
    inbox,
    keys,
    listen,
    reconcile,
    replay,
    rollout,
    sources,
)
from orchestrator.cli.control_plane import STACK_VARIABLE, Options
from orchestrator.cli.doctor import doctor
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.get_queue import get_queue
from orchestrator.cli.invocation import Invocation, World
from orchestrator.cli.orders import create, delete, pin, retry, unpin, upgrade
from orchestrator.cli.releases import releases
from orchestrator.cli.tenant import tenant
from orchestrator.cli.tenants import tenants
from orchestrator.cli.verify import verify
from orchestrator.tenants.names import DEFAULT_NAME

_EXAMPLES = """\
[bold]Examples[/]
  berth create acme --wait            create acme, and wait for its queue
  berth create acme --version 0.1.0   create acme, pinned to a release
  berth get-queue acme --json         what getQueue answers for acme
  berth upgrade acme --wait           move acme to the current release
  berth pin acme 0.1.0                keep acme at 0.1.0 until it is unpinned
  berth retry acme                    repeat the operation that failed
  berth delete acme --drain 600       delete acme once its queue is empty
  berth tenant acme                   show the state and the history of acme
  berth tenants --state FAILED        list the tenants that failed, and why
  berth releases --profile prod       list releases, with an AWS CLI profile
  berth tenants --stack Berth-dev     list the tenants of another deployment
  berth rollout plan                  show what moving all tenants would do
  berth rollout start                 move all tenants to the current release
  berth events settings acme --plan free   accept events for acme
  berth keys create acme --name Shop --scope write   an API key, shown once
  berth events list acme --since 2h   list the events of acme
  berth inbox acme                    read what acme has not acknowledged
  berth attempts acme EVENT_ID        show where an event went, and every try
  berth resend acme EVENT_ID          send an event again that failed
  berth listen acme                   show events of acme as they come in
  berth doctor                        check the health of the control plane
  berth verify                        test a new deployment with one tenant
  berth reconcile --dry-run           compare the records with the stacks
  berth adopt --dry-run               list tenants from before Berth
"""
_EXIT_CODES = "\n".join(["[bold]Exit codes[/]", *(f"{code.value:>5}  {code.meaning}" for code in ExitCode)])


class GlobalOptionsAnywhere(TyperGroup):
    """Accepts the global options after the command, too, because people write them there."""

    # Any: the type of a context is private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        for arg in args:
            if not _is_text(arg):
                raise typer.BadParameter(f"{arg!a} is not UTF-8.")
        takes_value = {
            name: not option.is_flag
            for option in self.params
            # --version is eager, and after a command it is that command's own option.
            if isinstance(option, TyperOption) and not option.is_eager
            for name in option.opts
        }
        global_options: list[str] = []
        rest: list[str] = []
        remaining = iter(args)
        for arg in remaining:
            if arg == "--":
                rest += [arg, *remaining]
            elif takes_value.get(arg):
                global_options += [arg, *islice(remaining, 1)]
            else:
                (global_options if arg.partition("=")[0] in takes_value else rest).append(arg)
        return super().parse_args(ctx, global_options + rest)


def _is_text(argument: str) -> bool:
    """False for bytes that are not UTF-8: Python passes them as lone surrogates, which cannot be sent."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


app = typer.Typer(
    name="berth",
    cls=GlobalOptionsAnywhere,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=f"{_EXAMPLES}\n{_EXIT_CODES}",
)
for command in (create, get_queue, upgrade, pin, unpin, retry, delete, tenant, tenants, releases):
    app.command()(command)
app.add_typer(rollout.app, name="rollout")
_EVENTS = "Events of tenants"
for name, group in (
    ("events", events.app),
    ("inbox", inbox.app),
    ("keys", keys.app),
    ("sources", sources.app),
    ("forms", forms.app),
    ("connections", connections.app),
):
    app.add_typer(group, name=name, rich_help_panel=_EVENTS)
app.command(rich_help_panel=_EVENTS, epilog=deliveries.DELIVERIES_EXAMPLES)(deliveries.deliveries)
app.command(rich_help_panel=_EVENTS, epilog=deliveries.ATTEMPTS_EXAMPLES)(deliveries.attempts)
app.command(rich_help_panel=_EVENTS, epilog=deliveries.RESEND_EXAMPLES)(deliveries.resend)
app.add_typer(replay.app, name="replay", rich_help_panel=_EVENTS)
app.command(rich_help_panel=_EVENTS, epilog=listen.EXAMPLES)(listen.listen)
_TROUBLESHOOTING = "Troubleshooting"
app.command(rich_help_panel=_TROUBLESHOOTING)(doctor)
app.command(rich_help_panel="After a deployment")(verify)
app.command(rich_help_panel=_TROUBLESHOOTING, epilog=reconcile.HELP)(reconcile.reconcile)
app.command(rich_help_panel="Migrating an existing fleet", epilog=adopt.HELP)(adopt.adopt)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"berth {metadata.version('berth')}")
        raise typer.Exit


@app.callback()
def berth(
    context: typer.Context,
    local: Annotated[bool, typer.Option("--local", help="Use the local control plane (make up).")] = False,
    stack: Annotated[
        str,
        typer.Option(metavar="NAME", envvar=STACK_VARIABLE, help="The control plane's name, if there are several."),
    ] = DEFAULT_NAME,
    region: Annotated[str | None, typer.Option(metavar="REGION", help="The control plane's AWS region.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="PROFILE", help="The AWS CLI profile to use.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Gives every tenant of a platform its own inbound queue.

    berth uses the local control plane if it is running. It uses AWS if not, or if
    --region, --profile, AWS_PROFILE or AWS_ACCESS_KEY_ID is given.
    All options below except --version may also follow the command.
    """
    if local and (region or profile):
        raise typer.BadParameter("cannot be combined with --region or --profile.", param_hint="'--local'")
    options = Options(local=local, stack=stack, region=region, profile=profile)
    context.obj = Invocation(options, debug, context.obj or World())
