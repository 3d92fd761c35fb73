"""An event of the inbox may have connections, too: it is delivered once all of them are done with it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

import pytest

from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.events.delivery.delivering import Outcome
from orchestrator.events.delivery.writes import DeliveryWrite
from orchestrator.events.inbox import Acknowledged
from orchestrator.events.listing import Filter
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, UNWANTED, DeliveryWorld
from tests.adapters.events.noting import noted_requests
from tests.fakes.events import ACME_LIFE, event_settings
from tests.present import present


def _acknowledge(world: DeliveryWorld, event_id: str) -> Acknowledged:
    return world.inbox.acknowledge(event_settings(), [event_id])[event_id]


def _listed(world: DeliveryWorld, status: EventStatus) -> list[str]:
    page = world.listing.page(event_settings(), Filter(status=status), cursor=None, limit=10)
    return [event.event_id for event in page.events]


def test_an_event_that_is_acknowledged_before_its_connection_tried_is_delivered_with_the_connection(
    deliveries: DeliveryWorld,
) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.dispatch(event_id)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert deliveries.waits_in_inbox() == []
    assert deliveries.status(event_id) is EventStatus.RECEIVED
    deliveries.deliver()
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert deliveries.receivers.count(event_id) == 1


def test_the_last_acknowledgement_makes_the_event_delivered(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send(inbox=True)
    assert deliveries.waits_in_inbox() == [event_id]
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert (deliveries.status(event_id), deliveries.waits_in_inbox()) == (EventStatus.DELIVERED, [])
    assert deliveries.event(event_id).delivered_at == deliveries.clock.now()


def test_an_acknowledgement_does_not_hide_a_failure(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = UNWANTED
    event_id = deliveries.send(inbox=True)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert deliveries.status(event_id) is EventStatus.FAILED
    assert _listed(deliveries, EventStatus.FAILED) == [event_id]


def test_an_acknowledged_event_that_is_being_retried_is_listed_as_such(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    deliveries.receivers.answers = {FIRST: TAKEN, SECOND: BROKEN}
    event_id = deliveries.send(inbox=True)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert deliveries.status(event_id) is EventStatus.RETRYING
    assert (deliveries.waits_in_inbox(), _listed(deliveries, EventStatus.RETRYING)) == ([], [event_id])
    assert present(deliveries.table.event(ACME_LIFE, event_id)).pending == {SECOND}


def test_to_acknowledge_twice_changes_nothing_while_connections_are_not_done(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.dispatch(event_id)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    before = deliveries.table.event(ACME_LIFE, event_id)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert deliveries.table.event(ACME_LIFE, event_id) == before


def test_a_delivery_that_ends_meanwhile_is_not_forgotten(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.dispatch(event_id)
    apply, waiting = DynamoDeliveries.apply, deliveries.messages.take()

    def deliver_first(table: DynamoDeliveries, transition: object) -> bool:
        monkeypatch.setattr(DynamoDeliveries, "apply", apply)
        for message in waiting:
            deliveries.delivering.deliver(message)
        return apply(table, transition)  # type: ignore[arg-type]

    monkeypatch.setattr(DynamoDeliveries, "apply", deliver_first)
    assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
    assert deliveries.receivers.count(event_id) == 1
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_resend_that_succeeds_while_the_event_is_acknowledged_makes_it_delivered(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = UNWANTED
    event_id = deliveries.send(inbox=True)
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.resending.resend(event_settings(), event_id)
    apply = DynamoDeliveries.apply

    def acknowledge_first(table: DynamoDeliveries, transition: Sequence[DeliveryWrite]) -> bool:
        if len(transition) > 1:
            # The try was made, and is about to be recorded.
            monkeypatch.setattr(DynamoDeliveries, "apply", apply)
            assert _acknowledge(deliveries, event_id) is Acknowledged.DONE
            assert deliveries.status(event_id) is EventStatus.FAILED
        return apply(table, transition)

    monkeypatch.setattr(DynamoDeliveries, "apply", acknowledge_first)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert _listed(deliveries, EventStatus.FAILED) == []


def test_an_event_with_connections_is_acknowledged_by_two_requests_at_most(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send(inbox=True)
    with noted_requests(deliveries.dynamodb) as calls:
        _acknowledge(deliveries, event_id)
    assert [name for name, _ in calls] == ["UpdateItem", "UpdateItem"]


def test_a_resend_that_succeeds_while_the_last_connection_ends_makes_the_event_delivered(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    deliveries.receivers.answers = {FIRST: UNWANTED, SECOND: BROKEN}
    event_id = deliveries.send()
    retries = deliveries.messages.take()
    deliveries.receivers.answers = {}
    deliveries.resending.resend(event_settings(), event_id, FIRST)
    deliveries.wait(timedelta(minutes=1))
    apply = DynamoDeliveries.apply

    def end_first(table: DynamoDeliveries, transition: Sequence[DeliveryWrite]) -> bool:
        if len(transition) > 1:
            # The resend was made, and is about to be recorded.
            monkeypatch.setattr(DynamoDeliveries, "apply", apply)
            assert [deliveries.delivering.deliver(message) for message in retries] == [Outcome.DELIVERED]
            assert deliveries.status(event_id) is EventStatus.FAILED
        return apply(table, transition)

    monkeypatch.setattr(DynamoDeliveries, "apply", end_first)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert _listed(deliveries, EventStatus.FAILED) == []
