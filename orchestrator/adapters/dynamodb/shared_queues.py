"""Which tenants still need a queue of the pool. Deployments ask this before they remove one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.values import s, time

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


def tenants_of(client: DynamoDBClient, table: str, urls: Sequence[str], now: datetime) -> list[str]:
    """The tenants that have one of these queues, or had it and may still have messages in it.

    It reads the whole table: no index has the queues, and hardly anybody ever removes one.
    """
    names = [f":url{number}" for number in range(len(urls))]
    these = ", ".join(names)
    with throttling():
        pages = client.get_paginator("scan").paginate(
            TableName=table,
            ConsistentRead=True,
            ProjectionExpression="pk",
            FilterExpression=(
                f"sk = :metadata AND (InboundQueueUrl IN ({these}) OR "
                f"(FormerQueueUrl IN ({these}) AND FormerQueueUntil > :now))"
            ),
            ExpressionAttributeValues={
                **{name: s(url) for name, url in zip(names, urls, strict=True)},
                ":metadata": s(keys.METADATA),
                ":now": time(now),
            },
        )
        return [row["pk"]["S"].removeprefix(keys.TENANT_PREFIX) for page in pages for row in page["Items"]]
