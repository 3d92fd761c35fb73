"""The browser of the tests: the one that ``make install`` has unpacked, one of this machine, or the one that is named.

There is no skip: without a browser, the tests fail with a sentence that says what to do.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent / "npm"
UNPACKED = FOLDER / "unpacked"
AXE = FOLDER / "node_modules" / "axe-core" / "axe.min.js"
VARIABLE = "BERTH_BROWSER"
CHANNELS = ("chrome", "msedge")
QUIET = (
    # The browser makes no connection of its own: the tests have no network.
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-domain-reliability",
    "--disable-sync",
    "--no-default-browser-check",
    "--no-first-run",
    "--no-pings",
    "--disable-dev-shm-usage",
    "--disable-gpu",
)
NO_BROWSER = (
    "The tests of the console need a browser, and none was found. On Linux, `make install` brings one. Elsewhere, "
    f"install Chrome or Edge, or name the program of a Chromium in {VARIABLE}."
)
_FONTS = """\
<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>{fonts}</dir>
  <cachedir>{cache}</cachedir>
</fontconfig>
"""


class NoBrowser(Exception):
    """There is no browser to run the tests in."""


def use_own_node() -> None:
    """Playwright's own Node needs libraries that a bare machine may lack; the environment has a Node that does not."""
    node = Path(sys.executable).with_name("node")
    if node.is_file():
        os.environ.setdefault("PLAYWRIGHT_NODEJS_PATH", str(node))


def launch_options(temporary: Path) -> dict[str, Any]:
    """What Playwright needs to launch the browser. ``temporary`` is a folder for the cache of fonts."""
    arguments = [*QUIET, *(["--no-sandbox"] if hasattr(os, "getuid") and os.getuid() == 0 else [])]
    options: dict[str, Any] = {"args": arguments, "headless": True}
    if named := os.environ.get(VARIABLE):
        if not Path(named).is_file():
            raise NoBrowser(f"{VARIABLE} is {named}, and there is no such program.")
        return {**options, "executable_path": named}
    if (UNPACKED / "chromium").is_file() and _runs_here():
        fonts = temporary / "fonts.conf"
        fonts.write_text(_FONTS.format(fonts=UNPACKED / "fonts", cache=temporary / "font-cache"), encoding="utf-8")
        environment = {
            **os.environ,
            "LD_LIBRARY_PATH": str(UNPACKED / "al2023" / "lib"),
            "FONTCONFIG_FILE": str(fonts),
            "HOME": str(temporary),
        }
        # The sandbox needs user namespaces, which many machines refuse. The browser opens only our own pages.
        arguments = [*arguments, "--no-sandbox", "--headless=new"]
        return {**options, "args": arguments, "executable_path": str(UNPACKED / "chromium"), "env": environment}
    for channel in CHANNELS:
        if _is_installed(channel):
            return {**options, "channel": channel}
    raise NoBrowser(NO_BROWSER)


def _runs_here() -> bool:
    return platform.system() == "Linux" and platform.machine() == "x86_64"


def _is_installed(channel: str) -> bool:
    names = {"chrome": ("google-chrome", "google-chrome-stable"), "msedge": ("microsoft-edge",)}[channel]
    applications = {"chrome": "Google Chrome", "msedge": "Microsoft Edge"}
    return any(map(shutil.which, names)) or Path(f"/Applications/{applications[channel]}.app").exists()
