"""Requests of operators and payloads of the state machine: every field is parsed, and anything else is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.api.reading import read
from orchestrator.api.rollout_models import MAX_BAKE_SECONDS, MAX_TENANTS
from orchestrator.api.rollout_requests import ApproveStage, ListRollouts, OrderRollout
from orchestrator.api.rollout_routes import APPROVE_ROLLOUT, GET_ROLLOUT, LIST_ROLLOUTS, PAUSE_ROLLOUT, START_ROLLOUT
from orchestrator.common.errors import InvalidRequest
from orchestrator.rollouts.records import MAX_STAGES, Item, Share, Spec, StageSpec, Turn
from orchestrator.rollouts.steps import (
    RolloutStep,
    TurnStep,
    parse_await_operator_step,
    parse_rollout_step,
    parse_turn,
)
from tests.fakes import NEXT_VERSION
from tests.unit.rollouts.world import ADA, ROLLOUT, tenant

REST: dict[str, Any] = {"size": "rest"}
RUN = {"Id": "arn:execution", "Input": {"rolloutId": ROLLOUT, "attempt": 2}}
TURN: dict[str, Any] = {
    "rolloutId": ROLLOUT,
    "stage": 1,
    "tenantId": "acme",
    "version": NEXT_VERSION,
    "execution": "arn:child",
}


def an_event(body: object = None, *, rollout: object = ROLLOUT, **more: object) -> dict[str, Any]:
    return {
        "body": None if body is None else json.dumps(body),
        "pathParameters": {"rolloutId": rollout},
        "requestContext": {"authorizer": {"iam": {"userArn": ADA}}},
        **more,
    }


def parse_start(event: dict[str, Any], *, max_concurrency: int = 50) -> Spec:
    return read(START_ROLLOUT, event).spec(max_concurrency=max_concurrency)


parse_rollout = partial(read, GET_ROLLOUT)
parse_rollout_order = partial(read, PAUSE_ROLLOUT)
parse_approval = partial(read, APPROVE_ROLLOUT)
parse_rollouts = partial(read, LIST_ROLLOUTS)


def spec(body: object = None) -> Spec:
    return parse_start(an_event(body))


# Operators' requests


def test_a_rollout_may_be_requested_without_a_body() -> None:
    spec = parse_start(an_event(), max_concurrency=8)

    assert [str(stage.size) for stage in spec.stages] == ["1", "10%", "None"]
    assert {stage.max_concurrency for stage in spec.stages} == {8}
    assert (spec.version, spec.tenants) == (None, None)


def test_all_fields_of_a_request_are_read() -> None:
    assert spec(
        {
            "version": "1.2.3",
            "tenants": ["acme"],
            "labels": {"team": "billing"},
            "share": "20%",
            "stages": [
                {
                    "size": "2",
                    "maxConcurrency": 3,
                    "tolerated": "1%",
                    "bakeSeconds": 9,
                    "alarm": "errors",
                    "approval": True,
                },
                {"size": "rest", "alarm": None},
            ],
            "allowDowngrade": True,
            "allowReplacement": True,
            "dryRun": True,
            "sample": "5",
        }
    ) == Spec(
        "1.2.3",
        (
            StageSpec(Share(2), 3, Share(1, percent=True), 9, "errors", approval=True),
            StageSpec(None, 50, Share(5, percent=True), 0),
        ),
        tenants=(tenant("acme"),),
        labels={"team": "billing"},
        share=Share(20, percent=True),
        allow_downgrade=True,
        allow_replacement=True,
        dry_run=True,
        sample=Share(5),
    )


def test_an_undo_names_the_rollout() -> None:
    assert spec({"undo": ROLLOUT}).undo == ROLLOUT
    assert spec({"undo": ROLLOUT, "version": "1.2.3"}).version == "1.2.3"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"version": "latest"}, "version: 'latest' is not a version like 1.2.3"),
        ({"version": None}, "version: "),
        ({"tenants": []}, "tenants: "),
        ({"tenants": ["-"]}, "tenants.0: "),
        ({"tenants": "acme"}, "tenants: "),
        ({"tenants": [f"t{number}" for number in range(MAX_TENANTS + 1)]}, "tenants: "),
        ({"labels": {"team": 1}}, "labels.team: "),
        ({"share": "0"}, "share: "),
        ({"share": "0%"}, "share: "),
        ({"share": "101%"}, "share: "),
        ({"share": "-1"}, "share: "),
        ({"share": "1.5%"}, "share: "),
        ({"share": 5}, "share: "),
        ({"share": "5\n"}, "share: "),
        ({"share": "٣"}, "share: "),
        ({"stages": []}, "stages: "),
        ({"stages": [{}]}, "stages.0: 'size' is a required property"),
        ({"stages": [{"size": "1"}]}, "stages: the last stage, and only the last, must have the size rest."),
        ({"stages": [REST, {"size": "1"}]}, "stages: the last stage, and only the last, must have the size rest."),
        ({"stages": [REST, REST]}, "stages: the last stage, and only the last, must have the size rest."),
        ({"stages": [{"size": "1"}] * MAX_STAGES + [REST]}, "stages: "),
        ({"stages": [{"size": "all"}]}, "stages.0.size: "),
        ({"stages": [{**REST, "maxConcurrency": 0}]}, "stages.0.maxConcurrency: "),
        ({"stages": [{**REST, "maxConcurrency": 51}]}, "maxConcurrency: this control plane moves at most 50 tenants"),
        ({"stages": [{**REST, "maxConcurrency": True}]}, "stages.0.maxConcurrency: "),
        ({"stages": [{**REST, "maxConcurrency": 1.5}]}, "stages.0.maxConcurrency: "),
        ({"stages": [{**REST, "tolerated": "101%"}]}, "stages.0.tolerated: "),
        ({"stages": [{**REST, "tolerated": "-1"}]}, "stages.0.tolerated: "),
        ({"stages": [{**REST, "bakeSeconds": -1}]}, "stages.0.bakeSeconds: "),
        ({"stages": [{**REST, "bakeSeconds": MAX_BAKE_SECONDS + 1}]}, "stages.0.bakeSeconds: "),
        ({"stages": [{**REST, "alarm": ""}]}, "stages.0.alarm: "),
        ({"stages": [{**REST, "alarm": "x" * 256}]}, "stages.0.alarm: "),
        ({"stages": [{**REST, "surprise": 1}]}, "stages.0: Additional properties"),
        ({"dryRun": "yes"}, "dryRun: "),
        ({"sample": "5"}, "sample: sample requires dryRun."),
        ({"sample": "5", "dryRun": False}, "sample: sample requires dryRun."),
        ({"undo": "yesterday"}, "undo: "),
        ({"undo": ROLLOUT, "tenants": ["acme"]}, "undo: undo selects the tenants of that rollout"),
        ({"retry": ROLLOUT}, "the body: Additional properties"),
        ({"surprise": 1}, "the body: Additional properties"),
        ([], "the body: "),
        ("text", "the body: "),
    ],
)
def test_an_invalid_request_is_refused_with_the_reason(body: object, message: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        spec(body)

    assert message in str(refused.value)


@pytest.mark.parametrize(
    "text", ["{", "nul", "[" * 100_000, '{"share": NaN}', '{"stages": [{"maxConcurrency": 1e999}]}']
)
def test_a_body_that_is_not_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidRequest):
        parse_start({"body": text}, max_concurrency=50)


def test_a_query_is_refused() -> None:
    for parse in (lambda event: parse_start(event, max_concurrency=50), parse_rollout):
        with pytest.raises(InvalidRequest, match="the query"):
            parse(an_event(queryStringParameters={"force": "true"}))


def test_integers_stay_integers() -> None:
    (stage,) = spec({"stages": [{**REST, "maxConcurrency": 2.0, "bakeSeconds": 1e1}]}).stages

    assert (type(stage.max_concurrency), type(stage.bake_seconds)) == (int, int)


# One rollout, and a list of them


def test_a_rollout_is_named_in_the_path() -> None:
    assert parse_rollout(an_event()).rollout_id == ROLLOUT


@pytest.mark.parametrize("rollout", [None, 5, "", "acme", f"{ROLLOUT}\n", ROLLOUT.upper(), "../../etc"])
def test_an_invalid_rollout_id_is_refused(rollout: object) -> None:
    with pytest.raises(InvalidRequest, match="rolloutId"):
        parse_rollout(an_event(rollout=rollout))


def test_a_body_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="the body"):
        parse_rollout(an_event({"force": True}))


def test_an_approval_names_the_stage() -> None:
    assert parse_approval(an_event({"stage": 2})) == ApproveStage(rollout_id=ROLLOUT, stage=2)
    assert type(parse_approval(an_event({"stage": 2.0})).stage) is int


def test_every_order_takes_a_reason() -> None:
    why = "Ticket 4711"
    assert parse_approval(an_event({"stage": 2, "reason": why})).reason == why
    assert parse_rollout_order(an_event({"reason": why})) == OrderRollout(rollout_id=ROLLOUT, reason=why)
    assert read(START_ROLLOUT, an_event({"reason": why}, rollout=None)).reason == why
    assert parse_rollout_order(an_event()) == OrderRollout(rollout_id=ROLLOUT)


@pytest.mark.parametrize("reason", ["", "x" * 501, "two\nlines", "\x1b[2J", 7, None], ids=ascii)
def test_a_reason_that_is_not_one_line_of_printable_text_is_refused(reason: object) -> None:
    with pytest.raises(InvalidRequest, match="reason"):
        parse_rollout_order(an_event({"reason": reason}))


@pytest.mark.parametrize("body", [None, {}, {"stage": 0}, {"stage": 11}, {"stage": "2"}])
def test_an_approval_without_a_valid_stage_is_refused(body: object) -> None:
    with pytest.raises(InvalidRequest, match="stage"):
        parse_approval(an_event(body))


def test_an_approval_without_a_valid_rollout_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="rolloutId"):
        parse_approval(an_event({"stage": 1}, rollout="acme"))


def test_a_list_may_continue_after_a_cursor() -> None:
    assert parse_rollouts({}) == ListRollouts(limit=100)
    assert parse_rollouts({"queryStringParameters": {"cursor": ROLLOUT, "limit": "7"}}) == ListRollouts(
        cursor=ROLLOUT, limit=7
    )


@pytest.mark.parametrize("query", [{"limit": "0"}, {"limit": "501"}, {"limit": "x"}, {"cursor": "x"}, {"more": "1"}])
def test_an_invalid_list_query_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest):
        parse_rollouts({"queryStringParameters": query})


# The state machine's payloads


def test_a_rollouts_step_is_parsed() -> None:
    assert parse_rollout_step({"execution": RUN}) == RolloutStep(ROLLOUT, 2, "arn:execution")


def test_a_step_after_an_error_contains_the_error() -> None:
    step = parse_rollout_step({"execution": RUN, "failure": {"Error": "States.ItemReaderFailed", "Cause": "no key"}})

    assert step.failure == "States.ItemReaderFailed: no key"


def test_the_error_message_of_a_function_is_kept() -> None:
    cause = json.dumps({"errorType": "Unsettled", "errorMessage": "others came before"})
    step = parse_rollout_step({"execution": RUN, "failure": {"Error": "Runtime.HandlerError", "Cause": cause}})

    assert step.failure == "Unsettled: others came before"


def test_a_step_that_waits_for_an_operator_has_a_token() -> None:
    step = parse_await_operator_step({"execution": RUN, "taskToken": "token"})

    assert step == RolloutStep(ROLLOUT, 2, "arn:execution", task_token="token")


def test_a_turn_is_parsed() -> None:
    turn = Turn(ROLLOUT, 1, Item(tenant("acme"), NEXT_VERSION), "arn:child")

    assert parse_turn(TURN) == TurnStep(turn, None)
    assert parse_turn({**TURN, "stage": 1.0, "failure": {"Error": "E"}}) == TurnStep(turn, "E: ")


@pytest.mark.parametrize("name", list(TURN))
def test_a_turn_with_a_missing_field_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match=name):
        parse_turn({key: value for key, value in TURN.items() if key != name})


# Arbitrary input

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["rest", "1", "5%"]),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("version", "tenants", "labels", "share", "stages", "dryRun", "sample", "undo"),
                    *("size", "maxConcurrency", "tolerated", "bakeSeconds", "alarm", "approval"),
                    *("execution", "failure", "taskToken", "Id", "Input", "rolloutId", "attempt", "Error", "Cause"),
                    *("stage", "tenantId", "body", "pathParameters", "queryStringParameters", "limit", "cursor"),
                    *("isBase64Encoded", "requestContext", "authorizer", "iam", "userArn"),
                ]
            )
            | st.text(max_size=4),
            inner,
            max_size=6,
        )
    ),
    max_leaves=12,
)


def only_refused(parse: Callable[[Any], object], sent: object) -> None:
    with suppress(InvalidRequest):
        parse(sent)


@given(JSON)
def test_any_body_is_either_parsed_or_refused(body: object) -> None:
    only_refused(lambda event: parse_start(event, max_concurrency=50), an_event(body))
    only_refused(parse_rollout, an_event(body))


@given(st.dictionaries(st.sampled_from(["size", "maxConcurrency", "tolerated", "bakeSeconds", "alarm"]), JSON))
def test_any_stage_is_either_parsed_or_refused(stage: object) -> None:
    only_refused(lambda event: parse_start(event, max_concurrency=50), an_event({"stages": [stage]}))


@given(st.dictionaries(st.sampled_from(["body", "pathParameters", "queryStringParameters", "isBase64Encoded"]), JSON))
def test_any_event_is_either_parsed_or_refused(event: dict[str, Any]) -> None:
    for parse in (lambda event: parse_start(event, max_concurrency=50), parse_rollout, parse_rollouts):
        only_refused(parse, event)


@given(JSON)
def test_any_payload_of_a_state_is_either_parsed_or_refused(event: object) -> None:
    for parse in (parse_rollout_step, parse_await_operator_step, parse_turn):
        only_refused(parse, event)


@given(st.sampled_from(list(TURN)), JSON)
def test_any_field_of_a_turn_is_either_parsed_or_refused(name: str, value: object) -> None:
    only_refused(parse_turn, {**TURN, name: value})
    only_refused(parse_turn, {**TURN, "failure": value})
    only_refused(parse_rollout_step, {"execution": RUN, "failure": value})
