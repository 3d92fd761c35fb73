"""`make install`, with programs in place of Python, npm and flock that do next to nothing."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from stacks.project import ROOT

PREREQUISITES = (
    *("pyproject.toml", "constraints.txt", "package.json", "package-lock.json"),
    *("tests/browser/npm/package.json", "tests/browser/npm/package-lock.json"),
)
MAKES_ENVIRONMENTS = """\
#!/bin/sh
if [ "$2" = venv ]; then
    mkdir -p .venv/bin
    printf '#!/bin/sh\\ntest -z "$BROKEN" && echo run >> runs\\n' > .venv/bin/python
    cp .venv/bin/python .venv/bin/npm
    cp .venv/bin/python .venv/bin/node
    chmod +x .venv/bin/python .venv/bin/npm .venv/bin/node
fi
"""
FREE = '#!/bin/sh\nshift 2\nexec "$@"\n'
TAKEN = "#!/bin/sh\nexit 1\n"


@dataclass(frozen=True)
class Checkout:
    root: Path

    def program(self, name: str, script: str) -> Path:
        file = self.root / "programs" / name
        file.write_text(script)
        file.chmod(0o755)
        return file

    def install(self, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.root / 'programs'}{os.pathsep}{os.environ['PATH']}"
        python = self.program("python-of-this-machine", MAKES_ENVIRONMENTS)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        return subprocess.run(
            ["make", "install", f"PYTHON={python}"],
            cwd=self.root,
            env={**kept, "PATH": path, **environment},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    @property
    def is_installed(self) -> bool:
        return (self.root / ".venv" / ".installed").exists()

    @property
    def runs(self) -> int:
        return (self.root / "runs").read_text().count("run")


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    (tmp_path / "Makefile").write_text((ROOT / "Makefile").read_text(encoding="utf-8"))
    (tmp_path / "programs").mkdir()
    (tmp_path / "tests" / "browser" / "npm").mkdir(parents=True)
    for name in PREREQUISITES:
        (tmp_path / name).touch()
    checkout = Checkout(tmp_path)
    checkout.program("flock", FREE)
    return checkout


def test_an_installed_environment_is_not_installed_again(checkout: Checkout) -> None:
    for _ in range(2):
        assert checkout.install().returncode == 0
        assert (checkout.is_installed, checkout.runs) == (True, 4)


def test_an_environment_of_an_install_that_was_interrupted_is_removed_first(checkout: Checkout) -> None:
    (checkout.root / ".venv").mkdir()
    half = checkout.root / ".venv" / "half-a-package"
    half.touch()
    assert checkout.install().returncode == 0
    assert (checkout.is_installed, half.exists()) == (True, False)


def test_an_install_that_fails_leaves_no_environment_that_counts_as_complete(checkout: Checkout) -> None:
    checkout.install()
    later = (checkout.root / ".venv" / ".installed").stat().st_mtime + 10
    os.utime(checkout.root / "pyproject.toml", (later, later))
    assert checkout.install(BROKEN="yes").returncode != 0
    assert not checkout.is_installed
    os.utime(checkout.root / "pyproject.toml", (0, 0))
    assert checkout.install().returncode == 0
    assert checkout.is_installed


def test_a_second_install_at_a_time_is_refused_and_touches_nothing(checkout: Checkout) -> None:
    checkout.program("flock", TAKEN)
    (checkout.root / ".venv").mkdir()
    half = checkout.root / ".venv" / "half-a-package"
    half.touch()
    refused = checkout.install()
    assert refused.returncode != 0
    assert "Another make is installing the environment into .venv. Try again when it has ended." in refused.stderr
    assert (checkout.is_installed, half.exists()) == (False, True)
