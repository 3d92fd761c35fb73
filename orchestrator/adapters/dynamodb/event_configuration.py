"""The configuration of tenants' events, as functions that face the internet read it.

A key, a source and a form have two rows each: one that is found by the key's digest or by the id, and one in the
tenant's partition, which lists them. Both hold the same attributes, but only the first has a source's secret, and only
the second has the last use of a key. :mod:`orchestrator.adapters.dynamodb.event_configuration_writes` writes them.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import event_keys
from orchestrator.adapters.dynamodb.keys import Key
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.events.plans import Plan
from orchestrator.events.records import (
    ApiKey,
    EventSettings,
    Form,
    KeyStatus,
    Provider,
    Scope,
    Source,
    SourceStatus,
    TenantEpoch,
)

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

USE_IS_WRITTEN_EVERY = timedelta(hours=1)


class DynamoConfiguration:
    """Implements :class:`orchestrator.events.ports.Configuration` and ``KeyUse``."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table

    def settings(self, tenant: TenantId) -> EventSettings | None:
        row = self._get(event_keys.settings_key(tenant))
        return settings_from(row, tenant) if row else None

    def api_key(self, digest: str) -> ApiKey | None:
        row = self._get(event_keys.api_key_key(digest))
        return api_key_from(row) if row else None

    def source(self, source_id: str) -> Source | None:
        row = self._get(event_keys.source_key(source_id))
        return source_from(row) if row else None

    def form(self, form_id: str) -> Form | None:
        row = self._get(event_keys.form_key(form_id))
        return form_from(row) if row else None

    def note(self, key: ApiKey, at: datetime) -> None:
        condition = "attribute_exists(pk) AND (attribute_not_exists(last_used_at) OR last_used_at <= :before)"
        try:
            with throttling():
                self._client.update_item(
                    TableName=self._table,
                    Key=event_keys.listed_api_key_key(key.life, key.key_id),
                    UpdateExpression="SET last_used_at = :at",
                    ConditionExpression=condition,
                    ExpressionAttributeValues={":at": time(at), ":before": time(at - USE_IS_WRITTEN_EVERY)},
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise

    def _get(self, key: Key) -> Item | None:
        with throttling():
            return self._client.get_item(TableName=self._table, Key=key, ConsistentRead=True).get("Item")


# Rows without their keys


def settings_row(settings: EventSettings) -> Item:
    return {
        "epoch": s(settings.life.epoch),
        "incarnation": s(settings.incarnation),
        "plan": s(settings.plan),
        "shards": n(settings.shards),
        "inbox": {"BOOL": settings.inbox},
        "type_index": {"BOOL": settings.type_index},
        "tenant_name": s(settings.tenant_name),
        "created_at": time(settings.created_at),
        "updated_at": time(settings.updated_at),
        "revision": n(settings.revision),
    }


def settings_from(row: Mapping[str, Any], tenant: TenantId) -> EventSettings:
    return EventSettings(
        life=TenantEpoch(tenant, row["epoch"]["S"]),
        incarnation=row["incarnation"]["S"],
        plan=Plan(row["plan"]["S"]),
        shards=number(row, "shards", 1),
        inbox=row["inbox"]["BOOL"],
        type_index=row["type_index"]["BOOL"],
        created_at=_time_of(row, "created_at"),
        updated_at=_time_of(row, "updated_at"),
        tenant_name=text(row, "tenant_name") or "",
        revision=number(row, "revision", 0),
    )


def api_key_row(key: ApiKey) -> Item:
    return {
        **life_row(key.life),
        "key_id": s(key.key_id),
        "key_hash": s(key.digest),
        "name": s(key.name),
        "key_prefix": s(key.prefix),
        "scopes": {"SS": sorted(key.scopes)},
        "status": s(key.status),
        "created_at": time(key.created_at),
        **({"expires_at": time(key.expires_at)} if key.expires_at else {}),
        **({"lifetime": n(int(key.lifetime.total_seconds()))} if key.lifetime else {}),
    }


def api_key_from(row: Mapping[str, Any]) -> ApiKey:
    return ApiKey(
        life=life_from(row),
        key_id=row["key_id"]["S"],
        digest=row["key_hash"]["S"],
        name=row["name"]["S"],
        prefix=row["key_prefix"]["S"],
        scopes=frozenset(map(Scope, row["scopes"]["SS"])),
        status=KeyStatus(row["status"]["S"]),
        created_at=_time_of(row, "created_at"),
        expires_at=moment(row, "expires_at"),
        lifetime=timedelta(seconds=number(row, "lifetime", 0)) or None,
        last_used_at=moment(row, "last_used_at"),
    )


def source_row(source: Source) -> Item:
    """The row without the secret: so it is listed."""
    return {
        **life_row(source.life),
        "source_id": s(source.source_id),
        "name": s(source.name),
        "provider": s(source.provider),
        "status": s(source.status),
        "created_at": time(source.created_at),
        "verification": {"M": {name: s(value) for name, value in source.verification.items()}},
    }


def source_from(row: Mapping[str, Any]) -> Source:
    return Source(
        life=life_from(row),
        source_id=row["source_id"]["S"],
        name=row["name"]["S"],
        provider=Provider(row["provider"]["S"]),
        status=SourceStatus(row["status"]["S"]),
        created_at=_time_of(row, "created_at"),
        secret=bytes(row["secret"]["B"]) if "secret" in row else None,
        verification={name: value["S"] for name, value in row["verification"]["M"].items()},
    )


def form_row(form: Form) -> Item:
    return {
        **life_row(form.life),
        "form_id": s(form.form_id),
        "name": s(form.name),
        "status": s(form.status),
        "created_at": time(form.created_at),
        "origins": {"L": [s(origin) for origin in form.origins]},
        "submissions_per_minute": n(form.submissions_per_minute),
        **({"redirect_url": s(form.redirect_url)} if form.redirect_url else {}),
        **({"honeypot": s(form.honeypot)} if form.honeypot else {}),
    }


def form_from(row: Mapping[str, Any]) -> Form:
    return Form(
        life=life_from(row),
        form_id=row["form_id"]["S"],
        name=row["name"]["S"],
        status=SourceStatus(row["status"]["S"]),
        created_at=_time_of(row, "created_at"),
        origins=tuple(origin["S"] for origin in row["origins"]["L"]),
        redirect_url=text(row, "redirect_url"),
        honeypot=text(row, "honeypot"),
        submissions_per_minute=number(row, "submissions_per_minute", 60),
    )


def life_row(life: TenantEpoch) -> Item:
    return {"tenant_id": s(life.tenant.value), "epoch": s(life.epoch)}


def life_from(row: Mapping[str, Any]) -> TenantEpoch:
    return TenantEpoch(TenantId.parse(row["tenant_id"]["S"]), row["epoch"]["S"])


def _time_of(row: Mapping[str, Any], name: str) -> datetime:
    return parse_timestamp(row[name]["S"])
