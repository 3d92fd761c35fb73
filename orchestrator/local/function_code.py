"""Unpacks the code of functions once, and not for each of their processes.

The emulator gives every process of a function a folder of its own, with a few hundred files, which Python then compiles
anew. All functions of Berth have the same code, so a tenth of a second of processor time was spent for each process on
unpacking it, and more on compiling it. On AWS, the code of a function is compiled, and nobody can write into it.
"""

import hashlib
import os
import tempfile
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

_unpacking = threading.Lock()


def unpack_code_once() -> None:
    """Patch the emulator in this process."""
    from ministack.core import lambda_runtime  # type: ignore[import-untyped]

    lambda_runtime.zipfile = SimpleNamespace(ZipFile=SharedCode, BadZipFile=zipfile.BadZipFile)


class SharedCode(zipfile.ZipFile):
    """An archive whose files and folders are links to where the same content was unpacked before."""

    def extractall(self, path: str | os.PathLike[str] | None = None, *_: Any, **__: Any) -> None:
        if path is None or self.filename is None:
            raise ValueError("The emulator unpacks the code of a function from a file into a folder.")
        for each in self._unpacked(Path(self.filename)).iterdir():
            (Path(path) / each.name).symlink_to(each)

    def _unpacked(self, archive: Path) -> Path:
        shared = Path(tempfile.gettempdir()) / f"code-{hashlib.sha256(archive.read_bytes()).hexdigest()}"
        with _unpacking:
            if not shared.exists():
                incomplete = Path(tempfile.mkdtemp(prefix="code-"))
                super().extractall(incomplete)
                incomplete.rename(shared)
        return shared
