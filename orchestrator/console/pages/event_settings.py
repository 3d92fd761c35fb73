"""The event settings of a tenant, what it has used of its plan, and who changed its configuration."""

from __future__ import annotations

from collections.abc import Mapping

from starlette.responses import Response
from starlette.routing import Route

from orchestrator.api.event_change_routes import LIST_CHANGES
from orchestrator.api.event_configuration_routes import GET_SETTINGS, PUT_SETTINGS
from orchestrator.api.event_usage_routes import GET_USAGE
from orchestrator.cli.api import Document
from orchestrator.cli.errors import ApiProblem
from orchestrator.cli.events import changed, days
from orchestrator.cli.next_step import NextStep
from orchestrator.console.actions import Action, Done, Field, checked
from orchestrator.console.actions import routes as action_routes
from orchestrator.console.event_plane import ask, ask_plane, base_of, is_about, tenant_of
from orchestrator.console.page import page
from orchestrator.console.visit import Console, Visit
from orchestrator.events.plans import PLANS, Plan
from orchestrator.events.refusals import EventRefusal

CHANGES = 20


def settings(visit: Visit) -> Response:
    tenant, found = tenant_of(visit), _settings(visit)
    changes = ask(visit, LIST_CHANGES, limit=CHANGES)["changes"] if found else []
    return visit.show(
        "event_settings.html",
        tenant=tenant,
        base=base_of(tenant),
        settings=found,
        retention=days(found["retention_hours"]) if found else "",
        usage=ask(visit, GET_USAGE) if found else None,
        changes=[{**change, "lines": changed(change)} for change in changes],
        steps=[_step(tenant, found)],
    )


def _settings(visit: Visit) -> Document | None:
    """``None`` if the tenant has none yet."""
    try:
        return ask(visit, GET_SETTINGS)
    except ApiProblem as error:
        if is_about(error, EventRefusal.NO_SETTINGS):
            return None
        raise


def _step(tenant: str, found: Document | None) -> NextStep:
    label = "Change the settings" if found else "Make the settings"
    return NextStep("settings", label, f"berth events settings {tenant} --plan {found['plan'] if found else 'free'}")


def _plan(visit: Visit) -> Action:
    tenant, found = tenant_of(visit), _settings(visit)
    page = f"{base_of(tenant)}/events"

    def send(visit: Visit, fields: Mapping[str, str]) -> Done:
        made = ask_plane(
            visit,
            PUT_SETTINGS,
            tenantId=tenant,
            plan=fields.get("plan"),
            inbox=checked(fields, "inbox"),
            type_index=checked(fields, "type_index"),
            tenant_name=fields.get("tenant_name", ""),
        )
        return Done(f"{tenant}: the plan is {made['plan']}.", page)

    now = found or {"plan": Plan.FREE, "inbox": True, "type_index": True, "tenant_name": ""}
    verb = "Change" if found else "Make"
    return Action(
        f"{verb} the event settings of {tenant}",
        _step(tenant, found),
        f"Tenant {tenant} accepts events once it has settings. They take effect within 10 seconds. Inbox and index "
        "hold the events that come in while they are on.",
        send,
        page,
        [tenant],
        (
            Field("plan", "Plan", "choice", value=now["plan"], choices=list(Plan), names=_plans()),
            Field(
                "inbox", "Keep events in an inbox until the tenant acknowledges them", "check", value=_on(now, "inbox")
            ),
            Field("type_index", "List events by type", "check", value=_on(now, "type_index")),
            Field("tenant_name", "Display name", value=now["tenant_name"], longest=100),
        ),
    )


def _on(now: Mapping[str, object], name: str) -> str:
    return "on" if now[name] else ""


def _plans() -> dict[str, str]:
    """Every plan with its limits, for the choice."""
    return {
        plan: f"{plan}: {days(int(limits.retention.total_seconds()) // 3600)}, {limits.events_per_month:,} events per "
        f"month, {limits.events_per_second:,} per second"
        for plan, limits in PLANS.items()
    }


def routes(console: Console) -> list[Route]:
    return [
        page(console, "/tenants/{tenant}/events", settings),
        *action_routes(console, "/tenants/{tenant}/events/do/settings", _plan),
    ]
