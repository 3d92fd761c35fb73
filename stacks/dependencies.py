"""``python -m stacks.dependencies``: build the functions' dependencies into ``build/layer``.

Wheels for Lambda's platform are downloaded as they are, so the layer comes out the same on any machine.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from stacks.project import LAYER, PYTHON_VERSION, ROOT

PACKAGES = ("aws-lambda-powertools", "boto3", "jsonschema")

_LAMBDA_LIMIT_MB = 250


def build_layer(layer: Path = LAYER) -> int:
    """Build the layer afresh, and say how many megabytes it has when unpacked."""
    shutil.rmtree(layer, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-compile"]
    platform = ["--platform", "manylinux2014_aarch64", "--implementation", "cp"]
    python = ["--python-version", PYTHON_VERSION, "--only-binary=:all:"]
    where = ["--constraint", str(ROOT / "constraints.txt"), "--target", str(layer / "python")]
    subprocess.run([*pip, *platform, *python, *where, *PACKAGES], check=True)  # noqa: S603 - no input from outside
    _forget_this_machine(layer / "python")
    megabytes = round(sum(file.stat().st_size for file in layer.rglob("*") if file.is_file()) / 1_000_000)
    if megabytes >= _LAMBDA_LIMIT_MB:
        raise RuntimeError(f"The layer has {megabytes} MB; Lambda takes less than {_LAMBDA_LIMIT_MB}.")
    return megabytes


def _forget_this_machine(packages: Path) -> None:
    # Scripts name the interpreter that installed them, and RECORD has the scripts' digests; no function uses either.
    shutil.rmtree(packages / "bin", ignore_errors=True)
    for record in packages.glob("*.dist-info/RECORD"):
        record.unlink()


def main() -> None:
    layer = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else LAYER
    sys.stdout.write(f"{layer} holds the functions' dependencies: {build_layer(layer)} MB.\n")


if __name__ == "__main__":
    main()
