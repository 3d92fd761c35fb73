"""The payloads of states: every field of every event, missing and wrong, and the value that is parsed from it."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, get_args

import pytest

from lambdas.runtime import outcome_json
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.stack_arns import StackArn
from orchestrator.tenants import outcomes, resource_requests, schemas
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.outcomes import Again, Clearing, Done, GaveUp, Gone, Start, Started, Unchanged
from orchestrator.tenants.records import THROTTLING, Operation, Queue, Request, RootCause
from orchestrator.tenants.resource_requests import Claim, Kind, OnDelete
from orchestrator.tenants.stack_resources import StackResource
from tests.fakes import ACME, EXPLICIT, LOCATION, NAMES, NOON, QUEUE, VERSION, a_run, stack_arn

Event = dict[str, Any]
Path = tuple[str, ...]
Parse = Callable[[object], object]

RUN = a_run()
DELETE = a_run(operation=Operation.DELETE)
STACK_ID = stack_arn()
RESOURCE = StackResource.parse(STACK_ID, "Something")

# As Step Functions and CloudFormation send them, with the fields that nobody here reads.
EXECUTION: Event = {
    "Id": RUN.execution,
    "Input": machine_input(RUN.attempt, RUN.request),
    "Name": RUN.attempt.name,
    "RoleArn": "arn:aws:iam::000000000000:role/create-tenant",
    "StartTime": "2026-11-16T12:00:00.000Z",
    "RedriveCount": 0,
}
DELETE_EXECUTION: Event = {
    **EXECUTION,
    "Id": DELETE.execution,
    "Input": machine_input(DELETE.attempt, DELETE.request),
    "Name": DELETE.attempt.name,
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
        "SourceKey": "template.json",
    },
}
ROLLOUT_REQUEST: Event = {**CUSTOM_RESOURCE, "ResourceProperties": {"ServiceToken": "arn", "Version": VERSION}}
TENANT_QUEUE_REQUEST: Event = {
    **CUSTOM_RESOURCE,
    "ResourceProperties": {"ServiceToken": "arn", "TenantId": "acme"},
}
CLAIM: Event = {**CUSTOM_RESOURCE, "ResourceProperties": {"ServiceToken": "arn"}}


def parse_metadata_request(event: object) -> resource_requests.MetadataRequest:
    return resource_requests.parse_metadata_request(event, location=LOCATION, names=NAMES)


DONE = Done(STACK_ID, QUEUE, VERSION)


def parse_failure_step(event: object) -> schemas.FailureStep:
    return schemas.parse_failure_step(event, NAMES)


def parse_settle_step(event: object) -> schemas.SettleStep:
    return schemas.parse_settle_step(event, RESOURCE.stack.location)


def parse_claim(event: object) -> Claim:
    return resource_requests.parse_claim(event, RESOURCE.stack.location)


GOOD: dict[Parse, Event] = {
    schemas.parse_run: {"execution": EXECUTION},
    schemas.parse_begin_step: {"execution": EXECUTION, "operation": "CREATE"},
    schemas.parse_start_step: {"execution": EXECUTION, "taskToken": "AAAA"},
    schemas.parse_await_step: {"execution": EXECUTION, "taskToken": "AAAA"},
    schemas.parse_finish_step: {"execution": EXECUTION, "stack": outcome_json(replace(DONE, changed_at=NOON))},
    parse_failure_step: {
        "execution": EXECUTION,
        "operation": "CREATE",
        "failure": {"outcome": "failed", "reason": "It broke."},
    },
    parse_settle_step: {"execution": {"StartTime": "2026-11-16T12:00:00.000Z", "Input": {"event": CLAIM}}},
    parse_claim: CLAIM,
    schemas.parse_stack_event: {
        "source": "aws.cloudformation",
        "detail": {"stack-id": STACK_ID, "status-details": {"status": "CREATE_COMPLETE"}},
    },
    parse_metadata_request: METADATA_REQUEST,
    resource_requests.parse_release_request: RELEASE_REQUEST,
    resource_requests.parse_rollout_request: ROLLOUT_REQUEST,
    resource_requests.parse_tenant_queue_request: TENANT_QUEUE_REQUEST,
}

INPUT = ("execution", "Input")

# Sent, but not read, or read only where it is there.
NOT_REQUIRED: set[str] = {
    "execution.Name",
    "execution.RoleArn",
    "execution.RedriveCount",
    "execution.Input.request",
    "source",
    "detail.status-details",
    "ResourceType",
    "PhysicalResourceId",
    "ResourceProperties.ServiceToken",
}


def paths(event: Event, above: Path = ()) -> Iterator[Path]:
    for name, value in event.items():
        here = (*above, name)
        # A resource's event is the same wherever it is wrapped into.
        if ".".join(here).removeprefix("execution.Input.event.") in NOT_REQUIRED:
            continue
        yield here
        if isinstance(value, dict):
            yield from paths(value, here)


REQUIRED = [
    pytest.param(parse, path, id=f"{parse.__name__}-{'.'.join(path)}")
    for parse, event in GOOD.items()
    for path in paths(event)
]


def changed(event: Event, path: Path, value: object) -> Event:
    """A copy of the event with another value there."""
    event = copy.deepcopy(event)
    *above, name = path
    inner = event
    for step in above:
        inner = inner.setdefault(step, {})
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


def parsers(module: object) -> set[str]:
    return {
        name
        for name, value in vars(module).items()
        if name.startswith("parse_") and value.__module__ == module.__name__  # type: ignore[attr-defined]
    }


def test_every_parser_is_checked_here() -> None:
    assert {parse.__name__ for parse in GOOD} == parsers(schemas) | parsers(resource_requests)


@pytest.mark.parametrize("parse", GOOD, ids=lambda parse: parse.__name__)
def test_a_good_event_is_understood(parse: Parse) -> None:
    assert parse(GOOD[parse])


@pytest.mark.parametrize("parse", GOOD, ids=lambda parse: parse.__name__)
def test_a_good_event_is_understood_without_what_nobody_reads(parse: Parse) -> None:
    event = copy.deepcopy(GOOD[parse])
    for path in NOT_REQUIRED:
        *above, name = path.split(".")
        inner = event
        for step in above:
            inner = inner.get(step, {})
        inner.pop(name, None)
    assert parse(event)


@pytest.mark.parametrize(("parse", "path"), REQUIRED)
def test_a_missing_field_is_refused_by_name(parse: Parse, path: Path) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(without(GOOD[parse], path))
    # Outcomes and failures have one of several shapes, so no one field of theirs is the missing one.
    expected = path[0] if path[0] in ("failure", "stack") else path[-1]
    assert expected in str(refused.value)


@pytest.mark.parametrize(
    ("parse", "path", "wrong"),
    [
        pytest.param(parse, path, wrong, id=f"{parse.__name__}-{'.'.join(path)}-{wrong!r}")
        for parse, event in GOOD.items()
        for path in paths(event)
        for wrong in (None, [], {}, True, -1)
        # Which properties there are matters only once CloudFormation has confirmed the request.
        if (parse, path[-1], wrong)
        not in [
            *[(each, "ResourceProperties", {}) for each in (parse_settle_step, parse_claim)],
            (schemas.parse_finish_step, "changedAt", None),
        ]
    ],
)
def test_a_field_of_the_wrong_type_is_refused_by_its_place(parse: Parse, path: Path, wrong: object) -> None:
    with pytest.raises(InvalidRequest) as refused:
        parse(changed(GOOD[parse], path, wrong))
    assert any(step in str(refused.value) for step in path)


@pytest.mark.parametrize("event", [None, [], "acme", 7, True], ids=repr)
@pytest.mark.parametrize("parse", GOOD, ids=lambda parse: parse.__name__)
def test_input_that_is_no_object_is_refused(parse: Parse, event: object) -> None:
    with pytest.raises(InvalidRequest, match="the event"):
        parse(event)


WRONG_VALUES: list[tuple[Parse, Path, list[object]]] = [
    (schemas.parse_run, (*INPUT, "tenantId"), ["", "a/b", "a#b", "-a", "a\n", "x" * 41, "acm\u00e9"]),
    (schemas.parse_run, (*INPUT, "operation"), ["", "create", "RENAME"]),
    (schemas.parse_begin_step, ("operation",), ["", "create", None]),
    (schemas.parse_run, (*INPUT, "version"), ["", "1.0", "v1.0.0", "1.0.0-rc1", "1.0.0#x", "1.0.10000", "\u0661.0.0"]),
    (schemas.parse_run, (*INPUT, "attempt"), [0, -1, 100_000, 1.5, "1"]),
    (schemas.parse_run, (*INPUT, "request"), [None, [], "explicit"]),
    (schemas.parse_run, (*INPUT, "request", "by"), [None, 7, "x" * 2_049]),
    (schemas.parse_run, (*INPUT, "request", "explicit"), [None, "true", 1]),
    (schemas.parse_run, (*INPUT, "request", "labels"), [None, [], {"": "x"}, {"a b": "x"}, {"a": 1}, {"a": "\n"}]),
    (schemas.parse_run, (*INPUT, "request", "labels"), [{str(n): "" for n in range(21)}, {"a": "x" * 129}]),
    (schemas.parse_run, (*INPUT, "request", "pin"), [None, "", "latest", f"{VERSION}\n"]),
    (schemas.parse_run, (*INPUT, "request", "allowDowngrade"), [None, "yes"]),
    (schemas.parse_run, (*INPUT, "request", "allowReplacement"), [None, "yes"]),
    (schemas.parse_run, (*INPUT, "request", "force"), [None, "yes"]),
    (schemas.parse_run, (*INPUT, "request", "drainSeconds"), [None, -1, 1_201, 1.5, "60"]),
    (schemas.parse_run, ("execution", "Id"), ["", "x" * 4_097]),
    (schemas.parse_run, ("execution", "StartTime"), ["yesterday", "2026-13-01T00:00:00Z", "0001-01-01T00:00:00+23:59"]),
    (schemas.parse_await_step, ("taskToken",), [""]),
    (schemas.parse_finish_step, ("stack", "version"), ["", "latest"]),
    (schemas.parse_finish_step, ("stack", "outcome"), ["gone", "started", ""]),
    (parse_failure_step, ("failure", "outcome"), ["done", ""]),
    (parse_failure_step, ("failure", "failedStack"), [7, []]),
    (parse_settle_step, ("execution", "StartTime"), ["", "yesterday"]),
    (parse_settle_step, ("failure",), [None, {}, {"Error": 7}, {"Cause": "no error"}]),
    (parse_metadata_request, ("RequestType",), ["", "Rename", "create"]),
    (parse_metadata_request, ("ResourceProperties", "TenantId"), ["a/b", "acme\n"]),
    (resource_requests.parse_release_request, ("ResourceProperties", "Version"), ["1", "1.0.0.0"]),
    (
        resource_requests.parse_release_request,
        ("ResourceProperties", "Digest"),
        ["", "0" * 63, "0" * 65, "A" * 64, "g" * 64],
    ),
    (resource_requests.parse_release_request, ("ResourceProperties", "Notes"), [None, 7, [], "x" * 4_001]),
    (resource_requests.parse_rollout_request, ("ResourceProperties", "Version"), ["latest", "", f"{VERSION}\n"]),
    (resource_requests.parse_tenant_queue_request, ("ResourceProperties", "TenantId"), ["a/b", "acme\n"]),
    (resource_requests.parse_tenant_queue_request, ("ResourceProperties", "Version"), ["latest", ""]),
    (resource_requests.parse_tenant_queue_request, ("ResourceProperties", "Labels"), [[], "a=b", {"a": {}}]),
    (resource_requests.parse_tenant_queue_request, ("ResourceProperties", "OnDelete"), ["", "Delete", "keep"]),
    (resource_requests.parse_tenant_queue_request, ("OldResourceProperties",), [None, [], "acme"]),
]


@pytest.mark.parametrize(
    ("parse", "path", "value"),
    [
        pytest.param(parse, path, value, id=f"{parse.__name__}-{'.'.join(path)}={value!a:.20}")
        for parse, path, values in WRONG_VALUES
        for value in values
    ],
)
def test_a_wrong_value_is_refused(parse: Parse, path: Path, value: object) -> None:
    with pytest.raises(InvalidRequest):
        parse(changed(GOOD[parse], path, value))


@pytest.mark.parametrize(
    ("parse", "path", "value"),
    [
        pytest.param(schemas.parse_run, (*INPUT, "version"), f"{VERSION}\n", id="version"),
        pytest.param(schemas.parse_finish_step, ("stack", "version"), f"{VERSION}\n", id="version of the stack"),
        pytest.param(
            resource_requests.parse_release_request, ("ResourceProperties", "Version"), f"{VERSION}\n", id="release"
        ),
        pytest.param(
            resource_requests.parse_release_request, ("ResourceProperties", "Digest"), "0" * 64 + "\n", id="digest"
        ),
    ],
)
def test_a_trailing_newline_is_refused(parse: Parse, path: Path, value: str) -> None:
    with pytest.raises(InvalidRequest):
        parse(changed(GOOD[parse], path, value))


def test_a_refusal_is_short_however_much_was_sent() -> None:
    with pytest.raises(InvalidRequest) as refused:
        schemas.parse_run({"execution": "x" * 100_000})
    assert len(str(refused.value)) < 400


# Runs


def test_an_execution_becomes_a_run() -> None:
    assert schemas.parse_run(GOOD[schemas.parse_run]) == RUN


@pytest.mark.parametrize("operation", list(Operation))
def test_every_operation_is_understood(operation: Operation) -> None:
    event = changed(GOOD[schemas.parse_run], (*INPUT, "operation"), operation.value)
    assert schemas.parse_run(event).attempt.operation is operation


@pytest.mark.parametrize(
    "request_",
    [
        Request(),
        EXPLICIT,
        Request(by="x" * 2_048, labels={"tier": "gold", "a.b/c-d": "e@f: +=g"}, pin=VERSION),
        Request(labels={}),
        Request(allow_downgrade=True),
        Request(allow_replacement=True),
        Request(force=True, drain_seconds=1_200),
    ],
    ids=["nothing", "explicit", "labels and pin", "no labels", "downgrade", "replacement", "delete"],
)
def test_the_request_reaches_the_run_unchanged(request_: Request) -> None:
    run = replace(RUN, request=request_)
    document = json.loads(json.dumps(machine_input(run.attempt, request_)))
    assert schemas.parse_run({"execution": {**EXECUTION, "Input": document}}) == run


def test_an_execution_that_another_one_started_is_a_run_as_any_other() -> None:
    """Step Functions adds to the input who that was."""
    started_by = {"AWS_STEP_FUNCTIONS_STARTED_BY_EXECUTION_ID": "arn:aws:states:eu-west-1:0:execution:rollout:1"}
    event = changed(GOOD[schemas.parse_run], INPUT, {**EXECUTION["Input"], **started_by})
    assert schemas.parse_run(event) == RUN


def test_an_execution_from_before_there_were_requests_asks_for_nothing_more() -> None:
    run = schemas.parse_run(without(GOOD[schemas.parse_run], (*INPUT, "request")))
    assert run == replace(RUN, request=Request())


def test_an_attempt_has_one_name_however_its_number_is_spelled() -> None:
    event = changed(GOOD[schemas.parse_run], (*INPUT, "attempt"), json.loads("1.0"))
    assert schemas.parse_run(event).attempt.name == RUN.attempt.name


def test_a_start_time_in_another_zone_is_the_same_moment() -> None:
    event = changed(GOOD[schemas.parse_run], ("execution", "StartTime"), "2026-11-16T13:00:00.5+01:00")
    assert schemas.parse_run(event).started_at == datetime(2026, 11, 16, 12, 0, 0, 500_000, tzinfo=UTC)


# The outcome of a state is the input of the next one. In between it is JSON.


STARTS: list[Start] = [
    Started(STACK_ID),
    Clearing(STACK_ID),
    Unchanged(STACK_ID),
    outcomes.Reviewing(),
    outcomes.Draining("none were counted", NOON, 60),
    Gone(),
    Again("Rate exceeded", throttled=True),
    Again("the stack was deleted"),
    Again(""),
    GaveUp("It would lose messages."),
    GaveUp("It broke.", STACK_ID),
    GaveUp("Rate exceeded", throttled=True),
]
OTHER_OUTCOMES = [
    outcomes.Begun(),
    outcomes.Busy("an execution"),
    outcomes.Queued(),
    outcomes.Draining("1 visible", None, 5),
    outcomes.Working(),
    outcomes.Waiting(),
    outcomes.Settled(),
    outcomes.NotReady(),
    outcomes.Published(),
    outcomes.Removed(),
]


def response(outcome: Any) -> Event:
    through_the_machine: Event = json.loads(json.dumps(outcome_json(outcome)))
    return through_the_machine


def test_every_outcome_is_tried() -> None:
    every = {value for value in vars(outcomes).values() if isinstance(value, type) and hasattr(value, "outcome")}
    assert every == {type(outcome) for outcome in [*STARTS, *OTHER_OUTCOMES, DONE]}
    assert {type(outcome) for outcome in STARTS} == set(get_args(Start))


def test_finishing_takes_the_queue_and_the_version_that_the_stack_says_itself() -> None:
    done = replace(DONE, version="0.0.7")
    for operation in (Operation.CREATE, Operation.UPDATE):
        event = changed({"execution": EXECUTION, "stack": response(done)}, (*INPUT, "operation"), operation.value)
        step = schemas.parse_finish_step(event)
        assert (step.run.attempt.operation, step.stack) == (operation, done)


def test_finishing_takes_when_the_stack_was_last_changed() -> None:
    step = schemas.parse_finish_step({"execution": EXECUTION, "stack": response(replace(DONE, changed_at=NOON))})
    assert step.stack is not None
    assert step.stack.changed_at == NOON
    for wrong in (7, "", "yesterday"):
        event = changed({"execution": EXECUTION, "stack": response(DONE)}, ("stack", "changedAt"), wrong)
        with pytest.raises(InvalidRequest, match="stack"):
            schemas.parse_finish_step(event)


def test_finishing_a_delete_takes_that_the_stack_is_gone() -> None:
    step = schemas.parse_finish_step({"execution": DELETE_EXECUTION, "stack": response(Gone())})
    assert step == schemas.FinishStep(DELETE, None)


@pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
def test_only_a_delete_ends_with_a_stack_that_is_gone(operation: Operation) -> None:
    event = changed({"execution": EXECUTION, "stack": response(Gone())}, (*INPUT, "operation"), operation.value)
    with pytest.raises(InvalidRequest, match=f"{operation} does not end with 'gone'"):
        schemas.parse_finish_step(event)


def test_a_delete_never_publishes() -> None:
    with pytest.raises(InvalidRequest, match="DELETE does not end with 'done'"):
        schemas.parse_finish_step({"execution": DELETE_EXECUTION, "stack": response(DONE)})


@pytest.mark.parametrize(
    "outcome", [*OTHER_OUTCOMES, *[start for start in STARTS if start != Gone()]], ids=lambda outcome: outcome.outcome
)
@pytest.mark.parametrize("execution", [EXECUTION, DELETE_EXECUTION], ids=["create", "delete"])
def test_nothing_else_is_an_end(execution: Event, outcome: object) -> None:
    with pytest.raises(InvalidRequest, match="stack"):
        schemas.parse_finish_step({"execution": execution, "stack": response(outcome)})


# Failures


def failure(given: Event) -> schemas.FailureStep:
    return parse_failure_step({"execution": EXECUTION, "operation": "CREATE", "failure": given})


@pytest.mark.parametrize("failed_stack", [STACK_ID, None])
def test_an_outcome_that_says_why_is_the_stacks_failure(failed_stack: str | None) -> None:
    step = failure(response(GaveUp("It broke.", failed_stack)))
    cause = RootCause(NAMES.stack_of(ACME), "AWS::CloudFormation::Stack", "It broke.")
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
    step = failure({"Error": "Lambda.Unknown", "Cause": json.dumps({"errorMessage": "Task timed out"})})
    assert step.failure.reason == "Lambda.Unknown: Task timed out"


@pytest.mark.parametrize("cause", ["plain words", "{broken", "[1]", '"text"', "7", "null", '{"other": 1}'])
def test_any_other_cause_is_told_as_it_is(cause: str) -> None:
    step = failure({"Error": "States.Timeout", "Cause": cause})
    assert step.failure.reason == f"States.Timeout: {cause}"
    assert step.failed_stack is None


@pytest.mark.parametrize("cause", ["[" * 100_000, '{"a":' * 5_000])
def test_a_cause_that_is_nested_too_deeply_is_told_as_it_is(cause: str) -> None:
    assert failure({"Error": "States.Runtime", "Cause": cause}).failure.reason == f"States.Runtime: {cause}"


def test_a_cause_that_holds_half_a_character_is_told_without_it_because_no_table_would_take_it() -> None:
    cause = '{"errorMessage": "cut off: \\ud83d", "errorType": "Oops"}'
    assert failure({"Error": "Oops", "Cause": cause}).failure.reason == "Oops: cut off: ?"


@pytest.mark.parametrize("parse", list(GOOD))
def test_text_with_a_lone_surrogate_is_refused(parse: Any) -> None:
    with pytest.raises(InvalidRequest, match="surrogate"):
        parse({**GOOD[parse], "more": ["\ud83d"]})


@pytest.mark.parametrize("parse", list(GOOD))
def test_deep_nesting_is_refused_before_it_is_shown(parse: Any) -> None:
    nested: object = None
    for _ in range(950):
        nested = [nested]
    with pytest.raises(InvalidRequest, match="nested"):
        parse({**GOOD[parse], "more": nested})


def test_a_throttled_operation_differs_from_a_failed_one() -> None:
    step = failure(response(GaveUp("Rate exceeded", throttled=True)))
    assert step == schemas.FailureStep(RUN, RootCause(NAMES.stack_of(ACME), THROTTLING, "Rate exceeded"), None)
    assert step.failure.is_throttling
    assert not failure(response(GaveUp("It broke."))).failure.is_throttling


@pytest.mark.parametrize(
    "given",
    [
        {"Error": "Throttled", "Cause": "DescribeStacks: Rate exceeded"},
        {"Error": "Throttled", "Cause": '{"errorMessage": "Rate exceeded", "errorType": "Throttled"}'},
        {"Error": "Runtime.HandlerError", "Cause": '{"errorMessage": "Rate exceeded", "errorType": "Throttled"}'},
        {"Error": "Throttled"},
    ],
)
def test_a_function_that_was_throttled_to_the_end_is_told_from_one_that_failed(given: Event) -> None:
    step = failure(given)
    assert step.failure.is_throttling
    assert step.failure.resource == RUN.attempt.name
    assert step.failure.reason.startswith("Throttled: ")
    assert step.failed_stack is None


@pytest.mark.parametrize(
    "given",
    [
        {"Error": "States.Timeout", "Cause": "Throttled: it says"},
        {"Error": "ThrottledElsewhere", "Cause": "x"},
        {"Error": "Throttled", "Cause": '{"errorMessage": "No.", "errorType": "StackNotOurs"}'},
        {"outcome": "failed", "reason": "Throttled: it says"},
        {"outcome": "failed", "reason": "x", "throttled": False},
    ],
)
def test_words_alone_make_no_throttling(given: Event) -> None:
    assert not failure(given).failure.is_throttling


def test_an_error_without_a_cause_is_still_told() -> None:
    assert failure({"Error": "States.Timeout"}).failure.reason.startswith("States.Timeout")


# Settling a resource of another team's stack


SETTLE = {"execution": {"StartTime": "2026-11-16T12:00:00.000Z", "Input": {"event": TENANT_QUEUE_REQUEST}}}


def test_settling_takes_what_cloudformation_asked_for_and_since_when() -> None:
    step = parse_settle_step(SETTLE)
    assert step == schemas.SettleStep(
        claim=parse_claim(TENANT_QUEUE_REQUEST),
        asked=resource_requests.parse_tenant_queue_request(TENANT_QUEUE_REQUEST),
        since=NOON,
        confirmed=False,
        event=TENANT_QUEUE_REQUEST,
        fault=None,
    )


@pytest.mark.parametrize("confirmed", [False, True])
def test_settling_is_told_whether_cloudformation_has_confirmed_the_request(confirmed: bool) -> None:
    step = parse_settle_step({**SETTLE, "confirmed": confirmed})
    assert step.confirmed == confirmed


@pytest.mark.parametrize("confirmed", ["true", 1, None, {}])
def test_nothing_else_is_taken_for_a_confirmation(confirmed: object) -> None:
    with pytest.raises(InvalidRequest, match="confirmed"):
        parse_settle_step({**SETTLE, "confirmed": confirmed})


def test_settling_is_told_why_a_request_is_none() -> None:
    step = parse_settle_step(changed(SETTLE, (*INPUT, "event", "ResourceProperties", "TenantId"), "a/b"))
    assert isinstance(step.asked, InvalidRequest)
    assert "TenantId" in str(step.asked)
    assert step.claim.tenant_id == "a/b"


def test_settling_after_a_fault_is_told_the_fault_in_its_own_words() -> None:
    cause = json.dumps({"errorMessage": "Rate exceeded", "errorType": "Throttled"})
    step = parse_settle_step({**SETTLE, "failure": {"Error": "Runtime.HandlerError", "Cause": cause}})
    assert step.fault == "Throttled: Rate exceeded"
    assert parse_settle_step({**SETTLE, "failure": {"Error": "States.Timeout"}}).fault == "States.Timeout: "


def test_a_resource_keeps_the_physical_id_that_it_has() -> None:
    assert parse_settle_step(SETTLE).physical_id == "something"


def test_a_resource_without_a_physical_id_gets_the_tenants_id() -> None:
    event = without(SETTLE, (*INPUT, "event", "PhysicalResourceId"))
    assert parse_settle_step(event).physical_id == "acme"
    refused = changed(event, (*INPUT, "event", "ResourceProperties", "TenantId"), "a/b")
    assert parse_settle_step(refused).physical_id == "refused"


# CloudFormation's events and requests


def test_a_stack_event_becomes_the_stacks_id_and_the_token_of_the_request() -> None:
    event = changed(GOOD[schemas.parse_stack_event], ("detail", "client-request-token"), "update-acme-1")
    assert schemas.parse_stack_event(event) == schemas.StackEvent(STACK_ID, "update-acme-1")


def test_a_stack_event_need_not_say_what_request_it_comes_of() -> None:
    event = GOOD[schemas.parse_stack_event]
    without_token = schemas.StackEvent(STACK_ID, "")
    assert schemas.parse_stack_event(event) == without_token
    assert schemas.parse_stack_event(changed(event, ("detail", "client-request-token"), None)) == without_token


@pytest.mark.parametrize("token", [1, {}, [], True], ids=str)
def test_a_token_that_is_none_is_refused(token: object) -> None:
    with pytest.raises(InvalidRequest, match="client-request-token"):
        schemas.parse_stack_event(changed(GOOD[schemas.parse_stack_event], ("detail", "client-request-token"), token))


@pytest.mark.parametrize("kind", list(Kind))
def test_a_metadata_request_is_understood(kind: Kind) -> None:
    request = parse_metadata_request({**METADATA_REQUEST, "RequestType": kind.value})
    assert request == resource_requests.MetadataRequest(
        kind, ACME, StackArn.parse(STACK_ID), Queue(QUEUE.arn, QUEUE.url)
    )


@pytest.mark.parametrize("kind", ["Create", "Update"])
def test_a_release_request_is_understood(kind: str) -> None:
    request = resource_requests.parse_release_request({**RELEASE_REQUEST, "RequestType": kind})
    assert request == resource_requests.ReleaseRequest(VERSION, "0123456789abcdef" * 4, "template.json")


@pytest.mark.parametrize("kind", list(Kind))
def test_a_tenant_queue_request_asks_in_the_resources_own_name_and_keeps_the_tenant(kind: Kind) -> None:
    request = resource_requests.parse_tenant_queue_request({**TENANT_QUEUE_REQUEST, "RequestType": kind.value})
    assert request == resource_requests.TenantQueueRequest(
        kind, ACME, Request(by=str(RESOURCE), resource=RESOURCE), OnDelete.RETAIN, replaces=None
    )


def test_a_tenant_queue_request_may_say_version_labels_and_what_to_do_in_the_end() -> None:
    properties = {"TenantId": "acme", "Version": VERSION, "Labels": {"tier": "gold"}, "OnDelete": "delete"}
    request = resource_requests.parse_tenant_queue_request({**CUSTOM_RESOURCE, "ResourceProperties": properties})
    assert request.request == Request(by=str(RESOURCE), resource=RESOURCE, labels={"tier": "gold"}, pin=VERSION)
    assert request.on_delete is OnDelete.DELETE


@pytest.mark.parametrize(
    ("before", "replaces"), [("other", "other"), ("Acme", "Acme"), ("acme", None), ("not/valid", None), (None, None)]
)
def test_a_tenant_queue_request_names_the_tenant_before_if_it_is_another(
    before: str | None, replaces: str | None
) -> None:
    old = {} if before is None else {"TenantId": before}
    request = resource_requests.parse_tenant_queue_request({**TENANT_QUEUE_REQUEST, "OldResourceProperties": old})
    assert (request.replaces.value if request.replaces else None) == replaces
