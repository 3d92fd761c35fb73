"""Every page of the console as text: the pages of the tests' fleet, and what the forms on them answer."""

from __future__ import annotations

import asyncio
import random
import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
from starlette.routing import Route

from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.console.app import PAGES, build
from orchestrator.console.sessions import Sessions
from orchestrator.console.visit import Console
from orchestrator.events import event_ids
from orchestrator.events.accepting import Accepting
from orchestrator.reconciling.records import Coverage, Finding, Kind, ReconciliationStatus, Remedy
from tests.browser.conftest import place
from tests.browser.every_page import EXPIRED, GONE, THROTTLED, UNREACHABLE, of_events, of_the_fleet, whole_fleet
from tests.fakes.reconciling import counted
from tests.transcripts.page_text import Form, read
from tests.transcripts.shell import in_one_line, masked
from tests.unit.cli.conftest import FakeControlPlane

MISSING = Finding(Kind.MISSING_STACK, "dunder", "The tenant's stack does not exist.", Remedy.CREATE)
PORT = 8100
AWAY = {"gone": GONE, "throttled": THROTTLED, "unreachable": UNREACHABLE, "expired": EXPIRED}
PARTS_OF_A_TENANT = ("events", "connections", "tail", "sources", "forms", "keys", "replays")
HOST = f"127.0.0.1:{PORT}"
_KEY = re.compile(r"bk_([a-z]+)_[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class Answer:
    status: int
    location: str
    html: str


@dataclass
class Walk:
    """A person who opens every page, follows one link to every further route, and sends every form as it is."""

    app: Any
    routes: list[Route]
    orders: list[str]
    """The requests that change something, of the latest page."""
    cookie: str
    texts: dict[str, str] = field(default_factory=dict)
    forms: dict[str, Form] = field(default_factory=dict)
    reached: set[tuple[str, str, str]] = field(default_factory=set)
    links: list[str] = field(default_factory=list)

    def open(self, path: str, name: str = "") -> None:
        self.reached.add(self._kind("GET", path))
        page = self._page("GET", path)
        self.texts[name or path] = page

    def follow(self) -> None:
        """Open one page of each kind that the pages so far lead to."""
        for link in self.links:
            is_ours = link.startswith("/") and not link.startswith("/static")
            if is_ours and self._kind("GET", link) not in self.reached:
                self.open(link)

    def send_forms(self) -> None:
        for path, form in list(self.forms.items()):
            kind = self._kind("POST", form.action or path)
            if kind not in self.reached:
                self.reached.add(kind)
                self.texts[f"{path} sent"] = self._page("POST", form.action or path, form.fields)

    def _page(self, method: str, path: str, form: Mapping[str, str] | None = None) -> str:
        self.orders.clear()
        answer = asyncio.run(self._ask(method, path, form))
        page = read(answer.html)
        self.links.append(answer.location)
        if method == "GET":
            self.links += page.links
            self.forms.update((path, each) for each in page.forms if each.method == "POST")
        begin = next((number for number, line in enumerate(page.lines) if line.startswith("# ")), 0)
        lines = page.lines if path == "/" else page.lines[begin:]
        sent = [f"with {name}={value!r}" for name, value in (form or {}).items() if name not in ("csrf", "once")]
        head = [f"{method} {path}", *sent, *(f"> {each}" for each in self.orders)]
        end = f"answer {answer.status}{' to ' if answer.location else ''}{answer.location}"
        return "\n".join([*head, end, "", *lines]).rstrip() + "\n"

    async def _ask(self, method: str, path: str, form: Mapping[str, str] | None) -> Answer:
        target = urlsplit(path)
        headers = {"host": HOST, "cookie": self.cookie, "origin": f"http://{HOST}"}
        body = urlencode(form or {}).encode()
        if form is not None:
            headers["content-type"] = "application/x-www-form-urlencoded"
        scope = {
            "type": "http",
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": target.path,
            "raw_path": target.path.encode(),
            "root_path": "",
            "query_string": target.query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
            "client": ("127.0.0.1", 50_000),
            "server": ("127.0.0.1", PORT),
        }
        received: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": body, "more_body": False}

        async def send(message: Any) -> None:
            received.append(message)

        await self.app(scope, receive, send)
        start, *rest = received
        answered = {name.decode().lower(): value.decode() for name, value in start["headers"]}
        html = b"".join(each.get("body", b"") for each in rest).decode()
        return Answer(start["status"], answered.get("location", ""), html)

    def _kind(self, method: str, path: str) -> tuple[str, str, str]:
        """The route of the path, and the verb if the route has one."""
        for route in self.routes:
            found = route.path_regex.match(urlsplit(path).path)
            if found and method in (route.methods or ()):
                return method, route.path, found.groupdict().get("verb", "")
        return method, "", ""

    @property
    def without_page(self) -> list[str]:
        reached = {(method, path) for method, path, _ in self.reached}
        every = {(method, each.path) for each in self.routes for method in (each.methods or ()) if method != "HEAD"}
        return sorted(f"{method} {path}" for method, path in every - reached)


@cache
def walked() -> Walk:
    """The walk through all pages. It takes seconds, so that it is done once."""
    with _same_ids(), whole_fleet() as (api, fleet, rollout):
        orders: list[str] = []
        _note_orders(api, orders)
        _note_orders(fleet.plane, orders)
        console = Console(FakeControlPlane(api, events=fleet.plane), place(), clock=api.clock.now)
        sessions = Sessions(lambda: 0.0)
        session = sessions.enter(sessions.issue_ticket())
        app = build(console, sessions, port=PORT, ours=lambda _one, _other: True)
        routes = [route for module in PAGES for route in module.routes(console)]
        walk = Walk(app, routes, orders, f"berth-{PORT}={session.key if session else ''}")
        for sight in {**of_the_fleet(), **of_events(fleet)}.values():
            walk.open(sight.path.replace("ROLLOUT", rollout))
        for path in ("/go?tenant=acme", "/tenants?cursor=nonsense"):
            walk.open(path)
        walk.follow()
        for name, away in {
            "gone": GONE,
            "throttled": THROTTLED,
            "unreachable": UNREACHABLE,
            "expired": EXPIRED,
        }.items():
            api.away = away
            walk.open("/tenants/acme", f"/tenants/acme {name}")
        api.away = None
        walk.send_forms()
        dry_run = api.reconciliations.recorded[api.reconciliations.started[0]]
        found: dict[str, Any] = {"coverage": Coverage(tenants=20), "counts": counted([MISSING]), "findings": [MISSING]}
        api.reconciliations.record_reconciliation(replace(dry_run, status=ReconciliationStatus.DONE, **found))
        walk.open(f"/health/{dry_run.id}")
        walk.open(f"/health/{dry_run.id}/do/repair")
        walk.follow()
        walk.send_forms()
        walk.cookie = ""
        walk.open("/tenants", "/tenants without a session")
        return walk


def pages() -> dict[str, str]:
    """The text of each file: one for each part of the console."""
    parts: dict[str, list[str]] = {}
    for name, text in walked().texts.items():
        parts.setdefault(_part(name), []).append(masked(_KEY.sub(r"bk_\1_...", text)))
    return {f"pages/{part}.txt": "\n\n".join(texts) for part, texts in parts.items()}


def _part(path: str) -> str:
    """The part of the console that a page belongs to: ``tenant-connections`` for ``/tenants/acme/connections``."""
    first, *rest = re.split(r"[/? ]", path.removeprefix("/"))
    if first != "tenants" or not rest or not path.startswith("/tenants/") or rest[0] == "do":
        return first or "overview"
    return f"tenant-{rest[1]}" if len(rest) > 1 and rest[1] in PARTS_OF_A_TENANT else "tenant"


def _note_orders(api: Any, orders: list[str]) -> None:
    """Keep the requests of this API that change something."""
    send = api.send

    def noting(request: HttpRequest) -> ApiAnswer:
        if request.method != "GET":
            orders.append(in_one_line(request))
        answer: ApiAnswer = send(request)
        return answer

    api.send = noting


@contextmanager
def _same_ids() -> Iterator[None]:
    drawn = random.Random(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(secrets, "token_hex", lambda size=32: drawn.randbytes(size).hex())
        patch.setattr(secrets, "token_bytes", lambda size=32: drawn.randbytes(size))
        patch.setattr(secrets, "token_urlsafe", lambda size=32: drawn.randbytes(size).hex())
        patch.setitem(Accepting.__init__.__kwdefaults__, "random_below", lambda _below: 0)
        patch.setitem(event_ids.new_event_id.__kwdefaults__, "random_bits", drawn.getrandbits)
        yield
