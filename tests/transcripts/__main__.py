"""Compares the golden files with what the product says: ``python -m tests.transcripts``.

``--write`` writes the files that differ, and removes those that no longer belong to anything.
"""

from __future__ import annotations

import sys

from tests.transcripts import golden
from tests.transcripts.current import FILES
from tests.transcripts.pages import pages


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--write"]):
        _say(__doc__)
        return 2
    files = {**{name: text() for name, text in FILES.items()}, **pages()}
    changed = 0
    for name, text in files.items():
        if arguments:
            was_changed = golden.write(name, text)
        else:
            difference = golden.difference(name, text)
            was_changed = bool(difference)
            if difference:
                _say(difference)
        changed += was_changed
        if was_changed and arguments:
            _say(f"written: tests/transcripts/{name}")
    for name in golden.leftovers(files):
        changed += 1
        if arguments:
            golden.remove(name)
        _say(f"{'removed' if arguments else 'no longer made'}: tests/transcripts/{name}")
    _say(f"{len(files)} files, {changed} changed")
    return 0 if arguments else int(changed > 0)


def _say(text: str | None) -> None:
    print(text)  # noqa: T201


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
