"""Compares the import of a function's module in a cold start with the minimum: boto3 and one DynamoDB client."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path

from bench.measure import Result, interleaved
from stacks.common.compiling import compile_all
from stacks.common.dependencies import REQUIREMENTS
from stacks.common.function_code import build_code

_BARE_IMPORT = "import boto3; boto3.client('dynamodb')"


def cold_import_of(name: str, module: str, settings: Mapping[str, str], rounds: int) -> list[Result]:
    """The import time of the module, compared with boto3 and one DynamoDB client."""
    with _packaged(settings) as run:
        statement = f"import {module}"
        run(statement)  # Loads the files into the operating system's cache.
        ours, bare = interleaved(lambda: run(statement), lambda: run(_BARE_IMPORT), rounds)
    return [
        Result(f"{name} cold import / boto3 with one DynamoDB client", round(ours / bare, 3), "x", "<= 1.15"),
        Result(f"{name} cold import, p50", round(ours, 1), "ms", ""),
    ]


@contextmanager
def _packaged(settings: Mapping[str, str]) -> Iterator[Callable[[str], None]]:
    """Runs a statement in a fresh interpreter, with the code and the layer as they are packaged for Lambda.

    Nothing else is on the path, and there is no cache to write to.
    """
    with tempfile.TemporaryDirectory() as built:
        code, layer = Path(built, "code"), Path(built, "layer")
        build_code(code, python=sys.executable)
        _layer_of_this_machine(layer)
        kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
        environment = {**kept, **settings, "PYTHONPATH": f"{code}:{layer}", "PYTHONDONTWRITEBYTECODE": "1"}
        yield lambda statement: _run(statement, environment)


def _run(statement: str, environment: Mapping[str, str]) -> None:
    subprocess.run([sys.executable, "-S", "-c", statement], env=environment, check=True)


def _layer_of_this_machine(layer: Path) -> None:
    """Copy the layer's packages as installed here: those for Lambda are for another processor and Python."""
    for line in REQUIREMENTS.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            for file in metadata.files(line.partition("==")[0]) or ():
                if file.suffix in (".py", ".json", ".gz", ".so", ".pem") and ".." not in file.parts:
                    (layer / file).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(file.locate(), layer / file)
    compile_all(layer, installed_at="/opt/python", python=sys.executable)
