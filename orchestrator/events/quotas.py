"""The limits of a tenant's plan, checked without shared state.

Each running instance of a function counts for itself, so the limits are approximate:

- Events per second: a tenant gets its rate from every instance that serves it, at most. Repetitions use up none of it,
  and a batch can always be accepted in full after a pause. A steady sender that is served
  by one instance gets exactly its rate; a burst over N instances gets up to N times the rate.
- Events per month: the usage on record is about 10 seconds behind, and an instance reads it every 10 seconds. What an
  instance has accepted since it last read is added to it. So a month closes at most some seconds late. Requests that
  make no event, such as repetitions, are not counted.
- Submissions of forms are events, and may use half of the month: anybody can send them, and the other half is left to
  senders with a key or a signature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from math import ceil
from typing import TYPE_CHECKING

from orchestrator.events.records import TenantEpoch

if TYPE_CHECKING:
    from orchestrator.events.authorising import Standing

_MAX_TENANTS = 2_000


@dataclass(frozen=True, slots=True)
class OverLimit:
    """The tenant has used up what its plan includes."""

    reason: str
    retry_after_seconds: int


@dataclass(slots=True)
class _Bucket:
    """The rest of a tenant's rate and month in this instance."""

    tokens: float
    filled_at: float
    on_record: tuple[str, int, int] = ("", 0, 0)
    """The month, and the events and the submissions on record that ``accepted`` and ``submitted`` are added to."""
    accepted: int = 0
    submitted: int = 0


class Quotas:
    def __init__(self, *, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._buckets: dict[TenantEpoch, _Bucket] = {}

    def take(self, standing: Standing, at: datetime, *, submission: bool = False) -> OverLimit | None:
        """Use up a part of the rate for an event that is about to be accepted, or say why it is not."""
        settings, limits = standing.settings, standing.settings.limits
        bucket, now = self._bucket(standing), self._monotonic()
        bucket.tokens = min(
            float(limits.events_at_once), bucket.tokens + (now - bucket.filled_at) * limits.events_per_second
        )
        bucket.filled_at = now
        month = month_of(at)
        # The remembered usage may be that of a month that is over by now.
        used, submitted = (standing.used, standing.submitted) if standing.month == month else (0, 0)
        if bucket.on_record != (month, used, submitted):
            bucket.on_record, bucket.accepted, bucket.submitted = (month, used, submitted), 0, 0
        if used + bucket.accepted >= limits.events_per_month:
            return OverLimit(
                f"Tenant {settings.life.tenant} has used the {limits.events_per_month:,} events per month of its plan "
                f"{settings.plan}. The month ends at {_end_of_month(at):%Y-%m-%d} 00:00 UTC; another plan takes effect "
                "at once.",
                ceil((_end_of_month(at) - at).total_seconds()),
            )
        if submission and submitted + bucket.submitted >= limits.submissions_per_month:
            return OverLimit(
                f"Tenant {settings.life.tenant} has had the {limits.submissions_per_month:,} submissions of forms per "
                f"month of its plan {settings.plan}. The month ends at {_end_of_month(at):%Y-%m-%d} 00:00 UTC; another "
                "plan takes effect at once.",
                ceil((_end_of_month(at) - at).total_seconds()),
            )
        if bucket.tokens < 1:
            return OverLimit(
                f"Tenant {settings.life.tenant} sends more than the {limits.events_per_second:,} events per second of "
                f"its plan {settings.plan}. Send more slowly, or send batches after a pause.",
                1,
            )
        bucket.tokens -= 1
        return None

    def give_back(self, standing: Standing) -> None:
        """Give back what a repetition has used up of the rate."""
        self._bucket(standing).tokens += 1

    def count(self, standing: Standing, *, submission: bool = False) -> None:
        """Count an event that was accepted, until the usage on record has it."""
        bucket = self._bucket(standing)
        bucket.accepted += 1
        bucket.submitted += submission

    def _bucket(self, standing: Standing) -> _Bucket:
        life = standing.settings.life
        bucket = self._buckets.get(life)
        if bucket is None:
            if len(self._buckets) >= _MAX_TENANTS:
                self._buckets.clear()
            full = float(standing.settings.limits.events_at_once)
            bucket = self._buckets[life] = _Bucket(tokens=full, filled_at=self._monotonic())
        return bucket


def month_of(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m}"


def _end_of_month(at: datetime) -> datetime:
    first = at.astimezone(UTC).replace(day=1, hour=0, minute=0, second=0, microsecond=0)
    return (first + timedelta(days=32)).replace(day=1)
