"""The dashboard: how the control plane is doing, on one page."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.stacks.policies import spelled

Json = dict[str, Any]

ROW = 24
"""As wide as a dashboard is."""


@pytest.fixture(scope="module")
def widgets(control_plane: Json, the_only: Callable[[str], str]) -> dict[str, Json]:
    """Every graph, by its title."""
    dashboard = control_plane["Resources"][the_only("AWS::CloudWatch::Dashboard")]["Properties"]
    body = json.loads(spelled(dashboard["DashboardBody"]))
    found = {widget["properties"]["title"]: widget for widget in body["widgets"]}
    assert len(found) == len(body["widgets"])
    return found


def drawn(widget: Json) -> set[tuple[str, str, str]]:
    """Namespace, metric, and what it is of."""
    return {(line[0], line[1], line[3]) for line in widget["properties"]["metrics"] if isinstance(line[0], str)}


def searched(widget: Json) -> list[str]:
    return [line[0]["expression"] for line in widget["properties"]["metrics"] if isinstance(line[0], dict)]


def test_it_is_called_as_the_stack_is(control_plane: Json, the_only: Callable[[str], str]) -> None:
    dashboard = control_plane["Resources"][the_only("AWS::CloudWatch::Dashboard")]["Properties"]
    assert dashboard["DashboardName"] == "Berth"


def test_no_graph_hides_another(widgets: dict[str, Json]) -> None:
    places = {(widget["x"], widget["y"]) for widget in widgets.values()}
    assert len(places) == len(widgets)
    assert all(widget["x"] + widget["width"] <= ROW for widget in widgets.values())


def test_get_queue_is_shown_with_calls_latency_errors_throttles_and_answers(
    widgets: dict[str, Json], function_ids: dict[str, str]
) -> None:
    of_get_queue = [widget for title, widget in widgets.items() if title.startswith("getQueue: ")]
    metrics = {metric for widget in of_get_queue for metric in drawn(widget)}
    get_queue = f"<{function_ids['get_queue']}>"
    assert metrics == {
        ("AWS/Lambda", metric, get_queue) for metric in ("Invocations", "Duration", "Errors", "Throttles")
    }
    statistics = [line[-1]["stat"] for line in widgets["getQueue: latency"]["properties"]["metrics"]]
    assert statistics == ["p50", "p90", "p99"]
    assert searched(widgets["get_queue: answers other than success"]) == [
        """SEARCH('{"Berth",service} service="get_queue"', 'Sum')"""
    ]


@pytest.mark.parametrize(
    ("title", "stem"),
    [
        ("Creates", "create_tenant"),
        ("Updates", "update_tenant"),
        ("Deletes", "delete_tenant"),
        ("Rollouts", "rollout"),
    ],
)
def test_operations_are_shown_by_machine_with_how_they_ended(
    widgets: dict[str, Json], machine_ids: dict[str, str], title: str, stem: str
) -> None:
    shown = ("ExecutionsStarted", "ExecutionsFailed", "ExecutionsTimedOut", "ExecutionsAborted")
    assert drawn(widgets[title]) == {("AWS/States", metric, f"<{machine_ids[stem]}>") for metric in shown}


def test_what_reconciliations_found_and_did_is_shown(widgets: dict[str, Json]) -> None:
    metrics = {metric for widget in widgets.values() for metric in drawn(widget) if metric[0] == "Berth"}
    assert metrics == {
        ("Berth", "OperationsStuck", "reconcile"),
        ("Berth", "Repairs", "reconcile"),
        ("Berth", "FindingsLeft", "reconcile"),
        ("Berth", "OperationSettled", "close_execution"),
    }


def test_every_dead_letter_queue_is_shown(widgets: dict[str, Json], dead_letter_queues: dict[str, str]) -> None:
    held = "ApproximateNumberOfMessagesVisible"
    assert drawn(widgets["Dead letters"]) == {
        ("AWS/SQS", held, f"<{queue}.QueueName>") for queue in dead_letter_queues.values()
    }
    assert {line[-1]["label"] for line in widgets["Dead letters"]["properties"]["metrics"]} == set(dead_letter_queues)


def test_throttles_and_server_errors_are_shown(widgets: dict[str, Json], the_only: Callable[[str], str]) -> None:
    (search,) = searched(widgets["Throttled by AWS, by function"])
    assert 'MetricName="Throttled"' in search
    assert drawn(widgets["API: 5xx"]) == {("AWS/ApiGateway", "5xx", f"<{the_only('AWS::ApiGatewayV2::Api')}>")}
