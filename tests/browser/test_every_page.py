"""Rules that hold on every page: everybody can use it, at every width, and sees where and who they are."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import violations
from tests.browser.conftest import someone
from tests.browser.every_page import WITHOUT_SESSION, Everything, everything, nothing

WIDTHS = (1440, 1024, 768, 640, 390)
"""640 points are a window of 1280 at 200 % zoom; 390 are a telephone."""
OPEN_ALL = "[...document.querySelectorAll('details')].slice(0, 8).forEach(each => { each.open = true })"
FOCUSABLE = """() => [...document.querySelectorAll(
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
)].filter(each => each.checkVisibility() && !(each.type === 'radio' && !each.checked)).length"""
FOCUSED = """() => {
    const each = document.activeElement;
    if (!each || each === document.body) return null;
    each.dataset.reached = 'yes';
    const style = getComputedStyle(each);
    return style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2 ? '' : each.outerHTML.slice(0, 120);
}"""
TABLES = """() => [...document.querySelectorAll('table')].filter(each =>
    !each.caption || !each.caption.innerText.trim() && !each.caption.textContent.trim()
    || [...each.querySelectorAll('thead th')].some(head => head.scope !== 'col')
    || [...each.querySelectorAll('tbody tr')].some(row => !row.querySelector('th[scope=row]'))
).map(each => each.outerHTML.slice(0, 200))"""
HEADINGS = "() => [...document.querySelectorAll('h1, h2, h3, h4')].map(each => Number(each.tagName[1]))"
WITHOUT_WORDS = """() => [
    ...[...document.querySelectorAll('.state, .kind, .tag')].filter(each => !each.textContent.trim()),
    ...[...document.querySelectorAll('svg:not([aria-hidden])')].filter(each => !/[0-9]/.test(each.ariaLabel || '')),
    ...[...document.querySelectorAll('.timeline > li.good, .timeline > li.bad, .timeline > li.busy')].filter(
        each => !each.querySelector('.state')),
    ...[...document.querySelectorAll('.panel')].filter(each => !each.textContent.trim()),
].map(each => each.outerHTML.slice(0, 200))"""
MOVING = """() => [...document.querySelectorAll('*')].filter(each => {
    const style = getComputedStyle(each);
    return style.animationName !== 'none' || style.transitionDuration.split(', ').some(each => parseFloat(each) > 0);
}).map(each => each.outerHTML.slice(0, 120))"""


@pytest.fixture(scope="module")
def all_pages() -> Iterator[Everything]:
    with everything() as found:
        yield found


@pytest.fixture(scope="module")
def visitor(browser: Browser, all_pages: Everything) -> Iterator[Page]:
    with someone(browser, all_pages.here, viewport={"width": 1280, "height": 800}) as page:
        yield page


def found_on(all_pages: Everything, page: Page, script: str) -> dict[str, object]:
    """What the script finds, by page."""
    found = {}
    for name in all_pages:
        all_pages.look(page, name)
        found[name] = page.evaluate(script)
    return {name: each for name, each in found.items() if each}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing(browser: Browser, all_pages: Everything, theme: str) -> None:
    """In the dark, only colours can differ."""
    found = {}
    with someone(browser, all_pages.here, color_scheme=theme, viewport={"width": 1280, "height": 800}) as page:
        for name in all_pages:
            all_pages.look(page, name)
            # What is closed cannot be judged.
            page.evaluate(OPEN_ALL)
            found[name] = violations(page, *(() if theme == "light" else ("color-contrast",)))
    assert {name: each for name, each in found.items() if each} == {}


def test_axe_finds_nothing_where_there_is_nothing_yet(browser: Browser) -> None:
    with nothing() as pages, someone(browser, pages.here) as page:
        found = {}
        for name in pages:
            pages.look(page, name)
            found[name] = violations(page)
    assert {name: each for name, each in found.items() if each} == {}


def test_no_page_is_wider_than_the_window(visitor: Page, all_pages: Everything) -> None:
    wide = []
    for name in all_pages:
        all_pages.look(visitor, name)
        visitor.evaluate(OPEN_ALL)
        for width in WIDTHS:
            visitor.set_viewport_size({"width": width, "height": 800})
            if not visitor.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
                wide.append((name, width))
    visitor.set_viewport_size({"width": 1280, "height": 800})
    assert wide == []


def test_everything_can_be_reached_by_the_keyboard_and_shows_that_it_is_reached(
    visitor: Page, all_pages: Everything
) -> None:
    found = {}
    for name in all_pages:
        all_pages.look(visitor, name)
        wanted = visitor.evaluate(FOCUSABLE)
        unseen = []
        for _ in range(wanted):
            visitor.keyboard.press("Tab")
            if outline := visitor.evaluate(FOCUSED):
                unseen.append(outline)
        reached = visitor.locator("[data-reached]").count()
        if unseen or reached != wanted:
            found[name] = (wanted, reached, unseen)
    assert found == {}


def test_headings_are_in_order_below_a_single_first_one(visitor: Page, all_pages: Everything) -> None:
    wrong = {}
    for name in all_pages:
        all_pages.look(visitor, name)
        levels = visitor.evaluate(HEADINGS)
        if levels.count(1) != 1 or levels[0] != 1 or any(b - a > 1 for a, b in pairwise(levels)):
            wrong[name] = levels
    assert wrong == {}


def test_every_table_has_a_caption_and_headers(visitor: Page, all_pages: Everything) -> None:
    assert found_on(all_pages, visitor, TABLES) == {}


def test_colour_never_says_anything_alone(visitor: Page, all_pages: Everything) -> None:
    assert found_on(all_pages, visitor, WITHOUT_WORDS) == {}


def test_nothing_moves_for_who_wants_it_still(browser: Browser, all_pages: Everything) -> None:
    with someone(browser, all_pages.here, reduced_motion="reduce") as page:
        assert found_on(all_pages, page, MOVING) == {}


def test_account_region_kind_and_caller_are_always_visible(visitor: Page, all_pages: Everything) -> None:
    for name in set(all_pages) - {WITHOUT_SESSION}:
        all_pages.look(visitor, name)
        banner = visitor.get_by_role("banner")
        for text in ("AWS", "Berth in eu-west-1", "111122223333", "ada"):
            expect(banner.get_by_text(text, exact=True)).to_be_visible()
