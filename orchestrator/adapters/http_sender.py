"""Sends webhooks to addresses that tenants chose, and to nothing inside.

A name is resolved once, and the connection goes to the address that was checked, so another answer of the name server
a moment later changes nothing. The name stays in the Host header, in the TLS handshake and in the check of the
certificate. There is one deadline for everything, however slowly a receiver sends. Proxies of the environment are not
used, redirects are not followed, and nothing is decompressed.
"""

from __future__ import annotations

import io
import os
import socket
import ssl
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cache, partial
from http.client import HTTPConnection, HTTPException, HTTPResponse
from ipaddress import ip_address
from queue import Empty, SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from orchestrator.common.errors import InvalidRequest
from orchestrator.events.delivery.addresses import AddressRules, Target
from orchestrator.events.delivery.answers import Failure, ReceiverResponse
from orchestrator.events.delivery.webhook_request import WebhookRequest

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

DEADLINE_SECONDS = 15.0
"""The deadline for everything, from the lookup of the name to the end of the answer."""
MAX_HEAD_BYTES = 32 * 1024
"""The status line and the headers of an answer."""
MAX_BODY_BYTES = 16 * 1024
"""More of an answer is not read."""
_MAX_ENCODED_BYTES = 4 * MAX_BODY_BYTES
"""The body in chunks, with the size of each."""
_MAX_TLS_BYTES = 256 * 1024
"""Everything that a receiver sends over TLS: the handshake, the answer, and messages of TLS itself."""
_PART_BYTES = 16 * 1024

NOT_ALLOWED = "The address is not allowed."
NOT_RESOLVED = "The name of the receiver could not be resolved."
NOT_HTTP = "The answer is not HTTP."
TOO_LONG = "The headers of the answer are too long."
CLOSED = "The receiver closed the connection without an answer."
REFUSED = "The receiver refused the connection."

Result = TypeVar("Result")
Resolve = Callable[[str, float], Sequence[str]]
"""Returns the addresses of a name within so many seconds. Raises :class:`OSError`."""


def resolve(name: str, seconds: float) -> Sequence[str]:
    """The operating system has no deadline for lookups, so another thread waits for it."""
    results: SimpleQueue[Sequence[str] | None] = SimpleQueue()
    Thread(target=_look_up, args=(name, results), daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except Empty:
        raise TimeoutError("The lookup took too long.") from None
    if result is None:
        raise OSError(f"The name {name} could not be resolved.")
    return result


def _look_up(name: str, results: SimpleQueue[Sequence[str] | None]) -> None:
    # With the dot at its end, the name is not looked up in domains that the machine searches by default.
    absolute = f"{name}." if "." in name else name
    try:
        found = socket.getaddrinfo(absolute, None, type=socket.SOCK_STREAM)
        results.put([str(address[0]) for *_, address in found])
    except (OSError, UnicodeError):
        results.put(None)


@cache
def public_certificates() -> ssl.SSLContext:
    """Trusts the certificate authorities of the operating system."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


class HttpWebhooks:
    """Implements :class:`orchestrator.events.delivery.ports.Webhooks`. Several threads may use it at once."""

    def __init__(
        self,
        rules: AddressRules,
        *,
        resolve: Resolve = resolve,
        tls: Callable[[], ssl.SSLContext] = public_certificates,
        seconds: float = DEADLINE_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rules = rules
        self._resolve = resolve
        self._tls = tls
        self._seconds = seconds
        self._monotonic = monotonic

    def post(self, request: WebhookRequest) -> ReceiverResponse | Failure:
        deadline = _Deadline(self._seconds, self._monotonic)
        try:
            target = self._rules.parse(request.url)
            address = self._address(target, deadline)
            if address is None:
                return Failure(NOT_ALLOWED)
            return self._exchange(request, target, address, deadline)
        except InvalidRequest as refused:
            return Failure(str(refused))
        except TimeoutError:
            return Failure(f"The receiver did not answer within {self._seconds:g} seconds.", slows=True)
        except (OSError, HTTPException, _TooLong) as error:
            return Failure(_reason(error))

    def _address(self, target: Target, deadline: _Deadline) -> str | None:
        """The address to connect to; ``None`` if the target is not allowed."""
        try:
            addresses = [target.host] if _is_address(target.host) else self._resolve(target.host, deadline.left())
        except TimeoutError:
            raise
        except OSError:
            raise _NotResolved from None
        address = self._rules.choose(addresses)
        if address is not None and target.scheme != "https" and not ip_address(address).is_loopback:
            return None
        return address

    def _exchange(self, request: WebhookRequest, target: Target, address: str, deadline: _Deadline) -> ReceiverResponse:
        connection = _Connection(target, address, deadline, self._tls)
        try:
            connection.connect()
            # A receiver may answer, and close, before it has read everything.
            with suppress(BrokenPipeError, ConnectionResetError, ssl.SSLEOFError):
                connection.request(
                    "POST",
                    target.path,
                    request.body,
                    {**request.headers, "host": target.authority, "connection": "close"},
                )
            response = connection.getresponse()
            body = connection.read_body(response)
            return ReceiverResponse(response.status, _headers(response), body)
        finally:
            connection.end()


class _NotResolved(OSError):
    """The name has no address, or the name server does not answer."""


class _TooLong(Exception):
    """The answer is longer than what is read of it."""


class _Deadline:
    def __init__(self, seconds: float, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._end = monotonic() + seconds

    def left(self) -> float:
        left = self._end - self._monotonic()
        if left <= 0:
            raise TimeoutError("The deadline is over.")
        return left


class _Connection(HTTPConnection):
    """Connects to a checked address, under the name of the target."""

    def __init__(self, target: Target, address: str, deadline: _Deadline, tls: Callable[[], ssl.SSLContext]) -> None:
        super().__init__(target.host, target.port)
        self._target = target
        self._address = address
        self._deadline = deadline
        self._make_tls = tls
        self._socket: socket.socket | None = None
        self._channel: _Channel | None = None

    def connect(self) -> None:
        family = socket.AF_INET6 if ":" in self._address else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.settimeout(self._deadline.left())
        self._socket.connect((self._address, self._target.port))
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        stream: _Stream = _Plain(self._socket, self._deadline)
        if self._target.scheme == "https":
            stream = _Encrypted(self._socket, self._deadline, self._make_tls(), self._target.host)
        self._channel = _Channel(stream, MAX_HEAD_BYTES)
        # http.client only calls makefile, sendall and close.
        self.sock: Any = self._channel

    def read_body(self, response: HTTPResponse) -> bytes:
        """The beginning of the body. The status has arrived, and says enough if the body does not."""
        assert self._channel is not None  # noqa: S101 - there is a response
        self._channel.allow(_MAX_ENCODED_BYTES)
        body = bytearray()
        with suppress(OSError, HTTPException, ValueError, _TooLong):
            while part := response.read1(MAX_BODY_BYTES - len(body)):
                body += part
        return bytes(body)

    def end(self) -> None:
        if self._socket is not None:
            self._socket.close()


class _Stream(Protocol):
    """The bytes to a receiver and from it. Every operation ends with the deadline."""

    def sendall(self, data: bytes) -> None: ...

    def recv_into(self, buffer: memoryview) -> int:
        """Returns how many bytes have come, and 0 once there are no more."""
        ...


class _Plain:
    """Implements :class:`_Stream` by a socket."""

    def __init__(self, connected: socket.socket, deadline: _Deadline) -> None:
        self._socket = connected
        self._deadline = deadline

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), _PART_BYTES):
            self._socket.settimeout(self._deadline.left())
            self._socket.sendall(data[start : start + _PART_BYTES])

    def recv_into(self, buffer: memoryview) -> int:
        self._socket.settimeout(self._deadline.left())
        return self._socket.recv_into(buffer)


class _Encrypted:
    """Implements :class:`_Stream` by TLS.

    OpenSSL gets what has come part by part, and never the socket. TLS has messages of its own, such as session
    tickets, and a receiver may send them without an end: OpenSSL would read all of them in one call, which no timeout
    of a socket interrupts.
    """

    def __init__(self, connected: socket.socket, deadline: _Deadline, context: ssl.SSLContext, name: str) -> None:
        self._plain = _Plain(connected, deadline)
        self._part = memoryview(bytearray(_PART_BYTES))
        self._left = _MAX_TLS_BYTES
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=name)
        self._do(self._tls.do_handshake)

    def sendall(self, data: bytes) -> None:
        for start in range(0, len(data), _PART_BYTES):
            self._do(partial(self._tls.write, data[start : start + _PART_BYTES]))

    def recv_into(self, buffer: memoryview) -> int:
        try:
            data = self._do(partial(self._tls.read, len(buffer)))
        except (ssl.SSLEOFError, ssl.SSLZeroReturnError):
            # Many receivers close the connection without the end that TLS has for it.
            return 0
        buffer[: len(data)] = data
        return len(data)

    def _do(self, step: Callable[[], Result]) -> Result:
        """Repeat a step until OpenSSL has had enough from the receiver for it."""
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self._send()
                self._receive()
            except ssl.SSLError:
                # The receiver is told why the connection ends.
                with suppress(OSError):
                    self._send()
                raise
            else:
                self._send()
                return result

    def _send(self) -> None:
        self._plain.sendall(self._outgoing.read())

    def _receive(self) -> None:
        if self._left <= 0:
            raise _TooLong
        if count := self._plain.recv_into(self._part):
            self._incoming.write(self._part[:count])
            self._left -= count
        else:
            self._incoming.write_eof()


class _Channel:
    """An object that http.client uses like a socket."""

    def __init__(self, stream: _Stream, limit: int) -> None:
        self._stream = stream
        self._reader = _Reader(stream, limit)

    def allow(self, limit: int) -> None:
        self._reader.limit = limit

    def sendall(self, data: bytes) -> None:
        self._stream.sendall(data)

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(self._reader)

    def close(self) -> None:
        """Do nothing: http.client closes early, while the answer is still read. :class:`_Connection` ends it."""


class _Reader(io.RawIOBase):
    def __init__(self, stream: _Stream, limit: int) -> None:
        self._stream = stream
        self.limit = limit
        """How many bytes may still be read."""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self.limit <= 0:
            raise _TooLong
        count = self._stream.recv_into(memoryview(buffer)[: self.limit])
        self.limit -= count
        return count


def _is_address(host: str) -> bool:
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _headers(response: HTTPResponse) -> dict[str, str]:
    """The headers by name in lower case. If a name occurs several times, the first header counts."""
    return {name.lower(): value for name, value in reversed(response.getheaders())}


def _reason(error: OSError | HTTPException | _TooLong) -> str:
    """Why there was no answer. It names no address."""
    match error:
        case _TooLong():
            return TOO_LONG
        case _NotResolved():
            return NOT_RESOLVED
        case ssl.SSLCertVerificationError():
            return f"The certificate of the receiver is not valid: {error.verify_message}."
        case ssl.SSLError():
            return f"There is no TLS connection to the receiver: {error.reason or 'it ended'}."
        case ConnectionRefusedError():
            return REFUSED
        case ConnectionError():
            return CLOSED
        case HTTPException():
            # The exception itself, and none of its kinds, is raised for too many headers.
            return TOO_LONG if type(error) is HTTPException else NOT_HTTP
        case OSError(errno=int(number)):
            return f"There is no connection to the receiver: {os.strerror(number)}."
        case _:
            return "There is no connection to the receiver."
