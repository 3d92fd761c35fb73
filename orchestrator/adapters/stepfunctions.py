"""Executions of the state machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.execution_input import machine_input
from orchestrator.records import Attempt, Operation, Request

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_NOT_AN_EXECUTION = frozenset({"ExecutionDoesNotExist", "InvalidArn"})
_NO_LONGER_WAITING = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class StepFunctionsExecutions:
    """Implements :class:`orchestrator.ports.Executions`.

    The client is made when it is first needed: getQueue rarely needs one, and making it costs a cold start.
    """

    def __init__(self, make_client: Callable[[], SFNClient], machine: Callable[[Operation], str]) -> None:
        self._make_client = make_client
        self._machine = machine

    @cached_property
    def _client(self) -> SFNClient:
        return self._make_client()

    def start(self, attempt: Attempt, request: Request) -> str | None:
        return self.start_by_name(self._machine(attempt.operation), attempt.name, machine_input(attempt, request))

    def start_by_name(self, machine: str, name: str, given: dict[str, object]) -> str | None:
        try:
            with throttling():
                response = self._client.start_execution(
                    stateMachineArn=machine, name=name, input=json.dumps(given, sort_keys=True)
                )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            # Either it has ended, or another caller asked for it first, in other words.
            execution = f"{machine.replace(':stateMachine:', ':execution:')}:{name}"
            return execution if self.is_running(execution) else None
        return response["executionArn"]

    def is_running(self, execution: str) -> bool:
        try:
            with throttling():
                return self._client.describe_execution(executionArn=execution)["status"] == "RUNNING"
        except ClientError as error:
            if error_code(error) in _NOT_AN_EXECUTION:
                return False
            raise

    def wake(self, task_token: str) -> bool:
        try:
            with throttling():
                self._client.send_task_success(taskToken=task_token, output="{}")
        except ClientError as error:
            if error_code(error) in _NO_LONGER_WAITING:
                return False
            raise
        return True
