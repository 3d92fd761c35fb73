"""What a tenant's stack says about its own queue."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.decisions import ready
from orchestrator.errors import QueueOwnedElsewhere
from orchestrator.queue_metadata import forget_queue, record_queue
from orchestrator.records import Metadata
from tests.fakes import ACME, NOON, OTHER_QUEUE, QUEUE, VERSION, FakeClock, InMemoryTable


@pytest.fixture
def table() -> InMemoryTable:
    return InMemoryTable()


def test_a_queue_is_recorded_at_once_but_not_served_before_a_version_is_published(table: InMemoryTable) -> None:
    record_queue(ACME, stack_id="stack-1", queue=QUEUE, ledger=table, clock=FakeClock())
    assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", None, NOON, NOON)
    assert ready(table.metadata(ACME)) is None


def test_a_published_queue_that_its_own_stack_replaces_is_served_from_then_on(table: InMemoryTable) -> None:
    clock = FakeClock()
    table.plant_metadata(Metadata(ACME, QUEUE, "stack-1", VERSION, NOON, NOON))
    clock.advance(timedelta(hours=1))
    record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, ledger=table, clock=clock)
    served = ready(table.metadata(ACME))
    assert served is not None
    assert served.queue == OTHER_QUEUE


def test_another_stack_cannot_take_a_published_queues_place(table: InMemoryTable) -> None:
    table.plant_metadata(Metadata(ACME, QUEUE, "stack-1", VERSION, NOON, NOON))
    with pytest.raises(QueueOwnedElsewhere):
        record_queue(ACME, stack_id="stack-2", queue=OTHER_QUEUE, ledger=table, clock=FakeClock())
    metadata = table.metadata(ACME)
    assert metadata is not None
    assert metadata.queue == QUEUE


def test_a_stack_that_lets_go_of_its_queue_takes_the_metadata_with_it(table: InMemoryTable) -> None:
    record_queue(ACME, stack_id="stack-1", queue=QUEUE, ledger=table, clock=FakeClock())
    assert forget_queue(ACME, stack_id="stack-1", ledger=table)
    assert table.metadata(ACME) is None


def test_a_stack_cannot_make_another_stacks_queue_be_forgotten(table: InMemoryTable) -> None:
    record_queue(ACME, stack_id="stack-2", queue=QUEUE, ledger=table, clock=FakeClock())
    assert not forget_queue(ACME, stack_id="stack-1", ledger=table)
    assert table.metadata(ACME) is not None


def test_forgetting_twice_is_forgetting_once(table: InMemoryTable) -> None:
    record_queue(ACME, stack_id="stack-1", queue=QUEUE, ledger=table, clock=FakeClock())
    assert [forget_queue(ACME, stack_id="stack-1", ledger=table) for _ in range(2)] == [True, False]
