"""Helpers to plant a bug: to replace something in the product, or in a fake, that keeps a promise."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Bug = Callable[[pytest.MonkeyPatch], None]


def replacing(name: str, replacement: object, *owners: object) -> Bug:
    """Replace what each of the owners, modules or classes, has by that name."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        for owner in owners:
            monkeypatch.setattr(owner, name, replacement)

    return plant


def wrapping(name: str, *owners: object) -> Callable[[Callable[..., Any]], Bug]:
    """Replace a function by the decorated one, whose first argument is the original."""

    def decorate(wrapper: Callable[..., Any]) -> Bug:
        def plant(monkeypatch: pytest.MonkeyPatch) -> None:
            original = getattr(owners[0], name)
            replacing(name, lambda *args, **named: wrapper(original, *args, **named), *owners)(monkeypatch)

        return plant

    return decorate


def all_of(*bugs: Bug) -> Bug:
    """Plant several bugs together."""

    def plant(monkeypatch: pytest.MonkeyPatch) -> None:
        for bug in bugs:
            bug(monkeypatch)

    return plant


def always(answer: object) -> Callable[..., object]:
    return lambda *_, **__: answer
