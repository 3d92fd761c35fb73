"""Settings on the emulator after a deployment, for parts of the template that it ignores or treats differently.

- It ignores the reserved concurrency of functions. Without that, a burst of tenants takes all workers, and calls of
  custom resources' functions are dropped.
- A step whose function is throttled fails with `Lambda.Unknown` there. On AWS that error means that a function died,
  and throttling has an error of its own, with a hundred attempts. Here `Lambda.Unknown` gets as many attempts.
- It ignores a map's `MaxConcurrencyPath` and would run all children at once. The map gets a fixed `MaxConcurrency`.
- It ignores a table's `TimeToLiveSpecification`. Without it, expired events would be kept for ever.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.sessions import session_without_profile
from orchestrator.local.emulator import Emulator

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

STEPS_AT_ONCE = 4
"""The concurrency of each function that is a step of a workflow. Each concurrent call is a process here."""

TURNS_AT_ONCE = 8
"""The concurrency of a rollout's map: the number of tenants that a rollout may move at once here."""

_THROTTLED_HERE = "Lambda.Unknown"
_ATTEMPTS = 100
_EXPIRES_BY = "ttl"


def adjust(emulator: Emulator, *, concurrency: Mapping[str, int], events_table: str | None) -> None:
    """``concurrency`` has the limit of each function that is behind an API, by the function's name."""
    session = session_without_profile(emulator.session_settings())
    machines = session.client("stepfunctions", endpoint_url=emulator.endpoint)
    functions = session.client("lambda", endpoint_url=emulator.endpoint)
    limits = dict(concurrency)
    for page in machines.get_paginator("list_state_machines").paginate():
        for machine in page["stateMachines"]:
            arn = machine["stateMachineArn"]
            definition = json.loads(machines.describe_state_machine(stateMachineArn=arn)["definition"])
            bound_maps(definition)
            steps = _steps(definition)
            for step in steps:
                _allow_more_attempts(step)
            limits |= {step["Arguments"]["FunctionName"]: STEPS_AT_ONCE for step in steps}
            machines.update_state_machine(stateMachineArn=arn, definition=json.dumps(definition))
    for function, limit in limits.items():
        functions.put_function_concurrency(FunctionName=function, ReservedConcurrentExecutions=limit)
    if events_table is not None:
        switch_on_expiry(session.client("dynamodb", endpoint_url=emulator.endpoint), events_table)


def switch_on_expiry(tables: DynamoDBClient, table: str) -> None:
    """DynamoDB refuses to switch on what is on, so a table that an earlier deployment changed is left alone."""
    current = tables.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    if current.get("TimeToLiveStatus") not in ("ENABLED", "ENABLING"):
        tables.update_time_to_live(
            TableName=table, TimeToLiveSpecification={"Enabled": True, "AttributeName": _EXPIRES_BY}
        )


def bound_maps(definition: Any) -> None:
    """Give every map of the workflow, at any depth, a fixed concurrency."""
    for part in _parts(definition):
        if part.pop("MaxConcurrencyPath", None) is not None:
            part["MaxConcurrency"] = TURNS_AT_ONCE


def _parts(definition: Any) -> Iterator[dict[str, Any]]:
    if isinstance(definition, dict):
        yield definition
        definition = list(definition.values())
    if isinstance(definition, list):
        for item in definition:
            yield from _parts(item)


def _steps(definition: Any) -> list[dict[str, Any]]:
    """All states of the workflow, at any depth, that call a function."""
    return [part for part in _parts(definition) if _calls_a_function(part.get("Arguments"))]


def _calls_a_function(arguments: object) -> bool:
    return isinstance(arguments, dict) and "FunctionName" in arguments


def _allow_more_attempts(step: dict[str, Any]) -> None:
    for retrier in step.get("Retry", []):
        if retrier["ErrorEquals"] == [_THROTTLED_HERE]:
            retrier["MaxAttempts"] = _ATTEMPTS
