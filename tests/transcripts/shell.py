"""A shell that runs commands on the in-memory API and writes down what they print and which requests they send."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from orchestrator.api.event_plane_routes import EVENT_ROUTES
from orchestrator.api.requesting import HttpRequest
from orchestrator.client.transport import ApiAnswer
from orchestrator.common.own_versions import berth_version, template_version
from tests.unit.cli.conftest import FakeControlPlane, Scene
from tests.unit.cli.fake_api import EVENT_EXAMPLES, InMemoryApi, ScriptedEventsApi

WIDTH = 120
_OWN_VERSION = re.compile(rf"(?<![\w.]){re.escape(berth_version())}(?![\w.]*\d)")


class RecordingApi(InMemoryApi):
    def __init__(self, requests: list[str]) -> None:
        super().__init__()
        self._requests = requests

    def send(self, request: HttpRequest) -> ApiAnswer:
        self._requests.append(in_one_line(request))
        return super().send(request)


class RecordingEventsApi(ScriptedEventsApi):
    """Answers each route with its documented example, or with the given answers first."""

    def __init__(self, requests: list[str]) -> None:
        super().__init__()
        self._requests = requests
        self.interjections: list[ApiAnswer] = []
        self.changed: dict[str, Mapping[str, object]] = {}
        """Fields of answers that differ from the example, by the last part of the path."""

    def send(self, request: HttpRequest) -> ApiAnswer:
        self._requests.append(in_one_line(request))
        if self.interjections:
            return self.interjections.pop(0)
        answer = super().send(request)
        changes = self.changed.get(request.path.rpartition("/")[2], {})
        return ApiAnswer(answer.status, {**answer.body, **changes}, answer.retry_after)


def in_one_line(request: HttpRequest) -> str:
    query = "&".join(f"{name}={value}" for name, value in request.query.items())
    body = "" if request.body is None else f" {json.dumps(request.body, ensure_ascii=False)}"
    return f"{request.method} {request.path}{'?' if query else ''}{query}{body}"


class Shell:
    """Runs commands, and keeps a text of them. Each scene begins with an empty control plane."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """The requests of the latest command."""
        self._blocks: list[str] = []
        self.begin()

    def begin(self) -> Scene:
        """A new scene, at noon, with a control plane without tenants."""
        self.events = RecordingEventsApi(self.requests)
        self.scene = Scene(api=RecordingApi(self.requests), events=self.events)
        self.scene.environment["COLUMNS"] = str(WIDTH)
        return self.scene

    def run(
        self, line: str, why: str = "", *, typed: str | None = None, requests: bool = True, lines: int | None = None
    ) -> None:
        """Run the command and write it down, after a comment that says what is special about the scene.

        With ``lines``, only that many lines of a long output are written down.
        """
        self.requests.clear()
        self.scene.typed = typed
        result = self.scene.berth(*shlex.split(line))
        head = [f"# {why}"] if why else []
        asked = [f"> {each}" for each in self.requests] if requests else []
        said = [f"! {each}" for each in _lines(_plain(result.stderr))]
        shown = _compact(_plain(result.stdout)) if lines is None else [*_lines(_plain(result.stdout))[:lines], "..."]
        typed_lines = [f"< {each}" for each in (typed or "").splitlines()]
        end = f"exit code {result.exit_code}"
        block = [*head, f"$ berth {line}".rstrip(), *typed_lines, *asked, *shown, *said, end]
        self._blocks.append("\n".join(map(str.rstrip, block)))
        self.scene.api.clock.advance(timedelta(seconds=1))  # Two changes within a second would be in each other's way.

    def both(self, line: str, why: str = "") -> None:
        """Run the command for people, and then with --json. It must be one that changes nothing that matters here."""
        self.run(line, why)
        self.run(f"{line} --json")

    def refused_by_events(self, line: str, kind: str) -> None:
        """Run the command while the Events API answers its first request with the documented example of a problem."""
        (problem,) = {
            each.kind: each for route in EVENT_ROUTES for each in route.problems if each.kind == kind
        }.values()
        example = next(iter(EVENT_EXAMPLES["problems"][kind].values()))
        body = {"type": problem.type, "title": problem.title, "status": problem.status, **example}
        self.events.interjections = [ApiAnswer(problem.status, body)]
        self.run(line, f"The API answers {kind}.")

    def find_another(self, change: Callable[[FakeControlPlane], object]) -> None:
        """Let the commands find a control plane that was changed."""
        control_plane = FakeControlPlane(self.scene.api, events=self.events)
        change(control_plane)
        self.scene.control_plane = control_plane

    @property
    def text(self) -> str:
        whole = "\n\n".join(self._blocks) + "\n"
        return masked(whole)


def masked(text: str) -> str:
    """The text without the versions of Berth and of the tenants' template, which change."""
    text = text.replace(f"tenant template {template_version()}", "tenant template <its version>")
    return _OWN_VERSION.sub("<own version>", text)


def _plain(text: str) -> str:
    """Without colours, which the library prints on a CI server."""
    return re.sub(r"\x1b\[[0-9;]*m", "", text)


def _lines(text: str) -> Sequence[str]:
    return text.split("\n")[:-1] if text.endswith("\n") else text.split("\n") if text else []


def _compact(text: str) -> Sequence[str]:
    """The lines of the output. A JSON document is shorter here than as it was printed, with the same content."""
    try:
        document = json.loads(text)
    except ValueError:
        return _lines(text)
    if not isinstance(document, dict | list) or text != json.dumps(document, indent=2) + "\n":
        return _lines(text)
    return _folded(document, "", "").split("\n")


def _folded(value: Any, indent: str, head: str) -> str:
    """The value on one line if it fits, else one line per member."""
    line = f"{indent}{head}{json.dumps(value)}"
    if len(line) < WIDTH or not isinstance(value, dict | list) or not value:
        return line
    deeper = indent + "  "
    if isinstance(value, dict):
        members = [_folded(each, deeper, f"{json.dumps(name)}: ") for name, each in value.items()]
    else:
        members = [_folded(each, deeper, "") for each in value]
    opened, closed = "{}" if isinstance(value, dict) else "[]"
    return "\n".join([f"{indent}{head}{opened}", ",\n".join(members), f"{indent}{closed}"])
