"""The simulated rollout is worth believing: the same every time, and within the bounds that AWS sets."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench.rollout_simulation import MAX_CONCURRENCY, MOST_EVENTS, MOST_STATE_BYTES, SimulatedRollout, floor, simulate
from bench.simulated_aws import FAULTY, QUIET, Conditions, Quota
from bench.simulated_update import MUTATIONS, READS

SMALL = 100
PLENTY = replace(QUIET, mutations_a_second=1_000, mutations_burst=1_000, reads_a_second=1_000, reads_burst=1_000)
DROPPED = replace(FAULTY, drops_to_after=(1 / 3, 60.0))


def test_a_seed_says_it_all() -> None:
    assert simulate(SMALL, FAULTY, 7) == simulate(SMALL, FAULTY, 7)
    assert simulate(SMALL, FAULTY, 7) != simulate(SMALL, FAULTY, 8)


@pytest.mark.parametrize("conditions", [QUIET, FAULTY, DROPPED], ids=["quiet", "faulty", "dropped"])
def test_every_tenant_has_its_turn_and_none_fails_because_of_throttling(conditions: Conditions) -> None:
    ran = simulate(SMALL, conditions, 1)

    failing = round(SMALL * conditions.failing)
    assert (ran.succeeded, ran.failed, ran.failed_by_throttling) == (SMALL - failing, failing, 0)
    assert ran.status == ("FAILED" if failing else "SUCCEEDED")


@pytest.mark.parametrize("conditions", [QUIET, FAULTY, DROPPED], ids=["quiet", "faulty", "dropped"])
def test_it_keeps_within_what_aws_allows(conditions: Conditions) -> None:
    ran = simulate(SMALL, conditions, 1)

    assert ran.seconds > ran.floor
    assert ran.peak_in_flight <= MAX_CONCURRENCY
    assert max(ran.events, ran.child_events) <= MOST_EVENTS
    assert ran.state_bytes <= MOST_STATE_BYTES
    assert all(1 <= limit <= MAX_CONCURRENCY for _, limit in ran.limits)


def test_the_floor_counts_the_calls_that_an_update_makes_when_nothing_goes_wrong() -> None:
    rollout = SimulatedRollout(SMALL, PLENTY, 1)
    ran = rollout.run()

    assert ran.throttled_calls == 0
    assert rollout.aws.mutations.granted == SMALL * MUTATIONS
    assert rollout.aws.reads.granted == SMALL * READS


def test_the_floor_is_that_of_the_tightest_quota() -> None:
    assert floor(300, QUIET) == pytest.approx(300 * MUTATIONS / 1.5)
    assert floor(300, replace(QUIET, reads_a_second=1)) == pytest.approx(300 * READS)
    assert floor(300, replace(QUIET, drops_to_after=(0.5, 100.0))) == pytest.approx(100 + (600 - 150) / 0.75)


def test_a_quota_grants_its_burst_at_once_and_the_rest_as_it_fills() -> None:
    quota = Quota(rate=2, burst=3)

    assert [quota.take(0.0) for _ in range(4)] == [True, True, True, False]
    assert [quota.take(0.5), quota.take(0.5)] == [True, False]
    quota.change(1, 0.5)
    assert [quota.take(1.0), quota.take(1.5)] == [False, True]
