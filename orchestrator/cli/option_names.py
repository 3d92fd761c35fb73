"""Names the options of a command in messages of the API, which speak of the fields of a request."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Protocol

_PLACE = re.compile(r"(?P<field>[A-Za-z_]\w*)(?P<rest>(\.[^\s:]+)*): (?P<message>.*)", re.DOTALL)
_DOCUMENT = re.compile(r"\A(?:the body: |the query: |verification\.)")
"""The beginning of a message that names no option: a document, or the object that several options make together."""
_CAPITAL = re.compile("([A-Z])")

_PARAMETERS: Mapping[str, tuple[str, ...]] = {
    "address": ("address", "webhook", "zapier", "email"),
    "destination": ("email", "webhook", "zapier"),
    "drainSeconds": ("drain",),
    "filter": ("filter_file",),
    "form_id": ("form",),
    "historyBefore": ("before",),
    "label": ("label",),
    "labels": ("label",),
    "origins": ("origin",),
    "redirect_url": ("redirect",),
    "remove": ("changes",),
    "set": ("changes",),
    "source_id": ("source",),
    "stages": ("stages_file", "stages"),
    "tenants": ("tenant", "tenants_from"),
    "transform": ("transform_file",),
    "verification": ("provider",),
    "version": ("to", "version"),
}
"""The parameters of commands for fields of requests that have another name."""


class Parameter(Protocol):
    """An option or an argument of a command. The library's own type is private."""

    name: str | None
    opts: list[str]
    metavar: str | None

    @property
    def param_type_name(self) -> str: ...


def in_words_of_options(message: str, parameters: Sequence[Parameter]) -> str:
    """The message about a field of the request, as one about the parameter of the command that gave the field.

    A message that is not about such a field stays as it is.
    """
    message = _DOCUMENT.sub("", message, count=1)
    place = _PLACE.fullmatch(message)
    if place is None:
        return message
    by_name = {parameter.name: parameter for parameter in parameters}
    for name in _PARAMETERS.get(place["field"], (_snake_case(place["field"]),)):
        if name in by_name:
            return f"{_shown(by_name[name])}: {place['message']}"
    return message


def _shown(parameter: Parameter) -> str:
    """The option as it is typed, or the argument as the help names it."""
    is_option = parameter.param_type_name == "option"
    return max(parameter.opts, key=len) if is_option else parameter.metavar or str(parameter.name).upper()


def _snake_case(name: str) -> str:
    return _CAPITAL.sub(r"_\1", name).lower()
