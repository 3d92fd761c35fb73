"""The demo and the tour that the README describes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from orchestrator.common.own_versions import template_version
from orchestrator.local.emulator import Emulator

MAJOR, MINOR, _ = template_version().split(".")
BETTER, BAD = (f"{MAJOR}.{int(MINOR) + step}.0" for step in (1, 2))

DEMO = (
    "GET /tenants/acme/queue  202",
    "GET /tenants/acme/queue  200",
    "received  Hello, acme!",
    f"--watch --to {BETTER}",
    "3 succeeded.",
    f"--watch --to {BAD}",
    "HALTED",
    "0 succeeded, 1 failed, 2 not begun.",
    "2 READY, 1 UPDATE_FAILED",
    "connections create acme --name Queue",
    "connections create acme --name Shop --webhook http://127.0.0.1:",
    "POST /events  202  event",
    'queue     order.created {"order": 42, "total": "19.90"}',
    "the signature is right, answered 503",
    "the signature is right, answered 200",
    "attempts acme",
    "try 1 failed",
    "try 2 delivered 200",
    "make tour",
)
TOUR = (
    "GET /tenants/acme/queue  202",
    "GET /tenants/acme/queue  200",
    "received  Hello, acme!",
    f"upgrade acme --to {BETTER}",
    f"version:    {BETTER}",
    f"upgrade acme --to {BAD}",
    "Value must be between 0 and 43200",
    f"GET /tenants/acme/queue  200  the queue, at version {BETTER}",
    "delete acme",
    "inbound queue: 1 visible",
    "delete acme --force",
    "state:      DELETED",
    "GET /tenants/acme/queue  410",
    "create acme",
    "state:      READY",
    "History",
    "They are back",
    "tenant.provisioned",
    "tenant.updated",
    "tenant.failed",
    "tenant.deleted",
    "tenant.provisioned",
    "events settings acme --plan free",
    "bk_test_",
    "POST /events  202",
    "sources create acme",
    "200  event",
    "401",
    "inbox acme",
    "order.created",
    "push",
    '"order": 42',
    "2 events of tenant acme acknowledged.",
    "has no events.",
    "connections pause acme",
    "--status parked",
    "parked",
    "connections resume acme",
    "answered 503",
    "answered 503",
    "deliveries acme",
    "failed",
    "resend acme",
    "answered 200",
    "attempts acme",
    "asked for",
    "--include-delivered",
    "finished",
    '{"invoice": 7}, the signature is right, answered 200',
    '{"order": 42}, the signature is right, answered 200',
    "listen acme --forward http://127.0.0.1:",
    "order.shipped",
    "No longer listening.",
    f"rollout plan --to {BETTER} --all",
    "5 would change",
    f"rollout start --stages 1,40%,rest --concurrency 2 --bake 3 --watch --to {BETTER}",
    "stage 3 of 3",
    "5 succeeded.",
    f"--watch --to {BAD}",
    "stage 1 of 3",
    "HALTED",
    "0 succeeded, 1 failed, 4 not begun.",
    "releases",
    "missing-stack",
    "credentials",
)


def test_the_demo_shows_a_tenant_a_rollout_and_a_delivery_and_stops_the_emulator(tmp_path: Path) -> None:
    assert_in_order(DEMO, output_of("demo", tmp_path))
    assert Emulator.running(tmp_path / "demo") is None


def test_the_tour_shows_all_features_and_saves_a_picture(tmp_path: Path) -> None:
    picture = tmp_path / "tour.svg"
    assert_in_order(TOUR, output_of("tour", tmp_path, BERTH_PICTURE=str(picture)))
    assert Emulator.running(tmp_path / "demo") is None
    svg = picture.read_text()
    assert svg.startswith("<svg")
    assert "url(http" not in svg, "the picture loads something from another site"


def output_of(command: str, home: Path, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "orchestrator.local", command],
        # The demo must ignore a profile for AWS that the user has.
        env=os.environ | {"BERTH_LOCAL_HOME": str(home), "AWS_PROFILE": "not-for-here"} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def assert_in_order(expected: Sequence[str], output: str) -> None:
    lines = iter(output.splitlines())
    for text in expected:
        assert any(text in line for line in lines), f"{text!r} is missing, or in the wrong place: {output}"
