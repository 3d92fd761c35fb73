"""How DynamoDB's rows look: attribute names and keys as they always were."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.errors import Throttled
from orchestrator.records import Operation, Status
from tests.adapters.conftest import TABLE
from tests.fakes import ACME, NOON, QUEUE, QUEUE_TABOO, VERSION, a_release, a_run, take

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

RUN = a_run()
EXECUTION = RUN.execution
AT = "2026-11-16T12:00:00.000Z"


@pytest.fixture
def table(dynamodb: DynamoDBClient) -> DynamoTable:
    return DynamoTable(dynamodb, TABLE)


def rows(dynamodb: DynamoDBClient) -> dict[tuple[str, str], dict[str, Any]]:
    """Every row by its keys, without types where they are text."""
    items: list[dict[str, Any]] = dynamodb.scan(TableName=TABLE)["Items"]
    plain = [{name: value.get("S", value) for name, value in item.items()} for item in items]
    return {(row.pop("pk"), row.pop("sk")): row for row in plain}


def test_begin_writes_lock_audit_and_history(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    operation = {"Operation": "CREATE", "Version": VERSION, "Attempt": {"N": "1"}, "Execution": EXECUTION}
    assert rows(dynamodb) == {
        ("TENANT_ID#acme", "LOCK"): {**operation, "StartedAt": AT},
        ("TENANT_ID#acme", "AUDIT#CREATE#0.1.0"): {
            "Status": "Started",
            "Execution": EXECUTION,
            "UpdatedAt": AT,
            "Version": VERSION,
            "Attempt": {"N": "1"},
            "ListingKey": "OPERATION#Started",
            "ListingSort": f"{AT}#acme",
        },
        ("TENANT_ID#acme", f"HISTORY#{AT}#{RUN.attempt.name}#Started"): {**operation, "Status": "Started", "At": AT},
    }


def test_publish_writes_metadata_and_success_and_removes_the_lock(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    table.publish(RUN, stack_id="stack-1", queue=QUEUE, version=VERSION, at=NOON)
    written = rows(dynamodb)
    assert written["TENANT_ID#acme", "METADATA"] == {
        "CreatedAt": AT,
        "UpdatedAt": AT,
        "Version": VERSION,
        "InboundQueueArn": QUEUE.arn,
        "InboundQueueUrl": QUEUE.url,
        "StackId": "stack-1",
        "ListingKey": "TENANT",
        "ListingSort": "0.1.0#acme",
    }
    assert written["TENANT_ID#acme", "AUDIT#CREATE#0.1.0"] == {
        "Status": "Success",
        "Execution": EXECUTION,
        "UpdatedAt": AT,
        "Version": VERSION,
        "Attempt": {"N": "1"},
    }
    assert ("TENANT_ID#acme", "LOCK") not in written
    assert ("TENANT_ID#acme", f"HISTORY#{AT}#{RUN.attempt.name}#Success") in written


def test_fail_writes_the_root_cause_into_audit_and_history(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    table.fail(RUN, QUEUE_TABOO, NOON)
    cause = {
        "M": {
            "Resource": {"S": "InboundQueue"},
            "Type": {"S": "AWS::SQS::Queue"},
            "Reason": {"S": QUEUE_TABOO.reason},
        }
    }
    written = rows(dynamodb)
    audit = written["TENANT_ID#acme", "AUDIT#CREATE#0.1.0"]
    assert (audit["Status"], audit["RootCause"], audit["ListingKey"]) == ("Failure", cause, "OPERATION#Failure")
    assert written["TENANT_ID#acme", f"HISTORY#{AT}#{RUN.attempt.name}#Failure"]["RootCause"] == cause


@pytest.mark.parametrize(
    ("operation", "sort_key"),
    [
        (Operation.CREATE, "AUDIT#CREATE#0.1.0"),
        (Operation.UPDATE, "AUDIT#UPDATE#0.1.0"),
        (Operation.DELETE, "AUDIT#DELETE"),
    ],
)
def test_an_audits_key_has_its_operation_and_its_version_unless_it_is_a_delete(
    table: DynamoTable, dynamodb: DynamoDBClient, operation: Operation, sort_key: str
) -> None:
    take(table, a_run(operation=operation))
    assert ("TENANT_ID#acme", sort_key) in rows(dynamodb)


def test_the_stacks_own_record_is_not_listed_before_it_is_published(
    table: DynamoTable, dynamodb: DynamoDBClient
) -> None:
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


def test_a_release_has_a_row_of_its_own(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    release = table.record_release(a_release())
    assert rows(dynamodb) == {
        ("RELEASE", "VERSION#0.1.0"): {
            "Version": VERSION,
            "TemplateUrl": release.template_url,
            "Digest": release.digest,
            "PublishedAt": AT,
        }
    }


def test_a_token_is_kept_with_the_lock(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    take(table, RUN)
    table.remember_token(RUN, "token")
    assert rows(dynamodb)["TENANT_ID#acme", "LOCK"]["TaskToken"] == "token"


def test_more_rows_than_fit_one_answer_are_all_read(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    for number in range(1, 4):
        table.fail(a_run(number), QUEUE_TABOO, NOON)
    for row in dynamodb.scan(TableName=TABLE)["Items"]:
        dynamodb.put_item(TableName=TABLE, Item={**row, "Padding": {"S": "x" * 390_000}})
    first_page = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk AND begins_with(sk, :history)",
        ExpressionAttributeValues={":pk": {"S": "TENANT_ID#acme"}, ":history": {"S": "HISTORY#"}},
    )
    assert first_page["Count"] < 3
    assert [entry.attempt for entry in table.history(ACME)] == [1, 2, 3]


@pytest.mark.parametrize("said", ["InboundQueueArn", "InboundQueueUrl"])
def test_half_a_queue_is_none(table: DynamoTable, dynamodb: DynamoDBClient, said: str) -> None:
    row = {"pk": "TENANT_ID#acme", "sk": "METADATA", "Version": VERSION, said: "x"}
    dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})
    metadata = table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue is None
    assert not metadata.published


def test_every_read_of_a_tenant_is_consistent(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
    consistent: list[bool] = []

    def look(params: dict[str, Any], **_: object) -> None:
        consistent.append(params.get("ConsistentRead", False))

    dynamodb.meta.events.register("provide-client-params.dynamodb", look)
    try:
        table.metadata(ACME), table.audits(ACME), table.history(ACME), table.lock(ACME)
    finally:
        dynamodb.meta.events.unregister("provide-client-params.dynamodb", look)
    assert consistent == [True] * 4


def test_a_transaction_that_meets_another_is_to_be_tried_again(table: DynamoTable, dynamodb: DynamoDBClient) -> None:
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


def test_statuses_are_spelled_as_they_always_were() -> None:
    assert [status.value for status in Status] == ["Started", "Success", "Failure"]
