"""The access key of a home. The emulator admits only requests signed with this key, or with a key that it issued."""

import json
import os
import secrets
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

GET_IT = 'eval "$(.venv/bin/python -m orchestrator.local env)"'
"""The command that sets the environment variables, the key included, with which any tool can use the emulator."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""The file permissions of everybody except the owner."""


@dataclass(frozen=True)
class AccessKey:
    access_key_id: str
    secret_access_key: str = field(repr=False)


def read(path: Path) -> AccessKey | None:
    try:
        return AccessKey(**json.loads(path.read_text()))
    except FileNotFoundError:
        return None


def make(path: Path) -> None:
    """Create the key, unless there is one that no other user can have read or written."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        pass
    else:
        if stat.S_ISREG(found.st_mode) and not found.st_mode & OTHERS and found.st_uid == os.geteuid():
            return
        path.unlink()
    key = AccessKey(f"BERTH{secrets.token_hex(8).upper()}", secrets.token_hex(32))
    # Written to a draft and renamed, so that a reader never finds half a key.
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(key), file)
    draft.rename(path)
