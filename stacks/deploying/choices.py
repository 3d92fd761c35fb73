"""The result of choosing a setting by the account's quotas."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Choice:
    value: int | None
    """``None`` keeps the default of the setting."""
    message: str
    """The text that is printed for the operator."""
