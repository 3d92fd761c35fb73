"""What an operator is woken for: everything that needs one, and what to do about it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.reconciling.health import SETTLING_EVERY, SURVEY_EVERY
from stacks.common.function_code import module_of
from stacks.project import ROOT
from tests.stacks.conftest import TOPIC
from tests.stacks.policies import spelled

Json = dict[str, Any]

HASH = 8
"""How many characters the CDK adds to an alarm's name for its logical id."""
MORE_THAN_ONE = {"GetQueueSlow": 1000, "ApiServerErrors": 5}
"""Alarms that single events do not set off, and what does."""

RUNBOOK = re.compile(r" Runbook: ([\w.]+)\.$")
HEADING = re.compile(r"^## (.+)$", re.MULTILINE)


def alarms_of(template: Json) -> dict[str, Json]:
    """Every alarm, by its name."""
    return {
        logical_id.removeprefix("Alarms")[:-HASH]: resource["Properties"]
        for logical_id, resource in template["Resources"].items()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    }


@pytest.fixture(scope="module")
def alarms(control_plane: Json) -> dict[str, Json]:
    return alarms_of(control_plane)


def watched(alarm: Json) -> tuple[str, str, str]:
    (dimension,) = alarm["Dimensions"]
    return alarm["Namespace"], alarm["MetricName"], spelled(dimension["Value"])


# What is watched


def test_every_function_has_its_alarms(alarms: dict[str, Json], function_ids: dict[str, str]) -> None:
    found = {watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/Lambda"}
    slow = ("AWS/Lambda", "Duration", f"<{function_ids['get_queue']}>")
    assert found == {
        slow,
        *(
            ("AWS/Lambda", metric, f"<{function}>")
            for function in function_ids.values()
            for metric in ("Errors", "Throttles")
        ),
    }


def test_what_starts_automatic_rollouts_has_its_alarms(control_plane: Json, with_everything: Json) -> None:
    more = alarms_of(with_everything).keys() - alarms_of(control_plane).keys()
    assert more == {"StartRolloutErrors", "StartRolloutThrottles"}


def test_the_machines_have_their_alarms(alarms: dict[str, Json], machine_ids: dict[str, str]) -> None:
    ends = {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}
    found = {watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/States"}
    assert found == {
        *(
            ("AWS/States", end, f"<{machine_ids[stem]}>")
            for stem in ("create_tenant", "update_tenant", "delete_tenant", "rollout")
            for end in ends
        ),
        # It fails whenever another team asks for what cannot be; that team is told.
        *(("AWS/States", end, f"<{machine_ids['tenant_queue']}>") for end in ends - {"ExecutionsFailed"}),
    }


def test_every_dead_letter_queue_has_its_alarm(alarms: dict[str, Json], dead_letter_queues: dict[str, str]) -> None:
    found = [watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/SQS"]
    held = "ApproximateNumberOfMessagesVisible"
    assert sorted(found) == sorted(("AWS/SQS", held, f"<{queue}.QueueName>") for queue in dead_letter_queues.values())


def test_every_queue_is_one_of_dead_letters_or_the_one_of_executions_that_ended(
    control_plane: Json, dead_letter_queues: dict[str, str], ended_executions: str
) -> None:
    queues = {name for name, resource in control_plane["Resources"].items() if resource["Type"] == "AWS::SQS::Queue"}
    assert queues == {*dead_letter_queues.values(), ended_executions}


def test_what_functions_count_is_watched(alarms: dict[str, Json]) -> None:
    found = {name: watched(alarm) for name, alarm in alarms.items() if alarm["Namespace"] == "Berth"}
    assert found == {
        "OperationsStuck": ("Berth", "OperationsStuck", "reconcile"),
        "Repairs": ("Berth", "Repairs", "reconcile"),
        "FindingsLeft": ("Berth", "FindingsLeft", "reconcile"),
        "OperationsSettled": ("Berth", "OperationSettled", "close_execution"),
        "TenantQueueNotConfirmed": ("Berth", "RequestNotConfirmed", "settle_tenant_queue"),
    }


@pytest.mark.parametrize("function", ["reconcile", "close_execution", "settle_tenant_queue"])
def test_what_is_watched_is_what_the_functions_count(alarms: dict[str, Json], function: str) -> None:
    source = (ROOT / f"{module_of(function).replace('.', '/')}.py").read_text(encoding="utf-8")
    counted = set(re.findall(r'count\("(\w+)"', source))
    dimension = {"Name": "service", "Value": function}
    assert counted == {alarm["MetricName"] for alarm in alarms.values() if alarm["Dimensions"] == [dimension]}


@pytest.mark.parametrize(
    ("name", "every"), [("OperationsStuck", SETTLING_EVERY), ("FindingsLeft", SURVEY_EVERY)], ids=["stuck", "left"]
)
def test_what_is_looked_for_now_and_then_stays_told_until_it_is_looked_for_again(
    alarms: dict[str, Json], name: str, every: timedelta
) -> None:
    assert alarms[name]["Period"] >= every.total_seconds()
    assert alarms[name]["Statistic"] == "Maximum"


def test_the_api_is_watched_for_server_errors(alarms: dict[str, Json], the_only: Callable[[str], str]) -> None:
    alarm = alarms["ApiServerErrors"]
    assert watched(alarm) == ("AWS/ApiGateway", "5xx", f"<{the_only('AWS::ApiGatewayV2::Api')}>")
    assert alarm["Statistic"] == "Sum"


def test_get_queue_is_slow_when_its_slowest_calls_are_for_a_while(alarms: dict[str, Json]) -> None:
    alarm = alarms["GetQueueSlow"]
    assert alarm["ExtendedStatistic"] == "p99"
    assert alarm["EvaluationPeriods"] * alarm["Period"] == 15 * 60


# What they say


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything"])
def test_alarms_say_what_to_do_and_are_quiet_when_nothing_runs(request: pytest.FixtureRequest, fixture: str) -> None:
    for name, alarm in alarms_of(request.getfixturevalue(fixture)).items():
        description = RUNBOOK.sub("", alarm["AlarmDescription"])
        assert description.count(".") >= 2, "what it means, and what to do"
        assert alarm["TreatMissingData"] == "notBreaching"
        assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        assert alarm["Threshold"] == MORE_THAN_ONE.get(name, 1)
        assert "Metrics" not in alarm, "the emulator knows no metric math"


@pytest.mark.parametrize(
    "name", [f"{each}{end}" for each in ("Create", "Update", "Delete") for end in ("TimedOut", "Aborted")]
)
def test_of_executions_that_died_it_is_said_that_they_are_settled_by_themselves(
    alarms: dict[str, Json], name: str
) -> None:
    assert "settled by itself" in alarms[name]["AlarmDescription"]


def test_alarms_notify_the_topic_if_there_is_one(alarms: dict[str, Json], other_settings: Template) -> None:
    assert all("AlarmActions" not in alarm for alarm in alarms.values())
    notifying = alarms_of(other_settings.to_json())
    assert notifying.keys() >= alarms.keys()
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in notifying.values())


# The runbook


@pytest.fixture(scope="module")
def entries() -> set[str]:
    """What the runbook's headings are about. One heading may be about several: `## RolloutAborted, RolloutTimedOut`."""
    headings = HEADING.findall((ROOT / "docs" / "runbook.md").read_text(encoding="utf-8"))
    return {name for heading in headings for name in heading.split(", ")}


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything"])
def test_every_alarm_names_its_entry_in_the_runbook(request: pytest.FixtureRequest, fixture: str) -> None:
    """Its own name, or `...` and how its name ends: `...Errors` is about all alarms whose names end so."""
    for name, alarm in alarms_of(request.getfixturevalue(fixture)).items():
        entry = RUNBOOK.search(alarm["AlarmDescription"])
        assert entry, name
        assert entry[1] == name or (entry[1].startswith("...") and name.endswith(entry[1].removeprefix("..."))), name


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything"])
def test_the_runbook_has_every_entry_that_an_alarm_names(
    request: pytest.FixtureRequest, entries: set[str], fixture: str
) -> None:
    named = {
        entry[1]
        for alarm in alarms_of(request.getfixturevalue(fixture)).values()
        if (entry := RUNBOOK.search(alarm["AlarmDescription"]))
    }
    assert named
    assert sorted(named - entries) == []
