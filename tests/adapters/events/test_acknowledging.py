"""An event of the inbox may have connections, too: it is delivered once all of them are done with it."""

from __future__ import annotations

import pytest

from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
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


def test_an_event_with_connections_is_acknowledged_by_two_requests_at_most(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send(inbox=True)
    with noted_requests(deliveries.dynamodb) as calls:
        _acknowledge(deliveries, event_id)
    assert [name for name, _ in calls] == ["UpdateItem", "UpdateItem"]
