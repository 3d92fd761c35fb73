"""Executions of the state machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient

_NOT_AN_EXECUTION = frozenset({"ExecutionDoesNotExist", "InvalidArn"})
_NO_LONGER_WAITING = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class StepFunctionsExecutions:
    """Implements :class:`orchestrator.ports.Executions`.

    The client is made when it is first needed: getQueue rarely needs one, and making it costs a cold start.
    """

    def __init__(self, make_client: Callable[[], SFNClient], machine: Callable[[], str]) -> None:
        self._make_client = make_client
        self._machine = machine

    @cached_property
    def _client(self) -> SFNClient:
        return self._make_client()

    def start(self, machine_input: dict[str, object], name: str) -> str | None:
        machine = self._machine()
        try:
            with throttling():
                response = self._client.start_execution(
                    stateMachineArn=machine, name=name, input=json.dumps(machine_input, sort_keys=True)
                )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            # Either it has ended, or the caller and a running one differ in their input's spelling.
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
