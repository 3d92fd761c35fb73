"""Builds the wheel: ``[tool.berth.wheel]`` in pyproject.toml says which folders it has, and under which names.

In the checkout, modules import each other as ``orchestrator...`` and ``stacks...``. Those names would collide with the
folders of a project that installs Berth, so in the wheel the same modules are below ``berth``.
An editable installation, which the checkout has, keeps the names of the checkout.

Setuptools loads this file by itself, before Berth is installed. So it imports nothing of Berth.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
from collections.abc import Iterable
from pathlib import Path

from setuptools.command.build_py import build_py  # type: ignore[import-untyped]
from setuptools.errors import SetupError  # type: ignore[import-untyped]

PACKAGE = "berth"
_MOVED = ("orchestrator", "stacks")
"""Names of the checkout that have a place below ``berth`` in the wheel."""
_FROM = re.compile(rf"^(\s*from )({'|'.join(_MOVED)})\b", re.MULTILINE)
_IMPORT = re.compile(rf"^\s*import ({'|'.join(_MOVED)})\b.*$", re.MULTILINE)
_SUFFIXES = frozenset({".css", ".html", ".js", ".json", ".py", ".svg", ".txt", ".typed"})


class ImportNotMoved(Exception):
    """An import that cannot be moved below ``berth`` by changing its first name."""


class NotTracked(SetupError):  # type: ignore[misc]
    """A file that is no part of the sources. Setuptools prints the message of such an error without a traceback."""


def in_the_wheel(source: str) -> str:
    """The source of a module, with imports of Berth's own modules below ``berth``."""
    if found := _IMPORT.search(source):
        raise ImportNotMoved(f"Write this as 'from ... import ...', so that it works in the wheel: {found[0].strip()}")
    return _FROM.sub(rf"\1{PACKAGE}.\2", source)


def files_of(root: Path) -> dict[Path, Path]:
    """The files of the wheel and the files of the checkout that they are made from, both relative."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"][PACKAGE]["wheel"]
    found: dict[Path, Path] = {}
    for source, target in settings.items():
        if (root / source).is_file():
            found[Path(target)] = Path(source)
            continue
        for file in sorted((root / source).rglob("*")):
            if file.suffix in _SUFFIXES:
                found[target / file.relative_to(root / source)] = file.relative_to(root)
    return found


def check_tracked(root: Path, sources: Iterable[Path]) -> None:
    """Raises :class:`NotTracked` if git does not know one of these files, which are relative to the checkout.

    A file that somebody has left in a folder would be installed everywhere, although nobody has reviewed it. Sources
    without git, such as those of a source distribution, are taken as they are.
    """
    if not (root / ".git").exists():
        return
    try:
        command = ["git", "-C", str(root), "ls-files", "-z"]
        listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout  # noqa: S603 (no input)
    except (OSError, subprocess.CalledProcessError) as error:
        why = str(getattr(error, "stderr", "") or error).strip()
        raise NotTracked(f"git could not say which files belong to the wheel: {why}") from None
    tracked = set(listed.split("\0"))
    if unknown := [str(source) for source in sources if source.as_posix() not in tracked]:
        raise NotTracked(
            f"The wheel would have files that git does not track: {', '.join(sorted(unknown))}. Add them by git add, "
            "or remove them, and build the wheel again."
        )


class BuildPy(build_py):  # type: ignore[misc]
    """The build step that setuptools runs instead of copying the packages of the checkout."""

    def run(self) -> None:
        if self.editable_mode:
            return
        files = files_of(Path())
        check_tracked(Path(), files.values())
        # A build before this one may have left modules that are gone since.
        shutil.rmtree(self.build_lib, ignore_errors=True)
        for target, source in files.items():
            file = self.build_lib / target
            file.parent.mkdir(parents=True, exist_ok=True)
            text = source.read_text(encoding="utf-8")
            file.write_text(in_the_wheel(text) if source.suffix == ".py" else text, encoding="utf-8")

    def get_source_files(self) -> list[str]:
        """The files that a source distribution needs, so that the wheel can be built from it."""
        building = Path("stacks/wheel")
        return sorted({str(source) for source in (*files_of(Path()).values(), *building.glob("*.py"))})

    def get_outputs(self, include_bytecode: bool = True) -> list[str]:  # noqa: ARG002 - setuptools' signature
        return [] if self.editable_mode else [str(self.build_lib / target) for target in files_of(Path())]
