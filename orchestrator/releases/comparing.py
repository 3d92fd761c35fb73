"""Comparing the templates of two releases, property by property.

A comparison says what differs, never what CloudFormation makes of it: only a change set says what is replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

_MISSING = object()


@dataclass(frozen=True, slots=True)
class TemplateChange:
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


def changes_between(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[TemplateChange]:
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
                yield TemplateChange(section, logical_id, kind, path, value, changed)


def _values(path: str, before: object, after: object) -> Iterator[tuple[str, object, object]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in sorted({*before, *after}):
            inner = f"{path}.{name}" if path else name
            yield from _values(inner, before.get(name, _MISSING), after.get(name, _MISSING))
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (one, other) in enumerate(zip(before, after, strict=True)):
            yield from _values(f"{path}[{number}]", one, other)
    elif before != after:
        yield path, before, after
