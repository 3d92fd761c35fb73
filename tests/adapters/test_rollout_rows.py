"""The rows of rollouts in DynamoDB, and the requests to DynamoDB."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from botocore.stub import Stubber

from orchestrator.adapters.dynamodb.rollouts import _MAX_TRIES, RolloutTable
from orchestrator.api.rollout_answers import rollout_document, rollout_response
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.counting import Count, Reviews
from orchestrator.rollouts.records import Order, RecordedOrder, Result, RolloutStatus, Skip, Skipped
from orchestrator.tenants.history import UnreadableEntry
from orchestrator.tenants.listings import VersionsInUse
from tests.adapters.conftest import TABLE, client
from tests.adapters.tables import WholeTable
from tests.adapters.test_rollout_table import CANARY, ONE, a_rollout, a_stage, an_order, an_outcome, record, registered
from tests.fakes import NOON, QUEUE_TABOO, FakeThrottling

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

AT = "2026-11-16T12:00:00.000Z"
PLAN, STAGE = (f"ROLLOUT#{ONE}", "PLAN"), (f"ROLLOUT#{ONE}", "STAGE#01")
TENANT = (f"ROLLOUT#{ONE}", "TENANT#a")
STAGE_SPEC = {
    "size": "1",
    "maxConcurrency": 1,
    "tolerated": "0",
    "bakeSeconds": 300,
    "alarm": "tenants are unwell",
    "approval": True,
}


@pytest.fixture
def table(dynamodb: DynamoDBClient) -> RolloutTable:
    return RolloutTable(dynamodb, TABLE)


def rows(dynamodb: DynamoDBClient) -> dict[tuple[str, str], dict[str, Any]]:
    """All rows by key, with plain strings and numbers."""
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for item in dynamodb.scan(TableName=TABLE)["Items"]:
        row: dict[str, Any] = {
            name: int(value["N"]) if "N" in value else value.get("S", value) for name, value in item.items()
        }
        found[row.pop("pk"), row.pop("sk")] = row
    return found


def test_a_rollout_has_a_plan_a_row_for_each_stage_and_a_place_in_the_registry(
    table: RolloutTable, dynamodb: DynamoDBClient
) -> None:
    rollout = a_rollout(skipped={Skip.PINNED: Skipped(2, ("x",))}, execution="arn:e", task_token="t")
    table.register(rollout, [a_stage(number=number) for number in (1, 10)], revision=0)
    written = rows(dynamodb)
    assert sorted(written) == sorted([PLAN, STAGE, (f"ROLLOUT#{ONE}", "STAGE#10"), ("ROLLOUTS", "REGISTRY")])
    assert written["ROLLOUTS", "REGISTRY"] == {"Active": {"SS": [ONE]}, "Revision": 1}
    spec = json.loads(written[PLAN].pop("Spec"))
    assert spec["version"] == "0.2.0"
    assert spec["stages"][0] == STAGE_SPEC
    assert json.loads(written[PLAN].pop("Skipped")) == {"pinned": {"count": 2, "tenants": ["x"]}}
    assert written[PLAN] == {
        "ListingKey": "ROLLOUT",
        "ListingSort": ONE,
        "RequestedBy": "ada",
        "CreatedAt": AT,
        "Planned": {"L": [{"N": "1"}, {"N": "9"}]},
        "Total": 10,
        "Status": "PENDING",
        "Reason": "",
        "CurrentStage": 1,
        "Attempt": 1,
        "Revision": 0,
        "Execution": "arn:e",
        "TaskToken": "t",
    }
    assert json.loads(written[STAGE].pop("Spec")) == STAGE_SPEC
    pace = written[STAGE].pop("Pace")["M"]
    assert float(pace.pop("Limit")["N"]) == 8
    assert pace == {"Ceiling": {"N": "8"}, "FeelingForIt": {"BOOL": True}, "ThrottlesSeen": {"N": "0"}}
    assert written[STAGE] == {
        "Total": 5,
        "Tolerated": 0,
        "Manifest": f"rollouts/{ONE}/stage-1.json",
        "Status": "WAITING",
        "Succeeded": 0,
        "Failed": 0,
        "Skipped": 0,
        "InFlight": 0,
        "Forgiven": 0,
        "SettledBefore": 0,
        "IdleRounds": 0,
        "Revision": 0,
    }


def test_only_a_failed_tenant_is_listed(table: RolloutTable, dynamodb: DynamoDBClient) -> None:
    registered(table)
    record(table, an_outcome(execution="arn:child", operation_attempt=2, from_version="0.1.0"))
    running = {
        "Stage": 1,
        "Version": "0.2.0",
        "Result": "RUNNING",
        "UpdatedAt": AT,
        "ttl": int((NOON + timedelta(days=400)).timestamp()),
        "Execution": "arn:child",
        "OperationAttempt": 2,
        "FromVersion": "0.1.0",
    }
    assert rows(dynamodb)[TENANT] == running
    record(table, an_outcome(result=Result.FAILED, root_cause=QUEUE_TABOO))
    failed = rows(dynamodb)[TENANT]
    assert (failed["ListingKey"], failed["ListingSort"]) == (f"ROLLOUT#{ONE}#FAILED", "a")
    assert failed["RootCause"]["M"]["Reason"] == {"S": QUEUE_TABOO.reason}
    record(table, an_outcome("b", Result.SKIPPED, skip=Skip.MOVED_SINCE))
    skipped = rows(dynamodb)[f"ROLLOUT#{ONE}", "TENANT#b"]
    assert skipped["Skip"] == "moved-since"
    assert "ListingKey" not in skipped


def test_rows_that_span_several_pages_are_all_read(table: RolloutTable, dynamodb: DynamoDBClient) -> None:
    registered(table, stages=4)
    for name in ("a", "b", "c", "d"):
        record(table, an_outcome(name, Result.FAILED))
    others = [f"20261116-12000{number}-0000" for number in range(1, 5)]
    for other in others:
        registered(table, other)
    for row in dynamodb.scan(TableName=TABLE)["Items"]:
        dynamodb.put_item(TableName=TABLE, Item={**row, "Padding": {"S": "x" * 390_000}})
    assert [stage.number for stage in table.stages(ONE)] == [1, 2, 3, 4]
    assert len(list(table.outcomes(ONE))) == len(table.failures(ONE, limit=9)) == 4
    assert [each.id for each in table.rollouts(limit=4)] == list(reversed(others))


def test_rollouts_are_not_taken_for_tenants(table: RolloutTable, dynamodb: DynamoDBClient) -> None:
    registered(table)
    record(table, an_outcome(result=Result.FAILED))
    tenants = WholeTable(dynamodb, TABLE)
    assert tenants.versions_in_use() == VersionsInUse({})
    assert tenants.metadata(TenantId.parse("a")) is None
    assert list(tenants.unfinished_operations()) == []


def test_a_rollout_that_was_read_can_be_returned_by_the_api(table: RolloutTable) -> None:
    registered(table)
    rollout, stages = table.rollout(ONE), table.stages(ONE)
    assert rollout is not None
    assert rollout_document(rollout, stages) == rollout_document(
        a_rollout(status=RolloutStatus.RUNNING), [a_stage(), a_stage(number=2)]
    )
    assert stages[0].spec == CANARY


def test_throttling_is_counted(table: RolloutTable, dynamodb: DynamoDBClient) -> None:
    assert table.throttles() == FakeThrottling().throttles() == 0
    for _ in range(3):
        table.note_throttled()
    assert table.throttles() == 3
    assert rows(dynamodb) == {("PACE", "CLOUDFORMATION"): {"Throttles": 3}}


def test_a_throttled_call_that_cannot_be_counted_is_left_uncounted() -> None:
    with Stubber(client("dynamodb")) as stubber:
        stubber.add_client_error("update_item", "ThrottlingException", "Rate exceeded")
        RolloutTable(client("dynamodb"), TABLE).note_throttled()
        stubber.add_client_error("update_item", "AccessDeniedException", "not authorized")
        with pytest.raises(ClientError):
            RolloutTable(client("dynamodb"), TABLE).note_throttled()


@pytest.mark.parametrize(
    ("reason", "comes_to"),
    [
        ("ConditionalCheckFailed", False),
        ("TransactionConflict", False),
        ("ThrottlingError", Throttled),
        ("ValidationError", ClientError),
    ],
)
def test_the_result_depends_on_the_reason_of_the_cancelled_transaction(reason: str, comes_to: object) -> None:
    with Stubber(client("dynamodb")) as stubber:
        for _ in range(_MAX_TRIES if reason == "TransactionConflict" else 1):
            add_cancellation(stubber, reason)
        table = RolloutTable(client("dynamodb"), TABLE)
        if comes_to is False:
            assert table.record(Count(ONE, 1, NOON), an_outcome(), before=None) is False
        else:
            assert isinstance(comes_to, type)
            assert issubclass(comes_to, Exception)
            with pytest.raises(comes_to):
                table.record(Count(ONE, 1, NOON), an_outcome(), before=None)


def test_a_turn_that_meets_another_transaction_is_written_without_reading_again() -> None:
    with Stubber(client("dynamodb")) as stubber:
        for _ in range(_MAX_TRIES - 1):
            add_cancellation(stubber, "TransactionConflict")
        stubber.add_response("transact_write_items", {})
        assert RolloutTable(client("dynamodb"), TABLE).record(Count(ONE, 1, NOON), an_outcome(), before=None)


def add_cancellation(stubber: Stubber, reason: str) -> None:
    stubber.add_client_error(
        "transact_write_items",
        "TransactionCanceledException",
        "cancelled",
        modeled_fields={"CancellationReasons": [{"Code": "None"}, {"Code": reason}]},
    )


def test_a_row_with_another_revision_is_not_overwritten(table: RolloutTable, dynamodb: DynamoDBClient) -> None:
    rollout = registered(table)
    key: Any = {"pk": {"S": PLAN[0]}, "sk": {"S": "PLAN"}}
    dynamodb.update_item(
        TableName=TABLE,
        Key=key,
        UpdateExpression="SET Revision = :nine",
        ExpressionAttributeValues={":nine": {"N": "9"}},
    )
    assert not table.change(replace(rollout, reason="Why."))
    assert table.change(replace(rollout, reason="Why.", revision=9))


@pytest.mark.parametrize(
    "left",
    [
        {},
        {"At": {"S": AT}},
        {"At": {"S": AT}, "Order": {"S": "CONQUER"}, "RequestedBy": {"S": "eve"}},
        {"At": {"S": AT}, "Order": {"S": "PAUSE"}, "RequestedBy": {"N": "1"}},
    ],
    ids=str,
)
def test_an_unreadable_order_is_reported_as_altered_and_hides_no_others(
    table: RolloutTable, dynamodb: DynamoDBClient, left: dict[str, Any]
) -> None:
    later = NOON + timedelta(seconds=1)
    rollout, stages = a_rollout(), [a_stage()]
    table.register(rollout, stages, revision=0, orders=[an_order(), an_order(Order.ABORT, at=later)])
    (pk, sk) = min(key for key in rows(dynamodb) if key[0].startswith("HISTORY#"))
    dynamodb.put_item(TableName=TABLE, Item={"pk": {"S": pk}, "sk": {"S": sk}, **left})

    unreadable, readable = table.orders(ONE)
    assert unreadable == UnreadableEntry(NOON)
    assert isinstance(readable, RecordedOrder)
    assert (readable.order, readable.altered) == (Order.ABORT, False)

    history = rollout_response(rollout, stages, [], Reviews({}, {}), [unreadable, readable]).body["history"]
    nothing = dict.fromkeys(("order", "requestedBy", "reason", "stage", "rolloutId", "detail"))
    assert isinstance(history, list)
    assert history[0] == {"at": AT, **nothing, "altered": True}
    assert history[1]["order"] == "ABORT"
