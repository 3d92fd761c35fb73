"""Whatever happens to an event in whatever order, it ends, with the status that fits, and leaves nothing behind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.adapters.dynamodb.event_purges import DynamoRemains
from orchestrator.adapters.event_contents import S3Contents
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.events.delivery import sweeping
from orchestrator.events.delivery.delivering import EXPIRED, Outcome
from orchestrator.events.delivery.records import (
    Connection,
    ConnectionStatus,
    DeliveryState,
    DispatchedEvent,
    Health,
    TryResult,
)
from orchestrator.events.delivery.redispatching import AT_ONCE
from orchestrator.events.delivery.rounds import ResendResult
from orchestrator.events.event_ids import MAX_SHARDS
from orchestrator.events.plans import Plan
from orchestrator.events.purging import delete_events
from orchestrator.events.records import TenantEpoch
from orchestrator.events.statuses import EventStatus
from tests.adapters.conftest import TABLE
from tests.adapters.events.delivery_world import BROKEN, FIRST, SECOND, TAKEN, UNWANTED, DeliveryWorld
from tests.adapters.events.lives import BUCKET, EVENTS_TABLE
from tests.adapters.events.noting import noted_requests
from tests.fakes import NOON
from tests.fakes.events import ACME_LIFE, event_settings
from tests.present import present

SETTINGS = event_settings()
A_MINUTE = timedelta(minutes=1)
A_DAY = timedelta(days=1)


def as_accepted(world: DeliveryWorld, event_id: str) -> DispatchedEvent:
    """The event as the stream has it, and hands it over again for a day."""
    return present(world.table.event(ACME_LIFE, event_id))


# Connections that are made later


@pytest.mark.parametrize("acknowledged", [True, False])
def test_a_connection_gets_no_event_from_before_it_was_created_at_night(
    deliveries: DeliveryWorld, acknowledged: bool
) -> None:
    event_id = deliveries.send(inbox=True)
    if acknowledged:
        deliveries.inbox.acknowledge(SETTINGS, [event_id])
    before = as_accepted(deliveries, event_id)
    deliveries.wait(timedelta(hours=2))
    deliveries.connect(FIRST, created_at=deliveries.clock.now())
    deliveries.wait(timedelta(hours=2))
    deliveries.redispatch()
    deliveries.deliver()
    assert deliveries.receivers.tried == []
    assert as_accepted(deliveries, event_id) == before


def test_a_connection_gets_at_night_what_the_stream_has_lost_since_it_was_created(deliveries: DeliveryWorld) -> None:
    # The clock of the function that created the connection is some seconds ahead.
    deliveries.connect(FIRST, created_at=deliveries.clock.now() + timedelta(seconds=10))
    event_id = deliveries.accept(inbox=True)
    deliveries.wait(timedelta(hours=2))
    deliveries.redispatch()
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.receivers.count(event_id) == 1


def test_a_delivered_event_is_not_sent_to_another_connection_when_the_stream_repeats_it(
    deliveries: DeliveryWorld,
) -> None:
    first = deliveries.connect(FIRST)
    event_id = deliveries.accept()
    record = as_accepted(deliveries, event_id)
    deliveries.dispatching.dispatch([record])
    deliveries.deliver()
    deliveries.changes.disable(first, "gone", deliveries.clock.now())
    deliveries.connect(SECOND)
    deliveries.receivers.answers[SECOND] = BROKEN
    deliveries.dispatching.dispatch([record])
    assert deliveries.deliver() == [Outcome.FINISHED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED


# Resends before the event was dispatched


@pytest.mark.parametrize("answer", [BROKEN, UNWANTED])
def test_an_event_that_is_resent_before_it_was_dispatched_still_ends(
    deliveries: DeliveryWorld, answer: TryResult
) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    deliveries.receivers.answers[FIRST] = answer
    assert deliveries.resending.resend(SETTINGS, event_id, FIRST) == {FIRST: ResendResult.SENT}
    deliveries.dispatch(event_id)
    play_to_the_end(deliveries)
    assert deliveries.status(event_id) is EventStatus.FAILED
    assert present(as_accepted(deliveries, event_id).entries)[FIRST].state is DeliveryState.FAILED


@pytest.mark.parametrize("answer", [TAKEN, UNWANTED])
def test_an_event_whose_resend_was_over_before_it_was_dispatched_still_ends(
    deliveries: DeliveryWorld, answer: TryResult
) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    deliveries.receivers.answers[FIRST] = answer
    deliveries.resending.resend(SETTINGS, event_id, FIRST)
    deliveries.deliver()
    deliveries.receivers.answers[FIRST] = BROKEN
    deliveries.dispatch(event_id)
    play_to_the_end(deliveries)
    assert deliveries.status(event_id) is EventStatus.FAILED
    row = deliveries.delivery(event_id)
    assert (row.state, row.resend) == (DeliveryState.FAILED, False)


@pytest.mark.parametrize("when", ["before it is dispatched", "after it is dispatched"])
def test_an_event_whose_resend_was_over_before_it_was_dispatched_is_parked_for_a_paused_connection(
    deliveries: DeliveryWorld, when: str
) -> None:
    there = deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    deliveries.receivers.answers[FIRST] = UNWANTED
    deliveries.resending.resend(SETTINGS, event_id, FIRST)
    deliveries.deliver()
    deliveries.wait(A_MINUTE)
    deliveries.receivers.answers[FIRST] = TAKEN
    paused = replace(there, status=ConnectionStatus.PAUSED, revision=there.revision + 1)
    if when == "before it is dispatched":
        deliveries.connect(**_fields(paused))
    deliveries.dispatch(event_id)
    deliveries.connect(**_fields(paused))
    deliveries.deliver()
    assert deliveries.delivery(event_id).state is DeliveryState.PARKED
    deliveries.connect(**_fields(replace(there, draining=True, revision=there.revision + 2)))
    play_to_the_end(deliveries)
    assert deliveries.status(event_id) is EventStatus.DELIVERED


@pytest.mark.parametrize("is_over", [True, False])
def test_an_event_that_is_resent_before_it_was_dispatched_ends_with_its_connection(
    deliveries: DeliveryWorld, is_over: bool
) -> None:
    there = deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    deliveries.receivers.answers[FIRST] = UNWANTED
    deliveries.resending.resend(SETTINGS, event_id, FIRST)
    if is_over:
        deliveries.deliver()
    deliveries.wait(A_MINUTE)
    deliveries.dispatch(event_id)
    deliveries.changes.disable(
        present(deliveries.connections.connection(ACME_LIFE, there.origin, FIRST)), "no", deliveries.clock.now()
    )
    play_to_the_end(deliveries)
    assert deliveries.status(event_id) is EventStatus.FAILED


# Parked deliveries that expire


def test_a_parked_delivery_fails_before_its_event_expires_also_after_a_change_of_plan(
    deliveries: DeliveryWorld,
) -> None:
    deliveries.connect(status=ConnectionStatus.PAUSED)
    older = deliveries.send(plan=Plan.TEAM)
    deliveries.wait(A_DAY)
    newer = deliveries.send(plan=Plan.FREE)
    deliveries.wait(timedelta(days=7, hours=23))
    deliveries.sweep()
    assert present(as_accepted(deliveries, newer).entries)[FIRST].reason == EXPIRED
    assert deliveries.status(older) is EventStatus.RECEIVED


@pytest.mark.parametrize("parks", [{"status": ConnectionStatus.PAUSED}, {"health": Health(NOON, None, NOON, 1)}])
def test_everything_that_is_parked_fails_before_it_expires_however_much_that_is(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch, parks: dict[str, Any]
) -> None:
    monkeypatch.setattr(sweeping, "PAGE", 2)
    deliveries.connect(status=ConnectionStatus.PAUSED)
    events = [deliveries.send(plan=Plan.FREE) for _ in range(5)]
    deliveries.connect(**parks)
    deliveries.wait(timedelta(days=7, hours=23))
    assert deliveries.sweep().failed == 5
    assert {deliveries.status(each) for each in events} == {EventStatus.FAILED}


# A purge


def test_a_purge_finds_what_a_resend_has_left_after_a_delivery_that_was_never_tried(deliveries: DeliveryWorld) -> None:
    there = deliveries.connect()
    event_id = deliveries.accept()
    deliveries.dispatch(event_id)
    deliveries.changes.disable(there, "gone", deliveries.clock.now())
    assert deliveries.deliver() == [Outcome.FAILED]
    deliveries.connect()
    deliveries.resending.resend(SETTINGS, event_id)
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    remains = DynamoRemains(
        deliveries.dynamodb, table=TABLE, events_table=EVENTS_TABLE, contents=S3Contents(_no_objects, BUCKET)
    )
    for shard in range(MAX_SHARDS):
        delete_events(remains, ACME_LIFE, shard, lambda _rows: None)
    assert deliveries.table.deliveries(ACME_LIFE, event_id) == []
    assert deliveries.table.attempts(ACME_LIFE, event_id) == []


def _no_objects() -> Any:
    raise AssertionError("no object is looked at")


# A run that takes long


def test_a_night_run_reads_connections_anew_for_every_hundred_events(deliveries: DeliveryWorld) -> None:
    there = deliveries.connect(status=ConnectionStatus.PAUSED)
    for _ in range(AT_ONCE + 1):
        deliveries.accept()
    deliveries.wait(timedelta(hours=1))
    read = deliveries.connections.of_origin

    def read_and_resume(life: TenantEpoch, origin: str) -> Sequence[Connection]:
        found = read(life, origin)
        deliveries.connect(**_fields(replace(there, status=ConnectionStatus.ACTIVE, draining=True)))
        return found

    deliveries.connections.of_origin = read_and_resume  # type: ignore[method-assign]
    deliveries.redispatch()
    assert len(deliveries.messages.waiting) == 1


def test_an_event_that_was_resent_before_it_was_dispatched_at_night_is_tried_though_its_message_is_lost(
    deliveries: DeliveryWorld,
) -> None:
    deliveries.connect()
    event_id = deliveries.accept(inbox=True)
    deliveries.inbox.acknowledge(SETTINGS, [event_id])
    assert deliveries.resending.resend(SETTINGS, event_id, FIRST) == {FIRST: ResendResult.SENT}
    deliveries.deliver()
    deliveries.wait(timedelta(hours=1))
    deliveries.redispatch()
    deliveries.messages.take()
    deliveries.wait(timedelta(minutes=5))
    deliveries.sweep()
    assert deliveries.deliver() == [Outcome.DELIVERED]
    assert deliveries.status(event_id) is EventStatus.DELIVERED
    assert present(deliveries.table.event(ACME_LIFE, event_id)).pending is None


def test_a_night_run_writes_nothing_for_what_is_parked_already(deliveries: DeliveryWorld) -> None:
    """Writes that are refused are charged, too: a busy partition would have none left for what was lost."""
    deliveries.connect(FIRST, status=ConnectionStatus.PAUSED)
    parked = deliveries.send()
    deliveries.wait(timedelta(hours=1))
    with noted_requests(deliveries.dynamodb) as requests:
        deliveries.redispatch()
    assert {name for name, _ in requests} == {"Query", "GetItem"}
    assert deliveries.delivery(parked).state is DeliveryState.PARKED


def test_a_tenant_whose_events_cannot_be_dispatched_at_night_holds_up_no_other(
    deliveries: DeliveryWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    deliveries.connect()
    lost = deliveries.accept()
    deliveries.wait(timedelta(hours=1))
    busy = event_settings(life=TenantEpoch(TenantId.parse("globex"), "e" * 20))
    monkeypatch.setattr(deliveries, "listed_settings", lambda: [busy, event_settings()])
    deliveries.redispatching._random_below = lambda _number: 0
    untried = deliveries.table.untried

    def throttled(life: TenantEpoch, *args: Any, **options: Any) -> Any:
        if life == busy.life:
            raise Throttled("Rate exceeded")
        return untried(life, *args, **options)

    monkeypatch.setattr(deliveries.table, "untried", throttled)
    done = deliveries.redispatch()
    assert (len(done.errors), done.complete) == (1, True)
    deliveries.deliver()
    assert deliveries.receivers.count(lost) == 1


def play_to_the_end(world: DeliveryWorld) -> None:
    """Until no message is on its way, and the sweep finds nothing to do."""
    for _ in range(60):
        world.deliver()
        world.sweep()
        world.wait(timedelta(hours=1))
    assert not world.messages.waiting


def _fields(connection: object) -> dict[str, object]:
    return {name: getattr(connection, name) for name in connection.__slots__}  # type: ignore[attr-defined]
