"""AWS' many ways to say "slow down" are one; everything else stays what it is."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import pytest
from botocore.exceptions import ClientError
from botocore.session import Session

from orchestrator.adapters import aws
from orchestrator.adapters.aws import CLIENT_CONFIG, SystemClock, open_connection, throttling
from orchestrator.common.errors import Contended, Throttled


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


def test_a_transaction_that_only_met_another_one_is_told_from_one_that_was_throttled() -> None:
    with pytest.raises(Contended), throttling():
        raise an_error("TransactionCanceledException", "ConditionalCheckFailed", "TransactionConflict")
    with pytest.raises(Throttled) as raised, throttling():
        raise an_error("TransactionCanceledException", "ThrottlingError", "TransactionConflict")
    assert not isinstance(raised.value, Contended)


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


class Endpoint:
    """Answers like DynamoDB's endpoint, and counts connections and requests."""

    def __init__(self) -> None:
        self.connections: set[tuple[str, int]] = set()
        self.requests: list[tuple[str, bool]] = []
        """The method of each request, and whether it was signed."""
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                self.answer(404, b"healthy")

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                self.answer(200, b"{}")

            def answer(self, status: int, body: bytes) -> None:
                endpoint.connections.add(self.client_address)
                endpoint.requests.append((self.command, "Authorization" in self.headers))
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True

    def client(self) -> Any:
        return a_client(self.server.server_port)


def a_client(port: int) -> Any:
    return Session().create_client(
        "dynamodb",
        region_name="eu-west-1",
        endpoint_url=f"http://127.0.0.1:{port}",
        aws_access_key_id="a",
        aws_secret_access_key="b",
        config=CLIENT_CONFIG,
    )


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = Thread(target=endpoint.server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    endpoint.server.server_close()


def test_a_connection_that_is_opened_early_serves_the_first_call(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
    client = endpoint.client()
    open_connection(lambda: client)
    assert endpoint.requests == [("GET", False)]
    client.get_item(TableName="berth", Key={"pk": {"S": "a"}})
    assert endpoint.requests == [("GET", False), ("POST", True)]
    assert len(endpoint.connections) == 1
    client.close()


def test_outside_of_lambda_no_connection_is_opened_early(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_LAMBDA_INITIALIZATION_TYPE", raising=False)
    open_connection(endpoint.client)
    assert endpoint.requests == []


def test_a_connection_that_cannot_be_opened_early_fails_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_LAMBDA_INITIALIZATION_TYPE", "on-demand")
    with socket.socket() as nobody_listens:
        nobody_listens.bind(("127.0.0.1", 0))
        open_connection(lambda: a_client(nobody_listens.getsockname()[1]))


def test_credentials_in_the_environment_are_the_only_source_that_is_prepared(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others, such as an instance's metadata service, would take part of every cold start."""
    given = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    session = aws._session.__wrapped__()
    assert [provider.METHOD for provider in session.get_component("credential_provider").providers] == ["env"]
    found = session.get_credentials()
    assert (found.access_key, found.secret_key, found.token) == ("key", "secret", "token")


def test_without_credentials_in_the_environment_all_sources_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID", raising=False)
    session = aws._session.__wrapped__()
    methods = [provider.METHOD for provider in session.get_component("credential_provider").providers]
    assert methods == [provider.METHOD for provider in Session().get_component("credential_provider").providers]


def test_functions_use_no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The command line does: its configuration leaves that to botocore."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setattr(aws, "_session", Session)
    assert vars(aws.client("sqs").meta.config)["proxies"] == {}
    assert vars(CLIENT_CONFIG)["proxies"] is None
