"""Finding rollouts by the API: one, the newest, or all."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.cli.api import Api, Document
from orchestrator.cli.asking import Asking
from orchestrator.cli.errors import NoRollout
from orchestrator.cli.problems import problem

if TYPE_CHECKING:
    from orchestrator.adapters.berth_api import ApiAnswer

MOST_A_PAGE = 500
"""As many as the API gives at once."""

_FOUND = 200
_A_FEW = 20


def the_one_meant(api: Api, asking: Asking, given: str | None, *, dry_runs_too: bool = True) -> str:
    """The one that is named, else the newest."""
    if given is not None:
        return given
    cursor: str | None = None
    while True:
        page = _found(asking(partial(api.rollouts, cursor=cursor, limit=1 if dry_runs_too else _A_FEW)))
        for rollout in page["rollouts"]:
            if dry_runs_too or not rollout["dryRun"]:
                return str(rollout["rolloutId"])
        cursor = page["cursor"]
        if cursor is None:
            raise NoRollout(
                "There is no rollout yet. Begin with: berth rollout plan"
                if dry_runs_too
                else "There is no rollout yet that is more than a dry run. Start one: berth rollout start"
            )


def details(api: Api, asking: Asking, rollout: str) -> Document:
    return _found(asking(partial(api.rollout, rollout)))


def listed(api: Api, asking: Asking, limit: int) -> tuple[list[Document], str | None]:
    """The newest ones, and where to go on if there may be more."""
    found: list[Document] = []
    cursor: str | None = None
    while len(found) < limit:
        page = _found(asking(partial(api.rollouts, cursor=cursor, limit=min(limit - len(found), MOST_A_PAGE))))
        found += page["rollouts"]
        cursor = page["cursor"]
        if cursor is None:
            break
    return found, cursor


def _found(answer: ApiAnswer) -> Document:
    if answer.status != _FOUND:
        raise problem(answer)
    return answer.body
