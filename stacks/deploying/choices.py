"""What `make deploy` chooses where nobody has set it, because it depends on the account."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    value: int | None
    """``None`` leaves the setting's default."""
    told: str
    """What the operator is told about it."""
