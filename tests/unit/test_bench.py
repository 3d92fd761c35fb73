"""The simulated rollout is within the bounds that AWS sets, and what a load leaves behind is seen."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from botocore.exceptions import ConnectionClosedError

from bench.__main__ import main
from bench.load_checks import Execution, left_over, tenants_not_served, wrong_executions
from bench.load_clients import at_once, with_retries
from bench.measure import Result
from bench.rollout_simulation import (
    CEILINGS,
    MAX_CONCURRENCY,
    MAX_EVENTS,
    MAX_STATE_BYTES,
    MAX_TURN_TRANSITIONS,
    TENANTS_PER_CEILING,
    simulate,
)
from bench.simulated_aws import FAULTY, QUIET, Conditions
from orchestrator.client.transport import ApiAnswer
from orchestrator.tenants.ports import Publication
from tests.fakes.examples import ACME, NOON, QUEUE, VERSION, a_run, an_attempt
from tests.fakes.table import InMemoryTable

SMALL = 100
DROPPED = replace(FAULTY, drops_to_after=(1 / 3, 60.0))


@pytest.mark.parametrize("conditions", [QUIET, FAULTY, DROPPED], ids=["quiet", "faulty", "dropped"])
def test_every_tenant_has_its_turn_and_none_fails_because_of_throttling(conditions: Conditions) -> None:
    ran = simulate(SMALL, conditions, 1)

    failing = round(SMALL * conditions.failing)
    assert (ran.succeeded, ran.failed, ran.failed_by_throttling) == (SMALL - failing, failing, 0)
    assert ran.status == ("FAILED" if failing else "SUCCEEDED")


@pytest.mark.parametrize("conditions", [QUIET, FAULTY, DROPPED], ids=["quiet", "faulty", "dropped"])
def test_it_keeps_within_what_aws_allows(conditions: Conditions) -> None:
    ran = simulate(SMALL, conditions, 1)

    assert ran.seconds > ran.floor
    assert ran.peak_in_flight <= MAX_CONCURRENCY
    assert max(ran.events, ran.child_events) <= MAX_EVENTS
    assert ran.state_bytes <= MAX_STATE_BYTES
    assert all(1 <= limit <= MAX_CONCURRENCY for _, limit in ran.limits)


@pytest.mark.parametrize("conditions", [QUIET, FAULTY], ids=["quiet", "faulty"])
@pytest.mark.parametrize("ceiling", CEILINGS)
def test_however_few_a_stage_moves_at_once_a_turn_costs_few_transitions(ceiling: int, conditions: Conditions) -> None:
    ran = simulate(TENANTS_PER_CEILING, conditions, 1, ceiling)

    assert ran.peak_in_flight <= ceiling
    assert ran.turn_transitions <= MAX_TURN_TRANSITIONS
    assert ran.child_events < MAX_EVENTS / 25


# The clients of the load test


def answering(*answers: ApiAnswer | int) -> Callable[[], ApiAnswer]:
    """Returns one answer per call. A number is its status; zero is a connection that breaks."""
    left = iter(answers)

    def call() -> ApiAnswer:
        answer = next(left)
        if answer == 0:
            raise ConnectionClosedError(endpoint_url="http://127.0.0.1")
        return answer if isinstance(answer, ApiAnswer) else ApiAnswer(answer, {})

    return call


def in_a_while() -> float:
    return time.monotonic() + 3_600


def test_a_client_tries_again_when_it_is_told_to_and_no_sooner() -> None:
    paused: list[float] = []

    answered = with_retries(answering(ApiAnswer(503, {}, 2.0), 429, 0, 202), deadline=in_a_while(), pause=paused.append)

    assert (answered.status, answered.retries, answered.is_error) == (202, 3, False)
    assert paused[0] == 2.0
    assert all(0 < pause <= 5 for pause in paused[1:])


def test_every_call_is_made_once_and_answered_in_its_place() -> None:
    calls = [answering(200 + number) for number in range(50)]

    answered = at_once(calls, clients=4, deadline=in_a_while())

    assert [each.status for each in answered] == [200 + number for number in range(50)]


# The checks after the load test


def serve(table: InMemoryTable, version: str = VERSION) -> None:
    run = a_run(version=version)
    table.begin(run, at=NOON)
    table.publish(run, Publication("stack", QUEUE, version, None), at=NOON)


def test_a_tenant_that_is_served_by_one_create_is_as_it_should_be() -> None:
    table = InMemoryTable()
    serve(table)

    assert tenants_not_served(table, [ACME]) == []
    assert left_over(table, {"Undelivered": 0}) == []


def test_a_tenant_that_nobody_created_is_found() -> None:
    assert tenants_not_served(InMemoryTable(), [ACME]) == [
        "acme: its operations are not one create that succeeded, but none",
        "acme: no queue is published",
    ]


def an_execution(number: int = 1, status: str = "SUCCEEDED", begins: int = 0, ends: int | None = 1) -> Execution:
    ended_at = None if ends is None else NOON + timedelta(seconds=ends)
    return Execution(an_attempt(number).name, status, NOON + timedelta(seconds=begins), ended_at)


def test_each_tenant_has_exactly_one_execution_and_that_has_succeeded() -> None:
    first, second = an_execution(), an_execution(2)

    assert wrong_executions([first], [ACME], VERSION) == []
    assert wrong_executions([], [ACME], VERSION) == [f"{first.name}: never executed"]
    assert wrong_executions([first, second], [ACME], VERSION) == [
        f"{second.name}: executed, though one execution per tenant was expected"
    ]
    assert wrong_executions([an_execution(status="FAILED")], [ACME], VERSION) == [f"{first.name}: FAILED"]


# The output of a run


def test_only_the_chosen_part_is_measured_and_the_others_keep_their_figures(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    figures = {"one": 1.0, "other": 2.0}
    parts = {part: lambda part=part: [Result(f"{part}: time", figures[part], "s", "<= 1")] for part in figures}

    assert main([], parts=parts, file=file) == 0
    figures.update(one=3.0, other=4.0)
    assert main(["other"], parts=parts, file=file) == 0

    assert [(each["part"], each["value"]) for each in json.loads(file.read_text())] == [("one", 1.0), ("other", 4.0)]


def test_a_count_that_must_be_zero_fails_the_run_and_is_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "results.json"
    broken = Result("errors", 12, "", "0", tuple(f"error {number}" for number in range(12)))

    assert main([], parts={"load": lambda: [broken]}, file=file) == 1

    shown = capsys.readouterr().out
    assert "error 9" in shown
    assert "error 10" not in shown
    assert "and 2 more" in shown
    assert "details" not in file.read_text()
