"""The messages of a tenant's queue, which a delete waits for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Messages:
    """The number of messages in a queue, as SQS estimates it."""

    visible: int
    in_flight: int
    delayed: int

    @property
    def total(self) -> int:
        return self.visible + self.in_flight + self.delayed

    def __str__(self) -> str:
        return f"{self.visible} visible, {self.in_flight} in flight, {self.delayed} delayed"
