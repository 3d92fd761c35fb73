"""What the README promises a newcomer."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from orchestrator.local.emulator import Emulator
from stacks.project import read_version


def test_the_demonstration_shows_the_life_of_a_tenant_and_a_rollout_and_stops_what_it_started(
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
    major, minor, _ = read_version().split(".")
    better, bad = (f"{major}.{int(minor) + step}.0" for step in (1, 2))
    told = iter(done.stdout.splitlines())
    for expected in (
        "GET /tenants/acme/queue  202",
        "GET /tenants/acme/queue  200",
        "received  Hello, acme!",
        f"upgrade acme --to {better}",
        f"version:    {better}",
        f"upgrade acme --to {bad}",
        f"GET /tenants/acme/queue  200  here it is, at version {better}",
        "delete acme --force",
        "state:      DELETED",
        "GET /tenants/acme/queue  410",
        "create acme",
        "state:      READY",
        "History",
        f"rollout plan --to {better} --all",
        "5 would change",
        f"rollout start --stages 1,40%,rest --concurrency 2 --bake 3 --watch --to {better}",
        "5 succeeded.",
        f"--watch --to {bad}",
        "HALTED",
        "0 succeeded, 1 failed, 4 not begun.",
        "releases",
        "missing-stack",
        "credentials",
    ):
        assert any(expected in line for line in told), f"{expected!r} is missing, or in the wrong place: {done.stdout}"
    assert "Value must be between 0 and 43200" in done.stderr
    assert "inbound queue: 1 visible" in done.stderr
    # How much of the progress is seen depends on the machine; the last look at each of the two always is.
    assert "stage 3 of 3" in done.stderr
    assert "stage 1 of 3" in done.stderr
    assert Emulator.running(tmp_path / "demo") is None
