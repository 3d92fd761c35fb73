"""A connection whose row cannot be read was not deleted: its deliveries wait until somebody has mended the row."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.events.delivery.delivering import UNREADABLE, UNREADABLE_AGAIN_AFTER, Outcome
from orchestrator.events.delivery.records import DISPATCH, DeliveryState
from orchestrator.events.delivery.replays import NewReplay, Replay, ReplayStatus
from orchestrator.events.delivery.sweeping import LONGEST_GRACE
from orchestrator.events.plans import LONGEST_DELIVERY
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, DeliveryWorld
from tests.fakes.events import event_settings

MINUTE = timedelta(minutes=1)
SOURCE = "src_" + "1" * 24


def _swept_and_delivered(world: DeliveryWorld) -> list[Outcome]:
    world.sweep()
    return world.deliver()


def test_a_first_try_waits_and_goes_out_once_the_row_is_mended(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect()
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    deliveries.damage(record)
    assert deliveries.deliver() == [Outcome.POSTPONED]
    assert deliveries.reported == deliveries.damaged
    waiting = deliveries.delivery(event_id)
    assert (waiting.state, waiting.tries, waiting.reason) == (DeliveryState.RETRYING, 0, UNREADABLE)
    assert waiting.due == deliveries.clock.now() + UNREADABLE_AGAIN_AFTER
    assert deliveries.status(event_id) is EventStatus.RECEIVED
    deliveries.wait(UNREADABLE_AGAIN_AFTER)
    assert _swept_and_delivered(deliveries) == [Outcome.POSTPONED]
    deliveries.connect()
    deliveries.wait(UNREADABLE_AGAIN_AFTER)
    assert _swept_and_delivered(deliveries) == [Outcome.DELIVERED]
    assert deliveries.receivers.count(event_id) == 1
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_retry_waits_and_keeps_its_tries(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect()
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    deliveries.damage(record)
    deliveries.wait(MINUTE)
    assert deliveries.deliver() == [Outcome.POSTPONED]
    assert (deliveries.delivery(event_id).tries, deliveries.status(event_id)) == (1, EventStatus.RETRYING)
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.connect()
    deliveries.wait(UNREADABLE_AGAIN_AFTER)
    assert _swept_and_delivered(deliveries) == [Outcome.DELIVERED]
    assert deliveries.receivers.count(event_id) == 2


def test_the_same_message_twice_makes_one_row(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect()
    event_id = deliveries.accept()
    for _ in range(2):
        deliveries.dispatch(event_id)
    deliveries.damage(record)
    assert deliveries.deliver() == [Outcome.POSTPONED, Outcome.STALE]


def test_a_new_event_waits_until_it_is_known_who_wants_it(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect()
    deliveries.connect(SECOND)
    deliveries.damage(record)
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    assert deliveries.messages.waiting == []
    assert deliveries.delivery(event_id, DISPATCH).reason == UNREADABLE
    assert deliveries.status(event_id) is EventStatus.RECEIVED
    deliveries.wait(MINUTE)
    assert _swept_and_delivered(deliveries) == []
    deliveries.connect()
    deliveries.wait(LONGEST_GRACE)
    assert _swept_and_delivered(deliveries) == [Outcome.DELIVERED] * 2


def test_what_was_noted_before_goes_out_to_the_others(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect()
    deliveries.connect(SECOND)
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    deliveries.messages.take()
    deliveries.damage(record)
    deliveries.dispatch(event_id)
    assert sorted(deliveries.deliver()) == [Outcome.DELIVERED, Outcome.POSTPONED]
    assert deliveries.receivers.tried == [(event_id, SECOND)]


def test_other_origins_go_on(deliveries: DeliveryWorld) -> None:
    deliveries.damage(deliveries.connect())
    deliveries.connect(SECOND, origin=SOURCE)
    event_id = deliveries.send(source_id=SOURCE)
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert deliveries.reported == []


@pytest.mark.parametrize("is_dispatched", [True, False], ids=["dispatched", "not dispatched"])
def test_before_the_event_expires_it_fails_and_says_why(deliveries: DeliveryWorld, is_dispatched: bool) -> None:
    record = deliveries.connect()
    event_id = deliveries.accept(plan="free")
    if is_dispatched:
        deliveries.dispatch(event_id)
    deliveries.damage(record)
    deliveries.dispatch(event_id)
    deliveries.deliver()
    deliveries.wait(LONGEST_DELIVERY - MINUTE)
    deliveries.sweep()
    assert deliveries.status(event_id) is EventStatus.FAILED


@pytest.mark.parametrize("of_origin", [True, False])
def test_a_replay_is_paused(deliveries: DeliveryWorld, of_origin: bool) -> None:
    record = deliveries.connect()
    deliveries.send()
    new = NewReplay(
        since=deliveries.clock.now() - MINUTE,
        until=None,
        connection_id=None if of_origin else FIRST,
        origin="api" if of_origin else None,
    )
    replay = deliveries.managing.start(event_settings(), new, "operator")
    assert isinstance(replay, Replay)
    deliveries.damage(record)
    deliveries.replaying().move_on(lambda: True)
    stopped = deliveries.managing.find(replay.life, replay.replay_id)
    assert isinstance(stopped, Replay)
    assert stopped.status is ReplayStatus.PAUSED
    assert "damaged" in stopped.reason
