"""The events of a tenant, newest first. The first page is a live tail; the filters are in the address."""

from __future__ import annotations

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.event_read_routes import LIST_EVENTS
from orchestrator.cli.api import Document
from orchestrator.cli.event_reads import POLL_SECONDS, time_of_option
from orchestrator.console.event_plane import ask, base_of, tenant_of
from orchestrator.console.page import page
from orchestrator.console.payloads import payload_of
from orchestrator.console.view import address, command_of
from orchestrator.console.visit import Console, Mistake, Visit
from orchestrator.events.event_ids import event_timestamp
from orchestrator.events.listing import Kind
from orchestrator.events.statuses import UNDELIVERED, EventStatus

FILTERS = ("kind", "type", "status", "source", "form", "since", "until")
STATUSES = (UNDELIVERED, *EventStatus)
SIZE = 50
MAX_CHARACTERS = 2_000
"""Characters of a payload in the list. The event's own page shows more of it."""


def tail(visit: Visit) -> Response:
    tenant, now = tenant_of(visit), visit.console.clock()
    here = f"{base_of(tenant)}/tail"
    filters = {name: visit.parameter(name) for name in FILTERS}
    cursor = visit.parameter("cursor")
    mistake = Mistake()
    found: Document = {"events": [], "cursor": None}
    with mistake.noted():
        found = ask(
            visit,
            LIST_EVENTS,
            kind=filters["kind"],
            event_type=filters["type"],
            status=filters["status"],
            source_id=filters["source"],
            form_id=filters["form"],
            since=time_of_option("From", filters["since"], now),
            until=time_of_option("Until", filters["until"], now),
            cursor=cursor,
            limit=SIZE,
        )
    # A page with a cursor, or with an end, does not change any more.
    is_live = not (cursor or filters["until"] or mistake.text)
    return visit.show(
        "tail.html",
        status=422 if mistake.text else 200,
        tenant=tenant,
        base=base_of(tenant),
        tail=here,
        kinds=list(Kind),
        statuses=STATUSES,
        filters=filters,
        filtered=any(filters.values()),
        error=mistake.text,
        seconds=POLL_SECONDS if is_live else 0,
        held=address(here, **{**filters, "until": event_timestamp(now)}) if is_live else None,
        resumed=address(here, **{**filters, "until": None}) if filters["until"] else None,
        events=[(event, payload_of(event, most=MAX_CHARACTERS)) for event in found["events"]],
        following=address(here, **filters, cursor=found["cursor"]) if found["cursor"] else None,
        first=address(here, **filters) if cursor else None,
        command_line=_command(tenant, filters, live=is_live),
    )


def _command(tenant: str, filters: dict[str, str | None], *, live: bool) -> str:
    """The command that shows the same events."""
    options: list[tuple[str, str | None]] = [
        (f"--{name}", value) for name, value in filters.items() if value and name != "kind"
    ]
    if filters["kind"] == Kind.SUBMISSIONS:
        options.append(("--submissions", None))
    follows = live and not any(value for name, value in filters.items() if name not in ("kind", "type"))
    return command_of(f"berth events {'tail' if follows else 'list'} {tenant}", options)


def routes(console: Console) -> list[Route]:
    return [page(console, "/tenants/{tenant}/tail", tail)]
