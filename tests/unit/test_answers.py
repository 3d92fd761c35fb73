"""getQueue's answers as HTTP sees them."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import get_args

import pytest

from orchestrator.api.answers import answer
from orchestrator.api.problems import Problem
from orchestrator.api.queueless_answers import root_cause_document
from orchestrator.api.responses import (
    RETRY_AFTER_SECONDS,
    Response,
    json_response,
    no_credentials,
    problem,
    refuse,
    try_again_later,
    unknown_caller,
)
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.credentials import Access, Credentials
from orchestrator.tenants.decisions import (
    BeingDeleted,
    Deleted,
    Failed,
    FleetFull,
    NoRelease,
    NotProvisioned,
    TooManyCreates,
    Unknown,
)
from orchestrator.tenants.provisioning import Answer, Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Status
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, an_audit

FAILURE = an_audit(Status.FAILURE, attempt=3, root_cause=QUEUE_TABOO)
DELETE = an_audit(Status.STARTED, Operation.DELETE, version=None)
CREDENTIALS = Credentials(Access.SEND, "AKIA", "a secret", "a token", NOON)

ANSWERS: dict[type, tuple[Answer, int]] = {
    Ready: (Ready(QUEUE, VERSION), 200),
    Provisioning: (Provisioning("an execution"), 202),
    NotProvisioned: (NotProvisioned(), 409),
    Failed: (Failed(FAILURE), 424),
    BeingDeleted: (BeingDeleted(DELETE), 409),
    Deleted: (Deleted(replace(DELETE, status=Status.SUCCESS)), 410),
    Unknown: (Unknown(), 404),
    NoRelease: (NoRelease("gold"), 409),
    FleetFull: (FleetFull(1_900, 1_900), 409),
    TooManyCreates: (TooManyCreates(60, 37), 429),
}
PROBLEMS = [
    pytest.param(answer(ACME, given), status, id=f"{status} {type(given).__name__}")
    for given, status in ANSWERS.values()
    if status not in (200, 202)
] + [
    pytest.param(refuse(InvalidRequest("No.")), 400, id="400"),
    pytest.param(no_credentials(), 403, id="403, not enabled"),
    pytest.param(unknown_caller(), 403, id="403, not through the API"),
    pytest.param(try_again_later("Later."), 503, id="503"),
]


def test_there_is_a_response_to_every_answer() -> None:
    assert set(ANSWERS) == set(get_args(Answer))


@pytest.mark.parametrize(("given", "status"), list(ANSWERS.values()), ids=[kind.__name__ for kind in ANSWERS])
def test_every_answer_has_its_status_and_names_the_tenant(given: Answer, status: int) -> None:
    response = answer(ACME, given)
    assert response.status == status
    assert response.body["tenantId"] == "acme"


def test_a_ready_queue_is_told_by_url_and_arn_and_version() -> None:
    response = answer(ACME, Ready(QUEUE, VERSION))
    assert response.headers == {"Content-Type": "application/json"}
    assert response.body == {
        "tenantId": "acme",
        "state": "READY",
        "queueUrl": QUEUE.url,
        "queueArn": QUEUE.arn,
        "version": VERSION,
        "resources": {},
    }


def test_a_ready_queue_comes_with_the_other_outputs_of_its_stack() -> None:
    given = Ready(QUEUE, VERSION, {"FilesBucket": "files-1"})
    assert answer(ACME, given).body["resources"] == {"FilesBucket": "files-1"}
    assert answer(ACME, given, CREDENTIALS).body["resources"] == {"FilesBucket": "files-1"}


def test_credentials_come_with_the_queue_and_are_kept_out_of_caches() -> None:
    response = answer(ACME, Ready(QUEUE, VERSION), CREDENTIALS)
    assert response.headers == {"Content-Type": "application/json", "Cache-Control": "no-store"}
    assert response.body == {
        **answer(ACME, Ready(QUEUE, VERSION)).body,
        "credentials": {
            "access": "send",
            "accessKeyId": "AKIA",
            "secretAccessKey": "a secret",
            "sessionToken": "a token",
            "expiresAt": "2026-11-16T12:00:00.000Z",
        },
    }


@pytest.mark.parametrize(
    "given",
    [given for kind, (given, _) in ANSWERS.items() if kind is not Ready],
    ids=lambda given: type(given).__name__,
)
def test_without_a_queue_no_credentials_are_told(given: Answer) -> None:
    assert answer(ACME, given, CREDENTIALS) == answer(ACME, given)


def test_a_202_says_how_long_to_wait_in_header_and_body() -> None:
    response = answer(ACME, Provisioning("an execution"))
    assert response.headers == {"Content-Type": "application/json", "Retry-After": str(RETRY_AFTER_SECONDS)}
    assert response.body == {
        "tenantId": "acme",
        "state": "PROVISIONING",
        "execution": "an execution",
        "retryAfterSeconds": RETRY_AFTER_SECONDS,
    }


@pytest.mark.parametrize(("response", "status"), PROBLEMS)
def test_a_problem_is_problem_details(response: Response, status: int) -> None:
    assert response.headers["Content-Type"] == "application/problem+json"
    assert response.body["status"] == response.status == status
    assert str(response.body["type"]).startswith("urn:berth:problem:")
    assert response.body["title"]
    assert response.body["detail"]


def test_every_kind_of_problem_has_a_type_of_its_own() -> None:
    types = [parameters.values[0].body["type"] for parameters in PROBLEMS]  # type: ignore[union-attr]
    assert len(set(types)) == len(types)


@pytest.mark.parametrize(("response", "status"), PROBLEMS)
def test_only_what_is_worth_repeating_says_when(response: Response, status: int) -> None:
    assert ("Retry-After" in response.headers) == (status in (429, 503))


def test_one_create_too_many_is_told_with_the_limit_and_when_to_ask_again() -> None:
    response = answer(ACME, TooManyCreates(60, 37))
    assert response.headers["Retry-After"] == "37"
    assert response.body["retryAfterSeconds"] == 37
    for answered in ("60 creates", "berth:createsPerMinute", "Nothing was started", "37 seconds"):
        assert answered in str(response.body["detail"])


def test_a_platform_is_not_told_how_many_tenants_there_are() -> None:
    assert "1900" not in json.dumps(answer(ACME, FleetFull(1_900, 1_900)).body)


@pytest.mark.parametrize("given", [Unknown(), NotProvisioned()])
def test_a_caller_that_may_not_create_is_told_who_may(given: Unknown | NotProvisioned) -> None:
    assert "Ask an operator to create it: berth create acme" in str(answer(ACME, given).body["detail"])


def test_credentials_without_a_queue_are_refused_with_advice_to_call_get_queue_first() -> None:
    detail = str(answer(ACME, NotProvisioned(asking_provisions=True)).body["detail"])
    assert "To provision it, call GET /tenants/acme/queue first." in detail


def test_a_failure_tells_the_resource_that_failed_and_cloudformations_reason() -> None:
    body = answer(ACME, Failed(FAILURE)).body
    assert body["rootCause"] == {"resource": "InboundQueue", "type": "AWS::SQS::Queue", "reason": QUEUE_TABOO.reason}
    assert QUEUE_TABOO.reason in str(body["detail"])
    assert "create failed" in str(body["detail"])
    assert body["tenantState"] == "FAILED"
    assert (body["operation"], body["version"], body["attempt"]) == ("CREATE", VERSION, 3)
    assert body["execution"] == FAILURE.execution


def test_a_failure_without_a_recorded_cause_says_so() -> None:
    body = answer(ACME, Failed(replace(FAILURE, root_cause=None))).body
    assert body["rootCause"] is None
    assert "No root cause was recorded" in str(body["detail"])


def test_a_failed_delete_is_told_as_a_delete() -> None:
    body = answer(ACME, Failed(replace(DELETE, status=Status.FAILURE, root_cause=QUEUE_TABOO))).body
    assert body["operation"] == "DELETE"
    assert "delete failed" in str(body["detail"])
    assert body["version"] is None


@pytest.mark.parametrize(("kind", "status"), [(BeingDeleted, "DELETING"), (Deleted, "DELETED")])
def test_a_deleted_tenants_state_and_execution_are_told(kind: type, status: str) -> None:
    body = answer(ACME, ANSWERS[kind][0]).body
    assert body["tenantState"] == status
    assert body["execution"] == DELETE.execution


def test_the_answer_for_a_deleted_tenant_says_how_to_use_it_again() -> None:
    assert "create it explicitly" in str(answer(ACME, ANSWERS[Deleted][0]).body["detail"])


def test_disabled_credentials_name_the_setting() -> None:
    assert "berth:credentialsSeconds" in str(no_credentials().body["detail"])


def test_more_may_be_told_of_a_problem() -> None:
    response = problem(Problem("a-kind", 409, "A title", "For the document."), "Details.", tenantId="acme", more=[1])
    assert response.body == {
        "type": "urn:berth:problem:a-kind",
        "title": "A title",
        "status": 409,
        "detail": "Details.",
        "tenantId": "acme",
        "more": [1],
    }


def test_the_answer_is_json() -> None:
    assert json_response(200, {"a": 1}) == Response(200, {"Content-Type": "application/json"}, {"a": 1})


def test_no_root_cause_is_told_as_none() -> None:
    assert root_cause_document(None) is None


def test_a_refusal_repeats_the_reason() -> None:
    assert refuse(InvalidRequest("The tenant id is empty.")).body["detail"] == "The tenant id is empty."


@pytest.mark.parametrize("given", [given for given, _ in ANSWERS.values()], ids=[kind.__name__ for kind in ANSWERS])
def test_the_proxy_result_is_what_api_gateway_takes(given: Answer) -> None:
    response = answer(ACME, given)
    result = response.as_proxy_result()
    assert set(result) == {"statusCode", "headers", "body"}
    assert result["statusCode"] == response.status
    assert isinstance(result["headers"], dict)
    assert all(isinstance(value, str) for value in result["headers"].values())
    assert isinstance(result["body"], str)
    assert json.loads(result["body"]) == response.body


def test_a_pin_to_a_withdrawn_release_is_explained() -> None:
    given = answer(ACME, NotProvisioned(withdrawn="0.2.0"))
    assert given.status == 409
    detail = str(given.body["detail"])
    assert "pinned to release 0.2.0, which was withdrawn. Nothing was started." in detail
    assert "berth unpin acme" in detail
