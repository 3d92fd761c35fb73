"""The layer holds what the functions import, for the platform that they run on."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stacks import dependencies
from stacks.project import ROOT

# Import names that come with each package of the layer.
PROVIDED = {
    "aws-lambda-powertools": {"aws_lambda_powertools"},
    "boto3": {"boto3", "botocore"},
    "jsonschema": {"jsonschema"},
}
NOT_IN_THE_FUNCTIONS = {ROOT / "orchestrator" / "cli", ROOT / "orchestrator" / "local"}


def function_code() -> Iterator[Path]:
    for package in ("lambdas", "orchestrator"):
        for file in (ROOT / package).rglob("*.py"):
            if not NOT_IN_THE_FUNCTIONS & set(file.parents):
                yield file


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that code imports when it runs, not those that it names for the type checker only."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (name.name.split(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0]
        yield from imported(node)


def test_the_layer_has_all_that_the_functions_import() -> None:
    needed = {name for file in function_code() for name in imported(ast.parse(file.read_text(encoding="utf-8")))}
    third_party = needed - sys.stdlib_module_names - {"lambdas", "orchestrator"}
    assert third_party <= set().union(*PROVIDED.values())
    assert set(dependencies.PACKAGES) == set(PROVIDED)


class FakePip:
    """Installs one package, with what depends on the installing machine."""

    def __init__(self, megabytes: int = 1) -> None:
        self.megabytes = megabytes
        self.command: list[str] = []

    def __call__(self, command: list[str], *, check: bool) -> None:
        assert check
        self.command = command
        target = Path(command[command.index("--target") + 1])
        (target / "bin").mkdir(parents=True)
        (target / "bin" / "jsonschema").write_text(f"#!{sys.executable}", encoding="utf-8")
        (target / "jsonschema-1.dist-info").mkdir()
        (target / "jsonschema-1.dist-info" / "RECORD").touch()
        (target / "jsonschema-1.dist-info" / "METADATA").touch()
        with (target / "jsonschema.py").open("wb") as file:
            file.truncate(self.megabytes * 1_000_000)


@pytest.fixture
def pip(monkeypatch: pytest.MonkeyPatch) -> FakePip:
    fake = FakePip()
    monkeypatch.setattr(subprocess, "run", fake)
    return fake


def test_wheels_are_for_lambda_and_pinned(pip: FakePip, tmp_path: Path) -> None:
    dependencies.build_layer(tmp_path / "layer")
    options = " ".join(pip.command)
    assert "--platform manylinux2014_aarch64" in options
    assert "--python-version 3.14" in options
    assert "--only-binary=:all:" in options
    assert f"--constraint {ROOT / 'constraints.txt'}" in options


def test_the_layer_has_nothing_of_the_machine_that_built_it(
    pip: FakePip,  # noqa: ARG001 - installs it
    tmp_path: Path,
) -> None:
    layer = tmp_path / "layer"
    (layer / "python").mkdir(parents=True)
    (layer / "python" / "left_over.py").touch()
    assert dependencies.build_layer(layer) == 1
    assert sorted(str(file.relative_to(layer)) for file in layer.rglob("*") if file.is_file()) == [
        "python/jsonschema-1.dist-info/METADATA",
        "python/jsonschema.py",
    ]


def test_a_layer_that_lambda_would_refuse_is_refused_here(pip: FakePip, tmp_path: Path) -> None:
    pip.megabytes = 251
    with pytest.raises(RuntimeError, match="has 251 MB; Lambda takes less than 250"):
        dependencies.build_layer(tmp_path / "layer")
