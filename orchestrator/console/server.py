"""Serves the console on loopback until it is interrupted."""

from __future__ import annotations

import asyncio
import os
import socket
import sys
import threading
import webbrowser
from collections.abc import Callable
from contextlib import suppress

import uvicorn

from orchestrator.cli.errors import ControlPlaneNotFound
from orchestrator.console.app import build
from orchestrator.console.guard import ENTRANCE
from orchestrator.console.peers import Address, is_ours
from orchestrator.console.sessions import TICKET_SECONDS, Sessions
from orchestrator.console.visit import Console

HOST = "127.0.0.1"
GRACE_SECONDS = 1
"""How long a console that ends waits for requests that are under way."""


class _Ending(uvicorn.Server):
    """Gives requests up that wait for the control plane when the console ends.

    Uvicorn would do that, too, and show each of them as an error of the console.
    """

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        asyncio.get_running_loop().call_later(GRACE_SECONDS, self._give_up)
        await super().shutdown(sockets)

    def _give_up(self) -> None:
        for task in self.server_state.tasks:
            task.cancel()


class Server:
    """A console on a port of its own."""

    def __init__(
        self,
        console: Console,
        *,
        port: int = 0,
        listener: socket.socket | None = None,
        say: Callable[[str], None] = lambda _line: None,
        ours: Callable[[Address, Address], bool] = is_ours,
    ) -> None:
        """``port`` 0 takes a free one; ``listener`` is one that was taken before. ``say`` shows a line to the person at
        the terminal."""
        self._socket = listener or listen_on(port)
        self.port: int = self._socket.getsockname()[1]
        self.sessions = Sessions()
        self._say = say
        self._showing = threading.Lock()
        app = build(console, self.sessions, port=self.port, on_missing_session=self._on_missing_session, ours=ours)
        settings = uvicorn.Config(
            app,
            log_level="warning",
            access_log=False,
            lifespan="off",
            server_header=False,
            # No proxy is in front of the console, and headers that one would set are a stranger's.
            proxy_headers=False,
            timeout_graceful_shutdown=3 * GRACE_SECONDS,
        )
        self._server = _Ending(settings)

    def address(self) -> str:
        """An address that opens the console once, within a minute."""
        return f"http://{HOST}:{self.port}{ENTRANCE}?ticket={self.sessions.issue_ticket()}"

    def run(self) -> None:
        """Serve until the process is interrupted."""
        self._server.run(sockets=[self._socket])

    def stop(self) -> None:
        self._server.should_exit = True

    @property
    def is_up(self) -> bool:
        return self._server.started

    def _on_missing_session(self) -> None:
        """The operator's browser has no session: show a new address, but not a new one for every request."""
        with self._showing:
            if not self.sessions.has_ticket():
                self._say(f"A browser asked for a page without a session. Open it again: {self.address()}")


def open_browser(address: str) -> bool:
    """True if a browser was told to open the address."""
    if sys.platform.startswith("linux") and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return False  # Only a browser in this terminal could be opened, and would hide the address.
    try:
        return webbrowser.open(address)
    except webbrowser.Error:
        return False


def serve(
    console: Console,
    *,
    browser: bool,
    say: Callable[[str], None],
    port: int = 0,
    listener: socket.socket | None = None,
) -> None:
    server = Server(console, port=port, listener=listener, say=say)
    address = server.address()
    opened = browser and open_browser(address)
    say(f"The console {'opens' if opened else 'is'} at {address}")
    say(f"The address works once, within {TICKET_SECONDS} seconds. End the console: Ctrl-C")
    # Ctrl-C is how the console is ended. The server finishes its requests, and passes the interrupt on.
    with suppress(KeyboardInterrupt):
        server.run()


def listen_on(port: int) -> socket.socket:
    """Take the port; 0 takes a free one."""
    # Without IPPROTO_TCP, asyncio does not switch Nagle's algorithm off, and every page takes 44 ms longer.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((HOST, port))
    except OSError as error:
        made.close()
        raise ControlPlaneNotFound(
            f"Port {port} of {HOST} cannot be used: {error.strerror}. Choose another with --port, or leave it out: "
            "a free one is taken."
        ) from None
    made.listen(128)
    return made
