"""Answers to operators: a status for every outcome, documents that stay as they are, and no secrets in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.api.operator_answers import (
    order_response,
    refuse,
    refuse_order,
    tenant_response,
    tenants_response,
)
from orchestrator.api.release_answers import release_order_response, releases_response
from orchestrator.api.responses import RETRY_AFTER_SECONDS, Response
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import timestamp
from orchestrator.releases.records import RecordedReleaseChange, Release, ReleaseOrder, Withdrawal
from orchestrator.releases.states import Choice, PromotionMode
from orchestrator.rollouts.releasing import ReleaseOrdered, ReleaseStatus
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.fleet import Page, TenantDetail, list_tenants, tenant_detail
from orchestrator.tenants.order_results import Accepted, OrderResult, Unchanged
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Lock, Operation, Request, Status, TenantState
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    InMemoryTable,
    Orders,
    a_release,
    a_run,
    an_attempt,
    an_audit,
    execution_arn,
    some_metadata,
    stack_arn,
    take,
)

TASK_TOKEN = "AQC4AAAAKgAAAAMAAAAAAAAAAtasktoken"
AN_HOUR = timedelta(hours=1)
CAUSE = {"resource": "InboundQueue", "type": "AWS::SQS::Queue", "reason": "Access to the resource is denied."}


def as_sent(response: Response) -> dict[str, Any]:
    """The document as it leaves the function: what is not JSON would not leave it."""
    sent = response.as_proxy_result()
    assert sent["statusCode"] == response.status
    document = json.loads(str(sent["body"]))
    assert isinstance(document, dict)
    return document


# Orders


@pytest.mark.parametrize(
    ("operation", "state"),
    [(Operation.CREATE, "PROVISIONING"), (Operation.UPDATE, "UPDATING"), (Operation.DELETE, "DELETING")],
)
def test_a_started_operation_is_accepted_with_location_and_retry_after(operation: Operation, state: str) -> None:
    attempt = an_attempt(3, operation=operation)
    response = order_response(ACME, Accepted(attempt, execution_arn(attempt.name)))
    assert response.status == 202
    assert response.headers == {
        "Content-Type": "application/json",
        "Retry-After": str(RETRY_AFTER_SECONDS),
        "Location": "/tenants/acme",
    }
    assert as_sent(response) == {
        "tenantId": "acme",
        "state": state,
        "operation": operation.value,
        "version": None if operation is Operation.DELETE else VERSION,
        "attempt": 3,
        "execution": execution_arn(attempt.name),
        "retryAfterSeconds": RETRY_AFTER_SECONDS,
    }


def test_an_unchanged_tenant_is_a_success_with_status_unchanged() -> None:
    response = order_response(ACME, Unchanged("Tenant acme is already at version 0.1.0."))
    assert response.status == 200
    assert as_sent(response) == {
        "tenantId": "acme",
        "status": "UNCHANGED",
        "detail": "Tenant acme is already at version 0.1.0.",
    }
    assert "Retry-After" not in response.headers


STATUSES = {
    Refusal.UNKNOWN_TENANT: (404, "unknown-tenant"),
    Refusal.UNKNOWN_RELEASE: (422, "unknown-release"),
    Refusal.TENANT_DELETED: (410, "tenant-deleted"),
    Refusal.NOT_PROVISIONED: (409, "not-provisioned"),
    Refusal.DOWNGRADE: (409, "downgrade"),
    Refusal.PINNED: (409, "pinned"),
    Refusal.BUSY: (409, "tenant-busy"),
    Refusal.NOT_EMPTY: (409, "queue-not-empty"),
    Refusal.NOT_ADOPTED: (409, "not-adopted"),
    Refusal.NOTHING_TO_RETRY: (409, "nothing-to-retry"),
    Refusal.UNKNOWN_ROLLOUT: (404, "unknown-rollout"),
    Refusal.UNKNOWN_ALARM: (422, "unknown-alarm"),
    Refusal.UNKNOWN_SELECTION: (422, "unknown-selection"),
    Refusal.ROLLOUT_IN_THE_WAY: (409, "rollout-in-the-way"),
    Refusal.ROLLOUT_OVER: (409, "rollout-over"),
    Refusal.NOTHING_TO_APPROVE: (409, "nothing-to-approve"),
    Refusal.NOTHING_TO_PROMOTE: (409, "nothing-to-promote"),
    Refusal.RELEASE_WITHDRAWN: (409, "release-withdrawn"),
    Refusal.LAST_RELEASE: (409, "last-release"),
    Refusal.NO_RELEASE: (409, "tier-without-release"),
    Refusal.OTHER_TIER: (409, "other-tier"),
    Refusal.UNKNOWN_RECONCILIATION: (404, "unknown-reconciliation"),
    Refusal.FLEET_FULL: (409, "tenant-limit-reached"),
    Refusal.TOO_MANY_CREATES: (429, "too-many-creates"),
}


@pytest.mark.parametrize("kind", list(Refusal))
def test_every_refusal_is_a_problem_with_its_own_status_and_type(kind: Refusal) -> None:
    status, name = STATUSES[kind]
    response = order_response(ACME, Refused(kind, "Because of this."))
    assert response.status == status
    assert response.headers["Content-Type"] == "application/problem+json"
    document = as_sent(response)
    assert document.pop("title")
    assert document == {
        "type": f"urn:berth:problem:{name}",
        "status": status,
        "detail": "Because of this.",
        "tenantId": "acme",
    }


def test_every_refusal_has_a_title_of_its_own() -> None:
    titles = {as_sent(refuse_order(ACME, Refused(kind, "")))["title"] for kind in Refusal}
    assert len(titles) == len(Refusal)


@pytest.mark.parametrize("kind", list(Refusal))
def test_only_busy_has_retry_after(kind: Refusal) -> None:
    response = refuse_order(ACME, Refused(kind, ""))
    assert ("Retry-After" in response.headers) == (kind is Refusal.BUSY)


def test_the_details_of_a_refusal_are_in_its_document() -> None:
    held = {"inbound queue": {"visible": 3, "inFlight": 2, "delayed": 1}}
    document = as_sent(order_response(ACME, Refused(Refusal.NOT_EMPTY, "Still messages.", {"messages": held})))
    assert document["messages"] == held
    busy = {"operation": "DELETE", "version": None, "execution": "an execution"}
    document = as_sent(order_response(ACME, Refused(Refusal.BUSY, "Busy.", busy)))
    assert busy.items() <= document.items()
    assert document["status"] == 409


def test_a_refusal_has_the_same_response_on_both_paths() -> None:
    refused = Refused(Refusal.PINNED, "Pinned.")
    assert order_response(ACME, refused) == refuse_order(ACME, refused) == refuse(refused, tenantId="acme")


def test_a_refusal_without_a_tenant_names_none() -> None:
    document = as_sent(refuse(Refused(Refusal.UNKNOWN_ROLLOUT, "No such rollout.", {"rolloutId": "a rollout"})))
    assert document.pop("title")
    assert document == {
        "type": "urn:berth:problem:unknown-rollout",
        "status": 404,
        "detail": "No such rollout.",
        "rolloutId": "a rollout",
    }


def test_a_response_is_not_changed_by_the_next_one() -> None:
    ordered: list[OrderResult] = [Refused(Refusal.BUSY, ""), Refused(Refusal.PINNED, "")]
    busy, pinned = [order_response(ACME, each) for each in ordered]
    assert "Retry-After" in busy.headers
    assert "Retry-After" not in pinned.headers


# One tenant


def a_detail() -> TenantDetail:
    """A detail with all fields: an update that runs, after one that failed."""
    table = InMemoryTable()
    table.plant_metadata(
        some_metadata(pinned_version=NEXT_VERSION, labels={"team": "billing"}, resources={"FilesBucket": "files-1"})
    )
    table.plant_audit(an_audit(Status.SUCCESS, request=EXPLICIT))
    first = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, started_at=NOON + AN_HOUR)
    take(table, first)
    table.fail(first, QUEUE_TABOO, NOON + 2 * AN_HOUR)
    second = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=NOON + 3 * AN_HOUR)
    take(table, second)
    table.remember_token(second, TASK_TOKEN)
    return tenant_detail(ACME, table)


def test_a_tenant_has_all_details() -> None:
    response = tenant_response(a_detail())
    assert response.status == 200
    document = as_sent(response)
    audits, history = document.pop("audits"), document.pop("history")
    update = {"operation": "UPDATE", "version": NEXT_VERSION, "requestedBy": EXPLICIT.by, "reason": None}
    first = {"attempt": 1, "execution": a_run(operation=Operation.UPDATE, version=NEXT_VERSION).execution}
    second = {"attempt": 2, "execution": a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION).execution}
    assert document == {
        "tenantId": "acme",
        "state": "UPDATING",
        "version": VERSION,
        "pinnedVersion": NEXT_VERSION,
        "tier": "standard",
        "labels": {"team": "billing"},
        "updatedAt": timestamp(NOON + 3 * AN_HOUR),
        "createdAt": timestamp(NOON),
        "queueUrl": QUEUE.url,
        "queueArn": QUEUE.arn,
        "stackId": stack_arn(),
        "resources": {"FilesBucket": "files-1"},
        "rootCause": None,
        "earlierThan": None,
        "currentOperation": {**update, **second, "startedAt": timestamp(NOON + 3 * AN_HOUR)},
    }
    assert audits == [
        {
            "operation": "CREATE",
            "version": VERSION,
            "attempt": 1,
            "status": "Success",
            "execution": an_audit(Status.SUCCESS).execution,
            "rootCause": None,
            "updatedAt": timestamp(NOON),
            "requestedBy": EXPLICIT.by,
            "reason": None,
        },
        {**update, **second, "status": "Started", "rootCause": None, "updatedAt": timestamp(NOON + 3 * AN_HOUR)},
    ]
    update |= {"request": {"explicit": True}, "before": None, "after": None, "altered": False}
    assert history == [
        {**update, **first, "status": "Started", "rootCause": None, "at": timestamp(NOON + AN_HOUR)},
        {**update, **first, "status": "Failure", "rootCause": CAUSE, "at": timestamp(NOON + 2 * AN_HOUR)},
        {**update, **second, "status": "Started", "rootCause": None, "at": timestamp(NOON + 3 * AN_HOUR)},
    ]


def test_a_recorded_change_has_the_values_before_and_after() -> None:
    table = InMemoryTable()
    table.plant_metadata(some_metadata(labels={"team": "billing"}))
    asked = Request(by=EXPLICIT.by, reason="Ticket 4711", labels={})
    table.describe(ACME, labels={}, pin=Pin(VERSION), request=asked, at=NOON + AN_HOUR)
    (entry,) = as_sent(tenant_response(tenant_detail(ACME, table)))["history"]
    assert entry == {
        "operation": "DESCRIBE",
        **dict.fromkeys(("version", "attempt", "status", "execution", "rootCause")),
        "at": timestamp(NOON + AN_HOUR),
        "requestedBy": EXPLICIT.by,
        "reason": "Ticket 4711",
        "request": {"labels": {}},
        "before": {"labels": {"team": "billing"}, "pinnedVersion": None},
        "after": {"labels": {}, "pinnedVersion": VERSION},
        "altered": False,
    }


def test_every_document_of_an_operation_has_its_reason() -> None:
    table = InMemoryTable()
    take(table, a_run(request=Request(by="ada", reason="Ticket 4711")))
    document = as_sent(tenant_response(tenant_detail(ACME, table)))
    answered = (document["currentOperation"], *document["audits"], *document["history"])
    assert [each["reason"] for each in answered] == ["Ticket 4711"] * 3


def test_an_altered_entry_is_marked_as_altered() -> None:
    detail = a_detail()
    altered = [replace(entry, altered=True) for entry in detail.history]
    assert all(entry["altered"] for entry in as_sent(tenant_response(replace(detail, history=altered)))["history"])


def test_a_failed_tenant_has_its_root_cause() -> None:
    table = InMemoryTable()
    run = a_run()
    take(table, run)
    table.fail(run, QUEUE_TABOO, NOON + AN_HOUR)
    document = as_sent(tenant_response(tenant_detail(ACME, table)))
    assert document["state"] == "FAILED"
    assert document["rootCause"] == CAUSE
    assert document["currentOperation"] is None
    for unknown in ("version", "pinnedVersion", "createdAt", "queueUrl", "queueArn", "stackId"):
        assert document[unknown] is None
    assert document["labels"] == {}


def test_a_queue_that_is_not_served_is_left_out() -> None:
    table = InMemoryTable()
    table.plant_metadata(replace(some_metadata(), withdrawn_by="a delete"))
    document = as_sent(tenant_response(tenant_detail(ACME, table)))
    assert document["queueUrl"] is None
    assert document["queueArn"] is None


def test_a_deleted_tenant_has_state_deleted() -> None:
    table = InMemoryTable()
    table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE))
    response = tenant_response(tenant_detail(ACME, table))
    assert response.status == 200
    document = as_sent(response)
    assert document["state"] == "DELETED"
    assert document["updatedAt"] == timestamp(NOON)
    assert document["audits"][0]["requestedBy"] is None


def test_an_unknown_tenant_is_not_found() -> None:
    response = tenant_response(tenant_detail(ACME, InMemoryTable()))
    assert response.status == 404
    document = as_sent(response)
    assert document["type"] == "urn:berth:problem:unknown-tenant"
    assert "berth create acme" in document["detail"]


def test_an_operation_with_an_unknown_caller_has_null() -> None:
    table = InMemoryTable()
    take(table, a_run(request=Request()))
    document = as_sent(tenant_response(tenant_detail(ACME, table)))
    for answered in (document["currentOperation"], *document["audits"], *document["history"]):
        assert answered["requestedBy"] is None


def test_rows_from_before_versions_are_shown() -> None:
    table = InMemoryTable()
    table.plant_audit(an_audit(Status.STARTED, version=None), numbered=False)
    assert as_sent(tenant_response(tenant_detail(ACME, table)))["audits"][0]["version"] is None


# All tenants


def a_fleet() -> InMemoryTable:
    table = InMemoryTable()
    table.plant_metadata(some_metadata(labels={"team": "billing"}, pinned_version=VERSION))
    other = TenantId.parse("other")
    run = a_run(tenant=other)
    take(table, run)
    table.remember_token(run, TASK_TOKEN)
    table.fail(run, QUEUE_TABOO, NOON + AN_HOUR)
    return table


def test_a_page_of_tenants() -> None:
    response = tenants_response(list_tenants(a_fleet()))
    assert response.status == 200
    document = as_sent(response)
    assert document["cursor"] is None
    ready, failed = document["tenants"]
    assert ready == {
        "tenantId": "acme",
        "state": "READY",
        "version": VERSION,
        "pinnedVersion": VERSION,
        "tier": "standard",
        "labels": {"team": "billing"},
        "updatedAt": timestamp(NOON),
        "queueUrl": QUEUE.url,
        "queueArn": QUEUE.arn,
        "rootCause": None,
    }
    assert (failed["tenantId"], failed["state"], failed["rootCause"]) == ("other", "FAILED", CAUSE)
    assert failed["queueUrl"] is None


def test_a_page_has_the_cursor_of_the_next_page() -> None:
    table = a_fleet()
    document = as_sent(tenants_response(list_tenants(table, limit=1)))
    assert [each["tenantId"] for each in document["tenants"]] == ["acme"]
    following = as_sent(tenants_response(list_tenants(table, limit=1, cursor=document["cursor"])))
    assert [each["tenantId"] for each in following["tenants"]] == ["other"]
    assert following["cursor"] is None


def test_an_empty_page_is_a_page() -> None:
    assert as_sent(tenants_response(Page([], None))) == {"tenants": [], "cursor": None}


@pytest.mark.parametrize("state", list(TenantState))
def test_a_list_of_one_state_names_no_other(state: TenantState) -> None:
    document = as_sent(tenants_response(list_tenants(a_fleet(), state=state)))
    assert {each["state"] for each in document["tenants"]} <= {state.value}


# Releases


def listed(
    releases: Sequence[Release],
    current: str = VERSION,
    in_use: Mapping[str, Mapping[TenantState, int]] | None = None,
    *,
    withdrawn: Mapping[str, Withdrawal] | None = None,
    history: Sequence[RecordedReleaseChange] = (),
) -> Response:
    return releases_response(
        releases,
        {STANDARD: Choice(current, withdrawn or {})},
        in_use or {},
        deployed=current,
        default_tier=STANDARD,
        promotion=PromotionMode.ON_DEPLOY,
        history=history,
        counted_at=NOON,
    )


def test_releases_are_sorted_newest_first_by_number() -> None:
    releases = [a_release(version) for version in ("0.1.0", "0.10.0", "0.2.0", "1.0.0", "0.9.0")]
    response = listed(releases, "0.9.0")
    assert response.status == 200
    document = as_sent(response)
    assert document["current"] == "0.9.0"
    assert [each["version"] for each in document["releases"]] == ["1.0.0", "0.10.0", "0.9.0", "0.2.0", "0.1.0"]
    assert document["releases"][-1] == {
        "version": "0.1.0",
        "digest": "d" * 64,
        "templateUrl": a_release("0.1.0").template_url,
        "publishedAt": timestamp(NOON),
        "publishedBy": None,
        "notes": None,
        "tier": "standard",
        "current": False,
        "withdrawn": None,
        "tenants": {"total": 0, "byState": {}},
    }
    assert document["elsewhere"] == {}


def test_a_release_says_that_it_is_current_or_withdrawn_by_whom_and_why() -> None:
    withdrawal = Withdrawal(NOON, "ada", "queues lose messages")
    history = [
        RecordedReleaseChange(NEXT_VERSION, NOON, ReleaseOrder.WITHDRAW, "ada", "queues lose messages"),
        RecordedReleaseChange("", None, None, "", altered=True),
    ]
    releases = [a_release(VERSION), a_release(NEXT_VERSION)]
    document = as_sent(listed(releases, withdrawn={NEXT_VERSION: withdrawal}, history=history))
    assert [(each["current"], each["withdrawn"]) for each in document["releases"]] == [
        (False, {"at": timestamp(NOON), "requestedBy": "ada", "reason": "queues lose messages"}),
        (True, None),
    ]
    assert [(each["order"], each["requestedBy"], each["altered"]) for each in document["history"]] == [
        ("WITHDRAW", "ada", False),
        (None, None, True),
    ]


@pytest.mark.parametrize(
    ("order", "status", "detail"),
    [
        (ReleaseOrder.PROMOTE, ReleaseStatus.PROMOTED, "Release 0.2.0 is promoted. New tenants get 0.2.0."),
        (ReleaseOrder.PROMOTE, ReleaseStatus.UNCHANGED, "Release 0.2.0 was promoted before. New tenants get 0.2.0."),
        (ReleaseOrder.WITHDRAW, ReleaseStatus.WITHDRAWN, "Release 0.2.0 is withdrawn. New tenants get 0.2.0."),
        (ReleaseOrder.REINSTATE, ReleaseStatus.REINSTATED, "Release 0.2.0 is reinstated. New tenants get 0.2.0."),
        (ReleaseOrder.REINSTATE, ReleaseStatus.UNCHANGED, "Release 0.2.0 is not withdrawn. New tenants get 0.2.0."),
    ],
)
def test_an_order_about_a_release_says_what_it_did(order: ReleaseOrder, status: ReleaseStatus, detail: str) -> None:
    ordered = ReleaseOrdered("0.2.0", order, status, before="0.2.0", current="0.2.0")
    assert as_sent(release_order_response(ordered))["detail"] == detail


def test_a_release_that_was_withdrawn_before_keeps_its_reason() -> None:
    withdrawal = Withdrawal(NOON, "ada", "queues lose messages")
    ordered = ReleaseOrdered(
        "0.2.0", ReleaseOrder.WITHDRAW, ReleaseStatus.UNCHANGED, before="0.1.0", current="0.1.0", withdrawal=withdrawal
    )
    assert as_sent(release_order_response(ordered))["detail"] == (
        "Release 0.2.0 was withdrawn by ada at 2026-11-16T12:00:00.000Z (queues lose messages), which stays on record. "
        "New tenants get 0.1.0."
    )


def test_a_release_has_its_notes() -> None:
    document = as_sent(listed([a_release(notes="- Everything is better.")]))
    assert document["releases"][0]["notes"] == "- Everything is better."


def test_a_release_has_the_number_of_its_tenants_by_state() -> None:
    in_use = {VERSION: {TenantState.UPDATE_FAILED: 1, TenantState.READY: 41}, NEXT_VERSION: {TenantState.READY: 7}}
    document = as_sent(listed([a_release(VERSION), a_release(NEXT_VERSION)], NEXT_VERSION, in_use))
    assert [each["tenants"] for each in document["releases"]] == [
        {"total": 7, "byState": {"READY": 7}},
        {"total": 42, "byState": {"READY": 41, "UPDATE_FAILED": 1}},
    ]
    assert document["elsewhere"] == {}


def test_tenants_at_no_release_are_counted_under_elsewhere() -> None:
    """At a version from before releases were recorded; or, under the empty one, at none yet or any more."""
    in_use = {VERSION: {TenantState.READY: 2}, "0.0.9": {TenantState.READY: 3}, "": {TenantState.FAILED: 1}}
    document = as_sent(listed([a_release(VERSION)], VERSION, in_use))
    assert document["elsewhere"] == {
        "": {"total": 1, "byState": {"FAILED": 1}},
        "0.0.9": {"total": 3, "byState": {"READY": 3}},
    }


def test_the_counts_match_the_list_of_tenants() -> None:
    table = a_fleet()
    table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, tenant=TenantId.parse("deleted")))
    document = as_sent(listed([a_release()], VERSION, table.versions_in_use().by_version))
    assert document["releases"][0]["tenants"] == {"total": 1, "byState": {"READY": 1}}
    assert document["elsewhere"] == {"": {"total": 1, "byState": {"FAILED": 1}}}


# Secrets


def test_the_task_token_is_in_no_document() -> None:
    """Whoever has it can let the execution go on."""
    detail = a_detail()
    assert detail.lock is not None
    assert detail.lock.task_token == TASK_TOKEN
    world = Orders()
    world.provision()
    world.table.remember_token(world.begun(world.lifecycle.upgrade(ACME, None, Request())), TASK_TOKEN)
    busy = world.lifecycle.delete(ACME, Request())
    assert isinstance(busy, Refused)
    table = a_fleet()
    take(table, a_run(2))
    table.remember_token(a_run(2), TASK_TOKEN)
    documents = [
        tenant_response(detail),
        tenant_response(replace(detail, lock=Lock(a_run(request=Request()), TASK_TOKEN))),
        tenants_response(list_tenants(table)),
        order_response(ACME, busy),
        order_response(ACME, Accepted(detail.lock.run.attempt, detail.lock.run.execution)),
    ]
    for document in documents:
        sent = json.dumps(document.as_proxy_result()).lower()
        assert TASK_TOKEN.lower() not in sent
        assert "token" not in sent


def test_a_delete_has_no_version_in_any_document() -> None:
    table = InMemoryTable()
    run = a_run(operation=Operation.DELETE)
    table.plant_metadata(some_metadata())
    table.begin(run, at=NOON)
    going_on = as_sent(tenant_response(tenant_detail(ACME, table)))
    assert going_on["currentOperation"]["version"] is None
    table.fail(run, QUEUE_TABOO, NOON, restore=True)
    document = as_sent(tenant_response(tenant_detail(ACME, table)))
    assert {each["version"] for each in [*document["audits"], *document["history"]]} == {None}
    assert document["version"] == VERSION
