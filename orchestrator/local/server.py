"""The emulator's own process: says who it is, serves, and keeps its state when told to stop.

Started by :mod:`orchestrator.local.emulator`, which hands it the home's lock as an open file: this
process holds it, without ever touching it, until it ends.
"""

import asyncio
import logging
import os
import resource
import sys
from collections.abc import Callable
from pathlib import Path

from hypercorn.asyncio import serve
from hypercorn.config import Config
from hypercorn.typing import ASGIFramework, ASGIReceiveCallable, ASGISendCallable, ASGISendEvent, Scope

from orchestrator.local.cloudformation import complete as complete_cloudformation
from orchestrator.local.custom_resources import describe_custom_resources
from orchestrator.local.guard import guarded, issued_by_ministack
from orchestrator.local.home import Home, Record
from orchestrator.local.stage_variables import add_stage_variables

# Each Lambda worker costs three pipes, each client a connection; some systems allow 256 files.
OPEN_FILES = 8192


class SaveFailures(logging.Handler):
    """Hears what the emulator only logs: that it could not save a service. The rest is of no use then."""

    seen = False

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        logging.getLogger("persistence").addHandler(self)

    def emit(self, _record: logging.LogRecord) -> None:
        self.seen = True


def keeping_state(emulator: ASGIFramework, home: Home, keep: bool) -> ASGIFramework:
    """The emulator, which on shutdown makes its state the saved one and takes its name off the door.

    It may live on for a while after that, until the last Lambda call ends; nobody has to wait.
    """
    failures = SaveFailures()

    async def app(scope: Scope, receive: ASGIReceiveCallable, send: ASGISendCallable) -> None:
        async def watch(event: ASGISendEvent) -> None:
            if event["type"] == "lifespan.shutdown.complete" and not failures.seen:
                if keep:
                    home.save_state()
                home.remove_record()
            await send(event)

        await emulator(scope, receive, watch)

    return app


def allow_open_files() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if most == resource.RLIM_INFINITY else min(most, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, most))


Wrapper = Callable[[ASGIFramework], ASGIFramework]


def main(root: str, port: str, keep_state: str, *, wrapped: Wrapper = lambda emulator: emulator) -> None:
    """``wrapped`` makes of the emulator what is served, for tests that need it to behave otherwise."""
    home, keep = Home(Path(root)), keep_state == "keep"
    home.write_record(Record(os.getpid(), int(port), keep))
    if keep:
        home.lay_out_state()
    allow_open_files()

    # Only now: it reads its settings, and the objects it kept, when it is imported.
    from ministack.app import app as emulator  # type: ignore[import-untyped]

    add_stage_variables()
    describe_custom_resources()
    complete_cloudformation()
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.loglevel = "WARNING"
    # Longer than a client keeps an idle connection, or it may send on one that is just being closed.
    config.keep_alive_timeout = 75
    app = guarded(keeping_state(wrapped(emulator), home, keep), int(port), issued_by_ministack())
    try:
        asyncio.run(serve(app, config))
    except OSError:
        # The port is not to be had. Nothing was served, so nothing is lost.
        home.remove_record()
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
