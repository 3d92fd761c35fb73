"""The functions' own code, as they get it: the handlers and the domain they call, compiled if that is possible here."""

from __future__ import annotations

import shutil
from pathlib import Path

from stacks.common.compiling import compile_all
from stacks.project import CODE, ROOT

PACKAGES = ("lambdas", "orchestrator")
LEFT_OUT = ("orchestrator/cli", "orchestrator/local")
"""What only runs on an operator's machine."""

_INSTALLED_AT = "/var/task"
_FORWARDS = """from {module} import handler

__all__ = ["handler"]
"""
"""Up to 0.7.0 all functions were in one folder. Lambda gets new code and the new name of its handler one after the
other, and is called in between: by the old name. To be removed with the release after this one."""


def module_of(name: str) -> str:
    """The module of the function of that name. No two functions have the same, whichever folder they are in."""
    (file,) = (ROOT / "lambdas").glob(f"*/{name}.py")
    return f"lambdas.{file.parent.name}.{name}"


def handler_of(name: str) -> str:
    return f"{module_of(name)}.handler"


def function_names() -> set[str]:
    """Of every function, also of those that settings leave out."""
    return {file.stem for file in (ROOT / "lambdas").glob("*/*.py")} - {"__init__"}


def build_code(code: Path = CODE, *, python: str | None, source: Path = ROOT) -> None:
    """Copy the code afresh, and compile it with that interpreter."""
    shutil.rmtree(code, ignore_errors=True)
    for path, content in _files(source).items():
        (code / path).parent.mkdir(parents=True, exist_ok=True)
        (code / path).write_bytes(content)
    for name in function_names() if source == ROOT else ():
        (code / "lambdas" / f"{name}.py").write_text(_FORWARDS.format(module=module_of(name)))
    if python is not None:
        compile_all(code, installed_at=_INSTALLED_AT, python=python)


def is_current(code: Path = CODE, *, source: Path = ROOT) -> bool:
    """Whether it was built from what is in the checkout now."""
    forwards = {Path("lambdas") / f"{name}.py" for name in function_names()}
    return {path: content for path, content in _files(code).items() if path not in forwards} == _files(source)


def _files(root: Path) -> dict[Path, bytes]:
    left_out = {root / path for path in LEFT_OUT}
    found = (
        path for package in PACKAGES for path in (root / package).rglob("*.py") if not left_out & set(path.parents)
    )
    return {path.relative_to(root): path.read_bytes() for path in found}
