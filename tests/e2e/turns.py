"""The turns of creates on the deployed control plane."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb.create_turns import CreateTurnTable
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_turns import MAX_CREATES_AT_ONCE, CreateTurns
from orchestrator.rollouts.pacing import Pace

if TYPE_CHECKING:
    from tests.e2e.deployed import Deployed


def turns_of(berth: Deployed) -> CreateTurnTable:
    return CreateTurnTable(berth.client("dynamodb"), berth.outputs["TableName"])


@contextmanager
def at_most_at_once(berth: Deployed, creates: int) -> Iterator[None]:
    """CloudFormation allows only so many creates at once."""
    _set_pace(berth, Pace(float(creates), creates))
    yield
    _set_pace(berth, Pace.initial(MAX_CREATES_AT_ONCE))


@contextmanager
def every_turn_taken(berth: Deployed) -> Iterator[None]:
    """There is one turn, and somebody else has it."""
    somebody, now = "somebody else's create", datetime.now(UTC)
    with at_most_at_once(berth, 1):
        _change(berth, lambda turns: turns.taken(somebody, TenantId("somebody-else"), now))
        yield
        _change(berth, lambda turns: turns.given_back(somebody, now, succeeded=False))


def _set_pace(berth: Deployed, pace: Pace) -> None:
    _change(berth, lambda turns: replace(turns, pace=pace))


def _change(berth: Deployed, change: Callable[[CreateTurns], CreateTurns]) -> None:
    rows = turns_of(berth)
    turns = rows.turns() or CreateTurns.initial(0, datetime.now(UTC))
    while not rows.store(change(turns)):
        turns = rows.turns() or turns
