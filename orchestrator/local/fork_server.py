"""A process that has imported the libraries of functions, and forks the processes that run functions.

It is run as a script, because a function imports ``orchestrator`` from its own code: this process must not have
imported it. Each message on the channel has a JSON document (``script``, ``folder`` and ``environment``) and three open
files (standard input, output and error). The response is the open file of the new process (a pidfd).
"""

import gc
import importlib
import json
import os
import runpy
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

LIBRARIES = (
    "aws_lambda_powertools",
    "botocore.auth",
    "botocore.awsrequest",
    "botocore.client",
    "botocore.config",
    "botocore.credentials",
    "botocore.endpoint",
    "botocore.httpsession",
    "botocore.paginate",
    "botocore.session",
    "concurrent.futures.thread",
    "email.message",
    "jsonschema",
    "msgspec.json",
)
MAX_BYTES = 200_000
STANDARD_FILES = 3


def main(channel_file: str) -> None:
    for library in LIBRARIES:
        importlib.import_module(library)
    # The objects of the libraries are never collected, so their memory stays shared with the forked processes.
    gc.collect()
    gc.freeze()
    channel = socket.socket(fileno=int(channel_file))
    while True:
        message, files, _, _ = socket.recv_fds(channel, MAX_BYTES, STANDARD_FILES)
        if not message:
            return  # The emulator has ended.
        _remove_ended_processes()
        process = os.fork()
        if process == 0:
            channel.close()
            _run(json.loads(message), files)
        for file in files:
            os.close(file)
        opened = os.pidfd_open(process)
        socket.send_fds(channel, [b"forked"], [opened])
        os.close(opened)


def _remove_ended_processes() -> None:
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass


def _run(message: dict[str, Any], files: Sequence[int]) -> None:
    """Become the process of a function: the same as a new Python process that runs the script. Never returns."""
    code = 1
    try:
        for number, file in enumerate(files):
            os.dup2(file, number)
            os.close(file)
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", encoding="utf-8", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        script = message["script"]
        os.environ.clear()
        os.environ.update(message["environment"])
        os.chdir(message["folder"])
        sys.argv = [script]
        sys.path.insert(0, os.path.dirname(script))  # noqa: PTH120
        runpy.run_path(script, run_name="__main__")
        code = 0
    except SystemExit as ended:
        code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 (an interpreter reports it in the same way, and ends)
        sys.excepthook(*sys.exc_info())
    finally:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError):
                stream.flush()
        os._exit(code)


if __name__ == "__main__":
    main(*sys.argv[1:])
