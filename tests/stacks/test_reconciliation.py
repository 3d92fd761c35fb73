"""What settles operations whose executions died, and looks at the whole fleet now and then."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.reconciling.events import parse_to_run
from orchestrator.reconciling.health import SETTLING_EVERY, SURVEY_EVERY
from orchestrator.reconciling.records import SETTLING, SURVEY
from tests.stacks.policies import spelled

Json = dict[str, Any]


def _rules(template: Json) -> list[Json]:
    return [r["Properties"] for r in template["Resources"].values() if r["Type"] == "AWS::Events::Rule"]


@pytest.fixture(scope="module")
def rule(control_plane: Json) -> Json:
    """The rule about executions that ended."""
    (found,) = (rule for rule in _rules(control_plane) if rule.get("EventPattern", {}).get("source") == ["aws.states"])
    return found


@pytest.fixture(scope="module")
def schedules(control_plane: Json) -> dict[str, Json]:
    """The rules on a schedule, by the reconciliation that they have run."""
    scheduled = [rule for rule in _rules(control_plane) if "ScheduleExpression" in rule]
    return {parse_to_run(json.loads(rule["Targets"][0]["Input"])): rule for rule in scheduled}


@pytest.fixture(scope="module")
def queue(control_plane: Json, ended_executions: str) -> Json:
    properties: Json = control_plane["Resources"][ended_executions]["Properties"]
    return properties


# Executions that ended


def test_every_end_but_success_of_an_operation_is_told(rule: Json, machine_ids: dict[str, str]) -> None:
    pattern = rule["EventPattern"]
    assert pattern["detail-type"] == ["Step Functions Execution Status Change"]
    assert set(pattern["detail"]) == {"status", "stateMachineArn"}
    assert set(pattern["detail"]["status"]) == {"FAILED", "TIMED_OUT", "ABORTED"}
    operations = ("create_tenant", "update_tenant", "delete_tenant")
    assert [spelled(arn) for arn in pattern["detail"]["stateMachineArn"]] == [
        f"<{machine_ids[stem]}>" for stem in operations
    ]


def test_it_is_told_to_the_queue_and_kept_if_that_cannot_be(
    rule: Json, ended_executions: str, dead_letter_queues: dict[str, str]
) -> None:
    (target,) = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [ended_executions, "Arn"]}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 8}
    kept = dead_letter_queues["executions that ended"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [kept, "Arn"]}}
    assert "Input" not in target, "the function reads the event as it is"


def test_it_is_held_back_until_no_function_of_the_execution_can_still_be_at_work(
    control_plane: Json, queue: Json, function_ids: dict[str, str]
) -> None:
    told = control_plane["Resources"][function_ids["close_execution"]]["Properties"]["Environment"]["Variables"]
    assert queue["DelaySeconds"] == int(told["BERTH_LINGER_SECONDS"]) + 5


def test_every_function_of_an_operation_has_ended_by_then(
    control_plane: Json, machine_ids: dict[str, str], queue: Json
) -> None:
    resources = control_plane["Resources"]
    longest = max(
        resources[arn["Fn::GetAtt"][0]]["Properties"]["Timeout"]
        for stem in ("create_tenant", "update_tenant", "delete_tenant")
        for arn in resources[machine_ids[stem]]["Properties"]["DefinitionSubstitutions"].values()
    )
    assert longest < queue["DelaySeconds"]


def test_the_queue_waits_as_lambda_advises_and_gives_up_on_what_fails_time_and_again(
    control_plane: Json, queue: Json, function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    timeout = control_plane["Resources"][function_ids["close_execution"]]["Properties"]["Timeout"]
    assert queue["VisibilityTimeout"] >= 6 * timeout
    kept = dead_letter_queues["executions that ended"]
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": {"Fn::GetAtt": [kept, "Arn"]}, "maxReceiveCount": 5}


def test_the_function_takes_them_one_by_one_and_few_at_once_and_says_which_come_back(
    control_plane: Json, ended_executions: str, function_ids: dict[str, str]
) -> None:
    (mapping,) = (
        r["Properties"] for r in control_plane["Resources"].values() if r["Type"] == "AWS::Lambda::EventSourceMapping"
    )
    assert mapping == {
        "EventSourceArn": {"Fn::GetAtt": [ended_executions, "Arn"]},
        "FunctionName": {"Ref": function_ids["close_execution"]},
        "BatchSize": 1,
        "FunctionResponseTypes": ["ReportBatchItemFailures"],
        "ScalingConfig": {"MaximumConcurrency": 5},
    }


# The whole fleet


@pytest.mark.parametrize(
    ("reconciliation", "every"), [(SETTLING, SETTLING_EVERY), (SURVEY, SURVEY_EVERY)], ids=[SETTLING, SURVEY]
)
def test_reconciliations_run_as_often_as_operators_are_told(
    schedules: dict[str, Json], reconciliation: str, every: timedelta
) -> None:
    count, unit = schedules[reconciliation]["ScheduleExpression"].removeprefix("rate(").removesuffix(")").split(" ")
    assert timedelta(**{f"{unit.removesuffix('s')}s": int(count)}) == every


def test_nothing_else_is_on_a_schedule(schedules: dict[str, Json]) -> None:
    assert set(schedules) == {SETTLING, SURVEY}


def test_a_reconciliation_that_could_not_be_run_is_kept_and_soon_followed_by_the_next(
    schedules: dict[str, Json], function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    for rule in schedules.values():
        (target,) = rule["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": [function_ids["reconcile"], "Arn"]}
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 2}
        kept = dead_letter_queues["reconciliations"]
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [kept, "Arn"]}}


def test_one_that_failed_each_time_is_kept_too(
    control_plane: Json, function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    reconcile = control_plane["Resources"][function_ids["reconcile"]]["Properties"]
    kept = dead_letter_queues["reconciliations"]
    assert reconcile["DeadLetterConfig"] == {"TargetArn": {"Fn::GetAtt": [kept, "Arn"]}}


def test_operators_have_that_same_function_run(control_plane: Json, function_ids: dict[str, str]) -> None:
    operators = control_plane["Resources"][function_ids["operators"]]["Properties"]
    told = operators["Environment"]["Variables"]["BERTH_RECONCILE_FUNCTION"]
    assert told == {"Fn::GetAtt": [function_ids["reconcile"], "Arn"]}
    assert control_plane["Outputs"]["ReconcileFunctionName"]["Value"] == {"Ref": function_ids["reconcile"]}
