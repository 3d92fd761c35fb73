"""What a planted bug is, and the ways to plant one in this process without changing a file."""

from __future__ import annotations

import copy
import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import Any, Protocol, runtime_checkable

import pytest
from jinja2 import FileSystemLoader

from orchestrator.console.view import FOLDER
from tests.machines import asl
from tests.machines.files import machine
from tests.simulation.planting import Bug, wrapping

Json = dict[str, Any]


@runtime_checkable
class Search(Protocol):
    """A search for a seed of a simulation that catches the bug that is planted."""

    @property
    def command(self) -> str: ...

    def find(self) -> int | None: ...


@dataclass(frozen=True)
class PlantedBug:
    breaks: str
    """What the bug does, in one sentence."""
    plant: Bug
    caught_by: str | Search
    """The fastest test that fails because of it: its id, from the folder of the tests on. Or a simulation's seeds."""
    is_slow: bool = False
    """True if the test takes several seconds, so that it is not run with the bug each time that all tests run."""


class NotPlanted(Exception):
    """The place where the bug belongs looks different by now."""


def replaced(text: str, old: str, new: str) -> str:
    if text.count(old) != 1:
        raise NotPlanted(f"{old!r} is there {text.count(old)} times, so the bug cannot be planted. Plant it anew.")
    return text.replace(old, new)


def in_function(name: str, old: str, new: str) -> Bug:
    """Replace a part of the source of a function. Everybody who has imported the function gets the new code."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        found = inspect.unwrap(resolve_name(name))
        function = found.fget if isinstance(found, property) else getattr(found, "__func__", found)
        source = replaced(textwrap.dedent(inspect.getsource(function)), old, new)
        made: dict[str, Any] = {}
        exec(compile(source, name, "exec"), function.__globals__, made)
        (new_function,) = made.values()
        changed = new_function.fget if isinstance(new_function, property) else new_function
        changed = getattr(inspect.unwrap(changed), "__func__", inspect.unwrap(changed))
        monkeypatch.setattr(function, "__code__", changed.__code__)

    return plant


def in_page(template: str, old: str, new: str) -> Bug:
    """Replace a part of a template of the console."""

    @wrapping("get_source", FileSystemLoader)
    def get_source(original: Any, self: FileSystemLoader, environment: Any, name: str) -> Any:
        source, file, is_current = original(self, environment, name)
        return (source.replace(old, new) if name == template else source), file, is_current

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        replaced((FOLDER / "templates" / template).read_text(encoding="utf-8"), old, new)
        get_source(monkeypatch)

    return plant


def in_machine(part: str, state: str, **fields: object) -> Bug:
    """Give a state other fields; ``None`` takes one away."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        there = asl.states(machine(part))[state]
        for field, value in fields.items():
            if there.get(field) == value:
                raise NotPlanted(f"{part}: {state} already has this {field}.")
            if value is None:
                monkeypatch.delitem(there, field)
            else:
                monkeypatch.setitem(there, field, value)

    return plant


def in_stack(change: Callable[[Json], object], stack: str = "Berth") -> Bug:
    """Change the synthesised template of the control plane or the event plane."""
    from tests.stacks import conftest

    @wrapping("_template", conftest)
    def template(original: Any, assembly: Any, name: str = "Berth") -> Json:
        return changed(original(assembly, name), change) if name == stack else original(assembly, name)

    return template


def in_tenants_template(change: Callable[[Json], object]) -> Bug:
    from tests.stacks import conftest

    return wrapping("tenant_template", conftest)(lambda original, version: changed(original(version), change))


def changed(template: Json, change: Callable[[Json], object]) -> Json:
    after = copy.deepcopy(template)
    change(after)
    if after == template:
        raise NotPlanted("The template is as it was.")
    return after


def resources(template: Json, kind: str) -> Mapping[str, Json]:
    return {name: each for name, each in template["Resources"].items() if each["Type"] == kind}


def statement_of(template: Json, function: str, action: str) -> Json:
    """The first statement that allows a function an action."""
    from tests.stacks.conftest import functions_in
    from tests.stacks.policies import listed, statements

    properties = template["Resources"][functions_in(template)[function]]["Properties"]
    role = properties["Role"]["Fn::GetAtt"][0]
    return next(each for holder, each in statements(template) if holder == role and action in listed(each["Action"]))
