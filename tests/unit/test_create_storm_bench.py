"""The simulated storm of creates: none fails because of throttling, and a wait costs few states."""

from __future__ import annotations

import pytest

from bench.create_storm import MAX_STATES, simulate
from bench.rollout_simulation import floor
from bench.simulated_aws import FAULTY, QUIET, Conditions

CREATES = 300


@pytest.mark.parametrize("conditions", [QUIET, FAULTY], ids=["quiet", "with faults"])
def test_all_creates_succeed_with_few_states_though_all_are_requested_at_once(conditions: Conditions) -> None:
    ran = simulate(CREATES, conditions, 1, gated=True)
    assert (ran.succeeded, ran.failed_by_throttling) == (CREATES, 0)
    assert ran.mean_states <= MAX_STATES
    assert len(ran.told) > CREATES / 2, "Most creates wait."


def test_a_storm_is_the_same_for_the_same_seed_and_not_faster_than_cloudformation() -> None:
    one, same = (simulate(CREATES, FAULTY, 7, gated=True) for _ in range(2))
    assert one == same
    assert one.seconds > floor(CREATES, FAULTY)


def test_without_the_gate_a_create_enters_many_more_states_and_is_throttled_more_often() -> None:
    with_gate, without = (simulate(CREATES, QUIET, 1, gated=gated) for gated in (True, False))
    assert without.mean_states > 3 * with_gate.mean_states
    assert without.given_up_calls > 10 * with_gate.given_up_calls
    assert without.told == []
