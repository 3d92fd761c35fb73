"""The promises of rollouts hold in seeded runs with faults.

A failing test names its seed, which fails in the same way again.
"""

from __future__ import annotations

from collections import Counter

from orchestrator.rollouts.records import Result, RolloutStatus
from tests.simulation.rollouts.seeded_rollout import SeededRollout, play_seed

SEEDS = range(200)
OFTEN = {
    *("pause", "resume", "abort", "approve", "promote", "undo", "retry", "resumed after a halt", "withdrawn"),
    *("change concurrency", "change bake", "change tolerance"),
}
"""Events that happen in every tenth seed, at least."""


def test_the_promises_hold_and_everything_that_may_happen_does() -> None:
    ends = {status for status in RolloutStatus if not status.active}
    tenants = {f"tenant {result}" for result in Result}
    operators = {"pause", "resume", "abort", "aborted at once", "resumed after a halt", "dry run", "undo", "retry"}
    operators |= {"closed", "not resumed after its undo"}
    approvals = {"approve", "approved this", "approved again", "approved another"}
    by_hand = {"pinned", "updated by hand", "deleted by hand", "created by hand"}
    faults = {"killed", "turn killed", "alarm"}
    seen, in_seeds = Counter[str](), Counter[str]()
    for seed in SEEDS:
        seen_there = play_seed(seed)
        seen += seen_there
        in_seeds.update(what for what, number in seen_there.items() if number)
    assert {*ends, *tenants, *operators, *approvals, *by_hand, *faults} <= set(seen)
    rare = {what: in_seeds[what] for what in OFTEN if in_seeds[what] < len(SEEDS) / 10}
    assert not rare, f"these happened in fewer than every tenth of {len(SEEDS)} seeds: {rare}"


def test_the_same_seed_plays_the_same_run() -> None:
    first, again = SeededRollout(4), SeededRollout(4)
    for run in (first, again):
        run.play()
    assert first.rollout == again.rollout
    assert first.fleet.stacks.calls == again.fleet.stacks.calls
    assert first.seen == again.seen
