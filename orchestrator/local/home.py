"""The emulator's home directory: its lock, its key, its log and its state.

    access-key.json the key that requests to the emulator are signed with
    emulator.lock   held by the process that starts the emulator, then by the emulator until it ends
    emulator.json   the emulator's process id and port; written by the emulator, removed once its state is saved
    emulator.log    the emulator's log
    format          how the state is written; without it, an earlier version has written it
    saved/N         the state at the last orderly stop
    running/        the state in use; consistent only once it has been saved
    tmp/            temporary files, and the HOME of the emulator

The kernel releases the lock when its holder ends for any reason. So a free lock next to a record means a crash, and a
process id that belongs to another program by now is never taken for the emulator's.

The emulator writes S3 objects at once, and everything else when it stops. So it works on a copy, which replaces the
saved state in one rename: after a crash, all of the saved state is from the same moment.

Only the owner may enter the home, because it holds the key and the tenants' messages.
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
_FORMAT = "1"
"""Changes if a version cannot go on with the state that the version before has left."""


@dataclass(frozen=True)
class Record:
    """The running emulator: its process id, its port, and whether it saves its state."""

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
        """The home's access key; None before the first start."""
        return access_key.read(self._access_key)

    def make_private(self) -> None:
        """Remove other users' access, and make sure that there is a key that they do not know."""
        if self.root.stat().st_mode & access_key.OTHERS:
            self.root.chmod(0o700)
            # Other users cannot enter any more. A process that is already inside must not read the files either.
            for path in self.root.rglob("*"):
                if path != self._access_key and not path.is_symlink():
                    path.chmod(path.stat().st_mode & ~access_key.OTHERS)
        access_key.make(self._access_key)

    def take_lock(self) -> int | None:
        """The lock as a file descriptor, for the caller to pass on or close; None if another process holds it."""
        return take_lock(self._lock)

    def is_locked(self) -> bool:
        # A shared lock, so that two processes that check at the same time do not take each other for the emulator.
        lock = take_lock(self._lock, fcntl.LOCK_SH)
        if lock is not None:
            os.close(lock)
        return lock is None

    def record(self) -> Record | None:
        try:
            return Record(**json.loads(self._record.read_text()))
        except (FileNotFoundError, PermissionError):
            # A home that cannot be read belongs to another user, and so does an emulator in it.
            return None

    def write_record(self, record: Record) -> None:
        draft = self._record.with_suffix(".draft")
        draft.write_text(json.dumps(asdict(record)))
        draft.replace(self._record)

    def remove_record(self) -> None:
        self._record.unlink(missing_ok=True)

    def check_format(self) -> None:
        """Raise :class:`LocalError` if this version cannot go on with the state."""
        if self.has_state() and not self._has_format():
            raise LocalError(
                f"The state in {self.root} is from another version, and cannot be upgraded. Delete it: make reset"
            )

    def lay_out_state(self) -> None:
        """Start with a copy of the last saved state, or with an empty one."""
        self._format.write_text(_FORMAT)
        shutil.rmtree(self.running, ignore_errors=True)
        saved = self._saved()
        if saved:
            shutil.copytree(saved[-1], self.running)
        else:
            self.running.mkdir()

    def save_state(self) -> None:
        """Make the state in use the saved state, by one rename, which is atomic."""
        older = self._saved()
        number = int(older[-1].name) + 1 if older else 1
        (self.root / "saved").mkdir(exist_ok=True)
        self.running.rename(self.root / "saved" / str(number))
        for snapshot in older:
            shutil.rmtree(snapshot)

    def has_state(self) -> bool:
        """True if there is saved state, or if the emulator crashed before it saved any."""
        try:
            return self.running.exists() or bool(self._saved())
        except PermissionError:
            return False  # The home belongs to another user.

    def forget_state(self) -> None:
        for folder in (self.root / "saved", self.running, self.tmp):
            shutil.rmtree(folder, ignore_errors=True)
        self._format.unlink(missing_ok=True)
        self.remove_record()

    @property
    def _access_key(self) -> Path:
        return self.root / "access-key.json"

    @property
    def _format(self) -> Path:
        return self.root / "format"

    def _has_format(self) -> bool:
        return self._format.exists() and self._format.read_text() == _FORMAT

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
            f"{path.parent} belongs to another user. Choose your own folder: BERTH_LOCAL_HOME=... make up"
        ) from None
    try:
        fcntl.flock(lock, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        return None
    return lock


def polls(seconds: float) -> Iterator[None]:
    """Yield every 50 ms until the time is up."""
    deadline = monotonic() + seconds
    while True:
        yield
        if monotonic() > deadline:
            return
        sleep(0.05)
