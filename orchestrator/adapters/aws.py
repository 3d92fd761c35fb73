"""Makes AWS clients, and translates AWS errors into those of the domain."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cache
from threading import Lock
from typing import Any

from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import CredentialResolver, EnvProvider
from botocore.exceptions import ClientError
from botocore.session import Session

from orchestrator.common.errors import Contended, Throttled

# Calls time out early, so that a function can still answer before its own timeout.
CLIENT_CONFIG = Config(
    connect_timeout=2,
    read_timeout=8,
    retries={"mode": "standard", "total_max_attempts": 4},
    tcp_keepalive=True,
)

# Functions have no proxy. Otherwise botocore would search the environment for one, for every client.
_WITHOUT_PROXY = Config(proxies={})

_WARM_UP_SECONDS = 1

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
DENIED_OR_UNSUPPORTED = ACCESS_DENIED | {"InvalidAction"}
"""Callers that can do without the answer treat these errors as "not known"."""

# Cancellation reasons of a transaction that may succeed when it is repeated.
_CONFLICT = "TransactionConflict"
_RETRYABLE = frozenset({"ProvisionedThroughputExceeded", "ThrottlingError", _CONFLICT})


_making_client = Lock()


@cache
def _session() -> Session:
    session = Session()
    if os.environ.get("AWS_ACCESS_KEY_ID"):
        # Lambda gives a function its credentials in the environment. By default botocore also prepares to ask all other
        # sources, such as an instance's metadata service, with an HTTP client for each.
        session.register_component("credential_provider", CredentialResolver([EnvProvider()]))
    return session


def client(service: str) -> Any:
    """A botocore client. boto3's clients are the same.

    Importing boto3 would also load its S3 transfer code, which takes a fifth of getQueue's cold start.
    """
    # Clients may be shared by threads, but a session can make only one at a time.
    with _making_client:
        return _session().create_client(service, config=CLIENT_CONFIG.merge(_WITHOUT_PROXY))


def open_connection(make_client: Callable[[], Any]) -> None:
    """Open the client's connection while Lambda initializes the function, so that the first call does not wait for it.

    Lambda gives the initialization more processor time than a small function's calls, and reading the certificates for
    TLS takes most of the time. The request is not signed and not charged: the endpoint answers with its health. The
    connection stays open, whatever the answer is. Without a connection, the first call opens one.
    """
    if "AWS_LAMBDA_INITIALIZATION_TYPE" not in os.environ:
        return
    with suppress(Exception):
        client = make_client()
        request = AWSRequest("GET", client.meta.endpoint_url)
        request.context["read_timeout"] = _WARM_UP_SECONDS
        client._endpoint.http_session.send(request.prepare())


class SystemClock:
    def now(self) -> datetime:
        return datetime.now(UTC)


def error_code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", ""))


def error_message(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Message", ""))


def cancellation_codes(error: ClientError) -> list[str]:
    """The reason for each item of a cancelled transaction, in order. An item without a fault has the text `None`."""
    response: dict[str, Any] = dict(error.response)
    return [str(reason.get("Code", "None")) for reason in response.get("CancellationReasons", [])]


@contextmanager
def throttling() -> Iterator[None]:
    """Raise Throttled for every AWS error that means "slow down"."""
    try:
        yield
    except ClientError as error:
        retryable = _RETRYABLE.intersection(cancellation_codes(error))
        if error_code(error) in _THROTTLING or retryable:
            kind = Contended if retryable == {_CONFLICT} else Throttled
            raise kind(f"{error.operation_name}: {error_message(error)}") from error
        raise
