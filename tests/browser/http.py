"""Requests to a console by hand, as an attacker sends them: any header, any host."""

from __future__ import annotations

import http.client
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode, urlsplit

from orchestrator.console.server import HOST
from tests.browser.conftest import Running


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    body: str


@dataclass
class Caller:
    """A program that talks to a console, with the cookie of a session or without."""

    here: Running
    cookie: str | None = None

    @classmethod
    def with_session(cls, here: Running) -> Caller:
        address = urlsplit(here.server.address())
        entered = cls(here).ask("GET", f"{address.path}?{address.query}")
        assert entered.status == 303
        return cls(here, entered.headers["set-cookie"].partition(";")[0])

    def ask(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes | None = None
    ) -> Answer:
        connection = http.client.HTTPConnection(HOST, self.here.server.port, timeout=10)
        given = {"Host": f"{HOST}:{self.here.server.port}", **({"Cookie": self.cookie} if self.cookie else {})}
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        merged = {**given, **({"Content-Length": str(len(body))} if body is not None else {}), **(headers or {})}
        for name, value in merged.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        response = connection.getresponse()
        answer = Answer(
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read().decode(),
        )
        connection.close()
        return answer

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, headers)

    def hidden(self, path: str) -> dict[str, str]:
        """The hidden fields of the form on a page."""
        found = re.findall(r'<input type="hidden" name="(\w+)" value="([^"]*)">', self.get(path).body)
        return dict(found)

    def post(self, path: str, fields: Mapping[str, str], **headers: str) -> Answer:
        """A form as a browser sends it from a page of the console. A header that is empty is left out."""
        given = {
            "Origin": self.here.origin,
            "Sec-Fetch-Site": "same-origin",
            "Content-Type": "application/x-www-form-urlencoded",
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        sent = {name: value for name, value in given.items() if value}
        return self.ask("POST", path, sent, urlencode(fields).encode())
