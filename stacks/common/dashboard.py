"""The dashboard of a stack: the graphs of all its capabilities, on one page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aws_cdk import Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from constructs import Construct

from stacks.common.capability import Capability
from stacks.common.dead_letters import DeadLetters
from stacks.common.graphs import PER_ROW, graph, search

Row = list[cloudwatch.IWidget]


class Dashboard(Construct):
    """The graphs of each capability start a new row, in the order of the capabilities."""

    def __init__(self, scope: Construct, construct_id: str, *, capabilities: Sequence[Capability]) -> None:
        super().__init__(scope, construct_id)
        rows = [row for capability in capabilities for row in _rows(capability.widgets)]
        dead_letters = [queue for capability in capabilities for queue in capability.dead_letters]
        _place(rows, [_throttles(self), *_dead_letters(dead_letters)])
        cloudwatch.Dashboard(self, "Dashboard", dashboard_name=Stack.of(self).stack_name, widgets=rows)


def _rows(widgets: Sequence[cloudwatch.IWidget]) -> Iterator[Row]:
    for first in range(0, len(widgets), PER_ROW):
        yield list(widgets[first : first + PER_ROW])


def _place(rows: list[Row], shared: Row) -> None:
    """Put the graphs about all capabilities into the first row that has room for them."""
    for row in rows:
        if len(row) + len(shared) <= PER_ROW:
            row.extend(shared)
            return
    rows.append(shared)


def _throttles(scope: Construct) -> cloudwatch.GraphWidget:
    return graph("Calls that AWS throttled, by function", search(scope, 'MetricName="Throttled"'))


def _dead_letters(dead_letters: Sequence[DeadLetters]) -> Row:
    if not dead_letters:
        return []
    return [graph("Messages in dead-letter queues", *(queue.metric_held(label=queue.holds) for queue in dead_letters))]
