"""The resources that close operations whose executions died, and that reconcile the whole fleet on a schedule."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.reconciling.events import parse_to_run
from orchestrator.reconciling.health import POOL_EVERY, SETTLING_EVERY, SURVEY_EVERY
from orchestrator.reconciling.records import POOL, SETTLING, SURVEY
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
    """The rules with a schedule, by the reconciliation that they start."""
    scheduled = [rule for rule in _rules(control_plane) if "ScheduleExpression" in rule]
    return {parse_to_run(json.loads(rule["Targets"][0]["Input"])): rule for rule in scheduled}


@pytest.fixture(scope="module")
def queue(control_plane: Json, ended_executions: str) -> Json:
    properties: Json = control_plane["Resources"][ended_executions]["Properties"]
    return properties


# Executions that ended


def test_the_rule_matches_every_end_of_an_operation_except_success(rule: Json, machine_ids: dict[str, str]) -> None:
    pattern = rule["EventPattern"]
    assert pattern["detail-type"] == ["Step Functions Execution Status Change"]
    assert set(pattern["detail"]) == {"status", "stateMachineArn"}
    assert set(pattern["detail"]["status"]) == {"FAILED", "TIMED_OUT", "ABORTED"}
    operations = ("create_tenant", "update_tenant", "delete_tenant")
    assert [spelled(arn) for arn in pattern["detail"]["stateMachineArn"]] == [
        f"<{machine_ids[stem]}>" for stem in operations
    ]


def test_events_go_to_the_queue_and_undelivered_events_to_the_dead_letters(
    rule: Json, ended_executions: str, dead_letter_queues: dict[str, str]
) -> None:
    (target,) = rule["Targets"]
    assert target["Arn"] == {"Fn::GetAtt": [ended_executions, "Arn"]}
    assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 8}
    kept = dead_letter_queues["executions that ended"]
    assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [kept, "Arn"]}}
    assert "Input" not in target, "the function reads the event as it is"


def test_events_are_delayed_until_no_function_of_the_execution_can_still_be_running(
    control_plane: Json, queue: Json, function_ids: dict[str, str]
) -> None:
    variables = control_plane["Resources"][function_ids["close_execution"]]["Properties"]["Environment"]["Variables"]
    assert queue["DelaySeconds"] == int(variables["BERTH_LINGER_SECONDS"]) + 5


def test_the_delay_is_longer_than_the_timeout_of_every_function_of_an_operation(
    control_plane: Json, machine_ids: dict[str, str], queue: Json
) -> None:
    resources = control_plane["Resources"]
    longest = max(
        resources[arn["Fn::GetAtt"][0]]["Properties"]["Timeout"]
        for stem in ("create_tenant", "update_tenant", "delete_tenant")
        for arn in resources[machine_ids[stem]]["Properties"]["DefinitionSubstitutions"].values()
    )
    assert longest < queue["DelaySeconds"]


def test_the_queue_has_the_visibility_timeout_that_lambda_advises_and_gives_up_after_five_tries(
    control_plane: Json, queue: Json, function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    timeout = control_plane["Resources"][function_ids["close_execution"]]["Properties"]["Timeout"]
    assert queue["VisibilityTimeout"] >= 6 * timeout
    kept = dead_letter_queues["executions that ended"]
    assert queue["RedrivePolicy"] == {"deadLetterTargetArn": {"Fn::GetAtt": [kept, "Arn"]}, "maxReceiveCount": 5}


def test_the_function_gets_one_message_per_call_with_limited_concurrency_and_reports_failures(
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


def _every(rule: Json) -> timedelta:
    count, unit = rule["ScheduleExpression"].removeprefix("rate(").removesuffix(")").split(" ")
    return timedelta(**{f"{unit.removesuffix('s')}s": int(count)})


@pytest.mark.parametrize(
    ("reconciliation", "every"), [(SETTLING, SETTLING_EVERY), (SURVEY, SURVEY_EVERY)], ids=[SETTLING, SURVEY]
)
def test_reconciliations_run_as_often_as_berth_doctor_expects(
    schedules: dict[str, Json], reconciliation: str, every: timedelta
) -> None:
    assert _every(schedules[reconciliation]) == every


def test_a_warm_pool_is_looked_after_more_often(other_settings: Template) -> None:
    scheduled = [rule for rule in _rules(other_settings.to_json()) if "ScheduleExpression" in rule]
    found = {parse_to_run(json.loads(rule["Targets"][0]["Input"])): _every(rule) for rule in scheduled}
    assert found == {SETTLING: SETTLING_EVERY, SURVEY: SURVEY_EVERY, POOL: POOL_EVERY}


def test_there_are_no_other_schedules(schedules: dict[str, Json]) -> None:
    assert set(schedules) == {SETTLING, SURVEY}


def test_a_scheduled_reconciliation_that_could_not_be_started_goes_to_the_dead_letters(
    schedules: dict[str, Json], function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    for rule in schedules.values():
        (target,) = rule["Targets"]
        assert target["Arn"] == {"Fn::GetAtt": [function_ids["reconcile"], "Arn"]}
        assert target["RetryPolicy"] == {"MaximumEventAgeInSeconds": 300, "MaximumRetryAttempts": 2}
        kept = dead_letter_queues["reconciliations"]
        assert target["DeadLetterConfig"] == {"Arn": {"Fn::GetAtt": [kept, "Arn"]}}


def test_a_reconciliation_that_failed_on_every_try_goes_to_the_dead_letters(
    control_plane: Json, function_ids: dict[str, str], dead_letter_queues: dict[str, str]
) -> None:
    reconcile = control_plane["Resources"][function_ids["reconcile"]]["Properties"]
    kept = dead_letter_queues["reconciliations"]
    assert reconcile["DeadLetterConfig"] == {"TargetArn": {"Fn::GetAtt": [kept, "Arn"]}}


def test_operators_start_the_same_function(control_plane: Json, function_ids: dict[str, str]) -> None:
    operators = control_plane["Resources"][function_ids["operators"]]["Properties"]
    started = operators["Environment"]["Variables"]["BERTH_RECONCILE_FUNCTION"]
    assert started == {"Fn::GetAtt": [function_ids["reconcile"], "Arn"]}
    assert control_plane["Outputs"]["ReconcileFunctionName"]["Value"] == {"Ref": function_ids["reconcile"]}
