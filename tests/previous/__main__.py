"""``python -m tests.previous REVISION``: keep that revision as the release before this one."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.previous import FOLDER, PAYLOADS, SOURCES, pack, unpack

ROOT = FOLDER.parent.parent
DEPLOYED = ("orchestrator", "lambdas", "stacks", "statemachines", "cdk.json", "version.txt", "CHANGELOG.md")


def archived(revision: str, *paths: str) -> bytes:
    return subprocess.run(["git", "archive", revision, *paths], cwd=ROOT, capture_output=True, check=True).stdout


def main() -> None:
    (revision,) = sys.argv[1:] or sys.exit(__doc__)
    SOURCES.write_bytes(pack(archived(revision, *DEPLOYED)))
    with tempfile.TemporaryDirectory() as folder:
        unpack(archived(revision), Path(folder))
        # The release's own, because it knows the simulation of that release.
        record = Path(folder) / "tests" / "previous" / "record.py"
        environment = os.environ | {"PYTHONPATH": folder}
        subprocess.run([sys.executable, record, PAYLOADS], cwd=folder, env=environment, check=True)


if __name__ == "__main__":
    main()
