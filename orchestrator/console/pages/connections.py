"""The connections of a tenant, and one with its health and its deliveries that failed or wait."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from orchestrator.api.connection_routes import (
    CREATE_CONNECTION,
    DELETE_CONNECTION,
    GET_CONNECTION,
    LIST_CONNECTIONS,
    PAUSE_CONNECTION,
    RESUME_CONNECTION,
    ROTATE_CONNECTION,
    TEST_CONNECTION,
    UPDATE_CONNECTION,
)
from orchestrator.api.delivery_routes import LIST_DELIVERIES
from orchestrator.api.event_configuration_routes import LIST_FORMS, LIST_SOURCES
from orchestrator.cli.api import Document
from orchestrator.cli.connections import filter_of_types, waits
from orchestrator.cli.event_next import connection_steps, warning_about
from orchestrator.cli.next_step import NextStep
from orchestrator.common.errors import InvalidRequest
from orchestrator.console.actions import Action, Done, Field, Issued
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import Order, Subject, ask, base_of, step_for, tenant_of, texts_in
from orchestrator.console.page import page
from orchestrator.console.view import address
from orchestrator.console.visit import Console, Visit, number
from orchestrator.events.configuring_connections import MAX_DOCUMENT_BYTES
from orchestrator.events.delivery.addresses import MAX_URL
from orchestrator.events.delivery.records import API_ORIGIN, DeliveryState, DestinationKind
from orchestrator.events.delivery.retries import DEFAULT_WAITS, MAX_DURATION
from orchestrator.events.delivery.signing import ROTATION_OVERLAP

SIZE = 50
STATUSES = (DeliveryState.FAILED.value, DeliveryState.PARKED.value)
_USUAL = [int(wait.total_seconds()) for wait in DEFAULT_WAITS]


def connections(visit: Visit) -> Response:
    tenant = tenant_of(visit)
    return visit.show(
        "connections.html",
        tenant=tenant,
        base=base_of(tenant),
        connections=ask(visit, LIST_CONNECTIONS)["connections"],
        steps=[_create_step(tenant)],
    )


def connection(visit: Visit) -> Response:
    tenant, found = tenant_of(visit), _find(visit)
    status = next((each for each in STATUSES if each == visit.parameter("status")), STATUSES[0])
    here = _page(tenant, found["connection_id"])
    listed = ask(
        visit,
        LIST_DELIVERIES,
        connectionId=found["connection_id"],
        status=status,
        cursor=visit.parameter("cursor"),
        limit=SIZE,
    )
    return visit.show(
        "connection.html",
        tenant=tenant,
        base=base_of(tenant),
        here_base=here,
        connection=found,
        waits=waits(found["retry_seconds"]),
        filter=_json(found["filter"]),
        transform=_json(found["transform"]),
        steps=connection_steps(found),
        statuses=STATUSES,
        wanted=status,
        deliveries=listed["deliveries"],
        following=address(here, status=status, cursor=listed["cursor"]) if listed["cursor"] else None,
        first=address(here, status=status) if visit.parameter("cursor") else None,
    )


def _find(visit: Visit) -> Document:
    return ask(visit, GET_CONNECTION, connectionId=visit.name("connection"))


def _page(tenant: str, connection_id: str) -> str:
    return f"{base_of(tenant)}/connections/{connection_id}"


def _subject(found: Document) -> Subject:
    tenant, connection_id = found["tenant_id"], found["connection_id"]
    return Subject(tenant, "connection", "connectionId", connection_id, found["name"], _page(tenant, connection_id))


# Creating and changing


def _create_step(tenant: str) -> NextStep:
    return NextStep("create", "Make a connection", f"berth connections create {tenant} --name TEXT --webhook URL")


def _create(visit: Visit) -> Action:
    tenant = tenant_of(visit)
    origins = {API_ORIGIN: f"{API_ORIGIN}: events that are sent to the API"}
    origins |= {each["source_id"]: f"source {each['name']}" for each in ask(visit, LIST_SOURCES)["sources"]}
    origins |= {each["form_id"]: f"form {each['name']}" for each in ask(visit, LIST_FORMS)["forms"]}

    def send(visit: Visit, fields: Mapping[str, str]) -> Done | Issued:
        types = texts_in(fields.get("types", ""))
        document = _document("The filter", fields.get("filter", ""))
        if types and document:
            raise ValueError("Name the types in the filter, or leave the filter empty.")
        made = ask(
            visit,
            CREATE_CONNECTION,
            name=fields.get("name", ""),
            origin=fields.get("origin", ""),
            destination=fields.get("destination", ""),
            address=fields.get("address") or None,
            filter=filter_of_types(types) if types else document,
            transform=_document("The transform", fields.get("transform", "")),
            retry_seconds=_seconds(fields.get("retry", "")),
        )
        if made["secret"]:
            return _issued(made, f"The connection {made['name']} of {tenant} is made")
        return Done(f"The {_subject(made)} delivers.", _subject(made).page)

    return Action(
        f"Make a connection of {tenant}",
        _create_step(tenant),
        f"Events of tenant {tenant} that come in from now on go to the destination, within 10 seconds.",
        send,
        f"{base_of(tenant)}/connections",
        [f"the events of tenant {tenant}"],
        (
            Field("name", "Name", required=True, longest=100),
            Field("origin", "Events of", "choice", value=API_ORIGIN, choices=list(origins), names=origins),
            Field("destination", "Destination", "choice", choices=list(DestinationKind), names=_DESTINATIONS),
            Field("address", "URL or address of mail", longest=MAX_URL, hint="A queue needs none."),
            Field("types", "Only events of these types", hint="Separated by commas. Empty: all.", longest=2_000),
            *_how("", "", ""),
        ),
    )


_DESTINATIONS: Mapping[str, str] = {
    DestinationKind.QUEUE: "the tenant's own queue",
    DestinationKind.WEBHOOK: "a webhook, with signed requests",
    DestinationKind.ZAPIER: "a Zap",
    DestinationKind.EMAIL: "an address of mail, whose owner wants the mail",
}


def _how(wanted: str, transform: str, retry: str) -> tuple[Field, ...]:
    return (
        Field(
            "filter",
            "Filter, as JSON",
            "area",
            value=wanted,
            hint='Such as {"payload": {"total": {"$gte": 100}}}',
            longest=MAX_DOCUMENT_BYTES,
        ),
        Field(
            "transform",
            "Transform of payloads, as JSON",
            "area",
            value=transform,
            hint='Such as {"remove": ["customer.card"], "wrap": "order"}',
            longest=MAX_DOCUMENT_BYTES,
        ),
        Field(
            "retry",
            "Waits between tries, in seconds",
            value=retry,
            hint="Separated by commas. Empty: eight tries within about a day.",
        ),
    )


def _update(_visit: Visit, found: Document, step: NextStep) -> Action:
    subject = _subject(found)

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        # An empty filter or transform takes the one away that is there.
        ask(
            visit,
            UPDATE_CONNECTION,
            connectionId=subject.resource_id,
            name=fields.get("name", ""),
            address=fields.get("address") or None,
            filter=_document("The filter", fields.get("filter", "")) or {},
            transform=_document("The transform", fields.get("transform", "")) or {},
            retry_seconds=_seconds(fields.get("retry", "")) or _USUAL,
        )
        return Done(f"The {subject} is changed.", subject.page)

    retry = found["retry_seconds"]
    addresses = [Field("address", "Address", value=found["address"], longest=MAX_URL)] if found["address"] else []
    return Action(
        f"Change {subject.name}",
        step,
        f"The change of {subject} takes effect within 10 seconds, also for deliveries that wait for another try.",
        send,
        subject.page,
        [str(subject)],
        (
            Field("name", "Name", value=found["name"], required=True, longest=100),
            *addresses,
            *_how(
                _json(found["filter"]), _json(found["transform"]), "" if retry == _USUAL else ", ".join(map(str, retry))
            ),
        ),
    )


def _json(document: object) -> str:
    return json.dumps(document, ensure_ascii=False) if document else ""


def _document(name: str, text: str) -> dict[str, Any] | None:
    if not text:
        return None
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidRequest(f"{name} is not JSON.") from None
    if not isinstance(document, dict):
        raise InvalidRequest(f"{name} is not a JSON object.")
    return document


def _seconds(text: str) -> list[int] | None:
    most = int(MAX_DURATION.total_seconds())
    return [number(each, least=1, most=most, name="Each wait") for each in texts_in(text)] or None


# Secrets and tests


def _issued(made: Document, title: str) -> Issued:
    tenant, connection_id = made["tenant_id"], made["connection_id"]
    return Issued(
        title,
        "Signing secret",
        made["secret"],
        {"Tenant": tenant, "Connection": f"{made['name']} ({connection_id})", "Address": made["address"] or ""},
        ["The receiver needs the secret to check the signature of each request."],
        [f"berth connections test {tenant} {connection_id}"],
        _page(tenant, connection_id),
    )


def _rotate(_visit: Visit, found: Document, step: NextStep) -> Action:
    subject, hours = _subject(found), int(ROTATION_OVERLAP.total_seconds()) // 3600

    def send(visit: Visit, _fields: Mapping[str, str]) -> Issued:
        made = ask(visit, ROTATE_CONNECTION, connectionId=subject.resource_id)
        return _issued(made, f"{subject.name} has a new secret")

    return Action(
        f"Replace the secret of {subject.name}",
        step,
        f"The {subject} gets a new signing secret, which is shown once. For {hours} hours deliveries carry the "
        "signatures of both secrets. A secret that was replaced before ends at once.",
        send,
        subject.page,
        [str(subject)],
        fields=(),
    )


def _test(_visit: Visit, found: Document, step: NextStep) -> Action:
    subject = _subject(found)

    def send(visit: Visit, _fields: Mapping[str, str]) -> Done:
        sent = ask(visit, TEST_CONNECTION, connectionId=subject.resource_id)
        return Done(
            f"Test event {sent['event_id']} is sent to {subject.name} alone.",
            f"{base_of(subject.tenant)}/events/{sent['event_id']}",
        )

    return Action(
        f"Send a test event to {subject.name}",
        step,
        f"An event of type berth.test goes to {subject} alone, whatever its filter says.",
        send,
        subject.page,
        [str(subject)],
        fields=(),
    )


def _order(order: Order) -> Callable[[Visit, Document, NextStep], Action]:
    return lambda _visit, found, step: order.action(_subject(found), step)


def _delete(_visit: Visit, found: Document, step: NextStep) -> Action:
    subject = _subject(found)
    effect = f"{warning_about('connection', subject.resource_id, subject.tenant)} Its secret cannot be brought back."
    back = f"{base_of(subject.tenant)}/connections"
    return Order(DELETE_CONNECTION, "Delete {}", effect, "is deleted", destroys=True, back=back).action(subject, step)


ACTIONS: Mapping[str, Callable[[Visit, Document, NextStep], Action]] = {
    "resume": _order(
        Order(
            RESUME_CONNECTION,
            "Let {} deliver again",
            "The {} delivers again, beginning with what has waited. What has failed stays failed.",
            "delivers",
        )
    ),
    "pause": _order(
        Order(
            PAUSE_CONNECTION,
            "Pause {}",
            "Within 10 seconds the deliveries of {} wait. They are sent when it is resumed, unless the events have "
            "expired by then.",
            "is paused",
        )
    ),
    "test": _test,
    "update": _update,
    "rotate": _rotate,
    "delete": _delete,
}


def _plan(visit: Visit) -> Action:
    verb, found = visit.name("verb"), _find(visit)
    step = step_for(verb, [each for each in connection_steps(found) if each.verb in ACTIONS])
    return ACTIONS[verb](visit, found, step)


def replay(visit: Visit) -> Response:
    """A replay to one connection is planned on the page of replays."""
    tenant = tenant_of(visit)
    target = address(f"{base_of(tenant)}/replays/plan", to=visit.name("connection"), since="2h")
    return RedirectResponse(target, 303)


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/connections", connections),
        *action_routes(console, "/tenants/{tenant}/connections/do/create", _create),
        page(console, "/tenants/{tenant}/connections/{connection}", connection),
        page(console, "/tenants/{tenant}/connections/{connection}/do/replay", replay),
        *action_routes(console, "/tenants/{tenant}/connections/{connection}/do/{verb}", _plan),
    ]
