"""The simulated storm of creates: none fails because of throttling, and a wait costs few states."""

from __future__ import annotations

import pytest

from bench.create_storm import MAX_STATES, simulate
from bench.simulated_aws import FAULTY, QUIET, Conditions

CREATES = 300


@pytest.mark.parametrize("conditions", [QUIET, FAULTY], ids=["quiet", "with faults"])
def test_all_creates_succeed_with_few_states_though_all_are_requested_at_once(conditions: Conditions) -> None:
    ran = simulate(CREATES, conditions, 1, gated=True)
    assert (ran.succeeded, ran.failed_by_throttling) == (CREATES, 0)
    assert ran.mean_states <= MAX_STATES
    assert len(ran.told) > CREATES / 2, "Most creates wait."
