"""Only its owner can access the home and the key in it."""

from __future__ import annotations

import json
import os
import stat
from pathlib import Path

import pytest

from orchestrator.local.emulator import Emulator
from orchestrator.local.errors import LocalError
from orchestrator.local.home import Home


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def key_of(home: Home) -> tuple[str, str]:
    key = home.access_key()
    assert key is not None
    return key.access_key_id, key.secret_access_key


def test_a_new_home_can_be_entered_by_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path / "new")
    assert not home.is_locked()
    assert mode(home.root) == 0o700


def test_the_key_is_made_once_and_can_be_read_by_its_owner_only(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert home.access_key() is None
    home.make_private()
    made = key_of(home)
    home.make_private()
    assert key_of(home) == made
    assert mode(tmp_path / "access-key.json") == 0o600


def test_every_home_has_a_random_key(tmp_path: Path) -> None:
    keys = set()
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        Home(tmp_path / name).make_private()
        keys |= {*key_of(Home(tmp_path / name))}
    assert len(keys) == 4
    assert all(len(part) > 16 for part in keys)


def test_the_secret_is_not_in_the_keys_repr(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make_private()
    _, secret = key_of(home)
    assert secret not in repr(home.access_key())


def test_an_open_home_is_made_private_with_everything_in_it(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("not of the home")
    elsewhere.chmod(0o644)
    root = tmp_path / "home"
    (root / "saved" / "1").mkdir(parents=True)
    tool, state = root / "tool", root / "saved" / "1" / "dynamodb.json"
    tool.write_text("")
    state.write_text("{}")
    (root / "link").symlink_to(elsewhere)
    for path in (root, root / "saved", root / "saved" / "1", tool):
        path.chmod(0o755)
    state.chmod(0o644)

    Home(root).make_private()

    assert mode(root) == 0o700
    assert {mode(path) for path in (root / "saved", root / "saved" / "1", tool)} == {0o700}
    assert mode(state) == 0o600
    assert mode(elsewhere) == 0o644


def test_a_key_that_others_could_read_is_replaced(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.make_private()
    known = key_of(home)
    (tmp_path / "access-key.json").chmod(0o640)
    tmp_path.chmod(0o755)

    home.make_private()

    assert key_of(home) != known
    assert mode(tmp_path / "access-key.json") == 0o600


def test_a_key_that_was_planted_is_replaced(tmp_path: Path) -> None:
    planted = tmp_path / "planted"
    planted.write_text(json.dumps({"access_key_id": "known", "secret_access_key": "known"}))
    planted.chmod(0o600)
    root = tmp_path / "home"
    root.mkdir()
    (root / "access-key.json").symlink_to(planted)

    Home(root).make_private()

    assert "known" not in key_of(Home(root))


def test_in_another_users_home_nothing_is_running_and_nothing_can_be_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "read_text", refuse)
    monkeypatch.setattr(os, "open", refuse)
    assert Home(tmp_path).record() is None
    with pytest.raises(LocalError, match=r"belongs to another user.*BERTH_LOCAL_HOME"):
        Home(tmp_path).take_lock()


def test_a_home_with_state_and_without_an_emulator_is_stopped(tmp_path: Path) -> None:
    home = Home(tmp_path)
    assert not Emulator.is_stopped(tmp_path)
    home.lay_out_state()
    home.save_state()
    assert Emulator.is_stopped(tmp_path)
    home.forget_state()
    assert not Emulator.is_stopped(tmp_path)


@pytest.mark.parametrize("folder", ["saved/1", "running"], ids=["stopped", "crashed or running"])
def test_state_of_an_earlier_version_is_refused_with_the_command_that_deletes_it(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).mkdir(parents=True)
    with pytest.raises(LocalError, match=r"is from another version, and cannot be upgraded\. Delete it: make reset$"):
        Emulator(home=tmp_path).start()
    assert not (tmp_path / "emulator.json").exists(), "nothing was started"
    Emulator(home=tmp_path).forget_state()
    Home(tmp_path).check_format()


def test_state_of_this_version_is_taken_up_again(tmp_path: Path) -> None:
    home = Home(tmp_path)
    home.check_format()
    home.lay_out_state()
    home.save_state()
    home.check_format()
    (tmp_path / "format").write_text("another")
    with pytest.raises(LocalError, match="make reset"):
        home.check_format()
