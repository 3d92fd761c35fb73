"""Which browser the tests run in. Without one there is a sentence, never a skip."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.browser import chromium
from tests.browser.chromium import NO_BROWSER, VARIABLE, NoBrowser, launch_options


def test_the_variable_names_a_browser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "a-browser"
    program.touch()
    monkeypatch.setenv(VARIABLE, str(program))
    assert launch_options(tmp_path)["executable_path"] == str(program)


def test_a_browser_that_is_named_and_not_there_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "nothing"))
    with pytest.raises(NoBrowser, match="there is no such program"):
        launch_options(tmp_path)


def test_without_any_browser_the_error_says_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(chromium, "UNPACKED", tmp_path)
    monkeypatch.setattr(chromium, "_is_installed", lambda _channel: False)
    with pytest.raises(NoBrowser) as raised:
        launch_options(tmp_path)
    assert str(raised.value) == NO_BROWSER


def test_the_browser_makes_no_connections_of_its_own(tmp_path: Path) -> None:
    arguments = launch_options(tmp_path)["args"]
    assert {"--disable-background-networking", "--disable-component-update", "--disable-sync"} <= set(arguments)
