"""The dashboard of the control plane, and how graphs are placed in rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from aws_cdk import App, Stack
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_sqs as sqs
from aws_cdk.assertions import Template
from constructs import Construct

from stacks.common.capability import Capability
from stacks.common.dashboard import Dashboard
from stacks.common.dead_letters import DeadLetters
from stacks.common.graphs import graph
from tests.stacks.policies import spelled

Json = dict[str, Any]

ROW = 24
"""The width of a dashboard, in CloudWatch's units."""


@pytest.fixture(scope="module")
def dashboard(with_dashboard: Json) -> Json:
    (found,) = (each for each in with_dashboard["Resources"].values() if each["Type"] == "AWS::CloudWatch::Dashboard")
    properties: Json = found["Properties"]
    return properties


@pytest.fixture(scope="module")
def widgets(dashboard: Json) -> dict[str, Json]:
    """Every graph, by its title."""
    body = json.loads(spelled(dashboard["DashboardBody"]))
    found = {widget["properties"]["title"]: widget for widget in body["widgets"]}
    assert len(found) == len(body["widgets"])
    return found


def drawn(widget: Json) -> set[tuple[str, str, str]]:
    """Namespace, metric and dimension value of every line in a graph."""
    return {(line[0], line[1], line[3]) for line in widget["properties"]["metrics"] if isinstance(line[0], str)}


def searched(widget: Json) -> list[str]:
    return [line[0]["expression"] for line in widget["properties"]["metrics"] if isinstance(line[0], dict)]


def test_there_is_no_dashboard_unless_the_setting_asks_for_it(plane: Json) -> None:
    assert not [each for each in plane["Resources"].values() if each["Type"] == "AWS::CloudWatch::Dashboard"]


def test_the_dashboard_has_the_name_of_the_stack(dashboard: Json) -> None:
    assert dashboard["DashboardName"] == "Berth"


def test_graphs_do_not_overlap(widgets: dict[str, Json]) -> None:
    places = {(widget["x"], widget["y"]) for widget in widgets.values()}
    assert len(places) == len(widgets)
    assert all(widget["x"] + widget["width"] <= ROW for widget in widgets.values())


def test_graphs_of_get_queue_show_calls_latency_errors_and_throttles(
    widgets: dict[str, Json], function_ids: dict[str, str]
) -> None:
    get_queue_graphs = [widget for title, widget in widgets.items() if title.startswith("getQueue: ")]
    metrics = {metric for widget in get_queue_graphs for metric in drawn(widget)}
    get_queue = f"<{function_ids['get_queue']}>"
    assert metrics == {
        ("AWS/Lambda", metric, get_queue) for metric in ("Invocations", "Duration", "Errors", "Throttles")
    }
    statistics = [line[-1]["stat"] for line in widgets["getQueue: latency"]["properties"]["metrics"]]
    assert statistics == ["p50", "p90", "p99"]


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("Creates", "create_tenant"),
        ("Updates", "update_tenant"),
        ("Deletes", "delete_tenant"),
        ("Rollouts", "rollout"),
    ],
)
def test_each_machine_has_a_graph_of_its_executions(
    widgets: dict[str, Json], machine_ids: dict[str, str], title: str, stem: str
) -> None:
    shown = ("ExecutionsStarted", "ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
    assert drawn(widgets[title]) == {("AWS/States", metric, f"<{machine_ids[stem]}>") for metric in shown}


def test_findings_and_repairs_of_reconciliations_are_shown(widgets: dict[str, Json]) -> None:
    metrics = {metric for widget in widgets.values() for metric in drawn(widget) if metric[0] == "Berth"}
    assert metrics == {
        ("Berth", "OperationsStuck", "reconcile"),
        ("Berth", "Repairs", "reconcile"),
        ("Berth", "FindingsLeft", "reconcile"),
        ("Berth", "OperationSettled", "close_execution"),
    }


def test_every_dead_letter_queue_is_shown(widgets: dict[str, Json], dead_letter_queues: dict[str, str]) -> None:
    held = "ApproximateNumberOfMessagesVisible"
    assert drawn(widgets["Messages in dead-letter queues"]) == {
        ("AWS/SQS", held, f"<{queue}.QueueName>") for queue in dead_letter_queues.values()
    }
    assert {line[-1]["label"] for line in widgets["Messages in dead-letter queues"]["properties"]["metrics"]} == set(
        dead_letter_queues
    )


def test_throttles_refusals_and_server_errors_are_shown(
    widgets: dict[str, Json], the_only: Callable[[str], str]
) -> None:
    (search,) = searched(widgets["Calls that AWS throttled, by function"])
    assert 'MetricName="Throttled"' in search
    api = f"<{the_only('AWS::ApiGatewayV2::Api')}>"
    assert drawn(widgets["API: refused requests and server errors"]) == {
        ("AWS/ApiGateway", "4xx", api),
        ("AWS/ApiGateway", "5xx", api),
    }


# The rows


class Graphs(Capability):
    """A capability with a dead-letter queue and the given number of graphs."""

    def __init__(self, scope: Construct, construct_id: str, *, graphs: int) -> None:
        super().__init__(scope, construct_id)
        self._graphs = graphs
        self._queue = sqs.Queue(self, "Queue")

    @property
    def dead_letters(self) -> Sequence[DeadLetters]:
        return (DeadLetters(self._queue, f"letters of {self.node.id}", "Undelivered", "Send them again."),)

    @property
    def widgets(self) -> Sequence[cloudwatch.IWidget]:
        metric = cloudwatch.Metric(namespace="Berth", metric_name="Parcels")
        return [graph(f"{self.node.id}{number}", metric) for number in range(self._graphs)]


THROTTLES, LETTERS = "Calls that AWS throttled, by function", "Messages in dead-letter queues"


@pytest.mark.parametrize(
    ("graphs", "rows"),
    [
        ({"A": 1}, [["A0", THROTTLES, LETTERS]]),
        ({"A": 2, "B": 1}, [["A0", "A1"], ["B0", THROTTLES, LETTERS]]),
        ({"A": 4, "B": 1}, [["A0", "A1", "A2"], ["A3", THROTTLES, LETTERS], ["B0"]]),
        ({"A": 2, "B": 0, "C": 3}, [["A0", "A1"], ["C0", "C1", "C2"], [THROTTLES, LETTERS]]),
        ({}, [[THROTTLES]]),
    ],
    ids=["one", "room in the second", "more than a row", "no room", "nothing"],
)
def test_each_capability_starts_a_row_and_shared_graphs_go_into_the_first_row_with_room(
    graphs: dict[str, int], rows: list[list[str]]
) -> None:
    stack = Stack(App(analytics_reporting=False), "Berth", analytics_reporting=False)
    Dashboard(stack, "Dashboard", capabilities=[Graphs(stack, name, graphs=number) for name, number in graphs.items()])
    (dashboard,) = Template.from_stack(stack).find_resources("AWS::CloudWatch::Dashboard").values()
    found: dict[int, list[str]] = {}
    for widget in json.loads(spelled(dashboard["Properties"]["DashboardBody"]))["widgets"]:
        found.setdefault(widget["y"], []).append(widget["properties"]["title"])
    assert list(found.values()) == rows
