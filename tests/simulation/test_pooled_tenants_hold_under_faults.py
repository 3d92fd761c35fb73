"""Tenants join the pool, leave it and are deleted, under faults: each is served one queue, and no message is lost.

``python -m tests.simulation --pool`` plays many more seeds.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.tenants import operations, pool_transitions, pooling
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.records import Metadata
from tests.simulation.planting import Bug, all_of, always, replacing, wrapping
from tests.simulation.pooled import play_seed
from tests.simulation.seeded_run import Broken

SEEDS = range(150)
BUG_SEEDS = range(400)


def play_all(seeds: range) -> Counter[str]:
    return sum((play_seed(seed) for seed in seeds), Counter())


def test_a_tenant_of_the_pool_is_served_one_queue_and_loses_no_message_whatever_happens() -> None:
    seen = play_all(SEEDS)
    joined = {"joined the pool", "joined the pool after a delete", "left messages in the pool"}
    assert joined | {"CREATE Success", "CREATE Failure", "DELETE Success", "Changed", "Refused"} <= set(seen)


@wrapping("_in_its_tier", operations)
def _a_move_forgets_the_shared_queue(original: Any, *args: Any) -> Any:
    return replace(original(*args), former_queue=None, former_queue_until=None)


BUGS: dict[str, tuple[Bug, str]] = {
    "a create that was accepted is overlooked": (
        all_of(
            replacing("pending_create", always(None), Lifecycle),
            replacing("create_accepted_at", always(None), Metadata),
        ),
        "joins the pool, but .* had been accepted before",
    ),
    "a tenant joins whatever it has": (
        replacing("why_not_pooled", always(None), pooling, pool_transitions),
        "joins the pool, but has|into the pool unasked",
    ),
    "a move forgets the shared queue": (_a_move_forgets_the_shared_queue, "is not told of berth-pool-"),
    "messages are given less time than they have": (
        replacing("POOL_RETENTION", pooling.POOL_RETENTION / 2, operations),
        "is told of berth-pool-. until",
    ),
}


@pytest.mark.parametrize(("bug", "found"), list(BUGS.values()), ids=BUGS)
def test_a_planted_bug_is_found(bug: Bug, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    bug(monkeypatch)
    with pytest.raises(Broken, match=f"(?s)seed [0-9]+: .*({found})"):
        play_all(BUG_SEEDS)
