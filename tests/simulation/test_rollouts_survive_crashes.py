"""Rollouts over the fakes, as their file tells it, in a hundred orders and with all that may go wrong.

A test that fails names its seed, and fails the same way again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.records import Audit, Metadata
from orchestrator.rollouts import advancing, gate
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Result, RolloutStatus, Stage, TenantOutcome, Turn
from tests.fakes import InMemoryRollouts
from tests.simulation.rollout_storm import RolloutStorm
from tests.simulation.storm import Broken

SEEDS = range(120)


def play_all(seeds: range) -> Counter[str]:
    """What was seen in all of them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        storm = RolloutStorm(seed)
        storm.play()
        seen += storm.seen
    return seen


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_stops_where_it_should_and_says_what_became_of_its_tenants(seed: int) -> None:
    RolloutStorm(seed).play()


def test_a_seed_tells_the_same_story_again() -> None:
    first, again = RolloutStorm(4), RolloutStorm(4)
    for storm in (first, again):
        storm.play()
    assert first.rollout == again.rollout
    assert first.fleet.stacks.calls == again.fleet.stacks.calls
    assert first.seen == again.seen


def test_the_storms_see_all_that_may_happen() -> None:
    ends = {status for status in RolloutStatus if not status.active}
    tenants = {f"tenant {result}" for result in Result}
    operators = {"pause", "resume", "abort", "approve", "resumed after a halt", "dry run"}
    trouble = {"killed", "turn killed", "pinned"}
    assert {*ends, *tenants, *operators, *trouble} <= set(play_all(SEEDS))


# Bugs, put in on purpose: each is found out.

Bug = Callable[[pytest.MonkeyPatch], None]


def _admit_whatever_the_rollout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InMemoryRollouts, "admit", InMemoryRollouts.record)


def _forget_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "too_many_failed", False)


def _have_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "has_room", lambda *_: True)


def _write_over_what_others_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(self: InMemoryRollouts, stage: Stage) -> bool:
        self._stages[stage.rollout, stage.number] = replace(stage, revision=stage.revision + 1)
        return True

    monkeypatch.setattr(InMemoryRollouts, "change_stage", written)


def _believe_that_all_went_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def well(
        turn: Turn, before: TenantOutcome | None, metadata: Metadata | None, audits: Sequence[Audit], **more: Any
    ) -> TenantOutcome:
        return replace(judge(turn, before, metadata, audits, **more), result=Result.SUCCEEDED, skip=None)

    judge = gate.judge
    monkeypatch.setattr(gate, "judge", well)
    monkeypatch.setattr(advancing, "judge", well)


@pytest.mark.parametrize(
    ("bug", "found"),
    [
        (_admit_whatever_the_rollout_is, "starts, but it is"),
        (_forget_failures, "starts after"),
        (_have_room_for_all, "in flight, with"),
        (_write_over_what_others_wrote, "in flight|does not count what is written down"),
        (_believe_that_all_went_well, "is at 0.1.0, and said"),
    ],
)
def test_a_bug_breaks_a_promise_and_is_found(bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match=found):
        play_all(SEEDS)
