"""The pool: queues of the control plane's own stack, and who may do what with them."""

from __future__ import annotations

import json
from typing import Any

import pytest
from aws_cdk import App
from aws_cdk.assertions import Template

from orchestrator.tenants.pooling import POOL_RETENTION
from stacks.control_plane import ControlPlaneStack
from stacks.events.stack import EventsStack
from stacks.project import read_version
from stacks.settings import Dependencies, Settings


def deployed(**settings: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """The resources of the control plane and of the event plane."""
    app = App(analytics_reporting=False)
    given = Settings(dependencies=Dependencies.HOST, **settings)
    control_plane = ControlPlaneStack(app, version=read_version(), settings=given)
    events = EventsStack(app, control_plane=control_plane, version=read_version(), settings=given)
    first, second = (Template.from_stack(each).to_json()["Resources"] for each in (control_plane, events))
    return first, second


@pytest.fixture(scope="module")
def planes() -> tuple[dict[str, Any], dict[str, Any]]:
    return deployed(pooled_queues=2)


def pooled(resources: dict[str, Any]) -> dict[str, Any]:
    return {
        each["Properties"]["QueueName"]: each
        for each in resources.values()
        if each["Type"] == "AWS::SQS::Queue" and "-pool-" in str(each["Properties"].get("QueueName"))
    }


def service(resources: dict[str, Any], name: str) -> dict[str, Any]:
    (found,) = [
        each["Properties"]
        for each in resources.values()
        if each["Type"] == "AWS::Lambda::Function"
        and each["Properties"]["Environment"]["Variables"].get("BERTH_SERVICE") == name
    ]
    return found


def test_the_queues_have_names_that_stay_and_stay_themselves(planes: tuple[dict[str, Any], dict[str, Any]]) -> None:
    queues = pooled(planes[0])
    assert set(queues) == {"berth-pool-1", "berth-pool-2", "berth-pool-dead-letters"}
    for queue in queues.values():
        assert queue["DeletionPolicy"] == queue["UpdateReplacePolicy"] == "Retain"
    retention = {queues[f"berth-pool-{each}"]["Properties"]["MessageRetentionPeriod"] for each in (1, 2)}
    assert retention == {int(POOL_RETENTION.total_seconds())}


def test_without_the_setting_there_is_no_pool(control_plane: dict[str, Any]) -> None:
    assert "BERTH_POOLED_QUEUES" not in json.dumps(control_plane)
    assert not pooled(control_plane["Resources"])


def test_only_functions_that_create_tenants_know_the_queues(planes: tuple[dict[str, Any], dict[str, Any]]) -> None:
    knowing = {
        each["Properties"]["Environment"]["Variables"]["BERTH_SERVICE"]
        for each in planes[0].values()
        if each["Type"] == "AWS::Lambda::Function" and "BERTH_POOLED_QUEUES" in json.dumps(each)
    }
    assert knowing == {"get_queue", "operators"}


def test_get_queue_that_creates_no_tenants_knows_no_pool() -> None:
    resources, _ = deployed(pooled_queues=2, create_on_get_queue=False)
    assert "BERTH_POOLED_QUEUES" not in service(resources, "get_queue")["Environment"]["Variables"]


def test_nobody_but_deliveries_may_use_the_queues_and_they_may_only_send(
    planes: tuple[dict[str, Any], dict[str, Any]],
) -> None:
    statements = [
        statement
        for resources in planes
        for each in resources.values()
        if each["Type"] in ("AWS::IAM::Policy", "AWS::IAM::ManagedPolicy")
        for statement in each["Properties"]["PolicyDocument"]["Statement"]
        if "-pool-" in json.dumps(statement["Resource"])
    ]
    assert statements
    for statement in statements:
        assert statement["Action"] == "sqs:SendMessage"
        assert "*" not in json.dumps(statement["Resource"])
        assert len(statement["Resource"]) == 2
