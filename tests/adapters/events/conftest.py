"""The tables of the event plane, by moto."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX
from tests.adapters.conftest import client

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client

EVENTS_TABLE = "berth-events"
BUCKET = "berth-events-contents"


@pytest.fixture
def events_table(dynamodb: DynamoDBClient) -> DynamoDBClient:
    """The table of events, with the keys and the indexes that its stack gives it; and the control plane's table."""
    names = ("pk", "sk", "GSI1PK", "GSI1SK", "GSI2PK", "GSI2SK")
    dynamodb.create_table(
        TableName=EVENTS_TABLE,
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
    return dynamodb


@pytest.fixture
def bucket(aws: None) -> S3Client:  # noqa: ARG001 - the account it is in
    s3: S3Client = client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    return s3
