"""Requests of commands to the Events API, for a tenant that the operator names."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from orchestrator.api.for_operators import for_operators, of_tenant
from orchestrator.cli.problems import kind_of, problem
from orchestrator.client.retrying import too_busy
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId

if TYPE_CHECKING:
    from orchestrator.api.route import RequestT, Route
    from orchestrator.cli.api import Document
    from orchestrator.cli.control_plane import ControlPlane
    from orchestrator.cli.invocation import Invocation
    from orchestrator.client.transport import ApiAnswer

_FIRST_ERROR = 300


def ask_for(
    here: Invocation, control_plane: ControlPlane, tenant: TenantId, route: Route[RequestT, Any], request: RequestT
) -> Document:
    """The answer of the tenants' route for this tenant."""
    return ask(here, control_plane, for_operators(route), of_tenant(route, request, tenant))


def ask(
    here: Invocation,
    control_plane: ControlPlane,
    route: Route[RequestT, Any],
    request: RequestT,
    *,
    key: str | None = None,
) -> Document:
    """The answer of the route: to the operator or, with ``key``, to the tenant that the API key belongs to."""
    api = control_plane.events_api(key)
    with here.retrying() as retrying:
        answer = retrying(
            partial(api.send_request, route, request), too_busy if route.method != "POST" else _not_started
        )
    if answer.status >= _FIRST_ERROR:
        raise problem(answer)
    return answer.body


def with_url(resource: Document, control_plane: ControlPlane) -> Document:
    """A source or form with its whole URL, which people need and only this side knows."""
    return {**resource, "url": control_plane.events_api_url.rstrip("/") + resource["path"]}


def _not_started(answer: ApiAnswer) -> str | None:
    """A POST is repeated only if nothing was done, because a repeated request could create a second key."""
    return too_busy(answer) if answer.status == 429 or kind_of(answer) == "try-again" else None


def secret_from(file: str, name: str = "secret") -> str:
    """A secret from a file, or from standard input for ``-``.

    It is never an argument: other users of the machine can see the arguments of a command, and shells record them.
    """
    try:
        text = sys.stdin.read() if file == "-" else Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"The {name} cannot be read from {file!a}: {reason(error)}") from None
    secret = text.strip("\r\n")
    if not secret:
        raise InvalidRequest(f"There is no {name} in {'standard input' if file == '-' else ascii(file)}.")
    return secret


def reason(error: OSError | UnicodeDecodeError) -> str:
    """The reason alone: the text of the error repeats the name of the file, and quotes bytes of its content."""
    return "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or "unknown reason"
