"""Counts the state transitions and function calls of one create, update and delete, on the emulator."""

from __future__ import annotations

from typing import Any

from bench.deployed import Deployed, deployed
from bench.measure import Result
from orchestrator.common.tenant_ids import TenantId
from orchestrator.local.home import polls
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.tenants.records import Attempt, Operation, Request

_LONGEST_SECONDS = 120
_ASK_CLOUDFORMATION = frozenset({"StartStack", "AwaitStack", "InspectStack", "RecordFailure"})


def operations() -> list[Result]:
    """Measures the shortest path of each machine: the first signal finds the stack done."""
    # Long enough that a stack is done at its first check, as it is on AWS when the event arrives.
    # With shorter waits, a delete would look at its queue before the queue was empty for long enough, and once more.
    with deployed(real_waits=True, awaitStackSeconds="5") as control_plane:
        return _measure(control_plane)


def _measure(control_plane: Deployed) -> list[Result]:
    emulator, outputs = control_plane.emulator, control_plane.outputs
    stepfunctions, logs = control_plane.client("stepfunctions"), control_plane.client("logs")
    executions = control_plane.executions()
    tenant, first, version = TenantId("bench"), TenantId("bench-first"), outputs["Version"]
    changed, unchanged = "98.0.0", "99.0.0"
    template = released_template(version)
    template["Resources"]["InboundQueue"]["Properties"]["VisibilityTimeout"] = 60
    for later in (changed, unchanged):
        publish(emulator, outputs, later, bumped(template, later))
    results = []
    by_bench = Request(by="bench", explicit=True)
    _history(stepfunctions, executions.start(Attempt(first, Operation.CREATE, version, 1), by_bench))
    for name, who, operation, target, aim in (
        ("create", tenant, Operation.CREATE, version, "<= 9"),
        # The first update from one release to another is reviewed by a change set, with a wait in between.
        ("first update to a release", first, Operation.UPDATE, changed, "<= 12"),
        ("update", tenant, Operation.UPDATE, changed, "<= 7"),
        ("update without a change", tenant, Operation.UPDATE, unchanged, "<= 3"),
        # A queue must be seen empty twice, with a wait in between.
        ("delete", tenant, Operation.DELETE, unchanged, "<= 12"),
    ):
        before = _metadata_calls(logs)
        execution = executions.start(Attempt(who, operation, target, 1), by_bench)
        history = _history(stepfunctions, execution)
        entered = [event["stateEnteredEventDetails"]["name"] for event in history if "Entered" in event["type"]]
        tasks = sum(event["type"] == "TaskScheduled" for event in history)
        called = tasks + _metadata_calls(logs) - before
        results.append(Result(f"{name}: state transitions", len(entered), "", aim))
        results.append(Result(f"{name}: calls of functions, the stack's own included", called, "", ""))
        if target == unchanged and operation is Operation.UPDATE:
            asking = len(_ASK_CLOUDFORMATION.intersection(entered))
            results.append(Result(f"{name}: states that call CloudFormation", asking, "", "0"))
    return results


def _history(stepfunctions: Any, execution: str | None) -> list[dict[str, Any]]:
    for _ in polls(_LONGEST_SECONDS):
        status = stepfunctions.describe_execution(executionArn=execution)["status"]
        if status == "SUCCEEDED":
            pages = stepfunctions.get_paginator("get_execution_history").paginate(executionArn=execution)
            return [event for page in pages for event in page["events"]]
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
