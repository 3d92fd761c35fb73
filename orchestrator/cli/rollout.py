"""`berth rollout`: moving the fleet to a release, and keeping an eye on it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from orchestrator.cli import render, rollout_wish
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ExitCode, NotConfirmed, NothingToApprove
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import NOT_ASKED, Invocation, Json, Reason
from orchestrator.cli.problems import problem
from orchestrator.cli.rollout_finding import details, listed, the_one_meant
from orchestrator.cli.rollout_next import exit_code, next_steps, stage_to_approve
from orchestrator.cli.rollout_view import (
    settled,
    show_ended,
    show_list,
    show_started,
    show_status,
    show_unchanged,
    stage_status,
)
from orchestrator.cli.rollout_watching import watch as watch_rollout
from orchestrator.cli.rollout_wish import StageOptions, body_of, rollout_id
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts.records import RolloutStatus

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

SAMPLE = 20
"""As many tenants as a plan looks at, unless told otherwise: enough to see what there is to be seen."""

_DONE = 200
_STARTED = 202

_FROM_BEGINNING_TO_END = """\
[bold]From beginning to end[/]
  berth rollout plan                   what would change? nothing is changed
  berth rollout start                  all tenants to the current release
  berth rollout watch                  how far is it?
  berth rollout pause                  hold it; berth rollout resume goes on
  berth rollout status                 what failed, and what can be done
  berth rollout retry                  only those that failed, once more
  berth rollout start --undo ROLLOUT   all of them back to where they were

More examples: berth rollout start --help
"""
_EXAMPLES = """\
[bold]Examples[/]
  berth rollout {command} --to 0.3.0 --label tier=free --share 25%
  berth rollout {command} --stages 1,5%,25%,rest --bake 900 --alarm errors
  berth rollout {command} --approval --concurrency 10 --tolerate 2
  berth rollout {command} --tenants-from tenants.txt
  berth rollout {command} --undo 20261231-235959-0a1b

[bold]A file of stages[/]
  [{{"size": "1", "bakeSeconds": 3600, "alarm": "errors"}},
   {{"size": "10%", "maxConcurrency": 5, "tolerated": "2"}},
   {{"size": "rest", "tolerated": "5%", "approval": true}}]
"""

app = typer.Typer(no_args_is_help=True, rich_markup_mode="rich", epilog=_FROM_BEGINNING_TO_END)

Rollout = Annotated[
    str | None,
    typer.Argument(metavar="ROLLOUT", help="Its id: of the newest unless told otherwise.", show_default=False),
]
RolloutButNoDryRun = Annotated[
    str | None,
    typer.Argument(
        metavar="ROLLOUT",
        help="Its id: of the newest that is no dry run unless told otherwise.",
        show_default=False,
    ),
]
Watch = Annotated[
    bool | None,
    typer.Option(
        "--watch/--no-watch", help="Watch it to its end: on a terminal unless told otherwise.", show_default=False
    ),
]


@app.callback()
def rollout() -> None:
    """Move the fleet to a release, in stages.

    First one tenant, then a tenth of them, then the rest, unless told otherwise.
    Between stages it waits, so that there is time to see how they do.
    It stops by itself when too many of a stage fail, or an alarm is on.
    It goes on by itself: closing the terminal does not stop it.
    """


@app.command(epilog=_EXAMPLES.format(command="plan"))
def plan(
    context: typer.Context,
    to: rollout_wish.To = None,
    tenant: rollout_wish.Tenants = None,
    tenants_from: rollout_wish.TenantsFrom = None,
    label: rollout_wish.Labels = None,
    share: rollout_wish.Share = None,
    undo: rollout_wish.Undo = None,
    stages: rollout_wish.Stages = None,
    concurrency: rollout_wish.Concurrency = None,
    tolerate: rollout_wish.Tolerate = None,
    bake: rollout_wish.Bake = None,
    alarm: rollout_wish.Alarm = None,
    approval: rollout_wish.Approval = False,
    stages_file: rollout_wish.StagesFile = None,
    allow_downgrade: rollout_wish.AllowDowngrade = False,
    allow_replacement: rollout_wish.AllowReplacement = False,
    reason: Reason = None,
    sample: Annotated[
        str | None,
        typer.Option(metavar="SHARE", help=f"How many tenants to look at: 50 or 10%; {SAMPLE} unless told otherwise."),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Look at all of them, however long it takes.")] = False,
    wait: Annotated[bool, typer.Option("--wait/--no-wait", help="Wait for the result.")] = True,
    as_json: Json = False,
) -> None:
    """Find out what a rollout would do, without doing it.

    Of a sample of the tenants CloudFormation is asked what would change.
    The exit code is 4 if one of them would fail.
    """
    if every and sample is not None:
        raise typer.BadParameter("it does not go with --all.", param_hint="'--sample'")
    body = body_of(
        to=to,
        tenants=tenant or (),
        tenants_from=tenants_from,
        labels=label or (),
        share=share,
        undo=undo,
        stages=StageOptions(stages, concurrency, tolerate, bake, alarm, approval, stages_file),
        allow_downgrade=allow_downgrade,
        allow_replacement=allow_replacement,
        reason=reason,
        sample=None if every else sample or str(SAMPLE),
        dry_run=True,
    )
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        answer = _begin(here, partial(api.start_rollout, body))
        code = _go_on(here, api, answer, watched=wait, as_json=as_json)
    raise typer.Exit(code)


@app.command(epilog=_EXAMPLES.format(command="start"))
def start(
    context: typer.Context,
    to: rollout_wish.To = None,
    tenant: rollout_wish.Tenants = None,
    tenants_from: rollout_wish.TenantsFrom = None,
    label: rollout_wish.Labels = None,
    share: rollout_wish.Share = None,
    undo: rollout_wish.Undo = None,
    stages: rollout_wish.Stages = None,
    concurrency: rollout_wish.Concurrency = None,
    tolerate: rollout_wish.Tolerate = None,
    bake: rollout_wish.Bake = None,
    alarm: rollout_wish.Alarm = None,
    approval: rollout_wish.Approval = False,
    stages_file: rollout_wish.StagesFile = None,
    allow_downgrade: rollout_wish.AllowDowngrade = False,
    allow_replacement: rollout_wish.AllowReplacement = False,
    reason: Reason = None,
    watch: Watch = None,
    yes: Annotated[
        bool, typer.Option("--yes", help=f"Do not ask whether --allow-replacement is meant. {NOT_ASKED}")
    ] = False,
    as_json: Json = False,
) -> None:
    """Start a rollout.

    All tenants that are not at the release are moved, unless options say which.
    Those that are pinned to another stay. It begins at once: to see what it would
    do, first try berth rollout plan with the same options.
    """
    body = body_of(
        to=to,
        tenants=tenant or (),
        tenants_from=tenants_from,
        labels=label or (),
        share=share,
        undo=undo,
        stages=StageOptions(stages, concurrency, tolerate, bake, alarm, approval, stages_file),
        allow_downgrade=allow_downgrade,
        allow_replacement=allow_replacement,
        reason=reason,
    )
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        if allow_replacement and not yes:
            _confirm(here, "This may replace or remove queues, with every message in them.")
        api = here.connect()
        answer = _begin(here, partial(api.start_rollout, body))
        code = _go_on(here, api, answer, watched=_watched(here, watch), as_json=as_json)
    raise typer.Exit(code)


@app.command()
def status(context: typer.Context, rollout: Rollout = None, as_json: Json = False) -> None:
    """Show how a rollout stands, what failed, and what can be done."""
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            found = details(api, asking, the_one_meant(api, asking, given))
        if as_json:
            render.show_json(found)
        else:
            show_status(found)


@app.command()
def watch(context: typer.Context, rollout: Rollout = None, as_json: Json = False) -> None:
    """Watch a rollout to its end.

    Ctrl-C ends the watching, not the rollout.
    The exit code is 0 if it succeeded, 4 if it did not, and 3 if it waits for an
    operator and nobody is at a terminal.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            meant = the_one_meant(api, asking, given)
        code = _see_to_its_end(here, api, meant, as_json=as_json)
    raise typer.Exit(code)


@app.command()
def pause(
    context: typer.Context, rollout: RolloutButNoDryRun = None, reason: Reason = None, as_json: Json = False
) -> None:
    """Hold a rollout.

    No tenant is started any more; those under way are finished.
    """
    _order(context, rollout, "pause", reason, as_json=as_json)


@app.command()
def resume(
    context: typer.Context, rollout: RolloutButNoDryRun = None, reason: Reason = None, as_json: Json = False
) -> None:
    """Let a rollout go on.

    After a pause, after it halted, or when its execution died. After it halted,
    the failures so far are taken as seen, and only further ones count.
    """
    _order(context, rollout, "resume", reason, as_json=as_json)


@app.command()
def abort(
    context: typer.Context,
    rollout: RolloutButNoDryRun = None,
    reason: Reason = None,
    yes: Annotated[bool, typer.Option("--yes", help=f"Do not ask whether it is meant. {NOT_ASKED}")] = False,
    as_json: Json = False,
) -> None:
    """End a rollout for good.

    Tenants under way are finished, those not begun stay where they are, and those
    that were moved are not returned: for that see berth rollout start --undo.
    """
    _order(context, rollout, "abort", reason, as_json=as_json, ask=not yes)


@app.command()
def approve(
    context: typer.Context,
    rollout: RolloutButNoDryRun = None,
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The stage. Without it you are asked about the one that waits; where there is no terminal, name it.",
            show_default=False,
        ),
    ] = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Let the stage begin that waits for approval.

    To approve of the same stage twice does no harm: the next one waits for an
    approval of its own. That is why the stage is named, or asked about.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            meant = the_one_meant(api, asking, given, dry_runs_too=False)
            found = details(api, asking, meant) if stage is None else {}
        number = stage if stage is not None else _ask_about_the_stage(here, found)
        with here.asking() as asking:
            answer = asking(partial(api.approve_stage, meant, number, reason=reason))
        _show_ordered(answer, partial(_told_of_approval, number), as_json=as_json)


@app.command()
def retry(
    context: typer.Context,
    rollout: RolloutButNoDryRun = None,
    reason: Reason = None,
    watch: Watch = None,
    as_json: Json = False,
) -> None:
    """Try again only those tenants that failed.

    That is another rollout, with the same stages.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            meant = the_one_meant(api, asking, given, dry_runs_too=False)
        answer = _begin(here, partial(api.order_rollout, meant, "retry", reason=reason))
        code = _go_on(here, api, answer, watched=_watched(here, watch), as_json=as_json)
    raise typer.Exit(code)


@app.command(name="list")
def list_rollouts(
    context: typer.Context,
    limit: Annotated[int, typer.Option(metavar="NUMBER", min=1, help="How many to list at most.")] = 20,
    as_json: Json = False,
) -> None:
    """List the rollouts, newest first, dry runs too."""
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            found, cursor = listed(api, asking, limit)
            if as_json:
                render.show_json({"rollouts": found, "cursor": cursor})
                return
            done: dict[str, int] = {}
            for each in found:
                if each["status"] in (RolloutStatus.SUCCEEDED, RolloutStatus.FAILED):
                    done[each["rolloutId"]] = each["total"]
                else:
                    # How far the others are is not in the list.
                    stages = details(api, asking, each["rolloutId"])["stages"]
                    done[each["rolloutId"]] = sum(map(settled, stages))
        if found:
            show_list(found, done)
        else:
            render.show_line("There are no rollouts yet. Begin with: berth rollout plan")
        if cursor:
            render.note(f"There may be more: --limit {limit * 5}")


def _begin(here: Invocation, order: partial[ApiAnswer]) -> ApiAnswer:
    with (
        noting_an_interrupt("Interrupted. If it was started, it goes on. See: berth rollout list"),
        here.asking() as asking,
    ):
        answer = asking(order)
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    return answer


def _go_on(here: Invocation, api: Api, answer: ApiAnswer, *, watched: bool, as_json: bool) -> ExitCode:
    """After a rollout has begun, or there was nothing to be done."""
    begun = answer.body
    is_begun = answer.status == _STARTED
    if as_json and not (is_begun and watched):
        render.show_json(begun)
    elif not is_begun:
        show_unchanged(begun)
    elif not as_json and not (begun["dryRun"] and watched):
        # A plan that is waited for shows all of this again.
        show_started(begun)
    if not is_begun:
        return ExitCode.OK
    if not watched:
        _note_next(begun)
        return ExitCode.OK
    if not begun["dryRun"]:
        name = begun["rolloutId"]
        render.note(f"\nStarted. Hold it: berth rollout pause {name}. End it: berth rollout abort {name}")
    return _see_to_its_end(here, api, begun["rolloutId"], as_json=as_json)


def _see_to_its_end(here: Invocation, api: Api, rollout: str, *, as_json: bool) -> ExitCode:
    ended = watch_rollout(api, here.world, rollout)
    if as_json:
        render.show_json(ended)
        _note_next(ended)
    else:
        show_ended(ended)
    return exit_code(ended)


def _order(
    context: typer.Context, rollout: str | None, verb: str, reason: str | None, *, as_json: bool, ask: bool = False
) -> None:
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.telling_errors(as_json=as_json):
        api = here.connect()
        with here.asking() as asking:
            meant = the_one_meant(api, asking, given, dry_runs_too=False)
        if ask:
            _confirm(here, f"This ends rollout {meant} for good.")
        with here.asking() as asking:
            answer = asking(partial(api.order_rollout, meant, verb, reason=reason))
        _show_ordered(answer, partial(_told, verb), as_json=as_json)


def _show_ordered(answer: ApiAnswer, tell: Callable[[Document], str], *, as_json: bool) -> None:
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    if as_json:
        render.show_json(answer.body)
    elif answer.status == _DONE:
        render.show_line(answer.body["detail"])
    else:
        render.show_line(tell(answer.body))
    if answer.status == _STARTED:
        _note_next(answer.body)


def _ask_about_the_stage(here: Invocation, rollout: Document) -> int:
    """The stage that waits, once someone has said that it is meant.

    Otherwise a command that is given twice would approve of two stages.
    """
    name, number = rollout["rolloutId"], stage_to_approve(rollout)
    if number is None:
        current = rollout["stages"][rollout["currentStage"] - 1]
        raise NothingToApprove(
            f"Rollout {name}: no stage awaits approval. It is {rollout['status']}, in stage {current['number']} "
            f"({stage_status(rollout, current).plain}). How it stands: berth rollout status {name}"
        )
    if not here.world.someone_is_there():
        raise InvalidRequest(f"Name the stage: berth rollout approve {name} --stage {number}")
    tenants = render.counted(rollout["stages"][number - 1]["total"], "tenant")
    _confirm(here, f"This lets stage {number} of rollout {name} begin: {tenants}.")
    return number


def _told_of_approval(number: int, rollout: Document) -> str:
    is_paused = rollout["status"] == RolloutStatus.PAUSED
    then = "It begins when the rollout is resumed." if is_paused else "It begins."
    return f"Rollout {rollout['rolloutId']}: stage {number} is approved. {then}"


def _told(verb: str, rollout: Document) -> str:
    name = rollout["rolloutId"]
    under_way = render.counted(rollout["inFlight"], "tenant is", "tenants are")
    finishing = f" {under_way} under way and will be finished." if rollout["inFlight"] else ""
    match verb:
        case "pause":
            return f"Rollout {name} is paused.{finishing}"
        case "resume":
            return f"Rollout {name} goes on."
        case _:
            ended = "aborted" if rollout["status"] == RolloutStatus.ABORTED else "being aborted"
            return f"Rollout {name} is {ended}.{finishing}"


def _note_next(rollout: Document) -> None:
    for step in next_steps(rollout):
        render.note(step)


def _confirm(here: Invocation, what: str) -> None:
    """Ask someone, if there is someone."""
    if here.world.someone_is_there() and render.ask(f"{what} Type yes to go on:") != "yes":
        raise NotConfirmed("That is not a yes, so nothing was done.")


def _watched(here: Invocation, wished: bool | None) -> bool:
    return here.world.someone_is_there() if wished is None else wished
