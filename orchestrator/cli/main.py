"""The entry point of `berth`. :mod:`orchestrator.cli.commands` has the commands.

Loading the library and the command takes a quarter of a second. Ctrl-C during that time ends `berth` as at any other
time.
"""

from __future__ import annotations

import sys

INTERRUPTED = 130
"""The same code as in :mod:`orchestrator.cli.errors`, which may not be loaded yet."""


def main() -> None:
    try:
        from orchestrator.cli.app import app

        app(prog_name="berth")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
