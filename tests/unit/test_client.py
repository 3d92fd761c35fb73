"""The Python client: what it returns, what it raises, and how long it waits."""

from __future__ import annotations

from typing import Any

import pytest

from orchestrator.api.answers import answer
from orchestrator.api.fields import EmptyRequest
from orchestrator.api.queue_routes import Provisioning, Queue
from orchestrator.api.release_routes import LIST_RELEASES
from orchestrator.api.requesting import HttpRequest
from orchestrator.api.responses import Response, no_credentials, try_again_later
from orchestrator.client.client import Client
from orchestrator.client.errors import ApiUnavailable, RequestRefused, StillProvisioning, UnexpectedAnswer
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.errors import BerthError, InvalidTenantId, MissingSetting
from orchestrator.tenants.credentials import Access
from orchestrator.tenants.decisions import Deleted
from orchestrator.tenants.provisioning import Provisioning as BeingProvisioned
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Status
from tests.fakes import ACME, QUEUE, VERSION, an_audit

READY = answer(ACME, Ready(QUEUE, VERSION))
PROVISIONING = answer(ACME, BeingProvisioned("arn:execution"))
DELETED = answer(ACME, Deleted(an_audit(Status.SUCCESS, Operation.DELETE)))


class Transport:
    """Gives the configured answers in order, and then repeats the last one."""

    def __init__(self, *answers: Response | ApiAnswer) -> None:
        self._answers = list(answers)
        self.requests: list[HttpRequest] = []

    def send(self, request: HttpRequest) -> ApiAnswer:
        self.requests.append(request)
        given = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(given, ApiAnswer):
            return given
        seconds = given.headers.get("Retry-After")
        return ApiAnswer(given.status, given.body, float(seconds) if seconds else None)


class Time:
    def __init__(self) -> None:
        self.now = 0.0
        self.pauses: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


@pytest.fixture
def time() -> Time:
    return Time()


def a_client(time: Time, *answers: Response | ApiAnswer) -> tuple[Client, Transport]:
    transport = Transport(*answers)
    return Client(transport=transport, monotonic=lambda: time.now, sleep=time.sleep), transport


def test_a_ready_queue_is_returned(time: Time) -> None:
    client, transport = a_client(time, READY)
    queue = client.get_queue("acme")
    assert isinstance(queue, Queue)
    assert (queue.queue_url, queue.queue_arn, queue.version) == (QUEUE.url, QUEUE.arn, VERSION)
    assert [request.path for request in transport.requests] == ["/tenants/acme/queue"]


def test_without_wait_a_queue_being_provisioned_is_reported_at_once(time: Time) -> None:
    client, _ = a_client(time, PROVISIONING)
    assert isinstance(client.get_queue("acme"), Provisioning)
    assert not time.pauses


def test_waiting_repeats_the_request_at_the_pace_of_retry_after(time: Time) -> None:
    busy = ApiAnswer(429, {"message": "Too Many Requests"}, None)
    client, _ = a_client(time, PROVISIONING, try_again_later("Rate exceeded"), busy, ApiAnswer(503, {}, 7.0), READY)
    assert client.get_queue("acme", wait=True).queue_url == QUEUE.url
    assert time.pauses == [2.0, 2.0, 2.0, 7.0]


def test_waiting_ends_at_the_timeout(time: Time) -> None:
    client, _ = a_client(time, PROVISIONING)
    with pytest.raises(StillProvisioning, match=r"^Tenant acme has no queue after 10 s: .* arn:execution"):
        client.get_queue("acme", wait=True, timeout=10)
    assert time.now <= 10


def test_a_problem_is_raised_with_its_kind_and_its_detail(time: Time) -> None:
    client, _ = a_client(time, DELETED)
    with pytest.raises(RequestRefused, match=r"^Tenant acme was deleted") as refused:
        client.get_queue("acme", wait=True)
    assert (refused.value.kind, refused.value.status) == ("tenant-deleted", 410)
    assert refused.value.body["tenantId"] == "acme"
    assert isinstance(refused.value, BerthError)


def test_an_api_that_stays_busy_is_reported_as_unavailable(time: Time) -> None:
    client, transport = a_client(time, try_again_later("Rate exceeded"))
    with pytest.raises(ApiUnavailable, match="Rate exceeded"):
        client.get_queue("acme")
    assert len(transport.requests) > 1
    assert time.now <= 20


def test_an_invalid_tenant_id_is_refused_before_a_request_is_sent(time: Time) -> None:
    client, transport = a_client(time, READY)
    with pytest.raises(InvalidTenantId):
        client.get_queue("no tenant")
    assert not transport.requests


def test_credentials_are_not_shown_by_accident(time: Time) -> None:
    given = {"access": "send", "accessKeyId": "an id", "secretAccessKey": "a secret", "sessionToken": "a token"}
    body = {**READY.body, "credentials": {**given, "expiresAt": "2026-11-16T02:54:24.000Z"}}
    client, transport = a_client(time, ApiAnswer(200, body))
    queue: Any = client.get_credentials("acme", Access.SEND)
    assert queue.credentials.secret_access_key == "a secret"
    assert "a secret" not in repr(queue)
    assert "a token" not in repr(queue)
    assert [request.path for request in transport.requests] == ["/tenants/acme/queue/credentials/send"]


def test_credentials_that_are_not_enabled_are_refused(time: Time) -> None:
    client, _ = a_client(time, no_credentials())
    with pytest.raises(RequestRefused) as refused:
        client.get_credentials("acme", Access.RECEIVE)
    assert refused.value.kind == "credentials-not-enabled"


def test_a_field_that_a_later_version_adds_is_ignored(time: Time) -> None:
    client, _ = a_client(time, ApiAnswer(200, {**READY.body, "colour": "blue"}))
    assert isinstance(client.get_queue("acme"), Queue)


@pytest.mark.parametrize("body", [{}, {**READY.body, "queueUrl": 5}])
def test_an_unreadable_answer_is_an_error(time: Time, body: dict[str, Any]) -> None:
    client, _ = a_client(time, ApiAnswer(200, body))
    with pytest.raises(UnexpectedAnswer, match="this client cannot read"):
        client.get_queue("acme")


def test_an_answer_that_is_not_from_berth_is_an_error(time: Time) -> None:
    client, _ = a_client(time, ApiAnswer(404, {"message": "Not Found"}))
    with pytest.raises(UnexpectedAnswer, match=r"^GET /releases answered 404: Not Found$"):
        client.call(LIST_RELEASES, EmptyRequest())


def test_the_url_comes_from_the_environment_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BERTH_API_URL", raising=False)
    with pytest.raises(MissingSetting, match="BERTH_API_URL"):
        Client()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "id")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "key")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    monkeypatch.setenv("BERTH_API_URL", "https://a1b2c3.execute-api.eu-west-1.amazonaws.com")
    assert isinstance(Client(), Client)
