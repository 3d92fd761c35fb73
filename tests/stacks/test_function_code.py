"""The functions get only the code that they run, and get it compiled: Lambda cannot store compiled code itself."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

import pytest

from stacks.common import compiling
from stacks.common.compiling import INTERPRETER, runtime_python
from stacks.common.function_code import build_code, is_current

THIS_VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
ANOTHER_VERSION = "2.7"
UNCHECKED_HASH = (1).to_bytes(4, "little")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Path:
    built = tmp_path_factory.mktemp("built") / "code"
    build_code(built, python=sys.executable)
    return built


def contents(directory: Path) -> dict[str, bytes]:
    return {str(path.relative_to(directory)): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_the_code_has_the_handlers_and_the_domain_but_no_command_line_and_no_emulator(code: Path) -> None:
    assert {entry.name for entry in code.iterdir()} == {"lambdas", "orchestrator"}
    assert (code / "lambdas" / "api" / "get_queue.py").is_file()
    assert (code / "orchestrator" / "composition.py").is_file()
    assert not (code / "orchestrator" / "cli").exists()
    assert not (code / "orchestrator" / "local").exists()


def test_every_module_is_compiled_and_not_compared_with_its_source_at_run_time(code: Path) -> None:
    modules = list(code.rglob("*.py"))
    assert modules
    for module in modules:
        compiled = Path(importlib.util.cache_from_source(str(module))).read_bytes()
        assert compiled[:4] == importlib.util.MAGIC_NUMBER
        assert compiled[4:8] == UNCHECKED_HASH, f"{module} would be compared with its source at every start"


def test_tracebacks_show_the_paths_on_lambda(code: Path) -> None:
    compiled = Path(importlib.util.cache_from_source(str(code / "lambdas" / "tenants" / "begin.py"))).read_bytes()
    assert b"/var/task/lambdas/tenants/begin.py" in compiled
    assert str(code).encode() not in compiled


def test_building_again_gives_the_same_bytes(code: Path, tmp_path: Path) -> None:
    build_code(tmp_path / "code", python=sys.executable)
    assert contents(tmp_path / "code") == contents(code)


def test_code_that_was_built_from_other_sources_is_detected(code: Path, tmp_path: Path) -> None:
    assert is_current(code)
    assert not is_current(tmp_path)
    build_code(tmp_path / "code", python=None)
    assert is_current(tmp_path / "code")
    (tmp_path / "code" / "lambdas" / "tenants" / "begin.py").write_text("# as it was yesterday")
    assert not is_current(tmp_path / "code")


def test_an_interpreter_of_the_runtimes_version_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER, raising=False)
    monkeypatch.setattr(compiling, "PYTHON_VERSION", THIS_VERSION)
    assert runtime_python() == sys.executable


def test_an_interpreter_of_another_version_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(INTERPRETER, raising=False)
    monkeypatch.setattr(compiling, "PYTHON_VERSION", ANOTHER_VERSION)
    monkeypatch.setenv("PATH", "")
    assert runtime_python() is None


@pytest.mark.parametrize("named", [sys.executable, "/nowhere/python"])
def test_a_named_interpreter_of_another_version_is_refused(monkeypatch: pytest.MonkeyPatch, named: str) -> None:
    monkeypatch.setattr(compiling, "PYTHON_VERSION", ANOTHER_VERSION)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv(INTERPRETER, named)
    with pytest.raises(RuntimeError, match=f"is not Python {ANOTHER_VERSION}"):
        runtime_python()
