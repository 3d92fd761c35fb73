"""Tests of a connection: an event of type ``berth.test`` that is sent to this connection alone, like any other event.

It takes the way of all events, so its attempts are on record. It is counted like them, but does not go to the inbox.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

from orchestrator.common.errors import Throttled
from orchestrator.common.times import Clock, timestamp
from orchestrator.events.accepting import Accepted, Accepting, NewEvent
from orchestrator.events.authorising import Standing
from orchestrator.events.configuring_connections import ConfiguringConnections
from orchestrator.events.delivery import health
from orchestrator.events.delivery.records import ONLY_CONNECTION, TEST_EVENT_TYPE, Connection
from orchestrator.events.quotas import OverLimit, month_of
from orchestrator.events.rates import Rates
from orchestrator.events.records import Content, EventSettings
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.resource_ids import IdPrefix, is_resource_id

TESTS_AT_ONCE = 20
TESTS_PER_SECOND = 1 / 60
"""The rate of one tenant per running function. The month's quota does not limit tests, and each may send a mail."""


@dataclass(frozen=True, slots=True)
class SentTest:
    connection: Connection
    event_id: str


class SendingTests:
    def __init__(
        self, *, connections: ConfiguringConnections, accepting: Accepting, rates: Rates, clock: Clock
    ) -> None:
        self._connections = connections
        self._accepting = accepting
        self._rates = rates
        self._clock = clock

    def send(self, settings: EventSettings, connection_id: str) -> SentTest | Refused:
        connection = self._connections.find(settings.life, connection_id)
        if isinstance(connection, Refused):
            return connection
        if health.has_ended(connection):
            return Refused(
                EventRefusal.CONNECTION_DISABLED,
                settings.life.tenant,
                f"The connection {connection_id} of tenant {settings.life.tenant} is disabled, so nothing is sent to "
                "it. Resume it, and then test it.",
            )
        seconds = self._rates.take(settings.life, per_second=TESTS_PER_SECOND, at_once=TESTS_AT_ONCE)
        if seconds is not None:
            return Refused(
                EventRefusal.LIMIT_REACHED,
                settings.life.tenant,
                f"Tenant {settings.life.tenant} has tested its connections {TESTS_AT_ONCE} times. After that, one test "
                f"per minute is the limit. Try again in {seconds} seconds.",
            )
        now = self._clock.now()
        # The month's quota does not matter to somebody who sets a connection up. The limit per second does.
        standing = Standing(replace(settings, inbox=False), used=0, month=month_of(now))
        outcome = self._accepting.accept(standing, _test_of(connection, timestamp(now)))
        if isinstance(outcome, OverLimit):
            raise Throttled(f"Tenant {settings.life.tenant}: it sends more events per second than its plan allows.")
        assert isinstance(outcome, Accepted)  # noqa: S101 - it is small, and has no idempotency key
        return SentTest(connection, outcome.event_id)


def _test_of(connection: Connection, at: str) -> NewEvent:
    payload = {
        "message": "This is a test of your connection by Berth.",
        "connection_id": connection.connection_id,
        "connection_name": connection.name,
        "sent_at": at,
    }
    origin = connection.origin
    return NewEvent(
        TEST_EVENT_TYPE,
        Content(json.dumps(payload).encode()),
        source_id=origin if is_resource_id(IdPrefix.SOURCE, origin) else None,
        form_id=origin if is_resource_id(IdPrefix.FORM, origin) else None,
        metadata={ONLY_CONNECTION: connection.connection_id},
    )
