"""The alarms: there is one for everything that needs an operator, and each says what to do."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.reconciling.health import SETTLING_EVERY, SURVEY_EVERY
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

PAGE = ROOT / "docs" / "runbook.md"
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


def watched(alarm: Json) -> tuple[str, str, str | None]:
    """Namespace, metric and dimension value. ``None`` for a metric that is not of one resource."""
    (dimension,) = alarm.get("Dimensions") or [None]
    return alarm["Namespace"], alarm["MetricName"], dimension and spelled(dimension["Value"])


def counted_lines(template: Json, group: str) -> list[tuple[str, str, str]]:
    """Namespace, metric and pattern of every filter that counts lines of the log group."""
    filters = (
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::Logs::MetricFilter"
    )
    found = [each for each in filters if each["LogGroupName"] == {"Ref": group}]
    for each in found:
        (metric,) = each["MetricTransformations"]
        assert (metric["MetricValue"], metric.keys() & {"DefaultValue", "Dimensions"}) == ("1", set())
    return [
        (metric["MetricNamespace"], metric["MetricName"], each["FilterPattern"])
        for each in found
        for metric in each["MetricTransformations"]
    ]


# The metrics


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything", "event_plane"])
def test_the_failed_calls_of_every_function_are_counted_together(request: pytest.FixtureRequest, fixture: str) -> None:
    template = request.getfixturevalue(fixture)
    functions = [
        each["Properties"] for each in template["Resources"].values() if each["Type"] == "AWS::Lambda::Function"
    ]
    assert functions
    for function in functions:
        logging = function["LoggingConfig"]
        # At this level, Lambda reports the end of a call only if the call failed.
        assert (logging["LogFormat"], logging["SystemLogLevel"]) == ("JSON", "WARN")
        pattern = '{ $.type = "platform.report" && $.record.status != "success" }'
        assert counted_lines(template, logging["LogGroup"]["Ref"]) == [("Berth", "FunctionErrors", pattern)]


@pytest.mark.parametrize("fixture", ["control_plane", "event_plane"])
def test_the_dead_executions_of_every_machine_are_counted_together(
    request: pytest.FixtureRequest, fixture: str
) -> None:
    template = request.getfixturevalue(fixture)
    machines = [each["Properties"] for each in template["Resources"].values() if "StateMachine" in each["Type"]]
    assert machines
    for machine in machines:
        (destination,) = machine["LoggingConfiguration"]["Destinations"]
        group = destination["CloudWatchLogsLogGroup"]["LogGroupArn"]["Fn::GetAtt"][0]
        pattern = '{ $.type = "ExecutionTimedOut" || $.type = "ExecutionAborted" }'
        assert counted_lines(template, group) == [("Berth", "ExecutionsDied", pattern)]


def test_one_alarm_each_is_about_all_functions_and_all_machines(alarms: dict[str, Json]) -> None:
    assert watched(alarms["FunctionErrors"]) == ("Berth", "FunctionErrors", None)
    assert watched(alarms["FunctionThrottles"]) == ("AWS/Lambda", "Throttles", None)
    assert watched(alarms["ExecutionsDied"]) == ("Berth", "ExecutionsDied", None)


def test_the_event_plane_shares_these_alarms_and_settings_add_none(
    event_plane: Json, control_plane: Json, with_everything: Json
) -> None:
    assert not alarms_of(event_plane).keys() & alarms_of(control_plane).keys()
    assert alarms_of(with_everything).keys() == alarms_of(control_plane).keys()


def test_the_machines_have_their_alarms(alarms: dict[str, Json], machine_ids: dict[str, str]) -> None:
    """Other teams' requests for a queue have none: the machine fails when a request cannot be fulfilled, and
    CloudFormation tells that team.
    """
    found = {watched(alarm) for alarm in alarms.values() if alarm["Namespace"] == "AWS/States"}
    assert found == {
        ("AWS/States", "ExecutionsFailed", f"<{machine_ids[stem]}>")
        for stem in ("create_tenant", "update_tenant", "delete_tenant", "rollout")
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
        "FindingsLeft": ("Berth", "FindingsLeft", "reconcile"),
        "FunctionErrors": ("Berth", "FunctionErrors", None),
        "ExecutionsDied": ("Berth", "ExecutionsDied", None),
        "TenantQueueNotConfirmed": ("Berth", "RequestNotConfirmed", "settle_tenant_queue"),
    }


WITHOUT_ALARM = {
    "Delivered": "a success",
    "TriesFailed": "the receiver's failure, which is tried again",
    "DeliveriesFailed": "the receiver's failure, which its tenant sees",
    "Parked": "waits for a receiver",
    "EventsMissing": "the event has expired",
    "DispatchedAgain": "dispatched by the next sweep; DispatchLate goes off if the cause lasts",
    "SweepsCutShort": "the next run goes on; DeliveriesLate goes off if first tries wait",
    "RecordsParked": "parked in a dead-letter queue, which has an alarm",
    "Throttled": "tried again; FunctionErrors, ApiServerErrors or a failed execution follows if it lasts",
    "UnverifiedWebhooks": "a sender's mistake",
    "TrappedSubmissions": "a form's spam",
    "OperationFailed": "the execution fails, and its machine has an alarm",
    "OperationSettled": "repaired; the execution's end has set off ExecutionsDied, CreateFailed, ... or FunctionErrors",
    "Repairs": "repaired",
}
"""The metrics of functions that no alarm watches, each with the reason."""


def test_every_metric_that_a_function_emits_has_an_alarm_or_a_reason_to_have_none(
    control_plane: Json, event_plane: Json
) -> None:
    sources = [path.read_text(encoding="utf-8") for path in (ROOT / "lambdas").rglob("*.py")]
    emitted = {
        name for source in sources for name in re.findall(r'(?:count\(|Outcome\.\w+: |"error": )"(\w+)"', source)
    }
    alarms = [*alarms_of(control_plane).values(), *alarms_of(event_plane).values()]
    from_lines = {"FunctionErrors", "ExecutionsDied"}
    with_alarm = {each["MetricName"] for each in alarms if each["Namespace"] == "Berth"} - from_lines
    assert with_alarm >= {"OperationsStuck", "UnreadableRows", "Errors"}
    assert not with_alarm & WITHOUT_ALARM.keys()
    assert emitted == with_alarm | WITHOUT_ALARM.keys()


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
        assert "Metrics" not in alarm, "each metric of an expression costs as much as an alarm"


def test_the_alarm_about_executions_that_died_says_that_operations_are_closed_automatically(
    alarms: dict[str, Json],
) -> None:
    assert "closed automatically" in alarms["ExecutionsDied"]["AlarmDescription"]


def test_alarms_notify_the_topic_if_it_is_set(alarms: dict[str, Json], other_settings: Template) -> None:
    assert all("AlarmActions" not in alarm for alarm in alarms.values())
    notifying = alarms_of(other_settings.to_json())
    assert notifying.keys() >= alarms.keys()
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in notifying.values())


# The runbook


@pytest.fixture(scope="module")
def entries() -> set[str]:
    """The runbook's headings."""
    return set(HEADING.findall(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("fixture", ["control_plane", "with_everything", "event_plane"])
def test_every_alarm_names_its_entry_in_the_runbook(request: pytest.FixtureRequest, fixture: str) -> None:
    for name, alarm in alarms_of(request.getfixturevalue(fixture)).items():
        entry = RUNBOOK.search(alarm["AlarmDescription"])
        assert entry, name
        assert entry[1] == name


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


def test_the_runbook_says_what_each_alarm_covers(event_plane: Json, control_plane: Json) -> None:
    section = PAGE.read_text(encoding="utf-8").partition("\n## Which alarm covers what\n")[2].partition("\n## ")[0]
    rows = [line.split("|") for line in section.splitlines() if line.startswith("| ")]
    covering = {name for row in rows for name in re.findall(r"`(\w+)`", row[2])}
    assert covering == alarms_of(control_plane).keys() | alarms_of(event_plane).keys()
