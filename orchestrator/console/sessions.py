"""Access to the console: tickets, sessions, and confirmations that can be sent once."""

from __future__ import annotations

import hmac
import secrets
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

TICKET_SECONDS = 60
IDLE_SECONDS = 30 * 60
"""A session ends after this time without a click. Pages that update themselves do not keep it alive."""
_MAX_CONFIRMATIONS = 100
"""The confirmations that a session may have open at once. The oldest is forgotten first."""


@dataclass
class Session:
    """One browser that has shown a ticket."""

    key: str
    csrf: str
    used_at: float
    notices: list[str] = field(default_factory=list)
    confirmations: dict[str, tuple[str, object]] = field(default_factory=dict)
    """The path that each open confirmation is for, and what it has shown, by its token."""

    def confirmation(self, path: str, shown: object) -> str:
        """A token for one form, which has shown this. Sending the form uses it up."""
        token = secrets.token_urlsafe(18)
        while len(self.confirmations) >= _MAX_CONFIRMATIONS:
            # Another thread may have forgotten the same one.
            self.confirmations.pop(next(iter(self.confirmations)), None)
        self.confirmations[token] = (path, shown)
        return token

    def spend(self, token: str, path: str) -> object | None:
        """Use up the token, and return what its form has shown; ``None`` if it was used or is for another form."""
        of_path, shown = self.confirmations.pop(token, (None, None))
        return shown if of_path == path else None

    def take_notices(self) -> list[str]:
        """The messages for the next page. Each is shown once."""
        taken, self.notices = self.notices, []
        return taken


class Sessions:
    """The sessions of one console. The endpoints run in several threads, so every change is made under a lock."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._lock = threading.Lock()
        self._ticket: tuple[str, float] | None = None
        self._sessions: dict[str, Session] = {}

    def issue_ticket(self) -> str:
        """A ticket for one browser. It replaces the ticket before it."""
        ticket = secrets.token_urlsafe(32)
        with self._lock:
            self._ticket = (ticket, self._monotonic() + TICKET_SECONDS)
        return ticket

    def has_ticket(self) -> bool:
        """True while a ticket can be used that nobody has used."""
        with self._lock:
            return self._ticket is not None and self._monotonic() < self._ticket[1]

    def enter(self, ticket: str) -> Session | None:
        """A new session for the ticket, which is used up. ``None`` if it is wrong, used or too old."""
        with self._lock:
            if self._ticket is None or not equal(ticket, self._ticket[0]):
                return None
            (_, until), self._ticket = self._ticket, None
            if self._monotonic() >= until:
                return None
            session = Session(secrets.token_urlsafe(32), secrets.token_urlsafe(32), self._monotonic())
            self._sessions[session.key] = session
            return session

    def find(self, key: str, *, by_a_person: bool) -> Session | None:
        """The session with this key, unless nobody has used it for too long. A person's click keeps it alive."""
        with self._lock:
            session = self._sessions.get(key)
            if session is None:
                return None
            if self._monotonic() - session.used_at > IDLE_SECONDS:
                del self._sessions[key]
                return None
            if by_a_person:
                session.used_at = self._monotonic()
            return session


def equal(one: str, other: str) -> bool:
    # compare_digest refuses texts that are not ASCII, so bytes are compared.
    return hmac.compare_digest(one.encode(errors="replace"), other.encode(errors="replace"))
