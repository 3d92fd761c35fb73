"""``python -m stacks.build``: what the functions are made of, into ``build/``: their code and their dependencies."""

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
    sys.stdout.write(f"{LAYER.relative_to(ROOT)} and {CODE.relative_to(ROOT)} hold the functions: {megabytes} MB.\n")
    if python is None:
        sys.stderr.write(
            f"They are not compiled, so each cold start takes about twice as long: Python {PYTHON_VERSION}, on which "
            f"they run, was not found. Install it, or name it: {INTERPRETER}=/path/to/python{PYTHON_VERSION}\n"
        )


if __name__ == "__main__":
    main()
