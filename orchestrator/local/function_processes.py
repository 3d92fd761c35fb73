"""Forks the processes of functions instead of starting a Python interpreter for each.

A cold start takes about a second of processor time on the emulator, most of it for importing libraries that every
function uses. On AWS each function has its own machine; here, all of them share the processors of this machine.
"""

import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.local import fork_server

_SCRIPT = "_worker.py"
_LAYERS = "_LAMBDA_LAYERS_DIRS"


def fork_function_processes() -> None:
    """Patch the emulator in this process. Only Linux has the calls that this needs."""
    if sys.platform != "linux":
        return
    from ministack.core import lambda_runtime  # type: ignore[import-untyped]

    forks = ForkServer()

    def popen(command: Sequence[str], **options: Any) -> Any:
        environment = options.get("env") or {}
        # A layer may have other versions of the libraries that the fork server has imported.
        if list(command[:1]) == [sys.executable] and command[-1].endswith(_SCRIPT) and _LAYERS not in environment:
            return forks.start(command[-1], folder=options["cwd"], environment=environment)
        return subprocess.Popen(command, **options)  # noqa: S603 (the emulator's own command)

    lambda_runtime.subprocess = SimpleNamespace(
        Popen=popen, PIPE=subprocess.PIPE, DEVNULL=subprocess.DEVNULL, STDOUT=subprocess.STDOUT
    )


class ForkServer:
    """The connection to the process that forks. That process ends with the emulator."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._channel, others = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with others:
            process = subprocess.Popen(  # noqa: S603 (our own interpreter, our own module)
                # -P keeps the modules beside the script from being found as top-level modules.
                [sys.executable, "-P", fork_server.__file__, str(others.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=(others.fileno(),),
            )
        # Nobody waits for it: it ends when the channel is closed. Setting a return code stops Popen from warning.
        process.returncode = 0

    def close(self) -> None:
        self._channel.close()

    def start(self, script: str, *, folder: str | Path, environment: Mapping[str, str]) -> "ForkedProcess":
        message = {"script": script, "folder": str(folder), "environment": dict(environment)}
        ours, theirs = _pipes()
        try:
            return ForkedProcess(self._forked(json.dumps(message).encode(), theirs), *ours)
        except OSError as error:
            for file in ours:
                os.close(file)
            gone = "The process that forks the functions' processes has ended. Restart the emulator."
            raise RuntimeError(gone) from error
        finally:
            for file in theirs:
                os.close(file)

    def _forked(self, message: bytes, standard_files: Sequence[int]) -> int:
        with self._lock:
            socket.send_fds(self._channel, [message], standard_files)
            answer, files, _, _ = socket.recv_fds(self._channel, fork_server.MAX_BYTES, 1)
        if not answer:
            raise ConnectionResetError
        return files[0]


class ForkedProcess:
    """The part of :class:`subprocess.Popen` that the emulator uses."""

    def __init__(self, process: int, stdin: int, stdout: int, stderr: int) -> None:
        self._process = process
        self._ends = select.poll()
        self._ends.register(process, select.POLLIN)
        self.stdin = open(stdin, "w", buffering=1, encoding="utf-8")  # noqa: SIM115
        self.stdout = open(stdout, encoding="utf-8")  # noqa: SIM115
        self.stderr = open(stderr, encoding="utf-8", errors="replace")  # noqa: SIM115

    def poll(self) -> int | None:
        """None while the process is running. Its exit code is not known, and the emulator does not ask for it."""
        return 0 if self._ends.poll(0) else None

    def wait(self, timeout: float | None = None) -> int:
        if not self._ends.poll(None if timeout is None else timeout * 1000):
            raise subprocess.TimeoutExpired(_SCRIPT, timeout or 0)
        return 0

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def _send(self, number: int) -> None:
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(self._process, number)

    def __del__(self) -> None:
        os.close(self._process)


def _pipes() -> tuple[list[int], list[int]]:
    """Our ends and the process's ends of its standard input, output and error."""
    read, write = os.pipe()
    pairs = [(write, read), os.pipe(), os.pipe()]
    return [ours for ours, _ in pairs], [theirs for _, theirs in pairs]
