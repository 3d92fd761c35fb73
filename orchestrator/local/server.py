"""The emulator's own process: writes its record, serves, and saves its state on an orderly stop.

:mod:`orchestrator.local.emulator` starts this process and passes the home's lock to it as an open file, which the
process holds until it ends.
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
from orchestrator.local.function_code import unpack_code_once
from orchestrator.local.function_processes import fork_function_processes
from orchestrator.local.gaps import (
    add_stage_variables,
    begin_streams_anew,
    fail_with_their_functions,
    report_the_quota_of_aws,
)
from orchestrator.local.guard import guarded, issued_by_ministack
from orchestrator.local.home import Home, Record

# Each Lambda worker needs three pipes, and each client a connection. Some systems allow only 256 open files by default.
OPEN_FILES = 8192


class SaveFailures(logging.Handler):
    """Notices when the emulator could not save a service, which it only logs. Then the whole state is not saved."""

    seen = False

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        logging.getLogger("persistence").addHandler(self)

    def emit(self, _record: logging.LogRecord) -> None:
        self.seen = True


def keeping_state(emulator: ASGIFramework, home: Home, keep: bool) -> ASGIFramework:
    """The emulator, which saves its state and removes its record on shutdown.

    The process may run on until its last Lambda call has ended. Nobody has to wait for that.
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
    _, maximum = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = OPEN_FILES if maximum == resource.RLIM_INFINITY else min(maximum, OPEN_FILES)
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, maximum))


Wrapper = Callable[[ASGIFramework], ASGIFramework]


def main(root: str, port: str, keep_state: str, *, wrapped: Wrapper = lambda emulator: emulator) -> None:
    """Serve until stopped. ``wrapped`` lets tests change the emulator's behaviour."""
    home, keep = Home(Path(root)), keep_state == "keep"
    home.write_record(Record(os.getpid(), int(port), keep))
    if keep:
        home.lay_out_state()
    allow_open_files()

    # Imported here because the emulator reads its settings and its saved objects on import.
    from ministack.app import app as emulator  # type: ignore[import-untyped]

    add_stage_variables()
    describe_custom_resources()
    complete_cloudformation()
    fail_with_their_functions()
    fork_function_processes()
    unpack_code_once()
    begin_streams_anew()
    report_the_quota_of_aws()
    config = Config()
    config.bind = [f"127.0.0.1:{port}"]
    config.loglevel = "WARNING"
    # The timeout is longer than clients keep idle connections, so that none sends on a connection that is being closed.
    config.keep_alive_timeout = 75
    app = guarded(keeping_state(wrapped(emulator), home, keep), int(port), issued_by_ministack())
    try:
        asyncio.run(serve(app, config))
    except OSError:
        # The port is taken. Nothing was served, so there is nothing to save.
        home.remove_record()
        raise


if __name__ == "__main__":
    main(*sys.argv[1:])
