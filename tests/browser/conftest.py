"""Runs the console in this process, over the API in memory, and a real browser that looks at it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from orchestrator.cli.api import Api
from orchestrator.console.server import HOST, Server
from orchestrator.console.visit import Console, Place
from tests.browser.chromium import launch_options, use_own_node
from tests.browser.fleet import FleetApi, a_fleet
from tests.unit.cli.conftest import FakeControlPlane
from tests.unit.cli.fake_api import ADA

WAIT = 60_000
"""Milliseconds that a test waits for what must happen: long enough for a machine that has much else to do."""
expect.set_options(timeout=WAIT)


@dataclass
class Running:
    """A console that runs, and what it has said at its terminal."""

    server: Server
    api: FleetApi
    said: list[str] = field(default_factory=list)
    rollout: str = ""
    """A rollout that is under way. In paths, ROLLOUT stands for its id."""

    @property
    def origin(self) -> str:
        return f"http://{HOST}:{self.server.port}"

    def url(self, path: str) -> str:
        return f"{self.origin}{path.replace('ROLLOUT', self.rollout)}"


def place(*, local: bool = False) -> Place:
    return Place(
        name="Berth",
        where="at http://127.0.0.1:4566" if local else "in eu-west-1",
        account=None if local else "111122223333",
        caller=ADA,
        version="0.10.0",
        renew="aws sso login --profile prod",
    )


@contextmanager
def running(
    api: FleetApi, *, events: Api | None = None, read_only: bool = False, local: bool = False, **options: Any
) -> Iterator[Running]:
    """``events`` is the Events API, if there is an event plane. ``options`` go to the server."""
    control_plane = FakeControlPlane(api, events=events)
    console = Console(control_plane, place(local=local), read_only, clock=api.clock.now)
    said: list[str] = []
    server = Server(console, say=said.append, **options)
    thread = threading.Thread(target=server.run)
    thread.start()
    try:
        yield Running(server, api, said)
    finally:
        server.stop()
        thread.join()


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    use_own_node()
    with sync_playwright() as playwright:
        options = launch_options(tmp_path_factory.mktemp("browser"))
        browser = playwright.chromium.launch(**options)
        yield browser
        browser.close()


@pytest.fixture
def console() -> Iterator[Running]:
    with running(a_fleet()) as here:
        yield here


@dataclass
class Messages:
    """What the browser has complained about."""

    found: list[str] = field(default_factory=list)

    def watch(self, page: Page) -> None:
        page.on("console", self._on_console)
        page.on("pageerror", lambda error: self.found.append(str(error)))

    def _on_console(self, message: ConsoleMessage) -> None:
        self.found.append(f"{message.type}: {message.text}")


@contextmanager
def someone(browser: Browser, here: Running, **options: object) -> Iterator[Page]:
    """A person's browser that has used the ticket."""
    context: BrowserContext = browser.new_context(**options)  # type: ignore[arg-type]
    context.set_default_timeout(WAIT)
    page = context.new_page()
    messages = Messages()
    messages.watch(page)
    page.goto(here.server.address())
    yield page
    context.close()
    # A refused form is an answer that the browser mentions, and a test has asked for it.
    assert [each for each in messages.found if "Failed to load resource" not in each] == []


@pytest.fixture
def page(browser: Browser, console: Running) -> Iterator[Page]:
    with someone(browser, console) as page:
        yield page


SCREENSHOTS = Path(__file__).parents[2] / "docs" / "screenshots"
