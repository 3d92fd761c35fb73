"""Every state machine passes the checks that neither the emulator nor a reader would catch."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from datetime import timedelta
from types import UnionType
from typing import Any

import pytest

from lambdas import runtime
from orchestrator.events.purging import Purging
from orchestrator.rollouts.advancing import Advancing
from orchestrator.rollouts.gate import Gate
from orchestrator.rollouts.reviewing import Reviewing
from orchestrator.tenants import awaiting, operations, tenant_queue, tenant_stack, turns
from orchestrator.tenants.deadlines import DEADLINE, MAX_WAIT_FOR_TURN
from orchestrator.tenants.outcomes import GaveUp
from stacks.settings import Settings
from stacks.tenants.machines import FUNCTIONS_OF, definition
from tests.machines import asl
from tests.machines.files import CHILDREN, MACHINES, OPERATIONS, PARTS, ROLLOUT, TURN, machine, part_of

USE_CASES: dict[str, Callable[..., Any]] = {
    "begin": operations.begin,
    "await_admission": turns.await_admission,
    "start_stack": awaiting.start_and_wait,
    "await_stack": awaiting.await_stack,
    "inspect_stack": tenant_stack.inspect_stack,
    "finish": operations.finish,
    "settle_tenant_queue": tenant_queue.answer,
    "advance_rollout": Advancing.advance,
    "admit_tenant": Gate.admit,
    "record_outcome": Gate.record,
    "review_tenant": Reviewing.review,
    "purge_events": Purging.step,
}
"""The use case that each function calls, which determines the outcomes of its state."""

NAMED_OTHERWISE = {
    ("tenant_queue", "Settle"): "settle_tenant_queue",
    ("tenant_queue", "TellFailure"): "settle_tenant_queue",
    (ROLLOUT, "Advance"): "advance_rollout",
    (ROLLOUT, "GiveUp"): "advance_rollout",
    (TURN, "Admit"): "admit_tenant",
    (TURN, "Review"): "review_tenant",
    (TURN, "TellFailure"): "review_tenant",
    ("purge_events", "Purge"): "purge_events",
    ("purge_events", "RecordPurgeFailure"): "purge_events",
}
"""States whose names differ from their function's: two states share a function, or the function's name is longer."""

SUCCEEDS_AT = {
    **dict.fromkeys(OPERATIONS, "Finish"),
    "tenant_queue": "Provided",
    ROLLOUT: "Succeeded",
    TURN: "Done",
    "purge_events": "Purged",
}

FAULTS_RECORDED_BY = {TURN: {"RecordOutcome", "TellFailure"}}

NUMBERS = {"StartStackSeconds": 60, "AwaitStackSeconds": 7, "AwaitReviewSeconds": 11, "RetryAfterSeconds": 13}
SETTINGS = Settings(
    await_stack_seconds=NUMBERS["AwaitStackSeconds"],
    await_review_seconds=NUMBERS["AwaitReviewSeconds"],
    retry_after_seconds=NUMBERS["RetryAfterSeconds"],
)

OTHERS_OF = {ROLLOUT: {"UpdateTenantMachineArn", "ReleaseBucketName"}}
"""The placeholders that are not ARNs of functions."""


def function_of(part: str, state: asl.State) -> str:
    (placeholder,) = asl.PLACEHOLDER.findall(state["Arguments"]["FunctionName"])
    return FUNCTIONS_OF[part.partition("/")[0]][placeholder]


def deployed(part: str) -> asl.Machine:
    return part_of(asl.parse(definition(part.partition("/")[0], SETTINGS)), part)


def numbers(machine: asl.Machine) -> Iterator[object]:
    """The fields of states that are numbers: waits, timeouts and concurrency."""
    for state in asl.states(machine).values():
        yield from (state[name] for name in ("TimeoutSeconds", "Seconds", "MaxConcurrency") if name in state)


def outcomes_of(use_case: Callable[..., Any]) -> set[str]:
    """The outcomes of a use case, from its signature. Throttling adds "again"."""
    returned = typing.get_type_hints(use_case)["return"]
    kinds = typing.get_args(returned) if isinstance(returned, UnionType) else (returned,)
    return {kind.outcome for kind in kinds} | {"again"}


for_each_machine = pytest.mark.parametrize("stem", MACHINES)
for_each_part = pytest.mark.parametrize("part", PARTS)


def test_there_are_machines_and_each_is_deployed() -> None:
    assert set(OPERATIONS) < set(MACHINES)
    assert set(MACHINES) == set(FUNCTIONS_OF)
    assert set(PARTS) == set(SUCCEEDS_AT)


def test_every_map_has_its_children_checked() -> None:
    assert {f"{stem}/{name}" for stem in MACHINES for name in asl.maps(machine(stem))} == set(CHILDREN)
    assert not any(asl.maps(machine(child)) for child in CHILDREN)


@pytest.mark.parametrize("check", asl.CHECKS, ids=lambda check: check.__name__)
@for_each_part
def test_the_machine_passes_the_check(part: str, check: asl.Check) -> None:
    assert check(machine(part)) == []


@for_each_machine
def test_a_fault_fails_the_execution(stem: str) -> None:
    assert asl.faults_end_in_failure(machine(stem)) == []


@pytest.mark.parametrize("child", CHILDREN)
def test_a_fault_in_a_child_is_recorded(child: str) -> None:
    assert asl.faults_are_recorded_by(FAULTS_RECORDED_BY[child])(machine(child)) == []


@pytest.mark.parametrize("stem", sorted(set(MACHINES) - {ROLLOUT}))
def test_the_machines_timeout_is_longer_than_the_functions_deadline(stem: str) -> None:
    deadline = tenant_queue.PATIENCE if stem == "tenant_queue" else DEADLINE
    deadline += MAX_WAIT_FOR_TURN if stem == "create_tenant" else timedelta()
    assert asl.outlives(deadline)(machine(stem)) == []


def test_a_rollout_may_be_paused_for_weeks() -> None:
    assert "TimeoutSeconds" not in machine(ROLLOUT)
    assert "TimeoutSeconds" not in asl.states(machine(ROLLOUT))["RunStage"]


def test_a_turns_timeout_is_longer_than_the_updates() -> None:
    assert asl.states(machine(TURN))["Upgrade"]["TimeoutSeconds"] > machine("update_tenant")["TimeoutSeconds"]


@for_each_part
def test_only_the_last_state_ends_the_execution_successfully(part: str) -> None:
    assert asl.succeeds_at(SUCCEEDS_AT[part])(machine(part)) == []


@for_each_machine
def test_placeholders_and_their_values_match(stem: str) -> None:
    assert asl.filled_by(set(FUNCTIONS_OF[stem]) | OTHERS_OF.get(stem, set()))(deployed(stem)) == []


@for_each_machine
def test_numbers_are_numbers_once_they_are_deployed(stem: str) -> None:
    filled = [each for part in PARTS if part.partition("/")[0] == stem for each in numbers(deployed(part))]
    assert all(isinstance(each, int) or asl.is_expression(str(each)) for each in filled)
    to_be_filled = asl.placeholders(machine(stem)) - set(FUNCTIONS_OF[stem]) - OTHERS_OF.get(stem, set())
    assert {NUMBERS[name] for name in to_be_filled} <= set(filled)


@for_each_part
def test_a_state_calls_the_function_of_its_name(part: str) -> None:
    for name, state in asl.functions(machine(part)):
        own = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        assert function_of(part, state) == NAMED_OTHERWISE.get((part, name), own)


@for_each_part
def test_choices_read_exactly_the_outcomes_of_the_use_cases(part: str) -> None:
    outcomes = {}
    for name, state in asl.functions(machine(part)):
        use_case = USE_CASES.get(function_of(part, state))
        outcomes[name] = outcomes_of(use_case) if use_case else set()
    assert asl.outcomes_are_read(outcomes)(machine(part)) == []


def test_outcomes_are_derived_from_signatures() -> None:
    assert outcomes_of(operations.begin) == {"begun", "busy", "queued", "done", "failed", "again"}
    assert outcomes_of(awaiting.await_stack) == {"waiting", "settled", "again"}
    assert outcomes_of(Advancing.advance) == {"run", "bake", "await", "succeeded", "stopped", "again"}


def test_an_outcome_reaches_the_machine_under_the_name_that_choices_read() -> None:
    assert runtime.outcome_json(GaveUp("It broke.", "stack-1")) == {
        "outcome": "failed",
        "reason": "It broke.",
        "failedStack": "stack-1",
        "throttled": False,
    }
