"""docs/costs.json counts everything in both stacks that costs something even when it is not used."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from aws_cdk import App
from aws_cdk.assertions import Template

from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.common.tiers import STANDARD
from orchestrator.reconciling.health import POOL_EVERY, SETTLING_EVERY, SURVEY_EVERY
from stacks.control_plane import ControlPlaneStack
from stacks.events.stack import EventsStack
from stacks.settings import Dependencies, Settings
from tests.costs import COUNTS, MONTH, idle

Json = dict[str, Any]

MAX_IDLE = 6.00
"""The maximum cost of both stacks together per month, in dollars, without tenants and events."""
POLLS_AT_ONCE, POLL = 5, timedelta(seconds=20)
"""Lambda polls an empty queue with five concurrent requests of 20 seconds each."""
COSTS_WHEN_USED = {
    "AWS::ApiGatewayV2::Api",
    "AWS::ApiGatewayV2::Integration",
    "AWS::ApiGatewayV2::Route",
    "AWS::ApiGatewayV2::Stage",
    "AWS::DynamoDB::Table",
    "AWS::Events::EventBus",
    "AWS::Events::Rule",
    "AWS::IAM::ManagedPolicy",
    "AWS::IAM::Policy",
    "AWS::IAM::Role",
    "AWS::Lambda::Function",
    "AWS::Lambda::Permission",
    "AWS::Logs::LogGroup",
    "AWS::Logs::MetricFilter",
    "AWS::S3::Bucket",
    "AWS::S3::BucketPolicy",
    "AWS::SQS::Queue",
    "AWS::SQS::QueuePolicy",
    "AWS::StepFunctions::StateMachine",
    "Custom::ApiProof",
    "Custom::Release",
}
"""Resources that cost nothing when they are not used, except for stored data."""


def test_the_counts_have_everything_of_the_control_plane_with_a_cost_when_idle(control_plane: Json) -> None:
    types = [each["Type"] for each in control_plane["Resources"].values()]
    rules = [each for each in control_plane["Resources"].values() if each["Type"] == "AWS::Events::Rule"]
    assert sorted(rule["Properties"].get("ScheduleExpression", "") for rule in rules)[-2:] == [
        "rate(5 minutes)",
        "rate(6 hours)",
    ]
    polls = POLLS_AT_ONCE * (MONTH // POLL) * types.count("AWS::Lambda::EventSourceMapping")
    assert "AWS::CloudWatch::Dashboard" not in types
    assert COUNTS["idle"]["control plane"] == {
        "alarms": types.count("AWS::CloudWatch::Alarm"),
        "hours in which surveys write a metric": MONTH // SURVEY_EVERY,
        "settlings, every 5 minutes": MONTH // SETTLING_EVERY,
        "surveys, every 6 hours": MONTH // SURVEY_EVERY,
        "requests with which Lambda polls empty queues": polls,
    }


def test_the_counts_have_everything_of_the_event_plane_with_a_cost_when_idle(event_plane: Json) -> None:
    types = [each["Type"] for each in event_plane["Resources"].values()]
    schedules = [
        each["Properties"]["ScheduleExpression"]
        for each in event_plane["Resources"].values()
        if each["Type"] == "AWS::Events::Rule" and "ScheduleExpression" in each["Properties"]
    ]
    assert sorted(schedules) == ["cron(30 2 * * ? *)", "rate(1 hour)", "rate(1 hour)", "rate(1 minute)"]
    assert "AWS::CloudWatch::Dashboard" not in types
    polled = [
        each
        for each in event_plane["Resources"].values()
        if each["Type"] == "AWS::Lambda::EventSourceMapping"
        if each["Properties"]["EventSourceArn"].get("Fn::GetAtt", [""])[-1] == "Arn"
    ]
    assert COUNTS["idle"]["event plane"] == {
        "alarms": types.count("AWS::CloudWatch::Alarm"),
        "KMS keys": types.count("AWS::KMS::Key"),
        "searches for deleted tenants, every hour": MONTH // timedelta(hours=1),
        "counts for bills, every hour": MONTH // timedelta(hours=1),
        "sweeps, every minute": MONTH // timedelta(minutes=1),
        "redispatches, every night": MONTH // timedelta(days=1),
        "requests with which Lambda polls empty queues": POLLS_AT_ONCE * (MONTH // POLL) * len(polled),
    }


def test_all_other_resources_cost_nothing_when_idle(plane: Json) -> None:
    counted = {"AWS::CloudWatch::Alarm", "AWS::Lambda::EventSourceMapping"}
    assert {each["Type"] for each in plane["Resources"].values()} - counted - {"AWS::KMS::Key"} <= COSTS_WHEN_USED


def test_a_warm_pool_costs_one_schedule_when_idle() -> None:
    """tests/costs.py says what the schedule costs."""
    (nothing, usual), (warm, of_warm) = (
        _types_and_schedules(**settings) for settings in ({}, {"warm_pool": {STANDARD: 2}})
    )
    assert (warm - nothing).keys() <= COSTS_WHEN_USED
    assert of_warm - usual == {f"rate({POOL_EVERY // timedelta(minutes=1)} minute)": 1}


def _deployed(**settings: Any) -> Sequence[Json]:
    """The resources of the control plane and of the event plane."""
    app = App(analytics_reporting=False)
    given = Settings(dependencies=Dependencies.HOST, **settings)
    control_plane = ControlPlaneStack(app, version=berth_version(), template_version=template_version(), settings=given)
    events = EventsStack(app, control_plane=control_plane, version=berth_version(), settings=given)
    return [Template.from_stack(each).to_json()["Resources"] for each in (control_plane, events)]


def _types_and_schedules(**settings: object) -> tuple[Counter[str], Counter[str]]:
    resources = [each for plane in _deployed(**settings) for each in plane.values()]
    schedules = (each["Properties"].get("ScheduleExpression") for each in resources)
    return Counter(each["Type"] for each in resources), Counter(filter(None, schedules))


def test_both_stacks_together_cost_less_than_the_limit_when_idle() -> None:
    """The other tests compare the numbers with the templates."""
    assert sum(cost for parts in idle().values() for cost in parts.values()) < MAX_IDLE


def test_an_alarm_watches_one_metric(plane: Json) -> None:
    """Each metric of an expression, and each that a query looks at, costs as much as an alarm."""
    alarms = [each["Properties"] for each in plane["Resources"].values() if each["Type"] == "AWS::CloudWatch::Alarm"]
    assert alarms
    assert all("MetricName" in each and "Metrics" not in each for each in alarms)
