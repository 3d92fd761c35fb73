"""Credentials for the events of one tenant, by assuming a role with a session policy and a session tag."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cached_property
from typing import TYPE_CHECKING

from orchestrator.adapters.aws import throttling
from orchestrator.adapters.dynamodb.event_keys import STATUS_INDEX, TYPE_INDEX, any_index_pk, any_shard_pk, shard_pk
from orchestrator.events.access import EventCredentials
from orchestrator.events.records import EventSettings, TenantEpoch

if TYPE_CHECKING:
    from mypy_boto3_sts import STSClient

TENANT_TAG = "berth:tenant-id"
"""The tag of sessions. The same as for queues, but the event plane does not depend on those."""

TABLE_ACTIONS = ("dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query")
INDEX_ACTIONS = ("dynamodb:Query",)
KEY_ACTIONS = ("kms:Decrypt",)


def session_policy(table_arn: str, life: TenantEpoch, *, kms_key: str | None = None) -> dict[str, object]:
    """The session policy: the most that the session may do.

    The role's own policy limits the session further, to the rows of the tenant that the session is tagged with. Only
    this policy names the epoch: a session never reads rows of a predecessor or a successor of the same id.
    """
    indexes = [f"{table_arn}/index/{index}" for index in (STATUS_INDEX, TYPE_INDEX)]
    statements: list[dict[str, object]] = [
        _allowed(TABLE_ACTIONS, [table_arn], any_shard_pk(life)),
        _allowed(INDEX_ACTIONS, indexes, any_index_pk(life)),
    ]
    if kms_key:
        statements.append({"Effect": "Allow", "Action": list(KEY_ACTIONS), "Resource": kms_key})
    return {"Version": "2012-10-17", "Statement": statements}


def _allowed(actions: tuple[str, ...], resources: list[str], partitions: str) -> dict[str, object]:
    return {
        "Effect": "Allow",
        "Action": list(actions),
        "Resource": resources,
        "Condition": {
            "ForAllValues:StringLike": {"dynamodb:LeadingKeys": [partitions]},
            # ForAllValues is true for a request without keys.
            "Null": {"dynamodb:LeadingKeys": "false"},
        },
    }


class StsEventAccess:
    """Implements :class:`orchestrator.events.access.EventAccess`."""

    def __init__(
        self,
        make_client: Callable[[], STSClient],
        *,
        role: str,
        table: str,
        table_arn: str,
        seconds: int,
        kms_key: str | None = None,
    ) -> None:
        self._make_client = make_client
        self._role = role
        self._table = table
        self._table_arn = table_arn
        self._seconds = seconds
        self._kms_key = kms_key

    @cached_property
    def _client(self) -> STSClient:
        return self._make_client()

    def issue(self, settings: EventSettings, *, source_identity: str) -> EventCredentials:
        life = settings.life
        with throttling():
            issued = self._client.assume_role(
                RoleArn=self._role,
                RoleSessionName=f"berth-events-{life.tenant}",
                SourceIdentity=source_identity,
                Policy=json.dumps(session_policy(self._table_arn, life, kms_key=self._kms_key)),
                Tags=[{"Key": TENANT_TAG, "Value": life.tenant.value}],
                DurationSeconds=self._seconds,
            )["Credentials"]
        return EventCredentials(
            self._table,
            [shard_pk(life, shard) for shard in range(settings.shards)],
            issued["AccessKeyId"],
            issued["SecretAccessKey"],
            issued["SessionToken"],
            issued["Expiration"],
        )
