"""A request as HTTP sends it, from its route and its wire model. :mod:`orchestrator.api.reading` reads it again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, urlencode

import msgspec

from orchestrator.api.route import Asked, Route


@dataclass(frozen=True, slots=True)
class HttpRequest:
    method: str
    path: str
    query: Mapping[str, str]
    body: Mapping[str, Any] | None

    @property
    def target(self) -> str:
        """Path and query, encoded as a signature has them, where a blank is %20 and not +."""
        return self.path + (f"?{urlencode(self.query, quote_via=quote, safe='')}" if self.query else "")


def request_of(route: Route[Asked, Any], asked: Asked) -> HttpRequest:
    """Only what was said: what is left out is as the API has it by default."""
    said: dict[str, Any] = msgspec.to_builtins(asked)
    path = route.path
    for name in route.path_parameters:
        path = path.replace(f"{{{name}}}", quote(said.pop(name), safe=""))
    if route.has_body:
        return HttpRequest(route.method, path, {}, said or None)
    return HttpRequest(route.method, path, {name: _text(value) for name, value in said.items()}, None)


def _text(value: object) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)
