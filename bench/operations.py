"""What one create, one update and one delete cost: state transitions, and calls of functions, on the emulator."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from bench.measure import Result
from orchestrator.adapters.sessions import session_without_profile
from orchestrator.adapters.stepfunctions import StepFunctionsExecutions
from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator, free_port
from orchestrator.local.home import polls
from orchestrator.local.releases import bumped, publish, released_template
from orchestrator.records import Attempt, Operation, Request
from orchestrator.tenants import TenantId

_LONGEST_SECONDS = 120


def operations() -> list[Result]:
    """The straight path of each machine: the first signal finds the stack done."""
    with tempfile.TemporaryDirectory() as home:
        emulator = Emulator(port=free_port(), home=Path(home), keep_state=False)
        emulator.start()
        try:
            # Long enough for a stack to be done when it is first looked at, as it is when an event says so.
            outputs = deploy(emulator, lambda _step: None, awaitStackSeconds="5")
            return _measure(emulator, outputs)
        finally:
            emulator.stop()


def _measure(emulator: Emulator, outputs: dict[str, str]) -> list[Result]:
    session = session_without_profile(emulator.session_settings())
    stepfunctions = session.client("stepfunctions", endpoint_url=emulator.endpoint)
    logs = session.client("logs", endpoint_url=emulator.endpoint)
    executions = StepFunctionsExecutions(
        lambda: stepfunctions, lambda operation: outputs[f"{operation.value.capitalize()}TenantMachineArn"]
    )
    tenant, version = TenantId("bench"), outputs["Version"]
    later = "99.0.0"
    publish(emulator, outputs, later, bumped(released_template(version), later))
    results = []
    for operation, target in ((Operation.CREATE, version), (Operation.UPDATE, later), (Operation.DELETE, later)):
        before = _metadata_calls(logs)
        execution = executions.start(Attempt(tenant, operation, target, 1), Request(by="bench", explicit=True))
        history = _history(stepfunctions, execution)
        entered = sum(event["type"].endswith("StateEntered") for event in history)
        tasks = sum(event["type"] == "TaskScheduled" for event in history)
        called = tasks + _metadata_calls(logs) - before
        name = operation.value.lower()
        results.append(Result(f"{name}: state transitions", entered, "", "<= 9"))
        results.append(Result(f"{name}: calls of functions, the stack's own included", called, "", ""))
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
    """How often tenants' stacks have called the function behind Custom::TenantMetadata, from its log."""
    (group,) = (
        group["logGroupName"]
        for page in logs.get_paginator("describe_log_groups").paginate()
        for group in page["logGroups"]
        if "TenantMetadata" in group["logGroupName"]
    )
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group)
    return sum("Answered CloudFormation" in event["message"] for page in pages for event in page["events"])
