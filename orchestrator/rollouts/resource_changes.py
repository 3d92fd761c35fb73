"""The changes of resources that a dry run has found. A rollout counts how many tenants have the same text."""

from __future__ import annotations

import re
from dataclasses import dataclass

from orchestrator.tenants.stack_ports import Effect

_VERBS = {
    "adds": Effect.ADD,
    "changes": Effect.CHANGE,
    "may replace": Effect.MAY_REPLACE,
    "replaces": Effect.REPLACE,
    "removes": Effect.REMOVE,
}
_TEXTS = {effect: verb for verb, effect in _VERBS.items()}
_TEXT = re.compile(rf"({'|'.join(_VERBS)}) (\w+) \(([\w:]+)\)")


@dataclass(frozen=True, slots=True)
class ResourceChange:
    effect: Effect
    """The effect as the change set says it. It is never derived from a template."""
    resource: str
    resource_type: str

    def __str__(self) -> str:
        return f"{_TEXTS[self.effect]} {self.resource} ({self.resource_type})"

    @classmethod
    def parse(cls, text: str) -> ResourceChange | None:
        """``None`` if the text is about something else, such as the stack as a whole."""
        match = _TEXT.fullmatch(text)
        return cls(_VERBS[match[1]], match[2], match[3]) if match else None
