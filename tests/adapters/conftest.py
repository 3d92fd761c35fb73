"""AWS in process, by moto: nothing here leaves the machine."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws

from orchestrator.adapters.keys import LISTING_INDEX

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

REGION = "eu-west-1"
TABLE = "berth"


@cache
def client(service: Any) -> Any:
    """One client a service for all tests: making one costs more than using it."""
    return boto3.client(service, region_name=REGION, aws_access_key_id="test", aws_secret_access_key="test")


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """An empty AWS account."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
    monkeypatch.setattr(boto3, "DEFAULT_SESSION", None)
    with mock_aws():
        yield


@pytest.fixture
def dynamodb(aws: None) -> DynamoDBClient:  # noqa: ARG001 - the account it is in
    """The table, with the keys and the index that the control plane gives it."""
    dynamodb: DynamoDBClient = client("dynamodb")
    dynamodb.create_table(
        TableName=TABLE,
        BillingMode="PAY_PER_REQUEST",
        AttributeDefinitions=[
            {"AttributeName": name, "AttributeType": "S"} for name in ("pk", "sk", "ListingKey", "ListingSort")
        ],
        KeySchema=[{"AttributeName": "pk", "KeyType": "HASH"}, {"AttributeName": "sk", "KeyType": "RANGE"}],
        GlobalSecondaryIndexes=[
            {
                "IndexName": LISTING_INDEX,
                "KeySchema": [
                    {"AttributeName": "ListingKey", "KeyType": "HASH"},
                    {"AttributeName": "ListingSort", "KeyType": "RANGE"},
                ],
                "Projection": {"ProjectionType": "ALL"},
            }
        ],
    )
    return dynamodb
