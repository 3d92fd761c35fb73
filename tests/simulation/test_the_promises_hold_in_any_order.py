"""The six promises, whatever is done in whatever order: Hypothesis chooses, and shrinks what it finds to the shortest.

The same harbour as in the seeded voyages. Here the weather is not left to chance: each fault is a step.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from orchestrator.common.tenant_ids import TenantId
from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.records import SETTLING, Spec
from tests.fakes import FakeExecutions
from tests.simulation import voyage
from tests.simulation.agenda import Kind
from tests.simulation.harbour import VERSIONS, Harbour
from tests.simulation.the_end import come_to_rest, repair
from tests.simulation.weather import CALM, SERVICES

TENANTS = voyage.TENANTS[::2]
BEGINNINGS = (voyage.nothing_there, voyage.served, voyage.deleted_before, voyage.legacy)
ORDERS = (
    *(voyage.ask, voyage.create, voyage.upgrade, voyage.delete, voyage.retry, voyage.admitted_long_ago),
    *(voyage.create_with_labels, voyage.pin, voyage.drain, voyage.create_and_delete),
    *(voyage.team_creates, voyage.team_updates, voyage.team_deletes, voyage.team_deploys_again, voyage.forge),
)

tenants = st.sampled_from(TENANTS)
versions = st.sampled_from(VERSIONS)
some = st.integers(min_value=0, max_value=5)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.harbour = Harbour(TENANTS, random.Random(0))
        self.broken = False

    @initialize(first=st.sampled_from(BEGINNINGS), second=st.sampled_from(BEGINNINGS))
    def begin(self, first: voyage.Beginning, second: voyage.Beginning) -> None:
        for tenant, beginning in zip(TENANTS, (first, second), strict=True):
            beginning(self.harbour, tenant)

    def do(self, action: Callable[[], None]) -> None:
        self._watched(lambda: self.harbour.do(action))

    def _watched(self, action: Callable[[], None]) -> None:
        """What is broken once does not have to hold in the end."""
        try:
            action()
        except AssertionError:
            self.broken = True
            raise

    # What people do

    @rule(order=st.sampled_from(ORDERS), tenant=tenants, version=versions)
    def somebody_asks(self, order: voyage.Happening, tenant: TenantId, version: str) -> None:
        self.do(lambda: order(self.harbour, tenant, version))

    @rule(tenant=tenants, version=versions)
    def all_at_once(self, tenant: TenantId, version: str) -> None:
        self.do(lambda: voyage.all_at_once(self.harbour, tenant, version))

    @rule(happening=st.sampled_from((voyage.send, voyage.receive)), tenant=tenants, lag=st.sampled_from((0.0, 1.0)))
    def messages_come_or_are_received(self, happening: voyage.Happening, tenant: TenantId, lag: float) -> None:
        self._weather(lag=lag)
        self.do(lambda: happening(self.harbour, tenant, ""))

    @rule(tenant=tenants)
    def somebody_deletes_the_stack_by_hand(self, tenant: TenantId) -> None:
        self.do(lambda: voyage.delete_the_stack_by_hand(self.harbour, tenant, ""))

    # What goes on by itself

    @rule(steps=st.integers(min_value=1, max_value=12))
    def something_happens(self, steps: int) -> None:
        for _ in range(steps):
            self._watched(self.harbour.happen)

    @rule(minutes=st.sampled_from((1, 2, 6)))
    def time_passes(self, minutes: int) -> None:
        until = self.harbour.clock.now() + timedelta(minutes=minutes)
        self._watched(lambda: self.harbour.pass_time(until))

    @precondition(lambda self: self.harbour.agenda.expected(Kind.STEP))
    @rule(which=some)
    def an_execution_is_ahead_of_others(self, which: int) -> None:
        self._out_of_turn(Kind.STEP, which)

    @rule(spec=st.sampled_from((SCHEDULES[SETTLING], Spec(), Spec(dry_run=True))))
    def reconcile(self, spec: Spec) -> None:
        self.do(lambda: self.harbour.reconcile(spec))

    # What goes wrong

    @precondition(lambda self: any(run.running for run in self.harbour.runs.values()))
    @rule(which=some, how=st.sampled_from(("was aborted", "timed out")))
    def an_execution_is_cut_short(self, which: int, how: str) -> None:
        running = [run for run in self.harbour.runs.values() if run.running]
        self.do(lambda: self.harbour.cut_short(running[which % len(running)], how))

    @precondition(lambda self: self.harbour.agenda.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_overtakes_others(self, which: int) -> None:
        self._out_of_turn(Kind.EVENT, which)

    @precondition(lambda self: self.harbour.agenda.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_comes_twice(self, which: int) -> None:
        events = self.harbour.agenda.expected(Kind.EVENT)
        self.do(events[which % len(events)].action)

    @precondition(lambda self: self.harbour.agenda.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_is_lost(self, which: int) -> None:
        events = self.harbour.agenda.expected(Kind.EVENT)
        self.harbour.agenda.drop(events[which % len(events)])

    def _out_of_turn(self, kind: Kind, which: int) -> None:
        expected = self.harbour.agenda.expected(kind)
        entry = expected[which % len(expected)]
        self.harbour.agenda.drop(entry)
        self.do(entry.action)

    @rule(services=st.sets(st.sampled_from(SERVICES)))
    def throttled(self, services: set[str]) -> None:
        self._weather(throttled=frozenset(services))

    @rule(crash=st.sampled_from((0.0, 0.1)), slow=st.sampled_from((0.0, 1.0)))
    def functions_die_or_take_their_time(self, crash: float, slow: float) -> None:
        self._weather(crash=crash, slow=slow, hold=0.4)

    @rule(fails=st.sampled_from((0.0, 1.0)), hangs=st.sampled_from((0.0, 1.0)), undone=st.booleans())
    def stacks_fail_or_hang(self, fails: float, hangs: float, undone: bool) -> None:
        self._weather(stack_fails=fails, stack_hangs=hangs, undoing_fails=0.0 if undone else 1.0)

    @rule(lost=st.booleans(), again=st.booleans(), stale=st.booleans())
    def nothing_is_heard_of(self, lost: bool, again: bool, stale: bool) -> None:
        self._weather(lost_ends=float(lost), lost_settlements=float(lost), duplicates=float(again), stale=float(stale))

    @rule(skew=st.sampled_from((0.0, 2.0)), old_code=st.booleans())
    def what_runs_is_of_another_time(self, skew: float, old_code: bool) -> None:
        self._weather(skew=skew, old_code=float(old_code))

    def _weather(self, **faults: object) -> None:
        self.harbour.weather = replace(self.harbour.weather, **faults)  # type: ignore[arg-type]

    # What holds

    @invariant()
    def every_promise_is_kept(self) -> None:
        self.harbour.guard.check()

    def teardown(self) -> None:
        try:
            if not self.broken:
                come_to_rest(self.harbour)
                repair(self.harbour)
        finally:
            self.harbour.leave()


SOME_STEPS = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck), print_blob=False)


def test_the_promises_hold_whatever_is_done_in_whatever_order() -> None:
    run_state_machine_as_test(AnyOrder, settings=settings(SOME_STEPS, max_examples=100))


def test_a_bug_is_found_in_some_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeExecutions, "is_over", lambda _self, _execution: True)
    with pytest.raises(AssertionError, match="which is at work"):
        run_state_machine_as_test(AnyOrder, settings=settings(SOME_STEPS, max_examples=200, phases=[Phase.generate]))


def test_it_begins_in_calm_weather() -> None:
    assert AnyOrder().harbour.weather == CALM
