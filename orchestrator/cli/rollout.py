"""`berth rollout`: start, watch and control rollouts."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_requests import OrderRollout
from orchestrator.api.rollout_routes import RETRY_ROLLOUT, START_ROLLOUT
from orchestrator.cli import completing, render, rollout_spec
from orchestrator.cli.invocation import NOT_ASKED, Invocation, Json, Reason, Yes
from orchestrator.cli.rollout_adjusting import approve, change, promote
from orchestrator.cli.rollout_finding import (
    RolloutToChange,
    details,
    listed,
    named_or_failed,
    named_or_newest,
    with_undone,
)
from orchestrator.cli.rollout_ordering import (
    compared,
    is_withdrawn,
    send_order,
    send_start,
    should_watch,
    show_started_and_watch,
    watch_until_end,
)
from orchestrator.cli.rollout_spec import StageOptions, UndoWithoutId, body_of, rollout_id
from orchestrator.cli.rollout_view import show_list, show_status

SAMPLE = 20
"""The default number of tenants that a plan checks. Most tenants have the same changes, so a few are enough."""

_OVERVIEW = """\
[bold]From start to end[/]
  berth rollout plan                   show what would change; change nothing
  berth rollout start                  move all tenants to the current release
  berth rollout watch                  watch the progress
  berth rollout pause                  pause it, until berth rollout resume
  berth rollout change --concurrency 9 change its pace
  berth rollout promote                do not wait for the end of a bake
  berth rollout status                 show what failed, and what to do next
  berth rollout retry                  retry only the tenants that failed
  berth rollout start --undo ROLLOUT   move its tenants back
  berth rollout abort                  end it for good, also one that halted

More examples: berth rollout start --help
"""
_EXAMPLES = """\
[bold]Examples[/]
  berth rollout {command} --to 1.1.0 --label plan=free --share 25%
  berth rollout {command} --stages 1,5%,25%,rest --bake 900 --alarm errors
  berth rollout {command} --approval --concurrency 10 --tolerate 2
  berth rollout {command} --tenants-from tenants.txt
  berth rollout {command} --undo 20261231-235959-0a1b

[bold]A file of stages[/]
  [{{"size": "1", "bakeSeconds": 3600, "alarm": "errors"}},
   {{"size": "10%", "maxConcurrency": 5, "tolerated": "2"}},
   {{"size": "rest", "tolerated": "5%", "approval": true}}]
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_OVERVIEW)

Rollout = Annotated[
    str | None,
    typer.Argument(
        metavar="ROLLOUT",
        help="The rollout's id. Default: the newest rollout.",
        show_default=False,
        autocompletion=completing.rollout_ids,
    ),
]
Watch = Annotated[
    bool | None,
    typer.Option(
        "--watch/--no-watch", help="Watch the rollout until it ends. Default: only on a terminal.", show_default=False
    ),
]


@app.callback()
def rollout() -> None:
    """Move the fleet to a release, in stages.

    By default it moves one tenant first, then a tenth of them, then the rest.
    Each stage bakes before the next one begins, so that problems can show.
    It halts if too many tenants of a stage fail, or if an alarm goes off.
    It runs in the control plane: closing the terminal does not stop it.
    """


@app.command(cls=UndoWithoutId, epilog=_EXAMPLES.format(command="plan"))
def plan(
    context: typer.Context,
    to: rollout_spec.To = None,
    tier: rollout_spec.Tier = None,
    tenant: rollout_spec.Tenants = None,
    tenants_from: rollout_spec.TenantsFrom = None,
    label: rollout_spec.Labels = None,
    share: rollout_spec.Share = None,
    undo: rollout_spec.Undo = None,
    stages: rollout_spec.Stages = None,
    concurrency: rollout_spec.Concurrency = None,
    tolerate: rollout_spec.Tolerate = None,
    bake: rollout_spec.Bake = None,
    alarm: rollout_spec.Alarm = None,
    approval: rollout_spec.Approval = False,
    approval_last: rollout_spec.ApprovalLast = False,
    stages_file: rollout_spec.StagesFile = None,
    allow_downgrade: rollout_spec.AllowDowngrade = False,
    allow_replacement: rollout_spec.AllowReplacement = False,
    reason: Reason = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help=f"How many tenants to check, like 50 or 10%. Default: {SAMPLE}."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Check all tenants, however long it takes.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")] = True,
    as_json: Json = False,
) -> None:
    """Show what a rollout would do, without doing it.

    For a sample of the tenants, CloudFormation shows what would change.
    The exit code is 4 if one of them would fail.
    """
    if every and sample is not None:
        raise typer.BadParameter("it cannot be combined with --all.", param_hint="'--sample'")
    body = body_of(
        to=to,
        tier=tier,
        tenants=tenant or (),
        tenants_from=tenants_from,
        labels=label or (),
        share=share,
        undo=undo,
        stages=StageOptions(stages, concurrency, tolerate, bake, alarm, approval, approval_last, stages_file),
        allow_downgrade=allow_downgrade,
        allow_replacement=allow_replacement,
        reason=reason,
        sample=None if every else sample or str(SAMPLE),
        dry_run=True,
    )
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            body = with_undone(api, retrying, body, undo)
        answer = send_start(here, partial(api.send_request, START_ROLLOUT, body))
        code = show_started_and_watch(here, api, answer, watched=wait, as_json=as_json)
    raise typer.Exit(code)


@app.command(cls=UndoWithoutId, epilog=_EXAMPLES.format(command="start"))
def start(
    context: typer.Context,
    to: rollout_spec.To = None,
    tier: rollout_spec.Tier = None,
    tenant: rollout_spec.Tenants = None,
    tenants_from: rollout_spec.TenantsFrom = None,
    label: rollout_spec.Labels = None,
    share: rollout_spec.Share = None,
    undo: rollout_spec.Undo = None,
    stages: rollout_spec.Stages = None,
    concurrency: rollout_spec.Concurrency = None,
    tolerate: rollout_spec.Tolerate = None,
    bake: rollout_spec.Bake = None,
    alarm: rollout_spec.Alarm = None,
    approval: rollout_spec.Approval = False,
    approval_last: rollout_spec.ApprovalLast = False,
    stages_file: rollout_spec.StagesFile = None,
    allow_downgrade: rollout_spec.AllowDowngrade = False,
    allow_replacement: rollout_spec.AllowReplacement = False,
    reason: Reason = None,
    watch: Watch = None,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask to confirm --allow-replacement. {NOT_ASKED}")] = False,
    as_json: Json = False,
) -> None:
    """Start a rollout.

    By default it moves all tenants that are not at the release, except those that
    are pinned to another one. It starts at once. To see what it would do, run
    berth rollout plan with the same options first.
    """
    body = body_of(
        to=to,
        tier=tier,
        tenants=tenant or (),
        tenants_from=tenants_from,
        labels=label or (),
        share=share,
        undo=undo,
        stages=StageOptions(stages, concurrency, tolerate, bake, alarm, approval, approval_last, stages_file),
        allow_downgrade=allow_downgrade,
        allow_replacement=allow_replacement,
        reason=reason,
    )
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        if not yes and (warning := START_ROLLOUT.warning(body)):
            here.confirm(f"{warning} To see which first: berth rollout plan, with the same options.")
        api = here.connect()
        with here.retrying() as retrying:
            body = with_undone(api, retrying, body, undo)
        answer = send_start(here, partial(api.send_request, START_ROLLOUT, body))
        code = show_started_and_watch(here, api, answer, watched=should_watch(here, watch), as_json=as_json)
    raise typer.Exit(code)


@app.command()
def status(context: typer.Context, rollout: Rollout = None, as_json: Json = False) -> None:
    """Show a rollout's progress, what failed, and what to do next."""
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            found = details(api, retrying, named_or_newest(api, retrying, given))
        if as_json:
            render.show_json(found)
        else:
            show_status(found, compared(here, api, found), withdrawn=is_withdrawn(here, api, found))


@app.command()
def watch(context: typer.Context, rollout: Rollout = None, as_json: Json = False) -> None:
    """Watch a rollout until it ends.

    Ctrl-C stops watching, not the rollout.
    The exit code is 0 if it succeeded, 4 if it did not, and 3 if it waits for an
    operator and there is no terminal.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_newest(api, retrying, given)
        code = watch_until_end(here, api, name, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def pause(
    context: typer.Context, rollout: RolloutToChange = None, reason: Reason = None, as_json: Json = False
) -> None:
    """Pause a rollout.

    No further tenant is started. Updates that are running are finished.
    """
    send_order(context, rollout, "pause", reason, as_json=as_json)


@app.command()
def resume(
    context: typer.Context, rollout: RolloutToChange = None, reason: Reason = None, as_json: Json = False
) -> None:
    """Resume a rollout.

    After a pause, after it halted, or after its execution died. After it halted,
    the failures so far are accepted, and only later ones count.
    """
    send_order(context, rollout, "resume", reason, as_json=as_json)


@app.command()
def abort(
    context: typer.Context,
    rollout: RolloutToChange = None,
    reason: Reason = None,
    yes: Yes = False,
    as_json: Json = False,
) -> None:
    """End a rollout for good, or close one that has halted.

    Updates that are running are finished. Tenants that were not started keep
    their version. Tenants that were moved are not moved back: for that, see berth
    rollout start --undo.
    """
    send_order(context, rollout, "abort", reason, as_json=as_json, confirmed=yes)


app.command()(approve)
app.command()(promote)
app.command()(change)


@app.command()
def retry(
    context: typer.Context,
    rollout: RolloutToChange = None,
    reason: Reason = None,
    watch: Watch = None,
    as_json: Json = False,
) -> None:
    """Retry only the tenants that failed.

    This starts another rollout, with the same stages.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_failed(api, retrying, given)
        answer = send_start(
            here, partial(api.send_request, RETRY_ROLLOUT, OrderRollout(rollout_id=name, reason=or_unset(reason)))
        )
        code = show_started_and_watch(here, api, answer, watched=should_watch(here, watch), as_json=as_json)
    raise typer.Exit(code)


@app.command(name="list")
def list_rollouts(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="The maximum number to list.")] = 20,
    as_json: Json = False,
) -> None:
    """List the rollouts, newest first, including dry runs."""
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            found, cursor = listed(api, retrying, limit)
        if as_json:
            render.show_json({"rollouts": found, "cursor": cursor})
            return
        if found:
            show_list(found)
        else:
            render.show_line("There are no rollouts yet. Plan one: berth rollout plan")
        if cursor:
            render.note(f"There may be more. List more: --limit {limit * 5}")
