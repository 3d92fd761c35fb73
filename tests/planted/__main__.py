"""Plants bugs, one at a time, and says what catches each: ``python -m tests.planted``.

A bug that is not caught is a hole in the tests: write the smallest test that catches it.
"""

from __future__ import annotations

import argparse
import io
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib import import_module
from pathlib import Path

import pytest

from tests.planted.bugs import NotPlanted, PlantedBug

TESTS = Path(__file__).parents[1]
AREAS = ("permissions", "machines", "templates", "money", "pages", "commands", "simulation")
OPTIONS = ("--quiet", "--no-header", "-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""The last option is about plugins that the process has loaded before."""


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.planted", description=__doc__.partition("\n")[0])
    parser.add_argument("--list", action="store_true", help="list the bugs without planting them")
    parser.add_argument("--area", choices=AREAS, action="append", help="only those of this area; may be repeated")
    parser.add_argument("--only", metavar="NAME", default="", help="only those whose names contain this")
    parser.add_argument("--quick", action="store_true", help="leave out those that take several seconds")
    parser.add_argument("--record", action="store_true", help="write down the seeds that were found")
    given = parser.parse_args(arguments)
    began, problems, count, seeds = time.monotonic(), 0, 0, dict[str, int]()
    for area in given.area or AREAS:
        bugs = {
            name: bug for name, bug in bugs_of(area).items() if given.only in name and not (given.quick and bug.is_slow)
        }
        count += len(bugs)
        if given.list:
            for name, bug in bugs.items():
                by = bug.caught_by if isinstance(bug.caught_by, str) else bug.caught_by.command
                say(f"{area}: {name}\n    {bug.breaks}\n    {by}")
            continue
        if not passes(bug.caught_by for bug in bugs.values() if isinstance(bug.caught_by, str)):
            problems += 1
        for name, bug in bugs.items():
            started = time.monotonic()
            caught, by = plant(bug)
            if caught and not isinstance(bug.caught_by, str):
                seeds[name] = int(by.rpartition(" ")[2])
            say(f"{time.monotonic() - started:6.2f} s  {area}: {name}: {'' if caught else 'NOT CAUGHT: '}{by}")
            problems += not caught
    if not given.list:
        say(f"{count} bugs, {problems} problems, in {time.monotonic() - began:.0f} s")
    if given.record:
        import_module("tests.planted.simulation").record(seeds)
    return 1 if problems or not count else 0


def bugs_of(area: str) -> Mapping[str, PlantedBug]:
    bugs: Mapping[str, PlantedBug] = import_module(f"tests.planted.{area}").BUGS
    return bugs


def passes(tests: Iterable[str]) -> bool:
    """True if the tests pass without a bug: otherwise they would catch anything."""
    wanted = list(dict.fromkeys(tests))
    code, output = run(wanted) if wanted else (pytest.ExitCode.OK, "")
    if code is not pytest.ExitCode.OK:
        say(f"{output}\nWithout a bug the tests have to pass.")
    return code is pytest.ExitCode.OK


def plant(bug: PlantedBug) -> tuple[bool, str]:
    """Plant the bug, and return whether it was caught, and by what."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        try:
            bug.plant(monkeypatch)
        except (NotPlanted, AttributeError, LookupError, StopIteration) as error:
            return False, f"it could not be planted: {type(error).__name__}: {error}"
        if not isinstance(bug.caught_by, str):
            seed = bug.caught_by.find()
            return seed is not None, bug.caught_by.command + ("" if seed is None else f" --seed {seed}")
        code, output = run([bug.caught_by], "--exitfirst")
    if code in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
        return code is pytest.ExitCode.TESTS_FAILED, bug.caught_by
    return False, f"{bug.caught_by} could not be run: {output}"


def run(tests: Iterable[str], *options: str) -> tuple[pytest.ExitCode, str]:
    output = io.StringIO()
    with redirect_stdout(output), redirect_stderr(output):
        code = pytest.main([*OPTIONS, *options, *(str(TESTS / test) for test in tests)])
    return pytest.ExitCode(code), output.getvalue()


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.exit(main())
