"""A receiver of webhooks on this machine, for the demo: it checks signatures, and is out of order at first."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from queue import Empty, Queue
from threading import Thread

from standardwebhooks import Webhook, WebhookVerificationError

from orchestrator.local.errors import LocalError

_WAIT_SECONDS = 180
"""How long a webhook may take to come. One that was parked waits for the sweep, which runs every minute."""


@dataclass(frozen=True)
class Hook:
    """A request that came in."""

    delivery_id: str
    """The header ``webhook-id``."""
    body: str
    is_signed: bool
    """True if the library of Standard Webhooks accepts the signature."""
    answer: int


class Receiver:
    def __init__(self, url: str, *, failures: int) -> None:
        self.url = url
        self.secret = ""
        """The secret of the connection, which Berth makes."""
        self.failures = failures
        """How many of the next requests are answered with 503."""
        self._hooks: Queue[Hook] = Queue()

    @classmethod
    @contextmanager
    def on_loopback(cls, *, failures: int) -> Iterator[Receiver]:
        with _Server(("127.0.0.1", 0), _Handler) as server:
            server.receiver = cls(f"http://127.0.0.1:{server.server_port}/hook", failures=failures)
            Thread(target=server.serve_forever, daemon=True).start()
            try:
                yield server.receiver
            finally:
                server.shutdown()

    def next(self) -> Hook:
        hook = self.next_within(_WAIT_SECONDS)
        if hook is None:
            raise LocalError(f"No webhook came to {self.url} within {_WAIT_SECONDS} s.")
        return hook

    def next_within(self, seconds: float) -> Hook | None:
        try:
            return self._hooks.get(timeout=seconds)
        except Empty:
            return None

    def take(self, headers: dict[str, str], body: bytes) -> Hook:
        is_signed = self._is_signed(headers, body)
        answer = 200 if is_signed else 401
        if is_signed and self.failures:
            self.failures -= 1
            answer = 503
        hook = Hook(headers.get("webhook-id", ""), body.decode(errors="replace"), is_signed, answer)
        self._hooks.put(hook)
        return hook

    def _is_signed(self, headers: dict[str, str], body: bytes) -> bool:
        try:
            Webhook(self.secret).verify(body, headers, json_parse=False)
        except (WebhookVerificationError, ValueError):
            return False
        return True


class _Server(ThreadingHTTPServer):
    receiver: Receiver


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        hook = self.server.receiver.take({name.lower(): value for name, value in self.headers.items()}, body)
        text = {200: "Thank you", 401: "The signature is wrong"}.get(hook.answer, "Out of order").encode()
        self.send_response(hook.answer)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_given: object) -> None:
        """The demo prints what came in."""
