"""Rules that hold on every page: everybody can use it, at every width, and sees where and who they are."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.axe import violations
from tests.browser.conftest import someone
from tests.browser.every_page import WITHOUT_SESSION, Everything, everything, nothing
from tests.present import present

WIDTHS = (1440, 1024, 768, 640, 390)
"""640 points are a window of 1280 at 200 % zoom; 390 are a telephone."""
OPEN_ALL = "[...document.querySelectorAll('details')].slice(0, 8).forEach(each => { each.open = true })"
_FOCUSABLE = """[...document.querySelectorAll(
    'a[href], button, input:not([type=hidden]), select, textarea, summary, [tabindex="0"]'
)].filter(each => each.checkVisibility() && !(each.type === 'radio' && !each.checked))"""
FOCUSABLE = f"() => {_FOCUSABLE}.length"
NOT_REACHED = f"() => {_FOCUSABLE}.filter(each => !each.dataset.reached).map(each => each.outerHTML.slice(0, 120))"
HOLD = """() => ['htmx:before:request', 'htmx:before:swap'].forEach(
    each => document.addEventListener(each, event => event.preventDefault()))"""
NOTE_WHAT_IS_REACHED = """() => document.addEventListener('focusin', event => {
    const style = getComputedStyle(event.target);
    const isSeen = style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) >= 2;
    if (isSeen) event.target.dataset.reached = 'yes';
})"""
TABLES = """() => [...document.querySelectorAll('table')].filter(each =>
    !each.caption || !each.caption.textContent.trim()
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


WITHOUT_COMMAND = """() => [
    ...[...document.querySelectorAll('a.button')].filter(each =>
        /[/]do[/]|^[/](rollouts[/]plan|health[/](compare|repair[/].+))$/.test(each.getAttribute('href'))
        && !each.closest('li, p, td').querySelector('.command')),
    ...[...document.querySelectorAll('form.action')].filter(each => !each.closest('main').querySelector('.command')),
].map(each => each.outerHTML.slice(0, 200))"""
SCRIPTS = {"tables": TABLES, "words": WITHOUT_WORDS, "commands": WITHOUT_COMMAND}
PLACE = ("AWS", "Berth in eu-west-1", "111122223333", "ada")
BROKEN = """<!doctype html><title>x</title><style>
:focus { outline: none } h1 { transition: color 1s; width: 1100px } </style>
<h1>One</h1><h3>Three</h3><p><a class="button" href="/do/x">x</a></p>
<a href="/">a link</a><p class="state"></p><table><tr><td>1</td></tr></table>"""


@dataclass
class Seen:
    """What was seen on all pages, each of which is opened once."""

    by_rule: dict[str, dict[str, object]] = field(default_factory=lambda: defaultdict(dict))

    def look_at(self, page: Page, pages: Everything, name: str) -> None:
        pages.look(page, name)
        for rule, script in SCRIPTS.items():
            self._note(rule, name, page.evaluate(script))
        self._note("headings", name, _disorder(page.evaluate(HEADINGS)))
        self._note("keyboard", name, _out_of_reach(page))
        if name != WITHOUT_SESSION:
            banner = page.get_by_role("banner").inner_text()
            self._note("place", name, [text for text in PLACE if text not in banner])
        page.emulate_media(reduced_motion="reduce")
        self._note("motion", name, page.evaluate(MOVING))
        # What is closed cannot be judged.
        page.evaluate(OPEN_ALL)
        self._note("axe", name, violations(page))
        page.emulate_media(color_scheme="dark")
        self._note("axe in the dark", name, violations(page, "color-contrast"))
        self._note("width", name, _too_wide(page))
        page.emulate_media(color_scheme="light", reduced_motion="no-preference")

    def _note(self, rule: str, name: str, found: object) -> None:
        if found:
            self.by_rule[rule][name] = found


def _disorder(levels: list[int]) -> list[int]:
    """The levels of the headings, if they are not in order below a single first one."""
    in_order = levels.count(1) == 1 and levels[0] == 1 and all(later - each <= 1 for each, later in pairwise(levels))
    return [] if in_order else levels


def _out_of_reach(page: Page) -> list[str]:
    """What the Tab key does not reach, or does not show."""
    # Rows that come in meanwhile would not be reached. An answer may be under way already.
    page.evaluate(HOLD)
    page.evaluate(NOTE_WHAT_IS_REACHED)
    for _ in range(page.evaluate(FOCUSABLE)):
        page.keyboard.press("Tab")
    found: list[str] = page.evaluate(NOT_REACHED)
    return found


def _too_wide(page: Page) -> list[int]:
    usual = page.viewport_size
    found = []
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        if not page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"):
            found.append(width)
    page.set_viewport_size(present(usual))
    return found


@pytest.fixture(scope="module")
def seen(browser: Browser) -> Seen:
    seen = Seen()
    for made in (everything, nothing):
        with made() as pages, someone(browser, pages.here, viewport={"width": 1280, "height": 800}) as page:
            for name in pages:
                seen.look_at(page, pages, name)
    return seen


@pytest.mark.parametrize("rule", ["axe", "axe in the dark"])
def test_axe_finds_nothing(seen: Seen, rule: str) -> None:
    """In the dark, only colours can differ."""
    assert seen.by_rule[rule] == {}


def test_no_page_is_wider_than_the_window(seen: Seen) -> None:
    assert seen.by_rule["width"] == {}


def test_everything_can_be_reached_by_the_keyboard_and_shows_that_it_is_reached(seen: Seen) -> None:
    assert seen.by_rule["keyboard"] == {}


def test_headings_are_in_order_below_a_single_first_one(seen: Seen) -> None:
    assert seen.by_rule["headings"] == {}


def test_every_table_has_a_caption_and_headers(seen: Seen) -> None:
    assert seen.by_rule["tables"] == {}


def test_colour_never_says_anything_alone(seen: Seen) -> None:
    assert seen.by_rule["words"] == {}


def test_every_button_that_leads_to_an_order_has_its_command(seen: Seen) -> None:
    assert seen.by_rule["commands"] == {}


def test_nothing_moves_for_who_wants_it_still(seen: Seen) -> None:
    assert seen.by_rule["motion"] == {}


def test_account_region_kind_and_caller_are_always_visible(seen: Seen) -> None:
    assert seen.by_rule["place"] == {}


def test_the_rules_find_what_breaks_them(browser: Browser) -> None:
    """A page that breaks every rule that is not axe's own."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, reduced_motion="reduce")
    page = context.new_page()
    page.set_content(BROKEN)
    for script in (*SCRIPTS.values(), MOVING):
        assert page.evaluate(script)
    assert _disorder(page.evaluate(HEADINGS))
    assert _out_of_reach(page)
    assert _too_wide(page) == [1024, 768, 640, 390]
    context.close()
