"""Notes which calls a use case makes of a fake, for tests that count them."""

from __future__ import annotations

from typing import Any


class Noting:
    """Behaves like the fake, and notes the names of its methods that are called, in order."""

    def __init__(self, fake: Any) -> None:
        self._fake = fake
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._fake, name)
        if not callable(found):
            return found

        def noted(*args: Any, **named: Any) -> Any:
            self.called.append(name)
            return found(*args, **named)

        return noted
