"""The table of events, with the keys and the indexes that its stack gives it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def make_events_table(dynamodb: DynamoDBClient, name: str) -> None:
    names = ("pk", "sk", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
    dynamodb.create_table(
        TableName=name,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name in names],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": index,
                "KeySchema": [
                    {"AttributeName": f"{prefix}PK", "KeyType": "HASH"},
                    {"AttributeName": f"{prefix}SK", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "KEYS_ONLY"},
            }
            for index, prefix in ((STATUS_INDEX, "GSI1"), (TYPE_INDEX, "GSI2"))
        ],
    )
