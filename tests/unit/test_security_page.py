"""The page on security names a test for each claim, and the tests are there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`((?:unit|adapters|stacks|e2e|simulation)/[\w/]*(?:\.py|/))`", PAGE)))
ATTACKS = [
    line for line in PAGE.partition("## The table of attacks")[2].partition("\n## ")[0].splitlines() if "|" in line
]


def test_the_page_names_tests() -> None:
    assert len(NAMED) > 20


@pytest.mark.parametrize("name", NAMED)
def test_a_test_that_the_page_names_is_there(name: str) -> None:
    assert (ROOT / "tests" / name).exists()


@pytest.mark.parametrize("row", ATTACKS[2:], ids=lambda row: row.split("|")[1].strip())
def test_every_row_names_the_test_that_attacks_it(row: str) -> None:
    *_, attacked_by, _ = row.split("|")
    assert "`" in attacked_by or "the same" in attacked_by
