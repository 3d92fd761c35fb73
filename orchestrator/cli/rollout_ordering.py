"""Sends the orders of `berth rollout`, shows their results and watches the rollout."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import typer

from orchestrator.api.fields import EmptyRequest, or_unset
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.rollout_requests import OrderRollout
from orchestrator.api.rollout_routes import ABORT_ROLLOUT, PAUSE_ROLLOUT, RESUME_ROLLOUT
from orchestrator.cli import render
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import ExitCode
from orchestrator.cli.interrupts import noting_an_interrupt
from orchestrator.cli.invocation import Invocation
from orchestrator.cli.problems import problem
from orchestrator.cli.release_changes import compare_moves
from orchestrator.cli.rollout_finding import details, named_or_only
from orchestrator.cli.rollout_next import depends_on_withdrawal, exit_code, is_over, next_steps
from orchestrator.cli.rollout_spec import rollout_id
from orchestrator.cli.rollout_view import (
    is_plan,
    show_ended,
    show_started,
    show_unchanged,
)
from orchestrator.cli.rollout_watching import watch as watch_rollout
from orchestrator.rollouts.records import RolloutStatus

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer

_DONE = 200
_STARTED = 202


def send_start(here: Invocation, order: partial[ApiAnswer]) -> ApiAnswer:
    """Send an order that starts a rollout. It is answered once the fleet was listed and the rollout is planned."""
    with (
        noting_an_interrupt("Interrupted. If the rollout was started, it continues. See: berth rollout list"),
        here.retrying(busy_with="planning the rollout") as retrying,
    ):
        answer = retrying(order)
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    return answer


def show_started_and_watch(here: Invocation, api: Api, answer: ApiAnswer, *, watched: bool, as_json: bool) -> ExitCode:
    """Show the rollout that was started, or that no tenant has to be moved; then watch it if ``watched``."""
    rollout = answer.body
    started = answer.status == _STARTED
    if as_json and not (started and watched):
        render.show_json(rollout)
    elif not started:
        show_unchanged(rollout)
    elif not as_json and not (rollout["dryRun"] and watched):
        # The result of a plan that is waited for shows all of this again.
        show_started(rollout)
    if not started:
        return ExitCode.OK
    if not watched:
        _note_next(rollout)
        _note_what_changes(rollout)
        return ExitCode.OK
    if not rollout["dryRun"]:
        name = rollout["rolloutId"]
        render.note(f"\nStarted. Pause it: berth rollout pause {name}. Abort it: berth rollout abort {name}")
        _note_what_changes(rollout)
    return watch_until_end(here, api, rollout["rolloutId"], as_json=as_json)


def watch_until_end(here: Invocation, api: Api, rollout: str, *, as_json: bool) -> ExitCode:
    ended = watch_rollout(api, here.world, rollout)
    if as_json:
        render.show_json(ended)
        _note_next(ended, withdrawn=is_withdrawn(here, api, ended))
    else:
        show_ended(ended, compared(here, api, ended), withdrawn=is_withdrawn(here, api, ended))
    return exit_code(ended)


def compared(here: Invocation, api: Api, rollout: Document) -> list[Document]:
    """The differences between the releases of a plan's moves; empty for other rollouts."""
    if not is_plan(rollout):
        return []
    with here.retrying() as retrying:
        return compare_moves(api, retrying, rollout)


def is_withdrawn(here: Invocation, api: Api, rollout: Document) -> bool:
    """True if the rollout's release is withdrawn now. Asked only if the next commands depend on it."""
    if not depends_on_withdrawal(rollout):
        return False
    with here.retrying() as retrying:
        answer = retrying(partial(api.send_request, LIST_RELEASES, EmptyRequest()))
    if answer.status != _DONE:
        raise problem(answer)
    return any(each["version"] == rollout["version"] and each["withdrawn"] for each in answer.body["releases"])


def send_order(
    context: typer.Context, rollout: str | None, verb: str, reason: str | None, *, as_json: bool, confirmed: bool = True
) -> None:
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_only(api, retrying, given, verb)
        route, request = _ORDERS[verb], OrderRollout(rollout_id=name, reason=or_unset(reason))
        if not confirmed and (warning := route.warning(request)):
            here.confirm(warning)
        with here.retrying() as retrying:
            answer = retrying(partial(api.send_request, route, request))
        show_ordered(answer, partial(_changed_message, verb), as_json=as_json, next_of=partial(_ended, here, api))


def _ended(here: Invocation, api: Api, rollout: Document) -> tuple[Document, bool]:
    """The rollout with its history, and whether its release is withdrawn, if the order has closed the rollout.

    The history says whether the rollout was undone, which only one that has begun can be.
    """
    if not is_over(rollout) or not (rollout["succeeded"] or rollout["failed"]):
        return rollout, False
    with here.retrying() as retrying:
        found = details(api, retrying, rollout["rolloutId"])
    return found, is_withdrawn(here, api, found)


def show_ordered(
    answer: ApiAnswer,
    message: Callable[[Document], str],
    *,
    as_json: bool,
    bake_ended: bool = False,
    next_of: Callable[[Document], tuple[Document, bool]] = lambda rollout: (rollout, False),
) -> None:
    """Show the result of an order. ``next_of`` returns what the next commands depend on, if the answer lacks it."""
    if answer.status not in (_DONE, _STARTED):
        raise problem(answer)
    if as_json:
        render.show_json(answer.body)
    elif answer.status == _DONE:
        render.show_line(answer.body["detail"])
    else:
        render.show_line(message(answer.body))
    if answer.status == _STARTED:
        rollout, withdrawn = next_of(answer.body)
        _note_next(rollout, bake_ended=bake_ended, withdrawn=withdrawn)


_ORDERS = {"pause": PAUSE_ROLLOUT, "resume": RESUME_ROLLOUT, "abort": ABORT_ROLLOUT}


def _changed_message(verb: str, rollout: Document) -> str:
    name = rollout["rolloutId"]
    updates = render.counted(rollout["inFlight"], "update is", "updates are")
    finishing = f" {updates} still running and will be finished." if rollout["inFlight"] else ""
    match verb:
        case "pause":
            return f"Rollout {name} is paused.{finishing}"
        case "resume":
            return f"Rollout {name} is resumed."
        case _:
            ended = "aborted" if rollout["status"] == RolloutStatus.ABORTED else "being aborted"
            return f"Rollout {name} is {ended}.{finishing}"


def _note_next(rollout: Document, *, bake_ended: bool = False, withdrawn: bool = False) -> None:
    for step in next_steps(rollout, bake_ended=bake_ended, withdrawn=withdrawn):
        render.note(step)


def _note_what_changes(rollout: Document) -> None:
    """Say how to see the differences between the releases, which only a plan shows."""
    if rollout["version"] and not rollout["dryRun"] and not rollout["retry"]:
        to = rollout["version"]
        render.note(f"What changes in a stack, property by property: berth rollout plan --to {to}")


def should_watch(here: Invocation, requested: bool | None) -> bool:
    return here.world.someone_is_there() if requested is None else requested
