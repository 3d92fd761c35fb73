"""`berth`: its commands and options, and what becomes of errors."""

from __future__ import annotations

import sys
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import metadata
from itertools import islice
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from orchestrator.cli import render
from orchestrator.cli.control_plane import DEFAULT_STACK, ControlPlane, Options, connect
from orchestrator.cli.errors import ExitCode, explain
from orchestrator.cli.get_queue import ask, show
from orchestrator.cli.tenants import ListedState, show_tenant, show_tenants
from orchestrator.tenants import TenantId

_EXAMPLES = """\
[bold]Examples[/]
  berth get-queue acme --wait    the queue of acme, provisioned if need be
  berth get-queue acme --json    the answer as a platform gets it
  berth tenant acme              all that is recorded about acme
  berth tenants --state FAILED   whose provisioning failed, and why
  berth tenants --profile prod   the tenants of a control plane on AWS
"""
_STATES = ", ".join(ListedState)
_EXIT_CODES = "\n".join(["[bold]Exit codes[/]", *(f"{code.value:>5}  {code.meaning}" for code in ExitCode)])


class GlobalOptionsAnywhere(TyperGroup):
    """Takes the global options also after the command, where people write them."""

    # Any: the type of a context is private to typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        takes_value = {
            name: not option.is_flag
            for option in self.params
            # --version is eager, and means something else after a command.
            if isinstance(option, TyperOption) and not option.is_eager
            for name in option.opts
        }
        ours: list[str] = []
        rest: list[str] = []
        remaining = iter(args)
        for arg in remaining:
            if arg == "--":
                rest += [arg, *remaining]
            elif takes_value.get(arg):
                ours += [arg, *islice(remaining, 1)]
            else:
                (ours if arg.partition("=")[0] in takes_value else rest).append(arg)
        return super().parse_args(ctx, ours + rest)


app = typer.Typer(
    name="berth",
    cls=GlobalOptionsAnywhere,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=f"{_EXAMPLES}\n{_EXIT_CODES}",
)


@dataclass(frozen=True, slots=True)
class World:
    """What commands reach outside themselves. Tests bring their own, as the context's object."""

    connect: Callable[[Options], ControlPlane] = connect
    monotonic: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class Invocation:
    """What the global options say, for the command that follows."""

    options: Options
    debug: bool
    world: World = field(default_factory=World)

    def connect(self) -> ControlPlane:
        return self.world.connect(self.options)

    @contextmanager
    def telling_errors(self, *, as_json: bool) -> Iterator[None]:
        """Whatever goes wrong is one line on stderr and an exit code; with ``--json`` also a document on stdout."""
        try:
            yield
        except BrokenPipeError:
            raise  # Nobody is reading any more; typer ends quietly.
        except Exception as error:
            if self.debug:
                traceback.print_exception(error, file=sys.stderr)
            failure = explain(error)
            if as_json:
                render.show_json(failure.document)
            render.complain(failure.line)
            raise typer.Exit(failure.code) from error


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"berth {metadata.version('berth')}")
        raise typer.Exit


@app.callback()
def berth(
    context: typer.Context,
    local: Annotated[bool, typer.Option("--local", help="Use the local control plane (make up).")] = False,
    stack: Annotated[
        str, typer.Option(metavar="NAME", help="The control plane's CloudFormation stack.")
    ] = DEFAULT_STACK,
    region: Annotated[str | None, typer.Option(metavar="REGION", help="The control plane's AWS region.")] = None,
    profile: Annotated[str | None, typer.Option(metavar="PROFILE", help="A profile of the AWS CLI.")] = None,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Gives every tenant of a platform its own inbound queue.

    The local control plane is used when it is up; AWS when it is not, or when
    --region, --profile, AWS_PROFILE or AWS_ACCESS_KEY_ID is given.
    The options below may also follow the command.
    """
    if local and (region or profile):
        raise typer.BadParameter("it goes with neither --region nor --profile.", param_hint="'--local'")
    options = Options(local=local, stack=stack, region=region, profile=profile)
    context.obj = Invocation(options, debug, context.obj or World())


Tenant = Annotated[str, typer.Argument(metavar="TENANT", help="The tenant's id.", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@app.command("get-queue")
def get_queue(
    context: typer.Context,
    tenant: Tenant,
    wait: Annotated[bool, typer.Option("--wait", help="Wait until the queue is ready.")] = False,
    timeout: Annotated[int, typer.Option(metavar="SECONDS", min=1, help="How long to wait.")] = 900,
    as_json: Json = False,
) -> None:
    """Ask for a tenant's queue, which provisions it when there is none."""
    here: Invocation = context.obj
    world = here.world
    with here.telling_errors(as_json=as_json):
        tenant_id = TenantId.parse(tenant)
        began = world.monotonic()
        answer = ask(
            tenant_id,
            here.connect().queue_api,
            timeout=timeout if wait else 0,
            monotonic=world.monotonic,
            sleep=world.sleep,
        )
        code = show(tenant_id, answer, as_json=as_json, waited=world.monotonic() - began if wait else None)
    raise typer.Exit(code)


@app.command("tenant")
def tenant(context: typer.Context, tenant: Tenant, as_json: Json = False) -> None:
    """Show what is recorded about one tenant."""
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        show_tenant(TenantId.parse(tenant), here.connect().table, as_json=as_json)


@app.command("tenants")
def tenants(
    context: typer.Context,
    state: Annotated[
        ListedState | None,
        typer.Option(case_sensitive=False, metavar="STATE", help=f"Only tenants in this state: {_STATES}."),
    ] = None,
    version: Annotated[str | None, typer.Option(metavar="VERSION", help="Only tenants at this version.")] = None,
    as_json: Json = False,
) -> None:
    """List the tenants."""
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        show_tenants(here.connect().table, state=state, version=version, as_json=as_json)


def main() -> None:
    app(prog_name="berth")


if __name__ == "__main__":
    main()
