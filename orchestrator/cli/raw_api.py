"""`berth api`: sends any request that the API declares, for what has no command of its own."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import parse_qsl, unquote

import typer

from orchestrator.cli import render
from orchestrator.cli.invocation import NOT_ASKED, Invocation
from orchestrator.cli.problems import problem
from orchestrator.common.errors import InvalidRequest
from orchestrator.tenants.selections import listed

if TYPE_CHECKING:
    from orchestrator.api.route import AnyRoute

_FIRST_ERROR = 400

EXAMPLES = """\
[bold]Examples[/]
  berth api GET /tenants
  berth api GET "/tenants?state=FAILED&limit=5"
  berth api POST /tenants/acme/labels --body '{"set": {"plan": "gold"}}'
"""


def api(
    context: typer.Context,
    method: Annotated[str, typer.Argument(metavar="METHOD", help="GET, PUT, POST or DELETE.", show_default=False)],
    path: Annotated[
        str, typer.Argument(metavar="PATH", help="The path, with a query if there is one.", show_default=False)
    ],
    body: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="The body: a JSON object, or @FILE; @- is stdin.", show_default=False),
    ] = None,
    yes: Annotated[
        bool, typer.Option("--yes", help=f"Do not ask to confirm what destroys something. {NOT_ASKED}")
    ] = False,
) -> None:
    """Send a request to the API, and print the answer as JSON.

    `berth openapi` prints the requests of the control plane, `berth openapi
    --events` those of the event plane. Requests of tenants, which need an API
    key, cannot be sent.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=True):
        route, request, is_of_events = _read(method.upper(), path, body)
        warning = route.warning(request)
        if (warning or route.method == "DELETE") and not yes:
            here.confirm(f"This sends {route.method} {path}. {warning or ''}".rstrip())
        control_plane = here.find()
        target = control_plane.events_api() if is_of_events else control_plane.api()
        with here.retrying() as retrying:
            answer = retrying(partial(target.send_request, route, request))
        if answer.status >= _FIRST_ERROR:
            raise problem(answer)
        render.show_json(answer.body)


def _read(method: str, path: str, body: str | None) -> tuple[AnyRoute, Any, bool]:
    """The declared route, its request, and whether it is one of the event plane."""
    # Imported here because the routes load all models, which no other command needs at once.
    from orchestrator.api.event_plane_routes import EVENT_ROUTES
    from orchestrator.api.reading import read
    from orchestrator.api.route import Audience
    from orchestrator.api.routes import ROUTES

    path, query = _split(path)
    events = [route for route in EVENT_ROUTES if route.audience not in (Audience.TENANT, Audience.PUBLIC)]
    found = list(_matching([*ROUTES, *events], path))
    for route, parameters in found:
        if route.method == method:
            event = {"pathParameters": parameters, "queryStringParameters": query, "body": _text(body)}
            return route, read(route, event), route in events
    if found:
        methods = listed(route.method for route, _ in found)
        raise InvalidRequest(f"There is no route {method} {path}. Methods of this path: {methods}.")
    paths = listed(route.path for route in ROUTES if route.method == method)
    raise InvalidRequest(f"There is no route {method} {path!a}. Paths, among others: {paths}.")


def _split(given: str) -> tuple[str, dict[str, str]]:
    """The path and the parameters of its query.

    Whatever would not be sent is refused: a host that is ignored could be that of another control plane.
    """
    if not given.startswith("/") or given.startswith("//"):
        raise InvalidRequest(
            f"PATH: {given!a} is not a path. Write only what follows the host, such as /tenants/acme. The options "
            "before the command say which control plane is meant: berth --help"
        )
    if "#" in given:
        raise InvalidRequest("PATH: it has a fragment, which is never sent. Leave out the # and what follows it.")
    path, _, text = given.partition("?")
    query: dict[str, str] = {}
    for name, value in parse_qsl(text, keep_blank_values=True):
        if name in query:
            raise InvalidRequest(f"PATH: it has the parameter {name!a} twice. Write it once, with one value.")
        query[name] = value
    return path, query


def _matching(routes: Sequence[AnyRoute], path: str) -> Iterator[tuple[AnyRoute, dict[str, str]]]:
    for route in routes:
        pattern = re.sub(r"\\{(\w+)\\}", r"(?P<\1>[^/]+)", re.escape(route.path))
        if found := re.fullmatch(pattern, path):
            yield route, {name: unquote(value) for name, value in found.groupdict().items()}


def _text(body: str | None) -> str | None:
    if body is None or not body.startswith("@"):
        text = body
    elif body == "@-":
        text = sys.stdin.read()
    else:
        try:
            text = Path(body[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError):
            raise InvalidRequest(f"--body: {body[1:]!a} cannot be read as text.") from None
    if text is not None:
        try:
            json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidRequest("--body: this is not JSON.") from None
    return text
