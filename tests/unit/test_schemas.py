"""What may come in at the edges: every field of every event, missing and wrong, and what it becomes."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from orchestrator import schemas
from orchestrator.errors import InvalidRequest
from orchestrator.records import Operation, Queue, RootCause
from tests.fakes import ACME, QUEUE, VERSION, a_run

Event = dict[str, Any]
Path = tuple[str, ...]

RUN = a_run()
STACK_ID = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{ACME.stack_name}/1"

# As Step Functions and CloudFormation send them, with the fields that nobody here reads.
EXECUTION: Event = {
    "Id": RUN.execution,
    "Input": {"tenantId": "acme", "operation": "CREATE", "version": VERSION, "attempt": 1},
    "Name": RUN.attempt.name,
    "RoleArn": "arn:aws:iam::000000000000:role/create-tenant",
    "StartTime": "2026-11-16T12:00:00.000Z",
    "RedriveCount": 0,
}
CUSTOM_RESOURCE: Event = {
    "RequestType": "Create",
    "ResponseURL": "https://cloudformation-custom-resource-response-euwest1.s3.amazonaws.com/x",
    "StackId": STACK_ID,
    "RequestId": "5478764e-a29b-4f27-b4c3-4bcdf0ef9c6d",
    "ResourceType": "Custom::Something",
    "LogicalResourceId": "Something",
    "PhysicalResourceId": "something",
}
METADATA_REQUEST: Event = {
    **CUSTOM_RESOURCE,
    "ResourceProperties": {
        "ServiceToken": "arn",
        "TenantId": "acme",
        "InboundQueueArn": QUEUE.arn,
        "InboundQueueUrl": QUEUE.url,
    },
}
RELEASE_REQUEST: Event = {
    **CUSTOM_RESOURCE,
    "ResourceProperties": {
        "ServiceToken": "arn",
        "Version": VERSION,
        "Digest": "0123456789abcdef" * 4,
        "SourceBucket": "assets",
        "SourceKey": "template.json",
    },
}
DONE: Event = {
    "outcome": "done",
    "stackId": STACK_ID,
    "queue": {"arn": QUEUE.arn, "url": QUEUE.url},
    "version": VERSION,
}

GOOD: dict[Callable[[object], object], Event] = {
    schemas.parse_run: {"execution": EXECUTION},
    schemas.parse_stack_step: {"execution": EXECUTION, "stack": {"outcome": "started", "stackId": STACK_ID}},
    schemas.parse_await_step: {
        "execution": EXECUTION,
        "stack": {"outcome": "started", "stackId": STACK_ID},
        "taskToken": "AAAA",
    },
    schemas.parse_finish_step: {"execution": EXECUTION, "stack": DONE},
    schemas.parse_failure_step: {"execution": EXECUTION, "failure": {"outcome": "failed", "reason": "It broke."}},
    schemas.parse_stack_event: {
        "source": "aws.cloudformation",
        "detail": {"stack-id": STACK_ID, "status-details": {"status": "CREATE_COMPLETE"}},
    },
    schemas.parse_metadata_request: METADATA_REQUEST,
    schemas.parse_release_request: RELEASE_REQUEST,
}

# Sent, but not read, or read only where it is there.
NOT_REQUIRED: set[Path] = {
    ("execution", "Name"),
    ("execution", "RoleArn"),
    ("execution", "RedriveCount"),
    ("stack", "outcome"),
    ("stack", "stackId"),
    ("source",),
    ("detail", "status-details"),
    ("detail", "status-details", "status"),
    ("ResourceType",),
    ("PhysicalResourceId",),
    ("ResourceProperties", "ServiceToken"),
}
REQUIRED_AFTER_ALL: set[tuple[str, Path]] = {
    ("parse_stack_step", ("stack", "outcome")),
    ("parse_await_step", ("stack", "outcome")),
    ("parse_finish_step", ("stack", "stackId")),
}


def paths(event: Event, above: Path = ()) -> Iterator[Path]:
    for name, value in event.items():
        yield (*above, name)
        if isinstance(value, dict):
            yield from paths(value, (*above, name))


REQUIRED = [
    pytest.param(parse, path, id=f"{parse.__name__}-{'.'.join(path)}")
    for parse, event in GOOD.items()
    for path in paths(event)
    if path not in NOT_REQUIRED or (parse.__name__, path) in REQUIRED_AFTER_ALL
]


def changed(event: Event, path: Path, value: object) -> Event:
    """A copy of the event with another value there."""
    event = copy.deepcopy(event)
    *above, name = path
    inner = event
    for step in above:
        inner = inner[step]
    inner[name] = value
    return event


def without(event: Event, path: Path) -> Event:
    event = copy.deepcopy(event)
    *above, name = path
    inner = event
    for step in above:
        inner = inner[step]
    del inner[name]
    return event


def test_every_parser_is_checked_here() -> None:
    parsers = {
        value for name, value in vars(schemas).items() if name.startswith("parse_") and name != "parse_timestamp"
    }
    assert set(GOOD) == parsers


@pytest.mark.parametrize("parse", GOOD, ids=lambda parse: parse.__name__)
def test_a_good_event_is_understood(parse: Callable[[object], object]) -> None:
    assert parse(GOOD[parse])


@pytest.mark.parametrize(("parse", "path"), REQUIRED)
def test_a_missing_field_is_refused_by_name(parse: Callable[[object], object], path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(without(GOOD[parse], path))
    # A failure is one of two shapes, so no one field of it is the missing one.
    expected = "failure" if path[0] == "failure" else path[-1]
    assert expected in str(refused.value)


@pytest.mark.parametrize("wrong", [None, [], {}, True, -1], ids=repr)
@pytest.mark.parametrize(("parse", "path"), REQUIRED)
def test_a_field_of_the_wrong_type_is_refused_by_its_place(
    parse: Callable[[object], object], path: Path, wrong: object
) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(changed(GOOD[parse], path, wrong))
    assert path[0] in str(refused.value)


@pytest.mark.parametrize("event", [None, [], "acme", 7, True], ids=repr)
@pytest.mark.parametrize("parse", GOOD, ids=lambda parse: parse.__name__)
def test_what_is_no_object_is_refused(parse: Callable[[object], object], event: object) -> None:
    with pytest.raises(InvalidRequest, match="the event"):
        parse(event)


INPUT = ("execution", "Input")
WRONG_VALUES = [
    (schemas.parse_run, (*INPUT, "tenantId"), ["", "a/b", "a#b", "-a", "a\n", "x" * 41, "acm\u00e9"]),
    (schemas.parse_run, (*INPUT, "operation"), ["", "create", "RENAME"]),
    (schemas.parse_run, (*INPUT, "version"), ["", "1.0", "v1.0.0", "1.0.0-rc1", "1.0.0#x", "1.0.10000", "\u0661.0.0"]),
    (schemas.parse_run, (*INPUT, "attempt"), [0, -1, 100_000, 1.5, "1"]),
    (schemas.parse_run, ("execution", "Id"), ["", "x" * 4_097]),
    (schemas.parse_run, ("execution", "StartTime"), ["yesterday", "2026-13-01T00:00:00Z"]),
    (schemas.parse_stack_step, ("stack", "outcome"), ["done", "working", ""]),
    (schemas.parse_await_step, ("taskToken",), [""]),
    (schemas.parse_finish_step, ("stack", "version"), ["", "latest"]),
    (schemas.parse_failure_step, ("failure", "outcome"), ["done", ""]),
    (schemas.parse_metadata_request, ("RequestType",), ["", "Rename", "create"]),
    (schemas.parse_metadata_request, ("ResourceProperties", "TenantId"), ["a/b", "acme\n"]),
    (schemas.parse_release_request, ("ResourceProperties", "Version"), ["1", "1.0.0.0"]),
    (schemas.parse_release_request, ("ResourceProperties", "Digest"), ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64]),
]


@pytest.mark.parametrize(
    ("parse", "path", "value"),
    [
        pytest.param(parse, path, value, id=f"{'.'.join(path)}={value!a:.20}")
        for parse, path, values in WRONG_VALUES
        for value in values  # type: ignore[attr-defined]
    ],
)
def test_a_wrong_value_is_refused(parse: Callable[[object], object], path: Path, value: object) -> None:
    with pytest.raises(InvalidRequest):
        parse(changed(GOOD[parse], path, value))


@pytest.mark.parametrize(
    ("parse", "path", "value"),
    [
        pytest.param(schemas.parse_run, (*INPUT, "version"), f"{VERSION}\n", id="version"),
        pytest.param(schemas.parse_finish_step, ("stack", "version"), f"{VERSION}\n", id="version of the stack"),
        pytest.param(schemas.parse_release_request, ("ResourceProperties", "Version"), f"{VERSION}\n", id="release"),
        pytest.param(schemas.parse_release_request, ("ResourceProperties", "Digest"), "0" * 64 + "\n", id="digest"),
    ],
)
def test_a_trailing_newline_is_refused(parse: Callable[[object], object], path: Path, value: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(changed(GOOD[parse], path, value))


def test_a_refusal_is_short_however_much_was_sent() -> None:
    with pytest.raises(InvalidRequest) as refused:
        schemas.parse_run({"execution": "x" * 100_000})
    assert len(str(refused.value)) < 400


# What a good event becomes


def test_an_execution_becomes_a_run() -> None:
    assert schemas.parse_run(GOOD[schemas.parse_run]) == RUN


@pytest.mark.parametrize("operation", list(Operation))
def test_every_operation_is_understood(operation: Operation) -> None:
    event = changed(GOOD[schemas.parse_run], (*INPUT, "operation"), operation.value)
    assert schemas.parse_run(event).attempt.operation is operation


def test_an_attempt_has_one_name_however_its_number_is_spelled() -> None:
    event = changed(GOOD[schemas.parse_run], (*INPUT, "attempt"), json.loads("1.0"))
    assert schemas.parse_run(event).attempt.name == RUN.attempt.name


def test_a_start_time_in_another_zone_is_the_same_moment() -> None:
    event = changed(GOOD[schemas.parse_run], ("execution", "StartTime"), "2026-11-16T13:00:00.5+01:00")
    assert schemas.parse_run(event).started_at == datetime(2026, 11, 16, 12, 0, 0, 500_000, tzinfo=UTC)


@pytest.mark.parametrize(
    ("stack", "stack_id", "clearing", "why_not"),
    [
        ({"outcome": "started", "stackId": STACK_ID}, STACK_ID, False, ""),
        ({"outcome": "clearing", "stackId": STACK_ID}, STACK_ID, True, ""),
        ({"outcome": "again", "reason": "Rate exceeded"}, None, False, "Rate exceeded"),
    ],
)
def test_what_starting_said_is_what_inspecting_looks_at(
    stack: Event, stack_id: str | None, clearing: bool, why_not: str
) -> None:
    step = schemas.parse_stack_step({"execution": EXECUTION, "stack": stack})
    assert step == schemas.StackStep(RUN, stack_id, clearing, why_not)


def test_awaiting_takes_a_token_and_perhaps_a_stack() -> None:
    event = GOOD[schemas.parse_await_step]
    assert schemas.parse_await_step(event) == schemas.AwaitStep(RUN, STACK_ID, "AAAA")
    throttled = changed(event, ("stack",), {"outcome": "again", "reason": "Rate exceeded"})
    assert schemas.parse_await_step(throttled) == schemas.AwaitStep(RUN, None, "AAAA")


def test_finishing_takes_the_queue_and_the_version_that_the_stack_says_itself() -> None:
    event = changed(GOOD[schemas.parse_finish_step], ("stack", "version"), "0.0.7")
    assert schemas.parse_finish_step(event) == schemas.FinishStep(RUN, STACK_ID, QUEUE, "0.0.7")


def failure(given: Event) -> schemas.FailureStep:
    return schemas.parse_failure_step({"execution": EXECUTION, "failure": given})


@pytest.mark.parametrize("failed_stack", [STACK_ID, None])
def test_an_outcome_that_says_why_is_the_stacks_failure(failed_stack: str | None) -> None:
    step = failure({"outcome": "failed", "reason": "It broke.", "failedStack": failed_stack})
    cause = RootCause(ACME.stack_name, "AWS::CloudFormation::Stack", "It broke.")
    assert step == schemas.FailureStep(RUN, cause, failed_stack)


def test_a_functions_error_is_told_in_its_own_words() -> None:
    cause = json.dumps(
        {"errorMessage": "Version 0.1.0 was never published.", "errorType": "UnknownRelease", "stackTrace": ["..."]}
    )
    assert failure({"Error": "UnknownRelease", "Cause": cause}).failure == RootCause(
        RUN.attempt.name, "AWS::StepFunctions::Execution", "UnknownRelease: Version 0.1.0 was never published."
    )


def test_the_functions_own_name_of_its_error_is_preferred_to_the_emulators() -> None:
    cause = json.dumps({"errorMessage": "No.", "errorType": "StackNotOurs"})
    assert failure({"Error": "Runtime.HandlerError", "Cause": cause}).failure.reason == "StackNotOurs: No."


def test_a_functions_error_without_a_type_keeps_the_name_that_it_came_with() -> None:
    told = failure({"Error": "Lambda.Unknown", "Cause": json.dumps({"errorMessage": "Task timed out"})})
    assert told.failure.reason == "Lambda.Unknown: Task timed out"


@pytest.mark.parametrize("cause", ["plain words", "{broken", "[1]", '"text"', "7", "null", '{"other": 1}'])
def test_any_other_cause_is_told_as_it_is(cause: str) -> None:
    told = failure({"Error": "States.Timeout", "Cause": cause})
    assert told.failure.reason == f"States.Timeout: {cause}"
    assert told.failed_stack is None


def test_an_error_without_a_cause_is_still_told() -> None:
    assert failure({"Error": "States.Timeout"}).failure.reason.startswith("States.Timeout")


def test_a_stack_event_becomes_the_stacks_id() -> None:
    assert schemas.parse_stack_event(GOOD[schemas.parse_stack_event]) == STACK_ID


@pytest.mark.parametrize("kind", ["Create", "Update", "Delete"])
def test_a_metadata_request_is_understood(kind: str) -> None:
    request = schemas.parse_metadata_request({**METADATA_REQUEST, "RequestType": kind})
    assert request == schemas.MetadataRequest(kind, ACME, STACK_ID, Queue(QUEUE.arn, QUEUE.url))


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_release_request_is_understood(kind: str) -> None:
    request = schemas.parse_release_request({**RELEASE_REQUEST, "RequestType": kind})
    assert request == schemas.ReleaseRequest(VERSION, "0123456789abcdef" * 4, "assets", "template.json")
