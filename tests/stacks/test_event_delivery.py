"""Delivery of events in the event plane's template: the stream, the queues, the functions and what watches them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk.assertions import Template

from orchestrator.events.delivery.messages import MAX_DELAY
from stacks.events.delivery import _shared
from tests.stacks.policies import listed, spelled, statements
from tests.stacks.test_alarms import alarms_of

Json = dict[str, Any]

SENDER = "events@example.com"


def mappings_of(template: Json, function: str) -> list[Json]:
    return [
        each["Properties"]
        for each in template["Resources"].values()
        if each["Type"] == "AWS::Lambda::EventSourceMapping" and each["Properties"]["FunctionName"] == {"Ref": function}
    ]


def source_of(mapping: Json) -> str:
    source: str = mapping["EventSourceArn"]["Fn::GetAtt"][0]
    return source


def queues_of(template: Json) -> dict[str, Json]:
    """The queues of deliveries, by their names."""
    return {
        name.removeprefix("DeliveryQueues")[:-8]: each["Properties"] | {"id": name}
        for name, each in template["Resources"].items()
        if each["Type"] == "AWS::SQS::Queue" and name.startswith("DeliveryQueues")
    }


def target_of(template: Json, function: str) -> tuple[str, Json]:
    """The schedule on which a function is called, and the target of its rule."""
    (found,) = (
        (each["Properties"]["ScheduleExpression"], target)
        for each in template["Resources"].values()
        if each["Type"] == "AWS::Events::Rule"
        for target in each["Properties"]["Targets"]
        if target["Arn"] == {"Fn::GetAtt": [function, "Arn"]}
    )
    return found


# The stream


def test_the_stream_has_no_more_than_two_consumers(event_plane: Json, event_function_ids: dict[str, str]) -> None:
    """AWS documents that more than two readers of a shard are throttled."""
    consumers = [
        each["Properties"]["FunctionName"]["Ref"]
        for each in event_plane["Resources"].values()
        if each["Type"] == "AWS::Lambda::EventSourceMapping"
        if each["Properties"]["EventSourceArn"].get("Fn::GetAtt", [""])[-1] == "StreamArn"
    ]
    assert sorted(consumers) == sorted(event_function_ids[name] for name in ("count_usage", "dispatch_events"))


def test_new_events_are_dispatched_at_once_and_changes_of_them_are_not(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    (mapping,) = mappings_of(event_plane, event_function_ids["dispatch_events"])
    (pattern,) = (json.loads(each["Pattern"]) for each in mapping["FilterCriteria"]["Filters"])
    assert pattern == {"eventName": ["INSERT"], "dynamodb": {"Keys": {"pk": {"S": [{"prefix": "TENANT_ID#"}]}}}}
    assert "MaximumBatchingWindowInSeconds" not in mapping
    assert mapping["StartingPosition"] == "TRIM_HORIZON"


def test_records_that_cannot_be_dispatched_are_handed_to_the_function_that_dispatches_again(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    (mapping,) = mappings_of(event_plane, event_function_ids["dispatch_events"])
    assert mapping["BisectBatchOnFunctionError"] is True
    assert 0 < mapping["MaximumRetryAttempts"] < 1_000
    failed = mapping["DestinationConfig"]["OnFailure"]["Destination"]["Fn::GetAtt"][0]
    (again,) = mappings_of(event_plane, event_function_ids["redispatch_events"])
    assert source_of(again) == failed == queues_of(event_plane)["NotDispatched"]["id"]


# The queues


@pytest.mark.parametrize(("queue", "function"), [("First", "deliver_events"), ("Later", "deliver_events")])
def test_a_message_is_hidden_for_six_times_the_timeout_and_kept_as_long_as_sqs_can(
    event_plane: Json, event_function_ids: dict[str, str], queue: str, function: str
) -> None:
    found = queues_of(event_plane)[queue]
    timeout = event_plane["Resources"][event_function_ids[function]]["Properties"]["Timeout"]
    assert (timeout, found["VisibilityTimeout"], found["MessageRetentionPeriod"]) == (60, 360, 14 * 24 * 3600)
    # A delay that a try asks for is shorter than the time for which messages are kept.
    assert MAX_DELAY.total_seconds() < found["MessageRetentionPeriod"]


def test_both_queues_feed_one_function_and_neither_takes_the_concurrency_of_the_other(
    event_plane: Json, events_with_other_settings: Template, event_function_ids: dict[str, str]
) -> None:
    queues = queues_of(event_plane)
    for template in (event_plane, events_with_other_settings.to_json()):
        mappings = mappings_of(template, event_function_ids["deliver_events"])
        assert {source_of(each) for each in mappings} == {queues["First"]["id"], queues["Later"]["id"]}
        assert [each["BatchSize"] for each in mappings] == [10, 10]
        assert all(each["FunctionResponseTypes"] == ["ReportBatchItemFailures"] for each in mappings)
        reserved = template["Resources"][event_function_ids["deliver_events"]]["Properties"].get(
            "ReservedConcurrentExecutions", 50
        )
        assert sum(each["ScalingConfig"]["MaximumConcurrency"] for each in mappings) == reserved


@pytest.mark.parametrize(("at_once", "shared"), [(4, (2, 2)), (5, (2, 3)), (50, (25, 25))])
def test_the_queues_share_the_concurrency_evenly(at_once: int, shared: tuple[int, int]) -> None:
    assert _shared(at_once) == shared


def test_every_message_that_fails_again_and_again_ends_with_a_function_and_then_with_an_operator(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    queues = queues_of(event_plane)

    def next_of(queue: str) -> str:
        policy = queues[queue]["RedrivePolicy"]
        assert 3 <= policy["maxReceiveCount"] <= 10
        target = policy["deadLetterTargetArn"]["Fn::GetAtt"][0]
        return next(name for name, each in queues.items() if each["id"] == target)

    assert (next_of("First"), next_of("Later")) == ("Lost", "Lost")
    assert (next_of("Lost"), next_of("NotDispatched")) == ("NotRecovered", "NotRedispatched")
    (recovering,) = mappings_of(event_plane, event_function_ids["recover_deliveries"])
    assert source_of(recovering) == queues["Lost"]["id"]
    assert recovering["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
    for queue in ("NotRecovered", "NotRedispatched"):
        assert "RedrivePolicy" not in queues[queue]


def test_every_queue_is_encrypted_and_refuses_requests_without_tls(event_plane: Json) -> None:
    protected = {
        queue["Ref"]
        for each in event_plane["Resources"].values()
        if each["Type"] == "AWS::SQS::QueuePolicy"
        for queue in each["Properties"]["Queues"]
        if "aws:SecureTransport" in json.dumps(each)
    }
    queues = queues_of(event_plane)
    assert {each["id"] for each in queues.values()} <= protected
    assert all(each["SqsManagedSseEnabled"] is True for each in queues.values())


# The schedules


def test_the_sweep_runs_every_minute_is_over_before_the_next_and_is_never_repeated(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    schedule, target = target_of(event_plane, event_function_ids["sweep_deliveries"])
    assert schedule == "rate(1 minute)"
    assert target["RetryPolicy"]["MaximumRetryAttempts"] == 0
    assert event_plane["Resources"][event_function_ids["sweep_deliveries"]]["Properties"]["Timeout"] < 60


def test_there_is_one_sweep_at_a_time_where_concurrency_is_reserved(
    events_with_other_settings: Template, event_function_ids: dict[str, str]
) -> None:
    template = events_with_other_settings.to_json()
    sweep = template["Resources"][event_function_ids["sweep_deliveries"]]["Properties"]
    assert sweep["ReservedConcurrentExecutions"] == 1


def test_events_are_dispatched_again_every_night_before_the_stream_forgets_them(
    event_plane: Json, event_function_ids: dict[str, str]
) -> None:
    schedule, target = target_of(event_plane, event_function_ids["redispatch_events"])
    assert schedule == "cron(30 2 * * ? *)"
    assert "DeadLetterConfig" in target


# Alarms


def test_the_alarm_about_the_sweep_goes_off_without_data(event_plane: Json) -> None:
    alarm = alarms_of(event_plane)["SweepNotRunning"]
    assert (alarm["ComparisonOperator"], alarm["Threshold"]) == ("LessThanThreshold", 1)
    assert alarm["TreatMissingData"] == "breaching"
    # Lambda counts the calls at no charge. Calls that fail set off the alarm about failed calls.
    assert (alarm["Namespace"], alarm["MetricName"], alarm["Statistic"]) == ("AWS/Lambda", "Invocations", "Sum")
    assert alarm["Period"] * alarm["EvaluationPeriods"] == 600


def test_no_alarm_is_about_the_queue_of_failing_receivers(event_plane: Json) -> None:
    """A receiver that fails is a tenant's concern: its retries wait in that queue for as long as they have to."""
    later = queues_of(event_plane)["Later"]["id"]
    assert later not in json.dumps(alarms_of(event_plane))


# Permissions


def role_of(template: Json, function: str) -> str:
    role: str = template["Resources"][function]["Properties"]["Role"]["Fn::GetAtt"][0]
    return role


def test_mail_is_sent_by_deliverers_only_from_the_address_in_the_settings(
    event_plane: Json, events_with_other_settings: Template, event_function_ids: dict[str, str]
) -> None:
    def sending(template: Json) -> list[tuple[str, list[str], Json]]:
        return [
            (role, [spelled(each).rpartition("/")[2] for each in listed(each["Resource"])], each["Condition"])
            for role, each in statements(template)
            if any(action.startswith("ses:") for action in listed(each["Action"]))
        ]

    assert sending(event_plane) == []
    template = events_with_other_settings.to_json()
    (configuration_set,) = (
        name for name, each in template["Resources"].items() if each["Type"] == "AWS::SES::ConfigurationSet"
    )
    deliverers, condition = (
        role_of(template, event_function_ids["deliver_events"]),
        {"StringEquals": {"ses:FromAddress": SENDER}},
    )
    assert sending(template) == [
        (deliverers, ["*"], condition),
        (deliverers, [f"<{configuration_set}>"], condition),
    ]


@pytest.mark.parametrize("name", ["deliver_events", "tenant_events", "event_operators"])
def test_a_function_that_checks_destinations_knows_what_is_allowed(
    event_plane: Json, events_with_other_settings: Template, event_function_ids: dict[str, str], name: str
) -> None:
    def variables(template: Json) -> Json:
        found: Json = template["Resources"][event_function_ids[name]]["Properties"]["Environment"]["Variables"]
        return found

    on_aws = variables(event_plane)
    assert not {"BERTH_LOOPBACK_DESTINATIONS", "BERTH_EVENTS_MAIL_FROM"} & on_aws.keys()
    assert spelled(on_aws["BERTH_OWN_HOSTS"]).endswith(".execute-api.<AWS::Region>.<AWS::URLSuffix>")
    other = variables(events_with_other_settings.to_json())
    assert (other["BERTH_LOOPBACK_DESTINATIONS"], other["BERTH_EVENTS_MAIL_FROM"]) == ("true", SENDER)


@pytest.mark.parametrize(
    "name", ["dispatch_events", "deliver_events", "sweep_deliveries", "recover_deliveries", "redispatch_events"]
)
def test_no_function_is_in_a_network_of_its_own(
    event_plane: Json, event_function_ids: dict[str, str], name: str
) -> None:
    """In a VPC, a webhook could reach addresses inside that are not reached from Lambda's own network."""
    assert "VpcConfig" not in event_plane["Resources"][event_function_ids[name]]["Properties"]
