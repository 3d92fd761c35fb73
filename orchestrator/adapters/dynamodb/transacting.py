"""Transactions whose conditions may fail."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, throttling
from orchestrator.adapters.dynamodb.values import Item

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

CONDITION_FAILED = "ConditionalCheckFailed"


def cancelled(client: DynamoDBClient, writes: Sequence[Item]) -> list[str]:
    """Why a condition cancelled the transaction, by write. Empty if the transaction went through."""
    items: Any = list(writes)
    try:
        with throttling():
            client.transact_write_items(TransactItems=items)
    except ClientError as error:
        codes = cancellation_codes(error)
        if CONDITION_FAILED not in codes:
            raise
        return codes
    return []
