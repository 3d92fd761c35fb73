"""How long the console's page of tenants takes with 100 tenants and with 10,000, for the same number on the page."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from starlette.requests import Request

from bench.counted_table import ParsedTable
from bench.fleets import NOW, VERSION, tenant_row
from bench.measure import Result, interleaved
from orchestrator.adapters.dynamodb.tenants import DynamoTable
from orchestrator.api.fields import or_default
from orchestrator.api.operator_answers import tenants_response
from orchestrator.api.route import AnyRoute
from orchestrator.api.tenant_models import ListTenants
from orchestrator.api.tenant_routes import LIST_TENANTS
from orchestrator.client.transport import ApiAnswer
from orchestrator.console.pages.tenants import tenants
from orchestrator.console.sessions import Session
from orchestrator.console.visit import Console, Place, Visit
from orchestrator.tenants.fleet import PAGE_SIZE, list_tenants

SMALL, LARGE = 100, 10_000
ROUNDS = 30
_RELEASES = {"releases": [{"version": VERSION, "tier": "standard"}], "tiers": {"standard": VERSION}}


@dataclass(frozen=True)
class TableApi:
    """The API's list of tenants, over a table in memory. The list of releases does not depend on the fleet."""

    table: DynamoTable

    def send_request(self, route: AnyRoute, request: Any) -> ApiAnswer:
        if route is not LIST_TENANTS:
            return ApiAnswer(200, _RELEASES)
        asked: ListTenants = request
        page = list_tenants(
            self.table, prefix=or_default(asked.prefix, ""), cursor=or_default(asked.cursor), limit=asked.limit
        )
        return ApiAnswer(200, tenants_response(page).body)


def console_page(small: int = SMALL, large: int = LARGE, rounds: int = ROUNDS) -> list[Result]:
    few, many = _page_of(small), _page_of(large)
    taken_few, taken_many = interleaved(few, many, rounds)
    by_prefix_few, by_prefix_many = interleaved(lambda: few("prefix=0000"), lambda: many("prefix=0000"), rounds)
    return [
        Result(
            f"console: a page of {PAGE_SIZE} of {large:,} tenants against one of {small:,}",
            round(taken_many / taken_few, 2),
            "x",
            "<= 1.2",
        ),
        Result(
            f"console: the same, found by the beginning of their ids, of {large:,} against {small:,}",
            round(by_prefix_many / by_prefix_few, 2),
            "x",
            "<= 1.2",
        ),
    ]


class _Page:
    """Renders the page of tenants for a fleet of one size."""

    def __init__(self, size: int) -> None:
        table = ParsedTable()
        for number in range(size):
            table.plant(tenant_row(number))
        api = TableApi(DynamoTable(cast(Any, table), "bench"))
        place = Place("Berth", "in eu-west-1", "111122223333", "ada", VERSION, "aws sso login")
        self._console = Console(cast(Any, _ControlPlane(api)), place, clock=lambda: NOW)

    def __call__(self, query: str = "") -> bytes:
        scope: Mapping[str, Any] = {
            "type": "http",
            "method": "GET",
            "path": "/tenants",
            "query_string": query.encode(),
            "headers": [],
            "server": ("127.0.0.1", 80),
            "console.session": Session("key", "csrf", 0.0),
        }
        return bytes(tenants(Visit(self._console, Request(dict(scope)))).body)


@dataclass(frozen=True)
class _ControlPlane:
    found: TableApi

    def api(self) -> TableApi:
        return self.found


def _page_of(size: int) -> _Page:
    page = _Page(size)
    shown = page().count(b'id="tenant-')
    if shown != PAGE_SIZE:
        raise ValueError(f"The page shows {shown} tenants, not {PAGE_SIZE}.")
    return page
