"""What is set on the emulator after a deployment, because it leaves out or does otherwise what the template says.

- It ignores the reserved concurrency of functions. Without it a burst of tenants takes every worker that there may be,
  and the calls that stacks make of functions are dropped when there is none.
- A step whose function is throttled fails with `Lambda.Unknown` there, which on AWS says that a function died. On AWS
  throttling has a name of its own, and a hundred attempts: here that error has as many.
- It ignores a map's `MaxConcurrencyPath`, and would run all children at once: here the map has a fixed number of them.
"""

import json
from collections.abc import Iterator
from typing import Any

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator

STEPS_AT_ONCE = 4
"""Of each function that is a step of a workflow. Each call at once is a process here."""

TURNS_AT_ONCE = 8
"""Of a rollout's map: as many tenants as the control plane moves at once here."""

_THROTTLED_HERE = "Lambda.Unknown"
_ATTEMPTS = 100


def adjust(emulator: Emulator, *, get_queue_function: str, get_queue_concurrency: int) -> None:
    session = session_without_profile(emulator.session_settings())
    machines = session.client("stepfunctions", endpoint_url=emulator.endpoint)
    functions = session.client("lambda", endpoint_url=emulator.endpoint)
    bounds = {get_queue_function: get_queue_concurrency}
    for page in machines.get_paginator("list_state_machines").paginate():
        for machine in page["stateMachines"]:
            arn = machine["stateMachineArn"]
            definition = json.loads(machines.describe_state_machine(stateMachineArn=arn)["definition"])
            bound_maps(definition)
            steps = _steps(definition)
            for step in steps:
                _be_patient(step)
            bounds |= {step["Arguments"]["FunctionName"]: STEPS_AT_ONCE for step in steps}
            machines.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    for function, bound in bounds.items():
        functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=bound)


def bound_maps(definition: Any) -> None:
    """Give every map a fixed number of children, wherever it is in the workflow."""
    for each in _parts(definition):
        if each.pop("MaxConcurrencyPath", None) is not None:
            each["MaxConcurrency"] = TURNS_AT_ONCE


def _parts(definition: Any) -> Iterator[dict[str, Any]]:
    if isinstance(definition, dict):
        yield definition
        definition = list(definition.values())
    if isinstance(definition, list):
        for each in definition:
            yield from _parts(each)


def _steps(definition: Any) -> list[dict[str, Any]]:
    """All states that call a function, wherever they are in the workflow."""
    return [part for part in _parts(definition) if _calls_a_function(part.get("Arguments"))]


def _calls_a_function(arguments: object) -> bool:
    return isinstance(arguments, dict) and "FunctionName" in arguments


def _be_patient(step: dict[str, Any]) -> None:
    for retrier in step.get("Retry", []):
        if retrier["ErrorEquals"] == [_THROTTLED_HERE]:
            retrier["MaxAttempts"] = _ATTEMPTS
