"""The option --type of the commands about events. A type that no event can have is refused before anything is asked."""

from __future__ import annotations

from typing import Annotated

import typer

from orchestrator.events.event_types import is_event_type, no_event_type


def checked_type(event_type: str | None) -> str | None:
    if event_type is not None and not is_event_type(event_type):
        raise typer.BadParameter(no_event_type(event_type))
    return event_type


def checked_types(event_types: list[str] | None) -> list[str] | None:
    for each in event_types or ():
        checked_type(each)
    return event_types


EventType = Annotated[
    str | None,
    typer.Option("--type", metavar="TYPE", help="Only events of this type.", show_default=False, callback=checked_type),
]
