"""Python code, compiled for the functions' runtime.

Lambda's file system is read-only: what is not compiled there is compiled again at every cold start, which takes as long
again as everything else.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from stacks.project import PYTHON_VERSION

INTERPRETER = "BERTH_RUNTIME_PYTHON"
"""The environment variable that names an interpreter of the runtime's version, if it is not found by its usual name."""

_SAY_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def runtime_python() -> str | None:
    """An interpreter of the version that the functions run on: no other can compile for it."""
    named = os.environ.get(INTERPRETER)
    for python in (named, sys.executable, shutil.which(f"python{PYTHON_VERSION}")):
        if python and _version_of(python) == PYTHON_VERSION:
            return python
    if named:
        raise RuntimeError(f"{INTERPRETER} is {named!r}, which is no Python {PYTHON_VERSION}.")
    return None


def compile_all(directory: Path, *, installed_at: str, python: str) -> None:
    """Compile all modules. ``installed_at`` is where the directory is at run time, for tracebacks to name.

    Nothing is looked up at run time (unchecked hashes), and the result does not depend on when it was compiled.
    """
    where = ["-s", str(directory), "-p", installed_at, str(directory)]
    command = [python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", *where]
    # Else the hashes, and with them the order of sets in the code, would be others each time.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - no input from outside


def _version_of(python: str) -> str | None:
    try:
        said = subprocess.run([python, "-c", _SAY_VERSION], check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None  # As of a version manager's command that stands for none.
    return said.stdout.strip()
