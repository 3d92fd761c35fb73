"""Compose a stack from capabilities: add their alarms, the dashboard and their outputs."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnOutput, Stack

from stacks.common.alarms import Alarms, alarms_of_function
from stacks.common.capability import Capability
from stacks.common.dashboard import Dashboard


def compose(
    stack: Stack, capabilities: Sequence[Capability], *, version: str, alarm_topic_arn: str | None = None
) -> None:
    """Add the alarms, the dashboard (in the order of the capabilities) and the outputs."""
    alarms = Alarms(stack, "Alarms", topic_arn=alarm_topic_arn)
    for capability in capabilities:
        for alarm in capability.alarms:
            alarms.add(alarm)
        for function in capability.functions:
            for alarm in alarms_of_function(function):
                alarms.add(alarm)
        for dead_letters in capability.dead_letters:
            alarms.add(dead_letters.alarm)
    Dashboard(stack, "Dashboard", capabilities=capabilities)
    for capability in capabilities:
        for output in capability.outputs:
            CfnOutput(stack, output.name, value=output.value, export_name=output.export_name)
    CfnOutput(stack, "Version", value=version)
