"""Releases, health, settings."""

from __future__ import annotations

from playwright.sync_api import Browser, Page, expect

from orchestrator.reconciling.records import Finding, Kind, ReconciliationStatus, Remedy
from tests.browser.conftest import Running, someone
from tests.browser.fleet import READY_AT_NEXT, under_way
from tests.browser.test_live import update
from tests.fakes import VERSION, a_release
from tests.fakes.reconciling import counted


class TestReleases:
    def test_two_releases_are_compared(self, page: Page, console: Running) -> None:
        page.goto(console.url("/releases"))
        page.get_by_role("link", name="What differs between two releases").click()
        page.get_by_role("button", name="Compare").click()
        row = page.get_by_role("row", name="Properties.VisibilityTimeout")
        expect(row).to_contain_text("30")
        expect(row).to_contain_text("120")
        expect(page.get_by_text("berth release diff 0.1.0 0.2.0")).to_be_visible()

    def test_the_tenants_at_a_release_are_listed(self, page: Page, console: Running) -> None:
        page.goto(console.url("/releases"))
        page.get_by_role("region", name="0.2.0").get_by_role("link", name="tenants").click()
        expect(page).to_have_url(console.url("/tenants?version=0.2.0"))

    def test_a_release_is_withdrawn_and_reinstated(self, page: Page, console: Running) -> None:
        page.goto(console.url("/releases"))
        page.get_by_role("region", name="0.2.0").get_by_role("link", name="Withdraw").click()
        page.get_by_label("Type the version").fill("0.2.0")
        page.get_by_label("Reason").fill("it loses messages")
        page.get_by_role("button", name="Withdraw 0.2.0", exact=True).click()
        release = page.get_by_role("region", name="0.2.0")
        expect(release).to_contain_text("WITHDRAWN")
        expect(release).to_contain_text("it loses messages")
        release.get_by_role("link", name="Reinstate").click()
        page.get_by_role("button", name="Reinstate 0.2.0", exact=True).click()
        expect(page.get_by_role("region", name="0.2.0")).not_to_contain_text("WITHDRAWN")

    def test_every_release_has_its_tier_if_there_are_several(self, page: Page, console: Running) -> None:
        console.api.table.record_release(a_release("3.0.0", tier="gold"))
        page.goto(console.url("/releases"))
        expect(page.get_by_role("region", name="3.0.0")).to_contain_text("current in gold")
        expect(page.get_by_role("region", name="0.2.0")).to_contain_text("current in standard")
        expect(page.get_by_text("New tenants of the tier gold get 3.0.0.")).to_be_visible()
        page.goto(console.url("/releases/3.0.0/do/withdraw"))
        expect(page.get_by_text("This touches release 3.0.0 of")).to_be_visible()

    def test_a_form_that_the_control_plane_refuses_keeps_what_was_typed(self, page: Page, console: Running) -> None:
        name = READY_AT_NEXT[0]
        page.goto(console.url(f"/tenants/{name}/do/upgrade"))
        page.get_by_label("Release", exact=True).select_option(VERSION)
        page.get_by_label("Reason").fill("the new one is slow")
        page.get_by_role("button", name=f"Move {name} to a release", exact=True).click()
        expect(page.get_by_role("alert")).to_contain_text("--allow-downgrade")
        expect(page.get_by_label("Reason")).to_have_value("the new one is slow")
        expect(page.get_by_label("Release", exact=True)).to_have_value(VERSION)

    def test_a_filter_by_a_tier_that_does_not_exist_says_so(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants?tier=nope"))
        expect(page.get_by_text("There is no tier nope. Tiers: standard.")).to_be_visible()


class TestHealth:
    def test_checks_and_the_findings_of_the_survey_are_in_one_place(self, page: Page, console: Running) -> None:
        page.goto(console.url("/health"))
        expect(page.get_by_role("row", name="dead letters OK")).to_be_visible()
        expect(page.get_by_role("row", name="dunder missing-stack")).to_be_visible()
        expect(page.get_by_role("row", name="BerthTenant-oldco")).to_contain_text("a person has to act")

    def test_a_finding_leads_to_what_it_is_about(self, page: Page, console: Running) -> None:
        rollout = under_way(console.api)
        stalled = Finding(Kind.STALLED_ROLLOUT, rollout, "Its execution is not running.", Remedy.NONE)
        drifted = Finding(Kind.DRIFTED, "acme", "Its queue differs from the template.", Remedy.NONE)
        foreign = Finding(Kind.FOREIGN_STACK, "BerthTenant-oldco", "It was made for something else.", Remedy.NONE)
        console.api.surveyed(stalled, drifted, foreign)
        page.goto(console.url("/health"))
        findings = page.get_by_role("table", name="Findings").get_by_role("rowheader").get_by_role("link")
        leads_to = {each.inner_text(): each.get_attribute("href") for each in findings.all()}
        assert leads_to == {rollout: f"/rollouts/{rollout}", "acme": "/tenants/acme"}

    def test_a_dry_run_comes_first_then_the_repair(self, page: Page, console: Running) -> None:
        page.goto(console.url("/health"))
        page.get_by_role("link", name="Compare the records with AWS").click()
        page.get_by_role("button", name="Compare the records with AWS", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Dry run of a reconciliation PENDING")
        found = Finding(Kind.MISSING_STACK, "dunder", "Its stack does not exist.", Remedy.CREATE)
        assert console.api.last_reconciliation.spec.dry_run
        console.api.reconciliation_is_now(status=ReconciliationStatus.DONE, findings=(found,), counts=counted([found]))
        update(page)
        page.get_by_role("link", name="Repair all findings").click()
        expect(page.get_by_text("The dry run has found 1 difference.")).to_be_visible()
        page.get_by_label("Type the number of findings").fill("1")
        page.get_by_role("button", name="Repair all findings", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("The reconciliation has begun.")
        spec = console.api.last_reconciliation.spec
        assert (spec.dry_run, spec.only) == (False, None)

    def test_one_finding_is_repaired(self, page: Page, console: Running) -> None:
        page.goto(console.url("/health"))
        row = page.get_by_role("row", name="dunder missing-stack")
        expect(row.get_by_text("berth reconcile --only dunder")).to_be_visible()
        row.get_by_role("link", name="Repair: create").click()
        page.get_by_role("button", name="Repair dunder", exact=True).click()
        expect(page.get_by_role("status")).to_contain_text("The repair of dunder has begun.")
        assert console.api.last_reconciliation.spec.only == ["dunder"]


class TestSettings:
    def test_times_are_relative_local_or_utc_and_remembered(self, page: Page, console: Running) -> None:
        page.goto(console.url("/tenants/acme"))
        changed = page.get_by_role("region", name="Facts").locator("time").first
        expect(changed).to_contain_text("ago")
        page.goto(console.url("/settings"))
        page.get_by_label("UTC").check()
        page.get_by_role("button", name="Keep").click()
        page.goto(console.url("/tenants/acme"))
        expect(changed).to_contain_text("2026-11-16")
        (kept,) = [each for each in page.context.cookies() if each["name"] == "berth-look"]
        assert (kept["httpOnly"], kept["sameSite"], kept["value"]) == (True, "Strict", "utc.system")

    def test_the_theme_can_be_chosen(self, page: Page, console: Running) -> None:
        page.goto(console.url("/settings"))
        light = page.evaluate("getComputedStyle(document.body).backgroundColor")
        page.get_by_label("dark").check()
        page.get_by_role("button", name="Keep").click()
        expect(page.locator("html[data-theme=dark]")).to_be_attached()
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") != light

    def test_the_systems_theme_is_followed(self, browser: Browser, console: Running) -> None:
        with someone(browser, console, color_scheme="dark") as page:
            assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(18, 23, 29)"

    def test_it_says_who_and_where(self, page: Page, console: Running) -> None:
        page.goto(console.url("/settings"))
        who = page.get_by_role("region", name="Who and where")
        for text in ("assumed-role/operator/ada", "Berth in eu-west-1", "111122223333", "you can change things"):
            expect(who).to_contain_text(text)
