"""What is set on the emulator after a deployment, because it leaves out or does otherwise what the template says.

- It ignores the reserved concurrency of functions. Without it a burst of tenants takes every worker that there may be,
  and the calls that stacks make of functions are dropped when there is none.
- A step whose function is throttled fails with `Lambda.Unknown` there, which on AWS says that a function died. On AWS
  throttling has a name of its own, and a hundred attempts: here that error has as many.
"""

import json
from typing import Any

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator

STEPS_AT_ONCE = 4
"""Of each function that is a step of a workflow. Each call at once is a process here."""

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
            steps = _steps(definition)
            for step in steps:
                _be_patient(step)
            bounds |= {step["Arguments"]["FunctionName"]: STEPS_AT_ONCE for step in steps}
            machines.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    for function, bound in bounds.items():
        functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=bound)


def _steps(definition: Any) -> list[dict[str, Any]]:
    """All states that call a function, wherever they are in the workflow."""
    if isinstance(definition, list):
        return [step for each in definition for step in _steps(each)]
    if not isinstance(definition, dict):
        return []
    inner = [step for each in definition.values() for step in _steps(each)]
    arguments = definition.get("Arguments")
    calls = isinstance(arguments, dict) and "FunctionName" in arguments
    return [definition, *inner] if calls else inner


def _be_patient(step: dict[str, Any]) -> None:
    for retrier in step.get("Retry", []):
        if retrier["ErrorEquals"] == [_THROTTLED_HERE]:
            retrier["MaxAttempts"] = _ATTEMPTS
