"""Finding rollouts through the API: the one that a command is meant for, or all."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec.structs import replace

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_requests import ListRollouts, RolloutIdRequest, StartRollout
from orchestrator.api.rollout_routes import GET_ROLLOUT, LIST_ROLLOUTS
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.cli import completing
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import NoRollout, SeveralRollouts
from orchestrator.cli.problems import problem
from orchestrator.cli.rollout_spec import HALTED
from orchestrator.cli.rollout_view import described
from orchestrator.client.retrying import Retrying
from orchestrator.rollouts.records import RolloutStatus

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer


RolloutToChange = Annotated[
    str | None,
    typer.Argument(
        metavar="ROLLOUT",
        help="The rollout's id. Required if the command can be meant for several rollouts. Dry runs must be named.",
        show_default=False,
        autocompletion=completing.rollout_ids,
    ),
]

_FOUND = 200
_SMALL_PAGE = 20


def named_or_newest(api: Api, retrying: Retrying, given: str | None) -> str:
    """The id of the rollout to show: ``given``, else the newest one, which may be a dry run."""
    if given is not None:
        return given
    newest = _listed(api, retrying, ListRollouts(limit=1))["rollouts"]
    if not newest:
        raise NoRollout("There are no rollouts yet. Plan one: berth rollout plan")
    return str(newest[0]["rolloutId"])


def named_or_only(api: Api, retrying: Retrying, given: str | None, order: str, *, stage: int | None = None) -> str:
    """The id of the rollout that the order is meant for: ``given``, else the only one that can be meant.

    ``stage`` is the stage that the operator has named, if any. If no rollout can be meant and only one is open, the
    order goes to that one, because the control plane's refusal says why nothing can be changed.
    """
    if given is not None:
        return given
    found: list[Document] = _listed(api, retrying, ListRollouts(open=True))["rollouts"]
    meant = [each for each in found if _CAN_BE_MEANT[order](each, stage)] or found
    if not meant:
        raise NoRollout(
            f"There is no rollout to {order}: none is running, paused or halted. See all of them: berth rollout list"
        )
    if len(meant) > 1:
        option = "" if stage is None else f" --stage {stage}"
        raise SeveralRollouts(
            f"There are {len(meant)} rollouts that this can be meant for. Name one of them.",
            [f"berth rollout {order} {each['rolloutId']}{option}   ({described(each)})" for each in meant],
        )
    return str(meant[0]["rolloutId"])


def _has_status(*statuses: RolloutStatus) -> Callable[[Document, int | None], bool]:
    return lambda rollout, _stage: rollout["status"] in statuses


def _awaits_approval(rollout: Document, stage: int | None) -> bool:
    return rollout["awaitingStage"] is not None and stage in (None, rollout["awaitingStage"])


def _bakes(rollout: Document, stage: int | None) -> bool:
    active = RolloutStatus(rollout["status"]).active
    return active and rollout["bakedUntil"] is not None and stage in (None, rollout["currentStage"])


_CAN_BE_MEANT: Mapping[str, Callable[[Document, int | None], bool]] = {
    "pause": _has_status(RolloutStatus.PENDING, RolloutStatus.RUNNING),
    "resume": _has_status(RolloutStatus.PAUSED, RolloutStatus.HALTED),
    "abort": _has_status(RolloutStatus.PENDING, RolloutStatus.RUNNING, RolloutStatus.PAUSED, RolloutStatus.HALTED),
    "approve": _awaits_approval,
    "promote": _bakes,
    "promote --approve": lambda rollout, stage: _awaits_approval(rollout, stage) or _bakes(rollout, stage),
    "change": _has_status(RolloutStatus.PENDING, RolloutStatus.RUNNING, RolloutStatus.PAUSED),
}
"""The rollouts that each order can be meant for, among those that are active or halted."""


def named_or_failed(api: Api, retrying: Retrying, given: str | None) -> str:
    """The id of the rollout to retry: ``given``, else the only halted one with failures, else the newest rollout.

    The newest one may have ended with failures that were tolerated. Dry runs are never meant.
    """
    if given is not None:
        return given
    found: list[Document] = _listed(api, retrying, ListRollouts(open=True))["rollouts"]
    halted = [each for each in found if each["status"] == RolloutStatus.HALTED and each["failed"]]
    if len(halted) > 1:
        raise SeveralRollouts(
            f"There are {len(halted)} halted rollouts with failed tenants. Name one of them.",
            [f"berth rollout retry {each['rolloutId']}   ({described(each)})" for each in halted],
        )
    return str(halted[0]["rolloutId"]) if halted else _newest_that_moves(api, retrying)


def with_undone(api: Api, retrying: Retrying, body: StartRollout, undo: str | None) -> StartRollout:
    """The request, with the id of the rollout to undo. ``--undo`` without an id means the only halted rollout."""
    if undo != HALTED:
        return body
    found: list[Document] = _listed(api, retrying, ListRollouts(open=True))["rollouts"]
    halted = [each for each in found if each["status"] == RolloutStatus.HALTED]
    if not halted:
        raise NoRollout("No rollout is halted, so --undo needs the id of a rollout. See: berth rollout list")
    if len(halted) > 1:
        raise SeveralRollouts(
            f"There are {len(halted)} halted rollouts. Name the one to undo.",
            [f"--undo {each['rolloutId']}   ({described(each)})" for each in halted],
        )
    return replace(body, undo=halted[0]["rolloutId"])


def _newest_that_moves(api: Api, retrying: Retrying) -> str:
    cursor: str | None = None
    while True:
        page = _listed(api, retrying, ListRollouts(cursor=or_unset(cursor), limit=_SMALL_PAGE))
        for rollout in page["rollouts"]:
            if not rollout["dryRun"]:
                return str(rollout["rolloutId"])
        cursor = page["cursor"]
        if cursor is None:
            raise NoRollout("There are no rollouts yet, except for dry runs. Start one: berth rollout start")


def details(api: Api, retrying: Retrying, rollout: str) -> Document:
    return _found(retrying(partial(api.send_request, GET_ROLLOUT, RolloutIdRequest(rollout_id=rollout))))


def listed(api: Api, retrying: Retrying, limit: int) -> tuple[list[Document], str | None]:
    """The newest rollouts, and the cursor of the next page if there may be more."""
    found: list[Document] = []
    cursor: str | None = None
    while len(found) < limit:
        page = _listed(
            api, retrying, ListRollouts(cursor=or_unset(cursor), limit=min(limit - len(found), MAX_PAGE_SIZE))
        )
        found += page["rollouts"]
        cursor = page["cursor"]
        if cursor is None:
            break
    return found, cursor


def _listed(api: Api, retrying: Retrying, asked: ListRollouts) -> Document:
    return _found(retrying(partial(api.send_request, LIST_ROLLOUTS, asked)))


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body
