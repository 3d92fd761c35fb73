"""Pages in a real browser: what they show, and that they can be used."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.conftest import Running, running, someone
from tests.browser.fleet import FAILED, READY_AT_NEXT, UPDATE_FAILED, a_fleet, under_way


@pytest.fixture(scope="module")
def still() -> Iterator[Running]:
    """A console over a fleet that no test of this module changes, with a rollout under way."""
    api = a_fleet()
    rollout = under_way(api)
    with running(api) as here:
        here.rollout = rollout
        yield here


@pytest.fixture(scope="module")
def visitor(browser: Browser, still: Running) -> Iterator[Page]:
    with someone(browser, still) as page:
        yield page


class TestOverview:
    def test_it_says_what_waits_for_someone(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        waits = visitor.get_by_role("region", name="Waits for someone")
        expect(waits.get_by_role("link", name=f"{len(FAILED)} tenants are FAILED")).to_be_visible()
        expect(waits.get_by_text("berth tenants --state FAILED")).to_be_visible()
        waits.get_by_role("link", name="1 tenant is UPDATE_FAILED").click()
        expect(visitor).to_have_url(still.url("/tenants?state=UPDATE_FAILED"))
        expect(visitor.get_by_role("row", name=UPDATE_FAILED[0])).to_be_visible()

    def test_the_fleet_is_drawn_by_release_and_state(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        drawn = visitor.get_by_role("img", name=f"0.2.0: {len(READY_AT_NEXT)} READY")
        expect(drawn).to_be_visible()
        assert drawn.locator("rect.fill-READY").evaluate("each => getComputedStyle(each).fill") == "rgb(63, 157, 102)"

    def test_the_fleet_is_drawn_by_tier(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        tiers = visitor.get_by_role("table", name="Tenants by tier")
        expect(tiers.get_by_role("img", name="standard: 18 READY")).to_be_visible()

    def test_open_rollouts_and_findings_wait_too(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        waits = visitor.get_by_role("region", name="Waits for someone")
        expect(waits.get_by_role("link", name=f"Rollout {still.rollout} is RUNNING")).to_be_visible()
        waits.get_by_role("link", name="2 differences between the records and AWS").click()
        expect(visitor).to_have_url(still.url("/health"))

    def test_recent_operations_of_the_whole_fleet_are_plotted(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        recent = visitor.get_by_role("region", name="Recent operations")
        expect(recent.get_by_role("row", name="pawnee CREATE 0.2.0 RUNNING")).to_be_visible()
        plot = recent.get_by_role("img", name="How long the last")
        ended = [each for each, _ in still.api.executions.started if each.name not in _running(still)]
        assert plot.locator("rect").count() == len(ended)


def _running(here: Running) -> set[str]:
    return {execution.rpartition(":")[2] for execution in here.api.executions.running}


def test_a_local_control_plane_is_called_local(browser: Browser) -> None:
    with running(a_fleet(), local=True) as here, someone(browser, here) as page:
        expect(page.get_by_role("banner").get_by_text("LOCAL", exact=True)).to_be_visible()


class TestTenants:
    def test_filters_are_in_the_address(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants"))
        visitor.get_by_label("State").select_option("FAILED")
        visitor.get_by_role("button", name="Filter").click()
        expect(visitor).to_have_url(still.url("/tenants?prefix=&state=FAILED&version=&tier=&label=&pinned="))
        rows = visitor.get_by_role("rowheader")
        assert sorted(rows.all_inner_texts()) == sorted(FAILED)
        expect(visitor.get_by_text("berth tenants --state FAILED")).to_be_visible()

    def test_tenants_are_found_by_the_beginning_of_their_ids(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants"))
        visitor.get_by_label("Id begins with").fill("w")
        visitor.keyboard.press("Enter")
        expect(visitor.get_by_role("rowheader")).to_have_text(["wayne", "wonka"])
        expect(visitor.get_by_text("berth tenants --prefix w")).to_be_visible()

    def test_a_tenant_is_found_by_its_label(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants?label=plan%3Dgold"))
        assert "acme" in visitor.get_by_role("rowheader").all_inner_texts()
        assert "globex" not in visitor.get_by_role("rowheader").all_inner_texts()

    def test_the_box_at_the_top_leads_to_a_tenant(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/"))
        visitor.get_by_label("Go to a tenant").fill("acme")
        visitor.keyboard.press("Enter")
        expect(visitor).to_have_url(still.url("/tenants/acme"))


class TestTenant:
    def test_the_root_cause_comes_with_advice_and_the_whole_history(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/duff"))
        cause = visitor.get_by_role("region", name="Root cause")
        expect(cause.get_by_text("InboundQueue")).to_be_visible()
        expect(cause.get_by_text("Access to the resource")).to_be_visible()
        expect(cause.get_by_text("Remove the cause, then retry.")).to_be_visible()
        history = visitor.get_by_role("region", name="History").get_by_role("listitem")
        expect(history).to_contain_text(["CREATE 0.2.0 Failure", "CREATE 0.2.0 Started", "DESCRIBE"])

    def test_the_state_of_the_records_comes_with_what_the_survey_says_of_the_stack(
        self, visitor: Page, still: Running
    ) -> None:
        visitor.goto(still.url("/tenants/acme"))
        expect(visitor.get_by_role("region", name="Resources")).to_contain_text("AGREES")
        visitor.goto(still.url("/tenants/dunder"))
        resources = visitor.get_by_role("region", name="Resources")
        expect(resources).to_contain_text("DIFFERS The tenant is served, but its stack does not exist.")
        expect(resources.get_by_role("link", name="Repair: create")).to_be_visible()

    def test_what_cannot_be_done_is_greyed_with_the_reason(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/acme"))
        retry = visitor.get_by_text("Retry it", exact=True)
        assert retry.get_attribute("aria-disabled") == "true"
        expect(visitor.get_by_text("Its latest operation has not failed.")).to_be_visible()

    def test_every_button_has_its_command(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/acme"))
        for item in visitor.get_by_role("region", name="What you can do").get_by_role("listitem").all():
            if item.locator("a.button").count():
                assert item.locator("code").inner_text().startswith("berth ")


class TestActions:
    def test_a_retry_is_confirmed_done_and_shown(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/duff"))
        page.get_by_role("link", name="Retry it").click()
        expect(page.get_by_text("The latest operation of tenant duff is repeated")).to_be_visible()
        expect(page.get_by_text("of Berth in eu-west-1, account 111122223333, as ada")).to_be_visible()
        page.get_by_label("Reason").fill("the role is mended")
        page.get_by_role("button", name="Retry duff", exact=True).click()
        expect(page).to_have_url(console.url("/tenants/duff"))
        expect(page.get_by_role("status").get_by_text("CREATE 0.2.0 was started")).to_be_visible()
        assert console.api.executions.started[-1][1].reason == "the role is mended"

    def test_a_delete_wants_the_id_to_be_typed(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/acme/do/delete"))
        page.get_by_label("Type the tenant's id").fill("globex")
        with page.expect_response(lambda answer: answer.request.method == "POST") as sent:
            page.get_by_role("button", name="Delete acme", exact=True).click()
        assert sent.value.status == 422
        expect(page.get_by_role("alert")).to_contain_text("That is not the tenant's id, so nothing was done.")

    def test_everything_works_without_a_mouse(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/duff"))
        page.keyboard.press("Tab")
        expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
        page.locator("#do-retry").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(console.url("/tenants/duff/do/retry"))
        page.get_by_label("Reason").focus()
        page.keyboard.press("Enter")
        expect(page).to_have_url(console.url("/tenants/duff"))


def test_pages_can_be_read_and_forms_sent_without_javascript(browser: Browser, console: Running) -> None:
    with someone(browser, console, java_script_enabled=False) as page:
        page.goto(console.url("/tenants/duff"))
        expect(page.get_by_role("region", name="Root cause")).to_be_visible()
        page.get_by_role("link", name="Retry it").click()
        page.get_by_role("button", name="Retry duff", exact=True).click()
        expect(page.get_by_role("status").get_by_text("CREATE 0.2.0 was started")).to_be_visible()
