"""Events reach the connections of their tenant, whatever happens to functions, messages and receivers on the way."""

from __future__ import annotations

import pytest
from standardwebhooks import Webhook

from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery.records import DeliveryState
from orchestrator.events.statuses import EventStatus
from tests.e2e.deliveries import Delivering, everything_twice, kill, messages_come_again_soon
from tests.e2e.deployed import Deployed, eventually
from tests.fakes.receivers import Receiver, answers, hangs

SOON = [1, 1, 1, 1]
"""The waits between tries, in seconds."""


@pytest.fixture(scope="module")
def tenant(berth: Deployed) -> Delivering:
    name = TenantId("delivering")
    assert berth.settled(name).status == 200
    return Delivering(berth, name)


def test_an_event_reaches_the_tenants_queue_and_a_webhook_that_fails_once(tenant: Delivering) -> None:
    with Receiver(answers(500, b"not now"), answers(200)) as receiver:
        queue = tenant.connect("own queue")
        hook = tenant.connect("hook", destination="webhook", address=receiver.url, retry_seconds=SOON)
        event_id = tenant.send({"order": 42})
        event = tenant.ended(event_id)

        assert event.event.status is EventStatus.DELIVERED
        (message,) = tenant.from_own_queue(1)
        assert (message["event_id"], message["payload"]) == (event_id, {"order": 42})
        assert {request.headers["webhook-id"] for request in receiver.requests} == {
            f"{event_id}-{hook['connection_id']}"
        }
        first, second = receiver.requests
        for request in (first, second):
            Webhook(hook["secret"]).verify(request.body, request.headers)

        entries = event.entries or {}
        assert {name: (entry.state, entry.tries) for name, entry in entries.items()} == {
            queue["connection_id"]: (DeliveryState.DELIVERED, 1),
            hook["connection_id"]: (DeliveryState.DELIVERED, 2),
        }
        assert [(each.number, each.delivered, each.code, each.text) for each in tenant.attempts(event_id)] == [
            (1, False, 500, "not now"),
            (2, True, 200, ""),
        ]
        tenant.disconnect(queue, hook)


def test_a_webhook_that_only_fails_is_given_up_and_says_why(tenant: Delivering) -> None:
    with Receiver(answers(503, b"closed")) as receiver:
        hook = tenant.connect("dead", destination="webhook", address=receiver.url, retry_seconds=[1])
        event = tenant.ended(tenant.send({"order": 1}))
        assert event.event.status is EventStatus.FAILED
        (entry,) = (event.entries or {}).values()
        assert (entry.state, entry.tries, entry.code, entry.reason) == (DeliveryState.FAILED, 2, 503, "closed")
        tenant.disconnect(hook)


def test_events_for_a_paused_connection_wait_and_go_out_when_it_is_resumed(tenant: Delivering) -> None:
    """The sweep sends them, which is called every minute."""
    with Receiver() as receiver:
        hook = tenant.connect("paused", destination="webhook", address=receiver.url)
        tenant.change(hook, "pause")
        event_id = tenant.send({"order": 7})
        eventually(
            lambda: tenant.table.parked(hook["connection_id"], 10) or None, what="the delivery is parked", pause=0.5
        )
        assert receiver.requests == []
        tenant.change(hook, "resume")
        assert tenant.ended(event_id).event.status is EventStatus.DELIVERED
        assert len(receiver.requests) == 1
        tenant.disconnect(hook)


def test_an_event_whose_delivery_is_killed_arrives_all_the_same(berth: Deployed, tenant: Delivering) -> None:
    with Receiver(hangs, answers(200)) as receiver, messages_come_again_soon(berth, tenant.api):
        hook = tenant.connect("killed", destination="webhook", address=receiver.url, retry_seconds=SOON)
        event_id = tenant.send({"order": 8})
        eventually(lambda: receiver.requests or None, what="the first try has begun")
        assert kill(berth, "deliver_events")
        assert tenant.ended(event_id).event.status is EventStatus.DELIVERED
        assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1
        assert tenant.attempts(event_id) == []
        tenant.disconnect(hook)


def test_an_event_arrives_although_the_emulator_is_restarted_in_the_middle(berth: Deployed, tenant: Delivering) -> None:
    with Receiver(answers(500), answers(200)) as receiver, messages_come_again_soon(berth, tenant.api):
        queue = tenant.connect("own queue")
        hook = tenant.connect("restarted", destination="webhook", address=receiver.url, retry_seconds=SOON)
        with berth.held_up("deliver_events"):
            event_id = tenant.send({"order": 9})
            eventually(lambda: tenant.event(event_id).pending, what="the event is dispatched", pause=0.5)
            berth.emulator.stop()
            berth.emulator.start()
        event = tenant.ended(event_id)
        assert event.event.status is EventStatus.DELIVERED
        assert event_id in {message["event_id"] for message in tenant.from_own_queue(1)}
        assert len(receiver.requests) == 2
        tenant.disconnect(queue, hook)


def test_every_event_arrives_and_is_recorded_once_although_every_message_comes_twice(
    berth: Deployed, tenant: Delivering
) -> None:
    """Two functions may try the same delivery at the same time, so a receiver may get it twice, with the same id."""
    with Receiver(answers(500), answers(200)) as receiver, everything_twice(berth):
        queue = tenant.connect("own queue")
        hook = tenant.connect("twice", destination="webhook", address=receiver.url, retry_seconds=SOON)
        ids = [tenant.send({"order": number}) for number in range(3)]
        for event_id in ids:
            event = tenant.ended(event_id)
            assert event.event.status is EventStatus.DELIVERED
            states = {name: entry.state for name, entry in (event.entries or {}).items()}
            assert states == {each["connection_id"]: DeliveryState.DELIVERED for each in (queue, hook)}
            attempts = tenant.attempts(event_id)
            assert [each.number for each in attempts] == list(range(1, len(attempts) + 1))
            assert not any(each.delivered for each in attempts[:-1])
        assert {request.headers["webhook-id"] for request in receiver.requests} == {
            f"{event_id}-{hook['connection_id']}" for event_id in ids
        }
        assert {message["event_id"] for message in tenant.from_own_queue(3)} == set(ids)
        tenant.disconnect(queue, hook)
