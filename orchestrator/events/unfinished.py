"""Events of a tenant that somebody still has to act on. A delete of the tenant would lose them."""

from __future__ import annotations

from collections.abc import Mapping

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.events.event_ids import IdRange
from orchestrator.events.ports import Configuration, EventReads, ParkedDeliveries, Tenants
from orchestrator.events.records import Event, EventSettings
from orchestrator.events.statuses import UNDELIVERED, EventStatus

INBOX = "inbox of events"
DELIVERIES = "deliveries of events"
"""The names of the places where events wait, in messages to people."""
MAX_COUNTED = 100
"""Enough to tell a person how many events would be lost."""

_MAX_ROUNDS = 10


class CountingUnfinished:
    def __init__(
        self,
        *,
        tenants: Tenants,
        configuration: Configuration,
        events: EventReads,
        parked: ParkedDeliveries,
        clock: Clock,
    ) -> None:
        self._parked = parked
        self._tenants = tenants
        self._configuration = configuration
        self._events = events
        self._clock = clock

    def count(self, tenant: TenantId) -> Mapping[str, int]:
        """The number of unfinished events, by the place where they wait, each up to the maximum; only places that have
        some. A tenant that is withdrawn has its events still.
        """
        settings = self._configuration.settings(tenant)
        # The settings may be a predecessor's, whose events are about to be purged.
        if settings is None or self._tenants.has_ended(tenant, settings.incarnation):
            return {}
        # An event whose delivery is parked may have any status.
        parked = self._parked.count_parked(settings.life, MAX_COUNTED)
        found = {
            INBOX: self._listed_as(settings, UNDELIVERED, MAX_COUNTED),
            DELIVERIES: parked + self._listed_as(settings, EventStatus.RETRYING, MAX_COUNTED - parked),
        }
        return {place: min(number, MAX_COUNTED) for place, number in found.items() if number}

    def _listed_as(self, settings: EventSettings, status: str, most: int) -> int:
        found = 0
        for shard in range(settings.shards):
            if found < most:
                found += self._in_shard(settings, shard, status)
        return found

    def _in_shard(self, settings: EventSettings, shard: int, status: str) -> int:
        """The newest events come first, because they expire last."""
        within = IdRange()
        for _ in range(_MAX_ROUNDS):
            ids, more = self._events.by_status(settings.life, status, shard, within, MAX_COUNTED, newest_first=True)
            # The index is behind the rows: an event may have been acknowledged, or have expired, since.
            rows = self._events.read(settings.life, ids).values()
            found = sum(map(self._is_unfinished, rows))
            if found or not more:
                return found
            within = IdRange(before=ids[-1])
        # Too many events are listed to read all rows. One counts, because a delete must not lose what may be there.
        return 1

    def _is_unfinished(self, event: Event) -> bool:
        return (event.in_inbox or event.status is EventStatus.RETRYING) and event.expires_at > self._clock.now()
