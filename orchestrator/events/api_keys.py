"""API keys. Only the SHA-256 digest of a key is kept; the key itself is shown once, when it is made."""

from __future__ import annotations

import hashlib
import re
import secrets
from collections.abc import Callable

ENVIRONMENT_PATTERN = r"[a-z]{1,16}"
KEY_PATTERN = rf"^bk_{ENVIRONMENT_PATTERN}_[A-Za-z0-9_-]{{43}}$"

_KEY = re.compile(KEY_PATTERN)
_RANDOM_BYTES = 32
_VISIBLE_CHARACTERS = 6


def new_key(environment: str, random_text: Callable[[int], str] = secrets.token_urlsafe) -> str:
    """A key of an environment, such as ``bk_live_...``. Its 256 random bits cannot be guessed, so no salt is needed."""
    return f"bk_{environment}_{random_text(_RANDOM_BYTES)}"


def is_key(text: str) -> bool:
    """True if the text has the form of a key. Any other text is refused without a look-up."""
    return _KEY.fullmatch(text) is not None


def digest_of(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


def visible_prefix(key: str) -> str:
    """The beginning of the key, by which people recognise it in a list."""
    environment_end = key.index("_", len("bk_")) + 1
    return key[: environment_end + _VISIBLE_CHARACTERS]
