"""The findings of a check of a template, by the rule of the contract that is not kept."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

_MAX_TEXT = 300
"""Characters of a place or a text that are kept: a template may have names of any length."""


class Rule(StrEnum):
    """The rules of the contract, in the order in which they are shown."""

    VERSION = "version"
    FORMAT = "format"
    PARAMETERS = "parameters"
    METADATA = "metadata-resource"
    OUTPUTS = "outputs"
    QUEUES = "queues"
    QUEUES_KEPT = "queues-kept"
    TYPES = "resource-types"
    POLICIES = "policies"
    NAMES = "names"
    OTHERS = "others"
    REFERENCES = "references"
    ASSETS = "assets"


@dataclass(frozen=True, slots=True)
class Finding:
    rule: Rule
    place: str
    """The place in the template, such as Resources.Bucket.Properties.BucketName; empty for the template as a whole."""
    problem: str
    advice: str
    """The steps that remove the finding."""

    def __post_init__(self) -> None:
        for name in ("place", "problem", "advice"):
            text = getattr(self, name).strip()
            if len(text) > _MAX_TEXT:
                text = text[: _MAX_TEXT - 1] + "…"
            object.__setattr__(self, name, text)

    def as_document(self) -> dict[str, str]:
        return {"rule": self.rule.value, "place": self.place, "problem": self.problem, "advice": self.advice}

    def __str__(self) -> str:
        return f"{self.place or 'The template'}: {self.problem} {self.advice}"
