"""docs/costs.md follows from its prices and counts, which are those of the benchmark and of the schedules."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from bench.delivery_capacity import PATHS
from bench.event_capacity import FLOOR
from orchestrator.events.delivery.sweeping import LOOKED_AT_EVERY
from orchestrator.reconciling.health import POOL_EVERY
from tests.costs import COUNTS, OPERATIONS, PAGE, figures, page

ROOT = Path(__file__).parents[2]
MEASURED = {each["name"]: each["value"] for each in json.loads((ROOT / "bench" / "results.json").read_text("utf-8"))}


def test_the_page_follows_from_the_counts() -> None:
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "run: python -m tests.costs"
    assert written.count("\n") <= 120
    for figure in figures():
        assert figure in " ".join(written.split())


def test_the_units_of_every_path_of_an_event_are_those_of_the_benchmark() -> None:
    assert COUNTS["events"] == {
        path.name: {"requests": path.requests, "write units": path.write_units} for path in FLOOR
    }
    assert COUNTS["deliveries"] == {
        path.name: {"requests": path.requests, "write units": path.write_units, "read units": path.read_units}
        for path in PATHS
    }


def test_the_transitions_of_a_turn_and_of_a_first_update_are_those_of_the_benchmark() -> None:
    turns = [value for name, value in MEASURED.items() if "transitions per turn" in name]
    assert OPERATIONS["turn in a rollout, without the update"]["state transitions"] == min(turns)
    assert OPERATIONS["turn in a rollout with 50 in flight"]["state transitions"] == max(turns)
    transitions, calls = (
        MEASURED[f"first update to a release: {counted}"]
        for counted in ("state transitions", "calls of functions, the stack's own included")
    )
    # The page counts the call of the API's function, too.
    assert f"{transitions} transitions and {calls + 1} calls" in page()


def test_the_schedules_are_those_of_the_page() -> None:
    assert timedelta(minutes=1) == POOL_EVERY
    assert timedelta(minutes=15) == LOOKED_AT_EVERY


def test_the_times_of_the_model_of_the_pace() -> None:
    text = (ROOT / "docs" / "decisions" / "rollouts-adapt-their-pace.md").read_text(encoding="utf-8")
    for fleet in ("2,000 tenants", "100,000 tenants in 50 accounts"):
        for world in ("quiet", "with faults"):
            value = MEASURED[f"rollout of {fleet}, {world}: time / one mutating call per tenant"]
            assert f"| {fleet}, {world} | {value:.2f} |" in text
