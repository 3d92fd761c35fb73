"""Deployments onto the emulator that are refused before they begin."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.local.deployment import deploy
from orchestrator.local.emulator import Emulator
from orchestrator.local.errors import LocalError


def test_two_control_planes_whose_names_differ_only_by_case_are_not_deployed_side_by_side(tmp_path: Path) -> None:
    (tmp_path / "outputs-Berth.json").write_text("{}")
    with pytest.raises(
        LocalError, match="The name berth differs only by case from that of the existing control plane Berth"
    ):
        deploy(Emulator(port=1, home=tmp_path), lambda _step: None, name="berth")
