"""The code of the functions as it is deployed: the handlers and the domain, compiled if an interpreter is found."""

from __future__ import annotations

import shutil
from pathlib import Path

from stacks.common.compiling import compile_all
from stacks.project import CODE, ROOT

PACKAGES = ("lambdas", "orchestrator")
LEFT_OUT = (
    "orchestrator/adapters/sessions.py",
    "orchestrator/api/examples",
    "orchestrator/api/openapi.py",
    "orchestrator/api/openapi_schemas.py",
    "orchestrator/cli",
    "orchestrator/client",
    "orchestrator/console",
    "orchestrator/local",
)
"""Code that only callers of the API run, never a function."""

_INSTALLED_AT = "/var/task"


def module_of(name: str) -> str:
    """The module of a function. Names of functions are unique across all folders."""
    (file,) = (ROOT / "lambdas").glob(f"*/{name}.py")
    return f"lambdas.{file.parent.name}.{name}"


def handler_of(name: str) -> str:
    return f"{module_of(name)}.handler"


def function_names() -> set[str]:
    """The names of all functions, including those that are only deployed with certain settings."""
    return {file.stem for file in (ROOT / "lambdas").glob("*/*.py")} - {"__init__"}


def build_code(code: Path = CODE, *, python: str | None, source: Path = ROOT) -> None:
    """Copy the code from scratch, and compile it with ``python``."""
    shutil.rmtree(code, ignore_errors=True)
    for path, content in _files(source).items():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_bytes(content)
    if python is not None:
        compile_all(code, installed_at=_INSTALLED_AT, python=python)


def is_current(code: Path = CODE, *, source: Path = ROOT) -> bool:
    """Whether the built code was made from the code that is in the checkout now."""
    return _files(code) == _files(source)


def _files(root: Path) -> dict[Path, bytes]:
    left_out = {root / path for path in LEFT_OUT}
    found = (
        path for package in PACKAGES for path in (root / package).rglob("*.py") if not left_out & {path, *path.parents}
    )
    return {path.relative_to(root): path.read_bytes() for path in found}
