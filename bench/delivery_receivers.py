"""Receivers of webhooks on loopback, in a process of their own: most answer at once, some late, some never.

Each keeps the id of every event that it was sent, with the time at which the request was complete. The process prints
its ports as one line of JSON, and ends with its standard input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any
from urllib.request import ProxyHandler, build_opener

LOOPBACK = "127.0.0.1"
SLOW_SECONDS = 3.5
"""Longer than the 2 seconds after which Berth moves a connection to the queue for slow ones."""
ID_HEADER = "berth-event-id"
_WAIT_SECONDS = 60


class Kind(StrEnum):
    QUICK = "quick"
    SLOW = "slow"
    REFUSING = "refusing"
    """Nothing listens at its port."""
    HANGING = "hanging"
    """Takes the connection and the request, and never answers."""

    @property
    def is_dead(self) -> bool:
        return self in (Kind.REFUSING, Kind.HANGING)


@dataclass(frozen=True, slots=True)
class Arrival:
    receiver: int
    at: float
    """By the monotonic clock, which is the same in all processes of a machine."""


@dataclass(frozen=True)
class Receivers:
    """The receivers, as the process that measures sees them."""

    ports: Sequence[int]
    control: int

    def url(self, receiver: int) -> str:
        return f"http://{LOOPBACK}:{self.ports[receiver]}/hook"

    def arrivals(self) -> Mapping[str, Sequence[Arrival]]:
        """Ask which events have arrived, by their id. Dead receivers keep none."""
        url = f"http://{LOOPBACK}:{self.control}/"
        with build_opener(ProxyHandler({})).open(url, timeout=_WAIT_SECONDS) as answer:
            found: Mapping[str, list[list[Any]]] = json.load(answer)
        return {event_id: [Arrival(*each) for each in arrivals] for event_id, arrivals in found.items()}


@contextlib.contextmanager
def receivers(kinds: Sequence[Kind], slow_seconds: float = SLOW_SECONDS) -> Iterator[Receivers]:
    command = [sys.executable, "-m", "bench.delivery_receivers", str(slow_seconds), *kinds]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            started: dict[str, Any] = json.loads(process.stdout.readline())
            yield Receivers(started["ports"], started["control"])
        finally:
            process.stdin.close()
            process.wait(_WAIT_SECONDS)


# In the process of the receivers


@dataclass
class _Serving:
    slow_seconds: float
    arrived: dict[str, list[tuple[int, float]]] = field(default_factory=dict)
    _bound: list[socket.socket] = field(default_factory=list)

    async def start(self, receiver: int, kind: Kind) -> int:
        if kind is Kind.REFUSING:
            # The port is taken, so that nobody else gets it, and nothing listens.
            bound = socket.socket()
            bound.bind((LOOPBACK, 0))
            self._bound.append(bound)
            return int(bound.getsockname()[1])

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                await self._answer(receiver, kind, reader, writer)
            writer.close()

        return await _listen(serve)

    async def _answer(
        self, receiver: int, kind: Kind, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        headers = await _headers(reader)
        await reader.readexactly(int(headers.get("content-length", "0")))
        if kind is Kind.HANGING:
            # Until the sender leaves.
            await reader.read()
            return
        self.arrived.setdefault(headers[ID_HEADER], []).append((receiver, time.monotonic()))
        if kind is Kind.SLOW:
            await asyncio.sleep(self.slow_seconds)
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()

    async def control(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await _headers(reader)
        body = json.dumps(self.arrived).encode()
        head = f"HTTP/1.1 200 OK\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n"
        writer.write(head.encode() + body)
        await writer.drain()
        writer.close()


async def _headers(reader: asyncio.StreamReader) -> dict[str, str]:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    pairs = (line.partition(":") for line in head.splitlines()[1:] if line)
    return {name.lower(): value.strip() for name, _, value in pairs}


async def _listen(serve: Any) -> int:
    server = await asyncio.start_server(serve, LOOPBACK, 0, backlog=256)
    return int(server.sockets[0].getsockname()[1])


async def _run(slow_seconds: float, kinds: Sequence[Kind]) -> None:
    serving = _Serving(slow_seconds)
    ports = [await serving.start(number, kind) for number, kind in enumerate(kinds)]
    print(json.dumps({"ports": ports, "control": await _listen(serving.control)}), flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_run(float(sys.argv[1]), [Kind(each) for each in sys.argv[2:]]))
