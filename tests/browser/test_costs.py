"""docs/costs.json has the requests to the API that a page makes each time that it updates itself, and how often."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from tests.browser.event_fleet import EventPlane
from tests.browser.every_page import everything
from tests.browser.fleet import FleetApi
from tests.browser.http import Caller
from tests.costs import COUNTS

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
def counted() -> dict[str, dict[str, int]]:
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
            found[name] = {"seconds": int(every[1]), **asked}
    return found


def test_the_requests_of_every_update(counted: dict[str, dict[str, int]]) -> None:
    assert counted == COUNTS["pages"]
