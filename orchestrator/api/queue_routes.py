"""The routes for platforms, senders and receivers.

getQueue's function does not load this module, so that the function starts fast. It parses its small requests itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from orchestrator.api.fields import (
    Access,
    Execution,
    Moment,
    QueueArn,
    QueueUrl,
    Resources,
    RetryAfterSeconds,
    TenantIdRequest,
    TenantIdText,
    WaitSeconds,
    Wire,
)
from orchestrator.api.problems import (
    CREDENTIALS_NOT_ENABLED,
    FLEET_FULL,
    INVALID_REQUEST,
    NO_RELEASE,
    NOT_PROVISIONED,
    NOT_THROUGH_THE_API,
    PROVISIONING_FAILED,
    TENANT_BEING_DELETED,
    TENANT_DELETED,
    TOO_MANY_CREATES,
    TRY_AGAIN,
    UNKNOWN_TENANT,
)
from orchestrator.api.route import NO_STORE, RETRY_AFTER, Answer, Audience, Rate, Route
from orchestrator.tenants import credentials


class Queue(Wire, frozen=True, kw_only=True):
    """The tenant's queue, ready to be used."""

    tenant_id: TenantIdText
    state: Literal["READY"]
    queue_url: QueueUrl
    queue_arn: QueueArn
    version: Annotated[str, Meta(description="The release that the tenant is at.")]
    resources: Resources = msgspec.field(default_factory=dict)


class Credentials(Wire, frozen=True, kw_only=True):
    """Temporary credentials with one kind of access to this queue, and to nothing else."""

    access: Access
    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: Moment

    def __repr__(self) -> str:
        """Show only the key's id, so that secrets are not printed or logged by accident."""
        return f"Credentials(access={self.access!r}, access_key_id={self.access_key_id!r}, ...)"


class QueueWithCredentials(Queue, frozen=True, kw_only=True):
    """The tenant's queue, and credentials for it."""

    credentials: Credentials


class Provisioning(Wire, frozen=True, kw_only=True):
    """The tenant's queue is being provisioned."""

    tenant_id: TenantIdText
    state: Literal["PROVISIONING"]
    execution: Execution
    retry_after_seconds: RetryAfterSeconds
    wait_seconds: WaitSeconds | UnsetType = UNSET


_PROVISIONING = Answer(
    202, Provisioning, "The queue is being provisioned. Try again after Retry-After seconds.", (RETRY_AFTER,)
)
_NO_QUEUE = (UNKNOWN_TENANT, TENANT_BEING_DELETED, NOT_PROVISIONED, TENANT_DELETED, PROVISIONING_FAILED)

GET_QUEUE: Route[TenantIdRequest, Queue | Provisioning] = Route(
    name="getQueue",
    method="GET",
    path="/tenants/{tenantId}/queue",
    audience=Audience.PLATFORM,
    rate=Rate.QUEUES,
    summary="Get the tenant's queue, and provision it if there is none yet",
    description="A request for the queue of an unknown tenant starts its provisioning, unless the control plane was "
    "deployed with berth:createOnGetQueue=false. The number of creates per caller and minute is limited "
    "(berth:createsPerMinute), and so is the number of tenants (berth:maxTenants).",
    request=TenantIdRequest,
    answers=(Answer(200, Queue, "The queue."), _PROVISIONING),
    problems=(INVALID_REQUEST, *_NO_QUEUE, NO_RELEASE, FLEET_FULL, TOO_MANY_CREATES, TRY_AGAIN),
)


def _credentials_route(
    name: str, access: credentials.Access, audience: Audience, summary: str
) -> Route[TenantIdRequest, QueueWithCredentials | Provisioning]:
    (key,) = (key for key, given in credentials.CREDENTIAL_ROUTES.items() if given is access)
    method, _, path = key.partition(" ")
    return Route(
        name=name,
        method=method,
        path=path,
        audience=audience,
        rate=Rate.CREDENTIALS,
        summary=summary,
        description="The credentials give access to this queue and to nothing else. This route does not provision a "
        "queue: call getQueue first.",
        request=TenantIdRequest,
        answers=(Answer(200, QueueWithCredentials, "The queue, and credentials for it.", (NO_STORE,)), _PROVISIONING),
        problems=(
            *(INVALID_REQUEST, CREDENTIALS_NOT_ENABLED, NOT_THROUGH_THE_API, *_NO_QUEUE),
            TRY_AGAIN,
        ),
    )


GET_SEND_CREDENTIALS = _credentials_route(
    "getSendCredentials",
    credentials.Access.SEND,
    Audience.SENDER,
    "Get temporary credentials to send to the tenant's queue",
)
GET_RECEIVE_CREDENTIALS = _credentials_route(
    "getReceiveCredentials",
    credentials.Access.RECEIVE,
    Audience.RECEIVER,
    "Get temporary credentials to receive from the tenant's queue",
)

CREDENTIAL_ROUTES = {
    credentials.Access.SEND: GET_SEND_CREDENTIALS,
    credentials.Access.RECEIVE: GET_RECEIVE_CREDENTIALS,
}

ROUTES = (GET_QUEUE, GET_SEND_CREDENTIALS, GET_RECEIVE_CREDENTIALS)
