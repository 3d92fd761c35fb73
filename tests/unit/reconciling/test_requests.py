"""The events that request a reconciliation or report an execution's end: each field is checked, others are refused."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.api.reading import read
from orchestrator.api.reconciliation_routes import GET_RECONCILIATION, START_RECONCILIATION
from orchestrator.common.errors import InvalidRequest
from orchestrator.reconciling.events import Message, parse_execution_ended, parse_messages, parse_to_run
from orchestrator.reconciling.records import SETTLING, SURVEY, Spec
from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.records import Operation
from tests.fakes import NOON, a_run
from tests.unit.reconciling.world import ADA, RECONCILIATION

NO_IDS: list[object] = [
    "",
    "1",
    "settling\n",
    f"{RECONCILIATION}\n",
    f" {RECONCILIATION}",
    "../settling",
    "20261116",
    None,
    5,
    {},
]


def an_event(body: object = None, *, name: object = RECONCILIATION, **more: object) -> dict[str, Any]:
    return {
        "body": None if body is None else json.dumps(body),
        "pathParameters": {"reconciliationId": name},
        "requestContext": {"authorizer": {"iam": {"userArn": ADA}}},
        **more,
    }


parse_reconcile = partial(read, START_RECONCILIATION)
parse_reconciliation = partial(read, GET_RECONCILIATION)

# Asking


@pytest.mark.parametrize(
    ("body", "spec"),
    [
        (None, Spec()),
        ({}, Spec()),
        ({"dryRun": True}, Spec(dry_run=True)),
        ({"detectDrift": True}, Spec(detect_drift=True)),
        ({"dryRun": False, "detectDrift": False}, Spec()),
        ({"dryRun": True, "detectDrift": True}, Spec(dry_run=True, detect_drift=True)),
    ],
)
def test_a_request_is_parsed(body: object, spec: Spec) -> None:
    assert parse_reconcile(an_event(body)).spec == spec


def test_by_default_everything_is_checked_and_repaired() -> None:
    spec = parse_reconcile(an_event()).spec
    assert spec.survey
    assert spec.repair


@pytest.mark.parametrize(
    "body",
    [[], "text", 1, {"dryRun": "true"}, {"dryRun": 1}, {"dryRun": None}, {"detectDrift": []}, {"dryrun": True}]
    + [{name: True} for name in ("repair", "survey", "detect_drift", "by", "reconciliationId")],
)
def test_an_invalid_body_is_refused(body: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_reconcile(an_event(body))


def test_query_parameters_are_refused() -> None:
    for parse in (parse_reconcile, parse_reconciliation):
        with pytest.raises(InvalidRequest, match="dryRun"):
            parse(an_event(queryStringParameters={"dryRun": "true"}))


# Looking and running


def test_the_id_in_the_path_is_parsed() -> None:
    assert parse_reconciliation(an_event()).reconciliation_id == RECONCILIATION


@pytest.mark.parametrize("name", [*NO_IDS, SETTLING, SURVEY])
def test_an_invalid_id_is_refused(name: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_reconciliation(an_event(name=name))


@pytest.mark.parametrize("name", [SETTLING, SURVEY, RECONCILIATION])
def test_the_event_names_the_reconciliation_to_run(name: str) -> None:
    assert parse_to_run({"reconciliationId": name}) == name


@pytest.mark.parametrize("event", [None, [], "settling", {}, *({"reconciliationId": name} for name in NO_IDS)])
def test_an_event_without_a_valid_id_is_refused(event: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_to_run(event)


# Messages


def test_messages_are_parsed_from_an_sqs_event() -> None:
    records = [{"messageId": "1", "body": "{}", "receiptHandle": "a handle"}, {"messageId": "2", "body": ""}]
    assert parse_messages({"Records": records}) == [Message("1", "{}"), Message("2", "")]
    assert parse_messages({"Records": []}) == []


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        {},
        {"Records": {}},
        {"Records": [None]},
        {"Records": [{"body": ""}]},
        {"Records": [{"messageId": "", "body": ""}]},
        {"Records": [{"messageId": "1", "body": {}}]},
    ],
)
def test_an_invalid_sqs_event_is_refused(event: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_messages(event)


# Executions that ended

RUNS = {operation: a_run(operation=operation) for operation in Operation}


def ended(operation: Operation = Operation.CREATE, **detail: object) -> dict[str, Any]:
    """As EventBridge tells of it."""
    run = RUNS[operation]
    return {
        "version": "0",
        "id": "315c1398-40ff-a850-213b-158f73e60175",
        "detail-type": "Step Functions Execution Status Change",
        "source": "aws.states",
        "detail": {
            "executionArn": run.execution,
            "stateMachineArn": "arn:aws:states:eu-west-1:000000000000:stateMachine:create-tenant",
            "name": run.attempt.name,
            "status": "ABORTED",
            "startDate": int(run.started_at.timestamp() * 1_000),
            "stopDate": int(run.started_at.timestamp() * 1_000) + 5,
            "input": json.dumps(machine_input(run.attempt, run.request)),
            "output": None,
            "inputDetails": {"included": True},
            **detail,
        },
    }


@pytest.mark.parametrize("operation", list(Operation))
def test_the_run_is_parsed_from_the_event(operation: Operation) -> None:
    assert parse_execution_ended(json.dumps(ended(operation))) == RUNS[operation]


def test_the_start_time_has_milliseconds() -> None:
    start = int(NOON.timestamp() * 1_000) + 7
    run = parse_execution_ended(json.dumps(ended(startDate=start)))
    assert run.started_at == NOON + timedelta(milliseconds=7)


@pytest.mark.parametrize(
    "detail",
    [
        {"executionArn": ""},
        {"executionArn": None},
        {"startDate": "2026-11-16"},
        {"startDate": -1},
        {"startDate": 10**15 * 10**5},
        {"startDate": 10**400},
        {"startDate": None},
        {"input": None},
        {"input": ""},
        {"input": "nonsense"},
        {"input": "{}"},
        {"input": "[" * 100_000},
        {"input": "9" * 5_000},
        {"input": json.dumps({**machine_input(RUNS[Operation.CREATE].attempt, a_run().request), "tenantId": "a#b"})},
    ],
    ids=lambda detail: str(detail)[:40],
)
def test_an_invalid_event_is_refused(detail: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequest):
        parse_execution_ended(json.dumps(ended(**detail)))


@pytest.mark.parametrize("text", [None, b"{}", {}, ended(), "", "nonsense", "[]", "null", "{}", "[" * 100_000])
def test_a_text_that_is_not_an_event_is_refused(text: object) -> None:
    with pytest.raises(InvalidRequest):
        parse_execution_ended(text)


# Whatever is sent

ODD: st.SearchStrategy[Any] = (
    st.sampled_from([None, True, 1.0, [], {}, [None], {"a": []}, "", "null", "{}", '{"dryRun": true}', "\ud800"])
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
)
FIELDS = st.fixed_dictionaries(
    {},
    optional={
        "reconciliationId": st.sampled_from([SETTLING, RECONCILIATION]) | ODD,
        "pathParameters": st.just({"reconciliationId": RECONCILIATION}) | ODD,
        "queryStringParameters": st.none() | ODD,
        "body": st.none() | st.text(max_size=8) | ODD.map(json.dumps) | ODD,
        "isBase64Encoded": st.booleans(),
        "requestContext": ODD,
        "Records": st.lists(
            st.fixed_dictionaries({"messageId": st.just("1") | ODD, "body": st.just("{}") | ODD}), max_size=2
        )
        | ODD,
        "detail": st.fixed_dictionaries(
            {
                "executionArn": st.just("arn:execution") | ODD,
                "startDate": st.integers() | ODD,
                "input": st.just(ended()["detail"]["input"]) | ODD.map(json.dumps) | ODD,
            }
        )
        | ODD,
    },
)
PARSERS: list[Callable[[Any], object]] = [
    parse_reconcile,
    parse_reconciliation,
    parse_to_run,
    parse_messages,
    lambda event: parse_execution_ended(json.dumps(event)),
    parse_execution_ended,
]


@settings(max_examples=300)
@given(event=FIELDS)
def test_any_input_is_parsed_or_refused(event: dict[str, Any]) -> None:
    for parse in PARSERS:
        with suppress(InvalidRequest):
            parse(event)


def test_a_body_may_come_in_base64() -> None:
    body = base64.b64encode(b'{"dryRun": true}').decode()
    assert parse_reconcile({"body": body, "isBase64Encoded": True}).spec.dry_run
