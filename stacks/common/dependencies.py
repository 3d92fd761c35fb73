"""The functions' dependencies, in a Lambda layer.

The layer is made of wheels for Lambda's platform, so it is the same on any machine. Each wheel must have the hash in
``stacks/layer-requirements.txt``: another file under the same version is refused.
``python -m stacks.common.dependencies lock`` rewrites that file after a version in ``constraints.txt`` has changed.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

from stacks.common.aws_models import keep_used_models
from stacks.common.compiling import compile_all
from stacks.project import LAYER, PYTHON_VERSION, ROOT

PACKAGES = ("aws-lambda-powertools", "botocore", "jsonschema", "msgspec")
REQUIREMENTS = ROOT / "stacks" / "layer-requirements.txt"

_HEADING = (
    "# The packages in the functions' layer, with the hash of every file.\n"
    "# Written by: python -m stacks.common.dependencies lock\n"
)
_LAMBDA_LIMIT_MB = 250
_INSTALLED_AT = "/opt"

_PIP = (sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile")
_PLATFORM = ("--platform", "manylinux2014_aarch64", "--implementation", "cp")
_PYTHON = ("--python-version", PYTHON_VERSION, "--only-binary=:all:")


def build_layer(layer: Path = LAYER, *, python: str | None) -> int:
    """Build the layer from scratch, compile it with ``python``, and return its unpacked size in megabytes."""
    shutil.rmtree(layer, ignore_errors=True)
    # --no-deps, because the file lists every dependency with its hash.
    options = ["--no-deps", "--require-hashes", "--requirement", str(REQUIREMENTS), "--target", str(layer / "python")]
    subprocess.run([*_PIP, *_PLATFORM, *_PYTHON, *options], check=True)  # noqa: S603 - no input from outside
    _remove_traces_of_this_machine(layer / "python")
    keep_used_models(layer / "python" / "botocore" / "data")
    if python is not None:
        compile_all(layer, installed_at=_INSTALLED_AT, python=python)
    megabytes = round(sum(file.stat().st_size for file in layer.rglob("*") if file.is_file()) / 1_000_000)
    if megabytes >= _LAMBDA_LIMIT_MB:
        raise RuntimeError(f"The layer has {megabytes} MB; Lambda allows less than {_LAMBDA_LIMIT_MB} MB.")
    return megabytes


def lock() -> None:
    """Write the requirements: every package of the layer, at the version in ``constraints.txt``, with its hash."""
    options = ["--dry-run", "--ignore-installed", "--report", "-", "--constraint", str(ROOT / "constraints.txt")]
    command = [*_PIP, *_PLATFORM, *_PYTHON, *options, "--target", str(LAYER), *PACKAGES]
    report = subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout  # noqa: S603 - no input from outside
    lines = []
    for package in json.loads(report)["install"]:
        name, version = package["metadata"]["name"], package["metadata"]["version"]
        digest = package["download_info"]["archive_info"]["hashes"]["sha256"]
        lines.append(f"{name.lower().replace('_', '-')}=={version} --hash=sha256:{digest}\n")
    REQUIREMENTS.write_text(_HEADING + "".join(sorted(lines)), encoding="utf-8")


def _remove_traces_of_this_machine(packages: Path) -> None:
    # Scripts contain the path of the interpreter that installed them, and RECORD the digests of the scripts. Functions
    # use neither.
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for record in packages.glob("*.dist-info/RECORD"):
        record.unlink()


if __name__ == "__main__":
    if sys.argv[1:] != ["lock"]:
        sys.exit("usage: python -m stacks.common.dependencies lock")
    lock()
