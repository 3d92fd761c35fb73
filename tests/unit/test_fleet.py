"""All tenants at a glance, and one tenant in full."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.fleet import TenantState, list_tenants, summarise, tenant_detail
from orchestrator.records import Audit, Metadata, Operation, Status
from orchestrator.tenants import TenantId
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, InMemoryTable, a_run, an_audit, take

ONE_HOUR = timedelta(hours=1)
PUBLISHED = Metadata(ACME, QUEUE, "stack-1", VERSION, NOON, NOON)


@pytest.mark.parametrize(
    ("metadata", "latest", "state"),
    [
        pytest.param(None, None, TenantState.UNKNOWN, id="nothing"),
        pytest.param(None, an_audit(Status.STARTED), TenantState.PROVISIONING, id="create started"),
        pytest.param(None, an_audit(Status.FAILURE), TenantState.FAILED, id="create failed"),
        pytest.param(None, an_audit(Status.SUCCESS), TenantState.UNKNOWN, id="queue vanished"),
        pytest.param(PUBLISHED, None, TenantState.READY, id="published"),
        pytest.param(PUBLISHED, an_audit(Status.SUCCESS), TenantState.READY, id="published by create"),
        pytest.param(PUBLISHED, an_audit(Status.STARTED, Operation.UPDATE), TenantState.READY, id="updating"),
        pytest.param(PUBLISHED, an_audit(Status.FAILURE, Operation.UPDATE), TenantState.READY, id="update failed"),
        pytest.param(None, an_audit(Status.STARTED, Operation.DELETE), TenantState.DELETING, id="deleting"),
        pytest.param(PUBLISHED, an_audit(Status.STARTED, Operation.DELETE), TenantState.DELETING, id="still there"),
        pytest.param(None, an_audit(Status.SUCCESS, Operation.DELETE), TenantState.DELETED, id="deleted"),
        pytest.param(None, an_audit(Status.FAILURE, Operation.DELETE), TenantState.FAILED, id="delete failed"),
        pytest.param(
            replace(PUBLISHED, version=None), an_audit(Status.STARTED), TenantState.PROVISIONING, id="unpublished"
        ),
    ],
)
def test_a_tenants_state_is(metadata: Metadata | None, latest: Audit | None, state: TenantState) -> None:
    assert summarise(ACME, metadata, [latest] if latest else []).state is state


def test_the_latest_operation_counts() -> None:
    audits = [an_audit(Status.FAILURE, version="0.0.9"), an_audit(Status.STARTED, at=NOON + ONE_HOUR)]
    assert summarise(ACME, None, audits).state is TenantState.PROVISIONING


def test_a_failed_tenant_is_listed_with_its_root_cause_and_others_without() -> None:
    failed = an_audit(Status.FAILURE, root_cause=QUEUE_TABOO)
    assert summarise(ACME, None, [failed]).root_cause == QUEUE_TABOO
    assert summarise(ACME, PUBLISHED, [failed]).root_cause is None


def test_version_and_queue_are_told_of_published_tenants_only() -> None:
    published, unpublished = summarise(ACME, PUBLISHED, []), summarise(ACME, replace(PUBLISHED, version=None), [])
    assert (published.version, published.queue) == (VERSION, QUEUE)
    assert (unpublished.version, unpublished.queue) == (None, None)


@pytest.mark.parametrize(
    ("metadata_at", "audit_at"), [(NOON, NOON + ONE_HOUR), (NOON + ONE_HOUR, NOON)], ids=["operation", "metadata"]
)
def test_the_time_told_is_that_of_the_latest_change(metadata_at: object, audit_at: object) -> None:
    metadata = replace(PUBLISHED, updated_at=metadata_at)  # type: ignore[arg-type]
    audit = replace(an_audit(Status.SUCCESS), updated_at=audit_at)  # type: ignore[arg-type]
    assert summarise(ACME, metadata, [audit]).updated_at == NOON + ONE_HOUR


def test_a_tenant_of_which_nothing_is_known_has_no_time() -> None:
    assert summarise(ACME, None, []).updated_at is None


def run_to(table: InMemoryTable, name: str, status: Status) -> None:
    run = a_run(tenant=TenantId.parse(name))
    take(table, run)
    if status is Status.SUCCESS:
        table.publish(run, stack_id="stack-1", queue=QUEUE, version=VERSION, at=NOON + ONE_HOUR)
    elif status is Status.FAILURE:
        table.fail(run, QUEUE_TABOO, NOON + ONE_HOUR)


def test_the_list_has_published_running_and_failed_tenants_once_each_by_name() -> None:
    table = InMemoryTable()
    run_to(table, "zeta", Status.STARTED)
    run_to(table, "beta", Status.FAILURE)
    run_to(table, "alpha", Status.SUCCESS)
    assert [(str(summary.tenant), summary.state) for summary in list_tenants(table)] == [
        ("alpha", TenantState.READY),
        ("beta", TenantState.FAILED),
        ("zeta", TenantState.PROVISIONING),
    ]


@pytest.mark.parametrize("later", [Status.STARTED, Status.FAILURE])
def test_of_a_running_and_a_failed_operation_the_later_is_listed(later: Status) -> None:
    table = InMemoryTable()
    earlier = Status.FAILURE if later is Status.STARTED else Status.STARTED
    table.plant_audit(an_audit(earlier, version="0.0.9", at=NOON))
    table.plant_audit(an_audit(later, version=VERSION, at=NOON + ONE_HOUR))
    expected = TenantState.PROVISIONING if later is Status.STARTED else TenantState.FAILED
    assert [summary.state for summary in list_tenants(table)] == [expected]


def test_a_tenant_that_failed_once_and_was_deleted_since_is_not_listed() -> None:
    table = InMemoryTable()
    table.plant_audit(an_audit(Status.FAILURE))
    table.plant_audit(an_audit(Status.SUCCESS, Operation.DELETE, at=NOON + ONE_HOUR))
    assert list_tenants(table) == []


def test_an_empty_fleet_is_an_empty_list() -> None:
    assert list_tenants(InMemoryTable()) == []


def test_the_detail_has_lock_audits_and_history_in_the_order_of_time() -> None:
    table = InMemoryTable()
    old, new = a_run(version="0.9.0"), a_run(version="0.10.0", started_at=NOON + 2 * ONE_HOUR)
    take(table, old)
    table.fail(old, QUEUE_TABOO, NOON + ONE_HOUR)
    take(table, new)

    detail = tenant_detail(ACME, table)

    assert detail.summary.state is TenantState.PROVISIONING
    assert detail.lock is not None
    assert detail.lock.run == new
    assert [audit.version for audit in detail.audits] == ["0.9.0", "0.10.0"]
    assert [entry.status for entry in detail.history] == [Status.STARTED, Status.FAILURE, Status.STARTED]


def test_the_detail_of_an_unknown_tenant_is_empty() -> None:
    detail = tenant_detail(ACME, InMemoryTable())
    assert detail.summary.state is TenantState.UNKNOWN
    assert (detail.lock, list(detail.audits), list(detail.history)) == (None, [], [])
