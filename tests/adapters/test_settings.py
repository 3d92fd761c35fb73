"""A function's settings: read from its environment, failing fast and by name."""

from __future__ import annotations

import pytest

from orchestrator.adapters.settings import Settings
from orchestrator.errors import MissingSetting

VARIABLES = {name: f"BERTH_{name.upper()}" for name, value in vars(Settings).items() if isinstance(value, property)}


def test_every_setting_is_a_variable_of_its_own() -> None:
    assert {"table", "version", "create_machine"} <= set(VARIABLES)


@pytest.mark.parametrize("name", VARIABLES)
def test_a_setting_is_read_from_its_variable(name: str) -> None:
    assert getattr(Settings({VARIABLES[name]: "value"}), name) == "value"


@pytest.mark.parametrize("environment", [{}, None], ids=["unset", "empty"])
@pytest.mark.parametrize("name", VARIABLES)
def test_a_missing_setting_is_named(name: str, environment: dict[str, str] | None) -> None:
    settings = Settings({VARIABLES[name]: ""} if environment is None else environment)
    with pytest.raises(MissingSetting, match=VARIABLES[name]):
        getattr(settings, name)


def test_by_default_it_is_the_environment_of_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BERTH_TABLE", "from the environment")
    assert Settings().table == "from the environment"
