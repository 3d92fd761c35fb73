"""Every operation over the fakes, crashing before and after every single call that it makes to the outside.

A crash is repeated as the machine's Retry says; a killed execution is followed by the next that is asked for.
Whatever happens, the promises hold in the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest

from orchestrator.common.errors import Throttled
from orchestrator.tenants.provisioning import CHECK_EXECUTION_AFTER
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Status
from tests.fakes import ACME
from tests.simulation.aws.executions import Crash, Execution, FaultInjector, Killed, Moment
from tests.simulation.checks.world_state import ENDED, assert_the_promises_hold, told_of
from tests.simulation.scenarios import CREATES, DELETES, UPDATES, Scenario, by_asking
from tests.simulation.world import A_MOMENT, World

SCENARIOS = {
    f"{operation.lower()}: {scenario.name}": scenario
    for operation, scenarios in zip(Operation, (CREATES, UPDATES, DELETES), strict=True)
    for scenario in scenarios
}


def begin(scenario: Scenario, fault: FaultInjector) -> Execution:
    world = scenario.arrange()
    name = scenario.order(world)
    assert name
    return Execution(world, name, fault.around)


def calls_of(scenario: Scenario) -> int:
    """How many calls to the outside it takes when nothing goes wrong."""
    fault = FaultInjector()
    begin(scenario, fault).play()
    return fault.calls


def every_fault(scenario: Scenario) -> Iterator[tuple[int, Moment]]:
    return product(range(1, calls_of(scenario) + 1), Moment)


@contextmanager
def noting(at_call: int, moment: Moment) -> Iterator[None]:
    """One test is many: say which failed."""
    try:
        yield
    except BaseException as failed:
        failed.add_note(f"{moment.value} call {at_call}")
        raise


every_scenario = pytest.mark.parametrize(
    "scenario", [pytest.param(scenario, id=name) for name, scenario in SCENARIOS.items()]
)


def play_undisturbed(scenario: Scenario) -> None:
    execution = begin(scenario, FaultInjector())
    assert execution.play() == (scenario.ends is Status.SUCCESS)
    assert_the_promises_hold(execution.world)
    scenario.then(execution.world)


@every_scenario
def test_without_faults_the_scenario_ends_as_expected(scenario: Scenario) -> None:
    play_undisturbed(scenario)


@every_scenario
def test_a_crash_anywhere_has_the_effect_of_none(scenario: Scenario) -> None:
    for at_call, moment in every_fault(scenario):
        with noting(at_call, moment):
            fault = FaultInjector(at_call, moment)
            execution = begin(scenario, fault)

            succeeded = execution.play()

            assert fault.calls > at_call
            assert succeeded == (scenario.ends is Status.SUCCESS)
            assert_the_promises_hold(execution.world)
            scenario.then(execution.world)
            assert told_of(execution.world, execution.name) == [Status.STARTED, scenario.ends]


@every_scenario
def test_an_execution_that_is_killed_anywhere_is_healed_by_asking_again(scenario: Scenario) -> None:
    for at_call, moment in every_fault(scenario):
        with noting(at_call, moment):
            killed = begin(scenario, FaultInjector(at_call, moment, Killed))
            with pytest.raises(Killed):
                killed.play()
            world = killed.world
            world.let_time_pass(CHECK_EXECUTION_AFTER + A_MOMENT)

            successor = scenario.ask_again(world)
            if successor is not None:
                assert successor != killed.name
                succeeded = Execution(world, successor).play()
                assert succeeded or scenario.ends is Status.FAILURE
                assert told_of(world, successor) in ENDED

            assert_the_promises_hold(world)
            if scenario.ends is Status.SUCCESS:
                scenario.then(world)


def test_throttling_never_fails_a_run_by_itself() -> None:
    world = World()
    world.stacks.throttled_calls = 40
    name = by_asking(world)
    assert name
    assert Execution(world, name).play()
    assert_the_promises_hold(world)
    assert isinstance(world.ask(), Ready)


def test_the_fault_is_injected_at_its_call() -> None:
    heard: list[str] = []
    before, after = FaultInjector(2, Moment.BEFORE), FaultInjector(2, Moment.AFTER)
    for fault in (before, after):
        fault.around("call", lambda: heard.append("first"))
        with pytest.raises(Crash):
            fault.around("call", lambda: heard.append(fault.moment.value))  # noqa: B023 - called at once
    assert heard == ["first", "first", "after"]
    with pytest.raises(Throttled):
        FaultInjector(1, Moment.BEFORE, Throttled).around("call", lambda: heard.append("never"))


def test_the_machines_are_played_to_their_last_state() -> None:
    """Nothing is left to Finish or RecordFailure that the player would not show."""
    world = World()
    name = by_asking(world)
    assert name
    execution = Execution(world, name)
    passed = []
    while execution.running:
        passed.append(execution.at)
        execution.step()
    assert passed == [
        "Begin",
        "HasBegun",
        "StartStack",
        "StartStack",
        "HasSettled",
        "Finish",
    ]
    assert world.table.metadata(ACME)
