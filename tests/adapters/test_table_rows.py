"""The rows in DynamoDB: their keys and attribute names never change."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb import keys
from orchestrator.common.errors import LostOwnership, Throttled, Unsettled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.ports import Pin, Publication
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.adapters.conftest import TABLE, legacy_in_dynamodb
from tests.adapters.tables import WholeTable, create, publish
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_release,
    a_resource,
    a_run,
    an_attempt,
    take,
)
from tests.present import present

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RUN = a_run()
EXECUTION = RUN.execution
AT = "2026-11-16T12:00:00.000Z"
ONE_SECOND_LATER = NOON + timedelta(seconds=1)
METADATA = ("TENANT_ID#acme", "METADATA")
ASKED_FOR = {"Request": json.dumps({"by": EXPLICIT.by, "explicit": True})}
ROOT_CAUSE = {
    "M": {
        "Resource": {"S": "InboundQueue"},
        "Type": {"S": "AWS::SQS::Queue"},
        "Reason": {"S": QUEUE_TABOO.reason},
    }
}

Row = dict[str, Any]


@pytest.fixture
def table(dynamodb: DynamoDBClient) -> WholeTable:
    return WholeTable(dynamodb, TABLE)


def rows(dynamodb: DynamoDBClient) -> dict[tuple[str, str], Row]:
    """Every row by its keys, without types where they are text."""
    items: list[Row] = dynamodb.scan(TableName=TABLE)["Items"]
    plain = [{name: value.get("S", value) for name, value in item.items()} for item in items]
    return {(row.pop("pk"), row.pop("sk")): row for row in plain}


def history_row(dynamodb: DynamoDBClient, status: Status) -> tuple[str, str]:
    """The key of the one row that says so of the run, whatever its digest."""
    (found,) = [key for key in rows(dynamodb) if key[1].startswith(f"{AT}#{RUN.attempt.name}#{status}#")]
    return found


def listing(row: Row) -> tuple[str | None, str | None, str | None]:
    return row.get("State"), row.get("ListingKey"), row.get("ListingSort")


def test_begin_writes_lock_audit_history_and_state(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    operation = {"Operation": "CREATE", "Version": VERSION, "Attempt": {"N": "1"}, "Execution": EXECUTION}
    assert rows(dynamodb) == {
        ("TENANT_ID#acme", "LOCK"): {**operation, **ASKED_FOR, "StartedAt": AT},
        ("TENANT_ID#acme", "AUDIT#CREATE#0.1.0"): {
            "Status": "Started",
            "Execution": EXECUTION,
            "UpdatedAt": AT,
            "Version": VERSION,
            "Attempt": {"N": "1"},
            "ListingKey": "OPERATION#Started",
            "ListingSort": f"{AT}#acme",
            "AskedAt": AT,
            **ASKED_FOR,
        },
        METADATA: {
            "UpdatedAt": AT,
            "State": "PROVISIONING",
            "ListingKey": "TENANT#PROVISIONING",
            "ListingSort": "#acme",
            "CreatedBy": EXPLICIT.by,
            "Tier": "standard",
        },
        history_row(dynamodb, Status.STARTED): {**operation, "Status": "Started", "At": AT, **ASKED_FOR},
        ("RELISTED", f"{AT}#acme"): {"ttl": {"N": str(int((NOON + timedelta(days=1)).timestamp()))}},
    }


def test_foreign_rows_among_the_changes_of_the_index_hide_no_change(
    table: WholeTable, dynamodb: DynamoDBClient
) -> None:
    take(table, RUN)
    for sort_key in (f"{AT}#", f"{AT}#Not a tenant", "later#acme", "z"):
        dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": "RELISTED"}, "sk": {"S": sort_key}})
    assert [each.tenant for each in table.relistings(since=NOON)] == [ACME]


def test_a_resource_that_created_a_tenant_is_stored_in_parts(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    table.publish(RUN, Publication("stack-1", QUEUE, VERSION, None, a_resource()), at=NOON)
    assert rows(dynamodb)[METADATA]["CreatedBy"] == {
        "M": {"StackId": {"S": str(a_resource().stack)}, "LogicalId": {"S": "Queue"}}
    }


def test_publish_writes_metadata_and_success_and_removes_the_lock(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    table.publish(RUN, Publication("stack-1", QUEUE, VERSION, "fingerprint", "ada"), at=NOON)
    written = rows(dynamodb)
    assert written[METADATA] == {
        "CreatedAt": AT,
        "UpdatedAt": AT,
        "Version": VERSION,
        "InboundQueueArn": QUEUE.arn,
        "InboundQueueUrl": QUEUE.url,
        "StackId": "stack-1",
        "Deployed": "fingerprint",
        "CreatedBy": "ada",
        "Tier": "standard",
        "State": "READY",
        "ListingKey": "TENANT#READY",
        "ListingSort": "0.1.0#acme",
    }
    assert written["TENANT_ID#acme", "AUDIT#CREATE#0.1.0"] == {
        "Status": "Success",
        "Execution": EXECUTION,
        "UpdatedAt": AT,
        "Version": VERSION,
        "Attempt": {"N": "1"},
        "AskedAt": AT,
        **ASKED_FOR,
    }
    assert ("TENANT_ID#acme", "LOCK") not in written
    assert written[history_row(dynamodb, Status.SUCCESS)]["Status"] == "Success"


def test_fail_writes_the_root_cause_into_audit_history_and_metadata(
    table: WholeTable, dynamodb: DynamoDBClient
) -> None:
    take(table, RUN)
    table.fail(RUN, QUEUE_TABOO, NOON)
    written = rows(dynamodb)
    audit = written["TENANT_ID#acme", "AUDIT#CREATE#0.1.0"]
    assert (audit["Status"], audit["RootCause"]) == ("Failure", ROOT_CAUSE)
    assert "ListingKey" not in audit
    assert written[history_row(dynamodb, Status.FAILURE)]["RootCause"] == ROOT_CAUSE
    assert written[METADATA] == {
        "UpdatedAt": AT,
        "State": "FAILED",
        "ListingKey": "TENANT#FAILED",
        "ListingSort": "#acme",
        "CreatedBy": EXPLICIT.by,
        "Tier": "standard",
        "RootCause": ROOT_CAUSE,
    }


def test_a_delete_stores_who_withdrew_the_queue_until_it_is_restored(
    table: WholeTable, dynamodb: DynamoDBClient
) -> None:
    create(table)
    before = rows(dynamodb)[METADATA]
    run = a_run(operation=Operation.DELETE)
    take(table, run)
    assert rows(dynamodb)[METADATA] == {
        **before,
        "WithdrawnBy": run.execution,
        "State": "DELETING",
        "ListingKey": "TENANT#DELETING",
    }
    table.fail(run, QUEUE_TABOO, NOON + timedelta(minutes=1), restore=True)
    assert rows(dynamodb)[METADATA] == before


def test_a_deleted_tenant_has_only_audit_and_history(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    create(table)
    run = a_run(operation=Operation.DELETE, started_at=ONE_SECOND_LATER)
    take(table, run)
    table.remove(run, at=ONE_SECOND_LATER)
    written = rows(dynamodb)
    assert {sk for pk, sk in written if pk == "TENANT_ID#acme"} == {"AUDIT#CREATE#0.1.0", "AUDIT#DELETE"}
    assert len([pk for pk, _ in written if pk == "HISTORY#acme"]) == 4
    audit = written["TENANT_ID#acme", "AUDIT#DELETE"]
    assert (audit["Status"], audit["ListingKey"], audit["ListingSort"]) == ("Success", "TENANT#DELETED", "#acme")


def test_a_superseded_delete_names_its_successor_and_is_not_listed(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    gone = a_run(operation=Operation.DELETE)
    take(table, gone)
    table.remove(gone, at=NOON)
    take(table, RUN)
    audit = rows(dynamodb)["TENANT_ID#acme", "AUDIT#DELETE"]
    assert audit["RevivedBy"] == EXECUTION
    assert not {"ListingKey", "ListingSort"} & set(audit)


def test_labels_and_pin_are_kept_with_the_metadata(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    take(table, a_run(request=Request(labels={"tier": "gold"}, pin=VERSION)))
    row = rows(dynamodb)[METADATA]
    assert (row["Labels"], row["PinnedVersion"]) == ({"M": {"tier": {"S": "gold"}}}, VERSION)
    table.describe(ACME, labels={}, pin=Pin(lift=True), request=EXPLICIT, at=NOON)
    row = rows(dynamodb)[METADATA]
    assert row["Labels"] == {"M": {}}
    assert "PinnedVersion" not in row


@pytest.mark.parametrize(
    ("operation", "stays"), [(Operation.CREATE, True), (Operation.UPDATE, False)], ids=["create", "update"]
)
def test_the_outbound_queues_columns_are_cleared_by_an_update(
    table: WholeTable, dynamodb: DynamoDBClient, operation: Operation, stays: bool
) -> None:
    legacy_in_dynamodb(dynamodb).metadata(ACME)
    run = a_run(operation=operation)
    take(table, run)
    assert {"OutboundQueueArn", "OutboundQueueUrl"} <= set(rows(dynamodb)[METADATA])
    publish(table, run)
    left = {"OutboundQueueArn", "OutboundQueueUrl"} & set(rows(dynamodb)[METADATA])
    assert len(left) == (2 if stays else 0)


def test_a_vanished_queue_leaves_only_its_times_version_creator_and_tier(
    table: WholeTable, dynamodb: DynamoDBClient
) -> None:
    create(table)
    table.forget_queue(ACME, stack_id="stack-1")
    row = rows(dynamodb)[METADATA]
    assert listing(row) == ("UNKNOWN", "TENANT#UNKNOWN", "#acme")
    kept = {"GoneStackId", "CreatedBy", "LastVersion", "Tier"}
    assert set(row) == {"CreatedAt", "UpdatedAt", "State", "ListingKey", "ListingSort"} | kept


def test_history_is_append_only(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    """A transaction that would replace a row of history fails as a whole."""
    take(table, RUN)
    pk, sk = history_row(dynamodb, Status.STARTED)
    for row in rows(dynamodb):
        dynamodb.delete_item(TableName=TABLE, Key={"pk": {"S": row[0]}, "sk": {"S": row[1]}})
    dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": pk}, "sk": {"S": sk}, "Told": {"S": "before"}})
    with pytest.raises(LostOwnership):
        take(table, RUN)
    assert rows(dynamodb) == {(pk, sk): {"Told": "before"}}


def test_a_concurrent_description_is_recorded_as_the_state_before(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    create(table)
    table.describe(ACME, labels=None, pin=Pin(NEXT_VERSION), request=EXPLICIT, at=NOON)
    said: Any = {"labels": None, "request": EXPLICIT, "at": ONE_SECOND_LATER}

    def say_it_first(**_: object) -> None:
        dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", say_it_first)
        table.describe(ACME, pin=Pin(VERSION), **said)

    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", say_it_first)
    assert table.describe(ACME, pin=Pin(lift=True), **said)
    pins = {
        (entry.before["pinnedVersion"], entry.after["pinnedVersion"])
        for entry in table.history(ACME)
        if isinstance(entry, RecordedChange)
    }
    assert pins == {(None, NEXT_VERSION), (NEXT_VERSION, VERSION), (VERSION, None)}
    assert "PinnedVersion" not in rows(dynamodb)[METADATA]


def test_a_description_that_always_conflicts_counts_as_throttled(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    create(table)
    versions = iter(range(1_000))

    def say_it_first(**_: object) -> None:
        dynamodb.update_item(
            TableName=TABLE,
            Key={"pk": {"S": METADATA[0]}, "sk": {"S": METADATA[1]}},
            UpdateExpression="SET PinnedVersion = :other",
            ExpressionAttributeValues={":other": {"S": f"0.0.{next(versions)}"}},
        )

    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", say_it_first)
    before = len(table.history(ACME))
    with pytest.raises(Unsettled, match="Send the request again"):
        table.describe(ACME, labels=None, pin=Pin(VERSION), request=EXPLICIT, at=NOON)
    dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", say_it_first)
    assert len(table.history(ACME)) == before


class TestAltered:
    """The key of a row of history has a digest of all that the row says."""

    def overwrite(self, dynamodb: DynamoDBClient, **changes: Any) -> None:
        """Overwrite the row as an attacker with write access would."""
        (row,) = dynamodb.query(
            TableName=TABLE,
            KeyConditionExpression="pk = :pk",
            ExpressionAttributeValues={":pk": {"S": "HISTORY#acme"}},
        )["Items"]
        item = {name: value for name, value in (row | changes).items() if value}
        dynamodb.put_item(TableName=TABLE, Item=item)

    def test_an_unchanged_row_is_not_altered(self, table: WholeTable, dynamodb: DynamoDBClient) -> None:
        take(table, RUN)
        self.overwrite(dynamodb)
        (entry,) = table.history(ACME)
        assert not entry.altered

    @pytest.mark.parametrize(
        "changes",
        [
            {"Status": {"S": "Success"}},
            {"Request": {"S": '{"by": "eve"}'}},
            {"Request": None},
            {"RequestedBy": {"S": "eve"}},
            {"At": {"S": "2020-01-01T00:00:00.000Z"}},
            {"More": {"S": "than before"}},
        ],
        ids=str,
    )
    def test_an_overwritten_row_is_altered(
        self, table: WholeTable, dynamodb: DynamoDBClient, changes: dict[str, Any]
    ) -> None:
        take(table, RUN)
        self.overwrite(dynamodb, **changes)
        (entry,) = table.history(ACME)
        assert entry.altered

    def test_an_overwritten_description_is_altered(self, table: WholeTable, dynamodb: DynamoDBClient) -> None:
        table.describe(ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt())
        assert [entry.altered for entry in table.history(ACME)] == [False]
        self.overwrite(dynamodb, After={"S": '{"labels": {}, "pinnedVersion": null}'})
        assert [entry.altered for entry in table.history(ACME)] == [True]

    @pytest.mark.parametrize(
        "changes",
        [
            dict.fromkeys(("At", "Operation", "Version", "Attempt", "Status", "Execution", "Request")),
            {"At": None},
            {"Status": None},
            {"Operation": {"S": "CONQUER"}},
            {"At": {"S": "yesterday"}},
            {"At": {"N": "1"}},
            {"Attempt": {"S": "1"}},
            {"Request": {"S": "{"}},
            {"Request": {"S": "[" * 100_000}},
            {"Request": {"S": '{"by": 5}'}},
            {"Request": {"S": '{"reason": {}}'}},
            {"Request": {"S": '{"askedAt": "0001-01-01T00:00:00+14:00"}'}},
            {"Request": {"S": '{"resource": {"stackId": "a", "logicalId": "b"}}'}},
            {"RootCause": {"M": {}}},
            {"Change": {"S": "DESCRIBE"}},
            {"Change": {"S": "DESCRIBE"}, "Before": {"S": "[]"}, "After": {"S": '"none"'}},
        ],
        ids=lambda changes: str(changes)[:80],
    )
    def test_an_unreadable_row_is_altered_and_hides_no_other(
        self, table: WholeTable, dynamodb: DynamoDBClient, changes: dict[str, Any]
    ) -> None:
        take(table, RUN)
        self.overwrite(dynamodb, **changes)
        assert table.fail(RUN, QUEUE_TABOO, ONE_SECOND_LATER)
        unreadable, readable = table.history(ACME)
        assert unreadable == UnreadableEntry(NOON)
        assert unreadable.altered
        assert isinstance(readable, HistoryEntry)
        assert (readable.status, readable.altered) == (Status.FAILURE, False)

    def test_a_row_that_never_was_an_entry_hides_no_other(self, table: WholeTable, dynamodb: DynamoDBClient) -> None:
        take(table, RUN)
        for sk in ("zzz", "0001-01-01T00:00:00+14:00#"):
            dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": "HISTORY#acme"}, "sk": {"S": sk}})
        before, entry, after = table.history(ACME)
        assert before == after == UnreadableEntry(None)
        assert not entry.altered

    def test_two_entries_of_one_moment_have_different_keys(self, table: WholeTable, dynamodb: DynamoDBClient) -> None:
        for number, cause in enumerate(("one", "another"), 1):
            run = a_run(number)
            assert table.fail(run, replace(QUEUE_TABOO, reason=cause), NOON)
        assert len({sk for pk, sk in rows(dynamodb) if pk == "HISTORY#acme"}) == 2


def test_a_run_that_never_began_does_not_change_a_tenant_that_was_just_locked(
    table: WholeTable, dynamodb: DynamoDBClient
) -> None:
    other = a_run(operation=Operation.UPDATE, version=NEXT_VERSION, started_at=ONE_SECOND_LATER)

    def take_it_first(**_: object) -> None:
        dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", take_it_first)
        take(table, other)

    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", take_it_first)
    assert not table.fail(RUN, QUEUE_TABOO, NOON)
    # As the update has it: of a tenant that has nothing to update.
    assert listing(rows(dynamodb)[METADATA])[0] == "UNKNOWN"
    assert table.fail(RUN, QUEUE_TABOO, NOON)
    assert listing(rows(dynamodb)[METADATA])[0] == "UNKNOWN"
    assert rows(dynamodb)["TENANT_ID#acme", "AUDIT#CREATE#0.1.0"]["Status"] == "Failure"


def test_a_create_does_not_begin_while_another_is_requested(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    """It is begun again, and knows of the other then: a delete that follows must find that it was asked for."""
    other = a_run(version=NEXT_VERSION).attempt

    def ask_for_it_first(**_: object) -> None:
        dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", ask_for_it_first)
        table.describe(ACME, labels=None, pin=Pin(NEXT_VERSION), request=EXPLICIT, at=NOON, asked_for=other)

    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", ask_for_it_first)
    with pytest.raises(LostOwnership):
        take(table, RUN)
    assert table.lock(ACME) is None
    assert take(table, RUN) is None
    metadata = present(table.metadata(ACME))
    assert metadata.asked_for == other


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.forget_queue(ACME, stack_id="stack-1"),
        lambda table: table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=NOON + timedelta(minutes=1)),
        lambda table: take(table, a_run(operation=Operation.UPDATE, version=NEXT_VERSION)),
    ],
    ids=["forgotten", "recorded", "taken"],
)
def test_a_correction_does_not_overwrite_a_concurrent_write(
    table: WholeTable, dynamodb: DynamoDBClient, change: Callable[[WholeTable], object]
) -> None:
    create(table)
    seen = present(table.metadata(ACME))

    def change_it_first(**_: object) -> None:
        dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", change_it_first)
        change(table)
        changed.append(rows(dynamodb))

    changed: list[dict[tuple[str, str], Row]] = []
    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", change_it_first)
    stack = Stack("stack-2", "CREATE_COMPLETE", "", ACME.value, QUEUE, NEXT_VERSION, ours=True)
    assert table.correct(seen, stack, request=EXPLICIT, at=ONE_SECOND_LATER) is False
    assert [rows(dynamodb)] == changed


@pytest.mark.parametrize("written", ["2020-08-31T16:02:16Z", "2020-08-31T16:02:16.808123+00:00", None], ids=str)
def test_a_correction_accepts_any_format_of_the_time(
    table: WholeTable, dynamodb: DynamoDBClient, written: str | None
) -> None:
    legacy_in_dynamodb(dynamodb).metadata(ACME)
    dynamodb.update_item(
        TableName=TABLE,
        Key={"pk": {"S": METADATA[0]}, "sk": {"S": METADATA[1]}},
        AttributeUpdates={
            "UpdatedAt": {"Action": "PUT", "Value": {"S": written}} if written else {"Action": "DELETE"},
        },
    )
    seen = present(table.metadata(ACME))
    stack = Stack("stack-1", "CREATE_COMPLETE", "", ACME.value, QUEUE, VERSION, ours=True)
    assert table.correct(seen, stack, request=EXPLICIT, at=NOON)
    assert rows(dynamodb)[METADATA]["UpdatedAt"] == AT


def test_every_state_is_listed_under_its_name(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    seen = set()

    def look() -> None:
        row = rows(dynamodb)[METADATA]
        state, key, _ = listing(row)
        assert key == f"TENANT#{state}"
        seen.add(state)

    later = (NOON + timedelta(minutes=minute) for minute in range(99))
    for run in (RUN, a_run(operation=Operation.UPDATE, version=NEXT_VERSION), a_run(operation=Operation.DELETE)):
        begun = replace(run, started_at=next(later))
        take(table, begun)
        look()
        table.fail(begun, QUEUE_TABOO, next(later), restore=run.attempt.operation is Operation.DELETE)
        look()
        again = replace(begun, attempt=replace(begun.attempt, number=2), execution="again", started_at=next(later))
        if run.attempt.operation is not Operation.DELETE:
            take(table, again)
            publish(table, again, at=next(later))
            look()
    table.forget_queue(ACME, stack_id="stack-1")
    look()
    assert seen == set(TenantState) - {TenantState.DELETED}


@pytest.mark.parametrize(
    ("operation", "sort_key"),
    [
        (Operation.CREATE, "AUDIT#CREATE#0.1.0"),
        (Operation.UPDATE, "AUDIT#UPDATE#0.1.0"),
        (Operation.DELETE, "AUDIT#DELETE"),
    ],
)
def test_the_key_of_an_audit_has_operation_and_version(
    table: WholeTable, dynamodb: DynamoDBClient, operation: Operation, sort_key: str
) -> None:
    take(table, a_run(operation=operation))
    assert ("TENANT_ID#acme", sort_key) in rows(dynamodb)


def test_a_queue_is_not_listed_before_it_is_published(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
    assert rows(dynamodb) == {
        ("TENANT_ID#acme", "METADATA"): {
            "CreatedAt": AT,
            "UpdatedAt": AT,
            "InboundQueueArn": QUEUE.arn,
            "InboundQueueUrl": QUEUE.url,
            "StackId": "stack-1",
        }
    }


def test_a_release_has_its_own_row(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    release = table.record_release(a_release(notes="Queues are faster."))
    assert rows(dynamodb) == {
        ("RELEASE", "VERSION#0.1.0"): {
            "Version": VERSION,
            "TemplateUrl": release.template_url,
            "Digest": release.digest,
            "PublishedAt": AT,
            "Content": release.content,
            "Notes": "Queues are faster.",
            "Tier": "standard",
        }
    }


def test_the_row_of_a_release_has_its_parameters(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    release = table.record_release(a_release(parameters=["KmsKeyArn", "Another"]))
    assert rows(dynamodb)["RELEASE", "VERSION#0.1.0"]["Parameters"] == {"SS": ["Another", "KmsKeyArn"]}
    assert table.release(VERSION) == release


def test_an_older_row_of_a_release_has_neither_content_nor_notes(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    table.record_release(a_release())
    key: Any = {"pk": {"S": "RELEASE"}, "sk": {"S": "VERSION#0.1.0"}}
    dynamodb.update_item(TableName=TABLE, Key=key, UpdateExpression="REMOVE Content, Notes")
    assert table.releases() == [a_release(content="")]


def test_a_token_is_stored_in_the_lock(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    table.remember_token(RUN, "token")
    assert rows(dynamodb)["TENANT_ID#acme", "LOCK"]["TaskToken"] == "token"


def test_all_pages_of_a_history_are_read(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    for number in range(1, 4):
        table.fail(a_run(number), QUEUE_TABOO, NOON)
    pad(dynamodb)
    first_page = dynamodb.query(
        TableName=TABLE, KeyConditionExpression="pk = :pk", ExpressionAttributeValues={":pk": {"S": "HISTORY#acme"}}
    )
    assert first_page["Count"] < 3
    assert [entry.attempt for entry in table.history(ACME)] == [1, 2, 3]


def test_all_pages_of_a_list_are_read(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    names = ["a", "b", "c", "d"]
    for name in names:
        create(table, TenantId.parse(name))
    pad(dynamodb)
    first_page = dynamodb.query(
        TableName=TABLE,
        IndexName="Listing",
        KeyConditionExpression="ListingKey = :key",
        ExpressionAttributeValues={":key": {"S": "TENANT#READY"}},
    )
    assert first_page["Count"] < 4
    assert [str(listed.tenant) for listed in table.tenants_in(TenantState.READY, limit=9)] == names
    assert [str(listed.tenant) for listed in table.tenants_in(TenantState.READY, limit=3)] == names[:3]
    assert table.versions_in_use().by_version == {VERSION: {TenantState.READY: 4}}


def pad(dynamodb: DynamoDBClient) -> None:
    """Make every row so large that only two fit one answer."""
    for row in dynamodb.scan(TableName=TABLE)["Items"]:
        dynamodb.put_item(TableName=TABLE, Item={**row, "Padding": {"S": "x" * 390_000}})


@pytest.mark.parametrize("said", ["InboundQueueArn", "InboundQueueUrl"])
def test_an_incomplete_queue_is_none(table: WholeTable, dynamodb: DynamoDBClient, said: str) -> None:
    row = {"pk": "TENANT_ID#acme", "sk": "METADATA", "Version": VERSION, said: "x"}
    dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})
    metadata = present(table.metadata(ACME))
    assert metadata.queue is None
    assert not metadata.published


def test_every_read_of_a_tenant_is_consistent(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    consistent: list[bool] = []

    def look(params: dict[str, Any], **_: object) -> None:
        consistent.append(params.get("ConsistentRead", False))

    dynamodb.meta.events.register("provide-client-params.dynamodb", look)
    try:
        table.metadata(ACME), table.audits(ACME), table.history(ACME), table.lock(ACME)
    finally:
        dynamodb.meta.events.unregister("provide-client-params.dynamodb", look)
    assert consistent == [True] * 4


def test_a_transaction_conflict_counts_as_throttled(table: WholeTable, dynamodb: DynamoDBClient) -> None:
    def conflict(**_: object) -> None:
        response: Any = {
            "Error": {"Code": "TransactionCanceledException", "Message": "cancelled"},
            "CancellationReasons": [{"Code": "TransactionConflict"}, {"Code": "None"}, {"Code": "None"}],
        }
        raise ClientError(response, "TransactWriteItems")

    dynamodb.meta.events.register("before-call.dynamodb.TransactWriteItems", conflict)
    try:
        with pytest.raises(Throttled):
            take(table, RUN)
    finally:
        dynamodb.meta.events.unregister("before-call.dynamodb.TransactWriteItems", conflict)


def test_the_stored_names_of_statuses_do_not_change() -> None:
    assert [status.value for status in Status] == ["Started", "Success", "Failure"]


class TestListsWithARowThatCannotBeRead:
    """Somebody who writes into the table directly can store anything in a row. The row hides no other tenant."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"RootCause": {"S": "boom"}},
            {"State": {"S": "SLEEPING"}},
            {"UpdatedAt": {"S": "0001-01-01T00:00:00+14:00"}},
            {"CreatedBy": {"M": {"StackId": {"S": "x"}, "LogicalId": {"S": "y"}}}},
            {"Labels": {"S": "gold"}},
        ],
        ids=lambda changes: next(iter(changes)),
    )
    def test_a_tenant_with_an_unreadable_row_is_listed_from_the_index(
        self, table: WholeTable, dynamodb: DynamoDBClient, changes: dict[str, Any]
    ) -> None:
        for name in ("acme", "initech"):
            create(table, TenantId(name))
        create(table, TenantId("globex"))
        row = dynamodb.get_item(TableName=TABLE, Key=keys.metadata_key(TenantId("globex")))["Item"]
        dynamodb.put_item(TableName=TABLE, Item={**row, **changes})
        listed = table.tenants_in(TenantState.READY, limit=10)
        assert [(each.tenant.value, each.readable) for each in listed] == [
            ("acme", True),
            ("globex", False),
            ("initech", True),
        ]
        unreadable = listed[1]
        assert (unreadable.state, unreadable.version, unreadable.queue) == (TenantState.READY, VERSION, None)
        assert "cannot be read" in str(unreadable.root_cause)
        after = table.tenants_in(TenantState.READY, after=unreadable.position, limit=10)
        assert [each.tenant.value for each in after] == ["initech"]
        in_brief = [(each.tenant.value, each.version) for each in table.tenants_in_brief(TenantState.READY)]
        assert in_brief == [("acme", VERSION), ("globex", VERSION), ("initech", VERSION)]

    def test_a_row_without_a_valid_tenant_id_is_omitted(self, table: WholeTable, dynamodb: DynamoDBClient) -> None:
        create(table, ACME)
        row = dynamodb.get_item(TableName=TABLE, Key=keys.metadata_key(ACME))["Item"]
        dynamodb.put_item(TableName=TABLE, Item={**row, "pk": {"S": "TENANT_ID#-no id-"}})
        assert [each.tenant for each in table.tenants_in(TenantState.READY, limit=1)] == [ACME]
