"""The ids of API keys, sources, forms, connections and replays: a prefix that says of what, and 24 digits 0-9a-f."""

from __future__ import annotations

import re
import secrets
from enum import StrEnum

from orchestrator.common.errors import InvalidRequest

_RANDOM_BYTES = 12


class IdPrefix(StrEnum):
    KEY = "key"
    SOURCE = "src"
    FORM = "form"
    CONNECTION = "conn"
    REPLAY = "rpl"


def id_pattern(prefix: IdPrefix) -> str:
    return f"^{prefix}_[0-9a-f]{{{2 * _RANDOM_BYTES}}}$"


def new_resource_id(prefix: IdPrefix) -> str:
    return f"{prefix}_{secrets.token_hex(_RANDOM_BYTES)}"


def is_resource_id(prefix: IdPrefix, text: str) -> bool:
    """True if the text has the form of such an id. Any other text is refused without a look-up."""
    return re.fullmatch(id_pattern(prefix), text) is not None


def parse_resource_id(prefix: IdPrefix, text: str) -> str:
    if not is_resource_id(prefix, text):
        raise InvalidRequest(
            f"{text[:40]!a} is not an id: it is {prefix}_ followed by {2 * _RANDOM_BYTES} digits 0-9a-f."
        )
    return text
