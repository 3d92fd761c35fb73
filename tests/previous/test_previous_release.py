"""This release ends the operations that the release before has begun.

Until a release is recorded, what is recorded of today's sources stands for it. So the recording is tested, too.
"""

from __future__ import annotations

import io
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.common.errors import BerthError, InvalidRequest
from tests.adapters.bad_input.world import ControlPlane, a_control_plane
from tests.machines import files
from tests.previous import PAYLOADS, SOURCES, Payload, pack, read_payloads, unpack, write_payloads
from tests.previous.record import record
from tests.simulation.aws import executions
from tests.simulation.rollouts import executions as rollout_executions
from tests.simulation.rollouts.seeded_rollout import SeededRollout
from tests.simulation.scenarios import Scenario
from tests.simulation.test_operations_survive_crashes import every_scenario, play_undisturbed

FUNCTIONS = {
    "Begin": "begin",
    "AwaitAdmission": "await_admission",
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
FAILURE = {"Cause": "The function died.", "Error": "Lambda.Unknown"}
LIKE = {
    "AwaitAdmission": ("AwaitStack", {}),
    "GiveUp": ("Advance", {"failure": FAILURE}),
    "TellFailure": ("Review", {"failure": FAILURE}),
}
"""States that few seeds or none reach: another state, and what is given in addition to its payload."""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> list[Payload]:
    if PAYLOADS.exists():
        return read_payloads()
    today = tmp_path_factory.mktemp("today") / "payloads.json"
    write_payloads(record(rollouts=10, runs=5), today)
    return read_payloads(today)


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack(SOURCES.read_bytes() if SOURCES.exists() else packed_today(), tmp_path_factory.mktemp("previous"))


def packed_today() -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as machines:
        machines.add(files.FOLDER, "statemachines")
    return pack(archive.getvalue())


@pytest.fixture
def plane() -> Iterator[ControlPlane]:
    with a_control_plane() as plane:
        yield plane


@pytest.fixture
def _machines_of_then(sources: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    remembered = (files.machine, executions._chosen, rollout_executions._chosen)
    monkeypatch.setattr(files, "FOLDER", sources / "statemachines")
    for each in remembered:
        each.cache_clear()
    yield
    for each in remembered:
        each.cache_clear()


def given_to(state: str, recorded: list[Payload]) -> list[Payload]:
    found = [each for each in recorded if each["state"] == state]
    if not found and state in LIKE:
        other, more = LIKE[state]
        found = [Payload(state=state, payload=each["payload"] | more) for each in given_to(other, recorded)]
    return found


def test_a_payload_is_recorded_once_for_each_shape(recorded: list[Payload]) -> None:
    assert {each["state"] for each in recorded} <= FUNCTIONS.keys()
    texts = [str(each) for each in recorded]
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize("state", FUNCTIONS)
def test_a_function_understands_what_the_machines_of_the_release_before_give_it(
    plane: ControlPlane, recorded: list[Payload], state: str
) -> None:
    given = given_to(state, recorded)
    assert given
    assert not [each for each in given if not is_understood(plane, each)]


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
@pytest.mark.parametrize("seed", range(5))
def test_a_rollout_of_the_release_before_goes_on_with_these_functions(seed: int) -> None:
    SeededRollout(seed).play()
