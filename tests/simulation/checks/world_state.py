"""Assertions about the world after a scenario has ended, whatever faults there were."""

from __future__ import annotations

from orchestrator.tenants.decisions import Deleted, Failed
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import RootCause, Status
from tests.fakes import ACME
from tests.simulation.world import World

ENDED: tuple[list[Status], ...] = ([Status.STARTED, Status.SUCCESS], [Status.STARTED, Status.FAILURE])
NEVER_BEGUN: tuple[list[Status], ...] = ([], [Status.FAILURE])
"""The execution was aborted before it began, or gave up waiting for the lock."""


def told_of(world: World, execution: str) -> list[Status]:
    history = [entry for entry in world.table.history(ACME) if isinstance(entry, HistoryEntry)]
    return [entry.status for entry in history if entry.execution == execution]


def assert_the_promises_hold(world: World) -> None:
    """One live stack at most, nothing half-done, one end for each operation that began, and metadata that is true."""
    assert world.table.lock(ACME) is None
    assert len(world.stacks.living) <= 1

    for execution in world.executions.inputs:
        assert told_of(world, execution) in (*ENDED, *NEVER_BEGUN), execution
    for audit in world.table.audits(ACME):
        assert audit.status is not Status.STARTED
        if audit.execution in world.executions.inputs:
            assert told_of(world, audit.execution)[-1] is audit.status

    metadata = world.table.metadata(ACME)
    if metadata is None or not metadata.published:
        assert not isinstance(world.ask(), Ready)
        return
    (stack,) = world.stacks.living
    assert metadata.queue == stack.queue
    # A tenant from before there was a custom resource has no stack in its metadata, and no version in its stack.
    assert metadata.stack_id in (None, stack.stack_id)
    assert stack.version in (None, metadata.version)


def assert_served(world: World, version: str) -> None:
    metadata = world.table.metadata(ACME)
    assert metadata
    assert metadata.queue
    assert world.ask() == Ready(metadata.queue, version)


def assert_deleted(world: World) -> None:
    assert world.stacks.living == []
    assert world.table.metadata(ACME) is None
    assert isinstance(world.ask(), Deleted)


def assert_failed(world: World, cause: RootCause) -> None:
    answer = world.ask()
    assert isinstance(answer, Failed)
    assert answer.audit.root_cause == cause
