"""Accessibility: axe finds nothing on a page."""

from __future__ import annotations

from playwright.sync_api import Page

from tests.browser.chromium import AXE


def violations(page: Page, *rules: str) -> list[str]:
    """What axe finds on the page, by all rules or by these.

    It is loaded by the debugger, because the content policy allows no other script.
    """
    page.evaluate(AXE.read_text(encoding="utf-8") + "\n;null")
    found = page.evaluate("rules => axe.run(document, rules.length ? {runOnly: rules} : {})", list(rules))
    return [
        f"{each['id']}: {each['help']}: {node['html'][:200]}" for each in found["violations"] for node in each["nodes"]
    ]
