"""`make console`: a fleet to look at, the console on it, and nothing left after Ctrl-C."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.cookiejar import CookieJar
from pathlib import Path
from typing import IO
from urllib.request import HTTPCookieProcessor, OpenerDirector, ProxyHandler, build_opener

from orchestrator.local.emulator import Emulator
from orchestrator.local.fleet import SMALLEST, Fleet
from tests.present import present

ADDRESS = re.compile(r"The console is at (http://127\.0\.0\.1:\d+)(/enter\?ticket=\S+)")
STOP_SECONDS = 60
COMMAND = (sys.executable, "-m", "orchestrator.local", "console", "--no-open", "--tenants", str(SMALLEST))


def test_the_console_shows_a_fleet_in_all_states_and_leaves_nothing(tmp_path: Path) -> None:
    fleet = Fleet.of(SMALLEST)
    with a_console(tmp_path) as (process, output):
        printed, origin, entrance = read_until_address(output)
        assert (
            f"The commands on its pages work in another terminal after: export BERTH_LOCAL_HOME={tmp_path}" in printed
        )
        browser = build_opener(HTTPCookieProcessor(CookieJar()), ProxyHandler({}))
        overview = text_at(browser, f"{origin}{entrance}")
        for waits in (
            "1 tenant is FAILED",
            "1 tenant is UPDATE_FAILED",
            # Its first stage may be moved already.
            r"Rollout [\w-]+ is (RUNNING stage 1 of 2|BAKING until)",
            "1 connection fails or waits: 1 paused",
        ):
            assert re.search(waits, overview), waits
        tenants = text_at(browser, f"{origin}/tenants")
        for name in (*fleet.at_first, *fleet.failed, *fleet.busy):
            assert (f'id="tenant-{name}"' in tenants) is (name not in fleet.deleted)
        for state, names in (
            ("FAILED", fleet.failed),
            ("UPDATE_FAILED", fleet.update_failed),
            ("DELETING", fleet.deleting),
            ("DELETED", fleet.deleted),
        ):
            assert rows(text_at(browser, f"{origin}/tenants?state={state}")) == sorted(names)
        events = text_at(browser, f"{origin}/tenants/{fleet.ready[0]}/tail")
        assert events.count("order.created") >= 3
        refused = subprocess.run(COMMAND, env=environment(tmp_path), capture_output=True, text=True, check=False)
        assert refused.returncode == 1
        assert "One is running already" in refused.stderr
        assert "LOCAL" in text_at(browser, f"{origin}/health"), "the second one has left the first one alone"
        os.killpg(process.pid, signal.SIGINT)  # Ctrl-C reaches the whole group.
        rest = output.read()
        assert process.wait(STOP_SECONDS) == 0, rest
    assert "Stopping the emulator" in rest
    assert Emulator.running(tmp_path / "console") is None
    assert processes_of(tmp_path) == []


@contextmanager
def a_console(home: Path) -> Iterator[tuple[subprocess.Popen[str], IO[str]]]:
    process = subprocess.Popen(
        COMMAND,
        env=environment(home),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    with process:
        try:
            yield process, present(process.stdout)
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGINT)


def environment(home: Path) -> dict[str, str]:
    # It must ignore a profile for AWS that the user has.
    return os.environ | {"BERTH_LOCAL_HOME": str(home), "AWS_PROFILE": "not-for-here"}


def read_until_address(output: IO[str]) -> tuple[str, str, str]:
    printed = ""
    for line in output:
        printed += line
        if found := ADDRESS.search(line):
            return printed, found[1], found[2]
    raise AssertionError(f"There is no address: {printed}")


def text_at(browser: OpenerDirector, url: str) -> str:
    with browser.open(url, timeout=30) as answer:
        return str(answer.read().decode())


def rows(page: str) -> Sequence[str]:
    return sorted(re.findall(r'<tr id="tenant-([^"]+)"', page))


def processes_of(home: Path) -> Sequence[str]:
    """The processes of this home: the emulator, and what it has started, have it in their environment."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if f"={home}/".encode() in (folder / "environ").read_bytes():
                found.append((folder / "cmdline").read_bytes().decode(errors="replace"))
        except OSError:
            continue  # It has ended meanwhile, or is another user's.
    return found
