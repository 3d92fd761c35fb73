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
    """The number of executions of a machine that were started, and of those that did not succeed, by status."""
    return graph(
        title,
        machine.metric_started(label="started"),
        machine.metric_failed(label="failed"),
        machine.metric_timed_out(label="timed out"),
        machine.metric_aborted(label="aborted"),
    )


def search(scope: Construct, terms: str) -> cloudwatch.SearchExpression:
    """All metrics of functions that match the search terms, without listing them by name."""
    # A namespace with a hyphen has to be quoted.
    return cloudwatch.SearchExpression(
        expression=f"""SEARCH('{{"{names_of(scope).metrics}",service}} {terms}', 'Sum')""", label="", period=PERIOD
    )
