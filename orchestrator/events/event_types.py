"""Which texts are the type of an event."""

from __future__ import annotations

import re

EVENT_TYPE_PATTERN = r"^[A-Za-z0-9][A-Za-z0-9._:/-]{0,127}$"
"""No type contains a #, which ends the type in the index by type."""

_PATTERN = re.compile(EVENT_TYPE_PATTERN)
_MAX_SHOWN = 130
_WHAT_A_TYPE_IS = (
    "A type has letters, digits and . _ : / -, begins with a letter or a digit, and has at most 128 characters, such "
    "as order.created."
)


def is_event_type(text: object) -> bool:
    return isinstance(text, str) and _PATTERN.fullmatch(text) is not None


def no_event_type(given: object) -> str:
    """The message about a value that no event has as its type."""
    shown = ascii(given)
    if len(shown) > _MAX_SHOWN:
        shown = f"{shown[:_MAX_SHOWN]}..."
    return f"{shown} is not the type of any event. {_WHAT_A_TYPE_IS}"
