"""The access key of a home: the emulator admits only requests that are signed with it, or with a key that it issued."""

import json
import os
import secrets
import stat
from dataclasses import asdict, dataclass, field
from pathlib import Path

GET_IT = 'eval "$(.venv/bin/python -m orchestrator.local env)"'
"""The command that gives a shell, and so any tool, the key and all else that it needs."""

OTHERS = stat.S_IRWXG | stat.S_IRWXO
"""All permissions of anyone but the owner."""


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
    """Make the key, unless there is one that nobody else can have read or put there."""
    try:
        found = path.lstat()
    except FileNotFoundError:
        pass
    else:
        if stat.S_ISREG(found.st_mode) and not found.st_mode & OTHERS and found.st_uid == os.geteuid():
            return
        path.unlink()
    key = AccessKey(f"BERTH{secrets.token_hex(8).upper()}", secrets.token_hex(32))
    # Written beside it first: whoever reads the key finds all of it, or none.
    draft = path.with_suffix(".draft")
    draft.unlink(missing_ok=True)
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
        json.dump(asdict(key), file)
    draft.rename(path)
