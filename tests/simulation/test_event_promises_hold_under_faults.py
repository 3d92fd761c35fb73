"""The promises of the event plane hold in seeded runs with faults.

A failing test names its seed, which fails in the same way again.
"""

from __future__ import annotations

from orchestrator.events.delivery.delivering import Outcome
from orchestrator.events.delivery.replays import ReplayStatus
from orchestrator.events.delivery.rounds import ResendResult
from tests.simulation.events.planted_bugs import SEEDS
from tests.simulation.events.seeded_events import SeededEvents, play_seed


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    outcomes = {f"outcome {outcome}" for outcome in Outcome}
    faults = {
        "crashed before a call",
        "crashed after a call",
        "throttled",
        "suspended",
        "message lost",
        "message twice",
        "message not sent",
        "dead letter",
        "stream repeated a batch",
        "stream lost a batch",
        "index lagged",
        "row damaged",
        "inbox switched",
        "partition was busy",
        "read gave up on a busy partition",
        "write gave up on a busy partition",
        "event refused by a busy partition",
    }
    requests = {
        *(
            f"connection {done}"
            for done in ("created", "paused", "resumed", "rotated", "moved", "filtered anew", "deleted")
        ),
        *(f"replay {done}" for done in ("started", "paused", "resumed", "cancelled")),
    }
    replays = {f"replay is {status}" for status in ReplayStatus}
    ends = {"acknowledged an event", "acknowledgement repeated", "purge repeated", "purge finished"}
    asked = {f"replay asked for what is {state}" for state in ("new", "failed", "delivered")}
    # Nobody asks often enough for the limit.
    resends = {f"resend {result}" for result in ResendResult if result is not ResendResult.EXHAUSTED}
    seen = set().union(*(play_seed(seed) for seed in SEEDS))
    assert {*outcomes, *faults, *resends, *requests, *replays, *ends, *asked} <= seen


def test_the_same_seed_plays_the_same_run() -> None:
    first, again = SeededEvents(4), SeededEvents(4)
    for run in (first, again):
        run.play()
    assert first.env.table == again.env.table
    assert first.env.replays == again.env.replays
    assert first.env.seen == again.env.seen
