"""The emulator's home directory: who runs there, and what it left behind.

    access-key.json the key that requests to it are signed with
    emulator.lock   locked by whoever starts the emulator, then by the emulator until it ends
    emulator.json   who the emulator is; written by itself, removed once its state is safe
    emulator.log    what it had to say
    saved/N         the state at its last orderly stop
    running/        the state it works on: consistent only once it has been saved
    tmp/            its temporary files, and the HOME it sees

The kernel frees the lock when its holder ends, however it ends. So a lock that is free beside a
record means a crash, and a pid that now belongs to another program is never mistaken for ours.

The emulator writes S3 objects at once but everything else when it stops. It therefore works on a
copy, which replaces the saved state in one rename: after a crash all of it is as old as the rest.

Nobody but its owner may enter the home: it holds the key, and whatever the user's tenants hold.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep

from orchestrator.local import access_key
from orchestrator.local.access_key import AccessKey
from orchestrator.local.errors import LocalError

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Record:
    """Who the emulator is."""

    pid: int
    port: int
    keep_state: bool


@dataclass(frozen=True)
class Home:
    root: Path

    @property
    def log(self) -> Path:
        return self.root / "emulator.log"

    @property
    def running(self) -> Path:
        return self.root / "running"

    @property
    def tmp(self) -> Path:
        return self.root / "tmp"

    def access_key(self) -> AccessKey | None:
        """The home's key; None before the first start."""
        return access_key.read(self._access_key)

    def make_private(self) -> None:
        """Shut others out, and see to it that there is a key that they do not know."""
        if self.root.stat().st_mode & access_key.OTHERS:
            self.root.chmod(0o700)
            # Nobody gets in any more. Whoever is in already finds nothing that may be read.
            for path in self.root.rglob("*"):
                if path != self._access_key and not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~access_key.OTHERS)
        access_key.make(self._access_key)

    def take_lock(self) -> int | None:
        """The lock as a file descriptor, to be handed on or closed; None when someone has it."""
        return take_lock(self._lock)

    def is_locked(self) -> bool:
        # Shared, so that two who look at the same time do not take each other for the emulator.
        lock = take_lock(self._lock, fcntl.LOCK_SH)
        if lock is not None:
            os.close(lock)
        return lock is None

    def record(self) -> Record | None:
        try:
            return Record(**json.loads(self._record.read_text()))
        except (FileNotFoundError, PermissionError):
            # A home that belongs to another user: whatever runs there does not run for this one.
            return None

    def write_record(self, record: Record) -> None:
        draft = self._record.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(record)))
        draft.replace(self._record)

    def remove_record(self) -> None:
        self._record.unlink(missing_ok=True)

    def lay_out_state(self) -> None:
        """Begin with a copy of what was saved last, or with nothing."""
        shutil.rmtree(self.running, ignore_errors=True)
        saved = self._saved()
        if saved:
            shutil.copytree(saved[-1], self.running)
        else:
            self.running.mkdir()

    def save_state(self) -> None:
        """Make what was worked on the saved state. One rename: it happens or it does not."""
        older = self._saved()
        number = int(older[-1].name) + 1 if older else 1
        (self.root / "saved").mkdir(exist_ok=True)
        self.running.rename(self.root / "saved" / str(number))
        for snapshot in older:
            shutil.rmtree(snapshot)

    def forget_state(self) -> None:
        for folder in (self.root / "saved", self.running, self.tmp):
            shutil.rmtree(folder, ignore_errors=True)
        self.remove_record()

    @property
    def _access_key(self) -> Path:
        return self.root / "access-key.json"

    @property
    def _lock(self) -> Path:
        return self.root / "emulator.lock"

    @property
    def _record(self) -> Path:
        return self.root / "emulator.json"

    def _saved(self) -> list[Path]:
        return sorted((self.root / "saved").glob("[0-9]*"), key=lambda snapshot: int(snapshot.name))


def take_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except PermissionError:
        raise LocalError(
            f"{path.parent} belongs to another user. Choose a folder of your own: BERTH_LOCAL_HOME=... make up"
        ) from None
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def polls(seconds: float) -> Iterator[None]:
    """Look, and look again, until the time is up."""
    deadline = monotonic() + seconds
    while True:
        yield
        if monotonic() > deadline:
            return
        sleep(0.05)
