"""A replay sends the events of a time again: what failed or was never sent, and what was delivered only if asked."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.replays import DynamoReplays
from orchestrator.common.errors import InvalidRequest, Throttled
from orchestrator.events.delivery import replaying, replays, rounds
from orchestrator.events.delivery.delivering import Outcome
from orchestrator.events.delivery.records import API_ORIGIN, ConnectionStatus, DeliveryState
from orchestrator.events.delivery.replaying import Replayed
from orchestrator.events.delivery.replays import MAX_RUNNING, NewReplay, Replay, ReplayStatus, new_replay_id
from orchestrator.events.records import TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, UNWANTED, DeliveryWorld
from tests.adapters.events.lives import EVENTS_TABLE, Lives
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE, OPERATOR, event_settings
from tests.present import present

SETTINGS = event_settings()
SUCCESSOR = TenantEpoch(ACME_LIFE.tenant, "77aa0123")
SOURCE, FORM = "src_" + "1" * 24, "form_" + "2" * 24
HOUR = timedelta(hours=1)


def _start(world: DeliveryWorld, **new: Any) -> Replay:
    """A replay of everything until now."""
    if "origin" not in new:
        new = {"connection_id": FIRST} | new
    world.wait(timedelta(milliseconds=1))
    replay = world.managing.start(SETTINGS, NewReplay(**{"since": NOON - HOUR} | new), OPERATOR)
    assert isinstance(replay, Replay), replay
    return replay


def _now(world: DeliveryWorld, replay: Replay) -> Replay:
    return present(world.replays.replay(ACME_LIFE, replay.replay_id))


def _move(world: DeliveryWorld, has_time: Callable[[], bool] = lambda: True) -> Replayed:
    return world.replaying().move_on(has_time)


def _tries(world: DeliveryWorld, event_ids: list[str], connection_id: str = FIRST) -> list[int]:
    return [world.receivers.count(each, connection_id) for each in event_ids]


def _numbers(replay: Replay) -> tuple[int, int, int]:
    return replay.looked_at, replay.sent, replay.skipped


@pytest.fixture
def mixed(deliveries: DeliveryWorld) -> tuple[DeliveryWorld, list[str]]:
    """Events that were delivered, failed, and delivered again."""
    deliveries.connect()
    events = []
    for answer in (TAKEN, UNWANTED, TAKEN):
        deliveries.receivers.answers[FIRST] = answer
        events.append(deliveries.send())
    deliveries.receivers.tried.clear()
    return deliveries, events


def test_a_replay_resends_failed_deliveries_only(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    replay = _start(world)
    assert _move(world).ended == 1
    world.deliver()
    assert _tries(world, events) == [0, 1, 0]
    assert world.status(events[1]) is EventStatus.DELIVERED
    replay = _now(world, replay)
    assert (replay.status, replay.ended_at, replay.percent) == (ReplayStatus.FINISHED, world.clock.now(), 100)
    assert _numbers(replay) == (3, 1, 2)


def test_a_replay_resends_delivered_events_on_request(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    replay = _start(world, include_delivered=True)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [1, 1, 1]
    assert _numbers(_now(world, replay)) == (3, 3, 0)


def test_only_failed_sends_nothing_that_was_never_tried(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    world.connect(SECOND)
    for connection_id in (FIRST, SECOND):
        _start(world, connection_id=connection_id, only_failed=True)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [0, 1, 0]
    assert _tries(world, events, SECOND) == [0, 0, 0]


def test_a_new_connection_gets_the_older_events_that_it_wants(deliveries: DeliveryWorld) -> None:
    wanted = [deliveries.send(event_type="order.created") for _ in range(2)]
    other = deliveries.send(event_type="order.paid")
    deliveries.connect(filter={"event_type": "order.created"})
    replay = _start(deliveries)
    _move(deliveries)
    deliveries.deliver()
    assert _tries(deliveries, [*wanted, other]) == [1, 1, 0]
    assert _numbers(_now(deliveries, replay)) == (3, 2, 1)


def test_only_events_of_the_time_and_of_the_origin_are_looked_at(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    early = deliveries.send()
    deliveries.wait(HOUR)
    since = deliveries.clock.now()
    deliveries.send(source_id=SOURCE)
    inside = deliveries.send()
    deliveries.wait(HOUR)
    until = deliveries.clock.now()
    late = deliveries.send()
    deliveries.receivers.tried.clear()
    replay = _start(deliveries, since=since, until=until, include_delivered=True)
    _move(deliveries)
    deliveries.deliver()
    assert _tries(deliveries, [early, inside, late]) == [0, 1, 0]
    assert _numbers(_now(deliveries, replay)) == (1, 1, 0)


@pytest.mark.parametrize(("origin", "new"), [(SOURCE, {"source_id": SOURCE}), (FORM, {"form_id": FORM})])
def test_a_replay_of_a_source_or_form_goes_to_all_its_connections(
    deliveries: DeliveryWorld, origin: str, new: dict[str, Any]
) -> None:
    events = [deliveries.send(**new) for _ in range(3)]
    deliveries.connect(FIRST, origin=origin)
    deliveries.connect(SECOND, origin=origin)
    replay = _start(deliveries, origin=origin)
    _move(deliveries)
    deliveries.deliver()
    assert (_tries(deliveries, events), _tries(deliveries, events, SECOND)) == ([1, 1, 1], [1, 1, 1])
    assert _numbers(_now(deliveries, replay)) == (3, 6, 0)


def test_all_shards_and_pages_are_looked_at(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replaying, "PAGE", 2)
    events = [deliveries.send(shards=4) for _ in range(15)]
    deliveries.connect()
    deliveries.wait(timedelta(milliseconds=1))
    replay = deliveries.managing.start(
        event_settings(shards=4), NewReplay(since=NOON - HOUR, connection_id=FIRST), OPERATOR
    )
    assert isinstance(replay, Replay)
    assert not _move(deliveries).left
    deliveries.deliver()
    assert _tries(deliveries, events) == [1] * 15
    assert _now(deliveries, replay).status is ReplayStatus.FINISHED


def test_a_new_connection_gets_what_waits_for_an_older_one_that_is_paused(deliveries: DeliveryWorld) -> None:
    deliveries.connect(FIRST, status=ConnectionStatus.PAUSED)
    event_id = deliveries.send()
    deliveries.wait(HOUR)
    deliveries.connect(SECOND, created_at=deliveries.clock.now())
    replay = _start(deliveries, connection_id=SECOND)
    _move(deliveries)
    deliveries.deliver()
    assert _tries(deliveries, [event_id], SECOND) == [1]
    assert _numbers(_now(deliveries, replay)) == (1, 1, 0)
    # The event is still to go to the older connection, and is not sent twice to the new one.
    deliveries.connect(FIRST, draining=True)
    deliveries.sweep()
    deliveries.deliver()
    _start(deliveries, connection_id=SECOND)
    _move(deliveries)
    deliveries.deliver()
    assert (_tries(deliveries, [event_id]), _tries(deliveries, [event_id], SECOND)) == ([1], [1])
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_delivery_that_waits_for_a_retry_is_tried_now(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    deliveries.messages.take()
    deliveries.receivers.answers[FIRST] = TAKEN
    _start(deliveries)
    _move(deliveries)
    deliveries.deliver()
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert not deliveries.delivery(event_id).resend


def test_a_first_try_that_is_on_its_way_is_not_doubled(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    _start(deliveries)
    _move(deliveries)
    deliveries.deliver()
    assert _tries(deliveries, [event_id]) == [1]


def test_deliveries_to_a_paused_connection_are_parked(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    world.connect(status=ConnectionStatus.PAUSED)
    _start(world)
    assert _move(world).sent == 0
    assert world.delivery(events[1]).state is DeliveryState.PARKED


def test_a_replay_resends_a_delivered_event_that_the_stream_repeated_during_a_pause(
    deliveries: DeliveryWorld,
) -> None:
    deliveries.connect()
    event_id = deliveries.accept()
    accepted = present(deliveries.table.event(ACME_LIFE, event_id))
    deliveries.dispatch(event_id)
    deliveries.deliver()
    deliveries.connect(status=ConnectionStatus.PAUSED)
    deliveries.dispatching.dispatch([accepted])
    assert deliveries.delivery(event_id).state is DeliveryState.PARKED
    deliveries.connect()
    _start(deliveries, include_delivered=True)
    _move(deliveries)
    deliveries.deliver()
    assert _tries(deliveries, [event_id]) == [2]
    delivery = deliveries.delivery(event_id)
    assert (delivery.state, delivery.tries) == (DeliveryState.DELIVERED, 2)


def test_a_replay_does_not_resend_an_event_that_its_first_try_delivered_meanwhile(deliveries: DeliveryWorld) -> None:
    """The event was acknowledged before it was dispatched, which is late."""
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    _start(deliveries)
    deliveries.messages.loses = True
    assert _move(deliveries).unsent == 1
    deliveries.messages.loses = False
    deliveries.wait(timedelta(minutes=1))
    deliveries.dispatch(event_id)
    deliveries.deliver()
    deliveries.wait(timedelta(minutes=2))
    deliveries.sweep()
    deliveries.deliver()
    assert _tries(deliveries, [event_id]) == [1]
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_tries_that_came_before_an_event_was_dispatched_keep_their_numbers(deliveries: DeliveryWorld) -> None:
    """The event was acknowledged, and a resend of it has failed twice, before it was dispatched. Then the first try was
    quicker than what a replay has asked for."""
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    deliveries.resending.resend(SETTINGS, event_id, FIRST)
    for answer in (BROKEN, UNWANTED):
        deliveries.receivers.answers[FIRST] = answer
        deliveries.deliver()
        deliveries.wait(timedelta(seconds=10))
    deliveries.receivers.answers[FIRST] = TAKEN
    _start(deliveries)
    deliveries.messages.loses = True
    _move(deliveries)
    deliveries.messages.loses = False
    deliveries.wait(timedelta(minutes=1))
    deliveries.dispatch(event_id)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    deliveries.wait(timedelta(minutes=2))
    deliveries.sweep()
    assert deliveries.deliver() == [Outcome.FINISHED]
    deliveries.resending.resend(SETTINGS, event_id, FIRST)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert [each.number for each in deliveries.table.attempts(ACME_LIFE, event_id)] == [1, 2, 3]


# More than one sweep


def test_a_page_that_is_looked_at_twice_sends_nothing_twice(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    """The first sweep dies before it moves the cursor, or the cursor was moved by another one."""
    world, events = mixed
    replay = _start(world, include_delivered=True)
    write = world.replays.write
    world.replays.write = lambda _before, _after: False  # type: ignore[method-assign]
    _move(world)
    world.replays.write = write  # type: ignore[method-assign]
    world.deliver()
    assert _now(world, replay) == replay
    _move(world)
    world.deliver()
    assert _tries(world, events) == [1, 1, 1]
    assert _numbers(_now(world, replay)) == (3, 3, 0)


def test_a_replay_goes_on_where_the_last_sweep_had_no_more_time(
    mixed: tuple[DeliveryWorld, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replaying, "PAGE", 1)
    world, events = mixed
    replay = _start(world, include_delivered=True)
    pages = iter([True, False])
    assert _move(world, lambda: next(pages)).left
    middle = _now(world, replay)
    assert (middle.looked_at, middle.after, middle.status) == (1, events[0], ReplayStatus.RUNNING)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [1, 1, 1]


def test_two_sweeps_at_once_move_a_replay_on_once(
    mixed: tuple[DeliveryWorld, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, events = mixed
    replay = _start(world, include_delivered=True)
    accepted = world.table.accepted

    def other_sweep_first(*args: Any, **options: Any) -> Any:
        monkeypatch.setattr(world.table, "accepted", accepted)
        _move(world)
        return accepted(*args, **options)

    monkeypatch.setattr(world.table, "accepted", other_sweep_first)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [1, 1, 1]
    assert _numbers(_now(world, replay)) == (3, 3, 0)


def test_a_busy_table_ends_the_turn_and_not_the_replay(
    mixed: tuple[DeliveryWorld, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _events = mixed
    replay = _start(world)

    def busy(*_args: Any, **_options: Any) -> Any:
        raise Throttled("busy")

    with monkeypatch.context() as patch:
        patch.setattr(world.table, "accepted", busy)
        assert _move(world).left
    _move(world)
    assert _now(world, replay).status is ReplayStatus.FINISHED


def test_a_message_that_is_lost_is_made_up_for_by_the_sweep(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    _start(world)
    world.messages.loses = True
    assert _move(world).unsent == 1
    world.messages.loses = False
    world.wait(timedelta(minutes=2))
    world.sweep()
    world.deliver()
    assert _tries(world, events) == [0, 1, 0]


# Pausing and cancelling


def test_a_paused_replay_stands_still_until_it_is_resumed(mixed: tuple[DeliveryWorld, list[str]]) -> None:
    world, events = mixed
    replay = _start(world)
    for _ in range(2):
        paused = world.managing.pause(ACME_LIFE, replay.replay_id)
        assert isinstance(paused, Replay)
        assert paused.status is ReplayStatus.PAUSED
    _move(world)
    assert world.messages.waiting == []
    assert isinstance(world.managing.resume(ACME_LIFE, replay.replay_id), Replay)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [0, 1, 0]


def test_a_replay_that_is_cancelled_while_a_page_is_looked_at_stays_cancelled(
    mixed: tuple[DeliveryWorld, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, _events = mixed
    replay = _start(world)
    accepted = world.table.accepted

    def cancel_first(*args: Any, **options: Any) -> Any:
        world.managing.cancel(ACME_LIFE, replay.replay_id)
        return accepted(*args, **options)

    monkeypatch.setattr(world.table, "accepted", cancel_first)
    _move(world)
    assert _now(world, replay).status is ReplayStatus.CANCELLED


def test_a_replay_that_has_ended_stays_ended(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    replay = _start(deliveries)
    assert isinstance(deliveries.managing.cancel(ACME_LIFE, replay.replay_id), Replay)
    for order in (deliveries.managing.pause, deliveries.managing.resume):
        refused = order(ACME_LIFE, replay.replay_id)
        assert isinstance(refused, Refused)
        assert refused.kind is EventRefusal.REPLAY_ENDED


@pytest.mark.parametrize(
    ("status", "then"),
    [(ConnectionStatus.DELETED, ReplayStatus.CANCELLED), (ConnectionStatus.DISABLED, ReplayStatus.PAUSED)],
)
def test_a_connection_that_takes_nothing_stops_the_replay_with_the_reason(
    mixed: tuple[DeliveryWorld, list[str]], status: ConnectionStatus, then: ReplayStatus
) -> None:
    world, _events = mixed
    replay = _start(world)
    world.connect(status=status)
    _move(world)
    stopped = _now(world, replay)
    assert (stopped.status, stopped.reason != "") == (then, True)
    assert world.messages.waiting == []


def test_a_source_without_connections_cancels_the_replay(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    replay = _start(deliveries, origin=API_ORIGIN)
    deliveries.connect(status=ConnectionStatus.DELETED)
    _move(deliveries)
    assert _now(deliveries, replay).status is ReplayStatus.CANCELLED


# Starting and listing


@pytest.mark.parametrize(
    "new",
    [
        {},
        {"connection_id": FIRST, "origin": API_ORIGIN},
        {"connection_id": FIRST, "only_failed": True, "include_delivered": True},
        {"connection_id": FIRST, "until": NOON - 2 * HOUR},
        {"connection_id": FIRST, "since": NOON + HOUR},
    ],
)
def test_replays_that_make_no_sense_are_refused(deliveries: DeliveryWorld, new: dict[str, Any]) -> None:
    deliveries.connect()
    with pytest.raises(InvalidRequest):
        deliveries.managing.start(SETTINGS, NewReplay(**{"since": NOON - HOUR} | new), OPERATOR)


def test_a_replay_begins_with_the_oldest_event_that_is_shown(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    replay = _start(deliveries, since=NOON - timedelta(days=500))
    assert replay.since == deliveries.clock.now() - SETTINGS.limits.retention
    assert replay.until == deliveries.clock.now()


def test_another_tenants_connection_and_replay_are_unknown(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    replay = _start(deliveries)
    stranger = event_settings(life=SUCCESSOR)
    refused = deliveries.managing.start(stranger, NewReplay(since=NOON - HOUR, connection_id=FIRST), OPERATOR)
    assert isinstance(refused, Refused)
    assert refused.kind is EventRefusal.NO_SUCH_CONNECTION
    unknown = deliveries.managing.cancel(SUCCESSOR, replay.replay_id)
    assert isinstance(unknown, Refused)
    assert unknown.kind is EventRefusal.NO_SUCH_REPLAY
    assert deliveries.managing.list(SUCCESSOR, cursor=None, limit=10) == ([], None)


def test_an_origin_without_connections_is_refused(deliveries: DeliveryWorld) -> None:
    refused = deliveries.managing.start(SETTINGS, NewReplay(since=NOON - HOUR, origin=SOURCE), OPERATOR)
    assert isinstance(refused, Refused)
    assert refused.kind is EventRefusal.NOTHING_TO_RESEND


def test_a_tenant_has_only_some_replays_running_at_a_time(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    for _ in range(MAX_RUNNING):
        _start(deliveries)
    refused = deliveries.managing.start(SETTINGS, NewReplay(since=NOON - HOUR, connection_id=FIRST), OPERATOR)
    assert isinstance(refused, Refused)
    assert refused.kind is EventRefusal.LIMIT_REACHED
    _move(deliveries)
    _start(deliveries)


def test_replays_are_listed_newest_first_in_pages(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    newest_first = [_start(deliveries) for _ in range(3)][::-1]
    page, cursor = deliveries.managing.list(ACME_LIFE, cursor=None, limit=2)
    assert list(page) == newest_first[:2]
    assert deliveries.managing.list(ACME_LIFE, cursor=cursor, limit=2) == (newest_first[2:], None)


def test_replays_end_with_their_tenant(lives: Lives) -> None:
    settings = lives.settings()
    replays = DynamoReplays(lives.dynamodb, EVENTS_TABLE)
    replay = Replay(settings.life, new_replay_id(NOON), API_ORIGIN, NOON - HOUR, NOON, NOON, OPERATOR, shards=1)
    assert replays.write(None, replay)
    lives.delete()
    lives.finding.find()
    lives.purge(settings.life)
    assert replays.replay(settings.life, replay.replay_id) is None
    assert list(replays.running()) == []


def test_a_paused_replay_is_not_resumed_beside_as_many_as_may_run(deliveries: DeliveryWorld) -> None:
    """Or somebody could pause and start any number, and then resume all of them."""
    deliveries.connect()
    paused = _start(deliveries)
    deliveries.managing.pause(ACME_LIFE, paused.replay_id)
    running = [_start(deliveries) for _ in range(MAX_RUNNING)]
    refused = deliveries.managing.resume(ACME_LIFE, paused.replay_id)
    assert isinstance(refused, Refused)
    assert refused.kind is EventRefusal.LIMIT_REACHED
    deliveries.managing.cancel(ACME_LIFE, running[0].replay_id)
    resumed = deliveries.managing.resume(ACME_LIFE, paused.replay_id)
    assert isinstance(resumed, Replay)
    assert resumed.status is ReplayStatus.RUNNING


def test_only_so_many_replays_begin_within_a_day(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Replays are not counted for the plan, so a loop of them would send everything again without an end."""
    monkeypatch.setattr(replays, "MAX_PER_DAY", 3)
    deliveries.connect()
    for _ in range(3):
        deliveries.managing.cancel(ACME_LIFE, _start(deliveries).replay_id)
    refused = deliveries.managing.start(SETTINGS, NewReplay(since=NOON - HOUR, connection_id=FIRST), OPERATOR)
    assert isinstance(refused, Refused)
    assert refused.kind is EventRefusal.LIMIT_REACHED
    deliveries.wait(timedelta(hours=24))
    _start(deliveries)


def test_a_replay_skips_a_delivery_that_was_tried_too_often(
    mixed: tuple[DeliveryWorld, list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    world, events = mixed
    monkeypatch.setattr(rounds, "MAX_TRIES", 1)
    replay = _start(world, include_delivered=True)
    _move(world)
    world.deliver()
    assert _tries(world, events) == [0, 0, 0]
    assert _numbers(_now(world, replay)) == (3, 0, 3)


def test_a_replay_sends_a_new_connection_what_came_before_it(deliveries: DeliveryWorld) -> None:
    event_id = deliveries.send()
    deliveries.wait(timedelta(hours=1))
    deliveries.connect(created_at=deliveries.clock.now())
    started = deliveries.managing.start(SETTINGS, NewReplay(since=NOON - HOUR, connection_id=FIRST), OPERATOR)
    assert isinstance(started, Replay)
    deliveries.replaying().move_on(lambda: True)
    deliveries.deliver()
    assert deliveries.receivers.count(event_id) == 1
