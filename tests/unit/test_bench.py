"""The benchmarks measure correctly.

The simulated rollout is the same every time, and within the bounds that AWS sets. What a load leaves behind is seen.
"""

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
from bench.load_checks import Execution, left_over, max_at_once, tenants_not_served, wrong_executions
from bench.load_clients import Answered, at_once, with_retries
from bench.measure import Result, percentile
from bench.rollout_simulation import (
    CEILINGS,
    MAX_CONCURRENCY,
    MAX_EVENTS,
    MAX_STATE_BYTES,
    MAX_TURN_TRANSITIONS,
    TENANTS_PER_CEILING,
    SimulatedRollout,
    floor,
    simulate,
)
from bench.simulated_aws import FAULTY, QUIET, Conditions, Quota
from bench.simulated_update import MUTATIONS, READS, REVIEWED_MUTATIONS, REVIEWED_READS
from orchestrator.client.transport import ApiAnswer
from orchestrator.tenants.ports import Publication
from tests.fakes.examples import ACME, NEXT_VERSION, NOON, QUEUE, QUEUE_TABOO, VERSION, a_run, an_attempt
from tests.fakes.table import InMemoryTable

SMALL = 100
PLENTY = replace(QUIET, mutations_per_second=1_000, mutations_burst=1_000, reads_per_second=1_000, reads_burst=1_000)
DROPPED = replace(FAULTY, drops_to_after=(1 / 3, 60.0))


def test_a_seed_says_it_all() -> None:
    assert simulate(SMALL, FAULTY, 7) == simulate(SMALL, FAULTY, 7)
    assert simulate(SMALL, FAULTY, 7) != simulate(SMALL, FAULTY, 8)


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


def test_an_update_makes_these_calls_when_nothing_goes_wrong() -> None:
    rollout = SimulatedRollout(SMALL, PLENTY, 1)
    ran = rollout.run()

    assert ran.throttled_calls == 0
    # Only the first tenant, alone in its stage, is reviewed by a change set of its own.
    assert rollout.aws.mutations.granted == REVIEWED_MUTATIONS + (SMALL - 1) * MUTATIONS
    assert rollout.aws.reads.granted == REVIEWED_READS + (SMALL - 1) * READS


def test_the_floor_is_one_mutating_call_per_tenant() -> None:
    assert floor(300, QUIET) == pytest.approx(300 / 1.5)
    assert floor(300, replace(QUIET, drops_to_after=(0.5, 100.0))) == pytest.approx(100 + (300 - 150) / 0.75)


def test_a_quota_grants_its_burst_at_once_and_the_rest_as_it_fills() -> None:
    quota = Quota(rate=2, burst=3)

    assert [quota.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [quota.take(0.5), quota.take(0.5)] == [True, False]
    quota.change(1, 0.5)
    assert [quota.take(1.0), quota.take(1.5)] == [False, True]


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


@pytest.mark.parametrize("status", [400, 404, 409, 424])
def test_a_refusal_is_an_answer(status: int) -> None:
    answered = with_retries(answering(status), deadline=in_a_while(), pause=lambda _: pytest.fail("waited"))

    assert (answered.status, answered.retries, answered.is_error) == (status, 0, True)


def test_a_clients_patience_has_an_end() -> None:
    paused: list[float] = []

    tired = with_retries(answering(*[503] * 60), deadline=in_a_while(), pause=paused.append)
    late = with_retries(answering(ApiAnswer(503, {}, 2.0)), deadline=time.monotonic() + 1, pause=paused.append)

    assert (tired.status, tired.retries, len(paused)) == (503, 59, 59)
    assert (late.status, late.retries, late.is_error) == (503, 0, True)


def test_every_call_is_made_once_and_answered_in_its_place() -> None:
    calls = [answering(200 + number) for number in range(50)]

    answered = at_once(calls, clients=4, deadline=in_a_while())

    assert [each.status for each in answered] == [200 + number for number in range(50)]


def test_an_answer_is_an_error_unless_it_is_the_queue_or_a_promise_of_it() -> None:
    assert [status for status in (0, 200, 202, 301, 404, 503) if Answered(status, 0.1, 0).is_error] == [
        0,
        301,
        404,
        503,
    ]


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


def test_a_tenant_that_failed_is_found_with_its_cause() -> None:
    table, run = InMemoryTable(), a_run()
    table.begin(run, at=NOON)
    table.fail(run, QUEUE_TABOO, NOON)

    problems = tenants_not_served(table, [ACME])

    assert problems[0].startswith("acme: its operations are not one create that succeeded, but CREATE Failure (")
    assert QUEUE_TABOO.reason in problems[0]


def test_a_tenant_that_is_stuck_is_found_in_its_rows_and_in_the_index() -> None:
    table, run = InMemoryTable(), a_run()
    table.begin(run, at=NOON)

    assert tenants_not_served(table, [ACME]) == [
        "acme: its operations are not one create that succeeded, but CREATE Started",
        "acme: no queue is published",
        f"acme: still locked by {run.execution}",
    ]
    assert left_over(table, {}) == [f"acme: {run.execution} is unfinished"]


def test_an_operation_beside_the_create_is_found() -> None:
    table = InMemoryTable()
    serve(table)
    serve(table, NEXT_VERSION)

    assert tenants_not_served(table, [ACME]) == [
        "acme: its operations are not one create that succeeded, but CREATE Success, CREATE Success"
    ]


def test_a_dead_letter_is_found() -> None:
    assert left_over(InMemoryTable(), {"Undelivered": 0, "NotClosed": 2}) == ["NotClosed: 2 messages"]


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


def test_executions_that_overlap_are_counted_and_those_that_follow_each_other_are_not() -> None:
    assert max_at_once([]) == 0
    assert max_at_once([an_execution(begins=0, ends=5), an_execution(begins=5, ends=9)]) == 1
    overlapping = [an_execution(begins=0, ends=6), an_execution(begins=5, ends=None), an_execution(begins=7, ends=9)]
    assert max_at_once(overlapping) == 2


# The output of a run


def test_a_percentile_is_one_of_the_values() -> None:
    assert [percentile(range(1, 101), part) for part in (50, 99, 100)] == [50, 99, 100]
    assert [percentile([7.0], part) for part in (50, 99)] == [7.0, 7.0]


def test_only_the_chosen_part_is_measured_and_the_others_keep_their_figures(tmp_path: Path) -> None:
    file = tmp_path / "results.json"
    figures = {"one": 1.0, "other": 2.0}
    parts = {part: lambda part=part: [Result(f"{part}: time", figures[part], "s", "<= 1")] for part in figures}

    assert main([], parts=parts, file=file) == 0
    figures.update(one=3.0, other=4.0)
    assert main(["other"], parts=parts, file=file) == 0

    assert [(each["part"], each["value"]) for each in json.loads(file.read_text())] == [("one", 1.0), ("other", 4.0)]


def test_a_part_that_does_not_exist_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["laod"], parts={"load": list}, file=tmp_path / "results.json")

    assert "there is no part laod: choose from load" in capsys.readouterr().err


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
