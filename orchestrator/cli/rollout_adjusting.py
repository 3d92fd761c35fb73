"""`berth rollout promote` and `berth rollout change`: orders to a rollout that is under way."""

from __future__ import annotations

from functools import partial
from typing import Annotated

import typer

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_models import ChangeRollout, PromoteStage
from orchestrator.api.rollout_routes import CHANGE_ROLLOUT, PROMOTE_ROLLOUT
from orchestrator.cli import render, rollout_spec
from orchestrator.cli.api import Document
from orchestrator.cli.errors import NothingToApprove
from orchestrator.cli.invocation import Invocation, Json, Reason
from orchestrator.cli.rollout_finding import RolloutToChange, details, named_or_only
from orchestrator.cli.rollout_next import stage_to_promote
from orchestrator.cli.rollout_options import spec_of
from orchestrator.cli.rollout_ordering import show_ordered
from orchestrator.cli.rollout_spec import rollout_id, tolerated_share
from orchestrator.cli.rollout_view import doing
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts.pacing import check_interval
from orchestrator.rollouts.records import RolloutStatus, StageStatus


def promote(
    context: typer.Context,
    rollout: RolloutToChange = None,
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The stage whose wait ends. Without it, berth asks to confirm the stage; without a terminal, it is "
            "required.",
            show_default=False,
        ),
    ] = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Do not wait for the end of a bake, or for approval.

    The rollout's history records who has done so. If the stage has an alarm, the
    alarm is checked once more before the next stage starts. A bake ends when the
    rollout checks it next, which takes seconds, or minutes for a bake of many hours.
    """
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_only(api, retrying, given, "promote", stage=stage)
            found = details(api, retrying, name) if stage is None else {}
        number = stage if stage is not None else _confirmed_stage(here, found)
        with here.retrying() as retrying:
            answer = retrying(
                partial(
                    api.send_request,
                    PROMOTE_ROLLOUT,
                    PromoteStage(rollout_id=name, stage=number, reason=or_unset(reason)),
                )
            )
        show_ordered(answer, partial(_promoted_message, number), as_json=as_json)


def _confirmed_stage(here: Invocation, rollout: Document) -> int:
    """The stage that waits, after the operator has confirmed it, so that a repeated command skips one wait only."""
    name, number = rollout["rolloutId"], stage_to_promote(rollout)
    if number is None:
        raise NothingToApprove(
            f"Rollout {name}: no stage bakes or awaits approval. The rollout is {doing(rollout).plain}. See: berth "
            f"rollout status {name}"
        )
    if not here.world.someone_is_there():
        raise InvalidRequest(f"Name the stage: berth rollout promote {name} --stage {number}")
    here.confirm(f"This ends the wait of stage {number} of rollout {name}.")
    return number


def _promoted_message(number: int, rollout: Document) -> str:
    stage = rollout["stages"][number - 1]
    ended = f"Rollout {rollout['rolloutId']}: the wait of stage {number} is over."
    if rollout["status"] == RolloutStatus.PAUSED:
        return f"{ended} The rollout continues when it is resumed."
    if stage["status"] != StageStatus.BAKING:
        return f"{ended} It starts now."
    seconds = check_interval(spec_of(stage)["bakeSeconds"])
    return f"{ended} The rollout continues within {render.duration(seconds)}."


def change(
    context: typer.Context,
    rollout: RolloutToChange = None,
    concurrency: rollout_spec.Concurrency = None,
    tolerate: rollout_spec.Tolerate = None,
    bake: rollout_spec.Bake = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Change the pace of a rollout.

    This applies to the current stage and to all later ones. A lower concurrency
    applies at once. With a higher one, the updates that are running are finished
    first; then the stage goes on with the new concurrency.
    """
    if concurrency is None and tolerate is None and bake is None:
        raise typer.BadParameter("give --concurrency, --tolerate or --bake.")
    tolerated = None if tolerate is None else tolerated_share(tolerate)
    given = rollout_id(rollout) if rollout is not None else None
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        api = here.connect()
        with here.retrying() as retrying:
            name = named_or_only(api, retrying, given, "change")
            answer = retrying(
                partial(
                    api.send_request,
                    CHANGE_ROLLOUT,
                    ChangeRollout(
                        rollout_id=name,
                        max_concurrency=or_unset(concurrency),
                        tolerated=or_unset(tolerated),
                        bake_seconds=or_unset(bake),
                        reason=or_unset(reason),
                    ),
                )
            )
        show_ordered(answer, _changed_message, as_json=as_json)


def _changed_message(rollout: Document) -> str:
    return f"Rollout {rollout['rolloutId']}: the pace of the stages that are left is changed."
