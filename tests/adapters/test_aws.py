"""AWS' many ways to say "slow down" are one; everything else stays what it is."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from orchestrator.adapters.aws import CLIENT_CONFIG, SystemClock, throttling
from orchestrator.common.errors import Throttled


def an_error(code: str, *cancellations: str) -> ClientError:
    response: Any = {"Error": {"Code": code, "Message": "Rate exceeded"}}
    if cancellations:
        response["CancellationReasons"] = [{"Code": reason} for reason in cancellations]
    return ClientError(response, "DoSomething")


@pytest.mark.parametrize(
    "code",
    [
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "ExecutionLimitExceeded",
        "ProvisionedThroughputExceededException",
        "TransactionInProgressException",
    ],
)
def test_every_code_of_throttling_is_one_error(code: str) -> None:
    with pytest.raises(Throttled, match="DoSomething: Rate exceeded"), throttling():
        raise an_error(code)


def test_a_write_that_conflicts_with_a_transaction_counts_as_throttled() -> None:
    with pytest.raises(Throttled), throttling():
        raise an_error("TransactionConflictException")


@pytest.mark.parametrize("reason", ["TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"])
def test_a_transaction_without_capacity_counts_as_throttled(reason: str) -> None:
    with pytest.raises(Throttled), throttling():
        raise an_error("TransactionCanceledException", "None", reason)


@pytest.mark.parametrize(
    "error",
    [
        an_error("ValidationError"),
        an_error("AccessDeniedException"),
        an_error("LimitExceededException"),
        an_error("TransactionCanceledException", "ConditionalCheckFailed", "None"),
        an_error("TransactionCanceledException"),
    ],
    ids=lambda error: str(error.response["Error"]["Code"]),
)
def test_any_other_error_is_unchanged(error: ClientError) -> None:
    with pytest.raises(ClientError) as raised, throttling():
        raise error
    assert raised.value is error


def test_an_error_without_a_code_is_not_throttling() -> None:
    with pytest.raises(ClientError), throttling():
        raise ClientError({}, "DoSomething")


def test_a_call_times_out_before_the_shortest_function_does() -> None:
    config = vars(CLIENT_CONFIG)
    assert config["connect_timeout"] + config["read_timeout"] < 15


def test_the_clock_is_utc() -> None:
    assert SystemClock().now().utcoffset() is not None
    assert SystemClock().now().tzname() == "UTC"
