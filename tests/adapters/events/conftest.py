"""The tables of the event plane, by moto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.adapters.conftest import client
from tests.adapters.events.delivery_world import DeliveryWorld
from tests.adapters.events.functions import EventFunctions, event_functions_at
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE, Lives
from tests.adapters.events.tables import make_events_table
from tests.fakes import FakeClock

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient
    from mypy_boto3_s3 import S3Client


@pytest.fixture
def events_table(dynamodb: DynamoDBClient) -> DynamoDBClient:
    """The table of events, with the keys and the indexes that its stack gives it; and the control plane's table."""
    make_events_table(dynamodb, EVENTS_TABLE)
    return dynamodb


@pytest.fixture
def bucket(aws: None) -> S3Client:  # noqa: ARG001 - the account it is in
    s3: S3Client = client("s3")
    s3.create_bucket(Bucket=BUCKET, CreateBucketConfiguration={"LocationConstraint": "eu-west-1"})
    return s3


@pytest.fixture
def event_functions(
    events_table: DynamoDBClient, bucket: S3Client, monkeypatch: pytest.MonkeyPatch
) -> Iterator[EventFunctions]:
    assert bucket
    with event_functions_at(events_table, FakeClock(), monkeypatch) as functions:
        yield functions


@pytest.fixture
def lives(events_table: DynamoDBClient, bucket: S3Client) -> Lives:
    return Lives(events_table, bucket)


@pytest.fixture
def deliveries(events_table: DynamoDBClient, bucket: S3Client) -> DeliveryWorld:
    return DeliveryWorld(events_table, bucket)
