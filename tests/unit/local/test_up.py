"""`make up` ends with the commands to try next."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from orchestrator.local import __main__ as local

EMULATOR = SimpleNamespace(
    endpoint="http://127.0.0.1:4566", has_crashed=lambda: False, start=lambda: None, log="a log", is_up=lambda: True
)


def printed(monkeypatch: pytest.MonkeyPatch, **context: str) -> str:
    console: Any = Console(width=200, record=True, file=io.StringIO())
    monkeypatch.setattr(local, "_chosen", lambda: EMULATOR)
    monkeypatch.setattr(local, "deploy", lambda *_given, **_settings: None)
    local.up(console, context)
    return str(console.export_text())


def test_the_event_plane_is_among_the_commands_to_try(monkeypatch: pytest.MonkeyPatch) -> None:
    assert ".venv/bin/berth events settings acme --plan free" in printed(monkeypatch)
    assert "events settings acme --plan free --stack Other" in printed(monkeypatch, name="Other")


def test_without_the_event_plane_it_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    text = printed(monkeypatch, events="false")
    assert "berth get-queue acme" in text
    assert "events settings" not in text
