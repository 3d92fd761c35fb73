"""Which user of this machine has opened a connection to the console.

The address that opens the console has a ticket, and a browser's command line is visible to every user of the machine.
So a ticket counts only if it comes from the user who runs the console. Linux says whose a socket is; on other systems,
nothing is known, and the ticket decides alone.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

Address = tuple[str, int]
OwnerOf = Callable[[Address, Address], "int | None"]

_TABLES = (Path("/proc/net/tcp"), Path("/proc/net/tcp6"))
_LOOPBACK = ("0100007F", "0000000000000000FFFF00000100007F")
"""127.0.0.1 as the kernel writes it on a little-endian machine, by itself and within an IPv6 address."""
_HERE = "127.0.0.1"
_ROOT = 0


def owner_of_socket(peer: Address, here: Address) -> int | None:
    """The user id of the socket that is bound to ``peer`` and connected to ``here``. ``None`` if there is none.

    A client that connects from 127.0.0.2 chooses its port freely, also that of a connection of the operator's browser.
    So only 127.0.0.1 itself has an owner, where no two sockets can have the same ports.
    """
    if peer[0] != _HERE:
        return None
    for local, remote, owner in _sockets():
        if local.endswith(f":{peer[1]:04X}") and remote.endswith(f":{here[1]:04X}"):
            return owner
    return None


def is_ours(
    peer: Address,
    here: Address,
    *,
    owner_of: OwnerOf = owner_of_socket,
    owners_are_known: bool = sys.platform.startswith("linux"),
) -> bool:
    """True if the connection from ``peer`` to ``here`` is of the user who runs the console, or of root."""
    return not owners_are_known or owner_of(peer, here) in (os.getuid(), _ROOT)


def _sockets() -> Iterator[tuple[str, str, int]]:
    for table in _TABLES:
        try:
            lines = table.read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for line in lines:
            fields = line.split()
            if fields[1].startswith(_LOOPBACK) and fields[2].startswith(_LOOPBACK):
                yield fields[1], fields[2], int(fields[7])
