"""Packages in directories of their own, compiled, for interpreters that find nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import metadata
from pathlib import Path, PurePosixPath

import botocore
from packaging.requirements import Requirement

from stacks.common.aws_models import write_used_models
from stacks.common.compiling import compile_all
from stacks.common.dependencies import PACKAGES
from stacks.common.function_code import build_code

Run = Callable[[str], str]
"""Runs a statement in a fresh interpreter, and returns its output."""

_CREDENTIALS = {"AWS_ACCESS_KEY_ID": "bench", "AWS_SECRET_ACCESS_KEY": "bench", "AWS_SESSION_TOKEN": "bench"}
"""Lambda sets these variables. Without them botocore would look for credentials in files and on the network."""
_DATA = PurePosixPath("botocore", "data")
_USED_FILES = (".py", ".json", ".gz", ".so", ".pem")


@contextmanager
def as_deployed(settings: Mapping[str, str]) -> Iterator[Run]:
    """The code and the layer of the functions as they are packaged for Lambda."""
    with tempfile.TemporaryDirectory() as built:
        code, layer = Path(built, "code"), Path(built, "layer")
        build_code(code, python=sys.executable)
        layer_of_this_machine(layer)
        compile_all(layer, installed_at="/opt/python", python=sys.executable)
        yield _runs_with(f"{code}:{layer}", settings)


@contextmanager
def complete_boto3(settings: Mapping[str, str]) -> Iterator[Run]:
    """boto3 as pip installs it, with all services of AWS."""
    with tempfile.TemporaryDirectory() as built:
        _copy_packages(_with_dependencies("boto3"), Path(built))
        compile_all(Path(built), installed_at="/opt/python", python=sys.executable)
        yield _runs_with(built, settings)


def layer_of_this_machine(layer: Path) -> None:
    """Copy the layer's packages as installed here: those for Lambda are for another processor and Python."""
    names = {each for package in PACKAGES for each in _with_dependencies(package)}
    _copy_packages(names, layer, left_out=_DATA)
    write_used_models(Path(botocore.__file__).parent / "data", layer / _DATA)


def _copy_packages(names: Iterable[str], target: Path, *, left_out: PurePosixPath | None = None) -> None:
    for name in names:
        for file in metadata.files(name) or ():
            if file.suffix in _USED_FILES and ".." not in file.parts and left_out not in file.parents:
                (target / file).parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file.locate(), target / file)


def _with_dependencies(name: str) -> set[str]:
    required = (Requirement(line) for line in metadata.requires(name) or ())
    used = (each.name for each in required if each.marker is None or each.marker.evaluate({"extra": ""}))
    return {name, *(found for each in used for found in _with_dependencies(each))}


def _runs_with(path: str, settings: Mapping[str, str]) -> Run:
    """There is nothing else on the path, not even the current directory, and no cache to write to."""
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    environment = {**kept, **_CREDENTIALS, **settings, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1"}

    def run(statement: str) -> str:
        command = [sys.executable, "-S", "-P", "-c", statement]
        return subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout

    return run
