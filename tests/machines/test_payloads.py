"""Functions accept the payloads that states send, and states pass on the results of functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lambdas.runtime import outcome_json
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import Location
from orchestrator.common.times import timestamp
from orchestrator.events.purge_steps import PurgeStep, parse_purge_step
from orchestrator.events.purging import NotToPurge
from orchestrator.rollouts.advancing import NotSucceeded, RunStage
from orchestrator.rollouts.gate import Admitted
from orchestrator.rollouts.records import Item, Turn
from orchestrator.rollouts.steps import parse_await_operator_step, parse_rollout_step, parse_turn
from orchestrator.tenants import schemas
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.outcomes import (
    Again,
    Begun,
    Clearing,
    Done,
    Draining,
    GaveUp,
    Gone,
    Reviewing,
    Start,
    Started,
    Unchanged,
)
from orchestrator.tenants.records import Operation, Request, RootCause
from orchestrator.tenants.tenant_queue import NotConfirmed, NotProvided, Waiting
from tests.fakes import ACME, EXPLICIT, NAMES, NEXT_VERSION, NOON, QUEUE, a_run, stack_arn
from tests.fakes.events import ACME_LIFE, EPOCH
from tests.machines import asl
from tests.machines.files import OPERATIONS, ROLLOUT, TURN, machine

REQUESTS = {
    "create_tenant": Request(by=EXPLICIT.by, explicit=True, labels={"tier": "gold"}, pin=NEXT_VERSION),
    "update_tenant": Request(by=EXPLICIT.by, allow_downgrade=True, allow_replacement=True),
    "delete_tenant": Request(by=EXPLICIT.by, force=True, drain_seconds=60),
}
RUNS = {
    stem: a_run(2, operation=operation, version=NEXT_VERSION, request=REQUESTS[stem])
    for stem, operation in zip(OPERATIONS, Operation, strict=True)
}
HERE = Location.parse("aws:eu-west-1:000000000000")
FAULT = {"Error": "Lambda.Unknown", "Cause": "Task timed out after 15.00 seconds"}
EVENT = {
    "RequestType": "Create",
    "StackId": "arn:aws:cloudformation:eu-west-1:000000000000:stack/other-team/1",
    "RequestId": "5478764e-a29b-4f27-b4c3-4bcdf0ef9c6d",
    "LogicalResourceId": "Queue",
    "ResponseURL": "https://cloudformation.example/signed",
    "ResourceProperties": {"ServiceToken": "arn:aws:lambda:eu-west-1:0:function:tenant-queue", "TenantId": "acme"},
}
DONE = Done(stack_arn(), QUEUE, NEXT_VERSION)
ROLLOUT_ID = "20261116-120000-0af3"
CHILD = "arn:aws:states:eu-west-1:000000000000:execution:rollout/Turn:1"
A_TURN = Turn(ROLLOUT_ID, 2, Item(ACME, NEXT_VERSION), CHILD)
INPUTS = {
    "tenant_queue": {"event": EVENT},
    ROLLOUT: {"rolloutId": ROLLOUT_ID, "attempt": 3},
    "purge_events": {"tenantId": "acme", "epoch": EPOCH},
}

STARTS: Mapping[str, list[Start]] = {
    "create_tenant": [Started(stack_arn()), Clearing(stack_arn()), Again("Rate exceeded")],
    "update_tenant": [
        Started(stack_arn()),
        Clearing(stack_arn()),
        Unchanged(stack_arn()),
        Reviewing(),
        Draining("none were counted", NOON, 60),
        Again("Rate exceeded"),
        GaveUp("The inbound queue would be replaced."),
        GaveUp("The stack is UPDATE_ROLLBACK_FAILED.", stack_arn()),
    ],
    "delete_tenant": [Started(stack_arn()), Gone(), Again("Rate exceeded"), GaveUp("DELETE_FAILED", stack_arn())],
}
"""The results of StartStack in each machine."""

for_each_operation = pytest.mark.parametrize("stem", OPERATIONS)
for_each_start = pytest.mark.parametrize(
    ("stem", "start"),
    [pytest.param(stem, start, id=f"{stem}-{start.outcome}") for stem in OPERATIONS for start in STARTS[stem]],
)


def context(stem: str) -> dict[str, Any]:
    """The context object of an execution."""
    run = RUNS.get(stem)
    return {
        "Execution": {
            "Id": run.execution if run else f"arn:aws:states:eu-west-1:000000000000:execution:{stem}:1",
            "Input": machine_input(run.attempt, run.request) if run else INPUTS[stem],
            "Name": run.attempt.name if run else f"{stem}-1",
            "RoleArn": "arn:aws:iam::000000000000:role/machine",
            "StartTime": timestamp(NOON),
            "RedriveCount": 0,
        },
        "Task": {"Token": "a task token"},
    }


def payload(stem: str, state: str, given: object = None, **variables: object) -> Any:
    """The payload that the state sends to its function."""
    states = {"input": given, "context": context(stem)}
    return asl.evaluate(asl.states(machine(stem))[state]["Arguments"]["Payload"], {"states": states, **variables})


def assigned(stem: str, state: str, result: object, **before: object) -> dict[str, Any]:
    """The variables that the state assigns for this result of its function."""
    return resumed(stem, state, {"Payload": result}, **before)


def resumed(stem: str, state: str, result: object, **before: object) -> dict[str, Any]:
    """The variables that the state assigns for this result, which for a wait was sent with its task token."""
    variables: dict[str, Any] = asl.evaluate(
        asl.states(machine(stem))[state]["Assign"], {"states": {"result": result}, **before}
    )
    return variables


@for_each_operation
def test_the_first_state_sends_its_run(stem: str) -> None:
    assert schemas.parse_begin_step(payload(stem, "Begin")) == RUNS[stem]


@pytest.mark.parametrize("state", ["Begin", "RecordFailure"])
@for_each_operation
def test_a_machine_says_which_operation_it_is_for_and_its_functions_accept_no_other(stem: str, state: str) -> None:
    sent = payload(stem, state, FAULT)
    own = RUNS[stem].attempt.operation
    assert sent["operation"] == own
    for other in set(Operation) - {own}:
        given = sent["execution"] | {"Input": sent["execution"]["Input"] | {"operation": other}}
        forged = sent | {"execution": given}
        with pytest.raises(InvalidRequest, match=f"is {other}, but this machine is for {own}"):
            schemas.parse_begin_step(forged) if state == "Begin" else schemas.parse_failure_step(forged, NAMES)


@pytest.mark.parametrize("stem", ["update_tenant", "delete_tenant"])
def test_a_step_is_told_since_when_the_queues_are_empty(stem: str) -> None:
    begun = assigned(stem, "Begin", outcome_json(Begun()))
    first = schemas.parse_start_step(payload(stem, "StartStack", **begun))
    assert (first.run, first.empty_since) == (RUNS[stem], None)
    counted = resumed(stem, "StartStack", outcome_json(Draining("none were counted", NOON, 60)), **begun)
    assert schemas.parse_start_step(payload(stem, "StartStack", **counted)).empty_since == NOON
    throttled = {"outcome": "again", "reason": "Rate exceeded", "throttled": True}
    assert resumed(stem, "StartStack", throttled, **counted) == counted
    seen = resumed(stem, "StartStack", outcome_json(Draining("1", None, 5)), **counted)
    assert seen["emptySince"] is None


@pytest.mark.parametrize("stem", ["update_tenant", "delete_tenant"])
def test_the_next_count_is_after_the_returned_time(stem: str) -> None:
    seconds = asl.states(machine(stem))["AwaitDrain"]["Seconds"]
    assert asl.evaluate(seconds, {"states": {"input": outcome_json(Draining("none were counted", NOON, 42))}}) == 42


@for_each_operation
def test_a_state_that_waits_sends_its_task_token(stem: str) -> None:
    started = schemas.parse_start_step(payload(stem, "StartStack", emptySince=None))
    assert (started.run, started.task_token) == (RUNS[stem], "a task token")
    awaited = schemas.parse_await_step(payload(stem, "AwaitStack"))
    assert (awaited.run, awaited.task_token) == (RUNS[stem], "a task token")


def test_a_create_that_waits_for_its_turn_sends_its_task_token() -> None:
    waiting = schemas.parse_await_step(payload("create_tenant", "AwaitAdmission"))
    assert (waiting.run, waiting.task_token) == (RUNS["create_tenant"], "a task token")


@for_each_operation
def test_the_stack_is_inspected_that_the_lock_names(stem: str) -> None:
    assert schemas.parse_run(payload(stem, "InspectStack")) == RUNS[stem]


@pytest.mark.parametrize(
    ("stem", "inspected", "heard"),
    [("create_tenant", DONE, DONE), ("update_tenant", DONE, DONE), ("delete_tenant", Gone(), None)],
)
def test_finish_accepts_what_became_of_the_stack(stem: str, inspected: Done | Gone, heard: Done | None) -> None:
    parsed = schemas.parse_finish_step(payload(stem, "Finish", outcome_json(inspected)))
    assert (parsed.run, parsed.stack) == (RUNS[stem], heard)


@for_each_operation
def test_the_result_of_a_wait_is_the_input_of_the_next_state(stem: str) -> None:
    output = asl.states(machine(stem))["StartStack"]["Output"]
    assert asl.evaluate(output, {"states": {"result": outcome_json(DONE)}}) == outcome_json(DONE)


@for_each_operation
def test_the_result_of_a_function_is_the_input_of_the_next_state(stem: str) -> None:
    for _, state in asl.tasks(machine(stem)):
        returned = {"states": {"result": {"Payload": {"outcome": "any"}}}}
        assert asl.waits_for_token(state) or asl.evaluate(state["Output"], returned) == {"outcome": "any"}


@for_each_operation
@pytest.mark.parametrize("failed_stack", [None, stack_arn()])
def test_a_run_that_gave_up_is_recorded_with_its_reason(stem: str, failed_stack: str | None) -> None:
    parsed = schemas.parse_failure_step(
        payload(stem, "RecordFailure", outcome_json(GaveUp("It broke.", failed_stack))), NAMES
    )
    cause = RootCause(NAMES.stack_of(ACME), "AWS::CloudFormation::Stack", "It broke.")
    assert (parsed.run, parsed.failure, parsed.failed_stack) == (RUNS[stem], cause, failed_stack)


@for_each_operation
def test_a_fault_is_recorded_with_its_error_and_cause(stem: str) -> None:
    parsed = schemas.parse_failure_step(payload(stem, "RecordFailure", FAULT), NAMES)
    assert parsed.run == RUNS[stem]
    assert parsed.failure.reason == "Lambda.Unknown: Task timed out after 15.00 seconds"


@for_each_operation
@pytest.mark.parametrize(
    "given", [FAULT, {"Error": "Berth.OperationFailed", "Cause": "Tenant acme: it broke."}], ids=["fault", "recorded"]
)
def test_a_failed_run_fails_with_its_error_and_cause(stem: str, given: dict[str, str]) -> None:
    failed = asl.states(machine(stem))["Failed"]
    templates = {"Error": failed["Error"], "Cause": failed["Cause"]}
    assert asl.evaluate(templates, {"states": {"input": given}}) == given


def test_cloudformations_event_is_passed_to_settle() -> None:
    parsed = schemas.parse_settle_step(payload("tenant_queue", "Settle", {"event": EVENT}), HERE)
    assert (parsed.claim.tenant_id, parsed.since, parsed.event, parsed.fault) == (ACME.value, NOON, EVENT, None)
    assert not parsed.confirmed


@pytest.mark.parametrize("confirmed", [False, True])
def test_the_confirmation_is_passed_on_to_the_next_step(confirmed: bool) -> None:
    settle = asl.states(machine("tenant_queue"))["Settle"]
    passed_on = asl.evaluate(settle["Output"], {"states": {"result": {"Payload": outcome_json(Waiting(confirmed))}}})
    parsed = schemas.parse_settle_step(payload("tenant_queue", "Settle", passed_on), HERE)
    assert parsed.confirmed is confirmed


def test_a_fault_is_passed_to_the_step_that_responds_to_cloudformation() -> None:
    parsed = schemas.parse_settle_step(payload("tenant_queue", "TellFailure", FAULT), HERE)
    assert parsed.claim.tenant_id == ACME.value
    assert parsed.fault == "Lambda.Unknown: Task timed out after 15.00 seconds"


@pytest.mark.parametrize("given", [FAULT, outcome_json(NotProvided("It broke."))], ids=["fault", "reason"])
def test_a_failed_request_fails_its_execution_with_the_known_cause(given: dict[str, str]) -> None:
    cause = asl.evaluate(asl.states(machine("tenant_queue"))["NotProvided"]["Cause"], {"states": {"input": given}})
    assert all(value in cause for value in given.values())


def test_an_unconfirmed_request_fails_its_execution_with_the_reason() -> None:
    given = outcome_json(NotConfirmed("It was made up."))
    cause = asl.evaluate(asl.states(machine("tenant_queue"))["NotConfirmed"]["Cause"], {"states": {"input": given}})
    assert "It was made up." in cause


@for_each_operation
@pytest.mark.parametrize(("state", "least", "most"), [("AwaitTurn", 2, 5), ("PauseBeforeStart", 1, 10)])
def test_a_wait_varies_within_bounds(stem: str, state: str, least: int, most: int) -> None:
    waits = [asl.evaluate(asl.states(machine(stem))[state]["Seconds"], {}) for _ in range(200)]
    assert all(int(each) == each and least <= each <= most for each in waits)
    assert len(set(waits)) > 1


# Rollouts


def turned(state: str, given: object = None) -> Any:
    """The payload that a state of a tenant's turn sends to its function."""
    arguments = asl.states(machine(TURN))[state]["Arguments"]
    return asl.evaluate(arguments["Payload"], {"states": {"input": given}, **entered()})


def entered() -> dict[str, Any]:
    """The variables that Enter assigns from the map's item."""
    item = {"rolloutId": ROLLOUT_ID, "stage": 2, "tenantId": ACME.value, "version": NEXT_VERSION}
    selector = asl.states(machine(ROLLOUT))["RunStage"]["ItemSelector"]
    assert {name.removesuffix(".$") for name in selector} == set(item)
    remembered: dict[str, Any] = asl.evaluate(
        asl.states(machine(TURN))["Enter"]["Assign"],
        {"states": {"input": item, "context": {"Execution": {"Id": CHILD}}}},
    )
    return remembered


def test_finish_accepts_the_result_of_begin_when_the_update_is_already_done() -> None:
    assert schemas.parse_finish_step(payload("update_tenant", "Finish", outcome_json(DONE))).stack == DONE


def test_a_rollouts_state_sends_the_rollout() -> None:
    parsed = parse_rollout_step(payload(ROLLOUT, "Advance"))
    assert (parsed.rollout, parsed.attempt, parsed.failure) == (ROLLOUT_ID, 3, None)
    assert parsed.execution == context(ROLLOUT)["Execution"]["Id"]


def test_the_task_token_is_passed_to_await_operator() -> None:
    parsed = parse_await_operator_step(payload(ROLLOUT, "AwaitOperator"))
    assert (parsed.rollout, parsed.attempt, parsed.task_token) == (ROLLOUT_ID, 3, "a task token")


def test_a_fault_is_passed_to_give_up() -> None:
    parsed = parse_rollout_step(payload(ROLLOUT, "GiveUp", FAULT))
    assert (parsed.rollout, parsed.attempt) == (ROLLOUT_ID, 3)
    assert parsed.failure == "Lambda.Unknown: Task timed out after 15.00 seconds"


def test_the_map_reads_the_result_of_advance() -> None:
    states = {
        "result": {"Payload": outcome_json(RunStage(2, "rollouts/1/stage-2.json", 8))},
        "context": context(ROLLOUT),
    }
    given = asl.evaluate(asl.states(machine(ROLLOUT))["Advance"]["Output"], {"states": states})
    stage = asl.states(machine(ROLLOUT))["RunStage"]
    paths = {**stage["ItemSelector"], **stage["ItemReader"]["Parameters"]}
    read = {path.removeprefix("$.") for path in paths.values() if path.startswith("$.")}
    assert {name: given[name] for name in read} == {
        "rolloutId": ROLLOUT_ID,
        "stage": 2,
        "manifest": "rollouts/1/stage-2.json",
    }


@pytest.mark.parametrize("state", ["Admit", "Review"])
def test_a_turns_state_sends_the_turn(state: str) -> None:
    parsed = parse_turn(turned(state))
    assert (parsed.turn, parsed.failure) == (A_TURN, None)


@pytest.mark.parametrize("state", ["RecordOutcome", "TellFailure"])
def test_a_fault_in_a_turn_is_passed_to_the_step_that_records_it(state: str) -> None:
    parsed = parse_turn(turned(state, FAULT))
    assert (parsed.turn, parsed.failure) == (A_TURN, "Lambda.Unknown: Task timed out after 15.00 seconds")


def test_a_successful_update_is_recorded_without_a_fault() -> None:
    returned = {"states": {"result": {"Status": "SUCCEEDED", "Output": {"Error": "in what it says, not what it is"}}}}
    given = asl.evaluate(asl.states(machine(TURN))["Upgrade"]["Output"], returned)
    assert parse_turn(turned("RecordOutcome", given)).failure is None


def test_the_update_has_the_name_and_input_that_admit_returned() -> None:
    run = RUNS["update_tenant"]
    admitted = outcome_json(Admitted(run.attempt.name, machine_input(run.attempt, run.request)))
    variables = {"states": {"input": admitted}, **entered()}
    parsed = asl.evaluate(asl.states(machine(TURN))["Upgrade"]["Arguments"], variables)
    assert parsed["Name"] == run.attempt.name
    assert parsed["Input"]["AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID"] == CHILD
    execution = {**context("update_tenant")["Execution"], "Input": parsed["Input"]}
    assert schemas.parse_run({"execution": execution}) == run


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (outcome_json(NotSucceeded("HALTED", "Too many failed.")), "HALTED: Too many failed."),
        (FAULT, "Task timed out after 15.00 seconds"),
    ],
    ids=["reason", "fault"],
)
def test_a_rollout_that_does_not_succeed_fails_with_its_status_and_reason(given: dict[str, str], expected: str) -> None:
    cause = asl.evaluate(asl.states(machine(ROLLOUT))["NotSucceeded"]["Cause"], {"states": {"input": given}})
    assert expected in cause


@pytest.mark.parametrize(
    ("given", "least", "most"), [({"seconds": 1}, 1, 2), ({"seconds": 20}, 10, 30), ({"outcome": "again"}, 3, 8)]
)
def test_a_waiting_tenant_asks_again_after_about_the_returned_time(
    given: dict[str, object], least: int, most: int
) -> None:
    seconds = asl.states(machine(TURN))["AwaitTurn"]["Seconds"]
    waits = [asl.evaluate(seconds, {"states": {"input": given}}) for _ in range(200)]
    assert all(int(each) == each and least <= each <= most for each in waits)
    assert len(set(waits)) > 1


def test_a_purge_names_its_tenant_and_its_epoch() -> None:
    assert parse_purge_step(payload("purge_events", "Purge")) == PurgeStep(ACME_LIFE)


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        (FAULT, "Lambda.Unknown: Task timed out after 15.00 seconds"),
        (outcome_json(NotToPurge("Nobody has ended it.")), "Nobody has ended it."),
    ],
)
def test_the_failure_of_a_purge_is_passed_on(given: object, reason: str) -> None:
    assert parse_purge_step(payload("purge_events", "RecordPurgeFailure", given)) == PurgeStep(ACME_LIFE, reason)
