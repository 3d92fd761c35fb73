"""What commands print and send is what the files of this folder say."""

from __future__ import annotations

import pytest

from tests.transcripts import golden
from tests.transcripts.current import FILES, WITHOUT_TRANSCRIPT


@pytest.mark.parametrize("name", FILES)
def test_a_golden_file_is_what_the_product_says(name: str) -> None:
    if difference := golden.difference(name, FILES[name]()):
        pytest.fail(difference, pytrace=False)


def test_every_command_has_a_transcript() -> None:
    assert WITHOUT_TRANSCRIPT == [], "Write a script for each of these commands in tests/transcripts/of_*.py."


def test_every_golden_file_belongs_to_something() -> None:
    left = [name for name in golden.leftovers(FILES) if not name.startswith("pages/")]
    assert left == [], f"Remove these files: {golden.WRITE}"
