"""How every AWS client is made, and what AWS' errors mean to us."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache
from typing import Any

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.session import Session

from orchestrator.common.errors import Throttled

# A function must be able to answer before its own timeout, so a call that hangs is given up early.
CLIENT_CONFIG = Config(
    connect_timeout=2,
    read_timeout=8,
    retries={"mode": "standard", "total_max_attempts": 4},
    tcp_keepalive=True,
)

_THROTTLING = frozenset(
    {
        "ExecutionLimitExceeded",
        "ProvisionedThroughputExceededException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "ThrottledException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "TransactionInProgressException",
    }
)


ACCESS_DENIED = frozenset({"AccessDenied", "AccessDeniedException"})
CANNOT_BE_ASKED = ACCESS_DENIED | {"InvalidAction"}
"""A question that nobody depends on is left unanswered then."""

# Why a transaction is cancelled when it merely came at a bad moment.
_TRY_AGAIN = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", "TransactionConflict"})


@cache
def _session() -> Session:
    return Session()


def client(service: str) -> Any:
    """A client by botocore, which is what boto3's clients are.

    Importing boto3 itself also loads its machinery for S3 transfers: a fifth of getQueue's cold start.
    """
    return _session().create_client(service, config=CLIENT_CONFIG)


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def cancellation_codes(error: ClientError) -> list[str]:
    """Why each item of a cancelled transaction did not go through, in order; `None` where it would have."""
    response: dict[str, Any] = dict(error.response)
    return [str(reason.get("Code", "None")) for reason in response.get("CancellationReasons", [])]


@contextmanager
def throttling() -> Iterator[None]:
    """Turn AWS' many ways to say "slow down" into the one that the domain knows."""
    try:
        yield
    except ClientError as error:
        if error_code(error) in _THROTTLING or not _TRY_AGAIN.isdisjoint(cancellation_codes(error)):
            raise Throttled(f"{error.operation_name}: {error_message(error)}") from error
        raise
