"""Compose a stack from capabilities: add their alarms, the dashboard and their outputs."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import CfnOutput, Stack

from stacks.common.alarms import Alarm, Alarms
from stacks.common.capability import Capability
from stacks.common.dashboard import Dashboard
from stacks.common.log_groups import count_failed_calls
from stacks.settings import Settings


def compose(
    stack: Stack,
    capabilities: Sequence[Capability],
    *,
    version: str,
    settings: Settings,
    other_alarms: Sequence[Alarm] = (),
) -> None:
    """Add the alarms, the dashboard (in the order of the capabilities) if there is to be one, and the outputs."""
    alarms = Alarms(stack, "Alarms", topic_arn=settings.alarm_topic_arn)
    for alarm in other_alarms:
        alarms.add(alarm)
    for capability in capabilities:
        for alarm in capability.alarms:
            alarms.add(alarm)
        for function in capability.functions:
            count_failed_calls(function.logs)
        for dead_letters in capability.dead_letters:
            alarms.add(dead_letters.alarm)
    if settings.dashboard:
        Dashboard(stack, "Dashboard", capabilities=capabilities)
    for capability in capabilities:
        for output in capability.outputs:
            CfnOutput(stack, output.name, value=output.value, export_name=output.export_name)
    CfnOutput(stack, "Version", value=version)
