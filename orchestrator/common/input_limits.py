"""What no input may hold, whatever it is about. Checked before the input is read any further."""

from __future__ import annotations

from orchestrator.common.errors import InvalidRequest

REASON_PATTERN = (
    r"^[^\u0000-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]*$"
)
"""One line: no control characters, and none that change how those around them are shown."""
REASON_MAX_LENGTH = 500

LABEL_NAME_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$"
LABEL_VALUE_PATTERN = "^[A-Za-z0-9 ._:/@+=-]{0,128}$"
MAX_LABELS = 20

MAX_LEVELS = 50
"""Nothing valid is nested more deeply. Python could not even print what is nested much more deeply."""


def is_utf8(text: str) -> bool:
    """True for text that can be stored and sent on. Half of a surrogate pair is text to JSON, and to no service."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_can_be_handled(given: object, what: str) -> None:
    """Refuse what is nested too deeply, and text that is no UTF-8."""
    level = [given]
    for _ in range(MAX_LEVELS):
        below: list[object] = []
        for each in level:
            if isinstance(each, str):
                if not is_utf8(each):
                    raise InvalidRequest(f"{what}: it holds half of a surrogate pair, which is no character")
            elif isinstance(each, dict):
                below += each
                below += each.values()
            elif isinstance(each, list):
                below += each
        if not below:
            return
        level = below
    raise InvalidRequest(f"{what}: it is nested too deeply")
