"""Reading the values of a template that somebody else wrote: any JSON value may stand anywhere."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

_VARIABLE = re.compile(r"\$\{(?!!)([^{}]*)\}")
_REFERENCE = re.compile(r"\$\{[^{}]*\}")
UNKNOWN = "${?}"
"""Stands for a part of a text that only CloudFormation knows."""
_LONGEST_TEXT = 5_000
"""The characters of a text that are looked at. Variables within variables could make a text of any length."""


def mapping(value: object) -> Mapping[str, Any]:
    """The value if it is an object, or an empty object."""
    return value if isinstance(value, dict) else {}


def entries(value: object) -> list[Any]:
    """The entries of a list, or the value itself as the only entry: policies allow both."""
    return value if isinstance(value, list) else [value]


def function_of(value: object) -> tuple[str, Any] | None:
    """The name and the arguments of a function of CloudFormation, if the value is a call of one."""
    if isinstance(value, dict) and len(value) == 1:
        (name,) = value
        if name == "Ref" or name.startswith("Fn::"):
            return name, value[name]
    return None


def reference(value: object) -> tuple[str, str | None] | None:
    """The logical id, and the attribute unless it is a Ref, if the value is a reference and nothing else."""
    match function_of(value):
        case ("Ref", str(name)):
            return name, None
        case ("Fn::GetAtt", [str(name), str(attribute)]):
            return name, attribute
        case ("Fn::GetAtt", str(path)) if "." in path:
            name, _, attribute = path.partition(".")
            return name, attribute
    return None


def text_of(value: object) -> str | None:
    """The text that CloudFormation makes of the value, with ``${...}`` for references. ``None`` if it is no text.

    Parts that only CloudFormation knows are ``${?}``, and so is the end of a text that is too long. A ``${`` that is no
    reference becomes ``$ {``, so that nobody can write a text that looks like a reference.
    """
    if isinstance(value, str):
        return literal(value)
    if (found := reference(value)) is not None:
        return "${" + ".".join(part for part in found if part) + "}"
    match function_of(value):
        case ("Fn::Join", [str(delimiter), list(parts)]):
            between = literal(delimiter)
            each_part = (text_of(part) or UNKNOWN for part in parts)
            return _joined(text for number, part in enumerate(each_part) for text in (between * bool(number), part))
        case ("Fn::Sub", str(text)):
            return _substituted(text, {})
        case ("Fn::Sub", [str(text), dict(variables)]):
            return _substituted(text, variables)
        case (_, _):
            return UNKNOWN
    return None


def _substituted(text: str, variables: Mapping[str, object]) -> str:
    parts = _VARIABLE.split(text)
    # A variable may be named any number of times, and its value may have variables of its own: each is read once.
    given = {name: text_of(variables[name]) or UNKNOWN for name in {*parts[1::2]} & variables.keys()}
    return _joined(
        given.get(part, f"${{{part}}}") if number % 2 else literal(part) for number, part in enumerate(parts)
    )


def literal(text: str) -> str:
    """The text as a part of another one, in which nothing that it has looks like a reference."""
    shown = text.replace("${", "$ {")
    return f"{shown} " if shown.endswith("$") else shown


def without_references(text: str, instead: str = "") -> str:
    """The parts of a text that are written in the template, with something else instead of each reference."""
    return _REFERENCE.sub(instead, text)


def _joined(parts: Iterable[str]) -> str:
    taken: list[str] = []
    length = 0
    for part in parts:
        taken.append(part)
        length += len(part)
        if length > _LONGEST_TEXT:
            return "".join(taken)[:_LONGEST_TEXT] + UNKNOWN
    return "".join(taken)


def parts_of_sub(text: str) -> tuple[list[str], list[str]]:
    """The literal parts of a text for Fn::Sub, and the names of the variables between them."""
    parts = _VARIABLE.split(text)
    return parts[::2], parts[1::2]


def variables_of_sub(text: str) -> list[str]:
    """The names of the variables in a text for Fn::Sub."""
    return _VARIABLE.findall(text)


def literals_of_sub(text: str) -> list[str]:
    """The parts of a text for Fn::Sub that are not variables."""
    return _VARIABLE.split(text)[::2]


def values(value: object, path: str = "") -> Iterator[tuple[str, object]]:
    """Every value within the value, with its place, outermost first. Texts that are keys are values, too."""
    yield path, value
    if isinstance(value, dict):
        for name, each in value.items():
            inner = f"{path}.{name}" if path else name
            yield inner, name
            yield from values(each, inner)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from values(each, f"{path}[{number}]")
