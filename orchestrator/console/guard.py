"""The guard, which every request passes before any page sees it. All of the console's security is here.

The console acts with the operator's own AWS credentials, so a request must come from the operator's own browser, and
from a page of the console in it. The guard refuses:

- requests to another host name (DNS rebinding): 421
- requests without the cookie that a ticket was exchanged for: 401
- tickets that another user of this machine shows: 403
- pictures, scripts and frames of other sites, such as those of other ports of this machine, whose requests have the
  cookie: 403
- forms of other sites, by ``Origin``, ``Sec-Fetch-Site`` and a field that only pages of the console know: 403
- any form, if the console is read-only, except for the settings of the pages themselves: 403
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, MutableMapping, Set
from typing import Any
from urllib.parse import parse_qsl

from orchestrator.console.peers import Address, is_ours
from orchestrator.console.sessions import Session, Sessions, equal

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]
RefusalPage = Callable[[int, str], bytes]
"""Renders the page for a request that is refused: status and reason."""

ENTRANCE = "/enter"
SETTINGS = "/settings"
CSRF_FIELD = "csrf"
MAX_BODY = 64 * 1024
MAX_FIELDS = 200

CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
HEADERS: Mapping[str, str] = {
    "content-security-policy": CONTENT_POLICY,
    "x-content-type-options": "nosniff",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
    # With no-referrer, browsers send "Origin: null" with forms, and every form would be refused.
    "referrer-policy": "same-origin",
}
_TICKET = re.compile(r"[A-Za-z0-9_-]{1,100}")
_FORM = "application/x-www-form-urlencoded"


class Refused(Exception):
    """A request that no page sees. The message is shown."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


class Guard:
    def __init__(
        self,
        app: App,
        sessions: Sessions,
        *,
        port: int,
        read_only: bool,
        static: Set[str],
        page: RefusalPage,
        on_missing_session: Callable[[], None] = lambda: None,
        ours: Callable[[Address, Address], bool] = is_ours,
    ) -> None:
        """``static`` are the paths of the files that need no session. ``on_missing_session`` is called when the
        console's own user asks for a page without a session; pages that update themselves do not count."""
        self._app = app
        self._sessions = sessions
        self._port = port
        self._hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}
        self._read_only = read_only
        self._static = static
        self._page = page
        self._on_missing_session = on_missing_session
        self._ours = ours

    @property
    def cookie(self) -> str:
        """Cookies are shared by all ports of a host, so the name has the port."""
        return f"berth-{self._port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        if scope["type"] != "http":
            # A websocket that is closed before it is accepted is refused with 403.
            await send({"type": "websocket.close", "code": 1008})
            return
        try:
            await self._admit(scope, receive, _with_headers(send))
        except Refused as refused:
            await self._refuse(scope, send, refused.status, str(refused))
        except asyncio.CancelledError:
            # The console ends. A page that waited for its answer says so.
            await self._refuse(scope, send, 503, "The console has ended, and did not wait for the control plane.")

    async def _refuse(self, scope: Scope, send: Send, status: int, reason: str) -> None:
        await self._answer(scope, _with_headers(send), status, self._page(status, reason))

    async def _admit(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = _Headers(scope)
        host = headers.single("host")
        if host not in self._hosts:
            raise Refused(421, "This console answers only to 127.0.0.1 and localhost, with its own port.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            raise Refused(405, "The console takes no such request.")
        if scope["path"] == ENTRANCE and scope["method"] == "GET":
            await self._enter(scope, headers, send)
            return
        if scope["path"] in self._static and scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        _check_not_embedded(headers)
        session = self._session(headers)
        if session is None:
            # A page that is left open goes on to ask, perhaps all night, and nobody would use the addresses.
            if headers.is_of_a_person and self._ours(*_addresses(scope)):
                self._on_missing_session()
            raise Refused(
                401,
                "There is no session, or it has ended because nobody used it. Open the address that berth console "
                "shows in its terminal.",
            )
        scope["console.session"] = session
        if scope["method"] == "POST":
            if self._read_only and scope["path"] != SETTINGS:
                raise Refused(403, "This console is read-only. Start it without --read-only to change anything.")
            _check_origin(headers, f"http://{host}")
            fields = await _read_form(headers, receive)
            if not equal(fields.get(CSRF_FIELD, ""), session.csrf):
                raise Refused(403, "The form is not from a page of this session. Open the page again.")
            scope["console.form"] = fields
        await self._app(scope, receive, send)

    async def _enter(self, scope: Scope, headers: _Headers, send: Send) -> None:
        if not self._ours(*_addresses(scope)):
            raise Refused(403, "Another user of this machine has started this console.")
        query = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        ticket = query.get("ticket", "")
        session = self._sessions.enter(ticket) if _TICKET.fullmatch(ticket) else None
        if session is None:
            _check_not_embedded(headers)
            if self._session(headers) is not None:
                # A person has clicked on the address in the terminal again, and may go on.
                await self._answer(scope, send, 303, b"", {"location": "/"})
                return
            self._on_missing_session()
            raise Refused(
                401,
                "The address was used already, or is older than a minute. berth console shows a new one in its "
                "terminal.",
            )
        cookie = f"{self.cookie}={session.key}; Path=/; HttpOnly; SameSite=Strict"
        await self._answer(scope, send, 303, b"", {"location": "/", "set-cookie": cookie})

    def _session(self, headers: _Headers) -> Session | None:
        for cookie in headers.all("cookie"):
            for part in cookie.split(";"):
                name, _, value = part.strip().partition("=")
                if name == self.cookie:
                    return self._sessions.find(value, by_a_person=headers.is_of_a_person)
        return None

    async def _answer(
        self, scope: Scope, send: Send, status: int, body: bytes, more: Mapping[str, str] | None = None
    ) -> None:
        headers = {"content-type": "text/html; charset=utf-8", "content-length": str(len(body)), **(more or {})}
        encoded = [(name.encode(), value.encode()) for name, value in headers.items()]
        await send({"type": "http.response.start", "status": status, "headers": encoded})
        await send({"type": "http.response.body", "body": b"" if scope["method"] == "HEAD" else body})


class _Headers:
    def __init__(self, scope: Scope) -> None:
        self._pairs: list[tuple[str, str]] = [
            (name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in scope["headers"]
        ]

    def all(self, name: str) -> list[str]:
        return [value for each, value in self._pairs if each == name]

    def single(self, name: str) -> str | None:
        """The header's value; ``None`` if it is missing, or there more than once."""
        values = self.all(name)
        return values[0] if len(values) == 1 else None

    @property
    def is_of_a_person(self) -> bool:
        """False for a page that is open and asks for its own newest state."""
        return not self.all("hx-request")


def _addresses(scope: Scope) -> tuple[Address, Address]:
    client, server = scope.get("client") or ("", 0), scope.get("server") or ("", 0)
    return (client[0], client[1]), (server[0], server[1])


def _check_origin(headers: _Headers, ours: str) -> None:
    if headers.single("origin") != ours:
        raise Refused(403, "The form is from another site.")
    site = headers.all("sec-fetch-site")
    if site and site != ["same-origin"]:
        raise Refused(403, "The form is from another site.")


def _check_not_embedded(headers: _Headers) -> None:
    """A person may follow a link of another site. A page of another site may not ask by itself: it would keep the
    session alive, and take the notices and confirmations of the person's own pages."""
    of_another = headers.single("sec-fetch-site") in ("same-site", "cross-site")
    if of_another and headers.single("sec-fetch-dest") != "document":
        raise Refused(403, "A page of another site has asked for this.")


async def _read_form(headers: _Headers, receive: Receive) -> dict[str, str]:
    kind = (headers.single("content-type") or "").partition(";")[0].strip().lower()
    if kind != _FORM:
        raise Refused(415, "The console takes forms only.")
    body = b""
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise Refused(400, "The request was not sent to its end.")
        body += message.get("body", b"")
        if len(body) > MAX_BODY:
            raise Refused(413, f"The form is longer than {MAX_BODY} bytes.")
        if not message.get("more_body"):
            break
    try:
        pairs = parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except ValueError:
        raise Refused(413, f"The form has more than {MAX_FIELDS} fields.") from None
    return dict(pairs)


def _with_headers(send: Send) -> Send:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            given = [pair for pair in message["headers"] if pair[0].decode("latin-1").lower() not in HEADERS]
            ours = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*given, *ours]}
        await send(message)

    return sending
