"""getQueue: what platforms call, over HTTP or directly."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.common.callers import source_identity
from orchestrator.common.errors import InvalidTenantId
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.ports import Publication
from orchestrator.tenants.records import Operation
from tests.adapters.conftest import client
from tests.adapters.handlers.functions import ADA, PROOF, Functions, Lines, input_of
from tests.fakes import ACME, EXPLICIT, NOON, QUEUE, QUEUE_TABOO, VERSION, a_run, take

ASKING = {"tenantId": "acme"}
DELETE = a_run(operation=Operation.DELETE, started_at=NOON + timedelta(minutes=1))


def over_http(
    tenant: object = "acme", *, credentials: str | None = None, by: str = ADA, query: object = None
) -> dict[str, Any]:
    route = "GET /tenants/{tenantId}/queue"
    if credentials is not None:
        route = f"POST /tenants/{{tenantId}}/queue/credentials/{credentials}"
    event: dict[str, Any] = {
        "version": "2.0",
        "routeKey": route,
        "pathParameters": {"tenantId": tenant},
        "requestContext": {"authorizer": {"iam": {"userArn": by}}},
        "stageVariables": {"proof": PROOF},
    }
    return event if query is None else event | {"queryStringParameters": query}


def test_a_ready_tenant_costs_exactly_one_request(functions: Functions) -> None:
    functions.serve(resources={"FilesBucket": "files-1"})
    status, headers, body = functions.get_queue(ASKING)
    assert functions.requests == ["dynamodb.GetItem"]
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert body == {
        "tenantId": "acme",
        "state": "READY",
        "queueUrl": QUEUE.url,
        "queueArn": QUEUE.arn,
        "version": VERSION,
        "resources": {"FilesBucket": "files-1"},
    }


def test_loading_the_function_makes_no_request(functions: Functions) -> None:
    functions.load("get_queue")
    assert functions.requests == []


def test_http_and_direct_calls_have_the_same_response(functions: Functions) -> None:
    assert functions.get_queue(over_http()) == functions.get_queue(ASKING)


def test_repeated_requests_for_an_unknown_tenant_start_one_execution(functions: Functions) -> None:
    answers = [functions.get_queue(ASKING) for _ in range(5)]
    assert {status for status, _, _ in answers} == {202}
    assert {headers["Retry-After"] for _, headers, _ in answers} == {"5"}
    assert {body["execution"] for _, _, body in answers} == set(functions.all_executions)
    assert functions.executions() == [a_run().attempt.name]
    assert functions.table.metadata(ACME) is None
    assert functions.table.audits(ACME) == []


def test_all_sessions_of_a_role_are_one_requester(functions: Functions) -> None:
    role = "arn:aws:sts::123456789012:assumed-role/platform"
    answers = [functions.get_queue(over_http(by=f"{role}/instance-{number}")) for number in range(3)]
    (execution,) = {body["execution"] for _, _, body in answers}
    assert input_of(execution) == {
        "tenantId": "acme",
        "operation": "CREATE",
        "version": VERSION,
        "attempt": 1,
        "request": {"by": role},
    }


def test_an_execution_that_was_aborted_before_it_began_is_followed_by_the_next(functions: Functions) -> None:
    _, _, body = functions.get_queue(ASKING)
    client("stepfunctions").stop_execution(executionArn=body["execution"])
    status, _, _ = functions.get_queue(ASKING)
    assert status == 202
    assert set(functions.executions()) == {a_run(1).attempt.name, a_run(2).attempt.name}


def test_a_failed_tenant_has_its_root_cause_and_nothing_is_started(functions: Functions) -> None:
    functions.table.fail(a_run(), QUEUE_TABOO, NOON)
    status, headers, body = functions.get_queue(ASKING)
    assert (status, headers["Content-Type"]) == (424, "application/problem+json")
    assert body["rootCause"]["reason"] == QUEUE_TABOO.reason
    assert functions.all_executions == []


@pytest.mark.parametrize("failed", [False, True], ids=["updating", "update failed"])
def test_a_tenant_is_ready_during_and_after_a_failed_update(functions: Functions, failed: bool) -> None:
    functions.serve()
    update = a_run(operation=Operation.UPDATE, version="0.2.0")
    take(functions.table, update)
    if failed:
        functions.table.fail(update, QUEUE_TABOO, NOON)
    status, _, body = functions.get_queue(ASKING)
    assert (status, body["queueUrl"], body["version"]) == (200, QUEUE.url, VERSION)


def test_a_tenant_during_and_after_its_delete_is_not_created_by_get_queue(
    functions: Functions,
) -> None:
    functions.serve()
    take(functions.table, DELETE)
    status, _, body = functions.get_queue(ASKING)
    assert (status, body["tenantState"]) == (409, "DELETING")
    functions.table.remove(DELETE, at=DELETE.started_at)
    status, _, body = functions.get_queue(ASKING)
    assert (status, body["tenantState"]) == (410, "DELETED")
    assert functions.all_executions == []


def test_a_tenant_that_was_created_again_is_ready(functions: Functions) -> None:
    functions.serve()
    functions.remove(DELETE)
    again = a_run(2, started_at=NOON + timedelta(minutes=2), request=EXPLICIT)
    take(functions.table, again)
    assert functions.get_queue(ASKING)[0] == 202
    functions.table.publish(again, Publication("stack-2", QUEUE, VERSION, None), at=again.started_at)
    assert functions.get_queue(ASKING)[0] == 200


def test_throttling_is_answered_with_try_again(functions: Functions) -> None:
    functions.throttle("GetItem")
    status, headers, body = functions.get_queue(ASKING)
    assert (status, headers["Retry-After"]) == (503, "2")
    assert "Rate exceeded" in body["detail"]
    assert functions.all_executions == []


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])  # Nothing is to change in it.
@given(text=st.text(max_size=60).filter(lambda text: not is_tenant_id(text)), by_http=st.booleans())
def test_an_invalid_tenant_id_is_refused_before_any_call_to_aws(functions: Functions, text: str, by_http: bool) -> None:
    status, headers, body = functions.get_queue(over_http(text) if by_http else {"tenantId": text})
    assert (status, headers["Content-Type"]) == (400, "application/problem+json")
    assert body["type"] == "urn:berth:problem:invalid-request"
    assert functions.requests == []


@pytest.mark.parametrize(
    "event",
    [
        None,
        [],
        "acme",
        {},
        {"tenantid": "acme"},
        {"pathParameters": None},
        {"pathParameters": {}},
        {"pathParameters": {"tenantId": None}, "tenantId": "acme"},
        {"tenantId": None},
        {"tenantId": ["acme"]},
        {"tenantId": {"S": "acme"}},
        {"tenantId": 7},
        {"tenantId": "acme/../other"},
        {"tenantId": "acme#METADATA"},
        {"tenantId": "x" * 10_000},
        {"tenantId": "acme", "credentials": "all"},
        {"tenantId": "acme", "credentials": None},
        over_http(query={"credentials": "send"}),
        over_http(query={"credentials": ""}),
    ],
    ids=lambda event: json.dumps(event)[:40],
)
def test_bad_input_writes_nothing_and_starts_nothing(functions: Functions, event: object) -> None:
    status, headers, body = functions.get_queue(event)
    assert (status, headers["Content-Type"]) == (400, "application/problem+json")
    assert body["detail"]
    assert functions.requests == []
    assert functions.rows == 0
    assert functions.all_executions == []


def is_tenant_id(value: object) -> bool:
    try:
        TenantId.parse(value)
    except InvalidTenantId:
        return False
    return True


class TestCredentials:
    """By the routes of sending and of receiving, where that is switched on."""

    ROLE = "arn:aws:iam::123456789012:role/queue-access"

    @pytest.fixture(autouse=True)
    def switched_on(self, functions: Functions, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("BERTH_QUEUE_ACCESS_ROLE", self.ROLE)
        monkeypatch.setenv("BERTH_CREDENTIALS_SECONDS", "900")
        functions.serve()

    @pytest.mark.parametrize("access", ["send", "receive"])
    def test_the_route_determines_the_access_of_the_credentials(self, functions: Functions, access: str) -> None:
        status, headers, body = functions.get_queue(over_http(credentials=access))
        assert (status, body["queueUrl"]) == (200, QUEUE.url)
        assert headers["Cache-Control"] == "no-store"
        given = body["credentials"]
        assert given["access"] == access
        assert given["accessKeyId"]
        assert given["secretAccessKey"]
        assert given["sessionToken"]
        assert given["expiresAt"].endswith("Z")

    def test_credentials_cost_one_call_to_sts(self, functions: Functions) -> None:
        functions.get_queue(over_http(credentials="send"))
        assert functions.requests == ["dynamodb.GetItem", "sts.AssumeRole"]
        (sent,) = functions.sent_to("sts.AssumeRole")
        assert (sent["RoleArn"], sent["DurationSeconds"]) == (self.ROLE, 900)
        (statement,) = json.loads(sent["Policy"])["Statement"]
        assert (statement["Action"], statement["Resource"]) == (["sqs:SendMessage"], QUEUE.arn)

    def test_get_queue_returns_no_credentials(self, functions: Functions) -> None:
        _, headers, body = functions.get_queue(over_http())
        assert "credentials" not in body
        assert "Cache-Control" not in headers
        assert functions.requests == ["dynamodb.GetItem"]

    @pytest.mark.parametrize("asked", ["send", "receive", "", "SEND", "all", "send,receive", "send ", None])
    @pytest.mark.parametrize("route", [None, "send", "receive"], ids=["queue", "send", "receive"])
    def test_the_query_gives_no_credentials_and_the_refusal_names_the_routes(
        self, functions: Functions, route: str | None, asked: str | None
    ) -> None:
        functions.requests.clear()
        status, _, body = functions.get_queue(over_http(credentials=route, query={"credentials": asked}))
        assert (status, body["type"]) == (400, "urn:berth:problem:invalid-request")
        for access in ("send", "receive"):
            assert f"POST /tenants/{{tenantId}}/queue/credentials/{access}" in body["detail"]
        assert functions.requests == []

    @pytest.mark.parametrize("route", ["POST /tenants/{tenantId}/queue/credentials/all", "send", 7, ["send"], None])
    def test_no_other_route_gives_credentials(self, functions: Functions, route: object) -> None:
        _, _, body = functions.get_queue({**over_http(), "routeKey": route})
        assert "credentials" not in body
        assert "sts.AssumeRole" not in functions.requests

    def test_the_source_identity_is_the_caller(self, functions: Functions) -> None:
        by = "arn:aws:sts::123456789012:assumed-role/billing/ada@example.com"
        functions.get_queue(over_http(credentials="send", by=by))
        (sent,) = functions.sent_to("sts.AssumeRole")
        assert sent["SourceIdentity"] == source_identity(by)
        assert sent["SourceIdentity"].startswith("billing=ada@example.com-")

    @pytest.mark.parametrize("access", ["send", "receive"])
    def test_caller_access_and_result_are_logged(self, functions: Functions, lines: Lines, access: str) -> None:
        functions.get_queue(over_http(credentials=access))
        functions.get_queue(over_http("another", credentials=access))
        functions.get_queue(over_http("another"))
        given, not_given, none = [line for line in lines() if "_aws" not in line]
        assert {line["caller"] for line in (given, not_given, none)} == {ADA}
        assert [line.get("access") for line in (given, not_given, none)] == [access, access, None]
        assert [line["credentials_given"] for line in (given, not_given, none)] == [True, False, False]
        identities = [line.get("source_identity") for line in (given, not_given, none)]
        assert identities == [source_identity(ADA), None, None]

    def test_switched_off_credentials_are_refused_without_a_call_to_aws(
        self, functions: Functions, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("BERTH_QUEUE_ACCESS_ROLE")
        status, headers, body = functions.get_queue(over_http(credentials="send"))
        assert (status, headers["Content-Type"]) == (403, "application/problem+json")
        assert body["type"] == "urn:berth:problem:credentials-not-enabled"
        assert functions.requests == []
        assert functions.get_queue(over_http())[0] == 200

    def test_a_provisioning_tenant_gets_no_credentials(self, functions: Functions) -> None:
        take(functions.table, a_run(tenant=TenantId.parse("another")))
        status, _, body = functions.get_queue(over_http("another", credentials="send"))
        assert (status, body["state"]) == (202, "PROVISIONING")
        assert "credentials" not in body
        assert "sts.AssumeRole" not in functions.requests

    @pytest.mark.parametrize("access", ["send", "receive"])
    def test_an_unknown_tenant_gets_no_credentials_and_is_not_created(self, functions: Functions, access: str) -> None:
        status, _, body = functions.get_queue(over_http("nobody", credentials=access))
        assert (status, body["type"]) == (409, "urn:berth:problem:not-provisioned")
        assert functions.all_executions == []
        assert "sts.AssumeRole" not in functions.requests

    @pytest.mark.parametrize(("done", "status"), [(False, 409), (True, 410)], ids=["being deleted", "deleted"])
    def test_a_deleted_tenant_gets_no_credentials(self, functions: Functions, done: bool, status: int) -> None:
        take(functions.table, DELETE)
        if done:
            functions.table.remove(DELETE, at=DELETE.started_at)
        answered, _, body = functions.get_queue(over_http(credentials="receive"))
        assert answered == status
        assert "credentials" not in body
        assert "sts.AssumeRole" not in functions.requests

    def test_throttling_by_sts_is_answered_with_try_again(self, functions: Functions) -> None:
        functions.throttle("AssumeRole")
        status, headers, body = functions.get_queue(over_http(credentials="send"))
        assert (status, headers["Retry-After"]) == (503, "2")
        assert "credentials" not in body

    @pytest.mark.usefixtures("lines")
    @pytest.mark.parametrize("access", ["send", "receive"])
    def test_credentials_are_not_logged(
        self, functions: Functions, capsys: pytest.CaptureFixture[str], access: str
    ) -> None:
        _, _, body = functions.get_queue(over_http(credentials=access, by=ADA))
        logged = "".join(capsys.readouterr())
        assert '"getQueue"' in logged
        for name in ("accessKeyId", "secretAccessKey", "sessionToken"):
            assert len(body["credentials"][name]) > 8
            assert body["credentials"][name] not in logged


@pytest.mark.parametrize("level", ["DEBUG", "INFO"])
def test_every_response_except_ready_is_logged_and_none_is_counted(
    functions: Functions, lines: Lines, monkeypatch: pytest.MonkeyPatch, level: str
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_LOG_LEVEL", level)
    functions.get_queue({"tenantId": "a/b"})
    functions.get_queue(ASKING)
    functions.serve()
    functions.get_queue(ASKING)
    written = lines()
    # API Gateway counts answers at no charge. A metric for each status would cost something.
    assert not [line for line in written if "_aws" in line]
    logged = [(line.get("tenant_id"), line["status"]) for line in written]
    assert logged == [(None, 400), ("acme", 202), *([("acme", 200)] if level == "DEBUG" else [])]


def test_the_execution_that_was_started_is_logged(functions: Functions, lines: Lines) -> None:
    _, _, body = functions.get_queue(ASKING)
    (line,) = [line for line in lines() if "_aws" not in line]
    assert line["execution"] == body["execution"] == functions.all_executions[0]
