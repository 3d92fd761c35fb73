"""The second argument of every handler, as far as handlers use it."""

from __future__ import annotations

from typing import Protocol


class LambdaContext(Protocol):
    def get_remaining_time_in_millis(self) -> int:
        """The time until Lambda ends the call."""
        ...
