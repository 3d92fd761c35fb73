"""The schemas of an OpenAPI document: those of wire models, named types and problems."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from inspect import cleandoc
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, get_origin

import msgspec

from orchestrator.api.fields import ProblemMembers, as_documented
from orchestrator.api.problems import Problem
from orchestrator.api.route import AnyRoute

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Api:
    """An API with a document of its own."""

    examples: Path
    routes: tuple[AnyRoute, ...]
    modules: tuple[ModuleType, ...]
    """The modules with the types of its requests and answers."""
    heading: Json


SCHEMA = "#/components/schemas/"
CLOSED = {"additionalProperties": False}
"""The document lists every field of an answer, although clients accept unknown fields."""


class Schemas:
    """The schemas of wire models, named types and problems."""

    def __init__(self, api: Api) -> None:
        routes = api.routes
        self.components: Json = {}
        self._named = dict(named_types(api))
        models = {route.request for route in routes}
        models |= {each.model for route in routes for each in route.answers if each.model is not None}
        _, made = msgspec.json.schema_components([*models, ProblemMembers], ref_template=SCHEMA + "{name}")
        rules = {model.__name__: getattr(model, "schema_rules", {}) for model in _with_bases(api, made, models)}
        self._enums: dict[str, str] = {}
        self._find_enums(list(made.values()))
        for title, values in _enumerations(api):
            described = {"description": self._named[title]} if self._named[title] else {}
            self.components[title] = {**described, "type": "string", "enum": list(values)}
        for name, schema in made.items():
            if name not in self._enums:
                described = {key: unwrapped(value) for key, value in schema.items() if key == "description"}
                self.components[name] = self._tidy({**schema, **described, **rules.get(name, {}), **CLOSED}, top=True)
        self._members = self.components.pop("ProblemMembers")["properties"]
        self._requests = {name: self.components.pop(name) for name in {route.request.__name__ for route in routes}}

    def of_request(self, route: AnyRoute) -> tuple[Json, set[str]]:
        schema = self._requests[route.request.__name__]
        return schema["properties"], set(schema.get("required", ()))

    def of_body(self, route: AnyRoute) -> Json:
        """The schema of the request without the path parameters."""
        name = route.request.__name__
        schema = dict(self._requests[name])
        inside = {key: value for key, value in schema["properties"].items() if key not in route.path_parameters}
        required = [key for key in schema.pop("required", ()) if key in inside]
        self.components[name] = {**schema, "properties": inside, **({"required": required} if required else {})}
        return {"$ref": SCHEMA + name}

    def of_problem(self, problem: Problem) -> str:
        members = {
            name: self._valued(problem.values[name]) if name in problem.values else self._members[name]
            for name in (*problem.required, *problem.optional)
        }
        schema: Json = {
            "description": problem.description,
            "allOf": [{"$ref": SCHEMA + "Problem"}],
            "properties": {"type": {"const": problem.type}, "status": {"const": problem.status}, **members},
            "unevaluatedProperties": False,
        }
        if problem.required:
            schema["required"] = list(problem.required)
        if problem.comes_with:
            schema["dependentRequired"] = {name: list(others) for name, others in problem.comes_with.items()}
        self.components[problem.name] = schema
        return problem.name

    def description(self, schema: Json) -> str:
        found: Json = self.components.get(schema.get("$ref", "").removeprefix(SCHEMA), {})
        return str(found.get("description", ""))

    @staticmethod
    def _valued(values: tuple[str, ...]) -> Json:
        return {"const": values[0]} if len(values) == 1 else {"enum": list(values)}

    def _find_enums(self, part: object) -> None:
        """Map the class names of enumerations to the titles that their fields give them."""
        if isinstance(part, dict):
            if "$ref" in part and "title" in part:
                self._enums[part["$ref"].removeprefix(SCHEMA)] = part["title"]
            for inner in part.values():
                self._find_enums(inner)
        elif isinstance(part, list):
            for inner in part:
                self._find_enums(inner)

    def _tidy(self, part: Any, *, top: bool = False) -> Any:
        if isinstance(part, list):
            return [self._tidy(each) for each in part]
        if not isinstance(part, dict):
            return part
        title = part.get("title")
        tidied = {
            key: as_documented(value) if key == "pattern" else self._tidy(value)
            for key, value in part.items()
            if key != "title" or not isinstance(title, str)
        }
        if "$ref" in tidied:
            name = tidied["$ref"].removeprefix(SCHEMA)
            tidied["$ref"] = SCHEMA + self._enums.get(name, name)
            return self._without_its_own_description(tidied, self._enums.get(name, name))
        if isinstance(tidied.get("enum"), list) and "type" not in tidied:
            tidied = _of_strings(tidied)
        if not isinstance(title, str) or title not in self._named or top:
            return tidied
        default = {"default": tidied.pop("default")} if "default" in tidied else {}
        described = {"description": tidied.pop("description", "")}
        self.components[title] = {**({"description": self._named[title]} if self._named[title] else {}), **tidied}
        return self._without_its_own_description({**described, "$ref": SCHEMA + title, **default}, title)

    def _without_its_own_description(self, reference: Json, name: str) -> Json:
        """Drop a description that only repeats the component's own."""
        if reference.get("description", "") in ("", self._named.get(name)):
            reference.pop("description", None)
        return reference


def _enumerations(api: Api) -> Iterator[tuple[str, Iterable[str]]]:
    """The values of each enumeration, in the order of their definition. msgspec would sort them."""
    for value in (value for module in api.modules for value in vars(module).values()):
        if get_origin(value) is Annotated and isinstance(value.__origin__, enum.EnumType):
            values = list(map(str, value.__origin__))
            yield from ((meta.title, values) for meta in value.__metadata__ if meta.title)


def named_types(api: Api) -> Iterator[tuple[str, str]]:
    """The title and description of every type that is a component of the document."""
    for module in api.modules:
        for value in vars(module).values():
            if get_origin(value) is Annotated:
                for meta in value.__metadata__:
                    if isinstance(meta, msgspec.Meta) and meta.title:
                        yield meta.title, meta.description or ""


def _with_bases(api: Api, made: Mapping[str, object], models: set[type[Any]]) -> set[type[Any]]:
    """All wire models in the document, including those that are only parts of others."""
    known = {value for module in api.modules for value in vars(module).values() if isinstance(value, type)}
    return models | {model for model in known if model.__name__ in made}


def _of_strings(schema: Json) -> Json:
    values = schema.pop("enum")
    return {**schema, **({"const": values[0]} if len(values) == 1 else {"enum": values})}


def unwrapped(docstring: str) -> str:
    """The paragraphs of a docstring, each in one line. Python keeps the indentation of docstrings before 3.13."""
    return re.sub(r"(?<!\n)\n(?!\n)", " ", cleandoc(docstring))
