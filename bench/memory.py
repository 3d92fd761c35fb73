"""Measures the memory of the emulator and its workers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import Result
from orchestrator.local.emulator import Emulator
from orchestrator.local.home import Home


class Memory:
    """The maximum memory of the emulator and its workers together."""

    def __init__(self, group: int) -> None:
        self._group = group
        self._maximum = 0
        self._processes = 0

    def sample(self) -> None:
        sizes = [size for size in map(self._size, Path("/proc").glob("[0-9]*")) if size]
        if sum(sizes) > self._maximum:
            self._maximum, self._processes = sum(sizes), len(sizes)

    def result(self, what: str) -> Result:
        name = f"{what}: most memory of the emulator, in {self._processes} processes"
        return Result(name, round(self._maximum / 1024), "MB", "")

    def _size(self, process: Path) -> int:
        """The process's resident memory in kB; 0 for other programs' processes and for those that have ended."""
        try:
            group = int((process / "stat").read_text().rpartition(")")[2].split()[2])
            if group != self._group:
                return 0
            lines = (process / "status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(line.split()[1]) for line in lines if line.startswith("VmRSS:")), 0)


@contextmanager
def watched(emulator: Emulator) -> Iterator[Memory]:
    record = Home(emulator.home).record()
    assert record is not None
    memory, ended = Memory(record.pid), threading.Event()

    def watch() -> None:
        while not ended.wait(1.0):
            memory.sample()

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield memory
    finally:
        ended.set()
        watcher.join()
