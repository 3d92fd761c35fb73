"""`berth release`: checks, publishes, promotes, withdraws and reinstates a release, and compares two."""

from __future__ import annotations

import re
from functools import partial
from typing import Annotated

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.release_models import OrderRelease, ReleaseOrdered
from orchestrator.api.release_routes import PROMOTE_RELEASE, REINSTATE_RELEASE, WITHDRAW_RELEASE
from orchestrator.api.route import Route
from orchestrator.cli import completing, render
from orchestrator.cli.api import Document
from orchestrator.cli.invocation import Invocation, Json, Reason, Yes
from orchestrator.cli.problems import problem
from orchestrator.cli.release_diff import diff
from orchestrator.cli.release_publishing import check, publish
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN

_DONE = 200
_MAX_SHOWN = 10
"""The maximum number of tenants that are listed on the screen; --json lists more."""
_EXAMPLES = """\
[bold]Examples[/]
  berth release check template.json
  berth release publish template.json --version 2.1.0
  berth release withdraw 1.1.0 --reason "queues lose messages"
  berth release reinstate 1.1.0       take the withdrawal back
  berth release promote 1.1.0         let new tenants get 1.1.0
  berth release diff 1.0.0 1.1.0      show what changes in a tenant's stack
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_EXAMPLES)

Version = Annotated[
    str,
    typer.Argument(metavar="VERSION", help="The release.", show_default=False, autocompletion=completing.versions),
]


@app.callback()
def release() -> None:
    """Publish, promote, withdraw and compare releases. To list them, see berth releases."""


app.command()(check)
app.command()(publish)
app.command()(diff)


@app.command()
def promote(context: typer.Context, version: Version, reason: Reason = None, as_json: Json = False) -> None:
    """Make a release current: new tenants get it.

    No tenant is moved: see berth rollout. This lasts until another release is
    promoted. Unless berth:promotion is afterRollout, a release of Berth's own is
    current only until another version is deployed, and one of another tier than
    standard until another one is published there.
    """
    _order(context, PROMOTE_RELEASE, version, reason, as_json=as_json)


@app.command()
def withdraw(
    context: typer.Context,
    version: Version,
    reason: Reason = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """Take a bad release out: no create, upgrade, retry or rollout chooses it any more.

    If it was current, the newest earlier release is. Rollouts to it halt. Tenants
    that are at it stay there, are served, and are listed.
    """
    _order(context, WITHDRAW_RELEASE, version, reason, as_json=as_json, confirmed=yes)


@app.command()
def reinstate(context: typer.Context, version: Version, reason: Reason = None, as_json: Json = False) -> None:
    """Take the withdrawal of a release back.

    It is current again if it would be without its withdrawal.
    """
    _order(context, REINSTATE_RELEASE, version, reason, as_json=as_json)


def _order(
    context: typer.Context,
    route: Route[OrderRelease, ReleaseOrdered],
    version: str,
    reason: str | None,
    *,
    as_json: bool,
    confirmed: bool = False,
) -> None:
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        if not re.fullmatch(VERSION_PATTERN, version):
            raise InvalidRequest(f"{version!a} is not a version like 1.2.3.")
        request = OrderRelease(version=version, reason=or_unset(reason))
        if not confirmed and (warning := route.warning(request)):
            here.confirm(warning)
        api = here.connect()
        with here.retrying() as retrying:
            answer = retrying(partial(api.send_request, route, request))
        if answer.status != _DONE:
            raise problem(answer)
        if as_json:
            render.show_json(answer.body)
        else:
            _show(answer.body)


def _show(ordered: Document) -> None:
    render.show_line(ordered["detail"])
    for rollout in ordered["rollouts"]:
        render.show_line(f"Rollout {rollout} halts: berth rollout status {rollout}")
    tenants, version = ordered["tenants"], ordered["version"]
    if not tenants:
        return
    more = len(tenants) > _MAX_SHOWN or ordered["hasMoreTenants"]
    named = ", ".join(tenants[:_MAX_SHOWN]) + (" and more" if more else "")
    render.show_line(f"Tenants at {version}, which are served as before: {named}")
    render.note(f"List them: berth tenants --version {version}")
    render.note(f"Move them back: berth rollout start --to {ordered['current']} --allow-downgrade")
