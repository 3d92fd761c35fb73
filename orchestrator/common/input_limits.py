"""Limits for all input. They are checked before anything else is read from the input."""

from __future__ import annotations

from orchestrator.common.errors import InvalidRequest

REASON_PATTERN = (
    r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*$"
)
"""One line of text without control characters, and without characters that change how their neighbours are shown."""
REASON_MAX_LENGTH = 500

LABEL_NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"
LABEL_VALUE_PATTERN = "^[A-Za-z0-9 ._:/@+=-]{0,128}$"
MAX_LABELS = 20
ALARM_NAME_PATTERN = "^[A-Za-z0-9 ._:/@+=()-]{1,255}$"

MAX_LEVELS = 50
"""The maximum nesting of input. No valid input comes close, and Python cannot print values that are far deeper."""


def is_utf8(text: str) -> bool:
    """True if the text can be encoded, and so stored. JSON text may contain half of a surrogate pair, which cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_can_be_handled(given: object, what: str) -> None:
    """Reject input that is nested too deeply, or that contains text without a UTF-8 encoding."""
    level = [given]
    for _ in range(MAX_LEVELS):
        below: list[object] = []
        for each in level:
            if isinstance(each, str):
                if not is_utf8(each):
                    raise InvalidRequest(f"{what}: there is half of a surrogate pair, which is not a character")
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list):
                below += each
        if not below:
            return
        level = below
    raise InvalidRequest(f"{what}: the value is nested too deeply")
