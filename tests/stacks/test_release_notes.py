"""The notes that are published with a release: its section of the changelog, without the details."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.releases.template_contract import MAX_NOTES
from stacks.releases.committed import ReleaseMissing, notes

CHANGELOG = """# Changelog

What changes.

## 0.10.0 - 2026-11-18

The tenth.

- Something new.

### In detail

More of it.

## 0.9.0 - 2026-11-17

The ninth.

## 0.1.0 - 2026-11-16

The first.
"""


@pytest.fixture
def changelog(tmp_path: Path) -> Path:
    file = tmp_path / "CHANGELOG.md"
    file.write_text(CHANGELOG, encoding="utf-8")
    return file


def test_the_notes_of_a_version_end_where_its_details_begin(changelog: Path) -> None:
    assert notes("0.10.0", current="0.10.0", changelog=changelog) == "The tenth.\n\n- Something new."


def test_the_notes_of_a_version_without_details_end_at_the_next_version(changelog: Path) -> None:
    assert notes("0.9.0", current="0.10.0", changelog=changelog) == "The ninth."


def test_the_notes_of_the_first_version_end_with_the_changelog(changelog: Path) -> None:
    assert notes("0.1.0", current="0.10.0", changelog=changelog) == "The first."


def test_a_version_is_not_mistaken_for_a_longer_one_with_the_same_beginning(changelog: Path) -> None:
    assert notes("0.1", current="0.10.0", changelog=changelog) == ""


def test_an_older_version_may_have_no_notes(changelog: Path) -> None:
    assert notes("0.2.0", current="0.10.0", changelog=changelog) == ""


def test_the_current_version_must_have_notes(changelog: Path) -> None:
    with pytest.raises(ReleaseMissing, match=r"Version 0\.11\.0 has no section in CHANGELOG\.md"):
        notes("0.11.0", current="0.11.0", changelog=changelog)


def test_notes_that_are_too_long_are_cut_and_end_with_an_ellipsis(tmp_path: Path) -> None:
    changelog = tmp_path / "CHANGELOG.md"
    changelog.write_text(f"## 1.0.0 - 2026-11-16\n\n{'x' * MAX_NOTES}\n", encoding="utf-8")
    assert notes("1.0.0", current="1.0.0", changelog=changelog) == "x" * MAX_NOTES
    changelog.write_text(f"## 1.0.0 - 2026-11-16\n\n{'x' * (MAX_NOTES + 1)}\n", encoding="utf-8")
    assert notes("1.0.0", current="1.0.0", changelog=changelog) == "x" * (MAX_NOTES - 1) + "…"
