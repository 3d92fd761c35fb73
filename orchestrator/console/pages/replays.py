"""Replays of a tenant: planned, started, followed, paused and cancelled."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.connection_routes import LIST_CONNECTIONS
from orchestrator.api.delivery_routes import (
    CANCEL_REPLAY,
    GET_REPLAY,
    LIST_DELIVERIES,
    LIST_REPLAYS,
    PAUSE_REPLAY,
    RESUME_REPLAY,
    START_REPLAY,
    StartReplay,
)
from orchestrator.api.event_read_routes import LIST_EVENTS, moment_of
from orchestrator.cli.api import Document
from orchestrator.cli.event_next import replay_steps
from orchestrator.cli.event_reads import time_of_option
from orchestrator.cli.next_step import NextStep
from orchestrator.cli.replay import progress, sends
from orchestrator.common.errors import InvalidRequest
from orchestrator.console.actions import Action, Done
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import Order, Subject, ask, base_of, step_for, tenant_of
from orchestrator.console.page import page
from orchestrator.console.view import address, command_of
from orchestrator.console.visit import Console, Mistake, NotThere, Visit
from orchestrator.events.delivery.history import MAX_PAGE_SIZE
from orchestrator.events.event_ids import event_timestamp, received_at
from orchestrator.events.listing import Kind
from orchestrator.events.resource_ids import IdPrefix

SIZE = 20
COUNTED = 100
"""A plan counts at most this many events, and reads no second page."""
MISSED, FAILED, ALL = "missed", "failed", "all"
SENDS: Mapping[str, str] = {
    MISSED: sends({"only_failed": False, "include_delivered": False}),
    FAILED: sends({"only_failed": True, "include_delivered": False}),
    ALL: sends({"only_failed": False, "include_delivered": True}),
}


def replays(visit: Visit) -> Response:
    tenant = tenant_of(visit)
    listed = ask(visit, LIST_REPLAYS, limit=SIZE, cursor=visit.parameter("cursor"))
    return visit.show(
        "replays.html",
        tenant=tenant,
        base=base_of(tenant),
        replays=[(each, progress(each), sends(each)) for each in listed["replays"]],
        following=address(f"{base_of(tenant)}/replays", cursor=listed["cursor"]) if listed["cursor"] else None,
    )


def replay(visit: Visit) -> Response:
    tenant, found = tenant_of(visit), _find(visit)
    return visit.show(
        "replay.html",
        tenant=tenant,
        base=base_of(tenant),
        page_base=_page(tenant, found["replay_id"]),
        replay=found,
        progress=progress(found),
        sends=sends(found),
        steps=replay_steps(found),
    )


def _find(visit: Visit) -> Document:
    return ask(visit, GET_REPLAY, replayId=visit.name("replay"))


def _page(tenant: str, replay_id: str) -> str:
    return f"{base_of(tenant)}/replays/{replay_id}"


# Planning: the plan is in the address, so that the page and the form are about the same events.


def plan(visit: Visit) -> Response:
    tenant, now = tenant_of(visit), visit.console.clock()
    given = {name: visit.parameter(name) for name in ("to", "since", "until", "sends")}
    mistake, found = Mistake(), None
    connections = ask(visit, LIST_CONNECTIONS)["connections"]
    if given["to"] and given["since"]:
        with mistake.noted():
            since = time_of_option("From", given["since"], now) or ""
            until = time_of_option("Until", given["until"], now) or event_timestamp(now)
            start = address(
                f"{base_of(tenant)}/replays/do/start",
                to=given["to"],
                since=since,
                until=until,
                sends=given["sends"] or MISSED,
            )
            found = {
                "since": since,
                "until": until,
                "start": start,
                **_looked_up(visit, given["to"], connections, since, until),
            }
    return visit.show(
        "replay_plan.html",
        status=422 if mistake.text else 200,
        tenant=tenant,
        base=base_of(tenant),
        given=given,
        targets=_targets(connections),
        sends=SENDS,
        error=mistake.text,
        plan=found,
        limit=COUNTED,
        command_line=_command(tenant, given["to"], given["since"], given["until"], given["sends"] or MISSED),
    )


def _targets(connections: list[Document]) -> dict[str, str]:
    """Every connection, and every origin that has connections."""
    by_name = {each["connection_id"]: f"{each['name']} ({each['connection_id']})" for each in connections}
    return by_name | {origin: f"all connections of {origin}" for origin in sorted({e["origin"] for e in connections})}


def _looked_up(visit: Visit, to: str, connections: list[Document], since: str, until: str) -> Document:
    """The events of that time, and how many of their deliveries failed, up to a limit."""
    chosen = [each for each in connections if to in (each["connection_id"], each["origin"])]
    if not chosen:
        raise InvalidRequest(f"Tenant {tenant_of(visit)} has no connection, and no origin with connections, {to!a}.")
    origin = chosen[0]["origin"]
    is_form = origin.startswith(f"{IdPrefix.FORM}_")
    listed = ask(
        visit,
        LIST_EVENTS,
        kind=Kind.SUBMISSIONS if is_form else Kind.EVENTS,
        source_id=origin if origin.startswith(f"{IdPrefix.SOURCE}_") else None,
        form_id=origin if is_form else None,
        since=since,
        until=until,
        limit=COUNTED,
    )
    begins, ends = moment_of("since", since), moment_of("until", until)
    return {
        "events": listed["events"],
        "more": listed["cursor"] is not None,
        "targets": [(each, *_failed(visit, each["connection_id"], begins, ends)) for each in chosen],
    }


def _failed(visit: Visit, connection_id: str, since: datetime, until: datetime) -> tuple[int, bool]:
    """The number of failed deliveries of that time among the newest ones, and whether there are older ones."""
    listed = ask(visit, LIST_DELIVERIES, connectionId=connection_id, limit=MAX_PAGE_SIZE)
    of_that_time = [each for each in listed["deliveries"] if since <= received_at(each["event_id"]) < until]
    return len(of_that_time), listed["cursor"] is not None


def _command(tenant: str, to: str | None, since: str | None, until: str | None, what: str) -> str:
    option = "--connection" if (to or f"{IdPrefix.CONNECTION}_").startswith(f"{IdPrefix.CONNECTION}_") else "--from"
    options: list[tuple[str, str | None]] = [(option, to or "CONNECTION_ID"), ("--since", since or "2h")]
    options += [("--until", until)] if until else []
    options += {FAILED: [("--only-failed", None)], ALL: [("--include-delivered", None)]}.get(what, [])
    return command_of(f"berth replay {tenant}", options)


def _start(visit: Visit) -> Action:
    tenant = tenant_of(visit)
    to, since, until = (visit.parameter(name) or "" for name in ("to", "since", "until"))
    what = visit.parameter("sends") or MISSED
    if not (to and since and until) or what not in SENDS:
        raise NotThere("A replay is planned first: choose where it sends to, and the time of the events")
    is_connection = to.startswith(f"{IdPrefix.CONNECTION}_")

    def send(visit: Visit, _fields: Mapping[str, str]) -> Done:
        started = ask(
            visit,
            START_REPLAY,
            connection_id=to if is_connection else None,
            origin=None if is_connection else to,
            since=since,
            until=until,
            include_delivered=what == ALL,
            only_failed=what == FAILED,
        )
        return Done(f"Replay {started['replay_id']} begins within a minute.", _page(tenant, started["replay_id"]))

    target = f"connection {to}" if is_connection else f"all connections of {to}"
    effect = f"Events of tenant {tenant} from {since} until {until} are sent to {target}: {SENDS[what]}."
    warning = START_REPLAY.warning(StartReplay(since=since, include_delivered=what == ALL))
    return Action(
        "Send events of a time again",
        NextStep("start", "Send them again", _command(tenant, to, since, until, what)),
        f"{effect}\n{warning} Its receiver gets them once more." if warning else effect,
        send,
        address(f"{base_of(tenant)}/replays/plan", to=to, since=since, until=until, sends=what),
        [f"{target} of tenant {tenant}"],
        fields=(),
        typed=to if warning else None,
        typed_is="the id of where the events go",
    )


# Orders to one replay

ORDERS: Mapping[str, Order] = {
    "pause": Order(PAUSE_REPLAY, "Pause the replay", "The {} stays where it is until it is resumed.", "is paused"),
    "resume": Order(RESUME_REPLAY, "Let the replay go on", "The {} goes on within a minute.", "goes on"),
    "cancel": Order(
        CANCEL_REPLAY,
        "Cancel the replay",
        "The {} ends, and cannot be resumed. What it has sent so far stays sent.",
        "is cancelled",
        destroys=True,
    ),
}


def _plan(visit: Visit) -> Action:
    verb, found = visit.name("verb"), _find(visit)
    step = step_for(verb, replay_steps(found))
    tenant, replay_id = found["tenant_id"], found["replay_id"]
    subject = Subject(tenant, "replay", "replayId", replay_id, sends(found), _page(tenant, replay_id))
    return ORDERS[verb].action(subject, step)


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/replays", replays),
        page(console, "/tenants/{tenant}/replays/plan", plan),
        *action_routes(console, "/tenants/{tenant}/replays/do/start", _start),
        page(console, "/tenants/{tenant}/replays/{replay}", replay),
        *action_routes(console, "/tenants/{tenant}/replays/{replay}/do/{verb}", _plan),
    ]
