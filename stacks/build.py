"""``python -m stacks.build``: build the code and the dependencies of the functions into ``build/``."""

from __future__ import annotations

import sys

from stacks.common.compiling import INTERPRETER, runtime_python
from stacks.common.dependencies import build_layer
from stacks.common.function_code import build_code
from stacks.project import CODE, LAYER, PYTHON_VERSION, ROOT


def main() -> None:
    python = runtime_python()
    build_code(python=python)
    megabytes = build_layer(python=python)
    sys.stdout.write(f"{LAYER.relative_to(ROOT)} and {CODE.relative_to(ROOT)} are built: {megabytes} MB.\n")
    if python is None:
        sys.stderr.write(
            f"The functions are not compiled, so each cold start takes about twice as long: Python {PYTHON_VERSION}, "
            f"their runtime, was not found. Install it, or set {INTERPRETER}=/path/to/python{PYTHON_VERSION}\n"
        )


if __name__ == "__main__":
    main()
