"""The format and the order of versions: those of releases, such as 1.2.3, and those of Berth, such as 0.10.0.dev0."""

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


_BERTH = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)(?:(a|b|rc)([0-9]+))?(?:\.dev([0-9]+))?")
"""The versions of Berth. PEP 440 allows more, which Berth does not use."""
_FINAL, _NO_DEVELOPMENT = "z", float("inf")
"""These sort after the pre-releases, and after the development releases."""


def is_older_berth(version: str, *, than: str) -> bool:
    """True if a version of Berth is older than another one. False if either does not have the format of one."""
    one, other = _order_of_berth(version), _order_of_berth(than)
    return one is not None and other is not None and one < other


def _order_of_berth(version: str) -> tuple[int, int, int, str, int, float] | None:
    """The sort key, in the order of PEP 440: 0.10.0.dev0, 0.10.0a1, 0.10.0rc1.dev2, 0.10.0rc1, 0.10.0."""
    found = _BERTH.fullmatch(version)
    if found is None:
        return None
    major, minor, patch, phase, number, development = found.groups()
    # A development release comes before the pre-releases, if it is not one of a pre-release.
    place = phase or ("" if development else _FINAL)
    last = float(development) if development else _NO_DEVELOPMENT
    return int(major), int(minor), int(patch), place, int(number or 0), last
