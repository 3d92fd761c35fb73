"""Which JSON can be shown to readers as it is.

JSON has no limits, but its readers have: Python refuses numbers with more than 4,300 digits, others those with more
than 1,000, and most refuse deep nesting. A sender chooses the payload, and one payload that a reader refuses would make
a whole list unreadable.
"""

from __future__ import annotations

import re
from itertools import accumulate

MAX_LEVELS = 100
MAX_DIGITS = 1_000

# Possessive, so that no text is matched again in another way.
_TEXT = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_DIGITS_AS_ZEROS = bytes.maketrans(b"123456789", b"000000000")
_TOO_LONG = b"0" * (MAX_DIGITS + 1)
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


def is_readable(body: bytes) -> bool:
    """``body`` is valid JSON."""
    may_be_deep = body.count(b"[") + body.count(b"{") > MAX_LEVELS
    if not may_be_deep and not _has_too_many_digits(body):
        return True
    without_texts = _TEXT.sub(b"", body)
    return not _has_too_many_digits(without_texts) and _levels(without_texts) <= MAX_LEVELS


def _has_too_many_digits(text: bytes) -> bool:
    return _TOO_LONG in text.translate(_DIGITS_AS_ZEROS)


def _levels(without_texts: bytes) -> int:
    brackets = without_texts.translate(None, _NO_BRACKETS)
    return max(accumulate(1 if each in b"[{" else -1 for each in brackets), default=0)
