"""The layer has the packages that the functions import, built for Lambda's platform."""

from __future__ import annotations

import ast
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import botocore
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from stacks.common import dependencies
from stacks.common.aws_models import OPERATIONS
from stacks.common.function_code import LEFT_OUT
from stacks.project import PYTHON_VERSION, ROOT

REQUIREMENT = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^ ]+) --hash=sha256:(?P<digest>[0-9a-f]{64})")

# Import names that come with each package of the layer.
PROVIDED = {
    "aws-lambda-powertools": {"aws_lambda_powertools"},
    "botocore": {"botocore"},
    "jsonschema": {"jsonschema"},
    "msgspec": {"msgspec"},
}
NOT_IN_THE_FUNCTIONS = {ROOT / path for path in LEFT_OUT}


def function_code() -> Iterator[Path]:
    for package in ("lambdas", "orchestrator"):
        for file in (ROOT / package).rglob("*.py"):
            if not NOT_IN_THE_FUNCTIONS & {file, *file.parents}:
                yield file


def imported(tree: ast.AST) -> Iterator[str]:
    """The packages that code imports at run time, without those that are only for the type checker."""
    for node in ast.iter_child_nodes(tree):
        match node:
            case ast.If(test=ast.Name(id="TYPE_CHECKING")):
                continue
            case ast.Import(names=names):
                yield from (name.name.split(".")[0] for name in names)
            case ast.ImportFrom(module=str(module), level=0):
                yield module.split(".")[0]
        yield from imported(node)


def test_the_layer_has_every_package_that_the_functions_import() -> None:
    needed = {name for file in function_code() for name in imported(ast.parse(file.read_text(encoding="utf-8")))}
    third_party = needed - sys.stdlib_module_names - {"lambdas", "orchestrator"}
    assert third_party <= set().union(*PROVIDED.values())
    assert set(dependencies.PACKAGES) == set(PROVIDED)


BOTOCORE_DATA = Path(botocore.__file__).parent / "data"


def _other_services(folder: str, names: list[str]) -> set[str]:
    """Most services of AWS, so that not all are copied. One is left that no function uses."""
    kept = {*OPERATIONS, "sns"}
    return {name for name in names if Path(folder, name).is_dir() and name not in kept and folder == str(BOTOCORE_DATA)}


class FakePip:
    """Installs botocore's data and one package, including files that depend on the installing machine."""

    def __init__(self, megabytes: int = 1) -> None:
        self.megabytes = megabytes
        self.command: list[str] = []

    def __call__(self, command: list[str], *, check: bool) -> None:
        assert check
        self.command = command
        target = Path(command[command.index("--target") + 1])
        (target / "bin").mkdir(parents=True)
        shutil.copytree(BOTOCORE_DATA, target / "botocore" / "data", ignore=_other_services)
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
    dependencies.build_layer(tmp_path / "layer", python=None)
    options = " ".join(pip.command)
    assert "--platform manylinux2014_aarch64" in options
    assert "--python-version 3.13" in options
    assert "--only-binary=:all:" in options
    assert "--no-deps --require-hashes" in options
    assert f"--requirement {dependencies.REQUIREMENTS}" in options


def required() -> dict[str, tuple[str, str]]:
    """The version and the hash of every package in the layer."""
    lines = dependencies.REQUIREMENTS.read_text(encoding="utf-8").splitlines()
    found = [REQUIREMENT.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(found)
    return {match["name"]: (match["version"], match["digest"]) for match in found if match}


def test_every_package_of_the_layer_has_a_hash_and_the_tested_version() -> None:
    pinned = dict(
        line.lower().replace("_", "-").split("==")
        for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    )
    assert set(dependencies.PACKAGES) <= set(required())
    assert {name: version for name, (version, _) in required().items()} == {name: pinned[name] for name in required()}


def needed(name: str) -> Iterator[str]:
    """A package, and all packages that it depends on when it runs on Lambda."""
    yield name
    for line in metadata.requires(name) or ():
        requirement = Requirement(line)
        if requirement.marker is None or requirement.marker.evaluate(
            {"extra": "", "python_version": PYTHON_VERSION, "sys_platform": "linux"}
        ):
            yield from needed(canonicalize_name(requirement.name))


def test_the_layer_has_the_dependencies_of_its_packages() -> None:
    assert {each for name in dependencies.PACKAGES for each in needed(name)} == set(required())


def test_the_layer_has_no_files_that_depend_on_the_building_machine(
    pip: FakePip,  # noqa: ARG001 - installs it
    tmp_path: Path,
) -> None:
    layer = tmp_path / "layer"
    (layer / "python").mkdir(parents=True)
    (layer / "python" / "left_over.py").touch()
    assert dependencies.build_layer(layer, python=None) == 1
    files = (str(file.relative_to(layer)) for file in layer.rglob("*") if file.is_file())
    assert sorted(file for file in files if not file.startswith("python/botocore/data/")) == [
        "python/jsonschema-1.dist-info/METADATA",
        "python/jsonschema.py",
    ]


def test_the_layer_has_only_the_services_that_the_functions_use(
    pip: FakePip,  # noqa: ARG001 - installs it
    tmp_path: Path,
) -> None:
    dependencies.build_layer(tmp_path, python=None)
    data = tmp_path / "python" / "botocore" / "data"
    assert {each.name for each in data.iterdir() if each.is_dir()} == set(OPERATIONS)
    assert sum(file.stat().st_size for file in data.rglob("*") if file.is_file()) < 1_000_000


def test_a_layer_over_lambdas_limit_is_refused(pip: FakePip, tmp_path: Path) -> None:
    pip.megabytes = 251
    with pytest.raises(RuntimeError, match="has 251 MB; Lambda allows less than 250 MB"):
        dependencies.build_layer(tmp_path / "layer", python=None)


def test_actions_in_ci_are_pinned_to_a_commit() -> None:
    """A tag can be moved to other code."""
    workflows = [path.read_text(encoding="utf-8") for path in (ROOT / ".github" / "workflows").iterdir()]
    used = [line.split("uses:")[1].split()[0] for text in workflows for line in text.splitlines() if "uses:" in line]
    assert used
    assert [action for action in used if not re.fullmatch(r"[\w-]+/[\w-]+@[0-9a-f]{40}", action)] == []
