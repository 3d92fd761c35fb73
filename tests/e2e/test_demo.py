"""What the README promises a newcomer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.local.emulator import Emulator


def test_the_demonstration_shows_a_tenant_getting_and_using_its_queue_and_stops_what_it_started(
    tmp_path: Path,
) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.local", "demo"],
        # A newcomer may well have a profile for AWS, which is nothing to the demonstration.
        env=os.environ | {"BERTH_LOCAL_HOME": str(tmp_path), "AWS_PROFILE": "not-for-here"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "202" in done.stdout
    assert "200" in done.stdout
    assert "received  Hello, acme!" in done.stdout
    assert "READY" in done.stdout
    assert Emulator.running(tmp_path / "demo") is None
