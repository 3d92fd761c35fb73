"""The client of Berth's API: ``Client().get_queue("acme", wait=True)``."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any, Literal, Protocol, overload

import msgspec
from botocore.exceptions import NoCredentialsError, NoRegionError
from botocore.session import Session

from orchestrator.api.fields import TenantIdRequest, converted
from orchestrator.api.queue_routes import (
    CREDENTIAL_ROUTES,
    GET_QUEUE,
    Provisioning,
    Queue,
    QueueWithCredentials,
)
from orchestrator.api.requesting import HttpRequest, request_of
from orchestrator.api.route import AnswerT, RequestT, Route
from orchestrator.client.errors import ApiUnavailable, RequestRefused, StillProvisioning, UnexpectedAnswer
from orchestrator.client.retrying import BUSY_RETRY_SECONDS, Retrying, too_busy
from orchestrator.client.transport import ApiAnswer, HttpWithKey, SignedHttp
from orchestrator.common.errors import MissingSetting
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import Access

URL_VARIABLE = "BERTH_API_URL"

_PROVISIONING = 202


class Transport(Protocol):
    def send(self, request: HttpRequest) -> ApiAnswer: ...


class Client:
    """``url`` is the output ApiUrl of the control plane's stack. Default: the environment variable ``BERTH_API_URL``.

    Credentials and region come from the same places as boto3's. ``transport`` replaces signed HTTP.
    :meth:`with_key` makes a client for a tenant of the event plane.
    """

    def __init__(
        self,
        url: str | None = None,
        *,
        transport: Transport | None = None,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._transport = transport or _signed_http(url)
        self._monotonic = monotonic
        self._sleep = sleep

    @classmethod
    def with_key(cls, url: str, key: str) -> Client:
        """A client that calls the tenants' routes of the Events API. ``url`` is the output EventsApiUrl.

        A request that is repeated, because the API was too busy, may send an event twice.
        """
        return cls(transport=HttpWithKey(url, key))

    @overload
    def get_queue(self, tenant: str, *, wait: Literal[True], timeout: float = ...) -> Queue: ...

    @overload
    def get_queue(self, tenant: str, *, wait: bool = ..., timeout: float = ...) -> Queue | Provisioning: ...

    def get_queue(self, tenant: str, *, wait: bool = False, timeout: float = 900) -> Queue | Provisioning:
        """The tenant's queue. An unknown tenant is created, unless Berth was deployed with createOnGetQueue=false.

        ``wait`` waits until the queue is ready, and raises StillProvisioning after ``timeout`` seconds.
        """
        request = TenantIdRequest(tenant_id=TenantId.parse(tenant).value)
        if not wait:
            return self.call(GET_QUEUE, request)
        answer = self._retrying(timeout)(lambda: self.send_request(GET_QUEUE, request), _until_ready)
        queue = self._read(GET_QUEUE, answer)
        if isinstance(queue, Provisioning):
            raise StillProvisioning(
                f"Tenant {tenant} has no queue after {timeout:.0f} s: it is still being provisioned by "
                f"{queue.execution}. Try again later.",
                status=answer.status,
                body=answer.body,
            )
        return queue

    def get_credentials(self, tenant: str, access: Access) -> QueueWithCredentials | Provisioning:
        """Temporary credentials to send to the tenant's queue, or to receive from it. No queue is provisioned."""
        return self.call(CREDENTIAL_ROUTES[access], TenantIdRequest(tenant_id=TenantId.parse(tenant).value))

    def call(self, route: Route[RequestT, AnswerT], request: RequestT) -> AnswerT:
        """The route's answer in its own model. If the API is too busy, the request is repeated for a while."""
        return self._read(route, self._retrying(BUSY_RETRY_SECONDS)(lambda: self.send_request(route, request)))

    def send_request(self, route: Route[RequestT, Any], request: RequestT) -> ApiAnswer:
        """Send one request, and return the answer whatever its status."""
        return self._transport.send(request_of(route, request))

    def _retrying(self, seconds: float) -> Retrying:
        return Retrying(_Silent(), seconds=seconds, monotonic=self._monotonic, sleep=self._sleep)

    def _read(self, route: Route[Any, AnswerT], answer: ApiAnswer) -> AnswerT:
        for expected in route.answers:
            if expected.status == answer.status:
                try:
                    return converted(answer.body, expected.model)
                except msgspec.ValidationError as error:
                    message = f"{route.key} gave an answer that this client cannot read: {error}. Compare the versions."
                    raise UnexpectedAnswer(message[:300], status=answer.status, body=answer.body) from None
        detail = answer.body.get("detail") or answer.body.get("message") or "no reason was given"
        message = f"{route.key} answered {answer.status}: {detail}"
        if too_busy(answer):
            raise ApiUnavailable(message, status=answer.status, body=answer.body)
        kind = RequestRefused if "type" in answer.body else UnexpectedAnswer
        raise kind(str(detail) if kind is RequestRefused else message, status=answer.status, body=answer.body)


class _Silent:
    def show_waiting(self, reason: str) -> None:
        pass


def _until_ready(answer: ApiAnswer) -> str | None:
    return "The queue is being provisioned." if answer.status == _PROVISIONING else too_busy(answer)


def _signed_http(url: str | None) -> SignedHttp:
    endpoint = url or os.environ.get(URL_VARIABLE)
    if not endpoint:
        raise MissingSetting(f"The API's URL is missing: use Client(url), or set {URL_VARIABLE} in the environment.")
    session = Session()
    credentials, region = session.get_credentials(), session.get_config_variable("region")
    if credentials is None:
        raise NoCredentialsError
    if not region:
        raise NoRegionError
    return SignedHttp(endpoint, credentials, region)
