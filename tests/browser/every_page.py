"""Every page of the console, and the states of pages that look different, over a fleet with everything in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from botocore.exceptions import EndpointConnectionError, NoCredentialsError
from playwright.sync_api import Page

from orchestrator.client.transport import ApiAnswer
from orchestrator.common.tenant_ids import TENANT_ID_MAX_LENGTH, TenantId
from tests.browser.conftest import Running, running
from tests.browser.event_fleet import EventFleet, an_event_plane
from tests.browser.fleet import FleetApi, a_fleet, under_way
from tests.fakes import NEXT_VERSION

LONG_ID = "a-long-name-that-some-platform-made-for-u"[: TENANT_ID_MAX_LENGTH - 1] + "s"
LONG_LABELS = {"an-organisation-with-a-long-name-of-a-department": "x" * 128, "plan": "gold"}
WITHOUT_SESSION = "no session"
"""A page of the guard, which says nothing about the control plane."""
GONE = ApiAnswer(503, {"message": "Service Unavailable"})
THROTTLED = ApiAnswer(429, {"message": "Too Many Requests"})
UNREACHABLE = EndpointConnectionError(endpoint_url="https://a1b2c3.execute-api.eu-west-1.amazonaws.com/tenants/acme")
EXPIRED = ApiAnswer(403, {"message": "The security token included in the request is expired"})


@dataclass(frozen=True)
class Sight:
    """A page in one state."""

    path: str
    answer: ApiAnswer | Exception | None = None
    """What the API answers meanwhile, if it is not its own answer."""
    then: Callable[[Page], None] | None = None
    """What a person does on the page before it looks like this."""


@dataclass(frozen=True)
class Everything:
    here: Running
    sights: Mapping[str, Sight]

    def look(self, page: Page, name: str) -> None:
        """Open the page with this name."""
        sight = self.sights[name]
        self.here.api.away = sight.answer
        try:
            page.goto(self.here.url(sight.path))
        finally:
            self.here.api.away = None
        if sight.then:
            sight.then(page)
            page.wait_for_load_state()

    def __iter__(self) -> Iterator[str]:
        return iter(self.sights)


@contextmanager
def everything(*, read_only: bool = False) -> Iterator[Everything]:
    with whole_fleet() as (api, fleet, rollout), running(api, events=fleet.plane, read_only=read_only) as here:
        here.rollout = rollout
        yield Everything(here, {**of_the_fleet(), **of_events(fleet), **_of_errors()})


@contextmanager
def whole_fleet() -> Iterator[tuple[FleetApi, EventFleet, str]]:
    """Tenants and their events in all states, and the id of a rollout that is under way."""
    api = a_fleet()
    api.has(LONG_ID, NEXT_VERSION, **LONG_LABELS)
    assert api.create(TenantId.parse("half"), reason="w" * 500).status == 202
    rollout = under_way(api)
    with an_event_plane(api) as plane:
        yield api, EventFleet(plane), rollout


@contextmanager
def nothing() -> Iterator[Everything]:
    """A control plane without tenants: pages that say so."""
    api = FleetApi()
    with an_event_plane(api) as plane, running(api, events=plane) as here:
        paths = ("/", "/tenants", "/tenants?state=FAILED", "/rollouts", "/releases", "/events", "/health")
        yield Everything(here, _named(paths))


def _named(paths: Sequence[str]) -> dict[str, Sight]:
    return {path: Sight(path) for path in paths}


def of_the_fleet() -> dict[str, Sight]:
    paths = (
        "/",
        "/tenants",
        "/tenants?state=FAILED",
        "/tenants?prefix=nobody",
        "/tenants/acme",
        "/tenants/duff",
        "/tenants/enron",
        "/tenants/dunder",
        "/tenants/half",
        f"/tenants/{LONG_ID}",
        "/tenants/acme/do/delete",
        "/tenants/acme/do/retry",
        "/tenants/acme/do/upgrade",
        "/tenants/acme/do/move",
        "/tenants/do/create",
        "/tenants/do/retry?state=FAILED",
        f"/tenants/{LONG_ID}/do/delete",
        "/tenants/nobody",
        "/rollouts",
        "/rollouts/ROLLOUT",
        "/rollouts/ROLLOUT/do/abort",
        "/rollouts/ROLLOUT/do/change",
        "/rollouts/plan?label=plan%3Dgold",
        "/releases",
        "/releases/changes?from=0.1.0&to=0.2.0",
        "/releases/0.2.0/do/withdraw",
        "/health",
        "/health/compare",
        "/health/repair/dunder",
        "/settings",
        "/nothing",
    )
    return _named(paths)


def of_events(fleet: EventFleet) -> dict[str, Sight]:
    acme = "/tenants/acme"
    paths = {
        "events": "/events",
        "event settings": f"{acme}/events",
        "no event settings": "/tenants/initech/events",
        "make settings": f"{acme}/events/do/settings",
        "connections": f"{acme}/connections",
        "no connections": "/tenants/globex/connections",
        "make a connection": f"{acme}/connections/do/create",
        "failing connection": f"{acme}/connections/{fleet.shop}",
        "parked deliveries": f"{acme}/connections/{fleet.shop}?status=parked",
        "disabled connection": f"{acme}/connections/{fleet.legacy}",
        "change a connection": f"{acme}/connections/{fleet.crm}/do/update",
        "delete a connection": f"{acme}/connections/{fleet.shop}/do/delete",
        "tail": f"{acme}/tail",
        "tail with a mistake": f"{acme}/tail?since=nonsense",
        "empty tail": "/tenants/globex/tail",
        "retrying event": f"{acme}/events/{fleet.retrying}",
        "event of bytes": f"{acme}/events/{fleet.bytes}",
        "huge event": f"{acme}/events/{fleet.huge}",
        "resend": f"{acme}/events/{fleet.unwanted}/do/resend",
        "keys": f"{acme}/keys",
        "make a key": f"{acme}/keys/do/create",
        "sources": f"{acme}/sources",
        "no sources": "/tenants/globex/sources",
        "make a source": f"{acme}/sources/do/create",
        "make a form": f"{acme}/forms/do/create",
        "replays": f"{acme}/replays",
        "replay": f"{acme}/replays/{fleet.replay}",
        "replay plan": f"{acme}/replays/plan?to={fleet.shop}&since=3h",
        "unknown connection": f"{acme}/connections/conn_{'9' * 24}",
    }
    return {name: Sight(path) for name, path in paths.items()}


def _of_errors() -> dict[str, Sight]:
    return {
        "gone": Sight("/tenants/acme", GONE),
        "throttled": Sight("/tenants/acme", THROTTLED),
        "unreachable": Sight("/tenants/acme", UNREACHABLE),
        "expired": Sight("/tenants/acme", EXPIRED),
        "no credentials": Sight("/tenants/acme", NoCredentialsError()),
        WITHOUT_SESSION: Sight("/tenants", then=_without_session),
        "not the id": Sight("/tenants/acme/do/delete", then=_type_another_id),
        "sent already": Sight("/tenants/acme/do/delete", then=_send_again),
        "new key": Sight("/tenants/acme/keys/do/create", then=_make_key),
        "may be old": Sight("/tenants", then=_let_it_become_old),
    }


def _without_session(page: Page) -> None:
    """The page that a browser without the cookie gets. The next page is opened with it again."""
    cookies = page.context.cookies()
    page.context.clear_cookies()
    page.reload()
    page.get_by_role("heading", name="Open the console again").wait_for()
    page.context.add_cookies(
        [{"name": each["name"], "value": each["value"], "domain": each["domain"], "path": "/"} for each in cookies]
    )


def _type_another_id(page: Page) -> None:
    page.get_by_label("Type the tenant's id").fill("globex")
    page.get_by_role("button", name="Delete acme", exact=True).click()
    page.get_by_role("alert").wait_for()


def _send_again(page: Page) -> None:
    """The form of a page that was sent before, as the Back button shows it."""
    page.evaluate("document.querySelector('[name=once]').value = 'spent'")
    page.get_by_label("Type the tenant's id").fill("acme")
    page.get_by_role("button", name="Delete acme", exact=True).click()
    page.get_by_role("heading", name="This form was sent already").wait_for()


def _make_key(page: Page) -> None:
    page.get_by_role("textbox", name="Name").fill("Checkout")
    page.get_by_role("checkbox", name="write").check()
    page.locator("form.action button").click()
    page.locator("#secret").wait_for()


def _let_it_become_old(page: Page) -> None:
    """What the page's own script shows when an update fails."""
    page.evaluate("mayBeOld('The control plane did not answer. It is asked again by itself.')")
