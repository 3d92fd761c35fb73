"""What may come in at the edges, as JSON schemas, and its translation into the domain's words.

getQueue is not here: its function must start fast, and its only input is a tenant id, which
:meth:`orchestrator.tenants.TenantId.parse` checks.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.validators import extend

from orchestrator.errors import InvalidRequest
from orchestrator.records import Attempt, Operation, Queue, RootCause, Run, parse_timestamp
from orchestrator.releases import VERSION_PATTERN
from orchestrator.tenants import TENANT_ID_MAX_LENGTH, TENANT_ID_PATTERN, TenantId


def _whole(_validator: object, pattern: str, text: object, _schema: object) -> Iterator[ValidationError]:
    """`pattern`, of the whole text: by itself Python's `$` would let a trailing newline through."""
    if isinstance(text, str) and not re.fullmatch(pattern, text):
        yield ValidationError(f"{text!a} does not match {pattern!r}")


_Schema = extend(Draft202012Validator, {"pattern": _whole})  # type: ignore[no-untyped-call]


def _object(required: Mapping[str, Any], optional: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {"type": "object", "properties": {**required, **(optional or {})}, "required": list(required)}


_TEXT = {"type": "string", "minLength": 1, "maxLength": 4096}
_TENANT_ID = {"type": "string", "pattern": TENANT_ID_PATTERN, "maxLength": TENANT_ID_MAX_LENGTH}
_VERSION = {"type": "string", "pattern": VERSION_PATTERN}

_EXECUTION = _object(
    {
        "Id": _TEXT,
        "StartTime": _TEXT,
        "Input": _object(
            {
                "tenantId": _TENANT_ID,
                "operation": {"enum": [operation.value for operation in Operation]},
                "version": _VERSION,
                "attempt": {"type": "integer", "minimum": 1, "maximum": 99_999},
            }
        ),
    }
)
_STARTED = _object(
    {"outcome": {"enum": ["started", "clearing", "again"]}}, {"stackId": _TEXT, "reason": {"type": "string"}}
)
_DONE = _object({"stackId": _TEXT, "queue": _object({"arn": _TEXT, "url": _TEXT}), "version": _VERSION})
_FAILURE = {
    "anyOf": [
        _object(
            {"outcome": {"const": "failed"}, "reason": {"type": "string"}},
            {"failedStack": {"type": ["string", "null"]}},
        ),
        _object({"Error": {"type": "string"}}, {"Cause": {"type": "string"}}),
    ]
}

_STEP = _Schema(_object({"execution": _EXECUTION}))
_STACK_STEP = _Schema(_object({"execution": _EXECUTION, "stack": _STARTED}))
_AWAIT_STEP = _Schema(_object({"execution": _EXECUTION, "stack": _STARTED, "taskToken": _TEXT}))
_FINISH_STEP = _Schema(_object({"execution": _EXECUTION, "stack": _DONE}))
_FAILURE_STEP = _Schema(_object({"execution": _EXECUTION, "failure": _FAILURE}))
_STACK_EVENT = _Schema(_object({"detail": _object({"stack-id": _TEXT})}))

_CUSTOM_RESOURCE = {
    "RequestType": {"enum": ["Create", "Update", "Delete"]},
    "StackId": _TEXT,
    "RequestId": _TEXT,
    "LogicalResourceId": _TEXT,
    "ResponseURL": _TEXT,
}
_TENANT_METADATA = _Schema(
    _object(
        {
            **_CUSTOM_RESOURCE,
            "ResourceProperties": _object(
                {"TenantId": _TENANT_ID, "InboundQueueArn": _TEXT, "InboundQueueUrl": _TEXT},
            ),
        }
    )
)
_RELEASE = _Schema(
    _object(
        {
            **_CUSTOM_RESOURCE,
            "ResourceProperties": _object(
                {
                    "Version": _VERSION,
                    "Digest": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
                    "SourceBucket": _TEXT,
                    "SourceKey": _TEXT,
                },
            ),
        }
    )
)


@dataclass(frozen=True, slots=True)
class StackStep:
    run: Run
    stack_id: str | None
    clearing: bool
    why_not: str


@dataclass(frozen=True, slots=True)
class AwaitStep:
    run: Run
    stack_id: str | None
    task_token: str


@dataclass(frozen=True, slots=True)
class FinishStep:
    run: Run
    stack_id: str
    queue: Queue
    version: str


@dataclass(frozen=True, slots=True)
class FailureStep:
    run: Run
    failure: RootCause
    failed_stack: str | None


@dataclass(frozen=True, slots=True)
class MetadataRequest:
    kind: str
    tenant: TenantId
    stack_id: str
    queue: Queue


@dataclass(frozen=True, slots=True)
class ReleaseRequest:
    version: str
    digest: str
    source_bucket: str
    source_key: str


def parse_run(event: object) -> Run:
    return _run(_valid(_STEP, event))


def parse_stack_step(event: object) -> StackStep:
    valid = _valid(_STACK_STEP, event)
    stack = valid["stack"]
    return StackStep(_run(valid), stack.get("stackId"), stack["outcome"] == "clearing", stack.get("reason", ""))


def parse_await_step(event: object) -> AwaitStep:
    valid = _valid(_AWAIT_STEP, event)
    return AwaitStep(_run(valid), valid["stack"].get("stackId"), valid["taskToken"])


def parse_finish_step(event: object) -> FinishStep:
    valid = _valid(_FINISH_STEP, event)
    stack = valid["stack"]
    queue = Queue(stack["queue"]["arn"], stack["queue"]["url"])
    return FinishStep(_run(valid), stack["stackId"], queue, stack["version"])


def parse_failure_step(event: object) -> FailureStep:
    valid = _valid(_FAILURE_STEP, event)
    run, failure = _run(valid), valid["failure"]
    if "Error" in failure:
        return FailureStep(run, _fault(run, failure["Error"], failure.get("Cause", "")), None)
    cause = RootCause(run.tenant.stack_name, "AWS::CloudFormation::Stack", failure["reason"])
    return FailureStep(run, cause, failure.get("failedStack"))


def _fault(run: Run, error: str, cause: str) -> RootCause:
    """What went wrong in a function, in its own words: a task's cause is the function's error as JSON."""
    try:
        told = json.loads(cause)
    except ValueError:
        told = None
    if isinstance(told, dict) and "errorMessage" in told:
        error, cause = str(told.get("errorType", error)), str(told["errorMessage"])
    return RootCause(run.attempt.name, "AWS::StepFunctions::Execution", f"{error}: {cause}")


def parse_stack_event(event: object) -> str:
    stack_id: str = _valid(_STACK_EVENT, event)["detail"]["stack-id"]
    return stack_id


def parse_metadata_request(event: object) -> MetadataRequest:
    valid = _valid(_TENANT_METADATA, event)
    properties = valid["ResourceProperties"]
    return MetadataRequest(
        kind=valid["RequestType"],
        tenant=TenantId.parse(properties["TenantId"]),
        stack_id=valid["StackId"],
        queue=Queue(properties["InboundQueueArn"], properties["InboundQueueUrl"]),
    )


def parse_release_request(event: object) -> ReleaseRequest:
    valid = _valid(_RELEASE, event)
    properties = valid["ResourceProperties"]
    return ReleaseRequest(
        version=properties["Version"],
        digest=properties["Digest"],
        source_bucket=properties["SourceBucket"],
        source_key=properties["SourceKey"],
    )


def _run(event: Mapping[str, Any]) -> Run:
    execution = event["execution"]
    given = execution["Input"]
    try:
        started_at = parse_timestamp(execution["StartTime"])
    except ValueError:
        raise InvalidRequest(f"execution.StartTime is not a time: {execution['StartTime']!a}") from None
    attempt = Attempt(
        TenantId.parse(given["tenantId"]),
        Operation(given["operation"]),
        given["version"],
        int(given["attempt"]),  # 1.0 is an integer, too, to JSON schemas
    )
    return Run(attempt, execution["Id"], started_at)


def _valid(validator: Any, event: object) -> dict[str, Any]:
    error = best_match(validator.iter_errors(event))
    if error is not None:
        where = ".".join(str(step) for step in error.absolute_path) or "the event"
        raise InvalidRequest(f"{where}: {error.message[:300]}")
    assert isinstance(event, dict)  # noqa: S101 - every schema above requires an object
    return event
