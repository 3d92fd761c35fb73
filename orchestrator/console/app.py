"""The console as an ASGI application: the guard, and behind it the pages."""

from __future__ import annotations

from collections.abc import Callable

from botocore.exceptions import BotoCoreError, ClientError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from orchestrator.cli.errors import ApiProblem, ControlPlaneNotFound, ExitCode, explain
from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.console.guard import Guard
from orchestrator.console.pages import (
    connections,
    event,
    event_settings,
    events,
    health,
    keys,
    overview,
    releases,
    replays,
    rollout,
    rollouts,
    settings,
    sources,
    tail,
    tenant,
    tenants,
)
from orchestrator.console.peers import Address, is_ours
from orchestrator.console.sessions import Sessions
from orchestrator.console.view import FOLDER, Look, encoded, values_for
from orchestrator.console.visit import Away, Console, CredentialsRefused, NotThere, Visit

PAGES = (
    overview,
    tenants,
    tenant,
    rollouts,
    rollout,
    releases,
    health,
    settings,
    events,
    event_settings,
    connections,
    tail,
    event,
    sources,
    keys,
    replays,
)
"""Every module has ``routes(console)``."""


def build(
    console: Console,
    sessions: Sessions,
    *,
    port: int,
    someone_knocks: Callable[[], None] = lambda: None,
    ours: Callable[[Address, Address], bool] = is_ours,
) -> Guard:
    routes: list[Route | Mount] = [Mount("/static", StaticFiles(directory=FOLDER / "static"))]
    for module in PAGES:
        routes += module.routes(console)
    handlers = {
        kind: lambda request, error: _explain(Visit(console, request), error)
        for kind in (BerthError, BotoCoreError, ClientError, HTTPException, InvalidRequest)
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(
        app,
        sessions,
        port=port,
        read_only=console.read_only,
        static={f"/static/{file.name}" for file in (FOLDER / "static").iterdir()},
        page=lambda status, reason: _refusal(console, status, reason),
        someone_knocks=someone_knocks,
        ours=ours,
    )


def _refusal(console: Console, status: int, reason: str) -> bytes:
    """The page for a request that the guard refuses. It says nothing about the control plane."""
    values = values_for(Look(), console.clock())
    return encoded(console.templates.get_template("refused.html").render(**values, status=status, reason=reason))


_NOT_FOUND = 404
_STATUS = {
    ExitCode.BAD_USAGE: 422,
    ExitCode.NOT_READY: 503,
    ExitCode.GONE: 404,
    ExitCode.REFUSED: 409,
}


def _explain(visit: Visit, error: Exception) -> Response:
    """The page for an error, with what to do about it."""
    match error:
        case HTTPException():
            if error.status_code == _NOT_FOUND:
                return visit.show("error.html", status=404, title="There is no such page", reason="", advice=[])
            return visit.show("error.html", status=error.status_code, title=str(error.detail), reason="", advice=[])
        case NotThere():
            return visit.show("error.html", status=404, title=str(error), reason="", advice=[])
        case Away():
            return visit.show("away.html", status=503, reason=str(error))
        case CredentialsRefused():
            return visit.show("credentials.html", status=503, reason=str(error))
        case ControlPlaneNotFound() | ApiProblem() | InvalidRequest():
            pass
        case BotoCoreError() | ClientError():
            failure = explain(error)
            template = "credentials.html" if _is_about_credentials(error) else "away.html"
            return visit.show(template, status=503, reason=failure.line)
    failure = explain(error)
    return visit.show(
        "error.html",
        status=_STATUS.get(failure.code, 500),
        title="This cannot be done" if failure.code is ExitCode.REFUSED else "This did not work",
        reason=failure.line,
        advice=failure.advice,
    )


def _is_about_credentials(error: Exception) -> bool:
    """True for errors that go away with new credentials. The SDK's other errors are about the network."""
    from botocore.exceptions import (
        CredentialRetrievalError,
        NoCredentialsError,
        PartialCredentialsError,
        SSOError,
        TokenRetrievalError,
        UnauthorizedSSOTokenError,
    )

    kinds = (
        CredentialRetrievalError,
        NoCredentialsError,
        PartialCredentialsError,
        SSOError,
        TokenRetrievalError,
        UnauthorizedSSOTokenError,
    )
    return isinstance(error, (ClientError, *kinds))
