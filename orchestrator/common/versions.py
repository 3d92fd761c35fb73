"""Versions of releases: their format and their order."""

from __future__ import annotations

import re

VERSION_PATTERN = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$"


def is_older(version: str, *, than: str) -> bool:
    """True if ``version`` is older than ``than``. False if either does not have the format of a version."""
    if not all(re.fullmatch(VERSION_PATTERN, each) for each in (version, than)):
        return False
    return order(version) < order(than)


def order(version: str) -> tuple[int, ...]:
    """The sort key of a version: 0.10.0 comes after 0.9.0."""
    return tuple(int(part) for part in version.split("."))
