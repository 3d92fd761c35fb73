"""The alarms: there is one for everything that needs an operator, and each says what to do."""

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
MORE_THAN_ONE = {
    "GetQueueSlow": 1000,
    "ApiServerErrors": 5,
    "EventsApiServerErrors": 5,
    "EventStreamLate": 60_000,
    "OwnEventsLate": 300_000,
    "DispatchLate": 60_000,
    "DeliveriesLate": 300,
}
"""The thresholds of the alarms that a single event does not set off."""
HEARTBEATS = {"SweepNotRunning"}
"""The alarms that go off when something does not happen."""

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


# The metrics


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


def test_the_function_that_starts_automatic_rollouts_has_its_alarms(control_plane: Json, with_everything: Json) -> None:
    added = alarms_of(with_everything).keys() - alarms_of(control_plane).keys()
    assert added == {"StartRolloutErrors", "StartRolloutThrottles"}


def test_the_machines_have_their_alarms(alarms: dict[str, Json], machine_ids: dict[str, str]) -> None:
    ends = {"ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted"}
    found = {watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/States"}
    assert found == {
        *(
            ("AWS/States", end, f"<{machine_ids[stem]}>")
            for stem in ("create_tenant", "update_tenant", "delete_tenant", "rollout")
            for end in ends
        ),
        # This machine fails when another team's request cannot be fulfilled. CloudFormation tells that team.
        *(("AWS/States", end, f"<{machine_ids['tenant_queue']}>") for end in ends - {"ExecutionsFailed"}),
    }


def test_every_dead_letter_queue_has_its_alarm(alarms: dict[str, Json], dead_letter_queues: dict[str, str]) -> None:
    found = [watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/SQS"]
    held = "ApproximateNumberOfMessagesVisible"
    assert sorted(found) == sorted(("AWS/SQS", held, f"<{queue}.QueueName>") for queue in dead_letter_queues.values())


def test_every_queue_is_a_dead_letter_queue_or_the_queue_of_ended_executions(
    control_plane: Json, dead_letter_queues: dict[str, str], ended_executions: str
) -> None:
    queues = {name for name, resource in control_plane["Resources"].items() if resource["Type"] == "AWS::SQS::Queue"}
    assert queues == {*dead_letter_queues.values(), ended_executions}


def test_the_metrics_that_functions_emit_have_alarms(alarms: dict[str, Json]) -> None:
    found = {name: watched(alarm) for name, alarm in alarms.items() if alarm["Namespace"] == "Berth"}
    assert found == {
        "OperationsStuck": ("Berth", "OperationsStuck", "reconcile"),
        "Repairs": ("Berth", "Repairs", "reconcile"),
        "FindingsLeft": ("Berth", "FindingsLeft", "reconcile"),
        "OperationsSettled": ("Berth", "OperationSettled", "close_execution"),
        "TenantQueueNotConfirmed": ("Berth", "RequestNotConfirmed", "settle_tenant_queue"),
    }


@pytest.mark.parametrize("function", ["reconcile", "close_execution", "settle_tenant_queue"])
def test_every_metric_that_a_function_emits_has_an_alarm(alarms: dict[str, Json], function: str) -> None:
    source = (ROOT / f"{module_of(function).replace('.', '/')}.py").read_text(encoding="utf-8")
    counted = set(re.findall(r'count\("(\w+)"', source))
    dimension = {"Name": "service", "Value": function}
    assert counted == {alarm["MetricName"] for alarm in alarms.values() if alarm["Dimensions"] == [dimension]}


@pytest.mark.parametrize(
    ("name", "every"), [("OperationsStuck", SETTLING_EVERY), ("FindingsLeft", SURVEY_EVERY)], ids=["stuck", "left"]
)
def test_an_alarm_about_a_scheduled_check_lasts_until_the_next_check(
    alarms: dict[str, Json], name: str, every: timedelta
) -> None:
    assert alarms[name]["Period"] >= every.total_seconds()
    assert alarms[name]["Statistic"] == "Maximum"


def test_server_errors_of_the_api_have_an_alarm(alarms: dict[str, Json], the_only: Callable[[str], str]) -> None:
    alarm = alarms["ApiServerErrors"]
    assert watched(alarm) == ("AWS/ApiGateway", "5xx", f"<{the_only('AWS::ApiGatewayV2::Api')}>")
    assert alarm["Statistic"] == "Sum"


def test_the_alarm_about_slow_get_queue_needs_a_quarter_of_an_hour_of_slow_calls(alarms: dict[str, Json]) -> None:
    alarm = alarms["GetQueueSlow"]
    assert alarm["ExtendedStatistic"] == "p99"
    assert alarm["EvaluationPeriods"] * alarm["Period"] == 15 * 60


# The descriptions


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything", "event_plane"])
def test_alarms_say_what_to_do_and_are_quiet_when_nothing_runs(request: pytest.FixtureRequest, fixture: str) -> None:
    for name, alarm in alarms_of(request.getfixturevalue(fixture)).items():
        description = RUNBOOK.sub("", alarm["AlarmDescription"])
        assert description.count(".") >= 2, "one sentence on what happened, one on what to do"
        if name in HEARTBEATS:
            assert (alarm["TreatMissingData"], alarm["ComparisonOperator"]) == ("breaching", "LessThanThreshold")
        else:
            assert alarm["TreatMissingData"] == "notBreaching"
            assert alarm["ComparisonOperator"] == "GreaterThanOrEqualToThreshold"
        assert alarm["Threshold"] == MORE_THAN_ONE.get(name, 1)
        assert "Metrics" not in alarm, "the emulator knows no metric math"


@pytest.mark.parametrize(
    "name", [f"{each}{end}" for each in ("Create", "Update", "Delete") for end in ("TimedOut", "Aborted")]
)
def test_alarms_about_executions_that_died_say_that_the_operation_is_closed_automatically(
    alarms: dict[str, Json], name: str
) -> None:
    assert "closed automatically" in alarms[name]["AlarmDescription"]


def test_alarms_notify_the_topic_if_it_is_set(alarms: dict[str, Json], other_settings: Template) -> None:
    assert all("AlarmActions" not in alarm for alarm in alarms.values())
    notifying = alarms_of(other_settings.to_json())
    assert notifying.keys() >= alarms.keys()
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in notifying.values())


# The runbook


@pytest.fixture(scope="module")
def entries() -> set[str]:
    """The alarms in the runbook's headings. A heading may name several: `## RolloutAborted, RolloutTimedOut`."""
    headings = HEADING.findall((ROOT / "docs" / "runbook.md").read_text(encoding="utf-8"))
    return {name for heading in headings for name in heading.split(", ")}


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything", "event_plane"])
def test_every_alarm_names_its_entry_in_the_runbook(request: pytest.FixtureRequest, fixture: str) -> None:
    """The entry is the alarm's name, or `...` and the end of the name: `...Errors` is for all alarms that end in
    Errors.
    """
    for name, alarm in alarms_of(request.getfixturevalue(fixture)).items():
        entry = RUNBOOK.search(alarm["AlarmDescription"])
        assert entry, name
        assert entry[1] == name or (entry[1].startswith("...") and name.endswith(entry[1].removeprefix("..."))), name


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything", "event_plane"])
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
