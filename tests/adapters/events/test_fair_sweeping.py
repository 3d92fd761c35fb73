"""A tenant with much work left, or with damaged rows, does not keep the sweep from other tenants' deliveries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb import delivery_keys
from orchestrator.adapters.dynamodb.deliveries import DynamoDeliveries
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery import replaying, sweeping
from orchestrator.events.delivery.records import ConnectionStatus, DeliveryRef, DeliveryState, Health
from orchestrator.events.delivery.replays import NewReplay, Replay, ReplayStatus
from orchestrator.events.delivery.turns import rounds_of
from orchestrator.events.records import TenantEpoch
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, DeliveryWorld
from tests.adapters.events.lives import EVENTS_TABLE
from tests.adapters.events.noting import noted_requests
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE, connection, event_settings

A_MINUTE = timedelta(minutes=1)
GLOBEX_LIFE = TenantEpoch(TenantId.parse("globex"), "e" * 20)


def _turns(number: int) -> Callable[[], bool]:
    """Time for so many pages."""
    left = iter(range(number))
    return lambda: next(left, None) is not None


def _parked(world: DeliveryWorld, connection_id: str, events: int) -> list[str]:
    world.connect(connection_id, status=ConnectionStatus.PAUSED, filter={"event_type": connection_id})
    return [world.send(event_type=connection_id) for _ in range(events)]


def _resume(world: DeliveryWorld, *connection_ids: str) -> None:
    for each in connection_ids:
        world.connect(each, status=ConnectionStatus.ACTIVE, draining=True, filter={"event_type": each})


def _failed_once(world: DeliveryWorld) -> str:
    """An event whose first try has failed, and the message for the second one was lost."""
    event_id = world.send()
    world.messages.take()
    return event_id


def _states(world: DeliveryWorld, events: list[str], connection_id: str) -> list[DeliveryState]:
    return [world.delivery(each, connection_id).state for each in events]


def test_connections_with_much_to_drain_take_turns(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 2)
    many, few = _parked(deliveries, FIRST, 6), _parked(deliveries, SECOND, 1)
    _resume(deliveries, FIRST, SECOND)
    swept = deliveries.sweeping.sweep(_turns(sweeping.SHARDS + 1 + 2))
    assert swept.left
    assert _states(deliveries, few, SECOND) == [DeliveryState.RETRYING]
    assert _states(deliveries, many, FIRST).count(DeliveryState.RETRYING) == 2


def test_a_drain_ends_when_the_time_is_up(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 1)
    many = _parked(deliveries, FIRST, 5)
    deliveries.connect(FIRST, status=ConnectionStatus.DELETED, draining=True)
    assert deliveries.sweeping.sweep(_turns(sweeping.SHARDS + 1 + 2)).left
    assert _states(deliveries, many, FIRST).count(DeliveryState.FAILED) == 2


def test_a_connection_that_stays_paused_is_looked_at_and_its_rows_are_not_read(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is looked at for days. The ids say that nothing expires yet."""
    _parked(deliveries, FIRST, 3)
    read: list[object] = []
    monkeypatch.setattr(deliveries.table, "deliveries_of", read.append)
    deliveries.sweep()
    deliveries.wait(timedelta(days=7))
    deliveries.sweep()
    assert read == []


def _looks(world: DeliveryWorld, minutes: int) -> list[int]:
    """How many lists of what is parked each sweep reads, in so many minutes."""
    counted = []
    for _ in range(minutes):
        with noted_requests(world.dynamodb) as requests:
            world.sweep()
        keys = [str(parameters.get("ExpressionAttributeValues")) for _, parameters in requests]
        counted.append(sum(delivery_keys.PARKED_PREFIX in each for each in keys))
        world.wait(A_MINUTE)
    return counted


@pytest.mark.parametrize(
    "waits",
    [{"status": ConnectionStatus.PAUSED}, {"health": Health(NOON, None, NOON + timedelta(days=1), 9)}],
    ids=["paused", "breaker open"],
)
def test_a_connection_whose_deliveries_only_wait_is_looked_at_every_fifteen_minutes(
    deliveries: DeliveryWorld, waits: dict[str, Any]
) -> None:
    deliveries.connect(FIRST, **waits)
    deliveries.send()
    assert _looks(deliveries, 31) == [4, *[0] * 14, 4, *[0] * 14, 4]


def test_a_connection_whose_breaker_was_open_and_that_has_nothing_parked_is_soon_looked_at_less_often(
    deliveries: DeliveryWorld,
) -> None:
    deliveries.connect(FIRST, health=Health(NOON, None, NOON, 1))
    assert _looks(deliveries, 21) == [4, 4, 4, 4, 4, *[0] * 14, 4, 0]


def test_connections_that_only_wait_are_not_read_again(deliveries: DeliveryWorld) -> None:
    for number in range(100):
        deliveries.connect(f"conn_{number:024x}", status=ConnectionStatus.PAUSED)
    deliveries.sweep()
    deliveries.wait(A_MINUTE)
    with noted_requests(deliveries.dynamodb) as requests:
        deliveries.sweep()
    assert Counter(name for name, _ in requests) == {"Query": sweeping.SHARDS + 1}


def test_a_resume_is_seen_by_the_next_sweep_though_the_connection_was_looked_at_just_now(
    deliveries: DeliveryWorld,
) -> None:
    events = _parked(deliveries, FIRST, 2)
    assert deliveries.sweep().unparked == 0
    _resume(deliveries, FIRST)
    assert deliveries.sweep().unparked == 2
    assert _states(deliveries, events, FIRST) == [DeliveryState.RETRYING] * 2


def test_a_connection_with_more_that_expires_than_one_sweep_fails_is_looked_at_by_the_next_one(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 1)
    monkeypatch.setattr(sweeping, "PAGES", 2)
    events = _parked(deliveries, FIRST, 5)
    expires_at = deliveries.event(events[0]).expires_at
    deliveries.wait(expires_at - deliveries.clock.now() - timedelta(minutes=30))
    failed = []
    for _ in range(4):
        failed.append(deliveries.sweep().failed)
        deliveries.wait(A_MINUTE)
    assert failed == [2, 2, 1, 0]


def test_everything_that_expires_is_failed_however_much_it_is(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 2)
    events = _parked(deliveries, FIRST, 5)
    expires_at = deliveries.event(events[0]).expires_at
    deliveries.wait(expires_at - deliveries.clock.now() - timedelta(minutes=30))
    assert deliveries.sweep().failed == 5
    assert _states(deliveries, events, FIRST) == [DeliveryState.FAILED] * 5


def test_shards_with_many_due_deliveries_take_turns(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every shard has its page before any has its second."""
    deliveries.connect(FIRST)
    deliveries.receivers.answers[FIRST] = BROKEN
    events = [_failed_once(deliveries) for _ in range(60)]
    deliveries.wait(timedelta(minutes=10))
    monkeypatch.setattr(sweeping, "PAGE", 1)
    swept = deliveries.sweeping.sweep(_turns(sweeping.SHARDS))
    shards = {delivery_keys.due_shard(DeliveryRef(ACME_LIFE, each, FIRST)) for each in events}
    sent = {delivery_keys.due_shard(each.ref) for each in deliveries.messages.take()}
    assert sent == shards
    assert swept.left


def _in_one_shard(monkeypatch: pytest.MonkeyPatch, page: int) -> None:
    monkeypatch.setattr(delivery_keys, "due_shard", lambda _ref: 0)
    monkeypatch.setattr(sweeping, "PAGE", page)


def test_newly_due_deliveries_go_out_beside_many_older_ones(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A receiver can ask for the same time in all of its answers, so that very many deliveries are due at once."""
    _in_one_shard(monkeypatch, page=2)
    deliveries.connect(FIRST)
    deliveries.receivers.answers[FIRST] = BROKEN
    before = [_failed_once(deliveries) for _ in range(9)]
    deliveries.wait(A_MINUTE)
    last = _failed_once(deliveries)
    deliveries.wait(timedelta(minutes=10))
    two_pages_of_this_shard = 2 + sweeping.SHARDS
    swept = deliveries.sweeping.sweep(_turns(two_pages_of_this_shard))
    assert [each.ref.event_id for each in deliveries.messages.take()] == [*before[:2], last, before[-1]]
    assert swept.left
    assert deliveries.sweep().sent == 6


def test_due_rows_that_cannot_be_read_are_left_behind_however_many_they_are(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _in_one_shard(monkeypatch, page=2)
    reported: list[object] = []
    deliveries.table = DynamoDeliveries(deliveries.dynamodb, EVENTS_TABLE, report=reported.append)
    deliveries.sweeping._table = deliveries.table
    deliveries.connect(FIRST)
    deliveries.receivers.answers[FIRST] = BROKEN
    damaged = [_failed_once(deliveries) for _ in range(5)]
    good = _failed_once(deliveries)
    damaged += [_failed_once(deliveries) for _ in range(5)]
    for each in damaged:
        _damage(deliveries, delivery_keys.delivery_key(DeliveryRef(ACME_LIFE, each, FIRST)), "state")
    deliveries.wait(timedelta(minutes=10))
    deliveries.sweep()
    assert [each.ref.event_id for each in deliveries.messages.take()] == [good]
    assert len(reported) == len(damaged)


def test_a_connection_whose_rows_are_busy_or_wrong_stops_no_other(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    _parked(deliveries, FIRST, 1)
    others = _parked(deliveries, SECOND, 1)
    _resume(deliveries, FIRST, SECOND)
    parked = deliveries.table.parked
    for error, left in ((Throttled("Rate exceeded"), True), (KeyError("state"), False)):

        def failing(connection_id: str, limit: int, error: Exception = error, **options: Any) -> Any:
            if connection_id == FIRST:
                raise error
            return parked(connection_id, limit, **options)

        monkeypatch.setattr(deliveries.table, "parked", failing)
        swept = deliveries.sweep()
        assert swept.left is left
        assert swept.errors == ([] if left else [error])
    assert _states(deliveries, others, SECOND) == [DeliveryState.RETRYING]


def test_a_due_row_that_cannot_be_read_or_whose_event_cannot_stops_no_other(deliveries: DeliveryWorld) -> None:
    reported: list[object] = []
    deliveries.table = DynamoDeliveries(deliveries.dynamodb, EVENTS_TABLE, report=reported.append)
    deliveries.sweeping._table = deliveries.table
    deliveries.connect(FIRST)
    deliveries.receivers.answers[FIRST] = BROKEN
    damaged, good = _failed_once(deliveries), _failed_once(deliveries)
    lost = deliveries.accept()
    deliveries.messages.loses = True
    deliveries.dispatch(lost)
    deliveries.messages.loses = False
    _damage(deliveries, delivery_keys.delivery_key(DeliveryRef(ACME_LIFE, damaged, FIRST)), "state")
    _damage(deliveries, dict(_event_key(deliveries, lost)), "status")
    deliveries.wait(timedelta(minutes=10))
    swept = deliveries.sweep()
    assert [each.ref.event_id for each in deliveries.messages.take()] == [good]
    assert len(reported) == 1
    assert len(swept.errors) == 1


def _event_key(world: DeliveryWorld, event_id: str) -> dict[str, Any]:
    rows = world.dynamodb.scan(TableName=EVENTS_TABLE)["Items"]
    return next({"pk": row["pk"], "sk": row["sk"]} for row in rows if row["sk"]["S"] == f"EVT#{event_id}")


def _damage(world: DeliveryWorld, key: Any, attribute: str) -> None:
    world.dynamodb.update_item(
        TableName=EVENTS_TABLE,
        Key=key,
        UpdateExpression="SET #name = :damaged",
        ExpressionAttributeNames={"#name": attribute},
        ExpressionAttributeValues={":damaged": {"L": []}},
    )


def _with_a_damaged_event(world: DeliveryWorld, *, events: int) -> list[str]:
    """Parked deliveries, of which the event of the oldest cannot be read. Returns the events of the others."""
    damaged, *others = _parked(world, FIRST, events)
    _damage(world, dict(_event_key(world, damaged)), "status")
    return others


def test_an_event_that_cannot_be_read_holds_up_no_other_of_a_connection_that_was_deleted(
    deliveries: DeliveryWorld,
) -> None:
    others = _with_a_damaged_event(deliveries, events=3)
    deliveries.connect(FIRST, status=ConnectionStatus.DELETED, draining=True)
    assert len(deliveries.sweep().errors) == 1
    assert _states(deliveries, others, FIRST) == [DeliveryState.FAILED] * 2


@pytest.mark.parametrize("status", [ConnectionStatus.PAUSED, ConnectionStatus.ACTIVE])
def test_an_event_that_expires_and_cannot_be_read_holds_up_no_other(
    deliveries: DeliveryWorld, status: ConnectionStatus
) -> None:
    others = _with_a_damaged_event(deliveries, events=3)
    expires_at = deliveries.event(others[0]).expires_at
    deliveries.wait(expires_at - deliveries.clock.now() - timedelta(minutes=30))
    deliveries.connect(FIRST, status=status, draining=status is ConnectionStatus.ACTIVE)
    assert len(deliveries.sweep().errors) == 1
    assert _states(deliveries, others, FIRST) == [DeliveryState.FAILED] * 2


def test_a_parked_row_that_cannot_be_read_does_not_keep_a_breaker_open(deliveries: DeliveryWorld) -> None:
    reported: list[object] = []
    deliveries.table = DynamoDeliveries(deliveries.dynamodb, EVENTS_TABLE, report=reported.append)
    deliveries.sweeping._table = deliveries.table
    deliveries.connect(FIRST, health=Health(NOON, None, NOON + timedelta(minutes=10), 1))
    damaged, good = (deliveries.send() for _ in range(2))
    _damage(deliveries, delivery_keys.delivery_key(DeliveryRef(ACME_LIFE, damaged, FIRST)), "state")
    deliveries.wait(timedelta(minutes=11))
    assert deliveries.sweep().unparked == 1
    assert [each.ref.event_id for each in deliveries.messages.take()] == [good]
    assert reported


def test_the_replays_of_one_tenant_share_its_turns(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many replays a tenant has, every other tenant has as many pages."""
    monkeypatch.setattr(replaying, "PAGE", 1)
    deliveries.connect(FIRST)
    for _ in range(6):
        deliveries.send()
    deliveries.wait(timedelta(hours=1))
    began = deliveries.clock.now() - timedelta(hours=2)
    mine = [deliveries.managing.start(event_settings(), NewReplay(began, connection_id=FIRST), "key") for _ in range(5)]
    assert all(isinstance(each, Replay) for each in mine)
    first = mine[0]
    assert isinstance(first, Replay)
    theirs = replace(first, life=GLOBEX_LIFE, replay_id="rpl_" + "f" * 24)
    assert deliveries.replays.write(None, theirs)
    pages: list[TenantEpoch] = []
    accepted = deliveries.table.accepted

    def counted(life: TenantEpoch, *args: Any, **options: Any) -> Any:
        pages.append(life)
        return accepted(life, *args, **options)

    monkeypatch.setattr(deliveries.table, "accepted", counted)
    deliveries.connect(connection_id=SECOND, life=GLOBEX_LIFE)
    monkeypatch.setattr(deliveries.connections, "connection", lambda life, *_: connection(life=life))
    deliveries.replaying().move_on(_turns(4))
    assert pages.count(GLOBEX_LIFE) >= 1
    assert pages.count(ACME_LIFE) <= 3


def test_a_replay_with_which_something_is_wrong_stops_no_other(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries.connect(FIRST)
    deliveries.connect(SECOND, filter={"event_type": "other"})
    deliveries.send()
    deliveries.wait(timedelta(hours=1))
    began = deliveries.clock.now() - timedelta(hours=2)
    good, bad = (
        deliveries.managing.start(event_settings(), NewReplay(began, connection_id=each), "key")
        for each in (FIRST, SECOND)
    )
    assert isinstance(good, Replay)
    assert isinstance(bad, Replay)
    found = deliveries.connections.connection

    def failing(life: TenantEpoch, origin: str, connection_id: str) -> Any:
        if connection_id == SECOND:
            raise KeyError(connection_id)
        return found(life, origin, connection_id)

    monkeypatch.setattr(deliveries.connections, "connection", failing)
    done = deliveries.replaying().move_on(lambda: True)
    assert len(done.errors) == 1
    replay = deliveries.managing.find(ACME_LIFE, good.replay_id)
    assert isinstance(replay, Replay)
    assert replay.status is ReplayStatus.FINISHED


def test_a_replay_goes_past_events_that_cannot_be_read(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PAGE", 1)
    reported: list[object] = []
    deliveries.table = DynamoDeliveries(deliveries.dynamodb, EVENTS_TABLE, report=reported.append)
    first, damaged, last = (deliveries.send() for _ in range(3))
    _damage(deliveries, dict(_event_key(deliveries, damaged)), "status")
    deliveries.connect(FIRST)
    deliveries.wait(A_MINUTE)
    started = deliveries.managing.start(
        event_settings(), NewReplay(NOON - A_MINUTE, connection_id=FIRST, include_delivered=True), "key"
    )
    assert isinstance(started, Replay)
    assert deliveries.replaying().move_on(lambda: True).errors == []
    deliveries.deliver()
    assert [deliveries.receivers.count(each) for each in (first, damaged, last)] == [1, 0, 1]
    replay = deliveries.managing.find(ACME_LIFE, started.replay_id)
    assert isinstance(replay, Replay)
    assert (replay.status, replay.looked_at) == (ReplayStatus.FINISHED, 2)
    assert len(reported) == 1


def test_the_first_record_of_each_tenant_comes_before_anybodys_second() -> None:
    acme = [connection(connection_id=f"conn_{number:024}") for number in range(3)]
    globex = connection(connection_id="conn_" + "9" * 24, life=GLOBEX_LIFE)
    assert rounds_of([*acme, globex], lambda _number: 0) == [acme[0], globex, acme[1], acme[2]]
    assert rounds_of([*acme, globex], lambda _number: 3) == [globex, *acme]
    assert rounds_of([], lambda _number: 0) == []
