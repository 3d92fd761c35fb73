"""The functions' own code, as they get it: the handlers and the domain they call, compiled if that is possible here."""

from __future__ import annotations

import shutil
from pathlib import Path

from stacks.compiling import compile_all
from stacks.project import CODE, ROOT

PACKAGES = ("lambdas", "orchestrator")
LEFT_OUT = ("orchestrator/cli", "orchestrator/local")
"""What only runs on an operator's machine."""

_INSTALLED_AT = "/var/task"


def build_code(code: Path = CODE, *, python: str | None, source: Path = ROOT) -> None:
    """Copy the code afresh, and compile it with that interpreter."""
    shutil.rmtree(code, ignore_errors=True)
    for path, content in _files(source).items():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_bytes(content)
    if python is not None:
        compile_all(code, installed_at=_INSTALLED_AT, python=python)


def is_current(code: Path = CODE, *, source: Path = ROOT) -> bool:
    """Whether it was built from what is in the checkout now."""
    return _files(code) == _files(source)


def _files(root: Path) -> dict[Path, bytes]:
    left_out = {root / path for path in LEFT_OUT}
    found = (
        path for package in PACKAGES for path in (root / package).rglob("*.py") if not left_out & set(path.parents)
    )
    return {path.relative_to(root): path.read_bytes() for path in found}
