"""The console as an ASGI application: the guard, and behind it the pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from orchestrator.cli.errors import ExitCode, explain, is_denied
from orchestrator.common.errors import BerthError, Throttled
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
from orchestrator.console.visit import Away, Busy, Console, CredentialsRefused, NotThere, Visit

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
    on_missing_session: Callable[[], None] = lambda: None,
    ours: Callable[[Address, Address], bool] = is_ours,
) -> Guard:
    routes: list[Route | Mount] = [Mount("/static", StaticFiles(directory=FOLDER / "static"))]
    for module in PAGES:
        routes += module.routes(console)
    handlers = {
        kind: lambda request, error: _explain(Visit(console, request), error)
        for kind in (BerthError, BotoCoreError, ClientError, HTTPException, Exception)
    }
    app = Starlette(routes=routes, exception_handlers=handlers)
    return Guard(
        app,
        sessions,
        port=port,
        read_only=console.read_only,
        static={f"/static/{file.name}" for file in (FOLDER / "static").iterdir()},
        page=lambda status, reason: _refusal(console, status, reason),
        on_missing_session=on_missing_session,
        ours=ours,
    )


def _refusal(console: Console, status: int, reason: str) -> bytes:
    """The page for a request that the guard refuses. It says nothing about the control plane."""
    values = values_for(Look(), console.clock())
    return encoded(console.templates.get_template("refused.html").render(**values, status=status, reason=reason))


_BUSY = "There are too many requests"
_NO_ANSWER = "The control plane did not answer"
_REFUSED = "AWS refuses your credentials"
_SEE_TERMINAL = "The terminal in which the console runs shows where it happened."
_NOT_FOUND = 404
_FAILED = 500
_ABOUT_CREDENTIALS = (
    exceptions.CredentialRetrievalError,
    exceptions.NoCredentialsError,
    exceptions.PartialCredentialsError,
    exceptions.SSOError,
    exceptions.TokenRetrievalError,
    exceptions.UnauthorizedSSOTokenError,
)
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
            title = "There is no such page" if error.status_code == _NOT_FOUND else str(error.detail)
            return _show_error(visit, error.status_code, title)
        case NotThere():
            return _show_error(visit, _NOT_FOUND, str(error))
        case Busy() | Throttled():
            return visit.show_away(_BUSY, explain(error).line)
        case Away():
            return visit.show_away(_NO_ANSWER, str(error))
        case CredentialsRefused():
            return visit.show_away(_REFUSED, str(error), renew=True)
        case BotoCoreError() | ClientError():
            refused = _is_about_credentials(error)
            return visit.show_away(_REFUSED if refused else _NO_ANSWER, explain(error).line, renew=refused)
        case BerthError():
            pass
        case _:
            return _show_error(
                visit, _FAILED, "The console has made a mistake", f"{type(error).__name__}: {error}", [_SEE_TERMINAL]
            )
    failure = explain(error)
    title = "This cannot be done" if failure.code is ExitCode.REFUSED else "This did not work"
    return _show_error(visit, _STATUS.get(failure.code, _FAILED), title, failure.line, failure.advice)


def _show_error(visit: Visit, status: int, title: str, reason: str = "", advice: Sequence[str] = ()) -> Response:
    return visit.show("error.html", status=status, title=title, reason=reason, advice=advice, is_known=status < _FAILED)


def _is_about_credentials(error: Exception) -> bool:
    """True for errors that go away with new credentials. The SDK's other errors are about the network."""
    return is_denied(error) or isinstance(error, _ABOUT_CREDENTIALS)
