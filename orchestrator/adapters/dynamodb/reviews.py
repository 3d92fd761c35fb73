"""The reviews of updates that are kept: one row per move. Rows are never changed, and do not expire."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import s, time
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.reviews import Review

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class ReviewTable:
    """Implements :class:`orchestrator.tenants.ports.Reviews`. Each review is read once per process."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._seen: dict[str, Review] = {}

    def review(self, move: str) -> Review | None:
        if move not in self._seen and (row := self._reads.get(keys.review_key(move))):
            self._seen[move] = Review(
                move,
                row["FromVersion"]["S"],
                row["Version"]["S"],
                row["ChangeSet"]["S"],
                parse_timestamp(row["ReviewedAt"]["S"]),
            )
        return self._seen.get(move)

    def keep_review(self, review: Review) -> None:
        row = {
            "FromVersion": s(review.origin),
            "Version": s(review.target),
            "ChangeSet": s(review.change_set),
            "ReviewedAt": time(review.at),
        }
        try:
            with throttling():
                self._client.put_item(
                    TableName=self._table,
                    Item=keys.review_key(review.move) | row,
                    ConditionExpression="attribute_not_exists(pk)",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
