"""The processes of functions on the emulator are forked, and behave like new interpreters."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.local.function_processes import ForkedProcess, ForkServer

_SCRIPT = """
import json, os, sys

def about():
    return {"folder": os.getcwd(), "environment": dict(os.environ), "script": __file__, "name": __name__,
            "path": sys.path[0], "ours": "orchestrator" in sys.modules, "botocore": "botocore" in sys.modules}

print(json.dumps(about()), flush=True)
for line in sys.stdin:
    if line.startswith("fail"):
        raise RuntimeError("It failed.")
    print(line.strip().upper(), flush=True)
sys.stderr.write("ended\\n")
"""
SECONDS = 30


Start = Callable[..., tuple[ForkedProcess, dict[str, Any]]]


@pytest.fixture(scope="module")
def forks() -> Iterator[ForkServer]:
    server = ForkServer()
    yield server
    server.close()


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "_worker.py"
    path.write_text(_SCRIPT)
    return path


@pytest.fixture
def start(forks: ForkServer, script: Path) -> Iterator[Start]:
    """Start a process, and return it with what it says about itself."""
    started = []

    def start_one(server: ForkServer = forks, **environment: str) -> tuple[ForkedProcess, dict[str, Any]]:
        process = server.start(str(script), folder=script.parent, environment=environment)
        started.append(process)
        return process, json.loads(process.stdout.readline())

    yield start_one
    for process in started:
        process.kill()
        for stream in (process.stdin, process.stdout, process.stderr):
            stream.close()


def test_a_process_runs_the_script_in_its_folder_with_its_own_environment(start: Start, script: Path) -> None:
    _, about = start(TENANT="acme")
    assert about["folder"] == str(script.parent)
    assert about["environment"] == {"TENANT": "acme"}
    assert (about["script"], about["name"], about["path"]) == (str(script), "__main__", str(script.parent))


def test_libraries_are_imported_before_and_the_code_of_the_function_is_not(start: Start) -> None:
    _, about = start()
    assert about["botocore"]
    assert not about["ours"]


def test_processes_answer_and_end_when_their_input_ends(start: Start) -> None:
    (first, _), (second, _) = start(), start()
    for process, word in ((first, "acme"), (second, "globex")):
        process.stdin.write(f"{word}\n")
        assert process.stdout.readline() == f"{word.upper()}\n"
        assert process.poll() is None
    first.stdin.close()
    assert first.stderr.read() == "ended\n"
    assert first.wait(SECONDS) == 0
    assert first.poll() is not None
    assert second.poll() is None


def test_a_process_that_fails_says_why_and_ends(start: Start) -> None:
    process, _ = start()
    process.stdin.write("fail\n")
    assert "RuntimeError: It failed." in process.stderr.read()
    process.wait(SECONDS)


@pytest.mark.parametrize("way", ["terminate", "kill"])
def test_a_process_can_be_ended_twice(start: Start, way: str) -> None:
    process, _ = start()
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0)
    getattr(process, way)()
    process.wait(SECONDS)
    getattr(process, way)()


def test_without_the_fork_server_the_error_says_what_to_do(start: Start) -> None:
    server = ForkServer()
    start(server)
    server.close()
    with pytest.raises(RuntimeError, match="Restart the emulator"):
        start(server)


def test_functions_with_layers_get_an_interpreter_of_their_own(tmp_path: Path) -> None:
    """Ministack is patched in a process of its own, because this one must keep it as it is."""
    program = (
        "import subprocess, sys\n"
        "from orchestrator.local.function_processes import ForkedProcess, fork_function_processes\n"
        "fork_function_processes()\n"
        "from ministack.core import lambda_runtime\n"
        "popen = lambda_runtime.subprocess.Popen\n"
        "script = sys.argv[1]\n"
        "for environment in ({}, {'_LAMBDA_LAYERS_DIRS': '/layer'}):\n"
        "    process = popen([sys.executable, script], cwd='.', env=environment, stdin=subprocess.PIPE)\n"
        "    process.stdin.close()\n"
        "    process.wait(timeout=30)\n"
        "    print(isinstance(process, ForkedProcess))\n"
    )
    script = tmp_path / "_worker.py"
    script.write_text("pass\n")
    done = subprocess.run([sys.executable, "-c", program, script], capture_output=True, text=True, check=False)
    assert done.stdout.split() == ["True", "False"], done.stderr
