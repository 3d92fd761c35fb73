"""A value that a test needs."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which must not be ``None``."""
    assert value is not None
    return value
