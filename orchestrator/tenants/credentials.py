"""Temporary credentials for one tenant's queue, and the policy that limits them to that queue."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Queue

TENANT_TAG = "berth:tenant-id"
"""The tag of all tenants' queues, and of all sessions that may use them."""


class Access(StrEnum):
    SEND = "send"
    RECEIVE = "receive"


CREDENTIAL_ROUTES = {f"POST /tenants/{{tenantId}}/queue/credentials/{access}": access for access in Access}
"""Each kind of access has its own route, because IAM policies can distinguish routes but not request bodies."""


ACTIONS = {
    Access.SEND: ("sqs:SendMessage",),
    Access.RECEIVE: ("sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility"),
}


KEY_ACTIONS = {
    # SQS decrypts a new data key once before it uses the key, to verify it.
    Access.SEND: ("kms:GenerateDataKey", "kms:Decrypt"),
    Access.RECEIVE: ("kms:Decrypt",),
}
"""The uses of the queue's key that SQS needs on behalf of the sender or receiver."""


def session_policy(queue: Queue, access: Access, *, kms_keys: Sequence[str] = ()) -> dict[str, object]:
    """The session policy: the most that the session may do.

    The role's own policy limits the session further, to queues with the tenant's tag and to SQS's use of the keys.
    ``kms_keys`` are the keys of the queue and its messages: the current key, and former keys.
    """
    statements: list[dict[str, object]] = [{"Effect": "Allow", "Action": list(ACTIONS[access]), "Resource": queue.arn}]
    if kms_keys:
        statements.append({"Effect": "Allow", "Action": list(KEY_ACTIONS[access]), "Resource": list(kms_keys)})
    return {"Version": "2012-10-17", "Statement": statements}


@dataclass(frozen=True, slots=True)
class Credentials:
    """The secrets are left out of ``repr``, so that they are not logged by accident."""

    access: Access
    access_key_id: str
    secret_access_key: str = field(repr=False)
    session_token: str = field(repr=False)
    expires_at: datetime


class CredentialsIssuer(Protocol):
    def issue(self, tenant: TenantId, queue: Queue, access: Access, *, source_identity: str) -> Credentials:
        """``source_identity`` is the caller. CloudTrail records it with every use of the credentials."""
