"""Where each outcome leads, in each workflow, and how many transitions the straight path takes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lambdas.runtime import tell
from orchestrator.outcomes import Again, Begun, Busy, Done, Draining, Empty, GaveUp, Gone, NotReady, Working
from orchestrator.tenant_queue import NotProvided, Provided, Waiting
from tests.fakes import QUEUE, VERSION, stack_arn
from tests.machines import asl
from tests.machines.files import MACHINES, OPERATIONS, machine
from tests.machines.test_machines import USE_CASES, function_of, outcomes_of

THROTTLED = {"outcome": "again", "reason": "Rate exceeded"}
DONE = Done(stack_arn(), QUEUE, VERSION)
BROKE = GaveUp("It broke.", stack_arn())

MOST_TRANSITIONS = 9
"""Of an operation that runs into nothing. They are what Step Functions is paid for."""


def begun(then: str) -> list[tuple[dict[str, Any], str]]:
    return [
        (tell(Begun()), then),
        (tell(Busy("another execution")), "AwaitTurn"),
        (tell(GaveUp("Another operation owned the tenant.")), "RecordFailure"),
        (THROTTLED, "AwaitTurn"),
    ]


SERVED = [
    (tell(DONE), "Finish"),
    (tell(Working()), "AwaitStack"),
    (tell(NotReady()), "AwaitQueue"),
    (tell(Again("the stack is gone")), "PauseBeforeStart"),
    (THROTTLED, "PauseBeforeStart"),
    (tell(BROKE), "RecordFailure"),
]

LEADS: Mapping[tuple[str, str], list[tuple[dict[str, Any], str]]] = {
    ("create_tenant", "HasBegun"): begun("StartStack"),
    ("create_tenant", "HasSettled"): SERVED,
    ("update_tenant", "HasBegun"): begun("ReviewChanges"),
    ("update_tenant", "HasSettled"): SERVED,
    ("delete_tenant", "HasBegun"): begun("CheckMessages"),
    ("delete_tenant", "IsEmpty"): [
        (tell(Empty()), "StartStack"),
        (tell(Draining("inbound queue: 2 visible")), "AwaitDrain"),
        (tell(GaveUp("There are still messages.")), "RecordFailure"),
        (THROTTLED, "AwaitDrain"),
    ],
    ("delete_tenant", "HasSettled"): [
        (tell(Gone()), "Finish"),
        (tell(Working()), "AwaitStack"),
        (tell(Again("the stack is DELETE_FAILED")), "PauseBeforeStart"),
        (THROTTLED, "PauseBeforeStart"),
        (tell(BROKE), "RecordFailure"),
    ],
    ("tenant_queue", "IsSettled"): [
        (tell(Provided(QUEUE)), "Provided"),
        (tell(Provided(None)), "Provided"),
        (tell(NotProvided("The tenant could not be created.")), "NotProvided"),
        (tell(Waiting()), "AwaitTenant"),
    ],
}
"""For each Choice of each machine: what it may be told, and the state that comes next."""

NEVER_SAID = {
    ("create_tenant", "HasSettled"): {"gone"},
    ("update_tenant", "HasSettled"): {"gone"},
    ("delete_tenant", "HasSettled"): {"done", "notReady"},
    ("tenant_queue", "IsSettled"): {"again"},
}
"""What the use case may say, but not in this machine."""


@pytest.mark.parametrize(
    ("stem", "choice", "told", "leads_to"),
    [
        pytest.param(stem, choice, told, leads_to, id=f"{stem}-{choice}-{told['outcome']}-{leads_to}")
        for (stem, choice), rules in LEADS.items()
        for told, leads_to in rules
    ],
)
def test_an_outcome_leads_to(stem: str, choice: str, told: dict[str, Any], leads_to: str) -> None:
    assert asl.chosen(asl.states(machine(stem))[choice], told) == leads_to


def test_every_choice_is_told_of_above_with_every_outcome_that_reaches_it() -> None:
    reached = {}
    for stem in MACHINES:
        for _, state in asl.tasks(machine(stem)):
            choice = state.get("Next", "")
            if asl.states(machine(stem)).get(choice, {}).get("Type") == "Choice":
                reached[stem, choice] = outcomes_of(USE_CASES[function_of(stem, state)])
    told = {where: {each["outcome"] for each, _ in rules} for where, rules in LEADS.items()}
    assert {where: outcomes - NEVER_SAID.get(where, set()) for where, outcomes in reached.items()} == told


@pytest.mark.parametrize(
    ("stem", "state", "leads_to"),
    [
        *((stem, "AwaitTurn", "Begin") for stem in OPERATIONS),
        *((stem, "StartStack", "AwaitStack") for stem in OPERATIONS),
        *((stem, "AwaitStack", "InspectStack") for stem in OPERATIONS),
        *((stem, "RecordFailure", "Failed") for stem in OPERATIONS),
        ("create_tenant", "AwaitQueue", "InspectStack"),
        ("create_tenant", "PauseBeforeStart", "StartStack"),
        ("update_tenant", "ReviewChanges", "AwaitReview"),
        ("update_tenant", "AwaitReview", "StartStack"),
        ("update_tenant", "AwaitQueue", "InspectStack"),
        ("update_tenant", "PauseBeforeStart", "ReviewChanges"),
        ("delete_tenant", "AwaitDrain", "CheckMessages"),
        ("delete_tenant", "PauseBeforeStart", "StartStack"),
        ("tenant_queue", "AwaitTenant", "Settle"),
        ("tenant_queue", "TellFailure", "NotProvided"),
    ],
)
def test_a_state_leads_to(stem: str, state: str, leads_to: str) -> None:
    assert asl.states(machine(stem))[state]["Next"] == leads_to


@pytest.mark.parametrize("stem", OPERATIONS)
def test_a_lost_event_costs_the_timeout_and_no_more(stem: str) -> None:
    awaiting = asl.states(machine(stem))["AwaitStack"]
    assert awaiting["Catch"][0] == {"ErrorEquals": ["States.Timeout"], "Next": "InspectStack"}


def straight_path(stem: str) -> list[str]:
    """The states that an operation passes through when nothing is in its way."""
    said = {
        "begin": tell(Begun()),
        "check_messages": tell(Empty()),
        "inspect_stack": tell(Gone() if stem == "delete_tenant" else DONE),
    }
    path: list[str] = []
    name, told = machine(stem)["StartAt"], None
    while True:
        path.append(name)
        state = asl.states(machine(stem))[name]
        if asl.ends_green(state):
            return path
        if state["Type"] == "Choice":
            name = asl.chosen(state, told)
            continue
        if state["Type"] == "Task":
            told = said.get(function_of(stem, state))
        name = state["Next"]
        assert name not in path, f"{stem} comes back to {name}"


@pytest.mark.parametrize("stem", OPERATIONS)
def test_the_straight_path_takes_few_transitions(stem: str) -> None:
    assert len(straight_path(stem)) <= MOST_TRANSITIONS


@pytest.mark.parametrize(
    ("stem", "between"),
    [("create_tenant", []), ("update_tenant", ["ReviewChanges"]), ("delete_tenant", ["CheckMessages"])],
)
def test_the_straight_path_is_the_story_of_the_operation(stem: str, between: list[str]) -> None:
    told = [name for name in straight_path(stem) if asl.states(machine(stem))[name]["Type"] == "Task"]
    assert told == ["Begin", *between, "StartStack", "AwaitStack", "InspectStack", "Finish"]
