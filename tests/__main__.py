"""Runs all tests, in several processes at once: ``python -m tests``. ``make test`` calls it. With ``--fast`` it runs
only those of ``FAST``; ``make test-fast`` calls that.

Each process collects only the tests of one part: collecting all of them takes longer than most parts. The tests of a
part share a deployment or a synthesis. Arguments go to pytest: ``python -m tests --durations 20``.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, ThreadPoolExecutor, wait
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent
AT_ONCE = 5
"""More than the processors of a small machine, because the end-to-end tests mostly wait."""
PARTS: Mapping[str, Sequence[str]] = {
    "demo": ("e2e/test_demo.py",),
    "end to end": ("e2e/",),
    "rollouts": (
        "e2e/test_rollouts.py",
        "e2e/test_tenant_queue.py",
        "e2e/test_update_tenant.py",
        "e2e/test_what_dies.py",
    ),
    "permissions": ("e2e/enforced/",),
    "own deployments": ("e2e/test_adopt.py", "e2e/test_console.py", "e2e/test_key.py"),
    "own emulators": ("e2e/test_local_", "e2e/test_side_by_side.py"),
    "stacks": ("stacks/",),
    "simulation": ("planted/", "simulation/"),
    "browser": ("browser/",),
    "adapters of events": ("adapters/events/",),
    "handlers": ("adapters/handlers/", "adapters/bad_input/"),
    "adapters": ("adapters/",),
    "unit": ("unit/",),
    "command line": ("unit/cli/", "machines/", "previous/", "transcripts/"),
}
"""The paths of each part, in the order in which the parts start: those that take longest come first. A file belongs to
the part with the longest matching path."""
FAST_AT_ONCE = 2
FAST: Mapping[str, Sequence[str]] = {
    "tenants": ("unit/test_",),
    "command line": ("unit/cli/", "transcripts/"),
    "rollouts, reconciling, events": (
        *("machines/", "unit/events/", "unit/own_events/", "unit/pool/", "unit/reconciling/", "unit/rollouts/"),
    ),
    "simulation": ("simulation/test_a_few_seeds.py",),
    "not fast": (
        *("unit/test_architecture.py", "unit/test_bench.py", "unit/test_costs_page.py", "unit/test_publishing.py"),
        *("unit/test_delivery_bench.py", "unit/test_event_bench.py", "unit/test_survey_bench.py"),
        *("unit/cli/test_bad_input.py", "unit/cli/test_control_plane.py", "transcripts/test_pages.py"),
    ),
}
"""The parts that ``--fast`` runs: rules and decisions, which need no AWS, no emulator and no synthesis. The files of
the part ``not fast`` are left out, and so are those of no part."""
NOT_FAST = "not fast"
EVERY_SECONDS = 60.0
_NOTHING_COLLECTED = 5


@dataclass(frozen=True)
class Ended:
    part: str
    seconds: float
    exit_code: int
    output: str

    @property
    def has_failed(self) -> bool:
        return self.exit_code not in (0, _NOTHING_COLLECTED)

    @property
    def summary(self) -> str:
        return self.output.rpartition("\n")[2].strip("= ")

    @property
    def counts(self) -> Counter[str]:
        found = re.findall(r"(\d+) (passed|failed|error)", self.summary)
        return Counter({kind: int(number) for number, kind in found})


def part_of(file: str, parts: Mapping[str, Sequence[str]]) -> str | None:
    """The part that a file below ``tests/`` belongs to."""
    matching = {path: part for part, paths in parts.items() for path in paths if file.startswith(path)}
    return matching[max(matching, key=len)] if matching else None


def files_by_part(parts: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    """The files of each part, and those of no part under the empty name."""
    files: dict[str, list[str]] = {part: [] for part in (*parts, "")}
    for file in sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("test_*.py")):
        files[part_of(file, parts) or ""].append(file)
    return files


def main(arguments: Sequence[str]) -> int:
    # Compiled code is kept, whatever the shell says: otherwise each part compiles all that it imports.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    is_fast = "--fast" in arguments
    files = files_by_part(FAST if is_fast else PARTS)
    outside = files.pop("")
    if is_fast:
        del files[NOT_FAST]
    elif outside:
        raise LookupError(f"{outside[0]} belongs to no part. Add its folder to PARTS in tests/__main__.py.")
    return _run_all(files, FAST_AT_ONCE if is_fast else AT_ONCE, [each for each in arguments if each != "--fast"])


def _run_all(files_of: Mapping[str, Sequence[str]], at_once: int, arguments: Sequence[str]) -> int:
    began = time.monotonic()
    ended: list[Ended] = []
    with ThreadPoolExecutor(at_once) as pool:
        waiting = {pool.submit(_run, part, files, arguments) for part, files in files_of.items()}
        try:
            while waiting:
                done, waiting = wait(waiting, EVERY_SECONDS, FIRST_COMPLETED)
                for each in done:
                    ended.append(each.result())
                    _report(ended[-1])
                if not done:
                    _say(f"{time.monotonic() - began:.0f} s: {len(waiting)} of {len(files_of)} parts have not ended")
        except KeyboardInterrupt:
            # The processes are interrupted, too, and stop their emulators.
            pool.shutdown(cancel_futures=True)
            raise
    failed = [each.part for each in ended if each.has_failed]
    if failed:
        _say(f"Failed: {', '.join(failed)}")
    counts = sum((each.counts for each in ended), Counter[str]())
    _say(f"{counts['passed']} passed, {counts['failed'] + counts['error']} failed")
    return 1 if failed else 0


def _run(part: str, files: Sequence[str], arguments: Sequence[str]) -> Ended:
    began = time.monotonic()
    command = [sys.executable, "-m", "pytest", "--quiet", *arguments, *(str(ROOT / file) for file in files)]
    if part in PARTS and not files[0].startswith("e2e/"):
        # The end-to-end tests take longest and wait for what functions do, so they come first at the processors.
        command = ["nice", "-n", "10", *command]
    process = subprocess.run(
        command,
        cwd=ROOT.parent,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    return Ended(part, time.monotonic() - began, process.returncode, process.stdout.rstrip())


def _report(ended: Ended) -> None:
    """Print the output of a part that failed, and a line for one that passed."""
    if ended.has_failed:
        _say(f"\n----- {ended.part} -----\n{ended.output}\n")
    _say(f"{ended.part}: {ended.summary}")


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
