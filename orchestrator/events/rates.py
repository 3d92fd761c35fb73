"""Rates: how often something may be done, counted by each running instance of a function for itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable

from orchestrator.events.quotas import OverLimit
from orchestrator.events.records import EventSettings

REQUESTS_SAVED_UP_SECONDS = 30
"""A tenant that was quiet may send the requests of this many seconds at once."""

_MAX_NAMES = 2_000
_WITHOUT_A_RATE_SECONDS = 60


class Rates:
    """Each name has its own rate. A pause saves up ``at_once`` uses, at most."""

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left: dict[Hashable, tuple[float, float]] = {}
        """For each name: the uses that are left, and when that was computed."""

    def take(self, name: Hashable, *, per_second: float, at_once: int) -> int | None:
        """Use the rate once. If nothing is left of it, the seconds after which there is."""
        now = self._monotonic()
        left, since = self._left.get(name, (float(at_once), now))
        left = min(float(at_once), left + (now - since) * per_second)
        if left < 1:
            return max(1, math.ceil((1 - left) / per_second)) if per_second else _WITHOUT_A_RATE_SECONDS
        if name not in self._left and len(self._left) >= _MAX_NAMES:
            self._left.clear()
        self._left[name] = left - 1, now
        return None


class RequestQuotas:
    """The requests with which a tenant reads and configures, by its plan.

    All tenants share the rate limit of a route and the concurrency of the function, and a page of events may be
    a thousand reads.
    """

    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._rates = Rates(monotonic=monotonic)

    def take(self, settings: EventSettings) -> OverLimit | None:
        per_second = settings.limits.requests_per_second
        seconds = self._rates.take(settings.life, per_second=per_second, at_once=per_second * REQUESTS_SAVED_UP_SECONDS)
        if seconds is None:
            return None
        return OverLimit(
            f"Tenant {settings.life.tenant} sends more than the {per_second:,} requests per second of its plan "
            f"{settings.plan}. Ask less often, and for more events at a time.",
            seconds,
        )
