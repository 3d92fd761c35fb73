"""The order of versions, and the two versions of an installation."""

from __future__ import annotations

from importlib import metadata
from itertools import combinations, product
from pathlib import Path

import pytest

from orchestrator.common import own_versions
from orchestrator.common.own_versions import berth_version
from orchestrator.common.versions import is_older, is_older_berth

IN_ORDER = (
    *("0.9.0", "0.9.1.dev0", "0.9.1", "0.10.0.dev0", "0.10.0.dev1", "0.10.0.dev10", "0.10.0a1.dev1", "0.10.0a1"),
    *("0.10.0a2", "0.10.0b1", "0.10.0rc1.dev2", "0.10.0rc1", "0.10.0", "0.10.1", "1.0.0.dev0", "1.0.0", "10.0.0"),
)
NO_VERSIONS = ("", "unknown", "1.0", "1.0.0-beta", "v1.0.0", "1.0.0.dev", "1.0.0 ")


@pytest.mark.parametrize(("older", "newer"), list(combinations(IN_ORDER, 2)))
def test_versions_of_berth_have_the_order_of_pep_440(older: str, newer: str) -> None:
    assert is_older_berth(older, than=newer)
    assert not is_older_berth(newer, than=older)
    assert not is_older_berth(newer, than=newer)


@pytest.mark.parametrize(("one", "other"), list(product(NO_VERSIONS, ("1.0.0", "unknown"))))
def test_a_text_that_is_no_version_is_neither_older_nor_newer(one: str, other: str) -> None:
    for older, newer in ((one, other), (other, one)):
        assert not is_older_berth(older, than=newer)
        assert not is_older(older, than=newer)


def test_the_version_of_berth_has_a_place_in_the_order() -> None:
    """Otherwise `make deploy` would not say that a deployment goes back."""
    assert is_older_berth(berth_version(), than="9999.0.0")


def test_without_a_checkout_the_version_is_that_of_the_installed_wheel(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_versions, "PROJECT", tmp_path / "pyproject.toml")
    assert berth_version() == metadata.version("berth")
