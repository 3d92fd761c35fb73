"""The kinds of Berth's own events, and the fields of each kind as JSON schemas. docs/own-events.md explains them.

Within a version of a schema, fields may be added, and none is removed or gets another meaning. A change that breaks
consumers makes a new version of that kind.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp

SOURCE = "berth"
"""The source of the events on the bus."""
_ID_CHARACTERS = 32


class Kind(StrEnum):
    TENANT_PROVISIONED = "tenant.provisioned"
    TENANT_UPDATED = "tenant.updated"
    TENANT_FAILED = "tenant.failed"
    TENANT_DELETED = "tenant.deleted"
    ROLLOUT_HALTED = "rollout.halted"
    ROLLOUT_SUCCEEDED = "rollout.succeeded"
    CONNECTION_DISABLED = "connection.disabled"
    DELIVERY_EXHAUSTED = "delivery.exhausted"


@dataclass(frozen=True, slots=True)
class OwnEvent:
    id: str
    """The same for the same change, however often the change is published."""
    kind: Kind
    at: datetime
    data: Mapping[str, object]
    tenant: TenantId | None = None
    """The tenant that the event is about. Rollouts are about many tenants."""

    def detail(self, control_plane: str) -> dict[str, object]:
        """The event as consumers get it on the bus."""
        return {
            "id": self.id,
            "kind": self.kind.value,
            "schema_version": KINDS[self.kind].version,
            "at": timestamp(self.at),
            "control_plane": control_plane,
            "data": self.data,
        }


def change_id(kind: Kind, row: str, change: str = "") -> str:
    """The id of the event about one change of a row. ``change`` tells several changes of the same row apart."""
    return hashlib.sha256("\n".join((kind, row, change)).encode()).hexdigest()[:_ID_CHARACTERS]


@dataclass(frozen=True, slots=True)
class Field:
    description: str
    type: str = "string"
    nullable: bool = False
    more: Mapping[str, object] = field(default_factory=dict)
    """Further keywords of the JSON schema."""

    @property
    def schema(self) -> dict[str, object]:
        types: object = [self.type, "null"] if self.nullable else self.type
        return {"type": types, "description": self.description, **self.more}


@dataclass(frozen=True, slots=True)
class KindSpec:
    """The part of a kind of event that consumers can rely on."""

    description: str
    fields: Mapping[str, Field]
    """The fields of ``data``. All of them are always there."""
    version: int = 1


_TIME: Mapping[str, object] = {"format": "date-time"}
_TENANT = Field("the tenant's id")
_OF_OPERATIONS: Mapping[str, Field] = {
    "tenant_id": _TENANT,
    "version": Field("the release that the tenant was moved to; null for a delete", nullable=True),
    "attempt": Field("the number of the attempt", "integer"),
    "execution": Field("the ARN of the execution in Step Functions"),
    "requested_by": Field("who asked for the operation; empty if that is not on record"),
    "reason": Field("the reason that the requester gave; may be empty"),
}
_ROOT_CAUSE = Field(
    "the first failure, not its consequences; null if none is on record",
    "object",
    nullable=True,
    more={
        "required": ["resource", "resource_type", "reason"],
        "properties": {name: {"type": "string"} for name in ("resource", "resource_type", "reason")},
    },
)
_OF_ROLLOUTS: Mapping[str, Field] = {
    "rollout_id": Field("the rollout's id"),
    "version": Field("the release of the rollout; null for an undo, which moves each tenant back", nullable=True),
    "total": Field("the number of tenants that have a turn in the rollout", "integer"),
    "reason": Field("why the rollout has this status; may be empty"),
    "requested_by": Field("who started the rollout"),
    "created_at": Field("when the rollout was started", more=_TIME),
}
_OF_CONNECTIONS: Mapping[str, Field] = {
    "tenant_id": _TENANT,
    "connection_id": Field("the connection's id"),
    "origin": Field("where the connection's events are from: `api`, or the id of a source or a form"),
}

KINDS: Mapping[Kind, KindSpec] = {
    Kind.TENANT_PROVISIONED: KindSpec("A create succeeded: the tenant has its queue.", _OF_OPERATIONS),
    Kind.TENANT_UPDATED: KindSpec(
        "An update succeeded: the tenant is at the release, also if the release changed nothing of its stack.",
        _OF_OPERATIONS,
    ),
    Kind.TENANT_FAILED: KindSpec(
        "An operation on a tenant failed, or was refused after it had been started. A tenant that was served before a "
        "failed update or a refused delete is still served.",
        {
            **_OF_OPERATIONS,
            "operation": Field("the operation that failed", more={"enum": ["CREATE", "UPDATE", "DELETE"]}),
            "root_cause": _ROOT_CAUSE,
        },
    ),
    Kind.TENANT_DELETED: KindSpec("A delete succeeded: the tenant and its queue are gone.", _OF_OPERATIONS),
    Kind.ROLLOUT_HALTED: KindSpec(
        "A rollout stopped itself: too many tenants failed, an alarm went off, or it could not go on. Dry runs are not "
        "published.",
        _OF_ROLLOUTS,
    ),
    Kind.ROLLOUT_SUCCEEDED: KindSpec(
        "Every tenant of a rollout is at its requested version, or was skipped. Dry runs are not published.",
        _OF_ROLLOUTS,
    ),
    Kind.CONNECTION_DISABLED: KindSpec(
        "Berth disabled a connection, because it failed for days, its receiver said that it is gone, or its mail came "
        "back. Its deliveries fail until somebody resumes it.",
        {
            **_OF_CONNECTIONS,
            "name": Field("the connection's name"),
            "destination": Field("the kind of the destination: `queue`, `webhook`, `zapier` or `email`"),
            "reason": Field("why the connection was disabled; may be empty"),
        },
    ),
    Kind.DELIVERY_EXHAUSTED: KindSpec(
        "The delivery of an event to a connection failed for good. Somebody can ask for it again.",
        {
            **_OF_CONNECTIONS,
            "connection_id": Field("the connection's id; `*` if the event could not be handed to any connection"),
            "event_id": Field("the event's id"),
            "tries": Field("how often the delivery was tried", "integer"),
            "code": Field("the HTTP status of the last answer; null if there was none", "integer", nullable=True),
            "reason": Field("why the last try failed"),
            "resend": Field("true if somebody had asked for the delivery again", "boolean"),
        },
    ),
}


def schema_of(kind: Kind) -> dict[str, object]:
    """The JSON schema of the detail of an event of this kind."""
    spec = KINDS[kind]
    envelope: dict[str, object] = {
        "id": {
            "type": "string",
            "pattern": f"^[0-9a-f]{{{_ID_CHARACTERS}}}$",
            "description": "the same for the same change, however often the event arrives",
        },
        "kind": {"const": kind.value},
        "schema_version": {"const": spec.version},
        "at": {"type": "string", **_TIME, "description": "when the change was made"},
        "control_plane": {"type": "string", "description": "the name of the control plane"},
        "data": {
            "type": "object",
            "required": list(spec.fields),
            "properties": {name: each.schema for name, each in spec.fields.items()},
        },
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"{kind.value}, version {spec.version}",
        "description": spec.description,
        "type": "object",
        "required": list(envelope),
        "properties": envelope,
    }
