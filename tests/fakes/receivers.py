"""Receivers of webhooks on loopback that answer by script, a certificate authority for them, and a name server.

    with Receiver(answers(500), answers(200)) as receiver:
        ...
        receiver.requests[0].body

Every connection takes the next part of the script; the last part repeats. A part gets the connection and the request,
and may do anything with the connection. Parts that wait end with the receiver.
"""

from __future__ import annotations

import hmac
import socket
import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cached_property
from ipaddress import ip_address
from pathlib import Path
from threading import Event, Lock, Thread
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOOPBACK = "127.0.0.1"
_WAIT_SECONDS = 30.0
"""No test waits so long. Without a limit, a mistake would hang all of them."""


@dataclass(frozen=True)
class Received:
    """A request, as it came in."""

    method: str
    path: str
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes
    server_name: str | None = None
    """The name in the TLS handshake."""


Part = Callable[["Connected", Received], None]


@dataclass(frozen=True)
class Connected:
    """One connection, from the receiver's side."""

    socket: socket.socket
    stopped: Event
    """Set when the receiver ends, or the sender has left."""

    def send(self, data: bytes) -> bool:
        """``False`` if the sender has left."""
        try:
            self.socket.sendall(data)
        except OSError:
            return False
        return True


# Parts of scripts


def answers(status: int = 200, body: bytes = b"", **headers: str) -> Part:
    """A usual answer. ``retry_after="5"`` is the header Retry-After."""
    return sends(http(status, body, **headers))


def http(status: int, body: bytes = b"", **headers: str) -> bytes:
    lines = [f"HTTP/1.1 {status} Said", *(f"{name.replace('_', '-')}: {value}" for name, value in headers.items())]
    if "content_length" not in headers:
        lines.append(f"content-length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def sends(data: bytes) -> Part:
    """Exactly these bytes. Then the connection is closed."""

    def part(connected: Connected, _request: Received) -> None:
        connected.send(data)

    return part


def sends_and_hangs(data: bytes = b"") -> Part:
    def part(connected: Connected, _request: Received) -> None:
        connected.send(data)
        connected.stopped.wait(_WAIT_SECONDS)

    return part


hangs = sends_and_hangs()


def drips(beginning: bytes = b"", *, drop: bytes = b"a", every: float = 0.001) -> Part:
    """After the beginning, one byte after the other, without an end."""

    def part(connected: Connected, _request: Received) -> None:
        alive = connected.send(beginning)
        while alive and not connected.stopped.wait(every):
            alive = connected.send(drop)

    return part


def never_ends(beginning: bytes, more: bytes = b"a" * 4_096) -> Part:
    """After the beginning, as much as the sender takes, as fast as it takes it."""

    def part(connected: Connected, _request: Received) -> None:
        alive = connected.send(beginning)
        while alive and not connected.stopped.is_set():
            alive = connected.send(more)

    return part


def sends_session_tickets(keys: Path, records: int = 4_000) -> Part:
    """Session tickets, in so many records of TLS 1.3, and then a usual answer. No answer needs more than a few of them.

    ``keys`` is the file to which the receiver's context writes the keys of its connections. The context itself sends no
    tickets.
    """

    def part(connected: Connected, _request: Received) -> None:
        assert isinstance(connected.socket, ssl.SSLSocket)
        cipher = connected.socket.cipher()
        assert cipher is not None
        assert cipher[0] == "TLS_AES_256_GCM_SHA384"
        (line,) = [each for each in keys.read_text().splitlines() if each.startswith("SERVER_TRAFFIC_SECRET_0 ")]
        secret = bytes.fromhex(line.split()[2])
        aead = AESGCM(_expanded(secret, b"key", 32))
        first_nonce = int.from_bytes(_expanded(secret, b"iv", 12))
        ticket = bytes.fromhex("04 00000f 00000064 00000001 01 00 0001 74 0000")
        tickets = ticket * (16_000 // len(ticket)) + b"\x16"
        answer = http(200) + b"\x17"
        with socket.socket(fileno=connected.socket.detach()) as plain:
            for number in range(records + 1):
                content = tickets if number < records else answer
                head = b"\x17\x03\x03" + (len(content) + 16).to_bytes(2)
                plain.sendall(head + aead.encrypt((first_nonce ^ number).to_bytes(12), content, head))

    return part


def _expanded(secret: bytes, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label of TLS 1.3, for not more than a digest."""
    name = b"tls13 " + label
    info = length.to_bytes(2) + len(name).to_bytes(1) + name + b"\0\1"
    return hmac.digest(secret, info, "sha384")[:length]


def redirects_to(url: str, status: int = 302) -> Part:
    return answers(status, location=url)


def closes(_connected: Connected, _request: Received) -> None:
    """Without an answer."""


class Receiver:
    """A server on loopback.

    With ``accepts=False`` the connection is made, and then nothing is read: not even a TLS handshake. With
    ``reads=False`` the script begins before the request is read; the part gets an empty one.
    """

    def __init__(
        self, *script: Part, tls: ssl.SSLContext | None = None, accepts: bool = True, reads: bool = True
    ) -> None:
        self._script = list(script) or [answers()]
        self._tls = tls
        self._accepts = accepts
        self._reads = reads
        self._lock = Lock()
        self._stopped = Event()
        self._threads: list[Thread] = []
        self.connections = 0
        self.requests: list[Received] = []
        self._listening = socket.create_server((LOOPBACK, 0))
        self.port: int = self._listening.getsockname()[1]

    @property
    def url(self) -> str:
        return self.url_of(LOOPBACK)

    def url_of(self, host: str, path: str = "/hook") -> str:
        return f"{'https' if self._tls else 'http'}://{host}:{self.port}{path}"

    def __enter__(self) -> Receiver:
        self._start(self._listen)
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        # This wakes the thread that waits for connections. To close alone does not.
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for thread in self._threads:
            thread.join(_WAIT_SECONDS)

    def _start(self, target: Callable[..., None], *given: object) -> None:
        thread = Thread(target=target, args=given, daemon=True)
        self._threads.append(thread)
        thread.start()

    def _listen(self) -> None:
        while True:
            try:
                accepted, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                part = self._script[min(self.connections, len(self._script) - 1)]
                self.connections += 1
            self._start(self._serve, accepted, part)

    def _serve(self, accepted: socket.socket, part: Part) -> None:
        accepted.settimeout(_WAIT_SECONDS)
        with accepted, suppress(OSError):
            if not self._accepts:
                self._stopped.wait(_WAIT_SECONDS)
                return
            if self._tls is None:
                self._answer(accepted, part, None)
                return
            names: list[str | None] = []
            self._tls.sni_callback = lambda _socket, name, _context: names.append(name)
            with self._tls.wrap_socket(accepted, server_side=True) as encrypted:
                self._answer(encrypted, part, names[-1] if names else None)

    def _answer(self, connection: socket.socket, part: Part, server_name: str | None) -> None:
        request = _read(connection, server_name) if self._reads else Received("", "", {}, b"", server_name)
        if request is None:
            return
        with self._lock:
            self.requests.append(request)
        part(Connected(connection, self._stopped), request)


def _read(connection: socket.socket, server_name: str | None) -> Received | None:
    with connection.makefile("rb") as file:
        line = file.readline().decode("latin-1")
        if not line.strip():
            return None
        method, path, _version = line.split()
        headers: dict[str, str] = {}
        while (line := file.readline().decode("latin-1").strip()) != "":
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        return Received(method, path, headers, file.read(int(headers.get("content-length", "0"))), server_name)


# Names


@dataclass
class FakeNames:
    """A name server. Each lookup of a name takes its next answer; the last one repeats.

    An answer is a list of addresses, or an error that is raised.
    """

    answers: dict[str, Sequence[Sequence[str] | OSError]]
    looked_up: list[str] = field(default_factory=list)

    def __call__(self, name: str, _seconds: float) -> Sequence[str]:
        given = self.answers[name]
        answer = given[min(self.looked_up.count(name), len(given) - 1)]
        self.looked_up.append(name)
        if isinstance(answer, OSError):
            raise answer
        return answer


# Certificates


class Authority:
    """A certificate authority that nobody trusts but who is told to."""

    def __init__(self) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Tests")])
        self._certificate = (
            _certificate(self._name, self._name, self._key.public_key())
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )

    @cached_property
    def trusting(self) -> ssl.SSLContext:
        """The context of a sender that trusts this authority, and no other."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=_pem(self._certificate).decode())
        return context

    def serving(self, folder: Path, *names: str, expired: bool = False) -> ssl.SSLContext:
        """The context of a receiver with a certificate for these names and addresses."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, names[0])])
        certificate = (
            _certificate(subject, self._name, key.public_key(), expired=expired)
            .add_extension(x509.SubjectAlternativeName([_general_name(each) for each in names]), critical=False)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        file = folder / f"{names[0].replace(':', '_')}-{certificate.serial_number}.pem"
        private = key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        )
        file.write_bytes(private + _pem(certificate))
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)
        return context


def _certificate(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, *, expired: bool = False
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    until = now - timedelta(hours=1) if expired else now + timedelta(days=1)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(until)
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
