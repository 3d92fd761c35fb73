"""Executions of the state machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.tenants.execution_input import is_input_of, machine_input
from orchestrator.tenants.records import Attempt, Operation, Request, Run

if TYPE_CHECKING:
    from mypy_boto3_stepfunctions import SFNClient
    from mypy_boto3_stepfunctions.type_defs import DescribeExecutionOutputTypeDef

    from orchestrator.events.records import TenantEpoch
    from orchestrator.rollouts.records import Rollout
    from orchestrator.tenants.recent import RecentExecution

_NOT_AN_EXECUTION = frozenset({"ExecutionDoesNotExist", "InvalidArn"})
_STOPPED_EARLY = frozenset({"ABORTED", "TIMED_OUT"})
_ENDINGS = {"ABORTED": "was aborted", "TIMED_OUT": "timed out", "FAILED": "failed", "SUCCEEDED": "succeeded"}
_NO_LONGER_WAITING = frozenset({"TaskTimedOut", "TaskDoesNotExist", "InvalidToken"})


class StepFunctionsExecutions:
    """Implements :class:`orchestrator.tenants.ports.Executions`.

    The client is made when it is first needed: getQueue rarely needs one, and making it slows a cold start.
    ``linger`` is the time for which a function may keep running after its execution was aborted or timed out.
    """

    def __init__(
        self,
        make_client: Callable[[], SFNClient],
        machine: Callable[[Operation], str],
        *,
        linger: timedelta = timedelta(seconds=60),
    ) -> None:
        self._make_client = make_client
        self._machine = machine
        self._linger = linger

    @cached_property
    def _client(self) -> SFNClient:
        return self._make_client()

    def start(self, attempt: Attempt, request: Request) -> str | None:
        return self.start_by_name(self._machine(attempt.operation), attempt.name, machine_input(attempt, request))

    def start_by_name(self, machine: str, name: str, execution_input: dict[str, object]) -> str | None:
        try:
            with throttling():
                response = self._client.start_execution(
                    stateMachineArn=machine, name=name, input=json.dumps(execution_input, sort_keys=True)
                )
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            # The execution has ended, or another caller started it with a different input. If Step Functions does not
            # find it, it was started a moment ago: DescribeExecution is eventually consistent.
            execution = _execution(machine, name)
            described = self._describe(execution)
            return execution if described is None or described["status"] == "RUNNING" else None
        return response["executionArn"]

    def execution_of(self, attempt: Attempt) -> str:
        return _execution(self._machine(attempt.operation), attempt.name)

    def find_running(self, attempt: Attempt) -> str | None:
        execution = self.execution_of(attempt)
        return execution if self.runs(execution) else None

    def is_running(self, execution: str) -> bool:
        # Rows of an earlier system name executions of other machines, which functions have no permission to describe.
        return self.is_berths(execution) and self.runs(execution)

    def is_berths(self, execution: str) -> bool:
        return any(execution.startswith(_execution(self._machine(operation), "")) for operation in Operation)

    def runs(self, execution: str) -> bool:
        """Like is_running(), for an execution of any machine."""
        return self.runs_if_shown(execution) is True

    def runs_if_shown(self, execution: str) -> bool | None:
        """``None`` if Step Functions does not show the execution. DescribeExecution is eventually consistent."""
        described = self._describe(execution)
        return None if described is None else described["status"] == "RUNNING"

    def confirmed(self, run: Run) -> Run | None:
        described = self._describe(run.execution)
        if described is None or described["status"] != "RUNNING":
            return None
        if not is_input_of(json.loads(described["input"]), run.attempt, run.request):
            return None
        return replace(run, started_at=described["startDate"].astimezone(UTC))

    def is_over(self, execution: str) -> bool:
        described = self._describe(execution)
        if described is None:
            return True
        if described["status"] in _STOPPED_EARLY:
            stopped_at = described.get("stopDate", described["startDate"])
            return datetime.now(UTC) - stopped_at > self._linger
        return described["status"] != "RUNNING"

    def how_it_ended(self, execution: str) -> str:
        described = self._describe(execution)
        if described is None:
            return "is no longer known to Step Functions"
        details = ": ".join(filter(None, (described.get("error"), described.get("cause"))))
        return f"{_ENDINGS.get(described['status'], described['status'])}{f' ({details})' if details else ''}"

    def _describe(self, execution: str) -> DescribeExecutionOutputTypeDef | None:
        """``None`` if the execution does not exist."""
        try:
            with throttling():
                return self._client.describe_execution(executionArn=execution)
        except ClientError as error:
            if error_code(error) in _NOT_AN_EXECUTION:
                return None
            raise

    def recent(self, operation: Operation, *, limit: int) -> Sequence[RecentExecution]:
        # Imported here, because getQueue uses this class, too, and must start fast.
        from orchestrator.tenants.recent import ExecutionStatus, RecentExecution

        with throttling():
            listed = self._client.list_executions(stateMachineArn=self._machine(operation), maxResults=limit)
        return [
            RecentExecution(
                each["name"],
                each["executionArn"],
                ExecutionStatus(each["status"]),
                each["startDate"].astimezone(UTC),
                each["stopDate"].astimezone(UTC) if "stopDate" in each else None,
            )
            for each in listed["executions"]
        ]

    def is_waiting(self, task_token: str) -> bool:
        try:
            with throttling():
                self._client.send_task_heartbeat(taskToken=task_token)
        except ClientError as error:
            if error_code(error) in _NO_LONGER_WAITING:
                return False
            raise
        return True

    def wake(self, task_token: str, result: Mapping[str, object] | None = None) -> bool:
        try:
            with throttling():
                self._client.send_task_success(taskToken=task_token, output=json.dumps(result or {}))
        except ClientError as error:
            if error_code(error) in _NO_LONGER_WAITING:
                return False
            raise
        return True


def _execution(machine: str, name: str) -> str:
    return f"{machine.replace(':stateMachine:', ':execution:')}:{name}"


class StepFunctionsRollouts:
    """Implements :class:`orchestrator.rollouts.ports.RolloutExecutions`.

    The machine is looked up at the first start: functions that are states of it cannot have its ARN in their settings.
    """

    def __init__(self, executions: StepFunctionsExecutions, machine: Callable[[], str]) -> None:
        self._executions = executions
        self._machine = machine

    def start_rollout(self, rollout: Rollout) -> str | None:
        execution_input: dict[str, object] = {"rolloutId": rollout.id, "attempt": rollout.attempt}
        return self._executions.start_by_name(self._machine(), rollout.name, execution_input)

    def is_running(self, execution: str) -> bool | None:
        return self._executions.runs_if_shown(execution)

    def wake(self, task_token: str) -> bool:
        return self._executions.wake(task_token)


class StepFunctionsPurges:
    """Implements :class:`orchestrator.events.ports.PurgeExecutions`."""

    def __init__(self, make_client: Callable[[], SFNClient], machine: str) -> None:
        self._make_client = make_client
        self._machine = machine

    @cached_property
    def _client(self) -> SFNClient:
        return self._make_client()

    def start(self, life: TenantEpoch, at: datetime) -> bool:
        # A name can be used once, so there is one execution per hour.
        name = f"{life.tenant}-{life.epoch}-{at:%Y%m%dT%H}"
        execution_input = json.dumps({"epoch": life.epoch, "tenantId": life.tenant.value})
        try:
            with throttling():
                self._client.start_execution(stateMachineArn=self._machine, name=name, input=execution_input)
        except ClientError as error:
            if error_code(error) != "ExecutionAlreadyExists":
                raise
            return False
        return True
