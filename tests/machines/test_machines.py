"""Every workflow keeps the rules that neither the emulator nor a reader's eye would catch."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable
from pathlib import Path
from types import UnionType
from typing import Any

import pytest

from lambdas import runtime
from orchestrator import operations, tenant_stack
from orchestrator.operations import DEADLINE
from stacks import tenant_machines
from stacks.settings import Settings
from tests.machines import asl

FOLDER = Path(__file__).parents[2] / "statemachines"
FILES = sorted(FOLDER.glob("*.asl.json"))

USE_CASES: dict[str, Callable[..., Any]] = {
    "begin": operations.begin,
    "start_stack": tenant_stack.start_stack,
    "await_stack": tenant_stack.await_stack,
    "inspect_stack": tenant_stack.inspect_stack,
    "finish": operations.finish,
}
"""What the function of that name calls, and so what its state may say."""

FUNCTIONS = {"create_tenant": tenant_machines.CREATE_TENANT_FUNCTIONS}
DEPLOYED: dict[str, Callable[[Settings], str]] = {"create_tenant": tenant_machines.create_tenant_definition}
"""Each machine by the name of its file: what fills its placeholders, and its text as it is deployed."""


def name_of(file: Path) -> str:
    return file.name.removesuffix(".asl.json")


def machine_in(file: Path) -> asl.Machine:
    return asl.parse(file.read_text(encoding="utf-8"))


def outcomes_of(use_case: Callable[..., Any]) -> set[str]:
    """What a use case may say, from its signature; any of them may also be throttled, which is told as "again"."""
    returned = typing.get_type_hints(use_case)["return"]
    kinds = typing.get_args(returned) if isinstance(returned, UnionType) else (returned,)
    return {kind.outcome for kind in kinds} | {"again"}


for_each_machine = pytest.mark.parametrize("file", FILES, ids=name_of)


def test_there_are_machines_and_each_is_known_here() -> None:
    assert {name_of(file) for file in FILES} == set(FUNCTIONS) == set(DEPLOYED)


@pytest.mark.parametrize("check", asl.CHECKS, ids=lambda check: check.__name__)
@for_each_machine
def test_the_machine_keeps_the_rule(file: Path, check: asl.Check) -> None:
    assert check(machine_in(file)) == []


@for_each_machine
def test_the_machines_own_timeout_lies_beyond_the_deadline_that_its_handlers_keep(file: Path) -> None:
    assert asl.outlives(DEADLINE)(machine_in(file)) == []


@for_each_machine
def test_every_placeholder_is_filled_and_everything_that_is_filled_in_has_a_place(file: Path) -> None:
    deployed = asl.parse(DEPLOYED[name_of(file)](Settings()))
    assert asl.filled_by(set(FUNCTIONS[name_of(file)]))(deployed) == []


@for_each_machine
def test_numbers_are_numbers_once_they_are_deployed(file: Path) -> None:
    deployed = asl.parse(DEPLOYED[name_of(file)](Settings(await_stack_seconds=7)))
    seconds = [state["TimeoutSeconds"] for _, state in asl.tasks(deployed)]
    assert all(isinstance(each, int) for each in seconds)
    assert 7 in seconds


@for_each_machine
def test_a_state_calls_the_function_of_its_name(file: Path) -> None:
    functions = FUNCTIONS[name_of(file)]
    for state_name, state in asl.tasks(machine_in(file)):
        (placeholder,) = asl.PLACEHOLDER.findall(state["Arguments"]["FunctionName"])
        assert functions[placeholder] == re.sub(r"(?<!^)(?=[A-Z])", "_", state_name).lower()


@for_each_machine
def test_what_choices_read_is_what_use_cases_say(file: Path) -> None:
    machine = machine_in(file)
    functions = FUNCTIONS[name_of(file)]
    told = {}
    for name, state in asl.tasks(machine):
        (placeholder,) = asl.PLACEHOLDER.findall(state["Arguments"]["FunctionName"])
        use_case = USE_CASES.get(functions[placeholder])
        told[name] = outcomes_of(use_case) if use_case else set()
    assert asl.outcomes_are_read(told)(machine) == []


def test_outcomes_are_read_off_signatures() -> None:
    assert outcomes_of(operations.begin) == {"begun", "busy", "failed", "again"}
    assert outcomes_of(tenant_stack.await_stack) == {"working", "again"}


def test_an_outcome_reaches_the_machine_under_the_name_that_choices_read() -> None:
    assert runtime.tell(operations.GaveUp("It broke.", "stack-1")) == {
        "outcome": "failed",
        "reason": "It broke.",
        "failedStack": "stack-1",
    }
