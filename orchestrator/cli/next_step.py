"""The next steps with a tenant or a rollout. The command line prints them, and the console draws them as buttons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NextStep:
    """One thing that an operator can do, or cannot do now."""

    verb: str
    label: str
    command: str
    refusal: str | None = None
    """Why it cannot be done now; ``None`` if it can."""
    suggested: bool = True
    """True if the command line names it without being asked."""
    stage: int | None = None
    """The stage of a rollout that it is about. A form is sent for this one only."""

    @property
    def valid(self) -> bool:
        return self.refusal is None

    @property
    def line(self) -> str:
        return f"{self.label}: {self.command}"


def lines(steps: Sequence[NextStep]) -> list[str]:
    """The lines that the command line prints."""
    return [step.line for step in steps if step.valid and step.suggested]
