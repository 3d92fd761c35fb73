"""The six promises, in storms that seeds decide, and bugs put in on purpose: each is found out.

A test that fails names its seed and the command that plays it again. ``make soak`` plays many more.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from orchestrator.tenants.records import Operation, Status
from tests.simulation.planted import BUGS, Planted
from tests.simulation.voyage import OWNED, Broken, Happening, Voyage
from tests.simulation.weather import Weather

SEEDS = range(150)
MORE_SEEDS = range(450, 900)
"""As many as it may take to find a bug."""


def sail_all(
    seeds: range, weather: Weather | None = None, happenings: tuple[Happening, ...] | None = None
) -> Counter[str]:
    """What was seen in all of them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        voyage = Voyage(seed, weather, happenings)
        voyage.sail()
        seen += voyage.seen
    return seen


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    seen = sail_all(SEEDS)
    ends = {f"{operation} {status}" for operation in Operation for status in (Status.SUCCESS, Status.FAILURE)}
    settled = {f"{end}, settled" for end in ends}
    answers = {"Ready", "Provisioning", "BeingDeleted", "Deleted", "Failed"}
    orders = {"Accepted", "Unchanged", "Refused"}
    deaths = {f"{how}{where}" for how in ("was aborted", "timed out") for where in ("", " in the middle of a function")}
    trouble = {"held", "lost", "told again", "hung", "throttled", "crashed after a call", "old code", "listed late"}
    healed = {"settled", "taken over", "revived", "given back to service"}
    resources = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    resources |= {f"{kind} of a resource is rolled back" for kind in ("Create", "Update")}
    resources |= {"Delete of a resource: Provided", "forged: NotConfirmed", "shown late"}
    by_hand = {f"deleted by hand when {status}" for status in ("CREATE_COMPLETE", "CREATE_IN_PROGRESS")}
    intruders = {"somebody made a stack", "somebody forged an event", "somebody drew up changes"}
    others = {"described", "sent", "only recorded"} | resources | by_hand | intruders
    assert ends | settled | answers | orders | deaths | trouble | healed | others <= set(seen)


def test_tenants_of_teams_are_described_deleted_and_brought_back_by_their_own_resources_alone() -> None:
    seen = sail_all(MORE_SEEDS, happenings=OWNED)
    ends = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    own = {"described by its own resource", "revived by its own resource", "had by another after a rollback"}
    assert ends | own | {"forged: NotConfirmed"} <= set(seen)


def test_a_seed_tells_the_same_story_again() -> None:
    stories = []
    for _ in range(2):
        story: list[str] = []
        voyage = Voyage(4)
        voyage.harbour.log = story.append
        voyage.sail()
        stories.append([re.sub(" at 0x[0-9a-f]+", "", line) for line in story])
    assert stories[0] == stories[1]
    assert len(stories[0]) > 100


@pytest.mark.parametrize("planted", [pytest.param(planted, id=name) for name, planted in BUGS.items()])
def test_a_bug_does_not_survive_the_weather(planted: Planted, monkeypatch: pytest.MonkeyPatch) -> None:
    planted.bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?s)seed [0-9]+: .*({planted.found}).*python -m tests.simulation --seed [0-9]+"):
        sail_all(range(1_500), planted.weather, planted.happenings)
