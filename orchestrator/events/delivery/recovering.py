"""Messages that a function could not handle, again and again, end in the dead-letter queue. They are our failures.

Each is given a due time in the row of its delivery, so that nothing is lost with the message. A delivery that ends
there for the third time fails, and says that the failure was internal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from enum import StrEnum

from orchestrator.common.errors import Unsettled
from orchestrator.common.times import Clock
from orchestrator.events.delivery import transitions
from orchestrator.events.delivery.delivering import failed_untried
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.ports import DeliveryTable
from orchestrator.events.delivery.records import Delivery, DeliveryState, DispatchedEvent, origin_of
from orchestrator.events.delivery.writes import DeliveryWrite

TIMES = 3
AGAIN_AFTER = timedelta(minutes=5)
INTERNAL = "internal: Berth could not handle the delivery. Operators were alerted."
_ROUNDS = 5


class Recovered(StrEnum):
    DUE = "due"
    FAILED = "failed"
    NOTHING_TO_DO = "nothing-to-do"
    """The delivery has ended, waits anyway, or its event is gone."""


class Recovering:
    def __init__(self, *, table: DeliveryTable, clock: Clock) -> None:
        self._table = table
        self._clock = clock

    def recover(self, message: DeliveryMessage) -> Recovered:
        ref = message.ref
        for _ in range(_ROUNDS):
            event = self._table.event(ref.life, ref.event_id)
            delivery = self._table.delivery(ref)
            if event is None or not _is_open(event, delivery, message):
                return Recovered.NOTHING_TO_DO
            result, transition = self._decide(event, delivery, message)
            if self._table.apply(transition):
                return result
        raise Unsettled(
            f"Tenant {ref.life.tenant}: the delivery of event {ref.event_id} is changed by others. Try again."
        )

    def _decide(
        self, event: DispatchedEvent, delivery: Delivery | None, message: DeliveryMessage
    ) -> tuple[Recovered, Sequence[DeliveryWrite]]:
        now = self._clock.now()
        known = delivery or Delivery(
            message.ref, DeliveryState.RETRYING, 0, now, event.event.expires_at, origin_of(event.event)
        )
        lost = replace(known, lost=known.lost + 1, due=now + AGAIN_AFTER, sent=0, leased_until=None)
        if lost.lost < TIMES:
            return Recovered.DUE, transitions.changed(delivery, lost)
        failed = failed_untried(lost, INTERNAL, now)
        return Recovered.FAILED, transitions.ended_untried(event, delivery, failed, now)


def _is_open(event: DispatchedEvent, delivery: Delivery | None, message: DeliveryMessage) -> bool:
    if delivery is None:
        return not message.claims and transitions.entry_of(event, message.ref.connection_id) is None
    # A row with other tries was tried since, and has a due time of its own.
    return delivery.state is DeliveryState.RETRYING and delivery.tries == message.tries
