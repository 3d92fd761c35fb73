"""``python -m tests.previous REVISION``: keep that revision as the release before this one."""

from __future__ import annotations

import io
import lzma
import os
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from tests.previous import FOLDER, PAYLOADS, SOURCES

ROOT = FOLDER.parent.parent
DEPLOYED = ("orchestrator", "lambdas", "stacks", "statemachines", "cdk.json", "version.txt", "CHANGELOG.md")


def archived(revision: str, *paths: str) -> bytes:
    return subprocess.run(["git", "archive", revision, *paths], cwd=ROOT, capture_output=True, check=True).stdout


def main() -> None:
    (revision,) = sys.argv[1:] or sys.exit(__doc__)
    SOURCES.write_bytes(lzma.compress(archived(revision, *DEPLOYED), preset=9 | lzma.PRESET_EXTREME))
    with tempfile.TemporaryDirectory() as folder:
        with tarfile.open(fileobj=io.BytesIO(archived(revision))) as everything:
            everything.extractall(folder, filter="data")
        # The release's own, because it knows the simulation of that release.
        record = Path(folder) / "tests" / "previous" / "record.py"
        environment = os.environ | {"PYTHONPATH": folder}
        subprocess.run([sys.executable, record, PAYLOADS], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
