"""HTTP answers with events. A payload that is JSON is sent as it came in, byte for byte."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from orchestrator.api.event_problems import INBOX_OFF, UNKNOWN_EVENT
from orchestrator.api.event_read_routes import PayloadAs
from orchestrator.api.responses import Response, json_response, problem
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.access import EventCredentials
from orchestrator.events.documents import event_fields
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.inbox import Acknowledged
from orchestrator.events.listing import EventPage
from orchestrator.events.readable_json import is_readable
from orchestrator.events.records import Content, Event

_json = msgspec.json.Decoder(msgspec.Raw)


@dataclass(frozen=True, slots=True)
class EventsResponse(Response):
    """A response with payloads as they came in: ``json.dumps`` cannot write those."""

    def as_proxy_result(self) -> dict[str, object]:
        return {
            "statusCode": self.status,
            "headers": self.headers,
            "body": msgspec.json.encode(self.body).decode(),
        }


def events_response(page: EventPage) -> Response:
    documents = [event_document(event) for event in page.events]
    return _response({"events": documents, "cursor": page.cursor})


def event_response(
    tenant: TenantId, event_id: str, event: Event | None, payload_as: PayloadAs = PayloadAs.JSON
) -> Response:
    if event is None:
        return problem(UNKNOWN_EVENT, f"Tenant {tenant} has no event {event_id}, or it has expired.")
    return _response(event_document(event, payload_as))


def inbox_off_response(tenant: TenantId) -> Response:
    return problem(
        INBOX_OFF,
        f"The inbox of tenant {tenant} is off. Operators switch it on: berth events settings {tenant} --inbox",
    )


def acknowledged_response(event_ids: Sequence[str], results: Mapping[str, Acknowledged]) -> Response:
    listed = [{"event_id": each, "result": results[each].value} for each in dict.fromkeys(event_ids)]
    return json_response(200, {"results": listed})


def event_credentials_response(tenant: TenantId, issued: EventCredentials) -> Response:
    response = json_response(
        200,
        {
            "tenant_id": tenant.value,
            "table": issued.table,
            "partitions": list(issued.partitions),
            "access_key_id": issued.access_key_id,
            "secret_access_key": issued.secret_access_key,
            "session_token": issued.session_token,
            "expires_at": event_timestamp(issued.expires_at),
        },
    )
    response.headers["Cache-Control"] = "no-store"
    return response


def event_document(event: Event, payload_as: PayloadAs = PayloadAs.JSON) -> dict[str, Any]:
    document = event_fields(event)
    if event.content is None:
        return document | {"payload_omitted": True}
    return document | _content(event.content, payload_as)


def _content(content: Content, payload_as: PayloadAs) -> dict[str, Any]:
    shown: dict[str, Any] = {"headers": dict(content.headers)} if content.headers else {}
    if payload_as is PayloadAs.JSON:
        try:
            content.body.decode()
            payload = _json.decode(content.body)
        except (ValueError, RecursionError):
            pass
        else:
            if is_readable(content.body):
                return shown | {"payload": payload}
    return shown | {"payload_base64": base64.b64encode(content.body).decode()}


def _response(body: dict[str, Any]) -> Response:
    response = json_response(200, body)
    return EventsResponse(response.status, response.headers, response.body)
