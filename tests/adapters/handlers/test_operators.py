"""The operators' API: every route, over the table, the machines and the queues."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.api.route import Audience
from orchestrator.api.routes import ROUTES as DECLARED
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.recent import REMEMBERED_FOR
from orchestrator.tenants.records import Operation, Queue, Request, Status
from tests.adapters.conftest import REGION, client
from tests.adapters.handlers.functions import ADA, PROOF, Functions, Lines, input_of, operator_event
from tests.fakes import ACME, NEXT_VERSION, NOON, QUEUE, QUEUE_TABOO, VERSION, a_release, a_run, an_attempt, take
from tests.present import present

CREATE = "PUT /tenants/{tenantId}"
SHOW = "GET /tenants/{tenantId}"
DELETE = "DELETE /tenants/{tenantId}"
UPGRADE = "POST /tenants/{tenantId}/upgrade"
RETRY = "POST /tenants/{tenantId}/retry"
LIST = "GET /tenants"
RELEASES = "GET /releases"
PIN = "PUT /tenants/{tenantId}/pin"
UNPIN = "DELETE /tenants/{tenantId}/pin"
ROUTES = [CREATE, SHOW, DELETE, UPGRADE, RETRY, PIN, UNPIN, LIST, RELEASES]
OPERATOR_ROUTES = [route.key for route in DECLARED if route.audience is Audience.OPERATOR]
IDS = ("tenant", "rollout", "reconciliation")

UPDATE = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, started_at=NOON + timedelta(minutes=1))


@pytest.fixture(autouse=True)
def releases(functions: Functions) -> None:
    for version in (VERSION, NEXT_VERSION):
        functions.table.record_release(a_release(version))


@pytest.fixture
def queue() -> Queue:
    """A queue that is there."""
    url = client("sqs").create_queue(QueueName="acme")["QueueUrl"]
    return Queue(f"arn:aws:sqs:{REGION}:123456789012:acme", url)


class TestPin:
    def test_a_tenant_is_pinned_and_unpinned(self, functions: Functions) -> None:
        functions.serve()
        status, _, body = functions.operate(PIN, body={"version": VERSION})
        assert (status, body["status"]) == (200, "CHANGED")
        assert functions.operate(SHOW)[2]["pinnedVersion"] == VERSION
        assert functions.operate(UNPIN)[0] == 200
        assert functions.operate(SHOW)[2]["pinnedVersion"] is None
        assert functions.all_executions == []


class TestCreate:
    def test_a_new_tenant_is_created_at_the_current_version(self, functions: Functions) -> None:
        status, headers, body = functions.operate(CREATE)
        assert status == 202
        assert (headers["Location"], headers["Retry-After"]) == ("/tenants/acme", "2")
        (execution,) = functions.all_executions
        assert functions.executions() == [an_attempt().name]
        assert body == {
            "tenantId": "acme",
            "state": "PROVISIONING",
            "operation": "CREATE",
            "version": VERSION,
            "attempt": 1,
            "execution": execution,
            "retryAfterSeconds": 2,
        }
        assert input_of(execution)["request"] == {"by": ADA, "explicit": True}

    def test_version_and_labels_are_in_the_request(self, functions: Functions) -> None:
        _, _, body = functions.operate(CREATE, body={"version": NEXT_VERSION, "labels": {"plan": "gold"}})
        assert body["version"] == NEXT_VERSION
        request = input_of(body["execution"])["request"]
        assert request == {"by": ADA, "explicit": True, "labels": {"plan": "gold"}, "pin": NEXT_VERSION}

    def test_a_repeated_create_starts_one_execution(self, functions: Functions) -> None:
        first, second = functions.operate(CREATE), functions.operate(CREATE)
        assert first == second
        assert len(functions.all_executions) == 1

    def test_an_existing_tenant_is_unchanged(self, functions: Functions) -> None:
        functions.serve()
        status, _, body = functions.operate(CREATE)
        assert (status, body["status"]) == (200, "UNCHANGED")
        assert functions.all_executions == []

    def test_labels_and_pin_of_an_existing_tenant_are_changed(self, functions: Functions) -> None:
        functions.serve()
        functions.operate(CREATE, body={"version": VERSION, "labels": {"plan": "gold"}})
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.pinned_version, metadata.labels) == (VERSION, {"plan": "gold"})
        functions.operate(CREATE, body={"version": None})
        metadata = present(functions.table.metadata(ACME))
        assert (metadata.pinned_version, metadata.labels) == (None, {"plan": "gold"})
        assert functions.all_executions == []

    def test_a_deleted_tenant_is_created_again(self, functions: Functions) -> None:
        functions.serve()
        functions.remove(a_run(operation=Operation.DELETE))
        status, _, body = functions.operate(CREATE)
        assert (status, body["attempt"]) == (202, 3)
        assert input_of(body["execution"])["request"]["explicit"] is True


class TestUpgrade:
    @pytest.fixture(autouse=True)
    def served(self, functions: Functions) -> None:
        functions.serve()

    def test_a_tenant_is_moved_to_the_given_release(self, functions: Functions) -> None:
        status, _, body = functions.operate(UPGRADE, body={"version": NEXT_VERSION, "allowReplacement": True})
        assert (status, body["state"], body["operation"]) == (202, "UPDATING", "UPDATE")
        assert functions.executions(Operation.UPDATE) == [UPDATE.attempt.name]
        assert input_of(body["execution"])["request"] == {
            "by": ADA,
            "version": NEXT_VERSION,
            "allowReplacement": True,
        }

    def test_a_tenant_at_the_release_is_unchanged(self, functions: Functions) -> None:
        status, _, body = functions.operate(UPGRADE)
        assert (status, body["status"]) == (200, "UNCHANGED")
        assert functions.all_executions == []

    def test_a_downgrade_must_be_allowed(self, functions: Functions) -> None:
        functions.serve(UPDATE)
        status, _, body = functions.operate(UPGRADE, body={"version": VERSION})
        assert (status, body["type"]) == (409, "urn:berth:problem:downgrade")
        status, _, body = functions.operate(UPGRADE, body={"version": VERSION, "allowDowngrade": True})
        assert (status, body["version"]) == (202, VERSION)

    def test_a_busy_tenant_refuses_orders_except_an_equal_one(self, functions: Functions) -> None:
        take(functions.table, UPDATE)
        status, _, body = functions.operate(UPGRADE, body={"version": NEXT_VERSION})
        assert (status, body["execution"]) == (202, UPDATE.execution)
        status, headers, body = functions.operate(DELETE)
        assert (status, body["type"], headers["Retry-After"]) == (409, "urn:berth:problem:tenant-busy", "2")
        assert (body["operation"], body["execution"]) == ("UPDATE", UPDATE.execution)
        assert functions.all_executions == []


class TestRetry:
    def test_a_retry_repeats_the_request_of_the_failed_operation(self, functions: Functions) -> None:
        functions.serve()
        failed = a_run(
            operation=Operation.UPDATE,
            version=NEXT_VERSION,
            started_at=NOON + timedelta(minutes=1),
            request=Request(by="someone else", allow_replacement=True),
        )
        take(functions.table, failed)
        functions.table.fail(failed, QUEUE_TABOO, failed.started_at)
        status, _, body = functions.operate(RETRY)
        assert (status, body["operation"], body["version"], body["attempt"]) == (202, "UPDATE", NEXT_VERSION, 2)
        request = input_of(body["execution"])["request"]
        assert (request["by"], request["allowReplacement"]) == (ADA, True)


class TestDelete:
    def test_a_tenant_with_an_empty_queue_is_deleted(self, functions: Functions, queue: Queue) -> None:
        functions.serve(queue=queue)
        status, _, body = functions.operate(DELETE)
        assert (status, body["state"]) == (202, "DELETING")
        assert functions.executions(Operation.DELETE) == [an_attempt(operation=Operation.DELETE).name]
        assert input_of(body["execution"])["request"] == {"by": ADA}

    def test_messages_prevent_a_delete_and_are_counted(self, functions: Functions, queue: Queue) -> None:
        functions.serve(queue=queue)
        for _ in range(2):
            client("sqs").send_message(QueueUrl=queue.url, MessageBody="x")
        status, _, body = functions.operate(DELETE)
        assert (status, body["type"]) == (409, "urn:berth:problem:queue-not-empty")
        assert body["messages"] == {"inbound queue": {"visible": 2, "inFlight": 0, "delayed": 0}}
        assert functions.all_executions == []

    @pytest.mark.parametrize(
        ("query", "request_"),
        [
            ({"force": "true"}, {"force": True}),
            ({"force": "false", "drainSeconds": "60"}, {"drainSeconds": 60}),
            ({"drainSeconds": "1200"}, {"drainSeconds": 1200}),
        ],
        ids=["force", "drain", "drain long"],
    )
    def test_force_and_drain_allow_a_delete_with_messages(
        self, functions: Functions, queue: Queue, query: dict[str, str], request_: dict[str, object]
    ) -> None:
        functions.serve(queue=queue)
        client("sqs").send_message(QueueUrl=queue.url, MessageBody="x")
        status, _, body = functions.operate(DELETE, query=query)
        assert status == 202
        assert input_of(body["execution"])["request"] == {"by": ADA, **request_}


class TestShow:
    def test_a_tenant_is_shown_in_full(self, functions: Functions) -> None:
        functions.serve()
        take(functions.table, UPDATE)
        functions.table.remember_token(UPDATE, "the-task-token")
        status, _, body = functions.operate(SHOW)
        assert status == 200
        assert (body["state"], body["version"], body["queueUrl"]) == ("UPDATING", VERSION, QUEUE.url)
        assert body["currentOperation"]["execution"] == UPDATE.execution
        assert [audit["status"] for audit in body["audits"]] == ["Success", "Started"]
        assert [entry["status"] for entry in body["history"]] == ["Started", "Success", "Started"]

    def test_the_task_token_is_not_shown(self, functions: Functions) -> None:
        take(functions.table, a_run())
        functions.table.remember_token(a_run(), "the-task-token")
        assert "the-task-token" not in json.dumps(functions.operate(SHOW))


class TestList:
    @pytest.fixture(autouse=True)
    def fleet(self, functions: Functions) -> None:
        for number in range(5):
            tenant = TenantId.parse(f"ready-{number}")
            functions.serve(a_run(tenant=tenant, version=NEXT_VERSION if number == 4 else VERSION))
        failed = a_run(tenant=TenantId.parse("failed"))
        take(functions.table, failed)
        functions.table.fail(failed, QUEUE_TABOO, NOON)
        functions.serve(a_run(tenant=TenantId.parse("gone")))
        functions.remove(a_run(tenant=TenantId.parse("gone"), operation=Operation.DELETE))

    def listed(self, functions: Functions, **query: str) -> tuple[list[str], str | None]:
        status, _, body = functions.operate(LIST, query=query)
        assert status == 200
        return [tenant["tenantId"] for tenant in body["tenants"]], body["cursor"]

    def test_all_tenants_except_deleted_ones_are_listed(self, functions: Functions) -> None:
        assert self.listed(functions) == ([*(f"ready-{number}" for number in range(5)), "failed"], None)

    def test_the_list_can_be_filtered_by_state_and_version(self, functions: Functions) -> None:
        assert self.listed(functions, state="FAILED") == (["failed"], None)
        assert self.listed(functions, state="DELETED") == (["gone"], None)
        assert self.listed(functions, version=NEXT_VERSION) == (["ready-4"], None)

    def test_the_list_has_pages(self, functions: Functions) -> None:
        pages = []
        cursor: str | None = ""
        while cursor is not None:
            page, cursor = self.listed(functions, limit="2", **({"cursor": cursor} if cursor else {}))
            pages.append(page)
        assert pages == [["ready-0", "ready-1"], ["ready-2", "ready-3"], ["ready-4", "failed"]]

    def test_a_failed_tenant_is_listed_with_its_root_cause(self, functions: Functions) -> None:
        _, _, body = functions.operate(LIST, query={"state": "FAILED"})
        (tenant,) = body["tenants"]
        assert tenant["rootCause"]["reason"] == QUEUE_TABOO.reason


def test_the_executions_are_listed_once_for_all_consoles_that_ask_within_some_seconds(functions: Functions) -> None:
    functions.operate(CREATE)
    before = len(functions.sent_to("stepfunctions.ListExecutions"))
    bodies = [functions.operate("GET /operations", query={"limit": "50"})[2] for _ in range(10)]
    assert [[each["tenantId"] for each in body["operations"]] for body in bodies] == [["acme"]] * 10
    assert len(functions.sent_to("stepfunctions.ListExecutions")) - before == len(Operation)
    functions.clock.advance(REMEMBERED_FOR)
    functions.operate("GET /operations", query={"limit": "50"})
    assert len(functions.sent_to("stepfunctions.ListExecutions")) - before == 2 * len(Operation)


def test_releases_are_listed_newest_first_with_the_current_one(functions: Functions) -> None:
    status, _, body = functions.operate(RELEASES)
    assert (status, body["current"]) == (200, VERSION)
    assert [release["version"] for release in body["releases"]] == [NEXT_VERSION, VERSION]
    assert body["releases"][0]["templateUrl"] == a_release(NEXT_VERSION).template_url


def cursor(position: str) -> str:
    """A cursor that a list with other filters might have returned."""
    return base64.urlsafe_b64encode(position.encode()).decode().rstrip("=")


class TestWhatIsRefused:
    """Before anything is asked of AWS."""

    def refused(self, functions: Functions, event: Any) -> dict[str, Any]:
        status, headers, body = functions.ask("operators", event)
        assert (status, headers["Content-Type"]) == (400, "application/problem+json")
        assert body["type"] == "urn:berth:problem:invalid-request"
        assert functions.requests == []
        return body

    @pytest.mark.parametrize(
        "event",
        [
            {},
            {"tenantId": "acme"},
            {"routeKey": None},
            {"routeKey": "$default"},
            {"routeKey": "GET /tenants/{tenantId}/queue"},
            {"routeKey": "PATCH /tenants/{tenantId}", "pathParameters": {"tenantId": "acme"}},
        ],
        ids=json.dumps,
    )
    def test_an_unknown_route(self, functions: Functions, event: dict[str, Any]) -> None:
        response = self.refused(functions, event | {"stageVariables": {"proof": PROOF}})
        assert "There is no route" in response["detail"]

    @pytest.mark.parametrize("route", OPERATOR_ROUTES)
    def test_an_invalid_request(self, functions: Functions, route: str) -> None:
        """Every invalid field is in tests/unit/test_operator_requests.py. Here, every route refuses some of them."""
        events = [operator_event(route, body="{"), operator_event(route, query={"unknown": "1"})]
        if "{" in route:
            events += [operator_event(route, **dict.fromkeys(IDS, wrong)) for wrong in (None, "", "a/b", "x" * 41)]
        for event in events:
            assert self.refused(functions, event)["detail"]

    @pytest.mark.parametrize("position", ["READY/", "READY/0.1.0#acme", "DELETED/#acme", "x", "é"])
    def test_a_cursor_that_the_list_with_these_filters_did_not_return(
        self, functions: Functions, position: str
    ) -> None:
        self.refused(functions, operator_event(LIST, query={"cursor": cursor(position), "state": "FAILED"}))
        self.refused(functions, operator_event(LIST, query={"cursor": position}))


def test_a_body_may_be_encoded(functions: Functions) -> None:
    encoded = base64.b64encode(json.dumps({"labels": {"plan": "gold"}}).encode()).decode()
    _, _, body = functions.ask("operators", operator_event(CREATE, body=encoded) | {"isBase64Encoded": True})
    assert input_of(body["execution"])["request"]["labels"] == {"plan": "gold"}


ARRANGED: dict[str, Callable[[Functions], None]] = {
    UPGRADE: lambda functions: functions.serve(),
    DELETE: lambda functions: functions.serve(),
    RETRY: lambda functions: fail(functions),
}
BODIES: dict[str, object] = {UPGRADE: {"version": NEXT_VERSION}, PIN: {"version": VERSION}}


def fail(functions: Functions) -> None:
    take(functions.table, a_run())
    functions.table.fail(a_run(), QUEUE_TABOO, NOON)


@pytest.mark.parametrize(
    ("route", "operation"),
    [
        *((route, "GetItem") for route in (CREATE, SHOW, DELETE, UPGRADE, RETRY)),
        *((route, "Query") for route in ROUTES),
        *((route, "StartExecution") for route in (CREATE, UPGRADE, RETRY, DELETE)),
        (DELETE, "GetQueueAttributes"),
    ],
)
def test_throttling_is_answered_with_try_again_and_starts_nothing(
    functions: Functions, route: str, operation: str
) -> None:
    if route in ARRANGED:
        ARRANGED[route](functions)
    functions.throttle(operation)
    status, headers, body = functions.operate(route, body=BODIES.get(route))
    assert (status, headers["Retry-After"]) == (503, "2")
    assert (body["type"], "Rate exceeded" in body["detail"]) == ("urn:berth:problem:try-again", True)
    assert functions.all_executions == []


def test_every_call_is_logged_with_its_caller(functions: Functions, lines: Lines) -> None:
    _, _, created = functions.operate(CREATE)
    functions.operate(SHOW, tenant="another")
    functions.operate(UPGRADE, tenant="a/b")
    logged = lines()
    assert [(line["route"], line["status"], line.get("tenant_id")) for line in logged] == [
        (CREATE, 202, "acme"),
        (SHOW, 404, "another"),
        (UPGRADE, 400, None),
    ]
    assert {line["caller"] for line in logged} == {ADA}
    assert logged[0]["execution"] == created["execution"]


def test_the_audit_has_the_requester(functions: Functions) -> None:
    functions.operate(CREATE)
    (execution,) = functions.all_executions
    given = input_of(execution)
    run = {"Id": execution, "StartTime": NOON.isoformat(), "Input": given}
    assert functions.call("begin", {"operation": "CREATE", "execution": run}) == {"outcome": "begun"}
    (audit,) = functions.table.audits(ACME)
    assert (audit.status, audit.request.by) == (Status.STARTED, ADA)
    _, _, body = functions.operate(SHOW)
    assert body["history"][0]["requestedBy"] == body["currentOperation"]["requestedBy"] == ADA
