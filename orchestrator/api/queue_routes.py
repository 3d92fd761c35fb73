"""What platforms, senders and receivers ask for.

getQueue's function does not load this: it starts fast, and reads the little that it is sent by itself.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import UNSET, UnsetType

from orchestrator.api.fields import (
    Access,
    Execution,
    Moment,
    OfTenant,
    QueueArn,
    QueueUrl,
    RetryAfterSeconds,
    TenantIdText,
    Wire,
    former_name_of,
)
from orchestrator.api.problems import (
    CREDENTIALS_NOT_ENABLED,
    FLEET_FULL,
    INVALID_REQUEST,
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
    state: Literal["READY"] | UnsetType = UNSET
    status: Annotated[Literal["READY"], former_name_of("state")]
    queue_url: QueueUrl
    queue_arn: QueueArn
    version: str


class Credentials(Wire, frozen=True, kw_only=True):
    """Temporary credentials that can do this, on this queue, and nothing else."""

    access: Access
    access_key_id: str
    secret_access_key: str
    session_token: str
    expires_at: Moment

    def __repr__(self) -> str:
        """Neither printed nor logged by accident: only the key's id shows."""
        return f"Credentials(access={self.access!r}, access_key_id={self.access_key_id!r}, ...)"


class QueueWithCredentials(Queue, frozen=True, kw_only=True):
    """The tenant's queue, and credentials for it."""

    credentials: Credentials


class Provisioning(Wire, frozen=True, kw_only=True):
    """The tenant's queue is on its way."""

    tenant_id: TenantIdText
    state: Literal["PROVISIONING"] | UnsetType = UNSET
    status: Annotated[Literal["PROVISIONING"], former_name_of("state")]
    execution: Execution
    retry_after_seconds: RetryAfterSeconds


_PROVISIONING = Answer(
    202, Provisioning, "The queue is being provisioned. Ask again after Retry-After seconds.", (RETRY_AFTER,)
)
_NO_QUEUE = (UNKNOWN_TENANT, TENANT_BEING_DELETED, NOT_PROVISIONED, TENANT_DELETED, PROVISIONING_FAILED)

GET_QUEUE: Route[OfTenant, Queue | Provisioning] = Route(
    name="getQueue",
    method="GET",
    path="/tenants/{tenantId}/queue",
    audience=Audience.PLATFORM,
    rate=Rate.QUEUES,
    summary="The tenant's queue, or what to do until there is one",
    description="Asking for the queue of a tenant that was never heard of starts its provisioning, unless the control "
    "plane was deployed with berth:createOnGetQueue=false. Each caller may start so many per minute "
    "(berth:createsPerMinute), and there may be so many tenants (berth:maxTenants).",
    request=OfTenant,
    answers=(Answer(200, Queue, "The queue."), _PROVISIONING),
    problems=(INVALID_REQUEST, *_NO_QUEUE, FLEET_FULL, TOO_MANY_CREATES, TRY_AGAIN),
)


def _credentials_route(
    name: str, access: credentials.Access, audience: Audience, summary: str
) -> Route[OfTenant, QueueWithCredentials | Provisioning]:
    (key,) = (key for key, given in credentials.CREDENTIAL_ROUTES.items() if given is access)
    method, _, path = key.partition(" ")
    return Route(
        name=name,
        method=method,
        path=path,
        audience=audience,
        rate=Rate.CREDENTIALS,
        summary=summary,
        description="The credentials are good for this queue and for nothing else. A tenant that has no queue gets "
        "none by this: ask for its queue first.",
        request=OfTenant,
        answers=(Answer(200, QueueWithCredentials, "The queue, and credentials for it.", (NO_STORE,)), _PROVISIONING),
        problems=(INVALID_REQUEST, CREDENTIALS_NOT_ENABLED, NOT_THROUGH_THE_API, *_NO_QUEUE, TRY_AGAIN),
    )


GET_SEND_CREDENTIALS = _credentials_route(
    "getSendCredentials",
    credentials.Access.SEND,
    Audience.SENDER,
    "Temporary credentials to send to the tenant's queue",
)
GET_RECEIVE_CREDENTIALS = _credentials_route(
    "getReceiveCredentials",
    credentials.Access.RECEIVE,
    Audience.RECEIVER,
    "Temporary credentials to receive from the tenant's queue",
)

CREDENTIAL_ROUTES = {
    credentials.Access.SEND: GET_SEND_CREDENTIALS,
    credentials.Access.RECEIVE: GET_RECEIVE_CREDENTIALS,
}

ROUTES = (GET_QUEUE, GET_SEND_CREDENTIALS, GET_RECEIVE_CREDENTIALS)
