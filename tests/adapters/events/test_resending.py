"""Somebody asks for an event to be sent again: to one connection, or to all to which it failed."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.api.delivery_answers import attempts_response
from orchestrator.events.delivery import rounds
from orchestrator.events.delivery.delivering import GRACE, REMEMBERED_SECONDS, Outcome
from orchestrator.events.delivery.history import MAX_ATTEMPTS, EventDeliveries, ShownState
from orchestrator.events.delivery.messages import DeliveryMessage
from orchestrator.events.delivery.records import (
    API_ORIGIN,
    Connection,
    ConnectionStatus,
    DeliveryRef,
    DeliveryState,
    Health,
)
from orchestrator.events.delivery.retries import RetrySchedule
from orchestrator.events.delivery.rounds import ResendResult
from orchestrator.events.plans import Plan
from orchestrator.events.records import TenantEpoch
from orchestrator.events.refusals import EventRefusal, Refused
from orchestrator.events.statuses import EventStatus
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, UNWANTED, DeliveryWorld
from tests.fakes.events import ACME_LIFE, event_settings
from tests.present import present

SETTINGS = event_settings()
SUCCESSOR = TenantEpoch(ACME_LIFE.tenant, "77aa0123")
SOURCE = "src_" + "1" * 24


def _resend(world: DeliveryWorld, event_id: str, connection_id: str | None = None) -> dict[str, ResendResult]:
    result = world.resending.resend(SETTINGS, event_id, connection_id)
    assert not isinstance(result, Refused), result
    return dict(result)


def _refusal(world: DeliveryWorld, event_id: str, connection_id: str | None = None) -> EventRefusal:
    result = world.resending.resend(SETTINGS, event_id, connection_id)
    assert isinstance(result, Refused), result
    return result.kind


def _failed(world: DeliveryWorld) -> str:
    world.receivers.answers[FIRST] = UNWANTED
    event_id = world.send()
    assert world.status(event_id) is EventStatus.FAILED
    return event_id


def _numbers(world: DeliveryWorld, event_id: str) -> list[tuple[int, bool, bool]]:
    """The number of each attempt, whether it delivered the event, and whether somebody has asked for it."""
    shown = world.history.attempts(SETTINGS, event_id)
    assert not isinstance(shown, Refused)
    return [(each.number, each.delivered, each.resend) for each in shown.attempts]


def test_a_resend_turns_failed_into_delivered(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    deliveries.receivers.answers[FIRST] = TAKEN
    assert _resend(deliveries, event_id) == {FIRST: ResendResult.SENT}
    assert deliveries.messages.waiting == [
        DeliveryMessage(DeliveryRef(ACME_LIFE, event_id, FIRST), tries=1, claims=True, quick=False)
    ]
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert deliveries.event(event_id).delivered_at == deliveries.clock.now()
    assert _numbers(deliveries, event_id) == [(1, False, False), (2, True, True)]


def test_a_new_round_has_all_its_tries_again(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    deliveries.wait(timedelta(hours=5))
    deliveries.receivers.answers[FIRST] = BROKEN
    _resend(deliveries, event_id)
    assert deliveries.deliver() == [Outcome.RETRYING]
    row = deliveries.delivery(event_id)
    assert (row.tries, row.tries_before, row.resend, row.first_try) == (2, 1, True, deliveries.clock.now())
    # The first wait of the schedule, and the time that its message has to arrive.
    assert present(row.due) - deliveries.clock.now() == timedelta(seconds=5) + GRACE


def test_the_failure_of_a_resend_leaves_a_delivered_event_delivered(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send()
    before = deliveries.table.event(ACME_LIFE, event_id)
    deliveries.receivers.answers[FIRST] = UNWANTED
    deliveries.wait(timedelta(minutes=1))
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.SENT}
    assert deliveries.deliver() == [Outcome.FAILED]
    assert deliveries.table.event(ACME_LIFE, event_id) == before
    assert _numbers(deliveries, event_id) == [(1, True, False), (2, False, True)]
    # The round that failed can be asked for again, without a name.
    assert _resend(deliveries, event_id) == {FIRST: ResendResult.SENT}


def test_a_second_success_changes_nothing_of_the_event(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send()
    before = deliveries.table.event(ACME_LIFE, event_id)
    deliveries.wait(timedelta(minutes=1))
    _resend(deliveries, event_id, FIRST)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.receivers.count(event_id) == 2
    assert deliveries.table.event(ACME_LIFE, event_id) == before
    assert _numbers(deliveries, event_id) == [(1, True, False), (2, True, True)]


def test_without_a_connection_only_those_that_failed_have_it_again(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    event_id = _failed(deliveries)
    assert _resend(deliveries, event_id) == {FIRST: ResendResult.SENT}
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.deliver()
    assert (deliveries.receivers.count(event_id), deliveries.receivers.count(event_id, SECOND)) == (2, 1)
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert _refusal(deliveries, event_id) is EventRefusal.NOTHING_TO_RESEND


def test_a_success_by_resend_does_not_hide_another_failure(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    deliveries.receivers.answers[SECOND] = UNWANTED
    event_id = _failed(deliveries)
    deliveries.receivers.answers[FIRST] = TAKEN
    _resend(deliveries, event_id, FIRST)
    deliveries.deliver()
    assert deliveries.status(event_id) is EventStatus.FAILED
    deliveries.receivers.answers[SECOND] = TAKEN
    assert _resend(deliveries, event_id) == {SECOND: ResendResult.SENT}
    deliveries.deliver()
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_delivery_that_waits_for_a_retry_is_tried_now_and_not_twice(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    deliveries.messages.take()
    deliveries.receivers.answers[FIRST] = TAKEN
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.DUE}
    assert deliveries.deliver() == [Outcome.DELIVERED]
    row = deliveries.delivery(event_id)
    assert (row.resend, row.tries, row.tries_before) == (False, 2, 0)
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert _numbers(deliveries, event_id) == [(1, False, False), (2, True, False)]


def test_a_resend_takes_no_try_of_the_schedule(deliveries: DeliveryWorld) -> None:
    deliveries.connect(retry=RetrySchedule((timedelta(minutes=5),)))
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    planned = present(deliveries.delivery(event_id).due) - GRACE
    deliveries.messages.take()
    for tries in (2, 3):
        deliveries.wait(timedelta(minutes=1))
        assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.DUE}
        assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.DUE}
        assert deliveries.deliver() == [Outcome.RETRYING, Outcome.STALE]
        row = deliveries.delivery(event_id)
        assert (row.tries, present(row.due) - GRACE, row.planned, row.asked) == (tries, planned, None, False)
        assert [message.tries for message in deliveries.messages.take()] == [tries]
    deliveries.wait(timedelta(minutes=8))
    deliveries.sweep()
    assert deliveries.deliver() == [Outcome.FAILED]
    assert deliveries.receivers.count(event_id) == 4


def test_a_replay_takes_no_try_of_the_schedule_either(deliveries: DeliveryWorld) -> None:
    record = deliveries.connect(retry=RetrySchedule((timedelta(hours=5),)))
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    event, now = present(deliveries.table.event(ACME_LIFE, event_id)), deliveries.clock.now()
    begun = rounds.next_round(event, deliveries.delivery(event_id), record, now, replay_id="rpl_1")
    assert deliveries.table.apply(begun.transition)
    row = deliveries.delivery(event_id)
    assert (begun.result, row.asked, row.planned) == (ResendResult.DUE, False, now + timedelta(hours=5))
    deliveries.messages.waiting = [present(begun.message)]
    assert deliveries.deliver() == [Outcome.RETRYING]


def test_a_receiver_that_asks_for_a_pause_has_it_after_a_resend(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    deliveries.messages.take()
    deliveries.receivers.answers[FIRST] = replace(BROKEN, code=429, retry_after=timedelta(hours=2))
    _resend(deliveries, event_id, FIRST)
    assert deliveries.deliver() == [Outcome.RETRYING]
    assert deliveries.delivery(event_id).due == deliveries.clock.now() + timedelta(hours=2)


def _open(deliveries: DeliveryWorld, **changes: Any) -> Health:
    now = deliveries.clock.now()
    health = Health(failing_since=now, open_until=now + timedelta(hours=1), opened=1)
    deliveries.connect(health=health, **changes)
    return health


@pytest.mark.parametrize("state", [DeliveryState.FAILED, DeliveryState.RETRYING, DeliveryState.PARKED])
def test_a_resend_is_tried_while_the_breaker_is_open(deliveries: DeliveryWorld, state: DeliveryState) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = UNWANTED if state is DeliveryState.FAILED else BROKEN
    event_id = deliveries.send()
    _open(deliveries)
    if state is DeliveryState.PARKED:
        deliveries.deliver()
    assert deliveries.delivery(event_id).state is state
    deliveries.messages.take()
    deliveries.receivers.answers[FIRST] = TAKEN
    expected = ResendResult.SENT if state is DeliveryState.FAILED else ResendResult.DUE
    assert _resend(deliveries, event_id, FIRST) == {FIRST: expected}
    deliveries.watch.seconds += REMEMBERED_SECONDS
    assert deliveries.deliver() == [Outcome.DELIVERED]
    left = deliveries.connections.connection(ACME_LIFE, API_ORIGIN, FIRST)
    assert isinstance(left, Connection)
    assert (left.health.open_until, left.draining) == (None, True)


def test_what_a_resend_has_failed_to_deliver_waits_for_the_breaker_again(deliveries: DeliveryWorld) -> None:
    deliveries.connect(retry=RetrySchedule((timedelta(minutes=5),)))
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    open_until = _open(deliveries, retry=RetrySchedule((timedelta(minutes=5),))).open_until
    deliveries.deliver()
    assert deliveries.delivery(event_id).state is DeliveryState.PARKED
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.DUE}
    assert deliveries.deliver() == [Outcome.RETRYING]
    row = deliveries.delivery(event_id)
    assert (row.due, row.tries, row.tries_before) == (open_until, 2, 1)


def test_a_resumed_connection_is_woken_at_once(deliveries: DeliveryWorld) -> None:
    deliveries.connect(status=ConnectionStatus.PAUSED)
    older, newer = deliveries.send(), deliveries.send()
    resumed = deliveries.connect(draining=True)
    deliveries.watch.seconds += REMEMBERED_SECONDS
    deliveries.resending.wake(resumed)
    assert [message.ref.event_id for message in deliveries.messages.waiting] == [older, newer]
    assert deliveries.deliver() == [Outcome.DELIVERED] * 2
    deliveries.resending.wake(resumed)
    assert deliveries.messages.waiting == []


def test_the_sweep_sends_what_a_resume_could_not(deliveries: DeliveryWorld) -> None:
    deliveries.connect(status=ConnectionStatus.PAUSED)
    deliveries.send()
    resumed = deliveries.connect(draining=True)
    deliveries.messages.loses = True
    deliveries.resending.wake(resumed)
    deliveries.messages.loses = False
    deliveries.wait(GRACE)
    assert deliveries.sweep().sent == 1
    assert deliveries.deliver() == [Outcome.DELIVERED]


def test_a_delivery_that_waits_for_a_retry_is_parked_with_its_paused_connection(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.receivers.answers[FIRST] = BROKEN
    event_id = deliveries.send()
    deliveries.messages.take()
    deliveries.connect(status=ConnectionStatus.PAUSED)
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.PARKED}
    assert deliveries.messages.waiting == []
    deliveries.connect(draining=True)
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.sweep()
    assert deliveries.deliver() == [Outcome.DELIVERED]


def test_two_resends_at_once_are_one_round(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    deliveries.receivers.answers[FIRST] = TAKEN
    assert [_resend(deliveries, event_id, FIRST)[FIRST] for _ in range(3)] == [
        ResendResult.SENT,
        ResendResult.DUE,
        ResendResult.DUE,
    ]
    assert deliveries.deliver() == [Outcome.DELIVERED, Outcome.STALE, Outcome.STALE]
    assert deliveries.receivers.count(event_id) == 2


def test_a_first_try_that_is_on_its_way_is_not_doubled(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.TRYING}
    deliveries.deliver()
    assert deliveries.receivers.count(event_id) == 1


def test_an_event_that_waits_for_another_connection_is_sent_to_a_younger_one(deliveries: DeliveryWorld) -> None:
    deliveries.connect(FIRST, status=ConnectionStatus.PAUSED)
    event_id = deliveries.send()
    deliveries.wait(timedelta(hours=1))
    deliveries.connect(SECOND, created_at=deliveries.clock.now())
    assert _resend(deliveries, event_id, SECOND) == {SECOND: ResendResult.SENT}
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.RECEIVED


def test_a_message_that_is_lost_is_made_up_for_by_the_sweep(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    deliveries.messages.loses = True
    _resend(deliveries, event_id)
    deliveries.messages.loses = False
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.wait(GRACE)
    assert deliveries.sweep().sent == 1
    assert deliveries.deliver() == [Outcome.DELIVERED]


def test_a_resend_to_a_paused_connection_goes_out_when_it_is_resumed(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    deliveries.connect(status=ConnectionStatus.PAUSED)
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.PARKED}
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.PARKED}
    assert deliveries.messages.waiting == []
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.connect(draining=True)
    deliveries.sweep()
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_resend_that_ends_because_the_connection_was_deleted_leaves_the_event(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send()
    _resend(deliveries, event_id, FIRST)
    deliveries.connect(status=ConnectionStatus.DELETED)
    assert deliveries.deliver() == [Outcome.FAILED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert deliveries.delivery(event_id).state is DeliveryState.FAILED


def test_a_connection_that_was_made_later_can_have_an_older_event(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send()
    deliveries.connect(SECOND)
    assert _resend(deliveries, event_id, SECOND) == {SECOND: ResendResult.SENT}
    deliveries.deliver()
    assert deliveries.receivers.count(event_id, SECOND) == 1
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_a_filtered_event_that_is_resent_is_delivered(deliveries: DeliveryWorld) -> None:
    event_id = deliveries.send()
    assert deliveries.status(event_id) is EventStatus.FILTERED
    deliveries.connect()
    _resend(deliveries, event_id, FIRST)
    deliveries.deliver()
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_an_event_that_was_acknowledged_is_still_dispatched_after_a_resend(deliveries: DeliveryWorld) -> None:
    """An entry of the resend would look as if the event had been dispatched."""
    deliveries.connect()
    deliveries.connect(SECOND)
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.SENT}
    deliveries.deliver()
    deliveries.dispatch(event_id)
    deliveries.deliver()
    assert deliveries.receivers.count(event_id, SECOND) == 1
    assert deliveries.status(event_id) is EventStatus.DELIVERED


def test_an_event_that_only_the_inbox_has_can_be_sent_to_a_connection(deliveries: DeliveryWorld) -> None:
    event_id = deliveries.send(inbox=True)
    deliveries.wait(timedelta(hours=1))
    deliveries.connect()
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.SENT}
    deliveries.deliver()
    assert deliveries.receivers.count(event_id) == 1
    assert deliveries.waits_in_inbox() == [event_id]


# Refusals


def test_an_unknown_event_is_refused(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = deliveries.send()
    stranger = event_settings(life=SUCCESSOR)
    result = deliveries.resending.resend(stranger, event_id, FIRST)
    assert isinstance(result, Refused)
    assert result.kind is EventRefusal.UNKNOWN_EVENT
    shown = deliveries.history.attempts(stranger, event_id)
    assert isinstance(shown, Refused)
    assert shown.kind is EventRefusal.UNKNOWN_EVENT


def test_unknown_deleted_and_disabled_connections_are_refused(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    assert _refusal(deliveries, event_id, SECOND) is EventRefusal.NO_SUCH_CONNECTION
    deliveries.connect(status=ConnectionStatus.DISABLED, reason="gone")
    assert _refusal(deliveries, event_id, FIRST) is EventRefusal.CONNECTION_DISABLED
    assert _refusal(deliveries, event_id) is EventRefusal.NOTHING_TO_RESEND
    deliveries.connect(status=ConnectionStatus.DELETED)
    assert _refusal(deliveries, event_id, FIRST) is EventRefusal.NO_SUCH_CONNECTION


def test_a_connection_of_another_source_is_refused(deliveries: DeliveryWorld) -> None:
    event_id = deliveries.send()
    deliveries.connect(origin=SOURCE)
    assert _refusal(deliveries, event_id, FIRST) is EventRefusal.NOTHING_TO_RESEND


def test_an_event_that_is_about_to_expire_is_refused(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    lasts = deliveries.event(event_id).expires_at - deliveries.clock.now()
    deliveries.wait(lasts - timedelta(minutes=59))
    team = event_settings(plan=Plan.TEAM)
    result = deliveries.resending.resend(team, event_id)
    assert isinstance(result, Refused)
    assert result.kind is EventRefusal.EXPIRES_SOON


# Looking


def test_attempts_are_oldest_first_with_their_answers(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    deliveries.receivers.answers = {FIRST: BROKEN, SECOND: TAKEN}
    event_id = deliveries.send()
    deliveries.wait(timedelta(seconds=6))
    deliveries.receivers.answers[FIRST] = TAKEN
    deliveries.deliver()
    shown = deliveries.history.attempts(SETTINGS, event_id)
    assert not isinstance(shown, Refused)
    assert [(each.ref.connection_id, each.number, each.code, each.milliseconds) for each in shown.attempts] == [
        (FIRST, 1, 500, 34),
        (SECOND, 1, 200, 12),
        (FIRST, 2, 200, 12),
    ]
    assert shown.attempts[0].text == "out of order"
    assert [(each.ref.connection_id, each.state, each.tries) for each in shown.deliveries] == [
        (FIRST, ShownState.DELIVERED, 2),
        (SECOND, ShownState.DELIVERED, 1),
    ]


def test_a_delivery_that_nobody_has_tried_is_shown_as_waiting(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    deliveries.connect(SECOND)
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    shown = deliveries.history.attempts(SETTINGS, event_id)
    assert not isinstance(shown, Refused)
    assert [each.state for each in shown.deliveries] == [ShownState.WAITING] * 2


def _listed(world: DeliveryWorld, state: DeliveryState, *, limit: int) -> list[list[str]]:
    """The pages of a list."""
    pages, cursor = [], None
    while True:
        page = world.history.deliveries(SETTINGS, FIRST, state, cursor=cursor, limit=limit)
        assert not isinstance(page, Refused)
        pages.append([each.ref.event_id for each in page.deliveries])
        cursor = page.cursor
        if cursor is None:
            return pages


def test_failed_deliveries_are_listed_newest_first_in_pages(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    newest_first = [_failed(deliveries) for _ in range(5)][::-1]
    assert _listed(deliveries, DeliveryState.FAILED, limit=2) == [newest_first[:2], newest_first[2:4], newest_first[4:]]


def test_parked_deliveries_are_listed_oldest_first_in_pages(deliveries: DeliveryWorld) -> None:
    deliveries.connect(status=ConnectionStatus.PAUSED)
    parked = [deliveries.send() for _ in range(5)]
    assert _listed(deliveries, DeliveryState.PARKED, limit=2) == [parked[:2], parked[2:4], parked[4:]]


@pytest.mark.parametrize("state", [DeliveryState.RETRYING, DeliveryState.DELIVERED])
def test_a_list_that_would_read_those_of_everybody_is_refused(deliveries: DeliveryWorld, state: DeliveryState) -> None:
    deliveries.connect()
    with pytest.raises(Exception, match="only failed and parked ones"):
        deliveries.history.deliveries(SETTINGS, FIRST, state, cursor=None, limit=10)


def test_another_tenants_connection_is_unknown(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    stranger = event_settings(life=SUCCESSOR)
    page = deliveries.history.deliveries(stranger, FIRST, DeliveryState.FAILED, cursor=None, limit=10)
    assert isinstance(page, Refused)
    assert page.kind is EventRefusal.NO_SUCH_CONNECTION


def test_a_resent_delivery_is_no_longer_listed_as_failed(deliveries: DeliveryWorld) -> None:
    deliveries.connect()
    event_id = _failed(deliveries)
    assert _listed(deliveries, DeliveryState.FAILED, limit=10) == [[event_id]]
    _resend(deliveries, event_id)
    assert _listed(deliveries, DeliveryState.FAILED, limit=10) == [[]]


# Limits of growth


def test_a_delivery_is_tried_only_so_often_in_all(deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each try is a row. Somebody who resends in a loop must not make them grow without an end."""
    monkeypatch.setattr(rounds, "MAX_TRIES", 3)
    deliveries.connect()
    event_id = _failed(deliveries)
    for _ in range(2):
        assert _resend(deliveries, event_id) == {FIRST: ResendResult.SENT}
        deliveries.deliver()
    assert _resend(deliveries, event_id) == {FIRST: ResendResult.EXHAUSTED}
    assert deliveries.deliver() == []
    assert deliveries.receivers.count(event_id) == 3


def test_an_event_is_sent_only_to_so_many_connections(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The row of an event has an entry for each, also for those that were made later, and deleted since."""
    monkeypatch.setattr(rounds, "MAX_CONNECTIONS", 1)
    deliveries.connect()
    event_id = deliveries.send()
    deliveries.connect(SECOND)
    assert _resend(deliveries, event_id, SECOND) == {SECOND: ResendResult.EXHAUSTED}
    assert _resend(deliveries, event_id, FIRST) == {FIRST: ResendResult.SENT}


def test_the_attempts_of_an_event_fit_into_an_answer_of_lambda(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lambda answers with 6 MB at most. A hostile receiver answers with characters that become 14 bytes there."""
    connections = [f"conn_{number:024}" for number in range(8)]
    for each in connections:
        deliveries.connect(each)
        deliveries.receivers.answers[each] = replace(UNWANTED, text="\U0001f4a3" * 1000)
    event_id = deliveries.send()
    rows = {each.ref: each for each in deliveries.table.attempts(ACME_LIFE, event_id)}
    many = [replace(each, number=number) for number in range(1, 90) for each in rows.values()]
    monkeypatch.setattr(deliveries.table, "attempts", lambda *_: many)
    shown = deliveries.history.attempts(SETTINGS, event_id)
    assert isinstance(shown, EventDeliveries)
    assert (len(shown.attempts), shown.omitted) == (MAX_ATTEMPTS, len(many) - MAX_ATTEMPTS)
    assert shown.attempts[-1].text
    assert not shown.attempts[0].text
    assert len(json.dumps({"body": json.dumps(attempts_response(shown).body)})) < 2_000_000
