"""Temporary credentials for one tenant's queue: what they may do, and on what. Nothing else."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.records import Queue
from orchestrator.tenants import TenantId

TENANT_TAG = "berth:tenant-id"
"""On every tenant's queues, and on every session that may use them."""


class Access(StrEnum):
    SEND = "send"
    RECEIVE = "receive"


CREDENTIAL_ROUTES = {f"POST /tenants/{{tenantId}}/queue/credentials/{access}": access for access in Access}
"""One route each, because IAM can tell routes apart and nothing that is in a request."""


ACTIONS = {
    Access.SEND: ("sqs:SendMessage",),
    Access.RECEIVE: ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
}


def session_policy(queue: Queue, access: Access) -> dict[str, object]:
    """What a session may do, at most: the role's own policy bounds it further, to queues with the tenant's tag."""
    return {
        "Version": "2012-10-17",
        "Statement": [{"Effect": "Allow", "Action": list(ACTIONS[access]), "Resource": queue.arn}],
    }


@dataclass(frozen=True, slots=True)
class Credentials:
    """Neither printed nor logged by accident: only the key's id shows."""

    access: Access
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime


class CredentialsIssuer(Protocol):
    def issue(self, tenant: TenantId, queue: Queue, access: Access, *, source_identity: str) -> Credentials:
        """``source_identity`` is who asks. CloudTrail has it beside everything that the credentials are used for."""
