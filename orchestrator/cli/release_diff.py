"""`berth release diff`: what changes in a tenant's stack between two releases, property by property.

It compares the templates in this installation, so it needs no control plane. Only a change set says what CloudFormation
makes of a change, such as the replacement of a queue: see `berth rollout plan`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from orchestrator.cli import render
from orchestrator.cli.invocation import Invocation, Json
from orchestrator.common.errors import InvalidRequest
from orchestrator.common.versions import VERSION_PATTERN, order

TEMPLATES = Path(__file__).resolve().parents[2] / "stacks" / "releases"
"""The folder with the templates of the releases."""

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Change:
    """A value of the template that two releases do not have in common."""

    section: str
    logical_id: str
    resource_type: str | None
    path: str
    """The place within the entry, such as Properties.VisibilityTimeout; empty if all of it was added or removed."""
    before: object
    after: object

    @property
    def kind(self) -> str:
        return "added" if self.before is _MISSING else "removed" if self.after is _MISSING else "changed"

    def as_document(self) -> dict[str, object]:
        values = {"before": self.before, "after": self.after}
        return {
            "section": self.section,
            "logicalId": self.logical_id,
            "resourceType": self.resource_type,
            "path": self.path,
            "change": self.kind,
            **{name: value for name, value in values.items() if value is not _MISSING},
        }


def diff(
    context: typer.Context,
    before: Annotated[str, typer.Argument(metavar="VERSION", help="The earlier release.", show_default=False)],
    after: Annotated[str, typer.Argument(metavar="VERSION", help="The later release.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Show what changes in a tenant's stack between two releases.

    The templates of this installation are compared. Whether CloudFormation would
    replace a resource is shown by berth rollout plan.
    """
    here: Invocation = context.obj
    with here.reporting_errors(as_json=as_json):
        changes = list(changes_between(template_of(before), template_of(after)))
        if as_json:
            render.show_json({"from": before, "to": after, "changes": [change.as_document() for change in changes]})
        else:
            _show(before, after, changes)


def template_of(version: str) -> Mapping[str, Any]:
    file = TEMPLATES / f"{version}.json"
    if not re.fullmatch(VERSION_PATTERN, version) or not file.is_file():
        known = sorted((path.stem for path in TEMPLATES.glob("*.json")), key=order)
        raise InvalidRequest(f"There is no template of version {version!a} here. Versions: {', '.join(known)}.")
    template: Mapping[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    return template


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Change]:
    """The changes by section and logical id, resources first. Sections that are text, like the description, are left
    out: every release has another one.
    """
    sections = [name for name in sorted({*before, *after}) if isinstance(before.get(name, after.get(name)), dict)]
    for section in sorted(sections, key=lambda name: name != "Resources"):
        old, new = before.get(section, {}), after.get(section, {})
        for logical_id in sorted({*old, *new}):
            one, other = old.get(logical_id, _MISSING), new.get(logical_id, _MISSING)
            entry = one if other is _MISSING else other
            kind = entry.get("Type") if section == "Resources" and isinstance(entry, dict) else None
            for path, value, changed in _values("", one, other):
                yield Change(section, logical_id, kind, path, value, changed)


def _values(path: str, before: object, after: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            inner = f"{path}.{name}" if path else name
            yield from _values(inner, before.get(name, _MISSING), after.get(name, _MISSING))
    elif before != after:
        yield path, before, after


def _show(before: str, after: str, changes: list[Change]) -> None:
    if not changes:
        render.show_line(f"The stacks of {before} and {after} are the same, except for the description.")
        return
    entry: tuple[str, str] | None = None
    for change in changes:
        if entry != (change.section, change.logical_id):
            entry = change.section, change.logical_id
            kind = change.resource_type or change.section.removesuffix("s")
            whole = f": {change.kind}" if not change.path else ""
            render.show_line(Text.assemble((change.logical_id, "bold"), f" ({kind}){whole}"))
        if change.path:
            render.show_line(f"  {change.path}: {_value(change.before)} -> {_value(change.after)}")
    render.note("Which queues would be replaced is shown by: berth rollout plan")


def _value(value: object) -> str:
    return "none" if value is _MISSING else json.dumps(value)
