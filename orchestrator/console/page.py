"""Makes a route of a function that answers a visit."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from orchestrator.console.visit import Console, Visit

Answering = Callable[[Visit], Response]


def page(console: Console, path: str, answer: Answering, *, method: str = "GET") -> Route:
    async def endpoint(request: Request) -> Response:
        return await _in_a_thread(partial(answer, Visit(console, request)))

    return Route(path, endpoint, methods=[method])


async def _in_a_thread(answer: Callable[[], Response]) -> Response:
    """Pages ask the API, which blocks. The thread is a daemon: a console that is ended with Ctrl-C does not wait for a
    control plane that hangs, as it would with the threads of Starlette and asyncio."""
    loop = asyncio.get_running_loop()
    answered: asyncio.Future[Response] = loop.create_future()

    def settle(response: Response | None, error: Exception | None) -> None:
        if answered.done():
            return  # The console ends, and the request was given up.
        if error is not None:
            answered.set_exception(error)
        elif response is not None:
            answered.set_result(response)

    def run() -> None:
        response, failure = None, None
        try:
            response = answer()
        except Exception as error:  # noqa: BLE001 - it is raised where the answer is awaited
            failure = error
        # The loop is closed if the console has ended meanwhile.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, response, failure)

    threading.Thread(target=run, daemon=True).start()
    return await answered
