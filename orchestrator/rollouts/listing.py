"""Listing rollouts for operators, each with its stages, so that a list says what every rollout is doing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from orchestrator.rollouts.control import RolloutWithStages
from orchestrator.rollouts.records import Rollout, RolloutStatus

if TYPE_CHECKING:
    from orchestrator.rollouts.ports import RolloutLedger

MAX_SEARCHED = 200
"""The number of the newest rollouts among which halted ones are looked for. Nobody means an older one without naming
it. Active rollouts are found however old they are."""


def list_rollouts(ledger: RolloutLedger, *, limit: int, after: str | None = None) -> Sequence[RolloutWithStages]:
    """The newest rollouts first, starting after ``after`` if it is given."""
    return _with_stages(ledger, ledger.rollouts(limit=limit, after=after))


def open_rollouts(ledger: RolloutLedger) -> Sequence[RolloutWithStages]:
    """The rollouts that an order can change, newest first: those that are active or halted, without dry runs.

    Active rollouts are read from the registry, because the index lags behind: it may not list a rollout that was
    started just now.
    """
    active = [ledger.rollout(name) for name in ledger.registry().active]
    halted = [each for each in ledger.rollouts(limit=MAX_SEARCHED) if each.status is RolloutStatus.HALTED]
    found = {each.id: each for each in (*halted, *active) if each is not None and _is_open(each)}
    return _with_stages(ledger, sorted(found.values(), key=lambda each: each.id, reverse=True))


def _is_open(rollout: Rollout) -> bool:
    return not rollout.spec.dry_run and (rollout.status.active or rollout.status is RolloutStatus.HALTED)


def _with_stages(ledger: RolloutLedger, rollouts: Iterable[Rollout]) -> list[RolloutWithStages]:
    return [RolloutWithStages(each, ledger.stages(each.id)) for each in rollouts]
