"""The six promises, in storms that seeds decide, and bugs put in on purpose: each is found out.

A test that fails names its seed and the command that plays it again. ``make soak`` plays many more.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from orchestrator.tenants.records import Operation, Status
from tests.simulation.actions import TEAMS_ALONE, Action
from tests.simulation.faults import Faults
from tests.simulation.planted_bugs import BUGS, PlantedBug
from tests.simulation.seeded_run import Broken, SeededRun

SEEDS = range(150)
MORE_SEEDS = range(450, 900)
"""As many as it may take to find a bug."""


def play_all(seeds: range, faults: Faults | None = None, actions: tuple[Action, ...] | None = None) -> Counter[str]:
    """What was seen in all of them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        run = SeededRun(seed, faults, actions)
        run.play()
        seen += run.seen
    return seen


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    seen = play_all(SEEDS)
    ends = {f"{operation} {status}" for operation in Operation for status in (Status.SUCCESS, Status.FAILURE)}
    settled = {f"{end}, settled" for end in ends}
    answers = {"Ready", "Provisioning", "BeingDeleted", "Deleted", "Failed"}
    orders = {"Accepted", "Unchanged", "Refused"}
    deaths = {f"{how}{where}" for how in ("was aborted", "timed out") for where in ("", " in the middle of a function")}
    fault = {"suspended", "lost", "told again", "hung", "throttled", "crashed after a call", "old code", "listed late"}
    healed = {"settled", "taken over", "revived", "given back to service"}
    resources = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    resources |= {f"{kind} of a resource is rolled back" for kind in ("Create", "Update")}
    resources |= {"Delete of a resource: Provided", "forged: NotConfirmed", "shown late"}
    by_hand = {f"deleted by hand when {status}" for status in ("CREATE_COMPLETE", "CREATE_IN_PROGRESS")}
    intruders = {"somebody made a stack", "somebody forged an event", "somebody drew up changes"}
    others = {"described", "sent", "only recorded"} | resources | by_hand | intruders
    assert ends | settled | answers | orders | deaths | fault | healed | others <= set(seen)


def test_tenants_of_teams_are_described_deleted_and_brought_back_by_their_own_resources_alone() -> None:
    seen = play_all(MORE_SEEDS, actions=TEAMS_ALONE)
    ends = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    own = {"described by its own resource", "revived by its own resource", "had by another after a rollback"}
    assert ends | own | {"forged: NotConfirmed"} <= set(seen)


def test_a_seed_tells_the_same_story_again() -> None:
    scenarios = []
    for _ in range(2):
        scenario: list[str] = []
        run = SeededRun(4)
        run.env.log = scenario.append
        run.play()
        scenarios.append([re.sub(" at 0x[0-9a-f]+", "", line) for line in scenario])
    assert scenarios[0] == scenarios[1]
    assert len(scenarios[0]) > 100


@pytest.mark.parametrize("planted", [pytest.param(planted, id=name) for name, planted in BUGS.items()])
def test_a_bug_does_not_survive_the_weather(planted: PlantedBug, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?s)seed [0-9]+: .*({planted.found}).*python -m tests.simulation --seed [0-9]+"):
        play_all(range(1_500), planted.faults, planted.actions)
