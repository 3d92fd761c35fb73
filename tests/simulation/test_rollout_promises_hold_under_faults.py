"""Rollouts over the fakes, as their file tells it, in a hundred orders and with all that may go wrong.

A test that fails names its seed, and fails the same way again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator.rollouts import advancing, control, gate
from orchestrator.rollouts.advancing import Advancing
from orchestrator.rollouts.control import Changed, Choose, Rollouts
from orchestrator.rollouts.finding import TenantFinder
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Result, Rollout, RolloutStatus, Skip, Spec, Stage, TenantOutcome, Turn
from orchestrator.rollouts.selecting import Selected, skip_reason
from orchestrator.tenants.records import Audit, Metadata, TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import FakeAlarms, InMemoryRollouts
from tests.machines import asl
from tests.machines.files import ROLLOUT, TURN, machine
from tests.simulation.rollouts.seeded_rollout import SeededRollout, play_seed
from tests.simulation.seeded_run import Broken

SEEDS = range(120)
MORE_SEEDS = range(400)
"""As many as it may take to find a bug, or to see something rare."""


def play_all(seeds: range, favoured_actions: Sequence[str] = ()) -> Counter[str]:
    """What was seen in all of them."""
    return sum((play_seed(seed, favoured_actions) for seed in seeds), Counter[str]())


@pytest.mark.parametrize("seed", SEEDS)
def test_a_rollout_stops_where_it_should_and_says_what_became_of_its_tenants(seed: int) -> None:
    SeededRollout(seed).play()


def test_a_seed_tells_the_same_story_again() -> None:
    first, again = SeededRollout(4), SeededRollout(4)
    for run in (first, again):
        run.play()
    assert first.rollout == again.rollout
    assert first.fleet.stacks.calls == again.fleet.stacks.calls
    assert first.seen == again.seen


def test_the_storms_see_all_that_may_happen() -> None:
    ends = {status for status in RolloutStatus if not status.active}
    tenants = {f"tenant {result}" for result in Result}
    operators = {"pause", "resume", "abort", "aborted at once", "resumed after a halt", "dry run", "undo", "retry"}
    approvals = {"approve", "approved this", "approved again", "approved another"}
    by_hand = {"pinned", "updated by hand", "deleted by hand", "created by hand"}
    fault = {"killed", "turn killed", "alarm"}
    assert {*ends, *tenants, *operators, *approvals, *by_hand, *fault} <= set(play_all(MORE_SEEDS))


# Bugs, put in on purpose: each is found out.

Bug = Callable[[pytest.MonkeyPatch], None]


def _admit_whatever_the_rollout_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(InMemoryRollouts, "admit", InMemoryRollouts.record)


def _forget_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stage, "too_many_failed", False)


def _have_room_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Pace, "has_room", lambda *_: True)


def _write_over_what_others_wrote(monkeypatch: pytest.MonkeyPatch) -> None:
    def written(self: InMemoryRollouts, stage: Stage, **_: object) -> bool:
        self._stages[stage.rollout, stage.number] = replace(stage, revision=stage.revision + 1)
        return True

    monkeypatch.setattr(InMemoryRollouts, "change_stage", written)


def _believe_that_all_went_well(monkeypatch: pytest.MonkeyPatch) -> None:
    def well(
        turn: Turn, before: TenantOutcome | None, metadata: Metadata | None, audits: Sequence[Audit], **more: Any
    ) -> TenantOutcome:
        return replace(classify(turn, before, metadata, audits, **more), result=Result.SUCCEEDED, skip=None)

    classify = gate.classify
    monkeypatch.setattr(gate, "classify", well)
    monkeypatch.setattr(advancing, "classify", well)


def _list_the_fleet_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TenantFinder, "all_tenants", TenantFinder.list_once)


def _trust_the_listing_when_undoing(monkeypatch: pytest.MonkeyPatch) -> None:
    def selected(self: Rollouts, choose: Choose, spec: Spec, outcomes: Sequence[TenantOutcome]) -> Selected:
        return choose(spec, outcomes, self._finder.list_once())

    monkeypatch.setattr(Rollouts, "_select_of", selected)


def _undo_only_what_is_said_to_have_arrived(monkeypatch: pytest.MonkeyPatch) -> None:
    arrived = (Result.SUCCEEDED, Result.RUNNING)
    monkeypatch.setattr(control, "_may_have_been_moved", lambda outcome: outcome.result in arrived)


def _undo_before_an_update_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rollouts, "_has_waiting_update", lambda *_: False)


def _look_at_the_alarm_as_it_is_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeAlarms, "went_off", lambda self, name, **_: self.alarms[name])


def _approve_whatever_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    approve = Rollouts.approve

    def careless(self: Rollouts, rollout_id: str, _number: int, by: str) -> Changed:
        rollout = self.ledger.rollout(rollout_id)
        assert rollout
        return approve(self, rollout_id, rollout.current_stage, by)

    monkeypatch.setattr(Rollouts, "approve", careless)


def _wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who is being created or deleted is skipped, and that counts as nothing."""

    def impatient(version: str, *, state: TenantState, **more: Any) -> Skip | None:
        more["waits_for_busy"] = state is TenantState.UPDATING
        return skip_reason(version, state=state, **more)

    def content(self: Advancing, rollout: Rollout, _stages: object) -> str:
        failed = any(outcome.result is Result.FAILED for outcome in self.ledger.outcomes(rollout.id))
        return "Some failed." if failed else ""

    monkeypatch.setattr(gate, "skip_reason", impatient)
    monkeypatch.setattr(Advancing, "_failure_reason", content)


def _take_a_delete_that_has_begun_for_done(monkeypatch: pytest.MonkeyPatch) -> None:
    def rash(*args: Any, **more: Any) -> TenantOutcome:
        outcome, (_, _, metadata, audits) = classify(*args, **more), args
        deleting = state_of(metadata, audits) is TenantState.DELETING
        return replace(outcome, result=Result.SKIPPED, skip=Skip.DELETED) if deleting else outcome

    classify = gate.classify
    monkeypatch.setattr(gate, "classify", rash)
    monkeypatch.setattr(advancing, "classify", rash)


def _leave_every_abort_to_the_execution(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_dead(self: Rollouts, rollout_id: str) -> bool:
        rollout = self.ledger.rollout(rollout_id)
        assert rollout
        return rollout.execution is None or not self.executions.is_running(rollout.execution)

    monkeypatch.setattr(Rollouts, "_nothing_in_flight", is_dead)


def _try_for_minutes_to_start_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = asl.states(machine(TURN))["Upgrade"]
    monkeypatch.setitem(upgrade["Retry"][0], "MaxAttempts", 100)
    monkeypatch.setitem(upgrade["Retry"][0], "MaxDelaySeconds", 20)


def _open_more_turns_than_the_stage_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(asl.states(machine(ROLLOUT))["RunStage"], "MaxConcurrency", 6)


@dataclass(frozen=True)
class PlantedBug:
    """A bug, what it is found out by, and what has to happen more often for that to take little time."""

    bug: Bug
    found: str
    favoured_actions: tuple[str, ...] = ()
    seeds: range = MORE_SEEDS
    """Where to begin looking for a bug that shows in few scenarios."""


STILL_THERE = "is still at 0.2.0 after the undo"
BUGS = {
    "nobody asks whether it is running": PlantedBug(_admit_whatever_the_rollout_is, "starts, but it is"),
    "failures are forgotten": PlantedBug(_forget_failures, "starts after"),
    "there is room for all": PlantedBug(_have_room_for_all, "in flight, with"),
    "others' writes are overwritten": PlantedBug(
        _write_over_what_others_wrote, "in flight|does not count what is written down"
    ),
    "every turn is called a success": PlantedBug(_believe_that_all_went_well, "is at 0.1.[01], and said"),
    "the fleet is listed once": PlantedBug(_list_the_fleet_once, "are in no plan", ("_update_by_hand",)),
    "an undo trusts the listing": PlantedBug(_trust_the_listing_when_undoing, STILL_THERE),
    "an undo forgets who failed and arrived": PlantedBug(
        _undo_only_what_is_said_to_have_arrived, STILL_THERE, ("_kill_an_update",)
    ),
    "an undo comes before the update": PlantedBug(
        _undo_before_an_update_has_begun,
        f"{STILL_THERE}|is at 0.2.0, and said",
        ("_kill_and_abort", "_kill_a_turn"),
        range(2_400, 3_600),
    ),
    "an alarm that recovered is overlooked": PlantedBug(
        _look_at_the_alarm_as_it_is_now,
        "goes on after its alarm went off",
        ("_sound_the_alarm", "_silence_the_alarm"),
    ),
    "an approval is for any stage": PlantedBug(_approve_whatever_waits, "was taken for an approval of"),
    "a busy tenant is skipped": PlantedBug(_wait_for_nobody, "was not waited for"),
    "a delete that has begun counts as done": PlantedBug(
        _take_a_delete_that_has_begun_for_done,
        "is at 0.1.[01], and said",
        ("_delete_by_hand", "_kill_an_update", "_kill_a_turn"),
        range(400, 800),
    ),
    "an abort waits for the end of a bake": PlantedBug(
        _leave_every_abort_to_the_execution, "aborted with nobody in flight", ("_abort",)
    ),
    "a start is tried for minutes": PlantedBug(
        _try_for_minutes_to_start_an_update, "starts, but the rollout is", ("_throttle_starts",)
    ),
    "a map opens too many turns": PlantedBug(_open_more_turns_than_the_stage_allows, "one more comes"),
}


@pytest.mark.parametrize("planted", BUGS.values(), ids=BUGS)
def test_a_bug_breaks_a_promise_and_is_found(planted: PlantedBug, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.bug(monkeypatch)
    with pytest.raises(Broken, match=planted.found):
        play_all(planted.seeds, planted.favoured_actions)
