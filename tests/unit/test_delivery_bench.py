"""The benchmarks of deliveries measure correctly: what was lost, fair queues, and the simulated fairness."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import event_fairness
from bench.delivery_checks import Published, check, event_type_of, kinds_of, tenant_of
from bench.delivery_receivers import Arrival, Kind
from bench.event_fairness import Setting, Simulation
from bench.fair_queue import NOISY_IN_FLIGHT, QUIET_AFTER_SECONDS, RECENT_SECONDS, FairQueue

# Sent and lost events


def test_a_tenth_of_the_receivers_is_dead_and_a_tenth_slow() -> None:
    kinds = kinds_of(100)
    counted = {kind: kinds.count(kind) for kind in Kind}
    assert counted == {Kind.QUICK: 80, Kind.SLOW: 10, Kind.REFUSING: 5, Kind.HANGING: 5}


def test_an_event_of_a_tenant_and_a_type_has_one_receiver() -> None:
    assert len({(tenant_of(each), event_type_of(each)) for each in range(100)}) == 100
    assert {tenant_of(each) for each in range(100)} == set(range(50))


KINDS = [Kind.QUICK, Kind.SLOW, Kind.HANGING]
PUBLISHED = [Published(f"event-{receiver}", receiver, at=10.0) for receiver in range(3)]
ARRIVED = {"event-0": [Arrival(0, 10.25)], "event-1": [Arrival(1, 11.0)]}


def test_a_delivery_without_a_fault_has_no_problems() -> None:
    checked = check(PUBLISHED, ARRIVED, KINDS)
    assert (checked.lost, checked.misdirected, checked.repeated) == ([], [], 0)
    assert checked.milliseconds == {Kind.QUICK: [250.0], Kind.SLOW: [1000.0]}


def test_an_event_that_did_not_arrive_is_lost_unless_its_receiver_is_dead() -> None:
    assert check(PUBLISHED, {}, KINDS).lost == [
        "event-0: did not arrive at receiver 0 (quick)",
        "event-1: did not arrive at receiver 1 (slow)",
    ]


def test_an_event_at_another_receiver_and_one_that_nobody_sent_are_found() -> None:
    wrong = {**ARRIVED, "event-0": [Arrival(0, 10.25), Arrival(1, 10.5)], "event-9": [Arrival(0, 10.0)]}
    assert check(PUBLISHED, wrong, KINDS).misdirected == [
        "event-0: for receiver 0, arrived at 1",
        "event-9: arrived, but was not handed in",
    ]


def test_repetitions_are_counted_and_the_first_arrival_is_the_one_that_is_timed() -> None:
    checked = check(PUBLISHED, {**ARRIVED, "event-0": [Arrival(0, 10.5), Arrival(0, 10.25)]}, KINDS)
    assert (checked.repeated, checked.milliseconds[Kind.QUICK]) == (1, [250.0])


# Fair queues


def sent(*groups: str | None, is_fair: bool = True) -> FairQueue:
    """A queue with a message of each group, whose body is its number."""
    queue = FairQueue(is_fair)
    for number, group in enumerate(groups):
        queue.send(group, number, 0.0)
    return queue


def received(queue: FairQueue, limit: int = 10, now: float = 0.0) -> list[int]:
    return [taken.body for taken in queue.receive(limit, now)]


def test_while_nobody_is_noisy_the_oldest_message_comes_first() -> None:
    queue = sent("a", "b", None, "a", "c")
    assert received(queue, 3) == [0, 1, 2]
    assert received(queue) == [3, 4]
    assert len(queue) == 0


def test_a_group_with_many_messages_in_flight_waits_while_others_have_some() -> None:
    queue = sent(*["noisy"] * (NOISY_IN_FLIGHT + 5), "quiet", None)
    assert len(queue.receive(NOISY_IN_FLIGHT, 0.0)) == NOISY_IN_FLIGHT
    first = NOISY_IN_FLIGHT + 5
    assert received(queue, 3) == [first, first + 1, NOISY_IN_FLIGHT]
    assert queue.noisy == {"noisy"}


def test_a_group_with_many_messages_in_flight_is_not_noisy_if_others_have_as_many() -> None:
    groups = [f"group-{number % 20}" for number in range(20 * NOISY_IN_FLIGHT)]
    queue = sent(*groups, *groups)
    queue.receive(len(groups), 0.0)
    received(queue, 1)
    assert queue.noisy == set()


def test_a_group_that_takes_much_of_the_processing_time_waits_until_that_is_not_recent() -> None:
    queue = sent("slow", "quick")
    slow, quick = queue.receive(2, 0.0)
    queue.delete(quick, 0.1)
    queue.delete(slow, 20.0)
    queue.send("slow", 2, 20.0)
    queue.send("third", 3, 20.0)
    assert received(queue, now=20.0) == [3, 2]
    later = 20.0 + RECENT_SECONDS + 1
    queue.send("slow", 4, later)
    queue.send("third", 5, later)
    assert received(queue, now=later) == [4, 5]


def test_the_noisy_group_with_the_fewest_messages_in_flight_comes_first() -> None:
    queue = sent(*["a"] * (NOISY_IN_FLIGHT + 9), *["b"] * (NOISY_IN_FLIGHT + 1))
    queue.noisy |= {"a", "b"}
    taken = queue.receive(2 * NOISY_IN_FLIGHT, 0.0)
    assert [each.group for each in taken].count("a") == [each.group for each in taken].count("b") == NOISY_IN_FLIGHT


def test_a_group_is_quiet_again_when_none_of_its_messages_waits() -> None:
    queue = sent("a")
    queue.noisy.add("a")
    assert received(queue) == [0]
    assert queue.noisy == set()


def test_a_group_is_quiet_again_when_nothing_was_sent_for_five_minutes() -> None:
    queue = sent("a", "a", "b")
    queue.noisy.add("a")
    assert received(queue, 1) == [2]
    assert received(queue, 1, QUIET_AFTER_SECONDS + 1) == [0]
    assert queue.noisy == set()


def test_a_queue_without_groups_has_no_noisy_ones() -> None:
    queue = sent(*["noisy"] * (NOISY_IN_FLIGHT + 2), "quiet", is_fair=False)
    received(queue, NOISY_IN_FLIGHT)
    assert received(queue) == [NOISY_IN_FLIGHT, NOISY_IN_FLIGHT + 1, NOISY_IN_FLIGHT + 2]


# Simulated fairness

BUSY = Setting(event_fairness.BUSY_PER_SECOND, seconds=10.0)
CALM = Setting(event_fairness.CALM_PER_SECOND, seconds=60.0)


def test_a_seed_says_it_all() -> None:
    small = replace(BUSY, seconds=1.0)
    assert Simulation(small).run() == Simulation(small).run()
    assert Simulation(small).run() != Simulation(replace(small, seed=2)).run()


@pytest.mark.parametrize("is_fair", [True, False])
def test_every_event_arrives_and_at_most_as_many_as_there_are(is_fair: bool) -> None:
    alone = Simulation(replace(BUSY, seconds=2.0, is_fair=is_fair)).run()
    both = Simulation(replace(BUSY, seconds=2.0, is_fair=is_fair, noisy_per_second=BUSY.quiet_per_second)).run()
    assert len(alone.quiet) == pytest.approx(2 * BUSY.quiet_per_second, rel=0.1)
    assert len(both.quiet) == pytest.approx(len(both.noisy), rel=0.1)
    assert alone.failed_tries == both.failed_tries == 0


def test_a_noisy_tenant_pays_for_itself_with_fair_queues_and_the_others_pay_without() -> None:
    alone = Simulation(BUSY).run().milliseconds(95)
    noisy = replace(BUSY, noisy_per_second=BUSY.quiet_per_second)
    fair, plain = Simulation(noisy).run(), Simulation(replace(noisy, is_fair=False)).run()
    assert fair.milliseconds(95) <= 1.5 * alone < plain.milliseconds(95)
    assert fair.milliseconds(95, noisy=True) > fair.milliseconds(95)


def test_dead_connections_do_not_delay_the_others() -> None:
    none, dead = Simulation(CALM).run(), Simulation(replace(CALM, dead=10)).run()
    assert dead.failed_tries > 0
    assert len(dead.quiet) < len(none.quiet)
    assert dead.milliseconds(95) <= 1.5 * none.milliseconds(95)


def test_dead_connections_would_delay_the_others_if_they_left_the_quick_queue_only_at_the_end_of_a_try() -> None:
    none, dead = Simulation(CALM).run(), Simulation(replace(CALM, dead=10, moves_on=False)).run()
    assert dead.milliseconds(95, since=50) <= 1.5 * none.milliseconds(95, since=50)
    assert dead.milliseconds(95) > 1.5 * none.milliseconds(95)
