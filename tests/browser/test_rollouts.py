"""Rollouts: planned before they are started, watched live, ordered only where that is valid."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, Page, expect

from orchestrator.rollouts.records import Result, RolloutStatus, StageStatus
from tests.browser.conftest import Running, running, someone
from tests.browser.fleet import READY_AT_FIRST, a_fleet, under_way
from tests.browser.test_live import update
from tests.fakes import NEXT_VERSION


@pytest.fixture
def moving() -> Iterator[Running]:
    api = a_fleet()
    rollout = under_way(api)
    with running(api) as here:
        here.rollout = rollout
        yield here


@pytest.fixture
def watching(browser: Browser, moving: Running) -> Iterator[Page]:
    with someone(browser, moving) as page:
        page.goto(moving.url("/rollouts/ROLLOUT"))
        yield page


def test_stages_show_moved_failed_and_under_way_and_when_they_halt(watching: Page) -> None:
    expect(watching.locator("#stage-1")).to_contain_text("DONE")
    stage = watching.locator("#stage-2")
    expect(stage.get_by_role("img", name="Stage 2: 1 failed, 2 under-way, 2 waiting")).to_be_visible()
    expect(stage).to_contain_text("above 2")
    expect(watching.get_by_text("about", exact=False).first).to_contain_text("without bakes and approvals")


def test_failures_are_grouped_by_cause(watching: Page) -> None:
    failures = watching.get_by_role("region", name="Failures by cause")
    expect(failures).to_contain_text("Access to the resource")
    expect(failures.get_by_role("link", name=READY_AT_FIRST[1])).to_be_visible()


def test_the_page_follows_the_rollout_to_its_halt_and_says_why(watching: Page, moving: Running) -> None:
    moving.api.is_now(status=RolloutStatus.HALTED, reason="2 tenants of stage 2 failed, more than the 1 that may.")
    update(watching)
    expect(watching.get_by_role("heading", level=1)).to_contain_text("HALTED at stage 2")
    expect(watching.get_by_text("2 tenants of stage 2 failed, more than the 1 that may.")).to_be_visible()
    expect(watching.get_by_role("link", name="Accept the failures and continue")).to_be_visible()


def test_a_bake_counts_down(watching: Page, moving: Running) -> None:
    until = moving.api.clock.now() + timedelta(minutes=9, seconds=30)
    moving.api.stage_is_now(2, status=StageStatus.BAKING, baked_until=until, in_flight=0)
    update(watching)
    bake = watching.get_by_role("region", name="Bake")
    expect(bake).to_contain_text("in 9 min")
    moving.api.clock.advance(timedelta(minutes=3))
    update(watching)
    expect(bake).to_contain_text("in 6 min")


def test_orders_are_given_only_where_they_are_valid(watching: Page, moving: Running) -> None:
    expect(watching.get_by_text("The rollout is neither paused nor halted.")).to_be_visible()
    watching.get_by_role("link", name="Pause it").click()
    watching.get_by_role("button", name=f"Pause {moving.rollout}", exact=True).click()
    expect(watching.get_by_role("heading", level=1)).to_contain_text("PAUSED")
    assert moving.api.newest.status is RolloutStatus.PAUSED
    watching.get_by_role("link", name="Resume it").click()
    watching.get_by_role("button", name=f"Resume {moving.rollout}", exact=True).click()
    expect(watching.get_by_role("heading", level=1)).to_contain_text("RUNNING")


def test_a_rollout_to_a_release_that_was_withdrawn_cannot_be_resumed(watching: Page, moving: Running) -> None:
    assert moving.api.request("POST", f"/releases/{NEXT_VERSION}/withdraw").status == 200
    moving.api.is_now(status=RolloutStatus.HALTED, reason="The release was withdrawn.")
    update(watching)
    resume = watching.get_by_text("Accept the failures and continue", exact=True)
    assert resume.get_attribute("aria-disabled") == "true"
    watching.goto(moving.url("/rollouts/ROLLOUT/do/resume"))
    expect(watching.get_by_role("alert")).to_contain_text("This cannot be done now. The release was withdrawn.")


def test_the_pace_of_a_rollout_is_changed(watching: Page, moving: Running) -> None:
    watching.get_by_role("link", name="Change its pace").click()
    change = watching.get_by_role("button", name=f"Change the pace of {moving.rollout}", exact=True)
    change.click()
    expect(watching.get_by_role("alert")).to_contain_text("Give at least one value")
    watching.get_by_label("Tenants at once").fill("3")
    watching.get_by_label("Tenants of a stage that may fail").fill("20%")
    change.click()
    expect(watching.get_by_role("status")).to_contain_text("the pace of the stages that are left is changed")
    stage = moving.api.ledger.stages(moving.rollout)[1]
    assert (stage.spec.max_concurrency, str(stage.spec.tolerated)) == (3, "20%")


def test_a_stage_that_bakes_can_be_told_not_to_wait(watching: Page, moving: Running) -> None:
    until = moving.api.clock.now() + timedelta(hours=1)
    moving.api.stage_is_now(2, status=StageStatus.BAKING, baked_until=until, in_flight=0)
    update(watching)
    watching.get_by_role("link", name="Do not wait").click()
    watching.get_by_role("button", name="Do not wait in stage 2", exact=True).click()
    expect(watching.get_by_role("status").get_by_text(moving.rollout)).to_be_visible()
    assert moving.api.asked.count(f"POST /rollouts/{moving.rollout}/promote") == 1


@pytest.fixture
def ended(watching: Page, moving: Running) -> Page:
    """The page of the rollout, which has moved one tenant, and failed with another."""
    moving.api.stage_is_now(2, status=StageStatus.DONE, in_flight=0)
    moving.api.is_now(status=RolloutStatus.ABORTED, ended_at=moving.api.clock.now())
    update(watching)
    return watching


def test_the_failed_tenants_of_a_rollout_that_has_ended_are_retried(ended: Page, moving: Running) -> None:
    ended.get_by_role("link", name="Retry the failed tenants").click()
    expect(ended.get_by_text(f"A new rollout moves the failed ones of {moving.rollout}: 1 tenant.")).to_be_visible()
    ended.get_by_role("button", name="Retry the failed tenants", exact=True).click()
    facts = ended.get_by_role("region", name="Facts")
    expect(facts.get_by_role("link", name=moving.rollout)).to_be_visible()
    assert (moving.api.newest.id != moving.rollout, moving.api.newest.total) == (True, 1)


def test_an_undo_states_the_number_of_tenants_and_wants_it_to_be_typed(ended: Page, moving: Running) -> None:
    ended.get_by_role("link", name="Move the tenants back").click()
    expect(ended.get_by_text("A new rollout moves 1 tenant back to their earlier releases.")).to_be_visible()
    undo = ended.get_by_role("button", name=f"Undo rollout {moving.rollout}", exact=True)
    ended.get_by_label("Type the number of tenants").fill("2")
    undo.click()
    expect(ended.get_by_role("alert")).to_contain_text("nothing was done")
    asked = moving.api.asked.count("POST /rollouts")
    ended.get_by_label("Type the number of tenants").fill("1")
    undo.click()
    # The tenant's records say nothing of the move, so the control plane finds nothing to undo.
    expect(ended.get_by_role("status")).to_contain_text("No tenant has to be moved")
    assert moving.api.asked.count("POST /rollouts") == asked + 1
    assert {"undo": moving.rollout} in moving.api.sent


def test_an_abort_wants_the_id_to_be_typed(watching: Page, moving: Running) -> None:
    watching.get_by_role("link", name="Abort it").click()
    expect(watching.get_by_text("This touches")).to_contain_text(f"rollout {moving.rollout} of Berth in eu-west-1")
    watching.get_by_label("Type the rollout's id").fill(moving.rollout)
    watching.get_by_role("button", name=f"Abort {moving.rollout}", exact=True).click()
    expect(watching.get_by_role("heading", level=1)).to_contain_text("ABORTING")


def test_a_stage_that_awaits_approval_is_approved(watching: Page, moving: Running) -> None:
    moving.api.stage_is_now(2, status=StageStatus.DONE, in_flight=0)
    moving.api.stage_is_now(3, status=StageStatus.AWAITING_APPROVAL)
    moving.api.is_now(current_stage=3)
    update(watching)
    watching.get_by_role("link", name="Approve stage 3").click()
    watching.get_by_role("button", name="Approve stage 3", exact=True).click()
    expect(watching.locator("#stage-3")).to_contain_text("APPROVED")


def test_a_plan_to_a_release_that_cannot_be_chosen_does_not_become_one_to_another(page: Page, console: Running) -> None:
    """The form and its command are about the same release."""
    page.goto(console.url("/rollouts/plan?to=9.9.9"))
    expect(page.get_by_text("berth rollout plan --to 9.9.9")).to_be_visible()
    expect(page.get_by_label("Release", exact=True)).to_have_value("9.9.9")
    page.get_by_role("button", name="Plan a rollout", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("9.9.9")


def test_a_plan_comes_before_the_rollout_and_states_its_filters_and_numbers(page: Page, console: Running) -> None:
    api = console.api
    page.goto(console.url("/rollouts/plan?label=plan%3Dgold&to=0.2.0"))
    expect(page.get_by_text("berth rollout plan --to 0.2.0 --label plan=gold")).to_be_visible()
    page.get_by_label("Tenants to check").fill("100%")
    page.get_by_role("button", name="Plan a rollout", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Dry run to 0.2.0")
    expect(page.get_by_text("The dry run has not ended.")).to_be_visible()
    plan = api.newest
    assert plan.spec.dry_run
    gold = [each.tenant for each in api.manifests.read(api.ledger.stages(plan.id)[0].manifest)]
    for tenant in gold:
        api.came_to(tenant, Result.SUCCEEDED, changes=("InboundQueue (AWS::SQS::Queue): changes in place",))
    api.is_now(status=RolloutStatus.SUCCEEDED, ended_at=api.clock.now())
    update(page)
    api.clock.advance(timedelta(seconds=5))
    page.get_by_role("link", name="Start it").click()
    expect(page.get_by_text(f"Moves {len(gold)} tenants to {NEXT_VERSION}")).to_be_visible()
    expect(page.get_by_text("Selected: label plan=gold.")).to_be_visible()
    for tenant in gold:
        expect(page.get_by_text(tenant.value)).to_be_visible()
    page.get_by_label("Type the number of tenants").fill(str(len(gold)))
    page.get_by_role("button", name="Start the rollout to 0.2.0").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("Rollout to 0.2.0")
    assert not api.newest.spec.dry_run
    assert api.newest.total == len(gold)
