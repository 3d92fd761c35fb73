"""The next state of each outcome in each machine, and the number of transitions of the shortest path."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from lambdas.runtime import outcome_json
from orchestrator.events.purging import LookAgain, MoreToPurge, NotToPurge, Purged
from orchestrator.rollouts.advancing import AwaitOperator, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.create_turns import AWAIT_ADMISSION
from orchestrator.rollouts.gate import AdmissionStopped, Admitted, NoRoom, Replaced, Settled, ToReview, TryAgain
from orchestrator.tenants.outcomes import (
    Again,
    Begun,
    Busy,
    Done,
    Draining,
    GaveUp,
    Gone,
    NotReady,
    Queued,
    Reviewing,
    Working,
)
from orchestrator.tenants.tenant_queue import (
    NotConfirmed,
    NotProvided,
    NotProvidedBefore,
    Provided,
    ProvidedBefore,
    Waiting,
)
from tests.fakes import NOON, QUEUE, VERSION, stack_arn
from tests.machines import asl
from tests.machines.files import OPERATIONS, PARTS, ROLLOUT, TURN, machine
from tests.machines.test_machines import USE_CASES, function_of, outcomes_of

THROTTLED = {"outcome": "again", "reason": "Rate exceeded", "throttled": True}
DONE = Done(stack_arn(), QUEUE, VERSION)
BROKE = GaveUp("It broke.", stack_arn())

MAX_TRANSITIONS = 5
"""The transitions of an operation without waits or retries. Step Functions charges per transition."""
MAX_TRANSITIONS_A_TURN = 7
MAX_TRANSITIONS_WITHOUT_CHANGES = 3


def begun(then: str) -> list[tuple[dict[str, Any], str]]:
    return [
        (outcome_json(Begun()), then),
        (outcome_json(Busy("another execution")), "AwaitTurn"),
        (outcome_json(Again("Step Functions does not show this execution")), "AwaitTurn"),
        (outcome_json(GaveUp("Another operation owned the tenant.")), "RecordFailure"),
        (THROTTLED, "AwaitTurn"),
    ]


SERVED = [
    (outcome_json(DONE), "Finish"),
    (outcome_json(Working()), "AwaitStack"),
    (outcome_json(NotReady()), "AwaitQueue"),
    (outcome_json(Again("the stack was deleted")), "PauseBeforeStart"),
    (THROTTLED, "PauseBeforeStart"),
    (outcome_json(BROKE), "RecordFailure"),
]

LEADS: Mapping[tuple[str, str], list[tuple[dict[str, Any], str]]] = {
    ("create_tenant", "HasBegun"): [*begun("StartStack"), (outcome_json(Queued()), "AwaitAdmission")],
    ("create_tenant", "HasSettled"): SERVED,
    ("update_tenant", "HasBegun"): [*begun("StartStack"), (outcome_json(DONE), "Finish")],
    ("update_tenant", "HasSettled"): [
        *SERVED,
        (outcome_json(Reviewing()), "AwaitReview"),
        (outcome_json(Draining("none were counted", NOON, 60)), "AwaitDrain"),
    ],
    ("delete_tenant", "HasBegun"): begun("StartStack"),
    ("delete_tenant", "HasSettled"): [
        (outcome_json(Gone()), "Finish"),
        (outcome_json(Working()), "AwaitStack"),
        (outcome_json(Draining("inbound queue: 2 visible", None, 5)), "AwaitDrain"),
        (outcome_json(Again("the stack is DELETE_FAILED")), "PauseBeforeStart"),
        (THROTTLED, "PauseBeforeStart"),
        (outcome_json(BROKE), "RecordFailure"),
    ],
    ("tenant_queue", "IsSettled"): [
        (outcome_json(Provided(QUEUE)), "Provided"),
        (outcome_json(Provided(None)), "Provided"),
        (outcome_json(NotProvided("The tenant could not be created.")), "NotProvided"),
        (outcome_json(Waiting()), "AwaitTenant"),
        (outcome_json(Waiting(confirmed=False)), "AwaitTenant"),
        (outcome_json(NotConfirmed("It was made up.")), "NotConfirmed"),
        (outcome_json(ProvidedBefore()), "Provided"),
        (outcome_json(NotProvidedBefore()), "NotProvided"),
    ],
    (ROLLOUT, "WhatNext"): [
        (outcome_json(RunStage(1, "rollouts/1/stage-1.json", 8)), "RunStage"),
        (outcome_json(Bake(60)), "Bake"),
        (outcome_json(AwaitOperator()), "AwaitOperator"),
        (outcome_json(Succeeded()), "Succeeded"),
        (outcome_json(NotSucceeded("HALTED", "Too many failed.")), "NotSucceeded"),
    ],
    (TURN, "IsAdmitted"): [
        (outcome_json(Admitted("update-0.2.0-1", {})), "Upgrade"),
        (outcome_json(ToReview()), "Review"),
        (outcome_json(NoRoom(3)), "AwaitTurn"),
        (THROTTLED, "AwaitTurn"),
        (outcome_json(AdmissionStopped()), "Done"),
        (outcome_json(Settled("SKIPPED")), "Done"),
        (outcome_json(Replaced()), "Done"),
    ],
    (TURN, "IsRecorded"): [
        (outcome_json(Settled("SUCCEEDED")), "Done"),
        (outcome_json(Replaced()), "Done"),
        (outcome_json(TryAgain()), "AwaitTurn"),
        (THROTTLED, "AwaitTurn"),
    ],
    (TURN, "IsReviewed"): [
        (outcome_json(Settled("UNCHANGED")), "Done"),
        (outcome_json(TryAgain()), "AwaitReview"),
        (THROTTLED, "AwaitReview"),
    ],
    ("purge_events", "IsPurged"): [
        (outcome_json(MoreToPurge(2000)), "PauseBeforePurge"),
        (outcome_json(LookAgain(900)), "AwaitLateWrites"),
        (outcome_json(Purged()), "Purged"),
        (outcome_json(NotToPurge("Nobody has ended its epoch.")), "RecordPurgeFailure"),
        (THROTTLED, "PauseBeforePurge"),
    ],
}
"""The outcomes that each Choice of each machine reads, and the next state of each."""

NEVER_SAID = {
    ("create_tenant", "HasBegun"): {"done"},
    ("update_tenant", "HasBegun"): {"queued"},
    ("delete_tenant", "HasBegun"): {"done", "queued"},
    (ROLLOUT, "WhatNext"): {"again"},
    ("create_tenant", "HasSettled"): {"gone", "reviewing", "draining", "waiting"},
    ("update_tenant", "HasSettled"): {"gone", "waiting"},
    ("delete_tenant", "HasSettled"): {"done", "notReady", "reviewing", "waiting"},
    ("tenant_queue", "IsSettled"): {"again"},
}
"""Outcomes of the use case that do not occur in this machine."""


@pytest.mark.parametrize(
    ("stem", "choice", "outcome", "leads_to"),
    [
        pytest.param(stem, choice, outcome, leads_to, id=f"{stem}-{choice}-{outcome['outcome']}-{leads_to}")
        for (stem, choice), rules in LEADS.items()
        for outcome, leads_to in rules
    ],
)
def test_an_outcome_leads_to(stem: str, choice: str, outcome: dict[str, Any], leads_to: str) -> None:
    assert asl.chosen(asl.states(machine(stem))[choice], outcome) == leads_to


def test_the_table_covers_every_choice_and_every_outcome() -> None:
    reached: dict[tuple[str, str], set[str]] = {}
    for part in PARTS:
        for _, state in asl.functions(machine(part)):
            choice = state.get("Next", "")
            if asl.states(machine(part)).get(choice, {}).get("Type") == "Choice":
                reached.setdefault((part, choice), set()).update(outcomes_of(USE_CASES[function_of(part, state)]))
    covered = {where: {each["outcome"] for each, _ in rules} for where, rules in LEADS.items()}
    assert {where: outcomes - NEVER_SAID.get(where, set()) for where, outcomes in reached.items()} == covered


@pytest.mark.parametrize(
    ("stem", "state", "leads_to"),
    [
        *((stem, "AwaitTurn", "Begin") for stem in OPERATIONS),
        *((stem, "StartStack", "HasSettled") for stem in OPERATIONS),
        *((stem, "AwaitStack", "InspectStack") for stem in OPERATIONS),
        *((stem, "RecordFailure", "Failed") for stem in OPERATIONS),
        ("create_tenant", "AwaitAdmission", "Begin"),
        ("create_tenant", "AwaitQueue", "InspectStack"),
        ("create_tenant", "PauseBeforeStart", "StartStack"),
        ("update_tenant", "AwaitReview", "StartStack"),
        ("update_tenant", "AwaitQueue", "InspectStack"),
        ("update_tenant", "PauseBeforeStart", "StartStack"),
        ("update_tenant", "AwaitDrain", "StartStack"),
        ("delete_tenant", "AwaitDrain", "StartStack"),
        ("delete_tenant", "PauseBeforeStart", "StartStack"),
        ("tenant_queue", "AwaitTenant", "Settle"),
        ("tenant_queue", "TellFailure", "NotProvided"),
        *((ROLLOUT, state, "Advance") for state in ("RunStage", "Bake", "AwaitOperator")),
        (ROLLOUT, "GiveUp", "NotSucceeded"),
        (TURN, "AwaitTurn", "Admit"),
        (TURN, "Upgrade", "RecordOutcome"),
        (TURN, "AwaitReview", "Review"),
        (TURN, "TellFailure", "Done"),
    ],
)
def test_a_state_leads_to(stem: str, state: str, leads_to: str) -> None:
    assert asl.states(machine(stem))[state]["Next"] == leads_to


@pytest.mark.parametrize("state", ["StartStack", "AwaitStack"])
@pytest.mark.parametrize("stem", OPERATIONS)
def test_a_lost_event_delays_the_operation_only_until_the_timeout(stem: str, state: str) -> None:
    awaiting = asl.states(machine(stem))[state]
    assert awaiting["Catch"][0] == {"ErrorEquals": ["States.Timeout"], "Next": "InspectStack"}


def test_a_create_that_is_not_woken_asks_for_its_turn_again_after_the_timeout() -> None:
    waiting = asl.states(machine("create_tenant"))["AwaitAdmission"]
    assert waiting["Catch"][0] == {"ErrorEquals": ["States.Timeout"], "Next": "Begin"}
    assert waiting["TimeoutSeconds"] == AWAIT_ADMISSION.total_seconds()


def test_a_lost_wake_up_delays_the_rollout_only_until_the_timeout() -> None:
    awaiting = asl.states(machine(ROLLOUT))["AwaitOperator"]
    assert awaiting["Catch"][0] == {"ErrorEquals": ["States.Timeout"], "Next": "Advance"}


def straight_path(stem: str, **otherwise: dict[str, Any]) -> list[str]:
    """The states of an execution without waits or retries. ``otherwise`` overrides the results of functions."""
    results = {
        "begin": outcome_json(Begun()),
        "start_stack": outcome_json(Gone() if stem == "delete_tenant" else DONE),
        "admit_tenant": outcome_json(Admitted("update-0.2.0-1", {})),
        "record_outcome": outcome_json(Settled("SUCCEEDED")),
        **otherwise,
    }
    path: list[str] = []
    name, outcome = machine(stem)["StartAt"], None
    while True:
        path.append(name)
        state = asl.states(machine(stem))[name]
        if asl.ends_green(state):
            return path
        if state["Type"] == "Choice":
            name = asl.chosen(state, outcome)
            continue
        if state["Type"] == "Task" and state["Resource"] != asl.RUNS_A_MACHINE:
            outcome = results.get(function_of(stem, state))
        name = state["Next"]
        assert name not in path, f"{stem} comes back to {name}"


def test_a_create_that_waits_for_its_turn_enters_three_states_more_however_long_it_waits() -> None:
    states = asl.states(machine("create_tenant"))
    assert asl.chosen(states["HasBegun"], outcome_json(Queued())) == "AwaitAdmission"
    assert states["AwaitAdmission"]["Next"] == machine("create_tenant")["StartAt"]  # Then HasBegun is entered again.


@pytest.mark.parametrize("stem", OPERATIONS)
def test_the_shortest_path_takes_few_transitions(stem: str) -> None:
    assert len(straight_path(stem)) <= MAX_TRANSITIONS


@pytest.mark.parametrize("stem", OPERATIONS)
def test_the_shortest_path_visits_the_expected_states(stem: str) -> None:
    assert straight_path(stem) == ["Begin", "HasBegun", "StartStack", "HasSettled", "Finish"]


def test_an_update_that_changes_nothing_takes_even_fewer_transitions() -> None:
    path = straight_path("update_tenant", begin=outcome_json(DONE))
    assert path == ["Begin", "HasBegun", "Finish"]
    assert len(path) <= MAX_TRANSITIONS_WITHOUT_CHANGES


def test_a_turn_takes_few_transitions_besides_the_update() -> None:
    path = straight_path(TURN)
    assert path == ["Enter", "Admit", "IsAdmitted", "Upgrade", "RecordOutcome", "IsRecorded", "Done"]
    assert len(path) <= MAX_TRANSITIONS_A_TURN
