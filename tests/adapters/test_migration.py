"""The migration of an earlier system's rows in DynamoDB: finding them by a scan, and writing them as Berth's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any, cast

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.migration import ADOPTED, Migration, Plan
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.history import RecordedChange
from orchestrator.tenants.listings import Relisting
from orchestrator.tenants.names import Names
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Operation, Queue, Request, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.writes import AuditKey
from tests.adapters.conftest import TABLE, legacy_in_dynamodb
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
    WholeTable,
    create,
    delete,
    everything,
    listed_tenants,
    metadata_of,
    publish,
    states,
)
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    QUEUE_TABOO,
    VERSION,
    FakeClock,
    FakeQueues,
    FakeStacks,
    a_run,
    an_attempt,
    take,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

GLOBEX = TenantId.parse("globex")
ADA = Request(by="berth adopt, requested by ada", reason="Ticket 4711")
STACK = "arn:aws:cloudformation:eu-west-1:000000000000:stack/old-tenant-acme/1"
WHEN = "2020-08-31T16:02:16.808Z"


@dataclass
class PagedClient:
    """DynamoDB, with few rows on a page."""

    client: DynamoDBClient
    limit: int

    def __getattr__(self, name: str) -> Any:
        return getattr(self.client, name)

    def scan(self, **request: Any) -> Any:
        return self.client.scan(**request, Limit=self.limit)


@dataclass
class Before:
    """A table with rows of the earlier system, and its stacks."""

    client: DynamoDBClient
    stacks: FakeStacks = field(default_factory=FakeStacks)
    pauses: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.table = WholeTable(self.client, TABLE)
        self.legacy: Legacy = legacy_in_dynamodb(self.client)
        self.stacks.names = Names("Berth", ("old-tenant-",))

    def migration(self, limit: int = 1_000) -> Migration:
        client, clock = cast("DynamoDBClient", PagedClient(self.client, limit)), FakeClock(LATER)
        return Migration(client, TABLE, self.stacks, self.stacks.stack_with, FakeQueues(), clock, self.pauses.append)

    def plans(self, limit: int = 1_000) -> dict[str, Plan]:
        return {plan.tenant_id: plan for plan in self.migration(limit).find(lambda _line: None)}

    def adopt(self) -> str | None:
        """Adopt acme. The problem, if there is one."""
        return self.migration().adopt(self.plans()["acme"], ADA)

    def put(self, sort_key: str, tenant: str = "acme", **texts: str) -> None:
        row = {"pk": f"TENANT_ID#{tenant}", "sk": sort_key, **texts}
        self.client.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})

    def row(self, sort_key: str) -> dict[str, Any]:
        key = {"pk": {"S": "TENANT_ID#acme"}, "sk": {"S": sort_key}}
        item = self.client.get_item(TableName=TABLE, Key=key)["Item"]
        return {name: next(iter(value.values())) for name, value in item.items() if name not in key}

    def has_stack(self, queue: Queue = LEGACY_QUEUE) -> None:
        self.stacks.plant(Stack(STACK, "CREATE_COMPLETE", "", None, queue, None, ours=False))


@pytest.fixture
def before(dynamodb: DynamoDBClient) -> Before:
    return Before(dynamodb)


@pytest.fixture
def acme(before: Before) -> Before:
    """A tenant in service, as the earlier system has left it."""
    before.legacy.metadata(ACME)
    before.legacy.audit(Operation.CREATE, Status.SUCCESS, None)
    before.has_stack()
    return before


# Finding


def test_tenants_of_berth_are_not_found(before: Before) -> None:
    create(before.table)
    delete(before.table, GLOBEX)
    take(before.table, UPDATE)
    before.table.describe(TenantId("asked"), labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt())
    assert before.plans() == {}


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_each_tenant_is_found_once_on_pages_of_any_size(acme: Before, limit: int) -> None:
    create(acme.table, TenantId("listed"))
    acme.legacy.audit(Operation.DELETE, Status.FAILURE, None)
    acme.legacy.metadata(GLOBEX)
    migration = acme.migration(limit)
    assert sorted(plan.tenant_id for plan in migration.find(lambda _line: None)) == ["acme", "globex"]
    assert migration.scanned >= 5
    assert len(acme.pauses) >= 5 // limit - 1
    assert all(0 < pause < 0.1 for pause in acme.pauses)


def test_a_tenant_in_the_index_keeps_its_stack_although_a_row_that_is_read_first_claims_it(acme: Before) -> None:
    acme.put("METADATA", InboundQueueArn=LEGACY_QUEUE.arn, InboundQueueUrl=LEGACY_QUEUE.url, Version="1", StackId=STACK)
    claims = acme.row("METADATA")
    acme.put("METADATA", tenant="globex", ListingKey="TENANTS#READY", ListingSort="1", **claims)
    migration = acme.migration()
    (plan,) = migration.find(lambda _line: None)
    assert (plan.tenant_id, plan.seen, "belongs to tenant globex" in plan.detail) == ("acme", None, True)
    assert migration.served[LEGACY_QUEUE.arn] == "globex"


def test_the_progress_is_shown_on_long_work(before: Before, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(250):
        before.put("AUDIT#CREATE", tenant=f"t{number}", Status="Failure", Execution="x", UpdatedAt=WHEN)
    shown: list[str] = []
    migration = before.migration()
    monkeypatch.setattr(migration, "scanned", 24_900)
    list(migration.find(shown.append))
    assert shown == ["Read 20000 rows", "Checked 100 of 250 tenants", "Checked 200 of 250 tenants"]


def test_the_rows_are_read_with_what_tells_them_apart(acme: Before) -> None:
    acme.legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
    take(acme.table, UPDATE)
    acme.table.fail(UPDATE, QUEUE_TABOO, LATER)
    seen = acme.migration().read(ACME)
    assert (seen.metadata, list(seen.audits.values())) == (acme.table.metadata(ACME), acme.table.audits(ACME))
    assert seen.earlier == {AuditKey(ACME, Operation.CREATE, None), AuditKey(ACME, Operation.UPDATE, "0.1.18")}
    assert (len(seen.audits), seen.listed, seen.lock) == (3, True, None)


ODD_ROWS: dict[str, dict[str, str]] = {
    "no status": {"sk": "AUDIT#CREATE"},
    "another operation": {"sk": "AUDIT#MOVE", "Status": "Success", "Execution": "x", "UpdatedAt": WHEN},
    "no time": {"sk": "METADATA", "CreatedAt": "yesterday"},
    "a time before all times": {"sk": "METADATA", "Version": "1", "UpdateAt": "0001-01-01T00:00:00+14:00"},
    "labels that are none": {"sk": "METADATA", "Version": "1", "Labels": "gold"},
    "a request that is none": {
        "sk": "AUDIT#UPDATE",
        "Status": "Started",
        "Execution": "x",
        "UpdatedAt": WHEN,
        "Request": "[" * 100_000,
    },
}


@pytest.mark.parametrize("row", ODD_ROWS.values(), ids=ODD_ROWS)
def test_an_unreadable_row_is_reported_and_the_others_are_adopted(before: Before, row: dict[str, str]) -> None:
    before.legacy.metadata(GLOBEX)
    before.has_stack()
    before.put(row["sk"], **{name: text for name, text in row.items() if name != "sk"})
    found = before.plans()
    assert (found["acme"].seen, "TENANT_ID#acme" in found["acme"].detail) == (None, True)
    assert before.migration().adopt(found["globex"], ADA) is None


def test_a_tenant_id_that_is_none_is_reported(before: Before) -> None:
    before.put("METADATA", tenant="-no id-", Version="1")
    assert before.plans()["-no id-"].seen is None


def test_values_that_dynamodb_refuses_are_reported(acme: Before, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, migration = acme.plans()["acme"], acme.migration()
    assert plan.metadata is not None
    too_long = replace(plan, metadata=replace(plan.metadata, version="1" * 500_000))
    monkeypatch.setattr(migration, "_plan", lambda _tenant: too_long)
    assert "ValidationException" in (migration.adopt(too_long, ADA) or "")


def test_a_denied_write_ends_the_adoption(acme: Before, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, migration = acme.plans()["acme"], acme.migration()

    def denied(_writes: object) -> bool:
        raise ClientError({"Error": {"Code": "AccessDeniedException", "Message": "no"}}, "TransactWriteItems")

    monkeypatch.setattr(migration, "apply", denied)
    with pytest.raises(ClientError, match="AccessDenied"):
        migration.adopt(plan, ADA)


def test_a_stack_that_was_deleted_since_the_plan_is_not_recorded(acme: Before) -> None:
    plan = acme.plans()["acme"]
    acme.stacks.all.clear()
    assert acme.migration().adopt(plan, ADA) == "the tenant has changed meanwhile"


# Adopting


def test_rows_of_the_earlier_system_are_rewritten_as_berths(acme: Before) -> None:
    assert acme.adopt() is None
    assert acme.row("METADATA") == {
        "CreatedAt": WHEN,
        "UpdatedAt": WHEN,
        "Version": LEGACY_VERSION,
        "InboundQueueArn": LEGACY_QUEUE.arn,
        "InboundQueueUrl": LEGACY_QUEUE.url,
        "OutboundQueueArn": LEGACY_OUTBOUND_QUEUE.arn,
        "OutboundQueueUrl": LEGACY_OUTBOUND_QUEUE.url,
        "StackId": STACK,
        "State": "READY",
        "ListingKey": "TENANT#READY",
        "ListingSort": f"{LEGACY_VERSION}#acme",
    }
    audit = {"UpdatedAt": WHEN, "Status": "Success", "Execution": "arn:legacy", "Attempt": "1"}
    assert acme.row("AUDIT#CREATE") == audit
    assert acme.plans() == {}
    (listed,) = listed_tenants(acme.table)
    assert (listed.state, listed.version, listed.queue) == (TenantState.READY, LEGACY_VERSION, LEGACY_QUEUE)
    assert list(acme.table.relistings(since=LATER)) == [Relisting(ACME, LATER)]


def test_the_history_has_the_adoption_and_its_reason(before: Before) -> None:
    before.legacy.metadata(ACME)
    before.legacy.audit(Operation.UPDATE, Status.STARTED, "0.1.18")
    before.has_stack()
    before.adopt()
    (change,) = before.table.history(ACME)
    assert isinstance(change, RecordedChange)
    assert (change.kind, change.at, change.request, change.altered) == ("ADOPT", LATER, ADA, False)
    assert (change.before["stackId"], change.before["state"]) == (None, None)
    assert (change.after["stackId"], change.after["state"]) == (STACK, "UPDATE_FAILED")
    assert change.after["closed"] == ["UPDATE 0.1.18: Failure"]


def test_a_tenant_is_adopted_once(acme: Before) -> None:
    plan = acme.plans()["acme"]
    assert acme.migration().adopt(plan, ADA) is None
    once = everything(acme.table)
    assert acme.migration().adopt(plan, ADA) == "the tenant has changed meanwhile"
    assert everything(acme.table) == once


MEDDLERS: dict[str, Callable[[Before], object]] = {
    "an update that begins": lambda there: take(there.table, UPDATE),
    "a delete that begins": lambda there: take(there.table, DELETE),
    "an update that succeeds": lambda there: (take(there.table, UPDATE), publish(there.table, UPDATE)),
    "a pin": lambda there: there.table.describe(ACME, labels=None, pin=Pin("1.0.0"), request=EXPLICIT, at=LATER),
    "labels": lambda there: there.table.describe(ACME, labels={"a": "b"}, pin=Pin(), request=EXPLICIT, at=LATER),
    "a create that is asked for": lambda there: there.table.describe(
        ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt()
    ),
    "its stack, which says that it has a queue": lambda there: there.table.record_queue(
        ACME, stack_id="stack-1", queue=Queue("arn:new", "https://new"), at=LATER
    ),
    "the earlier system": lambda there: there.legacy.audit(Operation.CREATE, Status.FAILURE, None),
}


@pytest.mark.parametrize("is_seen", [True, False], ids=["before it is read again", "after it is read again"])
@pytest.mark.parametrize("meddle", MEDDLERS.values(), ids=MEDDLERS)
def test_a_tenant_that_changed_since_is_not_adopted(
    acme: Before, meddle: Callable[[Before], object], *, is_seen: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan, migration = acme.plans()["acme"], acme.migration()
    meddle(acme)
    changed = everything(acme.table)
    if not is_seen:
        monkeypatch.setattr(migration, "read", lambda _tenant: plan.seen)
    assert migration.adopt(plan, ADA) is not None
    assert everything(acme.table) == changed


def test_a_tenant_that_a_failed_delete_has_listed_keeps_berths_audits(acme: Before) -> None:
    take(acme.table, DELETE)
    acme.table.fail(DELETE, QUEUE_TABOO, LATER, restore=True)
    audits = list(acme.table.audits(ACME))
    assert acme.adopt() is None
    assert metadata_of(acme.table).stack_id == STACK
    assert list(acme.table.audits(ACME)) == audits
    assert states(acme.table) == [TenantState.READY]


def test_an_audit_of_berth_stays_as_it_is_beside_one_of_the_same_operation_and_version(acme: Before) -> None:
    acme.put("AUDIT#CREATE", Version=VERSION, Status="Started", Execution="one", UpdatedAt=WHEN)
    take(acme.table, RUN)
    acme.table.fail(RUN, QUEUE_TABOO, LATER)
    berths = acme.row(f"AUDIT#CREATE#{VERSION}")
    assert acme.adopt() is None
    assert acme.row(f"AUDIT#CREATE#{VERSION}") == berths
    assert acme.row("AUDIT#CREATE")["Attempt"] == "1"


@pytest.mark.parametrize("sk", ["AUDIT#CREATE#", "AUDIT#DELETE#0.0.9", "AUDIT#UPDATE#0.0.9#again"])
def test_an_audit_with_an_unusual_key_is_numbered_in_place(acme: Before, sk: str) -> None:
    acme.put(sk, Status="Failure", Execution="arn:other", UpdatedAt=WHEN)
    assert acme.adopt() is None
    assert acme.row(sk)["Attempt"] == "1"
    assert {audit.execution for audit in acme.table.audits(ACME)} == {"arn:legacy", "arn:other"}
    assert acme.plans() == {}


def test_a_tenant_without_a_queue_is_listed(before: Before) -> None:
    before.legacy.audit(Operation.CREATE, Status.STARTED, None)
    assert before.adopt() is None
    (audit,) = before.table.audits(ACME)
    assert (audit.status, audit.execution, audit.updated_at) == (Status.FAILURE, "arn:legacy", LEGACY_TIME)
    (listed,) = listed_tenants(before.table)
    assert (listed.state, listed.root_cause, listed.version) == (TenantState.FAILED, audit.root_cause, None)
    assert take(before.table, RUN) is None
    publish(before.table)
    assert [audit.version for audit in before.table.audits(ACME)] == [None, VERSION]


def test_a_deleted_tenant_is_listed_as_deleted(before: Before) -> None:
    before.put("METADATA", CreatedAt=WHEN, UpdateAt=WHEN)
    before.legacy.audit(Operation.CREATE, Status.STARTED, None)
    before.legacy.audit(Operation.DELETE, Status.SUCCESS, None)
    assert before.adopt() is None
    assert (states(before.table), before.table.metadata(ACME)) == ([TenantState.DELETED], None)
    assert before.table.count_tenants() == 0
    assert before.plans() == {}


@pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE, Status.STARTED])
def test_a_delete_of_a_tenant_in_service_is_superseded(acme: Before, status: Status) -> None:
    acme.legacy.audit(Operation.DELETE, status, None)
    assert acme.adopt() is None
    assert states(acme.table) == [TenantState.READY]
    assert [audit.revived_by for audit in acme.table.audits(ACME)] == [None, ADOPTED]


@pytest.mark.parametrize(("version", "is_still_deleted"), [("0.1.18", True), (None, False)])
def test_a_tenant_that_berth_has_deleted_is_listed_once_after_a_later_create_is_closed(
    before: Before, version: str | None, *, is_still_deleted: bool
) -> None:
    """Only a create without a version, later than the delete, has brought the tenant back."""
    delete(before.table, at=LEGACY_TIME - timedelta(days=1))
    before.legacy.audit(Operation.CREATE, Status.STARTED, version)
    assert before.adopt() is None
    (state,) = states(before.table)
    assert (state is TenantState.DELETED) is is_still_deleted
    assert before.plans() == {}


def test_attributes_of_the_earlier_system_that_mean_nothing_are_removed(acme: Before) -> None:
    row = {name: text for name, text in acme.row("METADATA").items() if not name.startswith("Outbound")}
    acme.put("METADATA", **row, OutboundQueueArn="", RootCause="boom")
    assert acme.adopt() is None
    assert not {"OutboundQueueArn", "RootCause", "UpdateAt"} & set(acme.row("METADATA"))


def test_a_time_in_another_format_is_adopted(acme: Before) -> None:
    acme.put("METADATA", **acme.row("METADATA") | {"UpdateAt": "2020-08-31T18:02:16+02:00"})
    assert acme.adopt() is None
    assert acme.row("METADATA")["UpdatedAt"] == "2020-08-31T16:02:16.000Z"


def test_a_tenant_with_more_operations_than_fit_a_transaction_is_adopted(acme: Before) -> None:
    acme.legacy.audit(Operation.DELETE, Status.SUCCESS, None)
    for number in range(120):
        acme.legacy.audit(Operation.UPDATE, Status.STARTED if number == 119 else Status.SUCCESS, f"0.2.{number:03}")
    assert acme.adopt() is None
    audits = {(audit.operation, audit.version): audit for audit in acme.table.audits(ACME)}
    assert audits[Operation.UPDATE, "0.2.119"].status is Status.FAILURE
    assert audits[Operation.DELETE, None].revived_by == ADOPTED
    assert acme.plans() == {}


def test_an_adopted_tenant_has_operations_as_any_other(acme: Before) -> None:
    acme.adopt()
    assert take(acme.table, UPDATE) is None
    assert states(acme.table) == [TenantState.UPDATING]
    publish(acme.table, UPDATE, version=NEXT_VERSION)
    assert metadata_of(acme.table).outbound_queue is None
    take(acme.table, DELETE)
    acme.table.remove(DELETE, at=LATER_STILL)
    assert states(acme.table) == [TenantState.DELETED]


def test_a_stack_that_is_recorded_in_the_table_is_not_given_to_another_tenant(acme: Before) -> None:
    acme.adopt()
    acme.legacy.metadata(GLOBEX)
    assert "belongs to tenant acme" in acme.plans()["globex"].detail
    take(acme.table, a_run(tenant=GLOBEX))
    assert "CREATE is running" in acme.plans()["globex"].detail
