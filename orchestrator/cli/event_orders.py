"""Commands that order something about one source, form or connection, and need nothing but its id: pause, delete."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import typer

from orchestrator.api.route import Route
from orchestrator.cli import render
from orchestrator.cli.event_next import warning_about
from orchestrator.cli.events_api import ask_for
from orchestrator.cli.invocation import Invocation, Json, Tenant, Yes
from orchestrator.common.tenant_ids import TenantId


@dataclass(frozen=True, slots=True)
class OrderCommands:
    app: typer.Typer
    kind: str
    """Such as: source."""
    resource_id: object
    """The annotation of the argument that names the resource."""
    request: Callable[[str], Any]
    """Makes a request of an id, and raises if that is invalid."""

    def add(self, name: str, route: Route[Any, Any], outcome: str, text: str, *, destroys: bool = False) -> None:
        """Add a command. ``outcome`` ends the sentence that it prints, ``text`` is its help."""

        def command(context: typer.Context, tenant: Tenant, resource_id: str, as_json: Json = False) -> None:
            self._order(context.obj, tenant, resource_id, route, outcome, as_json=as_json, warning=None)

        def deletion(
            context: typer.Context, tenant: Tenant, resource_id: str, yes: Yes = False, as_json: Json = False
        ) -> None:
            warning = None if yes else warning_about(self.kind, resource_id, tenant)
            self._order(context.obj, tenant, resource_id, route, outcome, as_json=as_json, warning=warning)

        added = deletion if destroys else command
        added.__annotations__["resource_id"] = self.resource_id
        self.app.command(name, help=text)(added)

    def _order(
        self,
        here: Invocation,
        tenant: str,
        resource_id: str,
        route: Route[Any, Any],
        outcome: str,
        *,
        as_json: bool,
        warning: str | None,
    ) -> None:
        with here.reporting_errors(as_json=as_json):
            tenant_id, request = TenantId.parse(tenant), self.request(resource_id)
            if warning:
                here.confirm(warning)
            answered = ask_for(here, here.find(), tenant_id, route, request)
            if as_json:
                render.show_json(answered)
            else:
                render.show_line(f"{self.kind.capitalize()} {resource_id} of tenant {tenant} {outcome}.")
