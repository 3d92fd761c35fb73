"""The tables of the event plane, by moto."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from orchestrator.adapters import aws as aws_clients
from orchestrator.adapters import event_ports
from orchestrator.common.callers import digest_of
from tests.adapters.conftest import TABLE, client
from tests.adapters.events.delivery_world import DeliveryWorld
from tests.adapters.events.functions import EventFunctions
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE, Lives
from tests.adapters.events.tables import make_events_table
from tests.adapters.handlers.functions import PROOF, forget_functions, session
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
    """A function reads its settings and makes its clients when it is loaded, so each test loads it anew."""
    environment = {
        "BERTH_TABLE": TABLE,
        "BERTH_EVENTS_TABLE": EVENTS_TABLE,
        "BERTH_CONTENTS_BUCKET": BUCKET,
        "BERTH_EVENTS_ENVIRONMENT": "test",
        "BERTH_VERSION": "0.0.0",
        "BERTH_FIRST_QUEUE": client("sqs").create_queue(QueueName="first")["QueueUrl"],
        "BERTH_LATER_QUEUE": client("sqs").create_queue(QueueName="later")["QueueUrl"],
        "BERTH_SECRETS_KEY": client("kms").create_key()["KeyMetadata"]["Arn"],
        "BERTH_API_PROOF_DIGEST": digest_of(PROOF),
        "BERTH_SERVICE": "berth",
        "BERTH_METRICS_NAMESPACE": "Berth",
        "AWS_LAMBDA_LOG_LEVEL": "FATAL",
    }
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    clock = FakeClock()
    monkeypatch.setattr(aws_clients, "_session", session)
    monkeypatch.setattr(event_ports, "SystemClock", lambda: clock)
    assert bucket
    forget_functions()
    yield EventFunctions(events_table, clock)
    forget_functions()


@pytest.fixture
def lives(events_table: DynamoDBClient, bucket: S3Client) -> Lives:
    return Lives(events_table, bucket)


@pytest.fixture
def deliveries(events_table: DynamoDBClient, bucket: S3Client) -> DeliveryWorld:
    return DeliveryWorld(events_table, bucket)
