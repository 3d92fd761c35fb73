"""`berth`: its global options. :mod:`orchestrator.cli.commands` has the commands."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice, pairwise
from typing import Annotated, Any

import typer
from typer.core import TyperGroup, TyperOption

from orchestrator.cli import render
from orchestrator.cli.commands import LoadedWhenNamed
from orchestrator.cli.control_plane import STACK_VARIABLE, Options
from orchestrator.cli.errors import ExitCode, error_document
from orchestrator.cli.invocation import Invocation, World
from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.tenants.names import DEFAULT_NAME

_EXAMPLES = """\
[bold]Examples[/]
  berth status                        show where you are, and what waits
  berth create acme --wait            create acme, and wait for its queue
  berth create acme --version 1.0.0   create acme, pinned to a release
  berth get-queue acme --json         what getQueue answers for acme
  berth upgrade acme --wait           move acme to the current release
  berth move acme --tier gold         move acme to another tier
  berth pin acme 1.0.0                keep acme at 1.0.0 until it is unpinned
  berth label acme plan=gold trial-   set the label plan, remove trial
  berth retry acme                    repeat the operation that failed
  berth retry --state UPDATE_FAILED   repeat it for every such tenant
  berth delete acme --drain 600       delete acme once its queue is empty
  berth tenant acme                   show the state and the history of acme
  berth tenants --state UPDATE_FAILED   list these tenants, and what failed
  berth tenants --label plan=gold     list the tenants with a label
  berth releases --profile prod       list releases, with an AWS CLI profile
  berth release diff 1.0.0 1.1.0      show what changes in a tenant's stack
  berth release withdraw 1.1.0        take a bad release out
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
  berth console                       the same in a browser, on this machine
  berth doctor                        check the health of the control plane
  berth verify                        test a new deployment with one tenant
  berth reconcile --dry-run           compare the records with the stacks
  berth adopt --dry-run               list tenants from before Berth
  berth api GET /tenants              send any request to the API
  berth openapi                       print the API's OpenAPI document
  berth --install-completion          complete commands, ids and versions
"""
_PARAMETERS = "berth.parameters"
"""The key, in the context, of the parameters of the command that was named."""
_AS_JSON = "berth.json"
"""The key, in the context, of whether the command prints JSON."""
_EXIT_CODES = "\n".join(["[bold]Exit codes[/]", *(f"{code.value:>5}  {code.meaning}" for code in ExitCode)])


class GlobalOptionsAnywhere(TyperGroup):
    """Accepts the global options after the command, too, because people write them there."""

    # Any: the types of commands and contexts are private to typer.
    def __init__(self, *, commands: Any, **named: Any) -> None:
        commands = LoadedWhenNamed()
        super().__init__(commands=commands, **named)

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 (the library's signature)
        return list(self.commands)

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
        command = _command_of(self, rest)
        for option in (*command.params, command.get_help_option(ctx)):
            if isinstance(option, TyperOption) and option.is_flag:
                option.metavar = ""  # Otherwise the help shows <bool>, and people look for the value to type.
            elif not isinstance(option, TyperOption):
                option.display_type_rich = _no_type
                if option.required:
                    # Otherwise the usage shows {TENANT}, and people type the braces.
                    option.get_usage_pieces = _usage_of(option)
        ctx.meta[_PARAMETERS] = command.params
        ctx.meta[_AS_JSON] = _asks_for_json(rest)
        return super().parse_args(ctx, global_options + rest)

    def make_context(self, info_name: str | None, args: list[str], *more: Any, **named: Any) -> Any:
        with _usage_errors_as_json(_asks_for_json(args)):
            return super().make_context(info_name, args, *more, **named)

    def invoke(self, ctx: Any) -> Any:
        with _usage_errors_as_json(ctx.meta.get(_AS_JSON, False)):
            return super().invoke(ctx)


# Any: the types of contexts and arguments are private to typer.
def _no_type(**_named: Any) -> None:
    """Arguments are texts, which the help would call <str>, or <list[str]>, beside their names."""


def _usage_of(argument: Any) -> Callable[[Any], list[str]]:
    name = str(argument.metavar or argument.name).removesuffix("...") + ("" if argument.nargs == 1 else "...")
    return lambda _context: [name]


def _asks_for_json(arguments: list[str]) -> bool:
    """True if the command prints JSON, as far as that can be seen in arguments that may be wrong."""
    given = [argument.lower() for argument in arguments[: arguments.index("--") if "--" in arguments else None]]
    pairs = set(pairwise(given))
    return (
        "--json" in given
        or given[:1] == ["api"]
        or bool({"--output=json", "-ojson"} & set(given))
        or bool({("-o", "json"), ("--output", "json")} & pairs)
    )


@contextmanager
def _usage_errors_as_json(as_json: bool) -> Iterator[None]:
    """Print a usage error as the same document that other errors have. The library then prints it for people."""
    try:
        yield
    except Exception as error:
        # The types of the library's errors are private, except for BadParameter.
        message = getattr(error, "format_message", None)
        if as_json and message is not None:
            render.show_json(error_document(ExitCode.BAD_USAGE, " ".join(message().split())))
        raise


# Any: the type of a command is private to typer.
def _command_of(group: Any, arguments: list[str]) -> Any:
    """The command that the arguments name, without global options; or the group that they stop at."""
    for argument in arguments:
        if argument not in getattr(group, "commands", {}):
            break
        group = group.commands[argument]
    return group


def _is_text(argument: str) -> bool:
    """False for bytes that are not UTF-8: Python passes them as lone surrogates, which cannot be sent."""
    return not any("\ud800" <= character <= "\udfff" for character in argument)


app = typer.Typer(
    name="berth",
    cls=GlobalOptionsAnywhere,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog=f"{_EXAMPLES}\n{_EXIT_CODES}",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"berth {berth_version()}, tenant template {template_version()}")
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

    berth uses the local control plane if it is running. It uses AWS if
    --region, --profile, AWS_PROFILE or AWS_ACCESS_KEY_ID is given, or if there is
    no local control plane on this machine, neither running nor stopped.
    All options below except --version may also follow the command.
    """
    if local and (region or profile):
        raise typer.BadParameter("cannot be combined with --region or --profile.", param_hint="'--local'")
    options = Options(local=local, stack=stack, region=region, profile=profile)
    parameters = context.meta.get(_PARAMETERS, ())
    context.obj = Invocation(options, debug, context.obj or World(), parameters=parameters)
