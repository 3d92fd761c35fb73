"""Finding rollouts through the API: one by its id, the newest, or all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.api.fields import or_unset
from orchestrator.api.rollout_models import ListRollouts, RolloutIdRequest
from orchestrator.api.rollout_routes import GET_ROLLOUT, LIST_ROLLOUTS
from orchestrator.api.tenant_models import MAX_PAGE_SIZE
from orchestrator.cli.api import Api, Document
from orchestrator.cli.errors import NoRollout
from orchestrator.cli.problems import problem
from orchestrator.client.retrying import Retrying

if TYPE_CHECKING:
    from orchestrator.client.transport import ApiAnswer


_FOUND = 200
_SMALL_PAGE = 20


def named_or_newest(api: Api, retrying: Retrying, given: str | None, *, dry_runs: bool = True) -> str:
    """The id of the rollout: ``given``, else the newest one. Dry runs count only with ``dry_runs``."""
    if given is not None:
        return given
    cursor: str | None = None
    while True:
        page = _found(
            retrying(
                partial(
                    api.send_request,
                    LIST_ROLLOUTS,
                    ListRollouts(cursor=or_unset(cursor), limit=1 if dry_runs else _SMALL_PAGE),
                )
            )
        )
        for rollout in page["rollouts"]:
            if dry_runs or not rollout["dryRun"]:
                return str(rollout["rolloutId"])
        cursor = page["cursor"]
        if cursor is None:
            raise NoRollout(
                "There are no rollouts yet. Plan one: berth rollout plan"
                if dry_runs
                else "There are no rollouts yet, except for dry runs. Start one: berth rollout start"
            )


def details(api: Api, retrying: Retrying, rollout: str) -> Document:
    return _found(retrying(partial(api.send_request, GET_ROLLOUT, RolloutIdRequest(rollout_id=rollout))))


def listed(api: Api, retrying: Retrying, limit: int) -> tuple[list[Document], str | None]:
    """The newest rollouts, and the cursor of the next page if there may be more."""
    found: list[Document] = []
    cursor: str | None = None
    while len(found) < limit:
        page = _found(
            retrying(
                partial(
                    api.send_request,
                    LIST_ROLLOUTS,
                    ListRollouts(cursor=or_unset(cursor), limit=min(limit - len(found), MAX_PAGE_SIZE)),
                )
            )
        )
        found += page["rollouts"]
        cursor = page["cursor"]
        if cursor is None:
            break
    return found, cursor


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body
