"""Models of the wire, used by several threads at once."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

_MANY_FIRST_USES = """
import enum, sys, threading
import msgspec
from orchestrator.api.fields import converted

sys.setswitchinterval(1e-6)
for _ in range(300):
    kind = enum.StrEnum("Kind", {f"K{n}": f"k{n}" for n in range(60)})
    model = msgspec.defstruct("Model", [(f"f{n}", kind) for n in range(10)])
    value = {f"f{n}": f"k{n}" for n in range(10)}
    together = threading.Barrier(6)

    def use():
        together.wait()
        converted(value, model)

    threads = [threading.Thread(target=use) for _ in range(6)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
"""


def test_threads_may_use_a_model_for_the_first_time_at_once() -> None:
    """In a process of its own, because msgspec itself crashes the process."""
    done = subprocess.run(
        [sys.executable, "-c", _MANY_FIRST_USES], cwd=Path(__file__).parents[2], capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
