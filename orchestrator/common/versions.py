"""Versions of releases: how they are written, and which is older."""

from __future__ import annotations

import re

VERSION_PATTERN = r"^[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}$"


def is_older(version: str, *, than: str) -> bool:
    """Whether one version comes before another. One that is not of our making comes before none and after none."""
    if not all(re.fullmatch(VERSION_PATTERN, each) for each in (version, than)):
        return False
    return order(version) < order(than)


def order(version: str) -> tuple[int, ...]:
    """What to sort versions by: 0.10.0 comes after 0.9.0."""
    return tuple(int(part) for part in version.split("."))
