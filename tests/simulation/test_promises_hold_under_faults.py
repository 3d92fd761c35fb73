"""The promises hold in seeded runs with faults.

A failing test names its seed and the command that replays it. ``make soak`` plays many more seeds.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections import Counter

from orchestrator.tenants.records import Operation, Status
from tests.simulation.actions import STACKS_CHANGED_BY_HAND, TEAMS_ALONE, Action
from tests.simulation.seeded_run import SeededRun

SEEDS = range(150)
ENOUGH_SEEDS = range(300)
"""The seeds that it takes to see everything that may happen."""
MORE_SEEDS = range(450, 900)
"""The seeds that it takes to see what is rare."""


def play_all(seeds: range, actions: tuple[Action, ...] | None = None) -> Counter[str]:
    """Play all seeds and return what was seen in them."""
    seen: Counter[str] = Counter()
    for seed in seeds:
        run = SeededRun(seed, actions=actions)
        run.play()
        seen += run.seen
    return seen


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    seen = play_all(ENOUGH_SEEDS)
    ends = {f"{operation} {status}" for operation in Operation for status in (Status.SUCCESS, Status.FAILURE)}
    settled = {f"{end}, settled" for end in ends}
    answers = {"Ready", "Provisioning", "BeingDeleted", "Deleted", "Failed"}
    orders = {"Accepted", "Unchanged", "Refused"}
    aborts = {f"{how}{where}" for how in ("was aborted", "timed out") for where in ("", " in the middle of a function")}
    faults = {
        "suspended",
        "lost",
        "called twice",
        "hung",
        "throttled",
        "crashed after a call",
        "old code",
        "listed late",
    }
    healed = {"settled", "taken over", "revived", "given back to service"}
    resources = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    resources |= {f"{kind} of a resource is rolled back" for kind in ("Create", "Update")}
    resources |= {"Delete of a resource: Provided", "forged: NotConfirmed", "shown late"}
    by_hand = {f"deleted by hand when {status}" for status in ("CREATE_COMPLETE", "CREATE_IN_PROGRESS")}
    by_hand |= {"changed by hand"}
    attacks = {"somebody made a stack", "somebody forged an event", "somebody drew up changes"}
    others = {"described", "sent", "only recorded"} | resources | by_hand | attacks
    assert ends | settled | answers | orders | aborts | faults | healed | others <= set(seen)


def test_the_promises_hold_for_updates_that_were_reviewed_before_and_stacks_that_are_changed_by_hand() -> None:
    seen = play_all(SEEDS, actions=STACKS_CHANGED_BY_HAND)
    assert {"changed by hand", "updated without a change set"} <= set(seen)


def test_only_the_resource_that_owns_a_tenant_describes_deletes_and_brings_it_back() -> None:
    seen = play_all(MORE_SEEDS, actions=TEAMS_ALONE)
    ends = {f"{kind} of a resource: {end}" for kind in ("Create", "Update") for end in ("Provided", "NotProvided")}
    own = {"described by its own resource", "revived by its own resource", "had by another after a rollback"}
    assert ends | own | {"forged: NotConfirmed"} <= set(seen)


def test_a_seed_plays_the_same_run_in_every_process() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "41"]
    processes = [
        subprocess.Popen(command, env={**os.environ, "PYTHONHASHSEED": number}, stdout=subprocess.PIPE, text=True)
        for number in ("1", "2", "3")
    ]
    first, *others = [re.sub(" at 0x[0-9a-f]+", "", process.communicate()[0]) for process in processes]
    assert len(first.splitlines()) > 100
    assert others == [first, first]
