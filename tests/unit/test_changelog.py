"""The changelog is kept by hand; its top version is the product's."""

from __future__ import annotations

import re
from pathlib import Path

from orchestrator.tenants.resource_requests import MAX_NOTES

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - \d{4}-\d{2}-\d{2}$", re.MULTILINE)


def test_the_changelogs_top_version_is_the_products() -> None:
    versions = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert versions[:1] == [(ROOT / "version.txt").read_text(encoding="utf-8").strip()]


def test_the_changelog_tells_the_newest_version_first() -> None:
    versions = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert versions == sorted(versions, key=lambda text: [int(part) for part in text.split(".")], reverse=True)


def test_every_released_version_says_what_it_changes_and_its_summary_is_shown_whole() -> None:
    """Operators read the summary of a version in `berth releases`, where more than this is cut."""
    _, *parts = HEADING.split((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    for release in (ROOT / "stacks" / "releases").glob("*.json"):
        summary, _, _ = sections[release.stem].partition("\n### ")
        assert 0 < len(summary.strip()) <= MAX_NOTES, release.stem
