"""Where a webhook may be sent: to public addresses only, so that no tenant reaches what is inside.

``ipaddress.is_global`` is not enough: it calls addresses public that translate to private ones, and addresses that are
reserved. A name is refused if any of its addresses is refused, because a connection could reach any of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from urllib.parse import urlsplit

from orchestrator.common.errors import InvalidRequest

MAX_URL = 2_048
_HTTPS_PORT = 443
_HTTP_PORT = 80
_FIRST_UNPRIVILEGED_PORT = 1_024
_ALLOWED_LOW_PORTS = frozenset({_HTTPS_PORT})
_DATABASE_PORTS = frozenset(
    {1_433, 1_521, 2_181, 2_375, 2_376, 2_379, 2_380, 3_306, 5_432, 5_984, 6_379, 6_443, 8_086, 9_042, 9_092, 9_200}
    | {9_300, 10_250, 11_211, 27_017, 27_018, 50_000}
)
"""Ports of databases, caches, queues and cluster managers. Nobody receives webhooks there."""

# A label of a DNS name. The last one must not be a number, which some resolvers read as part of an IPv4 address.
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_NUMERIC_LABEL = re.compile(r"[0-9]+|0x[0-9a-f]*")
_MAX_NAME = 253

_REFUSED_IPV4 = tuple(
    IPv4Network(each)
    for each in (
        "100.64.0.0/10",  # carrier-grade NAT, which cloud providers use inside
        "192.0.0.0/24",  # protocol assignments; is_global accepts some of it
        "192.88.99.0/24",  # 6to4 relays
    )
)
_REFUSED_IPV6 = tuple(
    IPv6Network(each)
    for each in (
        "::/8",  # loopback, unspecified, and addresses with an IPv4 address inside, those of NAT64 among them
        "100::/64",  # discarded
        "2001::/23",  # protocol assignments, Teredo among them
        "2002::/16",  # 6to4: an IPv4 address inside
        "3fff::/20",  # documentation
        "5f00::/16",  # segment routing
        "fec0::/10",  # site-local
    )
)


@dataclass(frozen=True, slots=True)
class Target:
    """A URL that a delivery is sent to, in parts. It was parsed once, and nobody parses it again."""

    scheme: str
    host: str
    """A name or an address, in lower case. An IPv6 address has no brackets."""
    port: int
    path: str
    """Path and query, as the request line has them."""

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        is_default = self.port == (_HTTPS_PORT if self.scheme == "https" else _HTTP_PORT)
        return host if is_default else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.authority}{self.path}"


@dataclass(frozen=True, slots=True)
class AddressRules:
    """Which targets are allowed. The defaults are those of production."""

    plain_http: bool = False
    """True only on a developer's machine."""
    loopback: bool = False
    """True only on a developer's machine, whose receivers are there."""
    own_hosts: frozenset[str] = frozenset()
    """Berth's own addresses. A delivery to them would come in as an event again."""

    def parse(self, url: str) -> Target:
        """Raises :class:`InvalidRequest` for a URL that no delivery may be sent to, whatever its name resolves to."""
        if len(url) > MAX_URL:
            raise _refused(f"it is longer than {MAX_URL} characters")
        if not url.isascii() or not url.isprintable() or any(each in url for each in ' \\"<>^`{|}'):
            raise _refused("it has characters that have to be percent-encoded")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise _refused("it is not a URL") from None
        if parts.scheme != "https" and not (self.plain_http and parts.scheme == "http"):
            raise _refused(f"it does not begin with https://{' or http://' if self.plain_http else ''}")
        if "@" in parts.netloc:
            raise _refused("it has a user name or a password")
        if parts.fragment or "#" in url:
            raise _refused("it has a fragment (#), which is never sent")
        return Target(
            scheme=parts.scheme,
            host=self._host(parts.hostname or ""),
            port=self._port(port, parts.scheme),
            path=(parts.path or "/") + (f"?{parts.query}" if parts.query else ""),
        )

    def _host(self, host: str) -> str:
        address = _literal(host)
        if address is not None:
            if not self.allows(str(address)):
                raise _not_allowed()
            return str(address)
        # A dot at its end says that a name is whole. No address has one.
        name = host.lower().removesuffix(".")
        labels = name.split(".")
        if len(name) > _MAX_NAME or not all(_LABEL.fullmatch(label) for label in labels):
            raise _refused("its host is not a name or an address")
        if self.loopback and name == "localhost":
            return name
        if len(labels) == 1 or _NUMERIC_LABEL.fullmatch(labels[-1]) or name in self.own_hosts:
            raise _not_allowed()
        return name

    def _port(self, given: int | None, scheme: str) -> int:
        port = given if given is not None else (_HTTPS_PORT if scheme == "https" else _HTTP_PORT)
        if self.loopback:
            return port
        if port not in _ALLOWED_LOW_PORTS and (port < _FIRST_UNPRIVILEGED_PORT or port in _DATABASE_PORTS):
            raise _not_allowed()
        return port

    def allows(self, address: str) -> bool:
        """True if a delivery may connect to the address."""
        try:
            parsed = ip_address(address)
        except ValueError:
            return False
        if self.loopback and parsed.is_loopback:
            return True
        return _is_public(parsed)

    def choose(self, addresses: Sequence[str]) -> str | None:
        """The address to connect to, IPv4 first. ``None`` if there is none, or if any of them is not allowed."""
        if not addresses or not all(map(self.allows, addresses)):
            return None
        return min(addresses, key=lambda each: ":" in each)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    if isinstance(address, IPv6Address):
        if address.scope_id is not None:
            return False
        if address.ipv4_mapped is not None:
            return _is_public(address.ipv4_mapped)
        if any(address in network for network in _REFUSED_IPV6):
            return False
    elif any(address in network for network in _REFUSED_IPV4):
        return False
    return address.is_global and not address.is_multicast and not address.is_reserved


def _literal(host: str) -> IPv4Address | IPv6Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None


def _refused(why: str) -> InvalidRequest:
    return InvalidRequest(f"address: a webhook cannot be sent there, because {why}.")


def _not_allowed() -> InvalidRequest:
    """The sentence is the same for every address, so that nobody learns from it what is inside."""
    return InvalidRequest("address: a webhook cannot be sent there, because the address is not allowed.")
