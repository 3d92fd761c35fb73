"""Every planted bug is caught. Those that take long are left to ``python -m tests.planted``."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.planted.__main__ import AREAS, TESTS


@pytest.mark.parametrize("area", [area for area in AREAS if area != "simulation"])
def test_every_planted_bug_is_caught(area: str) -> None:
    """In a process of its own, because the tests are run in it with the bugs."""
    command = [sys.executable, "-m", "tests.planted", "--quick", "--area", area]
    ended = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
