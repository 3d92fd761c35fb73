"""ASL has no includes, so machines that share a state each have a copy. The copies must stay the same."""

from __future__ import annotations

from collections.abc import Iterable

from tests.machines import asl
from tests.machines.files import MACHINES, OPERATIONS, PARTS, machine

LAST = {"Finish", "RecordFailure", "RecordPurgeFailure", "TellFailure", "RecordOutcome", "Advance", "GiveUp"}
"""States with more retries, because all earlier work is lost if they fail."""

DIFFERENCES = {
    "Begin": {"Arguments", "Assign", "Comment"},
    "HasBegun": {"Choices"},
    "HasSettled": {"Choices"},
    "StartStack": {"Arguments", "Assign", "Comment"},
    "InspectStack": {"Comment"},
    "AwaitDrain": {"Comment"},
    "PauseBeforeStart": {"Comment"},
    "Finish": {"Comment"},
    "RecordFailure": {"Arguments"},
}
"""States that several machines share, and the fields in which the copies may differ."""


def copies(machines: Iterable[asl.Machine]) -> dict[str, list[asl.State]]:
    """The states that more than one machine has, by name."""
    found: dict[str, list[asl.State]] = {}
    for each in machines:
        for name, state in asl.states(each).items():
            found.setdefault(name, []).append(state)
    return {name: states for name, states in found.items() if len(states) > 1}


def differences(machines: Iterable[asl.Machine]) -> dict[str, set[str]]:
    found = {}
    for name, states in copies(machines).items():
        fields = {field for state in states for field in state}
        differing = {field for field in fields if any(s.get(field) != states[0].get(field) for s in states)}
        if differing:
            found[name] = differing
    return found


def test_every_operation_has_the_shared_states() -> None:
    shared = {"Begin", "AwaitTurn", "StartStack", "AwaitStack", "InspectStack", "Finish", "RecordFailure", "Failed"}
    assert all(shared <= set(asl.states(machine(stem))) for stem in OPERATIONS)


def test_copies_of_a_state_differ_only_where_intended() -> None:
    assert differences(map(machine, MACHINES)) == DIFFERENCES


def test_a_copy_that_has_changed_is_detected() -> None:
    one: asl.Machine = {"States": {"Look": {"Type": "Task", "TimeoutSeconds": 60}, "Pause": {"Type": "Wait"}}}
    other: asl.Machine = {"States": {"Look": {"Type": "Task", "TimeoutSeconds": 61}, "Pause": {"Type": "Wait"}}}
    assert differences([one, other]) == {"Look": {"TimeoutSeconds"}}


def test_tasks_of_one_kind_retry_alike() -> None:
    retries: dict[str, list[object]] = {}
    for part in PARTS:
        for name, state in asl.functions(machine(part)):
            kind = "token" if asl.waits_for_token(state) else "last" if name in LAST else "step"
            retries.setdefault(kind, []).append(state["Retry"])
    assert set(retries) == {"token", "last", "step"}
    assert all(each == alike[0] for alike in retries.values() for each in alike)


def test_the_last_steps_of_an_operation_retry_throttling_for_a_long_time() -> None:
    """No Choice that could wait follows them, and giving up would record a successful operation as failed."""
    for part in PARTS:
        for name, state in asl.functions(machine(part)):
            if name in LAST:
                (patience,) = (retry for retry in state["Retry"] if "Throttled" in retry["ErrorEquals"])
                assert patience["MaxAttempts"] == 100, f"{part} {name}"
