"""The benchmarks of deliveries find what was lost, and the simulated deliveries are fair."""

from __future__ import annotations

from dataclasses import replace

from bench import event_fairness
from bench.delivery_checks import Published, check
from bench.delivery_receivers import Arrival, Kind
from bench.event_fairness import Setting, Simulation

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


# Simulated fairness

BUSY = Setting(event_fairness.BUSY_PER_SECOND, seconds=10.0)
CALM = Setting(event_fairness.CALM_PER_SECOND, seconds=60.0)


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
