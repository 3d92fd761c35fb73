"""Pages update themselves, and never move what a person is at: scroll, focus, typed text, open rows."""

from __future__ import annotations

import pytest
from botocore.exceptions import NoCredentialsError
from playwright.sync_api import Browser, Page, expect

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import RootCause
from tests.browser.conftest import Running, running, someone
from tests.browser.every_page import EXPIRED, GONE, THROTTLED, UNREACHABLE
from tests.browser.fleet import FAILED, a_fleet

UPDATE = """() => {
    const {dataset} = document.documentElement;
    delete dataset.updated;
    document.addEventListener('htmx:before:request', ({detail: {ctx}}) => {
        document.addEventListener('htmx:finally:request', event => {
            if (event.detail.ctx === ctx) dataset.updated = '';
        });
    }, {once: true});
    document.getElementById('live').dispatchEvent(new Event('every'));
}"""
SLOW_ANSWERS = """() => {
    const read = Response.prototype.text;
    Response.prototype.text = async function () {
        await new Promise(resolve => setTimeout(resolve, 300));
        return read.call(this);
    };
}"""


def update(page: Page) -> None:
    """Let the page ask for its newest state now, as it does every few seconds, and wait until it shows the answer.

    A request that is under way already may be answered with the state of before, so the next one is waited for.
    """
    page.locator("#live[data-htmx-powered]").wait_for(state="attached")
    page.evaluate(UPDATE)
    page.locator("html[data-updated]").wait_for(state="attached")


def test_an_update_that_was_waited_for_is_on_the_page_however_slow_the_page_is(page: Page, console: Running) -> None:
    """A click on a greyed button that becomes another element meanwhile would do nothing."""
    page.goto(console.url("/tenants/pawnee"))
    page.evaluate(SLOW_ANSWERS)
    console.api.succeed()
    update(page)
    assert "READY" in page.get_by_role("heading", level=1).inner_text()


def test_a_page_shows_what_has_changed(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants/pawnee"))
    expect(page.get_by_role("heading", level=1)).to_contain_text("PROVISIONING")
    console.api.succeed()
    update(page)
    expect(page.get_by_role("heading", level=1)).to_contain_text("READY")


def test_a_page_in_the_background_asks_for_nothing_until_it_is_seen_again(page: Page, console: Running) -> None:
    # A page whose own turn comes only after half a minute.
    page.goto(console.url("/releases"))
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    # A browser without a screen hides no tab by itself.
    page.evaluate("Object.defineProperty(document, 'hidden', {value: true, configurable: true})")
    page.evaluate("document.getElementById('live').dispatchEvent(new Event('every'))")
    page.evaluate("Object.defineProperty(document, 'hidden', {value: false})")
    assert asked == []
    with page.expect_response(lambda answer: "hx-request" in answer.request.headers):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    assert len(asked) == 1
    update(page)


def test_an_update_keeps_the_focus_the_typed_text_the_scroll_and_open_rows(page: Page, console: Running) -> None:
    page.set_viewport_size({"width": 800, "height": 400})
    page.goto(console.url("/tenants"))
    page.get_by_label("Id begins with").fill("half-typed")
    page.locator(f"#why-{FAILED[0]} summary").click()
    page.locator(f"#open-{FAILED[1]}").focus()
    scrolled = page.evaluate("window.scrollY")
    assert scrolled > 0
    console.api.has("newcomer")
    update(page)
    expect(page.locator("#tenant-newcomer")).to_be_attached()
    assert page.evaluate("document.activeElement.id") == f"open-{FAILED[1]}"
    assert page.evaluate(f"document.getElementById('why-{FAILED[0]}').open")
    assert page.get_by_label("Id begins with").input_value() == "half-typed"
    # The browser keeps what is seen where it is, although a row has come above it.
    assert page.evaluate("window.scrollY") >= scrolled


def test_a_cursor_in_a_text_stays_where_it_is(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants"))
    box = page.get_by_label("Id begins with")
    box.fill("abcdef")
    box.evaluate("each => each.setSelectionRange(2, 4)")
    console.api.has("newcomer")
    update(page)
    expect(page.locator("#tenant-newcomer")).to_be_attached()
    assert box.evaluate("each => [each.selectionStart, each.selectionEnd, document.activeElement === each]") == [
        2,
        4,
        True,
    ]


def test_a_page_says_that_it_may_be_old_while_the_api_is_away(browser: Browser) -> None:
    with running(a_fleet()) as here, someone(browser, here) as page:
        page.goto(here.url("/tenants/acme"))
        banner = page.get_by_text("This page may be old")
        expect(banner).to_be_hidden()
        here.api.away = GONE
        update(page)
        expect(banner).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_contain_text("acme")
        here.api.away = None
        update(page)
        expect(banner).to_be_hidden()


def test_a_page_that_cannot_refresh_says_why(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants/acme"))
    banner = page.locator("#old")
    for answer, reason in (
        (GONE, "The control plane did not answer. It is asked again by itself."),
        (THROTTLED, "There are too many requests. It is asked again by itself."),
        (EXPIRED, "AWS refuses your credentials. It is asked again by itself."),
    ):
        console.api.away = answer
        update(page)
        expect(banner).to_have_text(f"This page may be old. {reason}")


def test_a_page_whose_session_has_ended_says_so_and_the_terminal_has_the_way_back(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants/acme"))
    page.context.clear_cookies()
    update(page)
    expect(page.locator("#old")).to_contain_text("The session has ended: load the page again.")
    expect(page.get_by_role("heading", level=1)).to_contain_text("acme")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_have_text("Open the console again")
    (line,) = console.said
    page.goto(line.rpartition(" ")[2])
    expect(page.get_by_role("heading", level=1)).to_have_text("Overview")


def test_two_pages_of_one_session_do_not_disturb_each_other(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants/duff/do/retry"))
    other = page.context.new_page()
    other.goto(console.url("/tenants/krusty/do/retry"))
    for each, name in ((page, "duff"), (other, "krusty")):
        each.get_by_role("button", name=f"Retry {name}", exact=True).click()
        expect(each.get_by_role("status").get_by_text(f"{name}: CREATE 0.2.0 was started")).to_be_visible()
    other.close()


@pytest.mark.parametrize(
    ("answer", "title"),
    [
        (GONE, "The control plane did not answer"),
        (UNREACHABLE, "The control plane did not answer"),
        (THROTTLED, "There are too many requests"),
        (Throttled("Rate exceeded"), "There are too many requests"),
        (EXPIRED, "AWS refuses your credentials"),
        (NoCredentialsError(), "AWS refuses your credentials"),
    ],
)
def test_a_page_that_is_opened_while_the_control_plane_cannot_be_asked_says_why_and_tries_again(
    page: Page, console: Running, answer: ApiAnswer | Exception, title: str
) -> None:
    console.api.away = answer
    page.goto(console.url("/tenants/acme"))
    expect(page.get_by_role("heading", level=1)).to_have_text(title)
    expect(page.get_by_role("alert")).not_to_be_empty()
    expect(page.get_by_text("Tenants and their queues do not depend on the control plane")).to_be_visible()
    console.api.away = None
    page.get_by_role("link", name="Try again").click()
    expect(page.get_by_role("heading", level=1)).to_contain_text("acme")


def test_expired_credentials_have_a_page_with_the_command_that_renews_them(page: Page, console: Running) -> None:
    console.api.away = EXPIRED
    page.goto(console.url("/tenants/acme"))
    expect(page.get_by_text("aws sso login --profile prod")).to_be_visible()
    expect(page.get_by_text("after these were renewed, start it again")).to_be_visible()


def test_a_local_control_plane_that_is_gone_has_a_page_with_the_command_that_starts_it(browser: Browser) -> None:
    with running(a_fleet(), local=True) as here, someone(browser, here) as page:
        here.api.away = UNREACHABLE
        page.goto(here.url("/tenants/acme"))
        expect(page.get_by_text("make up", exact=True)).to_be_visible()


def test_an_order_whose_answer_is_lost_is_not_called_undone(page: Page, console: Running) -> None:
    page.goto(console.url("/tenants/duff/do/retry"))
    orders = console.api.send

    def lose_answer(request: HttpRequest) -> ApiAnswer:
        answer = orders(request)
        return GONE if request.method == "POST" else answer

    console.api.send = lose_answer  # type: ignore[method-assign]
    page.get_by_role("button", name="Retry duff", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("The control plane did not answer")
    expect(page.get_by_text("Your order may have arrived or not.")).to_be_visible()


def test_a_mistake_of_the_console_itself_has_a_page(page: Page, console: Running) -> None:
    console.api.away = RuntimeError("a bug")
    page.goto(console.url("/tenants/acme"))
    expect(page.get_by_role("heading", level=1)).to_have_text("The console has made a mistake")
    expect(page.get_by_role("alert")).to_have_text("RuntimeError: a bug")
    expect(page.get_by_role("link", name="Try again")).to_be_visible()


def test_half_of_a_surrogate_pair_does_not_hide_a_page(page: Page, console: Running) -> None:
    assert console.api.create(TenantId.parse("half")).status == 202
    console.api.begin()
    console.api.fail(RootCause("InboundQueue", "AWS::SQS::Queue", "a \ud800 b"))
    page.goto(console.url("/tenants/half"))
    expect(page.get_by_role("region", name="Root cause")).to_contain_text("a \N{REPLACEMENT CHARACTER} b")
