"""One request to a page: what it asked for, what it may ask of the control plane, and how it answers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import Any

import typer
from jinja2 import Environment
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from orchestrator.api.reading import decode
from orchestrator.api.route import AnyRoute
from orchestrator.cli.api import Api, Document
from orchestrator.cli.control_plane import ControlPlane
from orchestrator.cli.errors import ApiProblem, ControlPlaneNotFound, ExitCode
from orchestrator.cli.problems import problem
from orchestrator.client.retrying import too_busy
from orchestrator.common.errors import BerthError, InvalidRequest
from orchestrator.console.sessions import Session
from orchestrator.console.stacks_now import StacksNow
from orchestrator.console.view import Look, encoded, environment, now, values_for

LOOK_COOKIE = "berth-look"
AWAY_HEADER = "berth-away"
_NUMBER = re.compile("[0-9]{1,9}")
_OK = range(200, 300)
_NOT_ALLOWED = (401, 403)
_TOO_MANY = 429


class Away(BerthError):
    """The API does not answer, or cannot answer now."""


class Busy(Away):
    """There are too many requests to the API."""


class CredentialsRefused(BerthError):
    """AWS does not accept the operator's credentials, for example because they have expired."""


class NotThere(BerthError):
    """There is no such page or thing."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the console acts, and as whom. Every page shows it."""

    name: str
    where: str
    account: str | None
    """The AWS account; ``None`` for a local control plane."""
    caller: str
    version: str | None
    renew: str
    """The command that renews the operator's credentials."""

    @property
    def is_local(self) -> bool:
        return self.account is None


@dataclass
class Console:
    """The parts that all pages of one console share."""

    control_plane: ControlPlane
    place: Place
    read_only: bool = False
    clock: Callable[[], datetime] = now
    templates: Environment = field(default_factory=environment)
    stacks: StacksNow = field(default_factory=StacksNow)

    @cached_property
    def api(self) -> Api:
        return self.control_plane.api()

    @property
    def events_api(self) -> Api:
        """The API of the event plane. Raises ControlPlaneNotFound if there is none."""
        if isinstance(self._events, ControlPlaneNotFound):
            raise self._events
        return self._events

    @cached_property
    def _events(self) -> Api | ControlPlaneNotFound:
        # Whether there is one is asked once, because the first page wants to know it every few seconds.
        try:
            return self.control_plane.events_api()
        except ControlPlaneNotFound as error:
            return error


@dataclass
class Visit:
    console: Console
    request: Request

    @property
    def session(self) -> Session:
        session: Session = self.request.scope["console.session"]
        return session

    @property
    def form(self) -> Mapping[str, str]:
        """The fields of the form. The guard has checked where they are from."""
        fields: Mapping[str, str] = self.request.scope["console.form"]
        return fields

    @property
    def path(self) -> str:
        return self.request.url.path

    @property
    def here(self) -> str:
        """The path with its query."""
        return self.path + (f"?{self.request.url.query}" if self.request.url.query else "")

    @property
    def look(self) -> Look:
        return Look.parse(self.request.cookies.get(LOOK_COOKIE, ""))

    def parameter(self, name: str) -> str | None:
        """A value of the query; ``None`` if it is empty."""
        return self.request.query_params.get(name, "").strip() or None

    def name(self, parameter: str) -> str:
        """A part of the path."""
        return str(self.request.path_params[parameter])

    # Asking the control plane

    def ask(self, route: AnyRoute, **fields: object) -> Document:
        """The answer to a request with these fields, by their names in the API. Those that are None are left out.

        Raises InvalidRequest, ApiProblem, Away or CredentialsRefused, which have pages of their own.
        """
        return _asked(self.console.api, route, fields)

    def ask_events(self, route: AnyRoute, **fields: object) -> Document:
        """The same for the API of the event plane. Raises ControlPlaneNotFound if there is none."""
        return _asked(self.console.events_api, route, fields)

    # Answering

    def show_away(self, title: str, reason: str, *, renew: bool = False) -> Response:
        """The control plane cannot be asked now. A page that is open says so by the title, and goes on to ask."""
        answer = self.show("away.html", status=503, title=title, reason=reason, renew=renew)
        answer.headers[AWAY_HEADER] = title
        return answer

    def show(self, template: str, *, status: int = 200, **values: Any) -> Response:
        rendered = self.console.templates.get_template(template).render(
            **values_for(self.look, self.console.clock()),
            place=self.console.place,
            read_only=self.console.read_only,
            csrf=self.session.csrf,
            path=self.path,
            here=self.here,
            # An order that was sent may have arrived, though its answer did not.
            was_sent=self.request.method == "POST",
            notices=[] if self.is_update else self.session.take_notices(),
            **values,
        )
        return Response(encoded(rendered), status, media_type="text/html")

    @property
    def is_update(self) -> bool:
        """True if a page that is open asks for its own newest state."""
        return "hx-request" in self.request.headers

    def go_to(self, path: str, notice: str | None = None) -> Response:
        if notice:
            self.session.notices.append(notice)
        return RedirectResponse(path, 303)


@dataclass
class Mistake:
    """The message about a value that somebody has typed; ``None`` if nothing is wrong with it."""

    text: str | None = None

    @contextmanager
    def noted(self) -> Iterator[None]:
        """The block uses what somebody has typed. Its mistakes are kept; other errors have pages of their own."""
        try:
            yield
        except typer.BadParameter as error:
            self.text = error.format_message()
        except (InvalidRequest, ValueError) as error:
            self.text = str(error)
        except ApiProblem as error:
            if error.code is not ExitCode.BAD_USAGE:
                raise
            self.text = str(error)


def number(text: str, *, least: int, most: int, name: str) -> int:
    """The number that somebody has typed. Texts of any length are compared before they are converted."""
    if not _NUMBER.fullmatch(text) or not least <= int(text) <= most:
        raise ValueError(f"{name} must be a number from {least} to {most}.")
    return int(text)


def _asked(api: Api, route: AnyRoute, fields: Mapping[str, object]) -> Document:
    # Making a request checks nothing, so it is decoded, as the API does it.
    request = decode(route.request, {name: value for name, value in fields.items() if value is not None})
    answer = api.send_request(route, request)
    if answer.status in _OK:
        return answer.body
    if reason := too_busy(answer):
        raise Busy(reason) if answer.status == _TOO_MANY else Away(reason)
    if answer.status in _NOT_ALLOWED and "type" not in answer.body:
        raise CredentialsRefused(str(answer.body.get("message", "no reason was given")))
    raise problem(answer, can_wait=False)
