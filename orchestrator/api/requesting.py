"""Builds an HTTP request from a route and a wire model. :mod:`orchestrator.api.reading` does the reverse."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from orchestrator.api.route import RequestT, Route


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any] | None

    @property
    def target(self) -> str:
        """Path and query, encoded as SigV4 requires: a blank is %20, not +."""
        return self.path + (f"?{urlencode(self.query, quote_via=quote, safe='')}" if self.query else "")


def request_of(route: Route[RequestT, Any], request: RequestT) -> HttpRequest:
    """The HTTP request. Fields that are unset are left out, so that the API's defaults apply."""
    fields: dict[str, Any] = msgspec.to_builtins(request)
    path = route.path
    for name in route.path_parameters:
        path = path.replace(f"{{{name}}}", quote(fields.pop(name), safe=""))
    if route.has_body:
        return HttpRequest(route.method, path, {}, fields or None)
    return HttpRequest(route.method, path, {name: _text(value) for name, value in fields.items()}, None)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
