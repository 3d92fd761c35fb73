"""HTTP answers about connections. The command line shows the same documents."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from orchestrator.api.event_configuration_answers import refusal_response, secret_response
from orchestrator.api.responses import Response, json_response
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.events.configuring_connections import IssuedSecret
from orchestrator.events.delivery.records import Connection, UnreadableConnection
from orchestrator.events.delivery.troubles import Troubles
from orchestrator.events.refusals import Refused
from orchestrator.events.sending_tests import SentTest

_DAMAGED = "Its record is damaged. An operator has to mend it; until then its deliveries wait."


def connections_response(connections: Sequence[Connection]) -> Response:
    return json_response(200, {"connections": [_connection(each) for each in connections]})


def connection_response(connection: Connection | Refused) -> Response:
    if isinstance(connection, Refused):
        return refusal_response(connection)
    return json_response(200, _connection(connection))


def issued_connection_response(issued: IssuedSecret | Refused) -> Response:
    if isinstance(issued, Refused):
        return refusal_response(issued)
    return secret_response({**_connection(issued.connection), "secret": issued.secret})


def deleted_connection_response(connection: Connection | Refused) -> Response:
    if isinstance(connection, Refused):
        return refusal_response(connection)
    return _deleted(connection.life.tenant, connection.connection_id)


def sent_test_response(sent: SentTest | Refused) -> Response:
    if isinstance(sent, Refused):
        return refusal_response(sent)
    connection = sent.connection
    return json_response(
        202,
        {
            "tenant_id": connection.life.tenant.value,
            "connection_id": connection.connection_id,
            "event_id": sent.event_id,
        },
    )


# Zapier


def subscription_response(issued: IssuedSecret | Refused) -> Response:
    if isinstance(issued, Refused):
        return refusal_response(issued)
    connection = issued.connection
    return json_response(
        201,
        {
            "id": connection.connection_id,
            "tenant_id": connection.life.tenant.value,
            "target_url": connection.destination.address,
            "event_type": (connection.filter or {}).get("event_type"),
        },
    )


def unsubscribed_response(outcome: Connection | Refused | None, tenant: TenantId, subscription_id: str) -> Response:
    """``None`` if there was no such subscription."""
    return refusal_response(outcome) if isinstance(outcome, Refused) else _deleted(tenant, subscription_id)


def samples_response(samples: Sequence[Mapping[str, Any]]) -> Response:
    return json_response(200, {"samples": list(samples)})


def troubles_response(troubles: Troubles) -> Response:
    shown = [
        {
            "tenant_id": connection.life.tenant.value,
            "connection_id": connection.connection_id,
            "trouble": trouble.value,
            **_described(connection),
        }
        for connection, trouble in troubles.connections
    ]
    return json_response(200, {"connections": shown, "more": troubles.more})


def _described(connection: Connection | UnreadableConnection) -> dict[str, object]:
    if isinstance(connection, UnreadableConnection):
        return {"name": "damaged", "reason": _DAMAGED, "failing_since": None}
    return {
        "name": connection.name,
        "reason": connection.reason,
        "failing_since": _moment(connection.health.failing_since),
    }


def _deleted(tenant: TenantId, connection_id: str) -> Response:
    return json_response(200, {"tenant_id": tenant.value, "connection_id": connection_id})


def _connection(connection: Connection) -> dict[str, object]:
    health = connection.health
    return {
        "tenant_id": connection.life.tenant.value,
        "connection_id": connection.connection_id,
        "name": connection.name,
        "origin": connection.origin,
        "destination": connection.destination.kind.value,
        "address": connection.destination.address or None,
        "filter": connection.filter,
        "transform": connection.transform,
        "retry_seconds": [int(wait.total_seconds()) for wait in connection.retry.waits],
        "status": connection.status.value,
        "reason": connection.reason,
        "signed": connection.secret is not None,
        "former_secret_until": _moment(connection.former_secret_until),
        "failing_since": _moment(health.failing_since),
        "breaker_open_until": _moment(health.open_until),
        "created_at": timestamp(connection.created_at),
    }


def _moment(at: datetime | None) -> str | None:
    return timestamp(at) if at else None
