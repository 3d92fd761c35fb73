"""The pages of the console are what the files in ``pages/`` say."""

from __future__ import annotations

import pytest

from tests.transcripts import golden
from tests.transcripts.pages import pages, walked


def test_the_pages_are_what_the_golden_files_say() -> None:
    if differences := "".join(golden.difference(name, text) for name, text in pages().items()):
        pytest.fail(differences, pytrace=False)


def test_every_route_of_the_console_has_a_page() -> None:
    assert walked().without_page == [], "Open a page of each of these routes in tests/transcripts/pages.py."


def test_every_golden_file_of_pages_belongs_to_a_part_of_the_console() -> None:
    assert golden.leftovers(pages(), below="pages") == [], f"Remove these files: {golden.WRITE}"
