"""Pages in a real browser: what they show, and that they can be used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.fleet import PAGE_SIZE
from tests.browser.conftest import Running, running, someone
from tests.browser.fleet import FAILED, READY_AT_NEXT, UPDATE_FAILED, a_fleet, under_way
from tests.browser.test_live import update
from tests.fakes import ACME, NEXT_VERSION, VERSION, a_release, stack_arn
from tests.present import present


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

    def test_findings_wait_too_and_a_rollout_that_goes_on_by_itself_does_not(
        self, visitor: Page, still: Running
    ) -> None:
        visitor.goto(still.url("/"))
        waits = visitor.get_by_role("region", name="Waits for someone")
        expect(waits.get_by_text(still.rollout)).to_have_count(0)
        under_way = visitor.get_by_role("region", name="Under way")
        expect(under_way.get_by_role("link", name=f"Rollout {still.rollout} is RUNNING")).to_be_visible()
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
        # The command comes after the rows, so they are all there.
        expect(visitor.get_by_text("berth tenants --state FAILED")).to_be_visible()
        assert sorted(visitor.get_by_role("rowheader").all_inner_texts()) == sorted(FAILED)

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

    def test_a_large_fleet_has_pages_that_keep_the_filters(self, page: Page, console: Running) -> None:
        for number in range(PAGE_SIZE + 2):
            console.api.has(f"shop-{number:03}", plan="gold")
        page.goto(console.url("/tenants?prefix=shop-&label=plan%3Dgold"))
        expect(page.get_by_role("rowheader")).to_have_count(PAGE_SIZE)
        page.get_by_role("link", name="Next page").click()
        expect(page.get_by_role("rowheader")).to_have_text([f"shop-{PAGE_SIZE:03}", f"shop-{PAGE_SIZE + 1:03}"])
        expect(page.get_by_label("Id begins with")).to_have_value("shop-")
        expect(page.get_by_text("berth tenants --prefix shop- --label plan=gold")).to_be_visible()
        page.get_by_role("link", name="First page").click()
        expect(page.get_by_role("rowheader")).to_have_count(PAGE_SIZE)

    def test_a_fleet_of_several_tiers_has_a_column_for_them(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants"))
        tier = page.get_by_role("columnheader", name="Tier")
        expect(tier).to_have_count(0)
        recorded = present(console.api.table.metadata(ACME))
        console.api.table.plant_metadata(replace(recorded, recorded_tier="gold"))
        update(page)
        expect(tier).to_be_visible()
        expect(page.get_by_role("row", name="acme")).to_contain_text("gold")


class TestTenant:
    def test_the_root_cause_comes_with_advice_and_the_whole_history(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/duff"))
        cause = visitor.get_by_role("region", name="Root cause")
        expect(cause.get_by_text("InboundQueue")).to_be_visible()
        expect(cause.get_by_text("Access to the resource")).to_be_visible()
        expect(cause.get_by_text("Remove the cause, then retry.")).to_be_visible()
        history = visitor.get_by_role("region", name="History").get_by_role("listitem")
        expect(history).to_contain_text(["CREATE 0.2.0 Failure", "CREATE 0.2.0 Started", "DESCRIBE"])

    def test_the_records_are_compared_with_the_stack_as_it_is_now(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/acme"))
        resources = page.get_by_role("region", name="Resources")
        expect(resources).to_contain_text("AGREES The records and the stack agree. CREATE_COMPLETE")
        expect(page.get_by_text("berth tenant acme --live")).to_be_visible()
        console.api.world.stacks.change(stack_arn(ACME), "UPDATE_COMPLETE", version=VERSION)
        page.reload()
        differs = page.get_by_role("region", name="The records and the stack differ")
        expect(differs.get_by_role("row", name=f"release {NEXT_VERSION} {VERSION}")).to_be_visible()
        expect(differs.get_by_text("berth reconcile --only acme")).to_be_visible()
        differs.get_by_role("link", name="Repair it").click()
        expect(page).to_have_url(console.url("/health/repair/acme"))

    def test_a_stack_that_does_not_exist_is_a_difference(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/dunder"))
        differs = visitor.get_by_role("region", name="The records and the stack differ")
        expect(differs).to_contain_text("does not exist")
        expect(differs).to_contain_text("Receive the messages that are left in the queue")

    def test_while_cloudformation_throttles_the_page_says_what_the_survey_has_found(
        self, page: Page, console: Running
    ) -> None:
        console.api.world.stacks.throttled_calls = 1
        page.goto(console.url("/tenants/dunder"))
        resources = page.get_by_role("region", name="Resources")
        expect(resources).to_contain_text("UNKNOWN It could not be compared now: The API asks to try again later")
        expect(resources).to_contain_text("DIFFERS The tenant is served, but its stack does not exist. survey of")
        page.reload()
        expect(page.get_by_role("region", name="The records and the stack differ")).to_be_visible()

    def test_a_page_that_updates_itself_asks_cloudformation_only_when_something_has_changed(
        self, page: Page, console: Running
    ) -> None:
        page.goto(console.url("/tenants/acme"))
        expect(page.get_by_role("region", name="Resources")).to_contain_text("AGREES")
        asked = console.api.world.stacks.calls.count("find")
        update(page)
        update(page)
        assert console.api.world.stacks.calls.count("find") == asked
        console.api.label(ACME, {"plan": "silver"})
        update(page)
        expect(page.get_by_text("plan=silver").first).to_be_visible()
        assert console.api.world.stacks.calls.count("find") == asked + 1

    def test_everything_that_the_records_have_of_the_stack_is_shown(self, page: Page, console: Running) -> None:
        table = console.api.table
        outputs = {"FilesBucket": "acme-files", "Orders": "acme-orders"}
        recorded = table.metadata(ACME)
        assert recorded is not None
        table.plant_metadata(replace(recorded, resources=outputs, recorded_tier="gold"))
        console.api.world.stacks.change(stack_arn(ACME), "CREATE_COMPLETE", outputs=outputs)
        page.goto(console.url("/tenants/acme"))
        resources = page.get_by_role("region", name="Resources")
        for text in ("FilesBucket", "acme-files", "Orders", "acme-orders"):
            expect(resources.get_by_text(text, exact=False).first).to_be_visible()
        expect(page.get_by_role("region", name="Facts")).to_contain_text("gold")
        expect(resources).to_contain_text("AGREES")

    def test_invalid_actions_are_greyed_with_the_reason(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/acme"))
        retry = visitor.get_by_text("Retry it", exact=True)
        assert retry.get_attribute("aria-disabled") == "true"
        expect(visitor.get_by_text("Its latest operation has not failed.")).to_be_visible()

    def test_a_command_is_copied(self, page: Page, console: Running) -> None:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.goto(console.url("/tenants/duff"))
        page.get_by_role("button", name="Copy: berth retry duff", exact=True).click()
        expect(page.get_by_text("Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == "berth retry duff"

    def test_records_that_contradict_each_other_lead_to_the_reconciliation(self, page: Page, console: Running) -> None:
        assert console.api.create(TenantId.parse("half")).status == 202
        page.goto(console.url("/tenants/half"))
        todo = page.get_by_role("region", name="What to do")
        expect(todo).to_contain_text("The records of half contradict each other.")
        expect(todo.get_by_text("berth reconcile --only half")).to_be_visible()
        todo.get_by_role("link", name="Repair it").click()
        expect(page.get_by_role("button", name="Repair half")).to_be_visible()

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

    def test_a_tenant_is_created_in_a_tier_and_with_labels(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants"))
        page.get_by_role("link", name="Create a tenant").click()
        page.get_by_label("Id").fill("newco")
        page.get_by_label("Tier").select_option("standard")
        page.get_by_label("Labels").fill("plan=gold, region=eu")
        page.get_by_role("button", name="Create a tenant", exact=True).click()
        expect(page).to_have_url(console.url("/tenants/newco"))
        expect(page.get_by_role("status").get_by_text("CREATE 0.2.0 was started")).to_be_visible()
        attempt, request = console.api.executions.started[-1]
        assert (attempt.tenant.value, request.labels) == ("newco", {"plan": "gold", "region": "eu"})

    def test_a_tenant_is_moved_to_another_tier(self, page: Page, console: Running) -> None:
        console.api.table.record_release(a_release("1.0.0", tier="gold"))
        page.goto(console.url("/tenants/acme"))
        page.get_by_role("link", name="Move it to another tier").click()
        page.get_by_label("Tier", exact=True).select_option("gold")
        page.get_by_role("button", name="Move acme to another tier", exact=True).click()
        expect(page).to_have_url(console.url("/tenants/acme"))
        attempt, request = console.api.executions.started[-1]
        assert (attempt.version, request.tier) == ("1.0.0", "gold")

    def test_without_another_tier_a_move_is_refused_on_its_page(self, visitor: Page, still: Running) -> None:
        visitor.goto(still.url("/tenants/acme/do/move"))
        expect(visitor.get_by_role("alert")).to_contain_text("There is no other tier with a release.")

    def test_a_change_that_may_lose_messages_wants_the_id_to_be_typed(self, page: Page, console: Running) -> None:
        before = len(console.api.executions.started)
        page.goto(console.url("/tenants/aperture/do/upgrade"))
        page.get_by_label("Allow a change that replaces or removes a queue").check()
        page.get_by_role("button", name="Move aperture to a release", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("Type the tenant's id to allow it. Nothing was done.")
        assert len(console.api.executions.started) == before
        page.get_by_label("The tenant's id, if you allow that").fill("aperture")
        page.get_by_role("button", name="Move aperture to a release", exact=True).click()
        expect(page).to_have_url(console.url("/tenants/aperture"))
        assert console.api.executions.started[-1][1].allow_replacement

    def test_all_tenants_of_a_list_are_retried_after_their_number_was_typed(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants?state=FAILED"))
        expect(page.get_by_text("berth retry --state FAILED")).to_be_visible()
        page.get_by_role("link", name="Retry what failed").click()
        for name in FAILED:
            expect(page.get_by_text(name)).to_be_visible()
        expect(page.get_by_text("Selected: state FAILED.")).to_be_visible()
        page.get_by_label("Type the number of tenants").fill(str(len(FAILED)))
        page.get_by_role("button", name="Retry what failed", exact=True).click()
        expect(page.get_by_role("status").get_by_text(f"{len(FAILED)} operations were started.")).to_be_visible()
        assert {attempt.tenant.value for attempt, _ in console.api.executions.started[-len(FAILED) :]} == set(FAILED)

    def test_a_retry_to_a_release_that_was_withdrawn_is_greyed(self, page: Page, console: Running) -> None:
        console.api.request("POST", f"/releases/{NEXT_VERSION}/withdraw")
        page.goto(console.url("/tenants/nakatomi"))
        expect(page.get_by_text(f"Release {NEXT_VERSION} was withdrawn.")).to_be_visible()
        page.goto(console.url("/tenants/aperture/do/upgrade"))
        expect(page.get_by_label("Release").locator("option")).to_have_text(
            ["its pin, or the current release", VERSION]
        )

    def test_a_pin_can_be_changed_while_an_operation_runs(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/massive"))
        page.get_by_role("link", name="Pin it to a release").click()
        page.get_by_role("button", name="Pin massive", exact=True).click()
        expect(page.get_by_role("status").get_by_text("Tenant massive is pinned")).to_be_visible()

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
