"""Every workflow keeps the rules that neither the emulator nor a reader's eye would catch."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from types import UnionType
from typing import Any

import pytest

from lambdas import runtime
from orchestrator import deleting, operations, tenant_queue, tenant_stack
from orchestrator.deadlines import DEADLINE
from orchestrator.outcomes import GaveUp
from stacks.settings import Settings
from stacks.tenant_machines import FUNCTIONS_OF, definition
from tests.machines import asl
from tests.machines.files import MACHINES, OPERATIONS, machine

USE_CASES: dict[str, Callable[..., Any]] = {
    "begin": operations.begin,
    "review_changes": tenant_stack.review_changes,
    "check_messages": deleting.check_messages,
    "start_stack": tenant_stack.start_stack,
    "await_stack": tenant_stack.await_stack,
    "inspect_stack": tenant_stack.inspect_stack,
    "finish": operations.finish,
    "settle_tenant_queue": tenant_queue.settle,
}
"""What the function of that name calls, and so what its state may say."""

NAMED_OTHERWISE = {"Settle": "settle_tenant_queue", "TellFailure": "settle_tenant_queue"}
"""States that do not bear their function's name: one function is two of a machine's states."""

SUCCEEDS_AT = {**dict.fromkeys(OPERATIONS, "Finish"), "tenant_queue": "Provided"}

SECONDS = {"AwaitStackSeconds": 7, "AwaitReviewSeconds": 11}
SETTINGS = Settings(
    await_stack_seconds=SECONDS["AwaitStackSeconds"], await_review_seconds=SECONDS["AwaitReviewSeconds"]
)


def function_of(stem: str, state: asl.State) -> str:
    (placeholder,) = asl.PLACEHOLDER.findall(state["Arguments"]["FunctionName"])
    return FUNCTIONS_OF[stem][placeholder]


def deployed(stem: str) -> asl.Machine:
    return asl.parse(definition(stem, SETTINGS))


def times(machine: asl.Machine) -> Iterator[object]:
    """How long its states wait, or may take."""
    for state in asl.states(machine).values():
        yield from (state[name] for name in ("TimeoutSeconds", "Seconds") if name in state)


def outcomes_of(use_case: Callable[..., Any]) -> set[str]:
    """What a use case may say, from its signature; any of them may also be throttled, which is told as "again"."""
    returned = typing.get_type_hints(use_case)["return"]
    kinds = typing.get_args(returned) if isinstance(returned, UnionType) else (returned,)
    return {kind.outcome for kind in kinds} | {"again"}


for_each_machine = pytest.mark.parametrize("stem", MACHINES)


def test_there_are_machines_and_each_is_deployed() -> None:
    assert set(OPERATIONS) < set(MACHINES)
    assert set(MACHINES) == set(FUNCTIONS_OF) == set(SUCCEEDS_AT)


@pytest.mark.parametrize("check", asl.CHECKS, ids=lambda check: check.__name__)
@for_each_machine
def test_the_machine_keeps_the_rule(stem: str, check: asl.Check) -> None:
    assert check(machine(stem)) == []


@for_each_machine
def test_the_machines_own_timeout_lies_beyond_the_deadline_that_its_handlers_keep(stem: str) -> None:
    deadline = tenant_queue.PATIENCE if stem == "tenant_queue" else DEADLINE
    assert asl.outlives(deadline)(machine(stem)) == []


@for_each_machine
def test_no_state_but_the_last_one_ends_the_machine_green(stem: str) -> None:
    assert asl.succeeds_at(SUCCEEDS_AT[stem])(machine(stem)) == []


@for_each_machine
def test_every_placeholder_is_filled_and_everything_that_is_filled_in_has_a_place(stem: str) -> None:
    assert asl.filled_by(set(FUNCTIONS_OF[stem]))(deployed(stem)) == []


@for_each_machine
def test_numbers_are_numbers_once_they_are_deployed(stem: str) -> None:
    seconds = list(times(deployed(stem)))
    assert all(isinstance(each, int) or asl.is_expression(str(each)) for each in seconds)
    to_be_filled = asl.placeholders(machine(stem)) - set(FUNCTIONS_OF[stem])
    assert {SECONDS[name] for name in to_be_filled} <= set(seconds)


@for_each_machine
def test_a_state_calls_the_function_of_its_name(stem: str) -> None:
    for name, state in asl.tasks(machine(stem)):
        own = re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
        assert function_of(stem, state) == NAMED_OTHERWISE.get(name, own)


@for_each_machine
def test_what_choices_read_is_what_use_cases_say(stem: str) -> None:
    told = {}
    for name, state in asl.tasks(machine(stem)):
        use_case = USE_CASES.get(function_of(stem, state))
        told[name] = outcomes_of(use_case) if use_case else set()
    assert asl.outcomes_are_read(told)(machine(stem)) == []


def test_outcomes_are_read_off_signatures() -> None:
    assert outcomes_of(operations.begin) == {"begun", "busy", "failed", "again"}
    assert outcomes_of(tenant_stack.await_stack) == {"working", "again"}


def test_an_outcome_reaches_the_machine_under_the_name_that_choices_read() -> None:
    assert runtime.tell(GaveUp("It broke.", "stack-1")) == {
        "outcome": "failed",
        "reason": "It broke.",
        "failedStack": "stack-1",
    }
