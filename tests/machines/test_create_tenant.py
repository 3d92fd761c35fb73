"""create_tenant: where each outcome leads, and that what its states send is what the functions understand."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from jsonata import Jsonata  # type: ignore[import-untyped]

from lambdas.runtime import tell
from orchestrator import schemas
from orchestrator.operations import Begun, Busy, GaveUp, NotReady, Published, machine_input
from orchestrator.tenant_stack import Again, Clearing, Done, Started, Working
from tests.fakes import ACME, QUEUE, VERSION, a_run
from tests.machines import asl
from tests.machines.test_machines import FOLDER, machine_in

MACHINE = machine_in(FOLDER / "create_tenant.asl.json")
STATES = asl.states(MACHINE)
RUN = a_run()
STACK_ID = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{ACME.stack_name}/1"
CONTEXT = {
    "Execution": {
        "Id": RUN.execution,
        "Input": machine_input(RUN.attempt),
        "Name": RUN.attempt.name,
        "RoleArn": "arn:aws:iam::000000000000:role/create-tenant",
        "StartTime": "2026-11-16T12:00:00.000Z",
        "RedriveCount": 0,
    },
    "Task": {"Token": "a task token"},
}
FAULT = {"Error": "Lambda.Unknown", "Cause": "Task timed out after 15.00 seconds"}
DONE = Done(STACK_ID, QUEUE, VERSION)


def evaluate(template: Any, given: object = None, **variables: object) -> Any:
    """What the machine makes of a template: every expression in it, evaluated."""
    if isinstance(template, dict):
        return {name: evaluate(value, given, **variables) for name, value in template.items()}
    if isinstance(template, str) and template.startswith("{%"):
        expression = Jsonata(template[2:-2])
        for name, value in {"states": {"input": given, "context": CONTEXT}, **variables}.items():
            expression.assign(name, value)
        return expression.evaluate(None)
    return template


def chosen(choice: str, told: dict[str, Any]) -> str:
    for rule in STATES[choice]["Choices"]:
        if evaluate(rule["Condition"], told) is True:
            return str(rule["Next"])
    return str(STATES[choice]["Default"])


THROTTLED = {"outcome": "again", "reason": "Rate exceeded"}


@pytest.mark.parametrize(
    ("choice", "told", "leads_to"),
    [
        ("HasBegun", tell(Begun()), "StartStack"),
        ("HasBegun", tell(Busy("another execution")), "AwaitTurn"),
        ("HasBegun", tell(GaveUp("Another operation owned the tenant.")), "RecordFailure"),
        ("HasBegun", THROTTLED, "AwaitTurn"),
        ("HasSettled", tell(DONE), "Finish"),
        ("HasSettled", tell(Working()), "AwaitStack"),
        ("HasSettled", tell(Again("the stack is gone")), "PauseBeforeStart"),
        ("HasSettled", tell(GaveUp("It broke.", STACK_ID)), "RecordFailure"),
        ("HasSettled", THROTTLED, "PauseBeforeStart"),
        ("IsPublished", tell(Published()), "Created"),
        ("IsPublished", tell(NotReady()), "AwaitQueue"),
        ("IsPublished", tell(GaveUp("The queue never answered.")), "RecordFailure"),
        ("IsPublished", THROTTLED, "AwaitQueue"),
    ],
)
def test_an_outcome_leads_to(choice: str, told: dict[str, Any], leads_to: str) -> None:
    assert chosen(choice, told) == leads_to


@pytest.mark.parametrize(
    ("state", "leads_to"),
    [
        ("AwaitTurn", "Begin"),
        ("StartStack", "AwaitStack"),
        ("AwaitStack", "InspectStack"),
        ("PauseBeforeStart", "StartStack"),
        ("AwaitQueue", "Finish"),
        ("RecordFailure", "Failed"),
    ],
)
def test_a_state_leads_to(state: str, leads_to: str) -> None:
    assert STATES[state]["Next"] == leads_to


def test_a_lost_event_costs_the_timeout_and_no_more() -> None:
    assert STATES["AwaitStack"]["Catch"][0] == {"ErrorEquals": ["States.Timeout"], "Next": "InspectStack"}


def payload(state: str, given: object = None, **variables: object) -> Any:
    return evaluate(STATES[state]["Arguments"]["Payload"], given, **variables)


Parser = Callable[[object], Any]


@pytest.mark.parametrize(
    ("state", "parse", "given", "variables"),
    [
        ("Begin", schemas.parse_run, None, {}),
        ("StartStack", schemas.parse_run, None, {}),
        ("AwaitStack", schemas.parse_await_step, None, {"stack": tell(Started(STACK_ID))}),
        ("AwaitStack", schemas.parse_await_step, None, {"stack": tell(Clearing(STACK_ID))}),
        ("AwaitStack", schemas.parse_await_step, None, {"stack": tell(Again("Rate exceeded"))}),
        ("AwaitStack", schemas.parse_await_step, None, {"stack": THROTTLED}),
        ("InspectStack", schemas.parse_stack_step, None, {"stack": tell(Started(STACK_ID))}),
        ("InspectStack", schemas.parse_stack_step, None, {"stack": tell(Clearing(STACK_ID))}),
        ("InspectStack", schemas.parse_stack_step, None, {"stack": tell(Again("Rate exceeded"))}),
        ("InspectStack", schemas.parse_stack_step, None, {"stack": THROTTLED}),
        ("Finish", schemas.parse_finish_step, None, {"inspected": tell(DONE)}),
        ("RecordFailure", schemas.parse_failure_step, FAULT, {}),
        ("RecordFailure", schemas.parse_failure_step, tell(GaveUp("It broke.")), {}),
        ("RecordFailure", schemas.parse_failure_step, tell(GaveUp("It broke.", STACK_ID)), {}),
    ],
)
def test_what_a_state_sends_is_what_its_function_understands(
    state: str, parse: Parser, given: object, variables: Mapping[str, object]
) -> None:
    parsed = parse(payload(state, given, **variables))
    assert getattr(parsed, "run", parsed) == RUN


def test_the_token_that_is_left_is_the_tasks_own() -> None:
    assert payload("AwaitStack", stack=tell(Started(STACK_ID)))["taskToken"] == "a task token"


@pytest.mark.parametrize(
    "given", [FAULT, {"Error": "Berth.OperationFailed", "Cause": "Tenant acme: it broke."}], ids=["fault", "recorded"]
)
def test_a_failed_run_fails_with_what_is_known(given: dict[str, str]) -> None:
    failed = STATES["Failed"]
    assert evaluate({"Error": failed["Error"], "Cause": failed["Cause"]}, given) == given


@pytest.mark.parametrize(("state", "least", "most"), [("AwaitTurn", 2, 5), ("PauseBeforeStart", 1, 10)])
def test_a_wait_varies_within_bounds(state: str, least: int, most: int) -> None:
    waits = [evaluate(STATES[state]["Seconds"]) for _ in range(200)]
    assert all(int(each) == each and least <= each <= most for each in waits)
    assert len(set(waits)) > 1
