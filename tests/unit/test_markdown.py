"""Links between documents lead somewhere, and documents that people read from top to bottom stay short."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")]
DECISIONS = [page for page in PAGES if page.parent.name == "decisions" and page.name != "README.md"]
CODE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]+))?\)")


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for path, anchor in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), path
        if anchor:
            assert anchor in anchors(target), f"{path}#{anchor}"


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.stem)
def test_a_decision_is_one_page_with_its_status_and_is_in_the_index(page: Path) -> None:
    title, _, status, *text = page.read_text(encoding="utf-8").splitlines()
    assert re.fullmatch(r"Status: [a-z]+, \d{4}-\d{2}-\d{2}", status)
    assert len(text) <= 45
    status = status.removeprefix("Status: ")
    index = (page.parent / "README.md").read_text(encoding="utf-8")
    assert f"| [{title.removeprefix('# ')}]({page.name}) | {status} |" in index


def test_the_readme_is_read_to_its_end() -> None:
    assert len((ROOT / "README.md").read_text(encoding="utf-8").splitlines()) <= 150


def test_the_changelog_has_at_most_80_lines_for_a_version() -> None:
    _, *versions = re.split(r"^## ", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    assert versions
    assert max(len(version.splitlines()) for version in versions) <= 80
