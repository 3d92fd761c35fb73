"""The option --type of the commands about events. A type that no event can have is refused before anything is asked."""

from __future__ import annotations

import re
from typing import Annotated

import typer

from orchestrator.events.accepting import EVENT_TYPE_PATTERN

_PATTERN = re.compile(EVENT_TYPE_PATTERN)


def checked_type(event_type: str | None) -> str | None:
    if event_type is not None and not _PATTERN.fullmatch(event_type):
        raise typer.BadParameter(
            f"{event_type!a} is not the type of any event. A type has letters, digits and . _ : / -, begins with a "
            "letter or a digit, and has at most 128 characters, such as order.created."
        )
    return event_type


def checked_types(event_types: list[str] | None) -> list[str] | None:
    for each in event_types or ():
        checked_type(each)
    return event_types


EventType = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Only events of this type.", show_default=False, callback=checked_type),
]
