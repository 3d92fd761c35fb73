"""Temporary credentials, by assuming a role with a session policy and a session tag."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.credentials import TENANT_TAG, Access, Credentials, session_policy
from orchestrator.tenants.records import Queue

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient


class StsCredentials:
    """Implements :class:`orchestrator.tenants.credentials.CredentialsIssuer`.

    The client is made when it is first needed: most requests of getQueue need no credentials.
    """

    def __init__(
        self, make_client: Callable[[], STSClient], role: str, seconds: int, *, kms_keys: Sequence[str] = ()
    ) -> None:
        self._make_client = make_client
        self._role = role
        self._seconds = seconds
        self._kms_keys = kms_keys

    @cached_property
    def _client(self) -> STSClient:
        return self._make_client()

    def issue(self, tenant: TenantId, queue: Queue, access: Access, *, source_identity: str) -> Credentials:
        with throttling():
            issued = self._client.assume_role(
                RoleArn=self._role,
                RoleSessionName=f"berth-{access}-{tenant}",
                SourceIdentity=source_identity,
                Policy=json.dumps(session_policy(queue, access, kms_keys=self._kms_keys)),
                Tags=[{"Key": TENANT_TAG, "Value": tenant.value}],
                DurationSeconds=self._seconds,
            )["Credentials"]
        return Credentials(
            access,
            issued["AccessKeyId"],
            issued["SecretAccessKey"],
            issued["SessionToken"],
            issued["Expiration"],
        )
