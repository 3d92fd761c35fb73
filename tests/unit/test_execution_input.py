"""The input of an execution: the request is the same after it went through JSON and the machines' schemas."""

from __future__ import annotations

import json
from dataclasses import fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.input_limits import REASON_PATTERN
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.execution_input import is_input_of, machine_input, request_document, request_from
from orchestrator.tenants.records import Attempt, Operation, Request
from orchestrator.tenants.schemas import parse_run
from tests.fakes import ACME, NOON, VERSION, a_resource, an_attempt, execution_arn

EVERYTHING = Request(
    by="ada",
    resource=a_resource(),
    explicit=True,
    labels={"team": "billing"},
    pin="0.1.0",
    allow_downgrade=True,
    allow_replacement=True,
    force=True,
    drain_seconds=600,
    asked_at=NOON,
    own=True,
    unserved=True,
    tier="gold",
    version="0.2.0",
    reason="Ticket 4711",
)

LABELS = st.dictionaries(
    st.from_regex(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,62}", fullmatch=True),
    st.from_regex(r"[A-Za-z0-9 ._:/@+=-]{0,128}", fullmatch=True),
    max_size=20,
)
VERSIONS = st.from_regex(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}", fullmatch=True)
REQUESTS = st.builds(
    Request,
    by=st.text(max_size=200),
    resource=st.none() | st.from_regex(r"[A-Za-z0-9]{1,255}", fullmatch=True).map(a_resource),
    explicit=st.booleans(),
    labels=st.none() | LABELS,
    pin=st.none() | VERSIONS,
    allow_downgrade=st.booleans(),
    allow_replacement=st.booleans(),
    force=st.booleans(),
    drain_seconds=st.integers(0, 1_200),
    asked_at=st.none() | st.integers(0, 10**9).map(lambda seconds: NOON + timedelta(seconds=seconds)),
    own=st.booleans(),
    unserved=st.booleans(),
    version=st.none() | VERSIONS,
    reason=st.from_regex(REASON_PATTERN, fullmatch=True).map(lambda text: text[:500]),
)
ATTEMPTS = st.builds(
    Attempt,
    tenant=st.from_regex(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38}[A-Za-z0-9])?", fullmatch=True).map(TenantId.parse),
    operation=st.sampled_from(Operation),
    version=VERSIONS,
    number=st.integers(1, 99_999),
)


def test_the_input_of_an_execution() -> None:
    assert machine_input(an_attempt(3, operation=Operation.DELETE), EVERYTHING) == {
        "tenantId": "acme",
        "operation": "DELETE",
        "version": VERSION,
        "attempt": 3,
        "request": {
            "by": "ada",
            "resource": {
                "stackId": "arn:aws:cloudformation:eu-west-1:000000000000:stack/billing/1",
                "logicalId": "Queue",
            },
            "explicit": True,
            "labels": {"team": "billing"},
            "pin": "0.1.0",
            "allowDowngrade": True,
            "allowReplacement": True,
            "force": True,
            "drainSeconds": 600,
            "askedAt": "2026-11-16T12:00:00.000Z",
            "own": True,
            "unserved": True,
            "tier": "gold",
            "version": "0.2.0",
            "reason": "Ticket 4711",
        },
    }


def test_options_that_were_not_requested_are_left_out() -> None:
    assert request_document(Request()) == {}
    assert request_document(Request(by="ada")) == {"by": "ada"}


def test_labels_that_are_taken_away_differ_from_labels_that_are_not_mentioned() -> None:
    assert request_document(Request(labels={})) == {"labels": {}}
    assert request_from({"labels": {}}).labels == {}
    assert request_from({}).labels is None


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_every_wish_is_carried_over_by_itself(name: str) -> None:
    spec = replace(Request(), **{name: getattr(EVERYTHING, name)})
    assert spec != Request()
    assert request_from(request_document(spec)) == spec


@given(REQUESTS)
def test_a_request_comes_back_from_json_as_it_was(request_: Request) -> None:
    assert request_from(json.loads(json.dumps(request_document(request_)))) == request_


@pytest.mark.parametrize("by", ["", "ada", "arn:aws:sts::000000000000:assumed-role/operator/ada", f"x{a_resource()}"])
def test_a_caller_of_the_api_is_no_resource(by: str) -> None:
    assert request_from({"by": by}).resource is None


def test_numbers_come_back_from_stores_that_know_no_integers() -> None:
    assert request_from({"drainSeconds": 60.0}) == Request(drain_seconds=60)
    assert isinstance(request_from({"drainSeconds": 60.0}).drain_seconds, int)


@given(ATTEMPTS, REQUESTS)
def test_the_machines_steps_understand_what_the_execution_was_given(attempt: Attempt, request_: Request) -> None:
    execution = {
        "Id": execution_arn(attempt.name),
        "StartTime": timestamp(NOON),
        "Input": json.loads(json.dumps(machine_input(attempt, request_))),
    }
    run = parse_run({"execution": execution})
    assert (run.attempt, run.request) == (attempt, request_)


@given(ATTEMPTS, REQUESTS)
def test_two_who_ask_for_the_same_give_the_same_input(attempt: Attempt, request_: Request) -> None:
    labels = request_.labels
    other_order = replace(request_, labels=None if labels is None else dict(reversed(list(labels.items()))))
    assert json.dumps(machine_input(attempt, request_), sort_keys=True) == json.dumps(
        machine_input(replace(attempt), other_order), sort_keys=True
    )


def test_the_input_does_not_change_with_the_labels_that_it_was_made_from() -> None:
    labels = {"team": "billing"}
    given_ = machine_input(Attempt(ACME, Operation.CREATE, VERSION, 1), Request(labels=labels))
    labels["team"] = "search"
    assert given_["request"] == {"labels": {"team": "billing"}}


@pytest.mark.parametrize("given_", [None, [], "text", {}, {"tenantId": "acme"}, {"event": {}}], ids=json.dumps)
def test_input_of_another_machine_is_no_attempt(given_: object) -> None:
    assert not is_input_of(given_, an_attempt(), Request())


@pytest.mark.parametrize("name", [field.name for field in fields(Request)])
def test_an_execution_is_known_by_all_that_was_asked_for(name: str) -> None:
    started_with = json.loads(json.dumps(machine_input(an_attempt(), EVERYTHING)))
    assert is_input_of(started_with, an_attempt(), EVERYTHING)
    assert not is_input_of(started_with, an_attempt(), replace(EVERYTHING, **{name: getattr(Request(by="eve"), name)}))
