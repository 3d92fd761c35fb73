"""This release ends the operations that the release before has begun."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.common.errors import BerthError, InvalidRequest
from tests.adapters.bad_input.world import ControlPlane, a_control_plane
from tests.machines import files
from tests.previous import Payload, payloads, unpack
from tests.simulation.aws import executions
from tests.simulation.rollouts import executions as rollout_executions
from tests.simulation.rollouts.seeded_rollout import SeededRollout
from tests.simulation.scenarios import Scenario
from tests.simulation.test_operations_survive_crashes import every_scenario, play_undisturbed

FUNCTIONS = {
    "Begin": "begin",
    "ReviewChanges": "review_changes",
    "CheckMessages": "check_messages",
    "StartStack": "start_stack",
    "AwaitStack": "await_stack",
    "InspectStack": "inspect_stack",
    "Finish": "finish",
    "RecordFailure": "record_failure",
    "Advance": "advance_rollout",
    "GiveUp": "advance_rollout",
    "AwaitOperator": "await_operator",
    "Admit": "admit_tenant",
    "Review": "review_tenant",
    "TellFailure": "review_tenant",
    "RecordOutcome": "record_outcome",
}
"""The function of each state, then and now."""


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        yield plane


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(tmp_path_factory.mktemp("previous"))


@pytest.fixture
def _machines_of_then(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    remembered = (files.machine, executions._chosen, rollout_executions._chosen)
    monkeypatch.setattr(files, "FOLDER", sources / "statemachines")
    for each in remembered:
        each.cache_clear()
    yield
    for each in remembered:
        each.cache_clear()


def given_to(state: str) -> list[Payload]:
    """The recorded payloads. No seed of that release fails a review for good, after which the failure is added."""
    if state == "TellFailure":
        failure = {"Cause": "The function died.", "Error": "Lambda.Unknown"}
        return [Payload(state=state, payload={**each["payload"], "failure": failure}) for each in given_to("Review")]
    return [each for each in payloads() if each["state"] == state]


@pytest.mark.parametrize("state", FUNCTIONS)
def test_every_state_of_then_has_given_something(state: str) -> None:
    assert given_to(state)


@pytest.mark.parametrize("state", FUNCTIONS)
def test_a_function_understands_what_the_machines_of_the_release_before_give_it(
    plane: ControlPlane, state: str
) -> None:
    assert not [each for each in given_to(state) if not is_understood(plane, each)]


def is_understood(plane: ControlPlane, given: Payload) -> bool:
    """Whatever the function makes of an operation that this control plane does not have."""
    try:
        plane.call(FUNCTIONS[given["state"]], given["payload"])
    except InvalidRequest:
        return False
    except BerthError:
        return True
    return True


@pytest.mark.usefixtures("_machines_of_then")
@every_scenario
def test_a_machine_of_the_release_before_goes_on_with_these_functions(scenario: Scenario) -> None:
    play_undisturbed(scenario)


@pytest.mark.usefixtures("_machines_of_then")
@pytest.mark.parametrize("seed", range(20))
def test_a_rollout_of_the_release_before_goes_on_with_these_functions(seed: int) -> None:
    SeededRollout(seed).play()
