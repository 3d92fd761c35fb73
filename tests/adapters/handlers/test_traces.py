"""Every change of a tenant or a rollout is recorded with its request, its requester and its reason."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.tenants.records import Operation
from tests.adapters.conftest import REGION, TABLE, client
from tests.adapters.handlers.functions import ADA, RELEASES, Functions, Lines, step
from tests.fakes import NEXT_VERSION, VERSION, a_release, a_run

WHY = "Ticket 4711: the tenant's contract ended."
EVE = "arn:aws:sts::123456789012:assumed-role/operator/eve"
CREATE = "PUT /tenants/{tenantId}"
SHOW = "GET /tenants/{tenantId}"
PIN = "PUT /tenants/{tenantId}/pin"
UNPIN = "DELETE /tenants/{tenantId}/pin"


@pytest.fixture
def served(functions: Functions) -> Functions:
    """The tenant is there, and it is a minute later."""
    functions.serve()
    functions.table.record_release(a_release(NEXT_VERSION))
    functions.clock.advance(timedelta(minutes=1))
    return functions


def history(functions: Functions) -> list[dict[str, Any]]:
    status, _, body = functions.operate(SHOW)
    assert status == 200
    entries: list[dict[str, Any]] = body["history"]
    return entries


def described(functions: Functions) -> list[dict[str, Any]]:
    return [entry for entry in history(functions) if entry["operation"] == "DESCRIBE"]


class TestDescriptions:
    def test_a_pin_is_recorded_with_before_requester_and_reason(self, served: Functions) -> None:
        served.operate(PIN, body={"version": VERSION, "reason": WHY})
        (entry,) = described(served)
        assert (entry["requestedBy"], entry["reason"]) == (ADA, WHY)
        assert entry["before"] == {"labels": {}, "pinnedVersion": None}
        assert entry["after"] == {"labels": {}, "pinnedVersion": VERSION}

    def test_a_removed_pin_is_recorded(self, served: Functions) -> None:
        served.operate(PIN, body={"version": VERSION})
        served.clock.advance(timedelta(seconds=1))
        served.operate(UNPIN, query={"reason": WHY}, by=EVE)
        _, entry = described(served)
        assert (entry["requestedBy"], entry["reason"]) == (EVE, WHY)
        assert (entry["before"]["pinnedVersion"], entry["after"]["pinnedVersion"]) == (VERSION, None)

    def test_labels_are_recorded(self, served: Functions) -> None:
        served.operate(CREATE, body={"labels": {"tier": "gold"}})
        served.clock.advance(timedelta(seconds=1))
        served.operate(CREATE, body={"labels": {"tier": "free"}, "version": VERSION, "reason": WHY}, by=EVE)
        first, second = described(served)
        assert (first["before"]["labels"], first["after"]["labels"]) == ({}, {"tier": "gold"})
        assert (second["before"]["labels"], second["after"]["labels"]) == ({"tier": "gold"}, {"tier": "free"})
        assert second["after"]["pinnedVersion"] == VERSION
        assert (first["requestedBy"], second["requestedBy"], second["reason"]) == (ADA, EVE, WHY)

    def test_the_description_of_a_requested_tenant_is_recorded(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        status, _, _ = functions.operate(CREATE, body={"labels": {"tier": "gold"}, "version": VERSION})
        assert status == 202
        (entry,) = described(functions)
        assert entry["after"] == {"labels": {"tier": "gold"}, "pinnedVersion": VERSION}

    def test_an_equal_description_of_a_requested_tenant_is_recorded_once(self, functions: Functions) -> None:
        functions.table.record_release(a_release())
        for _ in range(3):
            functions.operate(CREATE, body={"labels": {"tier": "gold"}})
            functions.clock.advance(timedelta(seconds=1))
        assert len(described(functions)) == 1

    def test_an_order_that_changes_nothing_is_in_the_log_only(self, served: Functions, lines: Lines) -> None:
        served.operate(PIN, body={"version": VERSION})
        for _ in range(3):
            assert served.operate(PIN, body={"version": VERSION}, by=EVE)[0] == 200
        assert [entry["requestedBy"] for entry in described(served)] == [ADA]
        assert EVE in json.dumps(lines())

    def test_two_descriptions_at_the_same_moment_are_both_recorded(self, served: Functions) -> None:
        served.operate(PIN, body={"version": VERSION})
        served.operate(PIN, body={"version": NEXT_VERSION}, by=EVE)
        assert {(entry["requestedBy"], entry["after"]["pinnedVersion"]) for entry in described(served)} == {
            (ADA, VERSION),
            (EVE, NEXT_VERSION),
        }

    @pytest.mark.parametrize("route", [PIN, UNPIN])
    def test_a_refused_order_is_not_recorded(self, functions: Functions, route: str) -> None:
        functions.table.record_release(a_release())
        before = functions.rows
        body = {"version": VERSION} if route == PIN else None
        assert functions.operate(route, body=body)[0] == 404
        assert functions.rows == before

    def test_a_change_and_its_history_entry_are_one_transaction(self, served: Functions) -> None:
        """Both are one transaction: what cannot be recorded is not done."""
        served.operate(PIN, body={"version": VERSION})
        (transaction,) = served.sent_to("dynamodb.TransactWriteItems")[-1:]
        changed, appended = transaction["TransactItems"]
        assert changed["Update"]["Key"]["pk"]["S"] == "TENANT_ID#acme"
        assert appended["Put"]["Item"]["pk"]["S"] == "HISTORY#acme"
        assert "dynamodb.UpdateItem" not in served.requests


ASKED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "PUT /tenants/{tenantId}": (
        {"body": {"labels": {"tier": "gold"}, "version": VERSION, "reason": WHY}},
        {"explicit": True, "labels": {"tier": "gold"}, "pin": VERSION},
    ),
    "POST /tenants/{tenantId}/upgrade": (
        {"body": {"version": NEXT_VERSION, "allowDowngrade": True, "allowReplacement": True, "reason": WHY}},
        {"version": NEXT_VERSION, "allowDowngrade": True, "allowReplacement": True},
    ),
    "DELETE /tenants/{tenantId}": (
        {"query": {"force": "true", "drainSeconds": "60", "reason": WHY}},
        {"force": True, "drainSeconds": 60},
    ),
}
OPERATIONS = {
    "PUT /tenants/{tenantId}": Operation.CREATE,
    "POST /tenants/{tenantId}/upgrade": Operation.UPDATE,
    "DELETE /tenants/{tenantId}": Operation.DELETE,
}


@pytest.mark.parametrize("route", ASKED)
def test_the_history_of_an_operation_has_the_whole_request(
    functions: Functions, monkeypatch: pytest.MonkeyPatch, route: str
) -> None:
    monkeypatch.setenv("BERTH_TEMPLATE_VERSION", VERSION)
    functions.table.record_release(a_release())
    functions.table.record_release(a_release(NEXT_VERSION))
    if route != CREATE:
        functions.serve()
    functions.clock.advance(timedelta(minutes=1))
    asked, request = ASKED[route]
    status, _, body = functions.operate(route, **asked)
    assert status == 202, body
    execution = body["execution"]
    given = functions.input_of(execution)
    run = {"Id": execution, "StartTime": "2026-11-16T12:02:00Z", "Input": given}
    functions.call("begin", {"operation": OPERATIONS[route], "execution": run})
    entry = history(functions)[-1]
    assert (entry["operation"], entry["status"]) == (OPERATIONS[route], "Started")
    assert (entry["requestedBy"], entry["reason"]) == (ADA, WHY)
    assert entry["request"] == request


def test_the_history_of_a_retry_has_its_reason_and_the_repeated_request(functions: Functions) -> None:
    functions.table.record_release(a_release())
    functions.operate(CREATE, body={"labels": {"tier": "gold"}, "reason": "For the demonstration."})
    run = a_run(request=functions.request_of(functions.all_executions[0]))
    step(functions, "begin", run)
    step(functions, "record_failure", run, failure={"Error": "States.Timeout", "Cause": "It took too long."})
    functions.clock.advance(timedelta(minutes=1))
    client("stepfunctions").stop_execution(executionArn=functions.all_executions[0])
    status, _, body = functions.operate("POST /tenants/{tenantId}/retry", body={"reason": WHY}, by=EVE)
    assert status == 202, body
    asked = functions.request_of(body["execution"])
    assert (asked.by, asked.reason, asked.explicit) == (EVE, WHY, True)


@pytest.mark.parametrize("reason", ["x" * 500, "Zoë sagt: <b>nein</b>; 日本", "x"], ids=ascii)
def test_a_reason_is_recorded_unchanged(served: Functions, reason: str) -> None:
    served.operate(PIN, body={"version": VERSION, "reason": reason})
    (entry,) = described(served)
    assert entry["reason"] == reason


class TestRollouts:
    @pytest.fixture(autouse=True)
    def bucket(self, functions: Functions) -> None:
        client("s3").create_bucket(Bucket=RELEASES, CreateBucketConfiguration={"LocationConstraint": REGION})
        functions.answer("DescribeAlarms", {"MetricAlarms": [], "CompositeAlarms": []})

    @pytest.fixture
    def rollout(self, served: Functions, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv("BERTH_TEMPLATE_VERSION", NEXT_VERSION)
        approved = [{"size": "rest", "approval": True}]
        status, _, body = served.operate("POST /rollouts", body={"stages": approved, "reason": "The new release."})
        assert status == 202, body
        return str(body["rolloutId"])

    def orders(self, functions: Functions, rollout: str) -> list[dict[str, Any]]:
        _, _, body = functions.operate("GET /rollouts/{rolloutId}", rollout=rollout)
        entries: list[dict[str, Any]] = body["history"]
        return entries

    def order(self, functions: Functions, rollout: str, verb: str, **body: object) -> dict[str, Any]:
        functions.clock.advance(timedelta(seconds=1))
        route = f"POST /rollouts/{{rolloutId}}/{verb}"
        status, _, response = functions.operate(route, rollout=rollout, body={"reason": f"{verb}!", **body}, by=EVE)
        assert status == 202, response
        return response

    def test_every_order_is_recorded_with_requester_and_reason(self, served: Functions, rollout: str) -> None:
        run = {"Id": served.rollout_executions[0], "Input": {"rolloutId": rollout, "attempt": 1}}
        assert served.call("advance_rollout", {"execution": run})["outcome"] == "await"
        self.order(served, rollout, "pause")
        self.order(served, rollout, "resume")
        self.order(served, rollout, "approve", stage=1)
        response = self.order(served, rollout, "abort")
        assert response["reason"] == f"Aborted by {EVE}: abort!"
        recorded = [(each["order"], each["requestedBy"], each["reason"]) for each in self.orders(served, rollout)]
        assert recorded == [
            ("START", ADA, "The new release."),
            ("PAUSE", EVE, "pause!"),
            ("RESUME", EVE, "resume!"),
            ("APPROVE", EVE, "approve!"),
            ("ABORT", EVE, "abort!"),
        ]
        assert [each["stage"] for each in self.orders(served, rollout)] == [None, None, None, 1, None]

    def test_an_order_that_changes_nothing_is_not_recorded(self, served: Functions, rollout: str) -> None:
        self.order(served, rollout, "pause")
        assert served.operate("POST /rollouts/{rolloutId}/pause", rollout=rollout)[0] == 200
        assert [each["order"] for each in self.orders(served, rollout)] == ["START", "PAUSE"]

    @pytest.mark.parametrize("verb", ["PAUSE", "ABORT"])
    def test_an_order_and_its_history_entry_are_one_transaction(
        self, served: Functions, rollout: str, verb: str
    ) -> None:
        self.order(served, rollout, verb.lower())
        appended = [
            write["Put"]["Item"]["sk"]["S"]
            for sent in served.sent_to("dynamodb.TransactWriteItems")
            for write in sent["TransactItems"]
            if "Put" in write and write["Put"]["Item"]["pk"]["S"] == f"HISTORY#ROLLOUT#{rollout}"
        ]
        assert [sk.split("#")[1] for sk in appended] == ["START", verb]


def test_an_emptied_row_of_history_is_altered_and_the_tenant_still_shown(served: Functions) -> None:
    before = history(served)
    emptied, *_ = [row for row in served.dynamodb.scan(TableName=TABLE)["Items"] if row["pk"]["S"] == "HISTORY#acme"]
    served.dynamodb.put_item(TableName=TABLE, Item={name: emptied[name] for name in ("pk", "sk")})
    entries = history(served)
    assert len(entries) == len(before)
    assert [entry["altered"] for entry in entries] == [True, *[False] * (len(before) - 1)]
