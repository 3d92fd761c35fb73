"""The CDK app that the benchmark deploys in a loop has the queues that Berth gives a tenant."""

from __future__ import annotations

from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from bench.queue_app import build, stack_name

Json = dict[str, Any]

SETTINGS = ("MessageRetentionPeriod", "VisibilityTimeout")


@pytest.fixture(scope="module")
def template() -> Json:
    stack = build(App(analytics_reporting=False, context={"tenant": "acme"}))
    assert stack.stack_name == stack_name("acme") == "queue-acme"
    return dict(Template.from_stack(stack).to_json())


@pytest.mark.parametrize("name", ["InboundQueue", "DeadLetterQueue"])
def test_its_queues_have_the_settings_of_a_tenants_queues(template: Json, tenant: Json, name: str) -> None:
    (found,) = (
        each["Properties"]
        for logical_id, each in template["Resources"].items()
        if each["Type"] == "AWS::SQS::Queue" and logical_id.startswith(name)
    )
    expected = tenant["Resources"][name]["Properties"]
    assert {key: found.get(key) for key in SETTINGS} == {key: expected.get(key) for key in SETTINGS}
    assert found["SqsManagedSseEnabled"] is True
    assert ("RedrivePolicy" in found) == ("RedrivePolicy" in expected)
    if "RedrivePolicy" in found:
        assert found["RedrivePolicy"]["maxReceiveCount"] == expected["RedrivePolicy"]["maxReceiveCount"]
