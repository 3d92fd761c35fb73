"""Compile Python code for the functions' runtime.

Lambda's file system is read-only, so code that is not compiled beforehand is compiled again at every cold start. That
doubles the time of a cold start.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from stacks.project import PYTHON_VERSION

INTERPRETER = "BERTH_RUNTIME_PYTHON"
"""The environment variable with the path of an interpreter of the runtime's version, if it is not on the PATH."""

_PRINT_VERSION = "import sys; print('%d.%d' % sys.version_info[:2])"


def runtime_python() -> str | None:
    """An interpreter of the version that the functions run on. No other version can compile for it."""
    named = os.environ.get(INTERPRETER)
    for python in (named, sys.executable, shutil.which(f"python{PYTHON_VERSION}")):
        if python and _version_of(python) == PYTHON_VERSION:
            return python
    if named:
        raise RuntimeError(f"{INTERPRETER} is {named!r}, which is not Python {PYTHON_VERSION}.")
    return None


def compile_all(directory: Path, *, installed_at: str, python: str) -> None:
    """Compile all modules. ``installed_at`` is the directory's path at run time, which tracebacks show.

    Python does not compare the result with the source at run time (unchecked hashes), and the result does not depend
    on when it was compiled.
    """
    paths = ["-s", str(directory), "-p", installed_at, str(directory)]
    command = [python, "-m", "compileall", "-q", "-f", "--invalidation-mode", "unchecked-hash", *paths]
    # With random hashes the order of sets in the code would differ from run to run.
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    subprocess.run(command, check=True, env=environment)  # noqa: S603 - no input from outside


def _version_of(python: str) -> str | None:
    try:
        result = subprocess.run([python, "-c", _PRINT_VERSION], check=True, capture_output=True, text=True)  # noqa: S603
    except (OSError, subprocess.CalledProcessError):
        return None  # For example a version manager's command without an installed interpreter.
    return result.stdout.strip()
