"""Events of a tenant that somebody still has to act on. A delete of the tenant would lose them (decision 41)."""

from __future__ import annotations

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import Clock
from orchestrator.events.event_ids import IdRange
from orchestrator.events.ports import Configuration, EventReads, Tenants
from orchestrator.events.records import Event, EventSettings
from orchestrator.events.statuses import UNDELIVERED, EventStatus

INBOX = "inbox of events"
"""The name of the place where the events wait, in messages to people."""
MAX_COUNTED = 100
"""Enough to tell a person how many events would be lost."""

_UNFINISHED = (UNDELIVERED, EventStatus.RETRYING)
_MAX_ROUNDS = 10


class CountingUnfinished:
    def __init__(self, *, tenants: Tenants, configuration: Configuration, events: EventReads, clock: Clock) -> None:
        self._tenants = tenants
        self._configuration = configuration
        self._events = events
        self._clock = clock

    def count(self, tenant: TenantId) -> int:
        """The number of unfinished events, up to the maximum. A tenant that is withdrawn has its events still."""
        settings = self._configuration.settings(tenant)
        # The settings may be a predecessor's, whose events are about to be purged.
        if settings is None or self._tenants.has_ended(tenant, settings.incarnation):
            return 0
        found = 0
        for shard in range(settings.shards):
            for status in _UNFINISHED:
                if found < MAX_COUNTED:
                    found += self._in_shard(settings, shard, status)
        return min(found, MAX_COUNTED)

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
        # There is more than anybody wants to read. It counts, because a delete must not lose what may be there.
        return 1

    def _is_unfinished(self, event: Event) -> bool:
        return (event.in_inbox or event.status is EventStatus.RETRYING) and event.expires_at > self._clock.now()
