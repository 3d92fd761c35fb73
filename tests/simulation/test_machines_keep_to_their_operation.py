"""Callers who may start one machine can give it any input. Each machine accepts only its own operation."""

from __future__ import annotations

import pytest

from orchestrator.tenants.execution_input import machine_input
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Request
from tests.fakes import ACME, NEXT_VERSION, an_attempt, execution_arn
from tests.simulation.aws.executions import Execution, State
from tests.simulation.world import a_queue, a_served_tenant

MAX_STEPS = 100
"""Without the check some of them go round in circles."""
OTHERS = [(machine, other) for machine in Operation for other in Operation if machine is not other]


@pytest.mark.parametrize(("machine", "other"), OTHERS, ids=[f"{other} by {machine}" for machine, other in OTHERS])
def test_a_machine_that_is_given_another_operation_fails_and_changes_nothing(
    machine: Operation, other: Operation
) -> None:
    world = a_served_tenant()
    world.queues.held[a_queue(1).url] = Messages(41, 0, 0)
    stacks, calls = list(world.stacks.living), list(world.stacks.calls)
    audits, history = list(world.table.audits(ACME)), list(world.table.history(ACME))
    execution = execution_arn("of-any-name")
    attempt = an_attempt(7, operation=other, version=NEXT_VERSION)
    world.executions.inputs[execution] = machine_input(attempt, Request(explicit=True, force=True))
    world.executions.running.add(execution)

    played = Execution(world, execution, of_machine=machine)
    for _ in range(MAX_STEPS):
        if played.running:
            played.step()

    assert played.state is State.FAILED
    assert isinstance(world.ask(), Ready)
    assert world.table.lock(ACME) is None
    assert (list(world.stacks.living), world.stacks.calls) == (stacks, calls)
    assert (list(world.table.audits(ACME)), list(world.table.history(ACME))) == (audits, history)
