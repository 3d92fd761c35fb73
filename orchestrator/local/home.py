"""The emulator's home directory: who runs there, and what it left behind.

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
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic, sleep

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
        except FileNotFoundError:
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
    def _lock(self) -> Path:
        return self.root / "emulator.lock"

    @property
    def _record(self) -> Path:
        return self.root / "emulator.json"

    def _saved(self) -> list[Path]:
        return sorted((self.root / "saved").glob("[0-9]*"), key=lambda snapshot: int(snapshot.name))


def take_lock(path: Path, kind: int = fcntl.LOCK_EX) -> int | None:
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
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
