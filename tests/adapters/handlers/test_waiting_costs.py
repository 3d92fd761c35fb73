"""What a create costs in addition if it waits for its turn, which docs/costs.json has."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from bench.item_sizes import UNIT_BYTES, item_size
from orchestrator.adapters.dynamodb.create_turns import turns_row
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_turns import MAX_CREATES_AT_ONCE, CreateTurns
from orchestrator.tenants.records import Run
from tests.adapters.handlers.functions import Functions, step
from tests.costs import OPERATIONS
from tests.fakes import NOON, a_release, a_run

COUNTED = OPERATIONS["wait for a turn"]
MACHINE = Path(__file__).parents[3] / "statemachines" / "create_tenant.asl.json"
READS = {"dynamodb.GetItem", "dynamodb.Query"}
WRITES = {"dynamodb.PutItem", "dynamodb.UpdateItem", "dynamodb.DeleteItem"}
MOST_UNITS = 11
CALLS = "arn:aws:states:::lambda:invoke"


class Storm:
    """More creates than have their turn at once, and the requests of their steps."""

    def __init__(self, functions: Functions) -> None:
        self.functions = functions
        for operation in ("SendTaskHeartbeat", "SendTaskSuccess"):
            functions.answer(operation, {})
        functions.table.record_release(a_release())
        self._runs = 0

    def a_create(self) -> Run:
        self._runs += 1
        return a_run(tenant=TenantId(f"tenant-{self._runs}"), started_at=self.functions.clock.now())

    def step(self, name: str, run: Run, *, expected: str | None, **more: object) -> Counter[str]:
        before = len(self.functions.sent)
        assert step(self.functions, name, run, **more).get("outcome") == expected
        columns: Counter[str] = Counter()
        for request, sent in self.functions.sent[before:]:
            if request == "dynamodb.TransactWriteItems":
                columns["write units"] += 2 * len(sent["TransactItems"])
            elif request in READS | WRITES:
                columns["reads" if request in READS else "write units"] += 1
        return columns

    def begin(self, run: Run, *, expected: str) -> Counter[str]:
        return self.step("begin", run, expected=expected)

    def end(self, run: Run) -> Counter[str]:
        """Let a create end, which gives its turn to the next."""
        failure = {"Error": "Broken", "Cause": "Something was broken."}
        return self.step("record_failure", run, expected=None, failure=failure)

    def fill(self) -> list[Run]:
        """As many creates as have their turn at once."""
        begun = []
        while step(self.functions, "begin", run := self.a_create())["outcome"] == "begun":
            begun.append(run)
        return begun


@pytest.fixture
def storm(functions: Functions) -> Storm:
    return Storm(functions)


def test_the_reads_and_writes_of_a_create_that_waits(storm: Storm) -> None:
    storm.begin(storm.a_create(), expected="begun")  # The first step of a process reads the release.
    at_once = storm.begin(storm.a_create(), expected="begun")
    first, second, *_ = storm.fill()
    ended_alone = storm.end(first)
    storm.fill()
    waits = storm.a_create()
    more = storm.begin(waits, expected="queued")
    more += storm.step("await_admission", waits, expected="waiting", taskToken="the token of the state")
    more += storm.end(second)
    more += storm.begin(waits, expected="begun")
    more.subtract(ended_alone + at_once)
    assert dict(more) == {column: COUNTED[column] for column in ("reads", "write units")}


def test_the_states_and_calls_of_a_create_that_waits() -> None:
    states: dict[str, Any] = json.loads(MACHINE.read_text(encoding="utf-8"))["States"]
    (waits,) = (each["Next"] for each in states["HasBegun"]["Choices"] if "'queued'" in each["Condition"])
    again = ["Begin", states["Begin"]["Next"], waits]
    assert states[waits]["Next"] == again[0]
    calls = [name for name in again if str(states[name].get("Resource", "")).startswith(CALLS)]
    assert (COUNTED["state transitions"], COUNTED["function calls"]) == (len(again), len(calls))


def test_the_row_of_all_turns_stays_small() -> None:
    """Each create writes it twice."""
    turns = CreateTurns.initial(0, NOON)
    for number in range(MAX_CREATES_AT_ONCE):
        tenant = TenantId(f"{number:08}-0000-4000-8000-000000000000")
        turns = turns.taken(a_run(tenant=tenant).execution, tenant, NOON)
    assert item_size(turns_row(turns)) / UNIT_BYTES <= MOST_UNITS
