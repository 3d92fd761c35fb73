"""Actions of the pages about events: confirmed, done, shown; secrets are shown once."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Error, Page, expect

from orchestrator.common.tenant_ids import TenantId
from tests.browser.conftest import Running, running, someone
from tests.browser.event_fleet import EventPlane, an_event_plane
from tests.browser.fleet import a_fleet
from tests.browser.http import Caller
from tests.browser.test_live import update

ACME = "/tenants/acme"
SHOP = {"destination": "webhook", "address": "https://shop.example.com/hooks"}


@pytest.fixture(scope="module")
def scene() -> Iterator[tuple[EventPlane, Running]]:
    """Tenant acme has settings and nothing else; globex has none. Every test makes what it changes."""
    api = a_fleet()
    with an_event_plane(api) as plane:
        plane.serve("acme", plan="pro", inbox=False)
        plane.serve("globex")
        with running(api, events=plane) as here:
            yield plane, here


@pytest.fixture(scope="module")
def plane(scene: tuple[EventPlane, Running]) -> EventPlane:
    return scene[0]


@pytest.fixture(scope="module")
def here(scene: tuple[EventPlane, Running]) -> Running:
    return scene[1]


@pytest.fixture(scope="module")
def page(browser: Browser, here: Running) -> Iterator[Page]:
    with someone(browser, here) as page:
        yield page


def connection(plane: EventPlane, connection_id: str) -> dict[str, object]:
    return plane.operate("GET /connections/{connectionId}", ids={"connectionId": connection_id})


class TestSettings:
    def test_they_are_made_and_changed(self, page: Page, here: Running, plane: EventPlane) -> None:
        plane.functions.serve(TenantId.parse("hooli"))
        page.goto(here.url("/tenants/hooli/events"))
        expect(page.get_by_role("heading", name="hooli has no event settings")).to_be_visible()
        page.get_by_role("link", name="Make the settings").click()
        page.get_by_label("Plan", exact=True).select_option("starter")
        page.get_by_label("Display name").fill("Hooli Inc")
        page.get_by_role("button", name="Make the event settings of hooli").click()
        expect(page.get_by_role("status").get_by_text("hooli: the plan is starter.")).to_be_visible()
        facts = page.get_by_role("region", name="Settings", exact=True)
        expect(facts).to_contain_text("Hooli Inc")
        expect(facts).to_contain_text("7 days")
        page.get_by_role("link", name="Change the settings").click()
        page.get_by_label("Keep events in an inbox").uncheck()
        page.get_by_role("button", name="Change the event settings of hooli").click()
        expect(facts).to_contain_text(re.compile(r"Inbox\s*off"))
        expect(page.get_by_role("region", name="Last changes")).to_contain_text("inbox: on -> off")


class TestConnections:
    def test_one_is_made_and_its_secret_is_shown_once(self, page: Page, here: Running) -> None:
        page.goto(here.url(f"{ACME}/connections"))
        page.get_by_role("link", name="Make a connection").click()
        page.get_by_label("Name", exact=True).fill("Shop")
        page.get_by_label("Destination").select_option("webhook")
        page.get_by_label("URL or address of mail").fill(SHOP["address"])
        page.get_by_label("Only events of these types").fill("order.created, order.paid")
        with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
            page.get_by_role("button", name="Make a connection of acme").click()
        secret = page.locator("#secret").inner_text()
        assert secret.startswith("whsec_")
        assert sent.value.headers["cache-control"] == "no-store"
        expect(page.get_by_text("shown now, and never again")).to_be_visible()
        page.get_by_role("link", name="I have stored it").click()
        assert secret not in page.content()
        expect(page.get_by_role("region", name="Which events")).to_contain_text(
            '{"$in": ["order.created", "order.paid"]}'
        )
        # The browser has not stored the page, so the Back button would have to send the form again.
        with pytest.raises(Error, match="ERR_CACHE_MISS"):
            page.go_back()
        # The next test uses the same page. The error's own page would interrupt where it goes.
        page.wait_for_url("chrome-error://**", wait_until="commit")

    def test_a_page_that_is_left_has_no_secret_any_more(self, page: Page, here: Running, plane: EventPlane) -> None:
        """A browser may keep the page itself in memory, and show it again without asking."""
        made = plane.connect("Left", **SHOP)
        page.goto(here.url(f"{ACME}/connections/{made}/do/rotate"))
        page.get_by_role("button", name="Replace the secret of Left").click()
        secret = page.locator("#secret").inner_text()
        # The page's script, which listens, is loaded after its text.
        page.wait_for_load_state("load")
        page.evaluate("window.dispatchEvent(new Event('pagehide'))")
        assert secret not in page.content()

    def test_a_refused_form_explains_why_and_keeps_the_typed_text(self, page: Page, here: Running) -> None:
        page.goto(here.url(f"{ACME}/connections/do/create"))
        page.get_by_label("Name", exact=True).fill("Wrong")
        page.get_by_label("Destination").select_option("webhook")
        page.get_by_label("URL or address of mail").fill("https://127.0.0.1/in")
        page.get_by_role("button", name="Make a connection of acme").click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert page.get_by_label("URL or address of mail").input_value() == "https://127.0.0.1/in"
        page.get_by_label("Filter, as JSON").fill("[1")
        page.get_by_role("button", name="Make a connection of acme").click()
        expect(page.get_by_role("alert")).to_have_text("The filter is not JSON.")

    def test_one_is_paused_and_resumed(self, page: Page, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Pausing", **SHOP)
        page.goto(here.url(f"{ACME}/connections/{made}"))
        page.get_by_role("link", name="Pause it").click()
        expect(page.get_by_text(f"connection {made} (Pausing) of tenant acme of Berth in eu-west-1")).to_be_visible()
        expect(page.get_by_text(f"berth connections pause acme {made}", exact=True)).to_be_visible()
        page.get_by_role("button", name="Pause Pausing").click()
        expect(
            page.get_by_role("status").get_by_text(f"connection {made} (Pausing) of tenant acme is paused.")
        ).to_be_visible()
        assert connection(plane, made)["status"] == "paused"
        page.get_by_role("link", name="Let it deliver again").click()
        page.get_by_role("button", name="Let Pausing deliver again").click()
        expect(page.get_by_role("status").get_by_text("delivers.")).to_be_visible()
        assert connection(plane, made)["status"] == "active"

    def test_one_is_changed(self, page: Page, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Before", filter={"event_type": "order.paid"}, retry_seconds=[60], **SHOP)
        page.goto(here.url(f"{ACME}/connections/{made}/do/update"))
        assert page.get_by_label("Waits between tries").input_value() == "60"
        page.get_by_label("Name", exact=True).fill("After")
        page.get_by_label("Filter, as JSON").fill("")
        page.get_by_label("Waits between tries").fill("")
        page.get_by_role("button", name="Change Before").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("After")
        changed = connection(plane, made)
        assert (changed["filter"], changed["address"]) == (None, SHOP["address"])
        assert len(changed["retry_seconds"]) == 7  # type: ignore[arg-type]

    def test_a_new_secret_replaces_the_old_one(self, page: Page, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Rotating", **SHOP)
        page.goto(here.url(f"{ACME}/connections/{made}/do/rotate"))
        expect(page.get_by_text("For 24 hours deliveries carry the signatures of both secrets.")).to_be_visible()
        page.get_by_role("button", name="Replace the secret of Rotating").click()
        assert page.locator("#secret").inner_text().startswith("whsec_")
        page.get_by_role("link", name="I have stored it").click()
        expect(page.get_by_role("region", name="Which events")).to_contain_text(
            "the former secret, too, which ends in 1 d"
        )

    def test_a_test_event_leads_to_its_own_page(self, page: Page, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Tested", **SHOP)
        page.goto(here.url(f"{ACME}/connections/{made}/do/test"))
        page.get_by_role("button", name="Send a test event to Tested").click()
        expect(page.get_by_role("status").get_by_text("is sent to Tested alone.")).to_be_visible()
        expect(page.get_by_role("region", name="Facts")).to_contain_text("berth.test")

    def test_a_delete_wants_the_id_to_be_typed_and_the_server_compares_it(
        self, page: Page, here: Running, plane: EventPlane
    ) -> None:
        made, other = plane.connect("Doomed", **SHOP), plane.connect("Other", **SHOP)
        path = f"{ACME}/connections/{made}/do/delete"
        caller = Caller.with_session(here)
        refused = caller.post(path, {**caller.hidden(path), "typed": other})
        assert refused.status == 422
        assert connection(plane, made)["status"] == "active"
        page.goto(here.url(path))
        expect(page.get_by_text("Its unfinished deliveries fail.")).to_be_visible()
        page.get_by_label("Type the connection's id").fill(made)
        page.get_by_role("button", name="Delete Doomed").click()
        expect(page).to_have_url(here.url(f"{ACME}/connections"))
        expect(page.locator(f"#row-{other}")).to_be_visible()
        assert page.locator(f"#row-{made}").count() == 0

    def test_the_form_for_one_connection_does_not_work_for_another(self, here: Running, plane: EventPlane) -> None:
        first, second = plane.connect("One", **SHOP), plane.connect("Two", **SHOP)
        caller = Caller.with_session(here)
        fields = caller.hidden(f"{ACME}/connections/{first}/do/pause")
        assert caller.post(f"{ACME}/connections/{second}/do/pause", fields).status == 409
        assert connection(plane, second)["status"] == "active"

    def test_another_tenants_connection_is_not_there(self, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Private", **SHOP)
        assert Caller.with_session(here).get(f"/tenants/globex/connections/{made}").status == 404


class TestKeys:
    def test_a_key_is_made_shown_once_replaced_and_revoked(self, page: Page, here: Running, plane: EventPlane) -> None:
        page.goto(here.url(f"{ACME}/keys"))
        page.get_by_role("link", name="Make an API key").click()
        page.get_by_label("Name", exact=True).fill("Website")
        page.get_by_role("button", name="Make an API key of acme").click()
        expect(page.get_by_role("alert")).to_have_text("Choose what the key is for.")
        assert page.get_by_label("Name", exact=True).input_value() == "Website"
        page.get_by_label("write: send").check()
        page.get_by_role("button", name="Make an API key of acme").click()
        key = page.locator("#secret").inner_text()
        assert key.startswith("bk_test_")
        expect(page.get_by_text('curl -H "Authorization: Bearer $BERTH_KEY"')).to_be_visible()
        page.get_by_role("link", name="I have stored it").click()
        assert key not in page.content()
        (found,) = (each for each in plane.operate("GET /keys")["keys"] if each["name"] == "Website")
        row = page.locator(f"#row-{found['key_id']}")
        row.get_by_text("What you can do").click()
        row.get_by_role("link", name="Replace it").click()
        page.get_by_label("The old key works for").fill("1")
        page.get_by_role("button", name="Replace the API key Website").click()
        assert page.locator("#secret").inner_text() != key
        expect(page.get_by_text(f"The old key {found['key_id']} works until")).to_be_visible()
        page.goto(here.url(f"{ACME}/keys/{found['key_id']}/do/revoke"))
        expect(
            page.get_by_text(f"Whatever uses the API key {found['key_id']} of tenant acme stops working.")
        ).to_be_visible()
        page.get_by_label("Type the API key's id").fill(found["key_id"])
        page.get_by_role("button", name="Revoke the API key Website").click()
        expect(page.locator(f"#row-{found['key_id']}")).to_contain_text("revoked")

    def test_the_answer_to_a_repeated_form_has_no_key(self, here: Running, plane: EventPlane) -> None:
        """A browser that restores the page sends the form again."""
        caller = Caller.with_session(here)
        path = f"{ACME}/keys/do/create"
        fields = {**caller.hidden(path), "name": "Repeated", "read": "on"}
        assert "bk_test_" in caller.post(path, fields).body
        again = caller.post(path, fields)
        assert (again.status, "bk_test_" in again.body) == (409, False)
        assert [each["name"] for each in plane.operate("GET /keys")["keys"]].count("Repeated") == 1


class TestSourcesAndForms:
    def test_a_source_is_made_paused_and_deleted(self, page: Page, here: Running, plane: EventPlane) -> None:
        page.goto(here.url(f"{ACME}/sources"))
        page.get_by_role("link", name="Make a source").click()
        page.get_by_label("Name", exact=True).fill("GitHub")
        page.get_by_role("button", name="Make a source of acme").click()
        expect(page.locator("#secret")).to_be_visible()
        expect(page.get_by_text("/hooks/src_")).to_be_visible()
        page.get_by_role("link", name="I have stored it").click()
        (source,) = plane.operate("GET /sources")["sources"]
        row = page.locator(f"#row-{source['source_id']}")
        row.get_by_text("What you can do").click()
        row.get_by_role("link", name="Pause it").click()
        page.get_by_role("button", name="Pause GitHub").click()
        expect(row).to_contain_text("paused")
        page.goto(here.url(f"{ACME}/sources/{source['source_id']}/do/delete"))
        page.get_by_label("Type the source's id").fill(source["source_id"])
        page.get_by_role("button", name="Delete GitHub").click()
        expect(page.get_by_text("Tenant acme has no sources.")).to_be_visible()

    def test_a_secret_that_was_typed_does_not_come_back(self, page: Page, here: Running) -> None:
        page.goto(here.url(f"{ACME}/sources/do/create"))
        page.get_by_label("Name", exact=True).fill("Stripe")
        page.get_by_label("Who sends the webhooks").select_option("stripe")
        page.get_by_label("The sender's secret").fill("correct horse battery")
        page.get_by_label("Header with the signature").fill("X Y")
        page.get_by_role("button", name="Make a source of acme").click()
        expect(page.get_by_role("alert")).to_be_visible()
        assert "correct horse battery" not in page.content()

    def test_a_form_is_made_and_deleted(self, page: Page, here: Running, plane: EventPlane) -> None:
        page.goto(here.url(f"{ACME}/forms/do/create"))
        page.get_by_label("Name", exact=True).fill("Contact")
        page.get_by_label("Origins of the pages").fill("https://www.example.com")
        page.get_by_role("button", name="Make a form of acme").click()
        expect(page.get_by_role("status").get_by_text("Use its URL as the form's action")).to_be_visible()
        (form,) = plane.operate("GET /forms")["forms"]
        page.goto(here.url(f"{ACME}/forms/{form['form_id']}/do/delete"))
        page.get_by_label("Type the form's id").fill(form["form_id"])
        page.get_by_role("button", name="Delete Contact").click()
        expect(page.get_by_text("Tenant acme has no forms.")).to_be_visible()


class TestSendingAgain:
    def test_an_event_is_resent_to_one_connection(self, page: Page, here: Running, plane: EventPlane) -> None:
        made = plane.connect("Receiver", **SHOP)
        event_id = plane.send_event({"number": 1})
        page.goto(here.url(f"{ACME}/events/{event_id}"))
        expect(page.locator("#why-resend")).to_have_text("It has failed to no connection.")
        page.get_by_role("link", name="Send it again to Receiver").click()
        expect(page.get_by_text("The connection has received it, and gets it once more.")).to_be_visible()
        expect(page.get_by_text(f"berth resend acme {event_id} --connection {made}")).to_be_visible()
        page.get_by_role("button", name="Send the event again").click()
        expect(
            page.get_by_role("status").get_by_text(f"To {made} (Receiver): the event is being sent.")
        ).to_be_visible()
        expect(page.locator(f"#delivery-{made}")).to_contain_text("resent")

    def test_a_replay_is_planned_started_followed_and_paused(
        self, page: Page, here: Running, plane: EventPlane
    ) -> None:
        made = plane.connect("Replayed", "globex", **SHOP)
        events = [plane.accept({"number": number}, tenant="globex") for number in range(3)]
        plane.clock.advance(timedelta(seconds=1))
        globex = "/tenants/globex"
        page.goto(here.url(f"{globex}/connections/{made}"))
        page.get_by_role("link", name="Send events of a time again").click()
        plan = page.get_by_role("region", name="The plan")
        expect(plan).to_contain_text("nothing is sent yet")
        expect(plan).to_contain_text("3 events came in")
        page.get_by_text("These events").click()
        expect(plan.get_by_role("link", name=events[0])).to_be_visible()
        assert plane.operate("GET /replays", "globex")["replays"] == []
        plan.get_by_role("link", name="Send them again").click()
        expect(page.get_by_text(f"are sent to connection {made}: what failed or was never sent.")).to_be_visible()
        expect(page.get_by_text(re.compile(f"berth replay globex --connection {made} --since 2026"))).to_be_visible()
        page.get_by_role("button", name="Send events of a time again").click()
        expect(page.get_by_role("progressbar")).to_have_attribute("value", "0")
        (replay,) = plane.operate("GET /replays", "globex")["replays"]
        plane.advance_replay(replay["replay_id"], events[1], tenant="globex", looked_at=2, sent=2)
        update(page)
        expect(page.get_by_text("2 events looked at, 2 sent, 0 skipped")).to_be_visible()
        page.get_by_role("link", name="Pause it").click()
        page.get_by_role("button", name="Pause the replay").click()
        expect(page.get_by_role("region", name="Progress")).to_contain_text("paused")
        page.goto(here.url(f"{globex}/replays"))
        expect(page.get_by_role("row", name=replay["replay_id"])).to_contain_text("paused")

    def test_a_replay_of_what_was_delivered_wants_the_id_to_be_typed(
        self, page: Page, here: Running, plane: EventPlane
    ) -> None:
        made = plane.connect("Twice", **SHOP)
        page.goto(here.url(f"{ACME}/replays/plan?to={made}&since=1h&sends=all"))
        page.get_by_role("link", name="Send them again").click()
        expect(page.get_by_text("This sends events again that were delivered already.")).to_be_visible()
        page.get_by_label("Type the id of where the events go").fill("conn_wrong")
        page.get_by_role("button", name="Send events of a time again").click()
        expect(page.get_by_role("alert")).to_contain_text("nothing was done")
        assert plane.operate("GET /replays")["replays"] == []

    def test_a_plan_that_cannot_be_is_explained(self, page: Page, here: Running) -> None:
        page.goto(here.url(f"{ACME}/replays/plan?to=conn_{'9' * 24}&since=1h"))
        expect(page.get_by_role("alert")).to_contain_text("has no connection")
        page.goto(here.url(f"{ACME}/replays/plan?to=api&since=tomorrow"))
        expect(page.get_by_role("alert")).to_contain_text("is not a time")
