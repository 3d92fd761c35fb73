"""One event: where it went, every try, its payload, and sending it again."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.delivery_routes import GET_ATTEMPTS, RESEND_EVENT
from orchestrator.api.event_read_routes import GET_EVENT
from orchestrator.cli.api import Document
from orchestrator.cli.deliveries import answer_code, first_line, results_of_resend
from orchestrator.cli.event_next import resend_step
from orchestrator.console.actions import Action, Done
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import ask, base_of, tenant_of
from orchestrator.console.page import page
from orchestrator.console.payloads import payload_of
from orchestrator.console.view import segment
from orchestrator.console.visit import Console, NotThere, Visit


def event(visit: Visit) -> Response:
    tenant = tenant_of(visit)
    # A page that updates itself keeps the payload that it has, so it is not read again.
    tried = _attempts(visit)
    found = None if visit.is_update else ask(visit, GET_EVENT, eventId=visit.name("event"))
    return visit.show(
        "event.html",
        tenant=tenant,
        base=base_of(tenant),
        page_base=_page(tenant, tried["event_id"]),
        tried=tried,
        attempts=[
            {**each, "code": answer_code(each), "first": first_line(each["answer"])} for each in tried["attempts"]
        ],
        deliveries=[(each, resend_step(tried, each["connection_id"])) for each in tried["deliveries"]],
        steps=[resend_step(tried)],
        event=found,
        payload=payload_of(found) if found else None,
    )


def _attempts(visit: Visit) -> Document:
    return ask(visit, GET_ATTEMPTS, eventId=visit.name("event"))


def _page(tenant: str, event_id: str) -> str:
    return f"{base_of(tenant)}/events/{segment(event_id)}"


def _resend(visit: Visit) -> Action:
    """To the connection that the address names, or to all to which the event failed."""
    tenant, tried, named = tenant_of(visit), _attempts(visit), visit.parameter("connection")
    there = _page(tenant, tried["event_id"])
    wanted = [each for each in tried["deliveries"] if each["status"] == "failed"]
    if named:
        wanted = [each for each in tried["deliveries"] if each["connection_id"] == named]
        if not wanted:
            raise NotThere(f"The event {tried['event_id']} of tenant {tenant} did not go to connection {named}")

    def send(visit: Visit, _fields: Mapping[str, str]) -> Done:
        answered = ask(visit, RESEND_EVENT, eventId=tried["event_id"], connection_id=named)
        return Done(" ".join(results_of_resend(answered)), there)

    received = [each for each in wanted if each["status"] == "delivered"]
    effect = f"The event {tried['event_id']} of tenant {tenant} is sent again. A failure is retried."
    if received:
        effect += "\nThe connection has received it, and gets it once more."
    return Action(
        "Send the event again",
        resend_step(tried, named),
        effect,
        send,
        there,
        [f"connection {each['connection_id']} ({each['connection_name'] or 'deleted'})" for each in wanted],
        fields=(),
    )


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/events/{event}", event),
        *action_routes(console, "/tenants/{tenant}/events/{event}/do/resend", _resend),
    ]
