"""Each check detects its problem, in a small valid machine with one change at a time."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from tests.machines import asl


def task(resource: str = "arn:aws:states:::lambda:invoke", *, others: str = "States.ALL", **more: Any) -> asl.State:
    patience = {"IntervalSeconds": 1, "BackoffRate": 2, "MaxDelaySeconds": 20, "JitterStrategy": "FULL"}
    return {
        "Type": "Task",
        "Resource": resource,
        "Arguments": {"FunctionName": "${WorkArn}", "Payload": {"execution": "{% $states.context.Execution %}"}},
        "TimeoutSeconds": 60,
        "Retry": [
            {"ErrorEquals": ["Lambda.TooManyRequestsException"], "MaxAttempts": 100, **patience},
            {"ErrorEquals": [others], "MaxAttempts": 3, **patience},
        ],
        "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Record"}],
        **more,
    }


SOUND: asl.Machine = {
    "QueryLanguage": "JSONata",
    "TimeoutSeconds": 3600,
    "StartAt": "Work",
    "States": {
        "Work": task(Next="Await"),
        "Await": task(
            "arn:aws:states:::lambda:invoke.waitForTaskToken",
            others="States.TaskFailed",
            Catch=[
                {"ErrorEquals": ["States.Timeout"], "Next": "Look"},
                {"ErrorEquals": ["States.ALL"], "Next": "Record"},
            ],
            Next="Look",
        ),
        "Look": task(Next="Sort"),
        "Sort": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.outcome = 'done' %}", "Next": "Done"},
                {"Condition": "{% $states.input.outcome = 'working' %}", "Next": "Await"},
                {"Condition": "{% $states.input.outcome = 'failed' %}", "Next": "Record"},
            ],
            "Default": "Pause",
        },
        "Pause": {"Type": "Wait", "Seconds": 1, "Next": "Work"},
        "Done": task(End=True),
        "Record": task(Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Failed"}], Next="Failed"),
        "Failed": {"Type": "Fail", "Error": "{% $states.input.Error %}"},
    },
}
CHILD: asl.Machine = {
    "ProcessorConfig": {"Mode": "DISTRIBUTED", "ExecutionType": "STANDARD"},
    "StartAt": "Enter",
    "States": {
        "Enter": {"Type": "Pass", "Assign": {"turn": "{% $states.input %}"}, "Next": "Run"},
        "Run": {
            **task(asl.RUNS_A_MACHINE, Next="Record"),
            "Arguments": {"StateMachineArn": "${MachineArn}", "Input": "{% $turn %}"},
            "Retry": [
                {
                    "ErrorEquals": ["StepFunctions.ThrottlingException"],
                    "MaxAttempts": 2,
                    "MaxDelaySeconds": 2,
                    "JitterStrategy": "FULL",
                }
            ],
            "Catch": [
                {"ErrorEquals": ["StepFunctions.ThrottlingException"], "Next": "Pause"},
                {"ErrorEquals": ["States.ALL"], "Next": "Record"},
            ],
        },
        "Pause": {"Type": "Wait", "Seconds": 1, "Next": "Run"},
        "Record": task(Catch=[], End=True),
    },
}
PARENT: asl.Machine = {
    "StartAt": "Each",
    "States": {
        "Each": {
            "Type": "Map",
            "MaxConcurrencyPath": "$.atOnce",
            "ToleratedFailurePercentage": 100,
            "ResultWriter": {"Resource": "arn:aws:states:::s3:putObject"},
            "ResultPath": None,
            "ItemProcessor": CHILD,
            "Catch": [{"ErrorEquals": ["States.ALL"], "Next": "Failed"}],
            "Next": "Sort",
        },
        "Sort": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $again %}", "Assign": {"again": "{% false %}"}, "Next": "Each"},
            ],
            "Default": "Done",
        },
        "Done": {"Type": "Succeed"},
        "Failed": {"Type": "Fail"},
    },
}
for _each in (CHILD, PARENT):
    for _state in asl.states(_each).values():
        if _state["Type"] != "Map":
            _state["QueryLanguage"] = "JSONata"

TOLD = {
    "Work": set[str](),
    "Await": set[str](),
    "Look": {"done", "working", "failed", "again"},
    "Done": set[str](),
    "Record": set[str](),
}

ALL_CHECKS: tuple[asl.Check, ...] = (
    *asl.CHECKS,
    asl.faults_end_in_failure,
    asl.outlives(timedelta(minutes=30)),
    asl.succeeds_at("Done"),
    asl.filled_by({"WorkArn"}),
    asl.outcomes_are_read(TOLD),
)


def broken(change: Callable[[asl.Machine], object], sound: asl.Machine = SOUND) -> asl.Machine:
    machine = copy.deepcopy(sound)
    change(machine)
    return machine


def put(*path: str | int, value: object) -> Callable[[asl.Machine], None]:
    def change(machine: Any) -> None:
        *above, last = path
        for step in above:
            machine = machine[step]
        machine[last] = value

    return change


def drop(*path: str | int) -> Callable[[asl.Machine], None]:
    def change(machine: Any) -> None:
        *above, last = path
        for step in above:
            machine = machine[step]
        del machine[last]

    return change


@pytest.mark.parametrize("check", ALL_CHECKS, ids=lambda check: check.__qualname__)
def test_a_sound_machine_passes(check: asl.Check) -> None:
    assert check(SOUND) == []


@pytest.mark.parametrize("check", [*asl.CHECKS, asl.faults_end_in_failure], ids=lambda check: check.__name__)
def test_a_sound_machine_with_a_map_passes(check: asl.Check) -> None:
    assert check(PARENT) == []


@pytest.mark.parametrize("check", [*asl.CHECKS, asl.faults_are_recorded_by({"Record"})], ids=lambda c: c.__qualname__)
def test_a_sound_child_passes(check: asl.Check) -> None:
    assert check(CHILD) == []


W, R = ("States", "Work"), ("States", "Record")
BREAKAGES: list[tuple[asl.Check, Callable[[asl.Machine], None], str]] = [
    (asl.speaks_jsonata, drop("QueryLanguage"), "Work is not JSONata"),
    (asl.speaks_jsonata, put(*W, "QueryLanguage", value="JSONPath"), "Work changes"),
    (asl.leads_somewhere, put("StartAt", value="Nowhere"), "StartAt names Nowhere"),
    (asl.leads_somewhere, put(*W, "Next", value="Nowhere"), "Work leads to Nowhere"),
    (asl.leads_somewhere, put(*W, "Catch", 0, "Next", value="Nowhere"), "Work leads to Nowhere"),
    (asl.leads_somewhere, put("States", "Sort", "Default", value="Nowhere"), "Sort leads to Nowhere"),
    (asl.leads_somewhere, put("States", "Sort", "Choices", 0, "Next", value="Nowhere"), "Sort leads to Nowhere"),
    (asl.leads_somewhere, put("States", "Orphan", value={"Type": "Succeed"}), "Orphan is never reached"),
    (asl.leads_somewhere, drop("States", "Pause", "Next"), "Pause neither ends"),
    (asl.leads_somewhere, put("States", "Done", "Next", value="Look"), "Done neither ends"),
    (asl.leads_somewhere, drop("States", "Done", "End"), "Done neither ends"),
    (asl.tasks_time_out, drop(*W, "TimeoutSeconds"), "Work has no TimeoutSeconds"),
    (asl.tasks_time_out, put(*W, "TimeoutSeconds", value="60"), "Work has no TimeoutSeconds"),
    (asl.waits_end, drop("States", "Pause", "Seconds"), "Pause has no Seconds"),
    (asl.waits_end, put("States", "Pause", "Seconds", value=0), "Pause has no Seconds"),
    (asl.waits_end, put("States", "Pause", "Seconds", value="5"), "Pause has no Seconds"),
    (asl.tasks_retry, drop(*W, "Retry"), "Work does not retry throttled"),
    (asl.tasks_retry, drop(*W, "Retry", 0), "Work does not retry throttled"),
    (asl.tasks_retry, drop(*W, "Retry", 1), "Work does not retry other"),
    (asl.tasks_retry, put(*W, "Retry", 0, "MaxAttempts", value=3), "Work does not retry throttled"),
    (asl.tasks_retry, drop(*W, "Retry", 0, "MaxAttempts"), "Work does not retry throttled"),
    (asl.tasks_retry, drop(*W, "Retry", 0, "JitterStrategy"), "Work retries without jitter"),
    (asl.tasks_retry, drop(*W, "Retry", 0, "MaxDelaySeconds"), "Work has no maximum delay between retries"),
    (
        asl.tasks_retry,
        put("States", "Await", "Retry", 1, "ErrorEquals", value=["States.ALL"]),
        "Await waits again",
    ),
    (asl.faults_end_in_failure, drop(*W, "Catch"), "Work does not catch"),
    (asl.faults_end_in_failure, put(*W, "Catch", 0, "ErrorEquals", value=["MyError"]), "Work does not catch"),
    (asl.faults_end_in_failure, put(*W, "Catch", 0, "Next", value="Done"), "Work may catch"),
    (asl.faults_end_in_failure, put(*W, "Catch", 0, "Next", value="Look"), "Work may catch"),
    (asl.faults_end_in_failure, put(*R, "Next", value="Done"), "Work may catch"),
    (asl.faults_end_in_failure, put("States", "Failed", value={"Type": "Pass", "End": True}), "Work may catch"),
    (asl.faults_end_in_failure, put("States", "Failed", value={"Type": "Succeed"}), "Record may catch"),
    (asl.faults_end_in_failure, put(*R, "Catch", 0, "Next", value="Done"), "Record may catch"),
    (asl.faults_end_in_failure, put("States", "Await", "Catch", 0, "Next", value="Done"), "Await may catch"),
    (
        asl.faults_end_in_failure,
        put("States", "Look", "Catch", value=SOUND["States"]["Await"]["Catch"]),
        "Look may catch",
    ),
    (asl.loops_wait, put("States", "Sort", "Default", value="Look"), "Look is in a loop"),
    (asl.loops_wait, put("States", "Pause", value={"Type": "Pass", "Next": "Look"}), "Pause is in a loop"),
    (asl.loops_wait, put(*W, "Next", value="Work"), "Work is in a loop"),
    (asl.choices_default, drop("States", "Sort", "Default"), "Sort has no Default"),
    (asl.expressions_parse, put("States", "Pause", "Seconds", value="{% 1 + %}"), "does not parse"),
    (asl.expressions_parse, put("States", "Pause", "Seconds", value="{% 1 + 1"), "an incomplete expression"),
    (asl.expressions_parse, put(*W, "Arguments", "Payload", "deep", value=[{"x": "{% $f( %}"}]), "does not parse"),
    (asl.outlives(timedelta(minutes=30)), put("TimeoutSeconds", value=1800), "times out after 1800"),
    (asl.outlives(timedelta(minutes=30)), drop("TimeoutSeconds"), "times out after 0"),
    (asl.succeeds_at("Done"), put("States", "Pause", value={"Type": "Succeed"}), "Pause ends the machine"),
    (asl.succeeds_at("Done"), put("States", "Failed", value={"Type": "Pass", "End": True}), "Failed ends"),
    (asl.succeeds_at("Done"), drop("States", "Done", "End"), "Done does not end"),
    (asl.filled_by({"WorkArn"}), put(*W, "Arguments", "FunctionName", value="${Typo}"), "no value for ${Typo}"),
    (asl.filled_by({"WorkArn", "Unused"}), put("Comment", value=""), "no ${Unused} to fill"),
    (
        asl.outcomes_are_read(TOLD),
        put("States", "Sort", "Choices", 0, "Condition", value="{% $states.input.outcome = 'ready' %}"),
        "Sort reads 'ready'",
    ),
    (asl.outcomes_are_read(TOLD), drop("States", "Sort", "Choices", 2), "Sort does not read 'failed'"),
]


@pytest.mark.parametrize(
    ("check", "change", "found"),
    [pytest.param(*breakage, id=f"{number}-{breakage[2]}") for number, breakage in enumerate(BREAKAGES)],
)
def test_a_broken_machine_is_detected(check: asl.Check, change: Callable[[asl.Machine], None], found: str) -> None:
    assert any(found in wrong for wrong in check(broken(change)))


E, ITEM = ("States", "Each"), ("States", "Each", "ItemProcessor")
BREAKAGES_OF_MAPS: list[tuple[asl.Check, Callable[[asl.Machine], None], str]] = [
    (asl.speaks_jsonata, drop("States", "Sort", "QueryLanguage"), "Sort is not JSONata"),
    (asl.variables_are_its_own, drop("States", "Sort", "Choices", 0, "Assign"), "$again is used"),
    (asl.maps_are_bounded, drop(*E, "MaxConcurrencyPath"), "Each does not say how many"),
    (asl.maps_are_bounded, put(*E, "MaxConcurrencyPath", value="{% $many %}"), "Each does not say how many"),
    (asl.maps_are_bounded, drop(*E, "ToleratedFailurePercentage"), "Each ends when children fail"),
    (asl.maps_are_bounded, drop(*E, "ResultWriter"), "Each returns the results"),
    (asl.maps_are_bounded, drop(*E, "ResultPath"), "Each returns the results"),
    (asl.maps_are_bounded, drop(*ITEM, "ProcessorConfig"), "Each has its children in its own history"),
    (asl.faults_end_in_failure, drop(*E, "Catch"), "Each does not catch"),
    (asl.faults_end_in_failure, put(*E, "Catch", 0, "Next", value="Done"), "Each may catch"),
    (asl.loops_wait, put(*E, value={"Type": "Pass", "Next": "Sort"}), "Each is in a loop"),
]
BREAKAGES_OF_CHILDREN: list[tuple[asl.Check, Callable[[asl.Machine], None], str]] = [
    (asl.speaks_jsonata, drop("States", "Run", "QueryLanguage"), "Run is not JSONata"),
    (asl.variables_are_its_own, put("States", "Run", "Arguments", "Input", value="{% $again %}"), "$again is used"),
    (asl.variables_are_its_own, drop("States", "Enter", "Assign"), "$turn is used"),
    (asl.tasks_retry, put("States", "Run", "Retry", 0, "MaxAttempts", value=100), "Run may be started long after"),
    (asl.tasks_retry, drop("States", "Run", "Catch", 0), "Run does not wait and ask again"),
    (asl.tasks_retry, put("States", "Run", "Catch", 0, "Next", value="Record"), "Run does not wait and ask again"),
    (
        asl.tasks_retry,
        put("States", "Run", "Retry", 0, "ErrorEquals", 0, value="States.ALL"),
        "Run runs a failed machine again",
    ),
    (asl.faults_are_recorded_by({"Record"}), drop("States", "Run", "Catch"), "Run does not catch"),
    (
        asl.faults_are_recorded_by({"Record"}),
        put("States", "Run", "Catch", 1, "Next", value="Pause"),
        "Run does not have ['States.ALL'] recorded",
    ),
    (
        asl.faults_are_recorded_by({"Record"}),
        put("States", "Record", "Catch", value=[{"ErrorEquals": ["States.ALL"], "Next": "Enter"}]),
        "Record catches",
    ),
]


@pytest.mark.parametrize(
    ("sound", "check", "change", "found"),
    [
        pytest.param(sound, *breakage, id=f"{number}-{breakage[2]}")
        for sound, breakages in ((PARENT, BREAKAGES_OF_MAPS), (CHILD, BREAKAGES_OF_CHILDREN))
        for number, breakage in enumerate(breakages)
    ],
)
def test_a_broken_map_or_child_is_detected(
    sound: asl.Machine, check: asl.Check, change: Callable[[asl.Machine], None], found: str
) -> None:
    assert any(found in wrong for wrong in check(broken(change, sound)))


@pytest.mark.parametrize("seconds", [30, "${PauseSeconds}", "{% 1 + $floor($random() * 10) %}"])
def test_a_wait_may_be_a_number_a_placeholder_or_an_expression(seconds: object) -> None:
    assert asl.waits_end(broken(put("States", "Pause", "Seconds", value=seconds))) == []


def test_an_expression_sees_only_assigned_variables() -> None:
    assert asl.evaluate({"stack": "{% $stack.id %}"}, {"stack": {"id": "1"}}) == {"stack": "1"}
    with pytest.raises(KeyError, match="stack"):
        asl.evaluate({"stack": "{% $stack.id %}"}, {})


def test_a_placeholder_outside_quotes_is_not_json() -> None:
    text = json.dumps(SOUND).replace('"${WorkArn}"', "${WorkArn}")
    with pytest.raises(json.JSONDecodeError):
        asl.parse(text)


def test_every_check_has_a_failing_example() -> None:
    bitten = {check.__qualname__ for check, _, _ in (*BREAKAGES, *BREAKAGES_OF_MAPS, *BREAKAGES_OF_CHILDREN)}
    assert bitten == {check.__qualname__ for check in (*ALL_CHECKS, asl.faults_are_recorded_by(set()))}
