"""The changelog is kept by hand; its top version is the product's."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

from orchestrator.common.own_versions import berth_version
from orchestrator.common.versions import is_older_berth

ROOT = Path(__file__).parents[2]
HEADING = re.compile(r"^## (\S+\.dev\d+$|\S+(?= - \d{4}-\d{2}-\d{2}$))", re.MULTILINE)


def test_the_changelogs_top_version_is_the_products() -> None:
    versions = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert versions[:1] == [berth_version()]


def test_the_changelog_tells_the_newest_version_first() -> None:
    versions = HEADING.findall((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
    assert all(is_older_berth(older, than=newer) for newer, older in pairwise(versions))
