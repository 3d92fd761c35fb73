"""Every workflow keeps the rules that neither the emulator nor a reader's eye would catch."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

import pytest

from lambdas import runtime
from orchestrator.rollouts.advancing import Advancing
from orchestrator.rollouts.gate import Gate
from orchestrator.rollouts.reviewing import Reviewing
from orchestrator.tenants import deleting, operations, tenant_queue, tenant_stack
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.outcomes import GaveUp
from stacks.settings import Settings
from stacks.tenants.machines import FUNCTIONS_OF, definition
from tests.machines import asl
from tests.machines.files import CHILDREN, MACHINES, OPERATIONS, PARTS, ROLLOUT, TURN, machine, part_of

USE_CASES: dict[str, Callable[..., Any]] = {
    "begin": operations.begin,
    "review_changes": tenant_stack.review_changes,
    "check_messages": deleting.check_messages,
    "start_stack": tenant_stack.start_stack,
    "await_stack": tenant_stack.await_stack,
    "inspect_stack": tenant_stack.inspect_stack,
    "finish": operations.finish,
    "settle_tenant_queue": tenant_queue.answer,
    "advance_rollout": Advancing.advance,
    "admit_tenant": Gate.admit,
    "record_outcome": Gate.record,
    "review_tenant": Reviewing.review,
}
"""What the function of that name calls, and so what its state may say."""

NAMED_OTHERWISE = {
    ("tenant_queue", "Settle"): "settle_tenant_queue",
    ("tenant_queue", "TellFailure"): "settle_tenant_queue",
    (ROLLOUT, "Advance"): "advance_rollout",
    (ROLLOUT, "GiveUp"): "advance_rollout",
    (TURN, "Admit"): "admit_tenant",
    (TURN, "Review"): "review_tenant",
    (TURN, "TellFailure"): "review_tenant",
}
"""States that do not bear their function's name: one function is two of a machine's states, or is about a tenant."""

SUCCEEDS_AT = {**dict.fromkeys(OPERATIONS, "Finish"), "tenant_queue": "Provided", ROLLOUT: "Succeeded", TURN: "Done"}

FAULTS_RECORDED_BY = {TURN: {"RecordOutcome", "TellFailure"}}

NUMBERS = {"AwaitStackSeconds": 7, "AwaitReviewSeconds": 11}
SETTINGS = Settings(
    await_stack_seconds=NUMBERS["AwaitStackSeconds"],
    await_review_seconds=NUMBERS["AwaitReviewSeconds"],
)

OTHERS_OF = {ROLLOUT: {"UpdateTenantMachineArn", "ReleaseBucketName"}}
"""What CloudFormation puts in that is no function's ARN."""


def function_of(part: str, state: asl.State) -> str:
    (placeholder,) = asl.PLACEHOLDER.findall(state["Arguments"]["FunctionName"])
    return FUNCTIONS_OF[part.partition("/")[0]][placeholder]


def deployed(part: str) -> asl.Machine:
    return part_of(asl.parse(definition(part.partition("/")[0], SETTINGS)), part)


def numbers(machine: asl.Machine) -> Iterator[object]:
    """How long its states wait, or may take, and how many children run at once."""
    for state in asl.states(machine).values():
        yield from (state[name] for name in ("TimeoutSeconds", "Seconds", "MaxConcurrency") if name in state)


def outcomes_of(use_case: Callable[..., Any]) -> set[str]:
    """What a use case may say, from its signature; any of them may also be throttled, which is told as "again"."""
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
def test_the_machine_keeps_the_rule(part: str, check: asl.Check) -> None:
    assert check(machine(part)) == []


@for_each_machine
def test_a_fault_ends_the_machine_red(stem: str) -> None:
    assert asl.faults_end_in_failure(machine(stem)) == []


@pytest.mark.parametrize("child", CHILDREN)
def test_a_fault_in_a_child_is_recorded(child: str) -> None:
    assert asl.faults_are_recorded_by(FAULTS_RECORDED_BY[child])(machine(child)) == []


@pytest.mark.parametrize("stem", sorted(set(MACHINES) - {ROLLOUT}))
def test_the_machines_own_timeout_lies_beyond_the_deadline_that_its_handlers_keep(stem: str) -> None:
    deadline = tenant_queue.PATIENCE if stem == "tenant_queue" else DEADLINE
    assert asl.outlives(deadline)(machine(stem)) == []


def test_a_rollout_may_be_paused_for_weeks() -> None:
    assert "TimeoutSeconds" not in machine(ROLLOUT)
    assert "TimeoutSeconds" not in asl.states(machine(ROLLOUT))["RunStage"]


def test_a_turn_outlives_the_update_that_it_waits_for() -> None:
    assert asl.states(machine(TURN))["Upgrade"]["TimeoutSeconds"] > machine("update_tenant")["TimeoutSeconds"]


@for_each_part
def test_no_state_but_the_last_one_ends_the_machine_green(part: str) -> None:
    assert asl.succeeds_at(SUCCEEDS_AT[part])(machine(part)) == []


@for_each_machine
def test_every_placeholder_is_filled_and_everything_that_is_filled_in_has_a_place(stem: str) -> None:
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
def test_what_choices_read_is_what_use_cases_say(part: str) -> None:
    told = {}
    for name, state in asl.functions(machine(part)):
        use_case = USE_CASES.get(function_of(part, state))
        told[name] = outcomes_of(use_case) if use_case else set()
    assert asl.outcomes_are_read(told)(machine(part)) == []


def test_outcomes_are_read_off_signatures() -> None:
    assert outcomes_of(operations.begin) == {"begun", "busy", "done", "failed", "again"}
    assert outcomes_of(tenant_stack.await_stack) == {"working", "again"}
    assert outcomes_of(Advancing.advance) == {"run", "bake", "await", "succeeded", "stopped", "again"}


def test_an_outcome_reaches_the_machine_under_the_name_that_choices_read() -> None:
    assert runtime.tell(GaveUp("It broke.", "stack-1")) == {
        "outcome": "failed",
        "reason": "It broke.",
        "failedStack": "stack-1",
        "throttled": False,
    }
