"""The graphs that a dashboard is made of."""

from __future__ import annotations

from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from stacks.common.alarms import PERIOD
from stacks.common.permissions import names_of

PER_ROW = 3
_WIDTH = 24
"""The width of a dashboard, in CloudWatch's units."""


def graph(title: str, *metrics: cloudwatch.IMetric) -> cloudwatch.GraphWidget:
    return cloudwatch.GraphWidget(title=title, left=list(metrics), width=_WIDTH // PER_ROW, period=PERIOD)


def executions_graph(title: str, machine: sfn.StateMachine) -> cloudwatch.GraphWidget:
    """How many executions of a machine were started, and how those ended that did not succeed."""
    return graph(
        title,
        machine.metric_started(label="started"),
        machine.metric_failed(label="failed"),
        machine.metric_timed_out(label="timed out"),
        machine.metric_aborted(label="aborted"),
    )


def search(scope: Construct, what: str) -> cloudwatch.SearchExpression:
    """All metrics of that kind that functions count, without a name for each."""
    # A namespace with a hyphen has to be quoted.
    return cloudwatch.SearchExpression(
        expression=f"""SEARCH('{{"{names_of(scope).metrics}",service}} {what}', 'Sum')""", label="", period=PERIOD
    )
