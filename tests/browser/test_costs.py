"""docs/costs.md has the requests to the API that a page makes each time that it updates itself, and how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.console.sessions import IDLE_SECONDS
from tests.browser.event_fleet import EventPlane
from tests.browser.every_page import everything
from tests.browser.fleet import FleetApi
from tests.browser.http import Caller
from tests.costs_page import PAGE, table

PAGES = {
    "overview": "/",
    "tenants": "/tenants",
    "tenant": "/tenants/acme",
    "rollouts": "/rollouts",
    "rollout that is under way": "/rollouts/ROLLOUT",
    "releases": "/releases",
    "health": "/health",
    "events": "events",
    "connections of a tenant": "connections",
    "connection": "failing connection",
    "event": "retrying event",
    "tail": "tail",
}
"""The pages in the table, by their names among all pages."""
_EVERY = re.compile(r'data-hx-trigger="every ([0-9]+)s"')


@pytest.fixture(scope="module")
def counted() -> dict[str, dict[str, str]]:
    found, asked = {}, Counter[str]()

    def noted(kind: str, send: Callable[..., ApiAnswer]) -> Callable[..., ApiAnswer]:
        def sending(api: object, request: HttpRequest) -> ApiAnswer:
            asked[kind] += 1
            return send(api, request)

        return sending

    with pytest.MonkeyPatch.context() as patch, everything() as all_pages:
        patch.setattr(FleetApi, "send", noted("requests", FleetApi.send))
        patch.setattr(EventPlane, "send", noted("of events", EventPlane.send))
        caller = Caller.with_session(all_pages.here)
        for name, sight in PAGES.items():
            path = all_pages.sights[sight].path.replace("ROLLOUT", all_pages.here.rollout)
            asked.clear()
            body = caller.get(path, **{"HX-Request": "true"}).body
            every = _EVERY.search(body)
            assert every is not None, f"{path} does not update itself"
            numbers = {column: str(asked[column] or "") for column in ("requests", "of events")}
            found[name] = {"every": f"{every[1]} s", **numbers}
    return found


def test_the_page_has_the_requests_of_every_update(counted: dict[str, dict[str, str]]) -> None:
    columns = ("every", "requests", "of events")
    assert {name: {column: row[column] for column in columns} for name, row in table("The console").items()} == counted


def test_a_page_costs_its_requests() -> None:
    # The operators' function has 1,769 MB, for 100 ms. Both numbers have the lines of the function and the access log.
    of_fleet, of_events = 1.00 + 0.20 + 1769 / 1024 * 0.1 * 13.33 + 0.50, 1.00 + 1.20 + 0.50
    assert f"{of_fleet:.2f} per million, and a request of events {of_events:.2f}" in PAGE.read_text(encoding="utf-8")
    for name, row in table("The console").items():
        updates = 3600 / int(row["every"].removesuffix(" s"))
        cost = updates * (int(row["requests"] or 0) * of_fleet + int(row["of events"] or 0) * of_events) / 1e6
        assert row["USD per hour"] == f"{cost:.4f}", name


def test_the_page_has_what_the_health_page_costs_besides() -> None:
    page, health = PAGE.read_text(encoding="utf-8"), table("The console")["health"]
    assert "to CloudWatch, 10.00 per million" in page
    cost = 3600 / int(health["every"].removesuffix(" s")) * 10.00 / 1e6
    assert f"Health asks CloudWatch each time, as `berth doctor` does: {cost:.4f} per hour more" in page


def test_the_page_says_for_how_long_a_page_goes_on_to_ask() -> None:
    assert f"after {IDLE_SECONDS // 60} minutes without a click" in PAGE.read_text(encoding="utf-8")
