"""`berth rollout approve`, `promote` and `change`: orders to a rollout that is under way."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Annotated, Any, Generic

import typer
from msgspec import UnsetType

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_requests import ApproveStage, ChangeRollout, PromoteStage
from orchestrator.api.rollout_routes import APPROVE_ROLLOUT, CHANGE_ROLLOUT, PROMOTE_ROLLOUT
from orchestrator.api.route import RequestT, Route
from orchestrator.cli import render, rollout_spec
from orchestrator.cli.api import Document
from orchestrator.cli.errors import NothingToApprove
from orchestrator.cli.invocation import Invocation, Json, Reason
from orchestrator.cli.rollout_finding import RolloutToChange, details, named_or_only
from orchestrator.cli.rollout_next import stage_to_approve, stage_to_promote
from orchestrator.cli.rollout_ordering import show_ordered
from orchestrator.cli.rollout_spec import rollout_id, tolerated_share
from orchestrator.cli.rollout_view import doing
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts.pacing import check_interval
from orchestrator.rollouts.records import RolloutStatus, StageStatus


@dataclass(frozen=True, slots=True)
class _StageOrder(Generic[RequestT]):
    """An order to one stage. The stage is named, or confirmed, so that a command that is run twice changes one only."""

    verb: str
    route: Route[RequestT, Any]
    request: Callable[[str, int, str | UnsetType], RequestT]
    """Makes the request from the rollout's id, the stage and the reason."""
    find: Callable[[Document], int | None]
    """Returns the stage that the order can be meant for."""
    nothing_found: str
    question: Callable[[Document, int], str]
    message: Callable[[Document, int], str]

    def send(
        self, context: typer.Context, rollout: str | None, stage: int | None, reason: str | None, *, as_json: bool
    ) -> None:
        given = rollout_id(rollout) if rollout is not None else None
        here: Invocation = context.obj
        with here.reporting_errors(as_json=as_json):
            api = here.connect()
            with here.retrying() as retrying:
                name = named_or_only(api, retrying, given, self.verb, stage=stage)
                found = details(api, retrying, name) if stage is None else {}
            number = stage if stage is not None else self._confirmed(here, found)
            request = self.request(name, number, or_unset(reason))
            with here.retrying() as retrying:
                answer = retrying(partial(api.send_request, self.route, request))
            show_ordered(
                answer,
                lambda changed: self.message(changed, number),
                as_json=as_json,
                bake_ended=self.route is PROMOTE_ROLLOUT,
            )

    def _confirmed(self, here: Invocation, rollout: Document) -> int:
        name, number = rollout["rolloutId"], self.find(rollout)
        if number is None:
            raise NothingToApprove(
                f"Rollout {name}: {self.nothing_found}. The rollout is {doing(rollout).plain}. See: berth rollout "
                f"status {name}"
            )
        if not here.world.someone_is_there():
            raise InvalidRequest(f"Name the stage: berth rollout {self.verb} {name} --stage {number}")
        here.confirm(self.question(rollout, number))
        return number


def approve(
    context: typer.Context,
    rollout: RolloutToChange = None,
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The stage to approve. Without it, berth asks to confirm the waiting stage; without a terminal, it is "
            "required.",
            show_default=False,
        ),
    ] = None,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Approve the stage that waits for approval.

    The stage is named, or confirmed, so that running the command twice does not
    approve the next stage as well.
    """
    _APPROVAL.send(context, rollout, stage, reason, as_json=as_json)


def _start_question(rollout: Document, number: int) -> str:
    tenants = render.counted(rollout["stages"][number - 1]["total"], "tenant")
    return f"This starts stage {number} of rollout {rollout['rolloutId']}: {tenants}."


def _approved_message(rollout: Document, number: int) -> str:
    is_paused = rollout["status"] == RolloutStatus.PAUSED
    then = "It starts when the rollout is resumed." if is_paused else "It starts now."
    return f"Rollout {rollout['rolloutId']}: stage {number} is approved. {then}"


_APPROVAL = _StageOrder(
    "approve",
    APPROVE_ROLLOUT,
    lambda name, stage, reason: ApproveStage(rollout_id=name, stage=stage, reason=reason),
    stage_to_approve,
    "no stage awaits approval",
    _start_question,
    _approved_message,
)


def promote(
    context: typer.Context,
    rollout: RolloutToChange = None,
    stage: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            min=1,
            help="The stage whose bake or wait for approval ends. Without it, berth asks to confirm the stage; without "
            "a terminal, it is required.",
            show_default=False,
        ),
    ] = None,
    approve: Annotated[bool, typer.Option("--approve", help="Approve the stage if it awaits approval.")] = False,
    reason: Reason = None,
    as_json: Json = False,
) -> None:
    """Do not wait for the end of a bake, or with --approve for approval.

    The rollout's history records who has done so. If the stage has an alarm, the
    alarm is checked once more before the next stage starts. A bake ends when the
    rollout checks it next, which takes seconds, or minutes for a bake of many
    hours.
    """
    order = _APPROVING_PROMOTION if approve else _PROMOTION
    order.send(context, rollout, stage, reason, as_json=as_json)


def _wait_of(rollout: Document, number: int) -> str:
    bakes = rollout["stages"][number - 1]["status"] == StageStatus.BAKING
    return f"the {'bake' if bakes else 'wait for approval'} of stage {number}"


def _end_question(rollout: Document, number: int) -> str:
    return f"This ends {_wait_of(rollout, number)} of rollout {rollout['rolloutId']}."


def _promoted_message(rollout: Document, number: int) -> str:
    stage = rollout["stages"][number - 1]
    ended = f"Rollout {rollout['rolloutId']}: {_wait_of(rollout, number)} is over."
    if rollout["status"] == RolloutStatus.PAUSED:
        return f"{ended} The rollout continues when it is resumed."
    if stage["status"] != StageStatus.BAKING:
        return f"{ended} It starts now."
    seconds = check_interval(stage["spec"]["bakeSeconds"])
    return f"{ended} The rollout continues within {render.duration(seconds)}."


_PROMOTION = _StageOrder(
    "promote",
    PROMOTE_ROLLOUT,
    lambda name, stage, reason: PromoteStage(rollout_id=name, stage=stage, reason=reason),
    stage_to_promote,
    "no stage bakes",
    _end_question,
    _promoted_message,
)
_APPROVING_PROMOTION = replace(
    _PROMOTION,
    verb="promote --approve",
    request=lambda name, stage, reason: PromoteStage(rollout_id=name, stage=stage, approve=True, reason=reason),
    find=lambda rollout: stage_to_promote(rollout) or stage_to_approve(rollout),
    nothing_found="no stage bakes or awaits approval",
)


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
