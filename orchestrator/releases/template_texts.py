"""The texts that CloudFormation can make of a value in a template, whatever its functions select, split and join.

:func:`orchestrator.releases.template_values.text_of` is enough where only a known form is allowed. Where texts are
refused, every text that is possible counts: both branches of ``Fn::If``, all values of a mapping, every part of a text
that ``Fn::Split`` cuts, and the names that the template chooses for its resources, which references return.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, product
from typing import Any

from orchestrator.releases.template_values import (
    UNKNOWN,
    function_of,
    literal,
    mapping,
    parts_of_sub,
    reference,
    without_references,
)

_MAX_TEXTS = 100
"""Texts that one value may have. Conditions within conditions could make any number."""
_MAX_CHARACTERS = 5_000_000
"""Characters of all texts that functions and references make in one template, and the number of these texts. Variables
within variables could make any number, and so could many references to a long text."""
_MAX_NAMES = 10
"""Names that are made of one another. Each is read within the one that has it."""
_CHOSEN_NAME = re.compile(r"(?:Name|Identifier)\Z")
"""Properties by which a template chooses what a reference to the resource returns."""
NO_VALUE = "AWS::NoValue"


class TooManyTexts(Exception):
    """The value can have so many texts, or such long ones, that they cannot be checked."""


class PossibleTexts:
    """Finds the possible texts of values in one template.

    With ``names``, a reference to a resource is the name that the template has chosen for it, if it has chosen one.
    """

    def __init__(self, template: Mapping[str, Any], *, names: bool = False) -> None:
        self._mappings = mapping(template.get("Mappings"))
        self._named = mapping(template.get("Resources")) if names else {}
        self._names: dict[tuple[str, str | None], list[str]] = {}
        self._being_read: set[str] = set()
        self._texts_of: dict[str | None, Sequence[str]] = {}
        self._lists_of: dict[str | None, Sequence[tuple[str, ...]]] = {}
        self._characters = 0

    def of(self, value: object) -> list[str]:
        """The possible texts, with ``${...}`` for references, as :func:`text_of` has them. Empty if it is no text."""
        if isinstance(value, str):
            return [literal(value)]
        if isinstance(value, bool | int | float):
            return [str(value).lower()]
        if (found := reference(value)) is not None:
            return self._referenced(*found)
        called = function_of(value)
        return [] if called is None else self._returned(*called)

    def _referenced(self, name: str, attribute: str | None) -> list[str]:
        if name == NO_VALUE:
            return [""]
        if name in self._named and name not in self._being_read:
            if (name, attribute) not in self._names:
                self._names[name, attribute] = self._chosen_names(name, attribute)
            if names := self._names[name, attribute]:
                return self._distinct(names)
        return ["${" + ".".join(part for part in (name, attribute) if part) + "}"]

    def _chosen_names(self, name: str, attribute: str | None) -> list[str]:
        """The texts of the template that a reference to the resource may return."""
        if len(self._being_read) >= _MAX_NAMES:
            raise TooManyTexts
        self._being_read.add(name)
        try:
            properties = mapping(mapping(self._named[name]).get("Properties"))
            chosen = (each for key, each in properties.items() if key == attribute or _CHOSEN_NAME.search(key))
            return self._distinct(text for each in chosen for text in self.of(each) if without_references(text))
        finally:
            self._being_read.discard(name)

    def _returned(self, function: str, arguments: object) -> list[str]:
        match (function, arguments):
            case ("Fn::Join", [str(delimiter), parts]):
                between = literal(delimiter)
                return self._distinct(between.join(each) for each in self._lists(parts))
            case ("Fn::Sub", str(text)):
                return self._substituted(text, {})
            case ("Fn::Sub", [str(text), dict(variables)]):
                return self._substituted(text, variables)
            case ("Fn::If", [_, first, second]):
                return self._distinct([*self.of(first), *self.of(second)])
            case ("Fn::Select", [_, entries]):
                return self._distinct(each for entries_ in self._lists(entries) for each in entries_)
            case ("Fn::FindInMap", _):
                return self._distinct(chain(self._mapped(arguments), [UNKNOWN]))
        return [UNKNOWN]

    def _lists(self, value: object) -> list[tuple[str, ...]]:
        """The lists of texts that the value can be."""
        if isinstance(value, list):
            return self._product([self.of(each) or [UNKNOWN] for each in value])
        match function_of(value):
            case ("Fn::Split", [str(delimiter), source]) if delimiter:
                return [tuple(text.split(literal(delimiter))) for text in self.of(source)]
            case ("Fn::If", [_, first, second]):
                return [*self._lists(first), *self._lists(second)]
            case ("Fn::FindInMap", arguments):
                return [(UNKNOWN,), *self._mapped_lists(arguments)]
        return [(UNKNOWN,)]

    def _substituted(self, text: str, variables: Mapping[str, object]) -> list[str]:
        literals, names = parts_of_sub(text)
        used = sorted({*names})
        found = []
        for chosen in self._product([self._variable(name, variables) for name in used]):
            given = dict(zip(used, chosen, strict=True))
            texts = [literal(literals[0])]
            for name, after in zip(names, literals[1:], strict=True):
                texts += [given[name], literal(after)]
                self._count(len(texts[-2]))
            found.append("".join(texts))
        return self._distinct(found)

    def _variable(self, name: str, variables: Mapping[str, object]) -> list[str]:
        if name in variables:
            return self.of(variables[name]) or [UNKNOWN]
        resource, _, attribute = name.partition(".")
        return self._referenced(resource, attribute or None)

    def _mapped(self, arguments: object) -> Iterator[str]:
        """Every text of the mapping, because keys may depend on parameters. The fourth argument is a default."""
        named = self._mapping_named_in(arguments)
        if named not in self._texts_of:
            texts = _texts_in(self._mappings if named is None else self._mappings.get(named))
            self._texts_of[named] = list(dict.fromkeys(map(literal, texts)))
        yield from self._texts_of[named]
        if isinstance(arguments, list):
            for each in arguments[3:]:
                yield from self.of(mapping(each).get("DefaultValue"))

    def _mapped_lists(self, arguments: object) -> Sequence[tuple[str, ...]]:
        named = self._mapping_named_in(arguments)
        if named not in self._lists_of:
            lists = _lists_in(self._mappings if named is None else self._mappings.get(named))
            self._lists_of[named] = list(dict.fromkeys(tuple(map(literal, each)) for each in lists))
        return self._lists_of[named]

    def _mapping_named_in(self, arguments: object) -> str | None:
        """``None`` for all mappings: the name may depend on parameters."""
        named = arguments[0] if isinstance(arguments, list) and arguments else None
        return named if isinstance(named, str) else None

    def _product(self, choices: list[list[str]]) -> list[tuple[str, ...]]:
        count = 1
        for each in choices:
            count *= len(each)
            if count > _MAX_TEXTS:
                raise TooManyTexts
        return list(product(*choices))

    def _distinct(self, texts: Iterable[str]) -> list[str]:
        found: dict[str, None] = {}
        for text in texts:
            self._count(len(text) + 1)
            found[text] = None
            if len(found) > _MAX_TEXTS:
                raise TooManyTexts
        return list(found)

    def _count(self, characters: int) -> None:
        self._characters += characters
        if self._characters > _MAX_CHARACTERS:
            raise TooManyTexts


def _texts_in(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts_in(each)


def _lists_in(value: object) -> Iterator[list[str]]:
    if isinstance(value, list):
        yield [str(each) for each in value]
    for each in mapping(value).values():
        yield from _lists_in(each)


def texts_within(place: str, value: object, *, without: frozenset[str] = frozenset()) -> Iterator[tuple[str, object]]:
    """Every text within the value, with its place: plain texts, keys, and calls of functions, which are not opened.

    ``without`` are keys of objects whose values are left out.
    """
    if isinstance(value, str):
        yield place, value
    elif isinstance(value, list):
        for number, each in enumerate(value):
            yield from texts_within(f"{place}[{number}]", each, without=without)
    elif (called := function_of(value)) is not None:
        yield place, value
        yield from _in_chosen_objects(place, *called, without)
    else:
        for name, each in mapping(value).items():
            if name not in without:
                yield f"{place}.{name}", name
                yield from texts_within(f"{place}.{name}", each, without=without)


def _in_chosen_objects(
    place: str, function: str, arguments: object, without: frozenset[str]
) -> Iterator[tuple[str, object]]:
    """The texts in objects that a function may choose. The texts that it may choose are possible texts of the call."""
    if function in ("Fn::If", "Fn::Select") and isinstance(arguments, list):
        for each in arguments[1:]:
            yield from (found for found in texts_within(place, each, without=without) if found[0] != place)
