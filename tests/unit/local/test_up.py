"""`make up` ends with the commands to try next, `make status` names the APIs, `make diff` the control plane."""

from __future__ import annotations

import io
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from orchestrator.local import __main__ as local
from orchestrator.local.errors import LocalError

EMULATOR = SimpleNamespace(
    endpoint="http://127.0.0.1:4566",
    has_crashed=lambda: False,
    start=lambda: None,
    log="a log",
    is_up=lambda: True,
    api_url=lambda deployed: f"http://{deployed}.execute-api.localhost:4566",
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


def test_the_status_names_the_address_of_each_api(monkeypatch: pytest.MonkeyPatch) -> None:
    console: Any = Console(width=200, record=True, file=io.StringIO())
    monkeypatch.setattr(local, "Emulator", SimpleNamespace(running=lambda: EMULATOR))
    monkeypatch.setattr(local, "is_deployed", lambda *_: True)
    monkeypatch.setattr(local, "outputs", lambda *_: {"ApiUrl": "abc"})
    monkeypatch.setattr(local, "events_outputs", lambda *_: {"EventsApiUrl": "def"})
    local.status(console)
    assert console.export_text().splitlines()[1:3] == [
        "BERTH_API_URL is http://abc.execute-api.localhost:4566",
        "BERTH_EVENTS_API_URL is http://def.execute-api.localhost:4566",
    ]


def test_a_comparison_names_the_control_plane_and_takes_the_settings_of_up(monkeypatch: pytest.MonkeyPatch) -> None:
    console: Any = Console(width=200, record=True, file=io.StringIO())
    compared = []
    monkeypatch.setattr(local, "Emulator", SimpleNamespace(running=lambda: EMULATOR))
    monkeypatch.setattr(local, "compare", lambda emulator, **settings: compared.append((emulator, settings)))
    local.diff(console, {"name": "Other", "maxTenants": "7"})
    assert compared == [(EMULATOR, {"name": "Other", "maxTenants": "7"})]
    assert console.export_text().splitlines() == [
        "Comparing this checkout with Other on the emulator at http://127.0.0.1:4566:",
        "Nothing was deployed. `make up` with the same CDK_ARGS deploys this.",
    ]


def test_there_is_nothing_to_compare_with_while_the_control_plane_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "Emulator", SimpleNamespace(running=lambda: None))
    with pytest.raises(LocalError, match=r"is not running\. Start it: make up"):
        local.diff(Console(file=io.StringIO()), {})
