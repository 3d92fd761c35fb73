"""Planted bugs in rollouts. The checks have to find each of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from orchestrator.rollouts import advancing, gate, selector
from orchestrator.rollouts.advancing import Advancing
from orchestrator.rollouts.control import Rollouts
from orchestrator.rollouts.counting import Count
from orchestrator.rollouts.finding import TenantFinder
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.records import Result, Rollout, Skip, Spec, Stage, TenantOutcome
from orchestrator.rollouts.selecting import Selected
from orchestrator.rollouts.selector import Choose, TenantSelector
from orchestrator.tenants.records import TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import FakeAlarms, InMemoryRollouts
from tests.machines import asl
from tests.machines.files import ROLLOUT, TURN, machine
from tests.simulation.planting import Bug, all_of, always, replacing, wrapping

SEEDS = range(400)
"""The seeds in which a bug has to be found."""


@dataclass(frozen=True)
class PlantedBug:
    bug: Bug
    found: str
    """A regular expression for the message of the check that finds the bug."""
    favoured_actions: tuple[str, ...] = ()
    """The actions that have to happen more often, so that the bug shows soon."""
    seeds: range = SEEDS
    """Where to begin looking for a bug that few seeds show."""


@wrapping("admission", gate)
def _admit_without_a_condition(admission: Any, *args: Any) -> Count:
    count: Count = admission(*args)
    return replace(count, max_in_flight=None, max_failed=None)


@wrapping("admission", gate)
def _admit_despite_failures(admission: Any, *args: Any) -> Count:
    count: Count = admission(*args)
    return replace(count, max_failed=None)


@wrapping("classify", gate, advancing)
def _believe_that_all_went_well(classify: Any, *args: Any, **named: Any) -> TenantOutcome:
    return replace(classify(*args, **named), result=Result.SUCCEEDED, skip=None)


def _select_from_the_listing(
    self: TenantSelector, choose: Choose, spec: Spec, outcomes: Sequence[TenantOutcome]
) -> Selected:
    return choose(spec, outcomes, self._finder.list_once())


@wrapping("approve", Rollouts)
def _approve_whatever_waits(approve: Any, self: Rollouts, rollout_id: str, _number: int, by: str) -> Any:
    rollout = self.ledger.rollout(rollout_id)
    assert rollout
    return approve(self, rollout_id, rollout.current_stage, by)


@wrapping("skip_reason", gate)
def _skip_the_busy(skip_reason: Any, version: str, *, state: TenantState, **named: Any) -> Any:
    """A tenant that is being created or deleted is not waited for."""
    return skip_reason(version, state=state, **{**named, "waits_for_busy": state is TenantState.UPDATING})


def _only_failures_count(self: Advancing, rollout: Rollout, _stages: object) -> str:
    failed = any(outcome.result is Result.FAILED for outcome in self.ledger.outcomes(rollout.id))
    return "Some failed." if failed else ""


@wrapping("classify", gate, advancing)
def _take_a_delete_that_has_begun_for_done(classify: Any, *args: Any, **named: Any) -> TenantOutcome:
    outcome: TenantOutcome = classify(*args, **named)
    _, _, metadata, audits = args
    deleting = state_of(metadata, audits) is TenantState.DELETING
    return replace(outcome, result=Result.SKIPPED, skip=Skip.DELETED) if deleting else outcome


def _is_dead(self: Rollouts, rollout_id: str) -> bool:
    rollout = self.ledger.rollout(rollout_id)
    assert rollout
    return rollout.execution is None or not self.executions.is_running(rollout.execution)


def _try_for_minutes_to_start_an_update(monkeypatch: pytest.MonkeyPatch) -> None:
    upgrade = asl.states(machine(TURN))["Upgrade"]
    monkeypatch.setitem(upgrade["Retry"][0], "MaxAttempts", 100)
    monkeypatch.setitem(upgrade["Retry"][0], "MaxDelaySeconds", 20)


def _open_more_turns_than_the_stage_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(asl.states(machine(ROLLOUT))["RunStage"], "MaxConcurrency", 6)


ARRIVED = (Result.SUCCEEDED, Result.RUNNING)
STILL_THERE = "is still at 0.2.0 after the undo"
BUGS = {
    "nobody asks whether it is running": PlantedBug(
        replacing("admit", InMemoryRollouts.record, InMemoryRollouts), "starts, but it is", seeds=range(400, 800)
    ),
    "failures are forgotten": PlantedBug(
        all_of(replacing("too_many_failed", False, Stage), _admit_despite_failures), "starts after"
    ),
    "there is room for all": PlantedBug(
        all_of(replacing("has_room", always(True), Pace), _admit_without_a_condition), "in flight, with"
    ),
    "turns that have read the same stage are all admitted": PlantedBug(_admit_without_a_condition, "in flight, with"),
    "every turn is called a success": PlantedBug(_believe_that_all_went_well, "is at 0.1.[01], and said"),
    "the fleet is listed once": PlantedBug(
        replacing("all_tenants", TenantFinder.list_once, TenantFinder), "are in no plan", ("_update_by_hand",)
    ),
    "an undo trusts the listing": PlantedBug(
        replacing("_select_of", _select_from_the_listing, TenantSelector), STILL_THERE
    ),
    "an undo forgets who failed and arrived": PlantedBug(
        replacing("may_have_been_moved", lambda outcome: outcome.result in ARRIVED, selector),
        STILL_THERE,
        ("_kill_an_update",),
    ),
    "a rollout is resumed after its undo": PlantedBug(
        replacing("_undo_of", always(None), Rollouts), "goes on after its tenants were moved back"
    ),
    "an alarm that recovered is overlooked": PlantedBug(
        replacing("went_off", lambda self, name, **_: self.alarms[name], FakeAlarms),
        "goes on after its alarm went off",
        ("_sound_the_alarm", "_silence_the_alarm"),
    ),
    "an approval is for any stage": PlantedBug(_approve_whatever_waits, "was taken for an approval of"),
    "a busy tenant is skipped": PlantedBug(
        all_of(_skip_the_busy, replacing("_failure_reason", _only_failures_count, Advancing)), "was not waited for"
    ),
    "a delete that has begun counts as done": PlantedBug(
        _take_a_delete_that_has_begun_for_done,
        "is at 0.[12].[01], and said",
        ("_delete_by_hand", "_kill_an_update", "_kill_a_turn"),
        range(400, 800),
    ),
    "an abort waits for the end of a bake": PlantedBug(
        replacing("_nothing_in_flight", _is_dead, Rollouts), "aborted with nobody in flight", ("_abort",)
    ),
    "a start is tried for minutes": PlantedBug(
        _try_for_minutes_to_start_an_update, "starts, but the rollout is", ("_throttle_starts",)
    ),
    "a map opens too many turns": PlantedBug(_open_more_turns_than_the_stage_allows, "one more comes"),
}
