"""Temporary credentials for one tenant's queue: what they may do, and on what. Nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import Queue

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


KEY_ACTIONS = {
    # The data key of a message is decrypted once before it is used, to see that it is whole.
    Access.SEND: ("kms:GenerateDataKey", "kms:Decrypt"),
    Access.RECEIVE: ("kms:Decrypt",),
}
"""What SQS does with the queue's key, in the name of whoever sends or receives."""


def session_policy(queue: Queue, access: Access, *, kms_keys: Sequence[str] = ()) -> dict[str, object]:
    """What a session may do, at most.

    The role's own policy bounds it further: to queues with the tenant's tag, and to what SQS does with the keys.
    ``kms_keys`` are those that the queue and its messages may be encrypted with: the key of now, and former keys.
    """
    statements: list[dict[str, object]] = [{"Effect": "Allow", "Action": list(ACTIONS[access]), "Resource": queue.arn}]
    if kms_keys:
        statements.append({"Effect": "Allow", "Action": list(KEY_ACTIONS[access]), "Resource": list(kms_keys)})
    return {"Version": "2012-10-17", "Statement": statements}


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
