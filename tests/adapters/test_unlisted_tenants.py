"""Tenants from before Berth are found by a look at the whole table, and are brought into the index, once."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from orchestrator.api.reconciliation_routes import CURSOR_PATTERN
from orchestrator.common.errors import InvalidRequest, UnreadableRows
from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.adopting import ADOPTED, plan
from orchestrator.reconciling.ports import UnlistedTenant, UnlistedTenants
from orchestrator.tenants.changes import adoption
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Metadata, Operation, Queue, Request, Run, Status, TenantState
from orchestrator.tenants.writes import AuditKey
from tests.adapters.conftest import TABLE
from tests.adapters.tables import (
    DELETE,
    LATER,
    LATER_STILL,
    LEGACY_OUTBOUND_QUEUE,
    LEGACY_QUEUE,
    LEGACY_TIME,
    LEGACY_VERSION,
    RUN,
    UPDATE,
    Legacy,
    Table,
    create,
    delete,
    everything,
    for_each_operation,
    listed_tenants,
    metadata_of,
    publish,
    states,
)
from tests.fakes import ACME, EXPLICIT, NEXT_VERSION, QUEUE_TABOO, VERSION, a_run, an_attempt, stack_arn, take
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GLOBEX = TenantId.parse("globex")
ADA = Request(by="berth adopt, requested by ada", reason="Ticket 4711")


def seen_as(unlisted: UnlistedTenants, tenant: TenantId = ACME) -> UnlistedTenant:
    return present(unlisted.unlisted(tenant))


def adopt(
    unlisted: UnlistedTenants, seen: UnlistedTenant, stack_id: str | None = None, queue: Queue | None = None
) -> bool:
    adopted = plan(seen, stack_id, queue)
    nothing = Metadata(seen.tenant, None, None, None, None, None)
    change = adoption(
        seen.metadata or nothing,
        adopted.metadata or nothing,
        state=adopted.state,
        closed=adopted.closed,
        request=ADA,
        at=LATER,
    )
    return unlisted.adopt(seen, adopted, change)


def all_pages(unlisted: UnlistedTenants, limit: int) -> tuple[list[str], int, int]:
    """The tenants that were found, how many rows were looked at, and in how many pages."""
    found: list[str] = []
    rows = pages = 0
    cursor: str | None = None
    while True:
        page = unlisted.page(cursor, limit=limit)
        found += page.tenants
        rows, pages, cursor = rows + page.rows, pages + 1, page.cursor
        if cursor is None:
            return sorted(found), rows, pages


# Finding


def test_a_table_without_unlisted_tenants_has_none(table: Table, unlisted: UnlistedTenants) -> None:
    assert unlisted.page(None, limit=10).tenants == []
    create(table)
    delete(table, GLOBEX)
    assert all_pages(unlisted, 1)[0] == []
    assert unlisted.unlisted(ACME) is None
    assert unlisted.unlisted(GLOBEX) is None
    assert unlisted.unlisted(TenantId("nobody")) is None


def test_an_adopted_tenant_has_a_new_place_in_the_index_which_is_recorded(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants
) -> None:
    legacy.metadata(ACME)
    assert adopt(unlisted, seen_as(unlisted))
    assert list(table.relistings(since=LATER)) == [Relisting(ACME, LATER)]


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_unlisted_tenants_are_found_in_pages_of_any_size(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, limit: int
) -> None:
    create(table, TenantId("listed"))
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    legacy.metadata(GLOBEX)
    found, rows, pages = all_pages(unlisted, limit)
    assert found == ["acme", "globex"]
    assert rows >= 3
    assert pages >= rows // limit


@pytest.mark.parametrize("limit", [1, 2, 3])
def test_a_tenant_whose_rows_are_on_several_pages_is_found_once(
    legacy: Legacy, unlisted: UnlistedTenants, limit: int
) -> None:
    for operation in Operation:
        legacy.audit(operation, Status.SUCCESS, None)
    legacy.metadata(ACME)
    legacy.metadata(GLOBEX)
    assert all_pages(unlisted, limit)[0] == ["acme", "globex"]


def test_a_page_has_its_cost(legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    assert unlisted.page(None, limit=10).read_units > 0


@pytest.mark.parametrize("cursor", ["x", "!", "e30", "WzEsMl0", "WyJhIl0", "WyIiLCIiXQ", "W1tb" * 9_000])
@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_an_invented_cursor_is_refused(unlisted: UnlistedTenants, cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        unlisted.page(cursor, limit=10)


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_a_cursor_may_have_keys_of_any_length(unlisted: UnlistedTenants, rows: DynamoDBClient) -> None:
    for number in range(3):
        pk = f"TENANT_ID#{number}" + "\x01" * (2048 - 11)
        sk = "AUDIT#" + "\x01" * (1024 - 6)
        rows.put_item(TableName=TABLE, Item={"pk": {"S": pk}, "sk": {"S": sk}})
    found, cursor = 0, None
    for _ in range(5):
        page = unlisted.page(cursor, limit=1)
        found, cursor = found + len(page.tenants), page.cursor
        if cursor is None:
            break
        assert re.fullmatch(CURSOR_PATTERN, cursor)
    assert found == 3


def test_an_unlisted_tenant_is_read_from_its_rows(legacy: Legacy, unlisted: UnlistedTenants, table: Table) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
    seen = seen_as(unlisted)
    assert (seen.metadata, list(seen.audits), seen.lock) == (table.metadata(ACME), table.audits(ACME), None)
    assert seen.metadata == Metadata(
        *(ACME, LEGACY_QUEUE, None, LEGACY_VERSION, LEGACY_TIME, LEGACY_TIME), outbound_queue=LEGACY_OUTBOUND_QUEUE
    )


@for_each_operation
def test_a_listed_tenant_without_a_stack_id_counts_as_unlisted(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, run: Run
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    assert not seen_as(unlisted).listed
    take(table, run)
    seen = seen_as(unlisted)
    assert seen.listed
    assert seen.lock is not None
    assert all_pages(unlisted, 10)[0] == ["acme"]
    table.fail(run, QUEUE_TABOO, LATER)
    assert seen_as(unlisted).listed


def test_rows_of_the_earlier_system_are_distinguished_from_berths(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
    take(table, UPDATE)
    table.fail(UPDATE, QUEUE_TABOO, LATER)
    seen = seen_as(unlisted)
    assert seen.earlier == {AuditKey(ACME, Operation.CREATE, None), AuditKey(ACME, Operation.UPDATE, "0.1.18")}
    assert len(seen.audits) == 3


def test_adopting_a_listed_tenant_records_its_stack_and_keeps_berths_audits(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    take(table, DELETE)
    table.fail(DELETE, QUEUE_TABOO, LATER, restore=True)
    audits = list(table.audits(ACME))
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    assert metadata_of(table).stack_id == stack_arn()
    assert list(table.audits(ACME)) == audits
    assert states(table) == [TenantState.READY]
    assert unlisted.unlisted(ACME) is None


def test_a_requested_tenant_is_not_unlisted(table: Table, unlisted: UnlistedTenants) -> None:
    table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt())
    assert unlisted.unlisted(ACME) is None


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
@pytest.mark.parametrize(
    "row",
    [{"sk": "AUDIT#CREATE"}, {"sk": "AUDIT#MOVE", "Status": "Success"}, {"sk": "METADATA", "CreatedAt": "yesterday"}],
    ids=["no status", "another operation", "no time"],
)
def test_unreadable_rows_are_reported(
    unlisted: UnlistedTenants, rows: DynamoDBClient, row: dict[str, str], legacy: Legacy
) -> None:
    legacy.metadata(GLOBEX)
    item = {name: {"S": value} for name, value in {"pk": "TENANT_ID#acme", **row}.items()}
    rows.put_item(TableName=TABLE, Item=item)
    assert "acme" in all_pages(unlisted, 10)[0]
    with pytest.raises(UnreadableRows, match="TENANT_ID#acme"):
        unlisted.unlisted(ACME)


ODD = {
    "a time before all times": {"UpdateAt": {"S": "0001-01-01T00:00:00+14:00"}},
    "created by no resource": {"CreatedBy": {"M": {"StackId": {"S": "x"}, "LogicalId": {"S": "y"}}}},
    "labels that are none": {"Labels": {"S": "gold"}},
}
ODD_REQUESTS = ["[]", "[" * 100_000, '{"resource": {"stackId": "x", "logicalId": "y"}}', '{"askedAt": 5}']


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
@pytest.mark.parametrize("odd", ODD)
def test_unreadable_metadata_is_reported(
    table: Table, unlisted: UnlistedTenants, rows: DynamoDBClient, odd: str
) -> None:
    key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
    rows.put_item(TableName=TABLE, Item={**key, "Version": {"S": "1"}, **ODD[odd]})
    for read in (unlisted.unlisted, table.metadata):
        with pytest.raises(UnreadableRows, match="TENANT_ID#acme METADATA cannot be read"):
            read(ACME)


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
@pytest.mark.parametrize("request_", ODD_REQUESTS, ids=lambda text: text[:20])
def test_an_unreadable_audit_is_reported(
    table: Table, unlisted: UnlistedTenants, rows: DynamoDBClient, request_: str
) -> None:
    row = {"Status": "Started", "Execution": "x", "UpdatedAt": "2020-08-31T16:02:16.808Z", "Request": request_}
    row |= {"pk": "TENANT_ID#acme", "sk": "AUDIT#UPDATE", "ListingKey": "OPERATION#Started", "ListingSort": "2020"}
    rows.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})
    for read in (unlisted.unlisted, table.audits):
        with pytest.raises(UnreadableRows, match="TENANT_ID#acme AUDIT#UPDATE cannot be read"):
            read(ACME)
    take(table, a_run(tenant=GLOBEX))
    assert [audit.tenant for audit in table.unfinished_operations()] == [GLOBEX], "others are settled all the same"


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_rows_that_dynamodb_refuses_are_reported(
    legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient
) -> None:
    legacy.metadata(ACME)
    key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
    values = {":version": {"S": "1" * 300_000}}
    rows.update_item(
        TableName=TABLE, Key=key, UpdateExpression="SET Version = :version", ExpressionAttributeValues=values
    )
    with pytest.raises(UnreadableRows, match="DynamoDB does not take the rows TENANT_ID#acme"):
        adopt(unlisted, seen_as(unlisted))


# Adopting


def test_an_adopted_tenant_is_listed_with_its_stack(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    before = metadata_of(table)
    assert states(table) == []
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    assert metadata_of(table) == replace(before, stack_id=stack_arn()), "the outbound queue goes with its upgrade"
    (listed,) = listed_tenants(table)
    assert (listed.state, listed.version, listed.queue) == (TenantState.READY, LEGACY_VERSION, LEGACY_QUEUE)
    assert [each.tenant for each in table.tenants_in(TenantState.READY, version=LEGACY_VERSION, limit=1)] == [ACME]
    assert table.count_tenants() == 1


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_a_root_cause_of_the_earlier_system_is_removed(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient
) -> None:
    legacy.metadata(ACME)
    key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
    cause = {":cause": {"S": "boom"}}
    rows.update_item(
        TableName=TABLE, Key=key, UpdateExpression="SET RootCause = :cause", ExpressionAttributeValues=cause
    )
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    (listed,) = listed_tenants(table)
    assert (listed.readable, listed.root_cause) == (True, None)
    assert "RootCause" not in rows.get_item(TableName=TABLE, Key=key)["Item"]


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_two_audits_of_one_operation_at_one_version_keep_their_own_outcomes(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient
) -> None:
    """One under the key from before keys had versions, the other under the key with the version."""
    legacy.metadata(ACME)
    audits = {"AUDIT#CREATE": ("Success", "one"), f"AUDIT#CREATE#{LEGACY_VERSION}": ("Failure", "two")}
    for sk, (status, execution) in audits.items():
        row = {"pk": "TENANT_ID#acme", "sk": sk, "Version": LEGACY_VERSION, "Status": status, "Execution": execution}
        row["UpdatedAt"] = "2020-08-31T16:02:16.808Z"
        rows.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    kept = {audit.execution: audit.status for audit in table.audits(ACME)}
    assert kept == {"one": Status.SUCCESS, "two": Status.FAILURE}


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
@pytest.mark.parametrize("sk", ["AUDIT#CREATE#", "AUDIT#DELETE#0.0.9", "AUDIT#UPDATE#0.0.9#again"])
def test_an_audit_with_an_unusual_key_of_the_earlier_system_is_numbered_in_place(
    legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient, sk: str
) -> None:
    legacy.metadata(ACME)
    row = {"pk": "TENANT_ID#acme", "sk": sk, "Status": "Failure", "Execution": "arn:legacy"}
    row["UpdatedAt"] = "2020-08-31T16:02:16.808Z"
    rows.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    assert row_of(rows, sk)["Attempt"] == "1"
    assert unlisted.unlisted(ACME) is None


def test_the_queue_url_is_taken_from_the_stack(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    queue = replace(LEGACY_QUEUE, url=f"https://elsewhere.example/{LEGACY_QUEUE.name}")
    assert adopt(unlisted, seen_as(unlisted), stack_arn(), queue)
    assert metadata_of(table).queue == queue
    (change,) = table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.before["queueUrl"], change.after["queueUrl"]) == (LEGACY_QUEUE.url, queue.url)


def test_a_tenant_is_adopted_once(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    seen = seen_as(unlisted)
    assert adopt(unlisted, seen, stack_arn())
    before = everything(table)
    assert unlisted.unlisted(ACME) is None
    assert not adopt(unlisted, seen, stack_arn())
    assert everything(table) == before
    assert all_pages(unlisted, 10)[0] == []


def test_the_history_has_the_adoption_and_its_reason(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.UPDATE, Status.STARTED, "0.1.18")
    adopt(unlisted, seen_as(unlisted), stack_arn())
    (change,) = table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.kind, change.at, change.request, change.altered) == ("ADOPT", LATER, ADA, False)
    assert (change.before["stackId"], change.before["state"]) == (None, None)
    assert (change.after["stackId"], change.after["state"]) == (stack_arn(), "UPDATE_FAILED")
    assert change.after["closed"] == ["UPDATE 0.1.18: Failure"]


def test_a_tenant_without_a_queue_is_listed(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.audit(Operation.CREATE, Status.STARTED, None)
    assert adopt(unlisted, seen_as(unlisted))
    (audit,) = table.audits(ACME)
    assert (audit.status, audit.execution, audit.updated_at) == (Status.FAILURE, "arn:legacy", LEGACY_TIME)
    (listed,) = listed_tenants(table)
    assert (listed.state, listed.root_cause, listed.version) == (TenantState.FAILED, audit.root_cause, None)
    assert unlisted.unlisted(ACME) is None


def test_a_deleted_tenant_is_listed_as_deleted(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    """As in the table of the earlier system: all operations are in it, and the delete was the last."""
    legacy.audit(Operation.CREATE, Status.STARTED, None)
    legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
    legacy.audit(Operation.DELETE, Status.SUCCESS, None)
    assert adopt(unlisted, seen_as(unlisted))
    assert states(table) == [TenantState.DELETED]
    assert table.metadata(ACME) is None
    assert table.count_tenants() == 0
    assert unlisted.unlisted(ACME) is None


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE, Status.STARTED])
def test_a_delete_before_the_tenant_was_published_does_not_count(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, status: Status
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.DELETE, status, None)
    assert adopt(unlisted, seen_as(unlisted))
    assert states(table) == [TenantState.READY]
    (audit,) = table.audits(ACME)
    assert audit.revived_by == ADOPTED
    assert audit.status is not Status.STARTED


def test_a_later_operation_of_the_earlier_system_makes_the_tenant_unlisted_again(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants
) -> None:
    create(table)
    before = metadata_of(table)
    legacy.audit(Operation.UPDATE, Status.SUCCESS, "0.1.17")
    assert unlisted.unlisted(ACME) is None
    legacy.audit(Operation.UPDATE, Status.STARTED, "0.1.18")
    assert all_pages(unlisted, 10)[0] == ["acme"]
    seen = seen_as(unlisted)
    assert (seen.listed, [audit.version for audit in seen.unfinished]) == (True, ["0.1.18"])
    assert adopt(unlisted, seen)
    assert metadata_of(table) == before
    assert [audit.status for audit in table.audits(ACME) if audit.version == "0.1.18"] == [Status.FAILURE]
    assert unlisted.unlisted(ACME) is None


def test_an_unfinished_operation_of_berth_is_not_the_earlier_systems(table: Table, unlisted: UnlistedTenants) -> None:
    create(table)
    take(table, UPDATE)
    assert unlisted.unlisted(ACME) is None


@pytest.mark.parametrize(
    ("version", "is_still_deleted"),
    [("0.1.18", True), (None, False)],
    ids=["a create of a version", "a create of the tenant"],
)
def test_a_deleted_tenant_is_listed_once_after_a_later_create_is_closed(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, version: str | None, is_still_deleted: bool
) -> None:
    """Only a create without a version, later than the delete, has brought the tenant back."""
    delete(table, at=LEGACY_TIME - timedelta(days=1))
    legacy.audit(Operation.CREATE, Status.STARTED, version)
    assert states(table) == [TenantState.DELETED]
    seen = seen_as(unlisted)
    assert seen.listed
    assert adopt(unlisted, seen)
    (state,) = states(table)
    assert (state is TenantState.DELETED) is is_still_deleted
    assert unlisted.unlisted(ACME) is None


def test_the_description_of_a_requested_tenant_is_kept(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    delete(table)
    table.describe(ACME, labels={"a": "b"}, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt())
    legacy.audit(Operation.UPDATE, Status.STARTED, "0.1.18")
    before = metadata_of(table)
    assert adopt(unlisted, seen_as(unlisted))
    assert metadata_of(table) == before


MEDDLERS: dict[str, Callable[[Table, Legacy], object]] = {
    "an update that begins": lambda table, _legacy: take(table, UPDATE),
    "a delete that begins": lambda table, _legacy: take(table, DELETE),
    "an update that succeeds": lambda table, _legacy: (take(table, UPDATE), publish(table, UPDATE)),
    "a pin": lambda table, _legacy: table.describe(ACME, labels=None, pin=Pin("1.0.0"), request=EXPLICIT, at=LATER),
    "labels": lambda table, _legacy: table.describe(ACME, labels={"a": "b"}, pin=Pin(), request=EXPLICIT, at=LATER),
    "a create that is asked for": lambda table, _legacy: table.describe(
        ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt()
    ),
    "its stack, which says that it has a queue": lambda table, _legacy: table.record_queue(
        ACME, stack_id="stack-1", queue=Queue("arn:new", "https://new"), at=LATER
    ),
    "the earlier system": lambda _table, legacy: legacy.audit(Operation.CREATE, Status.FAILURE, None),
}


@pytest.mark.parametrize("meddle", MEDDLERS.values(), ids=MEDDLERS)
def test_a_tenant_that_changed_since_is_not_adopted(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, meddle: Callable[[Table, Legacy], object]
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    seen = seen_as(unlisted)
    meddle(table, legacy)
    before = everything(table)
    assert not adopt(unlisted, seen, stack_arn())
    assert everything(table) == before


def test_an_adopted_tenant_has_operations_as_any_other(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    adopt(unlisted, seen_as(unlisted), stack_arn())
    assert take(table, UPDATE) is None
    assert states(table) == [TenantState.UPDATING]
    publish(table, UPDATE, version=NEXT_VERSION)
    assert metadata_of(table).outbound_queue is None
    assert states(table) == [TenantState.READY]
    take(table, DELETE)
    table.remove(DELETE, at=LATER_STILL)
    assert states(table) == [TenantState.DELETED]


def test_the_first_attempt_after_an_adoption_begins(table: Table, legacy: Legacy, unlisted: UnlistedTenants) -> None:
    legacy.audit(Operation.CREATE, Status.FAILURE, None)
    adopt(unlisted, seen_as(unlisted))
    assert take(table, RUN) is None
    publish(table)
    assert [audit.version for audit in table.audits(ACME)] == [None, VERSION]


# The rows themselves


def row_of(rows: DynamoDBClient, sort_key: str) -> dict[str, Any]:
    key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": sort_key}}
    item = rows.get_item(TableName=TABLE, Key=key)["Item"]
    return {name: next(iter(value.values())) for name, value in item.items() if name not in key}


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_rows_of_the_earlier_system_are_rewritten_as_berths(
    rows: DynamoDBClient, legacy: Legacy, unlisted: UnlistedTenants
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    adopt(unlisted, seen_as(unlisted), stack_arn())
    when = "2020-08-31T16:02:16.808Z"
    assert row_of(rows, "METADATA") == {
        "CreatedAt": when,
        "UpdatedAt": when,
        "Version": LEGACY_VERSION,
        "InboundQueueArn": LEGACY_QUEUE.arn,
        "InboundQueueUrl": LEGACY_QUEUE.url,
        "OutboundQueueArn": LEGACY_OUTBOUND_QUEUE.arn,
        "OutboundQueueUrl": LEGACY_OUTBOUND_QUEUE.url,
        "StackId": stack_arn(),
        "State": "READY",
        "ListingKey": "TENANT#READY",
        "ListingSort": f"{LEGACY_VERSION}#acme",
    }
    assert row_of(rows, "AUDIT#CREATE") == {
        "UpdatedAt": when,
        "Status": "Success",
        "Execution": "arn:legacy",
        "Attempt": "1",
    }


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_a_row_whose_times_are_stored_in_another_format_is_adopted(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient
) -> None:
    legacy.metadata(ACME)
    rows.update_item(
        TableName=TABLE,
        Key={"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}},
        UpdateExpression="SET UpdateAt = :time, InboundQueueUrl = :url REMOVE InboundQueueArn",
        ExpressionAttributeValues={":time": {"S": "2020-08-31T18:02:16+02:00"}, ":url": {"S": LEGACY_QUEUE.url}},
    )
    assert adopt(unlisted, seen_as(unlisted), stack_arn())
    assert row_of(rows, "METADATA")["UpdatedAt"] == "2020-08-31T16:02:16.000Z"
    assert metadata_of(table).stack_id == stack_arn()


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_an_audit_of_berth_stays_as_it_is_beside_one_of_the_earlier_system_about_the_same_operation_and_version(
    table: Table, legacy: Legacy, unlisted: UnlistedTenants, rows: DynamoDBClient
) -> None:
    legacy.metadata(ACME)
    earlier = {"pk": "TENANT_ID#acme", "sk": "AUDIT#CREATE", "Version": VERSION, "Status": "Started"}
    earlier |= {"Execution": "one", "UpdatedAt": "2020-08-31T16:02:16.808Z"}
    rows.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in earlier.items()})
    take(table, RUN)
    table.fail(RUN, QUEUE_TABOO, LATER)
    berths = row_of(rows, f"AUDIT#CREATE#{VERSION}")
    seen = seen_as(unlisted)
    assert seen.earlier == {AuditKey(ACME, Operation.CREATE, None)}
    assert adopt(unlisted, seen, stack_arn())
    assert row_of(rows, f"AUDIT#CREATE#{VERSION}") == berths
    assert row_of(rows, "AUDIT#CREATE")["Attempt"] == "1"


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
@pytest.mark.parametrize("left", [{"OutboundQueueArn": ""}, {"OutboundQueueArn": "", "OutboundQueueUrl": ""}], ids=str)
def test_attributes_of_a_missing_outbound_queue_are_removed(
    rows: DynamoDBClient, legacy: Legacy, unlisted: UnlistedTenants, left: dict[str, str]
) -> None:
    legacy.metadata(ACME)
    key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": "METADATA"}}
    row = rows.get_item(TableName=TABLE, Key=key)["Item"]
    row = {name: value for name, value in row.items() if not name.startswith("Outbound")}
    rows.put_item(TableName=TABLE, Item=row | {name: {"S": value} for name, value in left.items()})
    assert adopt(unlisted, seen_as(unlisted))
    assert not [name for name in row_of(rows, "METADATA") if name.startswith("Outbound")]


@pytest.mark.parametrize("kind", ["moto"], indirect=True)
def test_a_tenant_with_more_operations_than_fit_a_transaction_is_adopted(
    legacy: Legacy, unlisted: UnlistedTenants, table: Table
) -> None:
    legacy.metadata(ACME)
    legacy.audit(Operation.DELETE, Status.SUCCESS, None)
    for number in range(120):
        legacy.audit(Operation.UPDATE, Status.STARTED if number == 119 else Status.SUCCESS, f"0.2.{number:03}")
    assert adopt(unlisted, seen_as(unlisted))
    audits = {audit.version: audit for audit in table.audits(ACME)}
    assert audits["0.2.119"].status is Status.FAILURE
    assert audits[None].revived_by == ADOPTED
    assert seen_as(unlisted).listed
