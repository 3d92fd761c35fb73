"""A second stack in the same app, composed of capabilities like the control plane, and using its table."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from orchestrator.common.own_versions import berth_version, template_version
from orchestrator.tenants.credentials import Access
from stacks.common.alarms import PERIOD, Alarm
from stacks.common.capability import Capability, Output
from stacks.common.dead_letters import DeadLetters, dead_letter_queue
from stacks.common.functions import BerthFunction, FunctionKit
from stacks.common.graphs import graph
from stacks.common.plane import compose
from stacks.common.table import TENANT_ROWS
from stacks.control_plane import ControlPlaneStack
from stacks.settings import Dependencies, Settings
from tests.stacks.conftest import TOPIC
from tests.stacks.policies import spelled
from tests.stacks.released import KEY
from tests.stacks.test_alarms import alarms_of
from tests.stacks.test_encryption import policies_for_the_key

Json = dict[str, Any]


class Parcels(Capability):
    """A capability with one function, dead-letter queue, alarm, graph and output."""

    def __init__(self, scope: Construct, construct_id: str, *, kit: FunctionKit) -> None:
        super().__init__(scope, construct_id)
        self._undelivered = dead_letter_queue(self, "Undelivered", encryption=kit.encryption)
        # Any handler will do.
        self._send = BerthFunction(self, "Send", kit=kit, name="stack_event", dead_letters=self._undelivered)
        kit.table.allow(self._send.role, "GetItem", rows=TENANT_ROWS)
        kit.encryption.allow_queues(self._send.role, Access.SEND)

    @property
    def functions(self) -> Sequence[BerthFunction]:
        return (self._send,)

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (DeadLetters(self._undelivered, "parcels", "ParcelsUndelivered", "Not delivered. Send them again."),)

    @property
    def alarms(self) -> Sequence[Alarm]:
        lost = self._send.counted("Lost", statistic="Sum", period=PERIOD)
        return (Alarm("ParcelsLost", lost, "Parcels were lost. Look for them."),)

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        return (graph("Parcels lost", self._send.counted("Lost", statistic="Sum")),)

    @property
    def outputs(self) -> Sequence[Output]:
        return (Output("SendFunctionName", self._send.function.function_name),)


class ParcelsStack(Stack):
    def __init__(self, scope: Construct, *, control_plane: ControlPlaneStack, settings: Settings) -> None:
        super().__init__(scope, "BerthParcels", analytics_reporting=False)
        self.names = settings.names
        kit = FunctionKit.create(
            self,
            table=control_plane.table,
            encryption=control_plane.encryption,
            version="1.2.3",
            settings=settings,
        )
        parcels = Parcels(self, "Parcels", kit=kit)
        compose(self, [parcels], version="1.2.3", settings=settings)


def synthesised(key: str | None = None) -> tuple[Json, Json]:
    """The templates of the control plane and of the stack beside it."""
    settings = Settings(dependencies=Dependencies.HOST, alarm_topic_arn=TOPIC, dashboard=True, kms_key_arn=key)
    app = App(analytics_reporting=False)
    control_plane = ControlPlaneStack(
        app, version=berth_version(), template_version=template_version(), settings=settings
    )
    ParcelsStack(app, control_plane=control_plane, settings=settings)
    assembly = app.synth()
    return assembly.get_stack_by_name("Berth").template, assembly.get_stack_by_name("BerthParcels").template


@pytest.fixture(scope="module")
def templates() -> tuple[Json, Json]:
    return synthesised()


@pytest.fixture(scope="module")
def second(templates: tuple[Json, Json]) -> Json:
    return templates[1]


def test_its_capabilities_get_their_alarms_which_notify_the_same_topic(second: Json) -> None:
    alarms = alarms_of(second)
    assert set(alarms) == {"ParcelsUndelivered", "ParcelsLost"}
    assert all(alarm["AlarmActions"] == [TOPIC] for alarm in alarms.values())


def test_failed_calls_of_its_functions_set_off_the_alarm_of_the_control_plane(second: Json) -> None:
    (counted,) = (each for each in second["Resources"].values() if each["Type"] == "AWS::Logs::MetricFilter")
    (metric,) = counted["Properties"]["MetricTransformations"]
    assert (metric["MetricNamespace"], metric["MetricName"]) == ("Berth", "FunctionErrors")


def test_it_has_a_dashboard_of_its_own(second: Json) -> None:
    (dashboard,) = (each for each in second["Resources"].values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    assert dashboard["Properties"]["DashboardName"] == "BerthParcels"


def test_it_has_the_outputs_of_its_capabilities_and_its_version(second: Json) -> None:
    assert set(second["Outputs"]) == {"SendFunctionName", "Version"}
    assert second["Outputs"]["Version"]["Value"] == "1.2.3"


def test_its_functions_know_the_control_plane_and_its_table(second: Json) -> None:
    (function,) = (each for each in second["Resources"].values() if each["Type"] == "AWS::Lambda::Function")
    variables = function["Properties"]["Environment"]["Variables"]
    assert (variables["BERTH_NAME"], variables["BERTH_METRICS_NAMESPACE"]) == ("Berth", "Berth")
    assert set(variables["BERTH_TABLE"]) == {"Fn::ImportValue"}


def test_the_control_plane_beside_it_keeps_its_resources(templates: tuple[Json, Json], with_dashboard: Json) -> None:
    assert templates[0]["Resources"].keys() == with_dashboard["Resources"].keys()


def test_with_a_key_its_functions_may_use_the_key_and_the_control_plane_does_not_depend_on_it() -> None:
    """The second stack is deployed after the control plane, whose table it uses."""
    first, second = synthesised(KEY)
    (policy,) = policies_for_the_key(second).values()
    services = {
        spelled(statement["Condition"]["StringEquals"]["kms:ViaService"]).partition(".")[0]
        for statement in policy["Properties"]["PolicyDocument"]["Statement"]
    }
    assert services == {"dynamodb", "sqs"}
    assert {name for each in first["Resources"].values() for name in each.get("DependsOn", [])} <= set(
        first["Resources"]
    )
    (queue,) = (each for each in second["Resources"].values() if each["Type"] == "AWS::SQS::Queue")
    assert queue["DependsOn"] == list(policies_for_the_key(second))
