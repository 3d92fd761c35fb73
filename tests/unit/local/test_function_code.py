"""The code of functions is unpacked once on the emulator, for all of their processes."""

from __future__ import annotations

import shutil
import tempfile
import zipfile
from pathlib import Path

import pytest

from orchestrator.local.function_code import SharedCode


@pytest.fixture(autouse=True)
def _temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


def unpacked(tmp_path: Path, process: str, **files: str) -> Path:
    """What the emulator does for a process: its archive, and an empty folder into which it unpacks the archive."""
    home = tmp_path / process
    folder = home / "code"
    folder.mkdir(parents=True)
    with zipfile.ZipFile(home / "code.zip", "w") as archive:
        for name, text in files.items():
            # All archives of the CDK have the same times.
            archive.writestr(zipfile.ZipInfo(f"{name}.py", (1980, 1, 1, 0, 0, 0)), text)
    with SharedCode(home / "code.zip") as archive:
        archive.extractall(str(folder))
    return folder


def test_processes_with_the_same_code_share_it_so_that_it_is_compiled_once(tmp_path: Path) -> None:
    first, second = (unpacked(tmp_path, name, handler="1") for name in ("first", "second"))
    assert (first / "handler.py").read_text() == (second / "handler.py").read_text() == "1"
    assert (first / "handler.py").resolve() == (second / "handler.py").resolve()


def test_each_process_works_in_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = (unpacked(tmp_path, name, handler="1") for name in ("first", "second"))
    assert (first.resolve(), second.resolve()) == (tmp_path / "first" / "code", tmp_path / "second" / "code")


def test_other_code_has_a_folder_of_its_own(tmp_path: Path) -> None:
    before, after = unpacked(tmp_path, "before", handler="1"), unpacked(tmp_path, "after", handler="2")
    assert ((before / "handler.py").read_text(), (after / "handler.py").read_text()) == ("1", "2")


def test_the_end_of_one_process_takes_nothing_from_the_others(tmp_path: Path) -> None:
    first, second = (unpacked(tmp_path, name, handler="1") for name in ("first", "second"))
    shutil.rmtree(first.parent)
    assert (second / "handler.py").read_text() == "1"
