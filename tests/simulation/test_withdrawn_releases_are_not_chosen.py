"""A release is withdrawn in the middle of a rollout: no update to it begins any more, and the other promises hold."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.rollouts import gate
from orchestrator.rollouts.records import RolloutStatus
from orchestrator.tenants import operations
from tests.simulation.planting import Bug, all_of, wrapping
from tests.simulation.rollouts.withdrawals import play_withdrawals

SEEDS = range(60)


@wrapping("begin", operations)
def nobody_looks_when_it_begins(original: Any, *args: Any, **named: Any) -> Any:
    return original(*args, **named | {"withdrawal_of": lambda _version: None})


class _Blind:
    withdrawn: tuple[str, ...] = ()


@wrapping("_try_to_admit", gate.Gate)
def nobody_looks_when_it_is_admitted(original: Any, self: gate.Gate, *args: Any) -> Any:
    blind = type("Blind", (), {"state": lambda _self: _Blind()})()
    return original(gate.Gate(self.ledger, self.tenants, self.throttling, self.clock, blind), *args)


def test_nothing_begins_towards_a_release_that_was_withdrawn() -> None:
    seen = play_withdrawals(SEEDS)
    assert seen["withdrawn"] > len(SEEDS) / 2
    assert seen[RolloutStatus.HALTED]
    assert seen["began too late"] == 0


BUGS: dict[str, Bug] = {
    "nobody looks": all_of(nobody_looks_when_it_begins, nobody_looks_when_it_is_admitted),
}


@pytest.mark.parametrize("bug", BUGS.values(), ids=BUGS)
def test_a_planted_bug_is_found(bug: Bug, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    assert play_withdrawals(SEEDS)["began too late"]
