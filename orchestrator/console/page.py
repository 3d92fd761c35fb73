"""Makes a route of a function that answers a visit."""

from __future__ import annotations

from collections.abc import Callable

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from orchestrator.console.visit import Console, Visit

Answering = Callable[[Visit], Response]


def page(console: Console, path: str, answer: Answering, *, method: str = "GET") -> Route:
    """Pages ask the API, which blocks, so Starlette runs them in threads: that is what a function that is not a
    coroutine gets."""

    def endpoint(request: Request) -> Response:
        return answer(Visit(console, request))

    return Route(path, endpoint, methods=[method])
