"""A connection whose row cannot be read was not deleted: its deliveries wait until somebody has mended the row."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.connection_rows import DERIVED, connection_row, key_of
from orchestrator.adapters.dynamodb.event_configuration_writes import DynamoConfigurationTable
from orchestrator.events.changes import Recorder
from orchestrator.events.configuring_connections import ConfiguringConnections, DestinationRules
from orchestrator.events.delivery.addresses import AddressRules
from orchestrator.events.delivery.delivering import (
    EXPIRED_UNREADABLE,
    LAST_TRY_BEFORE_EXPIRY,
    UNREADABLE,
    UNREADABLE_AGAIN_AFTER,
    Outcome,
)
from orchestrator.events.delivery.records import DISPATCH, Connection, ConnectionStatus, DeliveryState, Health
from orchestrator.events.delivery.replays import NewReplay, Replay, ReplayStatus
from orchestrator.events.delivery.sweeping import LONGEST_GRACE
from orchestrator.events.delivery.troubles import ListingTroubles, Trouble
from orchestrator.events.plans import LONGEST_DELIVERY
from orchestrator.events.statuses import EventStatus
from tests.adapters.conftest import TABLE
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, DeliveryWorld
from tests.adapters.events.lives import EVENTS_TABLE
from tests.fakes.events import ACME_LIFE, OPERATOR, FakeSecrets, event_settings
from tests.present import present

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


def test_recipients_noted_before_still_get_the_event(deliveries: DeliveryWorld) -> None:
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


# Parked deliveries


@pytest.fixture
def parked(deliveries: DeliveryWorld) -> str:
    """An event whose delivery is parked, since its connection is paused. Then the row of the connection is damaged."""
    record = deliveries.connect(status=ConnectionStatus.PAUSED)
    event_id = deliveries.send(plan="free")
    assert deliveries.delivery(event_id).state is DeliveryState.PARKED
    deliveries.damage(record)
    return event_id


def _configuring(world: DeliveryWorld) -> ConfiguringConnections:
    recorder = Recorder(OPERATOR, world.clock)
    return ConfiguringConnections(
        table=DynamoConfigurationTable(world.dynamodb, TABLE, events_table=EVENTS_TABLE, recorder=recorder),
        secrets=FakeSecrets,
        rules=DestinationRules(AddressRules(), sends_mail=False, by_operator=True),
        clock=world.clock,
    )


def _forget_place(world: DeliveryWorld, record: Connection) -> None:
    """Somebody restores the row, and leaves out the attributes by which it is listed."""
    row = {name: value for name, value in connection_row(record).items() if name not in DERIVED}
    world.dynamodb.put_item(TableName=TABLE, Item={**key_of(record), **row})


def test_parked_deliveries_stay_while_their_connection_cannot_be_read_and_the_sweep_reports_it(
    deliveries: DeliveryWorld, parked: str
) -> None:
    swept = deliveries.sweep()
    assert (swept.unreadable, swept.failed, swept.errors) == (1, 0, [])
    assert deliveries.delivery(parked).state is DeliveryState.PARKED


@pytest.mark.parametrize(
    "mended",
    [
        {"draining": True},
        {"health": Health(failing_since=None, open_until=None, opened=1), "draining": True},
        {"status": ConnectionStatus.DISABLED, "draining": True},
        {"status": ConnectionStatus.DELETED, "draining": True},
    ],
    ids=["resumed", "closed breaker", "disabled", "deleted"],
)
def test_parked_deliveries_continue_once_their_connection_can_be_read(
    deliveries: DeliveryWorld, parked: str, mended: dict[str, Any]
) -> None:
    deliveries.sweep()
    deliveries.connect(**mended)
    deliveries.sweep()
    ends = "status" in mended
    assert deliveries.deliver() == ([] if ends else [Outcome.DELIVERED])
    assert deliveries.status(parked) is (EventStatus.FAILED if ends else EventStatus.DELIVERED)


def test_parked_deliveries_wait_if_the_repaired_connection_is_paused(deliveries: DeliveryWorld, parked: str) -> None:
    record = deliveries.connect(status=ConnectionStatus.PAUSED)
    deliveries.sweep()
    assert deliveries.delivery(parked).state is DeliveryState.PARKED
    _configuring(deliveries).resume(record.life, record.connection_id)
    assert _swept_and_delivered(deliveries) == [Outcome.DELIVERED]


@pytest.mark.parametrize("status", [ConnectionStatus.ACTIVE, ConnectionStatus.PAUSED, ConnectionStatus.DISABLED])
def test_a_resume_finds_what_is_parked_even_if_the_mended_row_is_in_no_list(
    deliveries: DeliveryWorld, parked: str, status: ConnectionStatus
) -> None:
    record = replace(deliveries.connect(), status=status, draining=status is ConnectionStatus.DISABLED)
    _forget_place(deliveries, record)
    assert _swept_and_delivered(deliveries) == []
    resumed = _configuring(deliveries).resume(record.life, record.connection_id)
    assert isinstance(resumed, Connection)
    assert _swept_and_delivered(deliveries) == [Outcome.DELIVERED]
    assert deliveries.status(parked) is EventStatus.DELIVERED


def test_a_delete_ends_what_is_parked_even_if_the_mended_row_is_in_no_list(
    deliveries: DeliveryWorld, parked: str
) -> None:
    record = replace(deliveries.connect(), status=ConnectionStatus.PAUSED)
    _forget_place(deliveries, record)
    _configuring(deliveries).delete(record.life, record.connection_id)
    deliveries.sweep()
    assert deliveries.status(parked) is EventStatus.FAILED


def test_before_the_event_expires_what_is_parked_fails_and_says_why(deliveries: DeliveryWorld, parked: str) -> None:
    event = present(deliveries.table.event(ACME_LIFE, parked)).event
    deliveries.wait(event.expires_at - LAST_TRY_BEFORE_EXPIRY - deliveries.clock.now() - MINUTE)
    assert deliveries.sweep().failed == 0
    deliveries.wait(2 * MINUTE)
    assert deliveries.sweep().failed == 1
    assert deliveries.status(parked) is EventStatus.FAILED
    assert deliveries.delivery(parked).reason == EXPIRED_UNREADABLE


def test_operators_are_told_of_the_connection(deliveries: DeliveryWorld, parked: str) -> None:
    assert parked
    ((found, trouble),) = ListingTroubles(connections=deliveries.connections).list().connections
    assert (found.life, found.connection_id, trouble) == (ACME_LIFE, FIRST, Trouble.DAMAGED)


def test_a_row_whose_place_in_the_list_is_damaged_too_stops_nobody(deliveries: DeliveryWorld, parked: str) -> None:
    record = deliveries.connect(status=ConnectionStatus.PAUSED)
    deliveries.dynamodb.update_item(
        TableName=TABLE,
        Key=key_of(record),
        UpdateExpression="SET destination = :nonsense, ListingSort = :nonsense",
        ExpressionAttributeValues={":nonsense": {"S": "pigeon"}},
    )
    deliveries.connect(SECOND, origin=SOURCE, status=ConnectionStatus.PAUSED)
    second = deliveries.send(source_id=SOURCE)
    deliveries.connect(SECOND, origin=SOURCE, draining=True)
    assert deliveries.sweep().unreadable == 1
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert (deliveries.status(second), deliveries.status(parked)) == (EventStatus.DELIVERED, EventStatus.RECEIVED)
    assert ListingTroubles(connections=deliveries.connections).list().connections == []
