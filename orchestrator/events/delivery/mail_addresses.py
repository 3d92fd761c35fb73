"""Which texts are mail addresses."""

from __future__ import annotations

import re

_MAX_ADDRESS = 254
# One address, without a name, comments or quotes, so that it cannot be read as several.
_ADDRESS = re.compile(r"[A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{1,64}@(?:[A-Za-z0-9-]{1,63}\.)+[A-Za-z0-9-]{2,63}")


def is_mail_address(text: str) -> bool:
    return len(text) <= _MAX_ADDRESS and _ADDRESS.fullmatch(text) is not None
