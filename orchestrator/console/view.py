"""Renders pages. Everything that a page shows is escaped, and a value that is missing is an error."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote, urlencode

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from orchestrator.cli import render
from orchestrator.common.times import parse_timestamp
from orchestrator.tenants.records import TenantState

FOLDER = Path(__file__).parent
Times = Literal["relative", "local", "utc"]
Theme = Literal["system", "light", "dark"]
TIMES: tuple[Times, ...] = ("relative", "local", "utc")
THEMES: tuple[Theme, ...] = ("system", "light", "dark")

NAVIGATION = (
    ("/", "Overview"),
    ("/tenants", "Tenants"),
    ("/rollouts", "Rollouts"),
    ("/releases", "Releases"),
    ("/events", "Events"),
    ("/health", "Health"),
    ("/settings", "Settings"),
)
"""The pages that every page leads to."""

_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_TONES: Mapping[str, str] = {
    "green": "good",
    "yellow": "busy",
    "cyan": "busy",
    "bold red": "bad",
    "red": "bad",
    "magenta": "wait",
    "dim": "off",
}
"""The tone of each style that the command line gives a state, so that both show the same state alike."""


_OF_EXECUTIONS = frozenset({"TIMED_OUT"})
"""Statuses of executions that the command line never shows."""


@dataclass(frozen=True, slots=True)
class Look:
    """How a person wants pages to look. A cookie remembers it."""

    times: Times = "relative"
    theme: Theme = "system"

    @classmethod
    def parse(cls, text: str) -> Look:
        """Anything that is not known counts as the default."""
        times, _, theme = text.partition(".")
        return cls(
            next((each for each in TIMES if each == times), "relative"),
            next((each for each in THEMES if each == theme), "system"),
        )

    def __str__(self) -> str:
        return f"{self.times}.{self.theme}"


def tone(state: str) -> str:
    """The class of CSS for a state of a tenant, an operation, a rollout or a stage."""
    if state in _OF_EXECUTIONS:
        return "bad"
    return _TONES.get(str(render.state(state).style), "off")


def moment(text: str | None, look: Look, now: datetime) -> Markup:
    """A time as the person wants it. The title has all of it."""
    if not text:
        return Markup("")
    at = parse_timestamp(text)
    utc = at.strftime("%Y-%m-%d %H:%M:%S UTC")
    match look.times:
        case "utc":
            shown = utc
        case "local":
            shown = at.astimezone().strftime("%Y-%m-%d %H:%M:%S %Z")
        case _:
            shown = relative(at, now)
    return Markup('<time datetime="{}" title="{}">{}</time>').format(at.isoformat(), utc, shown)


def relative(at: datetime, now: datetime) -> str:
    seconds = (now - at).total_seconds()
    if abs(seconds) < 1:
        return "now"
    amount = _amount(abs(seconds))
    return f"{amount} ago" if seconds > 0 else f"in {amount}"


def _amount(seconds: float) -> str:
    for unit, size in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= size:
            return f"{int(seconds // size)} {unit}"
    return f"{int(seconds)} s"


def address(path: str, **query: object) -> str:
    """A path of the console with a query. Values that are empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def command_of(base: str, options: Iterable[tuple[str, str | None]]) -> str:
    """A command with its options, for a shell."""
    return " ".join([base, *(name if value is None else f"{name} {shlex.quote(value)}" for name, value in options)])


def segment(text: str) -> str:
    """A text as one segment of a path."""
    return quote(text, safe="")


def encoded(page: str) -> bytes:
    """Half of a surrogate pair, which JSON may have, cannot be encoded, and must not hide the page."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", page).encode()


def environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(FOLDER / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        tone=tone,
        segment=segment,
        who=lambda arn: render.who(arn or ""),
        labels=render.labels,
        duration=render.duration,
        reason_lines=_reason_lines,
    )
    made.globals.update(address=address, counted=render.counted, states=list(TenantState), navigation=NAVIGATION)
    return made


def _reason_lines(text: str) -> Markup:
    return Markup("<br>").join(escape(line) for line in text.splitlines())


def now() -> datetime:
    return datetime.now(UTC)


def values_for(look: Look, at: datetime) -> dict[str, Any]:
    """The values of every template that depend on the person and the time."""
    return {"look": look, "now": at, "moment": lambda text: moment(text, look, at)}
