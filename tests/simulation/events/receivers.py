"""Receivers that work, fail, hang, come and go, and lie."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum, auto

from orchestrator.events.delivery.records import Outgoing, TryResult, Verdict


class Behaviour(Enum):
    WORKS = auto()
    FAILS = auto()
    SLOW = auto()
    HANGS = auto()
    LIES = auto()
    """It takes the event, and says that it has not."""
    OVERLOADED = auto()
    ABORTS = auto()
    GONE = auto()


_TEXTS = {
    Behaviour.FAILS: TryResult(Verdict.RETRY, 20, 500, "no"),
    Behaviour.LIES: TryResult(Verdict.RETRY, 20, 500, "no"),
    Behaviour.HANGS: TryResult(Verdict.RETRY, 15_000, None, "There was no answer within 15 seconds.", slows=True),
    Behaviour.OVERLOADED: TryResult(Verdict.RETRY, 20, 429, "later", timedelta(seconds=90), slows=True),
    Behaviour.ABORTS: TryResult(Verdict.GIVE_UP, 20, 400, "not this one"),
    Behaviour.GONE: TryResult(Verdict.GONE, 20, 410, "gone"),
}


@dataclass
class Receivers:
    rng: random.Random
    behaviours: dict[str, Behaviour] = field(default_factory=dict)
    """By connection. Without one it works."""
    failing: float = 0.0
    received: Counter[tuple[str, str]] = field(default_factory=Counter)
    """How often each (event, connection) was taken."""

    def send(self, outgoing: Outgoing) -> TryResult:
        connection_id = outgoing.connection.connection_id
        behaviour = self.behaviours.get(connection_id, Behaviour.WORKS)
        if behaviour is Behaviour.WORKS and self.rng.random() < self.failing:
            behaviour = self.rng.choice((Behaviour.FAILS, Behaviour.HANGS, Behaviour.LIES, Behaviour.OVERLOADED))
        if behaviour in (Behaviour.WORKS, Behaviour.SLOW, Behaviour.LIES):
            self.received[outgoing.event.event_id, connection_id] += 1
        if behaviour in (Behaviour.WORKS, Behaviour.SLOW):
            return TryResult(Verdict.DELIVERED, 5_000 if behaviour is Behaviour.SLOW else 20, 200)
        return _TEXTS[behaviour]
