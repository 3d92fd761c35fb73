"""One event: where it went, every try, its payload, and sending it again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.delivery_routes import GET_ATTEMPTS, RESEND_EVENT
from orchestrator.api.event_read_routes import GET_EVENT
from orchestrator.cli.api import Document
from orchestrator.cli.deliveries import answer_code, first_line, results_of_resend
from orchestrator.cli.event_next import resend_step
from orchestrator.cli.next_step import NextStep
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
        deliveries=tried["deliveries"],
        to_all=resend_step(tried),
        to_one=[(each["connection_id"], resend_step(tried, each)) for each in tried["deliveries"]],
        event=found,
        payload=payload_of(found) if found else None,
    )


def _attempts(visit: Visit) -> Document:
    return ask(visit, GET_ATTEMPTS, eventId=visit.name("event"))


def _page(tenant: str, event_id: str) -> str:
    return f"{base_of(tenant)}/events/{segment(event_id)}"


def _resend_to_all(visit: Visit) -> Action:
    """Resend the event to all connections to which it failed."""
    tried = _attempts(visit)
    failed = [each for each in tried["deliveries"] if each["status"] == "failed"]
    return _resend(visit, tried, resend_step(tried), failed, None)


def _resend_to_one(visit: Visit) -> Action:
    tried, named = _attempts(visit), visit.name("connection")
    for each in tried["deliveries"]:
        if each["connection_id"] == named:
            return _resend(visit, tried, resend_step(tried, each), [each], named)
    raise NotThere(f"The event {tried['event_id']} of tenant {tenant_of(visit)} did not go to connection {named}")


def _resend(
    visit: Visit, tried: Document, step: NextStep, wanted: Sequence[Document], connection_id: str | None
) -> Action:
    tenant = tenant_of(visit)
    there = _page(tenant, tried["event_id"])

    def send(visit: Visit, _fields: Mapping[str, str]) -> Done:
        answered = ask(visit, RESEND_EVENT, eventId=tried["event_id"], connection_id=connection_id)
        return Done(" ".join(results_of_resend(answered, tried)), there)

    received = [each for each in wanted if each["status"] == "delivered"]
    effect = f"The event {tried['event_id']} of tenant {tenant} is sent again. A failure is retried."
    if received:
        effect += "\nThe connection has received it, and gets it once more."
    return Action(
        "Send the event again",
        step,
        effect,
        send,
        there,
        [f"connection {each['connection_id']} ({each['connection_name'] or 'deleted'})" for each in wanted],
        fields=(),
    )


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/events/{event}", event),
        *action_routes(console, "/tenants/{tenant}/events/{event}/do/resend", _resend_to_all),
        *action_routes(console, "/tenants/{tenant}/events/{event}/to/{connection}/do/resend", _resend_to_one),
    ]
