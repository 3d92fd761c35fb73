"""The documents show screenshots that these tests can make."""

from __future__ import annotations

import re

from playwright.sync_api import Browser

from orchestrator.console.app import PAGES
from tests.browser.screenshots import FOLDER, MAX_BYTES, SHOTS, screenshots

ROOT = FOLDER.parents[1]
PNG = b"\x89PNG\r\n"


def test_every_screenshot_of_the_documents_is_made_here_and_small() -> None:
    shown = set()
    for document in (ROOT / "README.md", ROOT / "docs" / "console.md"):
        shown |= set(re.findall(r"screenshots/([\w-]+)\.png", document.read_text(encoding="utf-8")))
    assert shown == set(SHOTS) == {file.stem for file in FOLDER.glob("*.png")}
    for file in FOLDER.glob("*.png"):
        assert file.read_bytes().startswith(PNG)
        assert file.stat().st_size < MAX_BYTES


def test_the_screenshots_can_be_made(browser: Browser) -> None:
    made = screenshots(browser)
    assert made.keys() == SHOTS.keys()
    assert all(image.startswith(PNG) for image in made.values())


def test_every_page_is_described_in_the_document() -> None:
    document = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    for module in PAGES:
        assert f"`{module.__name__.rpartition('.')[2]}`" in document
