"""The state of releases: one contract for the fake and for DynamoDB."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.keys import release_history_pk, release_state_key
from orchestrator.adapters.dynamodb.release_states import ReleaseStateTable
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.common.errors import UnreadableRows
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.ports import ReleaseStates
from orchestrator.releases.records import Promotion, RecordedReleaseChange, ReleaseOrder, ReleaseState, Withdrawal
from tests.adapters.conftest import TABLE
from tests.fakes import NEXT_VERSION, NOON, VERSION, a_release
from tests.fakes.others import InMemoryReleaseStates

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

ADA = "arn:aws:sts::000000000000:assumed-role/operator/ada"
PROMOTED = Promotion(NEXT_VERSION, NOON, ADA, "the canaries are well", VERSION)
WITHDRAWN = Withdrawal(NOON, ADA, "queues lose messages")
WITHDRAW = RecordedReleaseChange(VERSION, NOON, ReleaseOrder.WITHDRAW, ADA, WITHDRAWN.reason)
PROMOTE = RecordedReleaseChange(NEXT_VERSION, NOON + timedelta(seconds=1), ReleaseOrder.PROMOTE, ADA)


@pytest.fixture
def states(rows: DynamoDBClient | None) -> ReleaseStates:
    return ReleaseStateTable(rows, TABLE) if rows else InMemoryReleaseStates()


def test_at_first_nothing_is_promoted_or_withdrawn(states: ReleaseStates) -> None:
    assert states.state() == ReleaseState()
    assert states.changes(limit=5) == []


@pytest.mark.parametrize(
    "state",
    [
        ReleaseState(),
        ReleaseState(promotions={STANDARD: PROMOTED}),
        ReleaseState(promotions={STANDARD: replace(PROMOTED, instead_of=None, reason="")}),
        ReleaseState(promotions={"gold": PROMOTED, STANDARD: replace(PROMOTED, version=VERSION)}),
        ReleaseState(withdrawn={VERSION: WITHDRAWN, NEXT_VERSION: replace(WITHDRAWN, reason="")}),
        ReleaseState(promotions={STANDARD: PROMOTED}, withdrawn={VERSION: WITHDRAWN}, kept_by="a-request"),
    ],
)
def test_a_state_is_read_as_it_was_written(states: ReleaseStates, state: ReleaseState) -> None:
    assert states.change(state, WITHDRAW)
    assert states.state() == replace(state, revision=1)


def test_the_history_has_the_newest_change_first(states: ReleaseStates) -> None:
    assert states.change(ReleaseState(), WITHDRAW)
    assert states.change(states.state(), PROMOTE)
    assert states.changes(limit=5) == [PROMOTE, WITHDRAW]
    assert states.changes(limit=1) == [PROMOTE]


@pytest.mark.parametrize("earlier", [0, 1])
def test_one_of_two_changes_of_the_same_state_is_refused(states: ReleaseStates, earlier: int) -> None:
    for _ in range(earlier):
        assert states.change(states.state(), RecordedReleaseChange(VERSION, NOON, ReleaseOrder.REINSTATE, ADA))
    seen = states.state()
    assert states.change(replace(seen, withdrawn={VERSION: WITHDRAWN}), WITHDRAW)
    assert not states.change(replace(seen, promotions={STANDARD: PROMOTED}), PROMOTE)
    assert states.state() == ReleaseState(withdrawn={VERSION: WITHDRAWN}, revision=earlier + 1)
    assert PROMOTE not in states.changes(limit=5), "the change and its entry are one transaction"


def test_the_state_is_no_release(dynamodb: DynamoDBClient) -> None:
    """Functions of the version before list the releases, too, and cannot read other rows."""
    table = DynamoTable(dynamodb, TABLE)
    table.record_release(a_release())
    assert ReleaseStateTable(dynamodb, TABLE).change(ReleaseState(withdrawn={VERSION: WITHDRAWN}), WITHDRAW)
    assert [release.version for release in table.releases()] == [VERSION]


def test_a_withdrawal_is_seen_by_a_process_that_has_read_the_state_before(dynamodb: DynamoDBClient) -> None:
    warm, other = ReleaseStateTable(dynamodb, TABLE), ReleaseStateTable(dynamodb, TABLE)
    assert not warm.state().withdrawn
    assert other.change(ReleaseState(withdrawn={VERSION: WITHDRAWN}), WITHDRAW)
    assert warm.state().withdrawn == {VERSION: WITHDRAWN}


def test_an_entry_that_somebody_has_overwritten_is_shown_as_altered(dynamodb: DynamoDBClient) -> None:
    states = ReleaseStateTable(dynamodb, TABLE)
    assert states.change(ReleaseState(), WITHDRAW)
    (row,) = dynamodb.query(
        TableName=TABLE,
        KeyConditionExpression="pk = :pk",
        ExpressionAttributeValues={":pk": {"S": release_history_pk()}},
    )["Items"]
    dynamodb.put_item(TableName=TABLE, Item=row | {"RequestedBy": {"S": "somebody else"}})
    assert states.changes(limit=5) == [replace(WITHDRAW, by="somebody else", altered=True)]
    dynamodb.put_item(TableName=TABLE, Item={"pk": row["pk"], "sk": row["sk"], "Order": {"S": "NONSENSE"}})
    assert states.changes(limit=5) == [RecordedReleaseChange("", NOON, None, "", altered=True)]


def test_a_damaged_state_is_an_error_and_not_an_empty_state(dynamodb: DynamoDBClient) -> None:
    """Otherwise a release that was withdrawn would be chosen again."""
    dynamodb.put_item(TableName=TABLE, Item={**release_state_key(), "Withdrawn": {"S": "all of them"}})
    with pytest.raises(UnreadableRows, match="RELEASE_STATE"):
        ReleaseStateTable(dynamodb, TABLE).state()
