"""Counts the state transitions and function calls of one create, update and delete, on the emulator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from bench.deployed import Deployed, deployed
from bench.measure import Result
from bench.stack_events import StackEvents
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.home import polls
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.tenants.records import Attempt, Operation, Request

_LONGEST_SECONDS = 120
_ASK_CLOUDFORMATION = frozenset({"StartStack", "AwaitStack", "InspectStack", "RecordFailure"})


def operations() -> list[Result]:
    """Measures the shortest path of each machine: the first signal finds the stack done."""
    # The emulator sends no events about stacks, so the measurement sends them.
    # With shorter waits, a delete would look at its queue before the queue was empty for long enough, and once more.
    with deployed(real_waits=True, stackEvents="true") as control_plane:
        return _measure(control_plane)


def _measure(control_plane: Deployed) -> list[Result]:
    emulator, outputs = control_plane.emulator, control_plane.outputs
    stepfunctions, logs = control_plane.client("stepfunctions"), control_plane.client("logs")
    executions = control_plane.executions()
    tenant, first, version = TenantId("bench"), TenantId("bench-first"), outputs["TemplateVersion"]
    changed, unchanged = "98.0.0", "99.0.0"
    template = released_template(version)
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    for later in (changed, unchanged):
        publish(emulator, outputs, later, bumped(template, later))
    results = []
    by_bench = Request(by="bench", explicit=True)
    events = StackEvents(control_plane.client, outputs["TableName"], _function(control_plane, "stack_event"))

    def history_of(who: TenantId, execution: str | None) -> tuple[list[dict[str, Any]], int]:
        return _history(stepfunctions, execution, lambda: events.send(who))

    history_of(first, executions.start(Attempt(first, Operation.CREATE, version, 1), by_bench))
    for name, who, operation, target, aim in (
        ("create", tenant, Operation.CREATE, version, "<= 5"),
        # The first update from one release to another is reviewed by a change set, with a wait in between.
        ("first update to a release", first, Operation.UPDATE, changed, "<= 8"),
        ("update", tenant, Operation.UPDATE, changed, "<= 5"),
        ("update without a change", tenant, Operation.UPDATE, unchanged, "<= 3"),
        # A queue must be seen empty twice, with a wait in between.
        ("delete", tenant, Operation.DELETE, unchanged, "<= 8"),
    ):
        before = _metadata_calls(logs)
        execution = executions.start(Attempt(who, operation, target, 1), by_bench)
        history, sent = history_of(who, execution)
        entered = [event["stateEnteredEventDetails"]["name"] for event in history if "Entered" in event["type"]]
        tasks = sum(event["type"] == "TaskScheduled" for event in history)
        called = tasks + sent + _metadata_calls(logs) - before
        results.append(Result(f"{name}: state transitions", len(entered), "", aim))
        results.append(Result(f"{name}: calls of functions, the stack's own included", called, "", ""))
        if target == unchanged and operation is Operation.UPDATE:
            asking = len(_ASK_CLOUDFORMATION.intersection(entered))
            results.append(Result(f"{name}: states that call CloudFormation", asking, "", "0"))
    return results


def _function(control_plane: Deployed, name: str) -> str:
    """The name of the function with this handler."""
    pages = control_plane.client("lambda").get_paginator("list_functions").paginate()
    functions = (each for page in pages for each in page["Functions"])
    return next(str(each["FunctionName"]) for each in functions if each["Handler"].split(".")[-2] == name)


def _history(
    stepfunctions: Any, execution: str | None, send_event: Callable[[], bool]
) -> tuple[list[dict[str, Any]], int]:
    """The execution's history, once it has succeeded, and the number of events that were sent meanwhile."""
    sent = 0
    for _ in polls(_LONGEST_SECONDS):
        status = stepfunctions.describe_execution(executionArn=execution)["status"]
        if status == "SUCCEEDED":
            pages = stepfunctions.get_paginator("get_execution_history").paginate(executionArn=execution)
            return [event for page in pages for event in page["events"]], sent
        sent += send_event()
        if status != "RUNNING":
            raise RuntimeError(f"{execution} ended {status}.")
    raise RuntimeError(f"{execution} did not end within {_LONGEST_SECONDS} s.")


def _metadata_calls(logs: Any) -> int:
    """The number of calls of the function behind Custom::TenantMetadata, from its log."""
    (group,) = (
        group["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate()
        for group in page["logGroups"]
        if "TenantMetadata" in group["logGroupName"]
    )
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    return sum("Answered CloudFormation" in event["message"] for page in pages for event in page["events"])
