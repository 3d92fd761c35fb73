"""The six promises hold in any order of requests, steps and faults: Hypothesis chooses, and shrinks what it finds.

The environment is that of the seeded runs, but the faults are not random: each is a step.
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
from tests.simulation import actions, initial_states
from tests.simulation.checks.final_state import check_operations_end, check_repair
from tests.simulation.environment import VERSIONS, Environment
from tests.simulation.faults import NO_FAULTS, SERVICES
from tests.simulation.timeline import Kind

TENANTS = tuple(map(TenantId.parse, ("acme", "ACME")))
INITIAL_STATES = (
    initial_states.nothing_there,
    initial_states.served,
    initial_states.deleted_before,
    initial_states.legacy,
)
ORDERS = (
    *(actions.ask, actions.create, actions.upgrade, actions.delete, actions.retry, actions.admitted_long_ago),
    *(actions.create_with_labels, actions.pin, actions.drain, actions.create_and_delete),
    *(actions.team_creates, actions.team_updates, actions.team_deletes, actions.team_deploys_again, actions.forge),
)

tenants = st.sampled_from(TENANTS)
versions = st.sampled_from(VERSIONS)
some = st.integers(min_value=0, max_value=5)


class AnyOrder(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.env = Environment(TENANTS, random.Random(0))
        self.broken = False

    @initialize(first=st.sampled_from(INITIAL_STATES), second=st.sampled_from(INITIAL_STATES))
    def begin(self, first: initial_states.InitialState, second: initial_states.InitialState) -> None:
        for tenant, initial_state in zip(TENANTS, (first, second), strict=True):
            initial_state(self.env, tenant)

    def do(self, action: Callable[[], None]) -> None:
        self._watched(lambda: self.env.do(action))

    def _watched(self, action: Callable[[], None]) -> None:
        """After a broken promise the final state is not checked."""
        try:
            action()
        except AssertionError:
            self.broken = True
            raise

    # Requests

    @rule(order=st.sampled_from(ORDERS), tenant=tenants, version=versions)
    def somebody_asks(self, order: actions.Action, tenant: TenantId, version: str) -> None:
        self.do(lambda: order(self.env, tenant, version))

    @rule(tenant=tenants, version=versions)
    def all_at_once(self, tenant: TenantId, version: str) -> None:
        self.do(lambda: actions.all_at_once(self.env, tenant, version))

    @rule(action=st.sampled_from((actions.send, actions.receive)), tenant=tenants, lag=st.sampled_from((0.0, 1.0)))
    def messages_come_or_are_received(self, action: actions.Action, tenant: TenantId, lag: float) -> None:
        self._set_faults(lag=lag)
        self.do(lambda: action(self.env, tenant, ""))

    @rule(tenant=tenants)
    def somebody_deletes_the_stack_by_hand(self, tenant: TenantId) -> None:
        self.do(lambda: actions.delete_the_stack_by_hand(self.env, tenant, ""))

    # Time

    @rule(steps=st.integers(min_value=1, max_value=12))
    def something_happens(self, steps: int) -> None:
        for _ in range(steps):
            self._watched(self.env.run_next)

    @rule(minutes=st.sampled_from((1, 2, 6)))
    def time_passes(self, minutes: int) -> None:
        until = self.env.clock.now() + timedelta(minutes=minutes)
        self._watched(lambda: self.env.pass_time(until))

    @precondition(lambda self: self.env.timeline.expected(Kind.STEP))
    @rule(which=some)
    def an_execution_is_ahead_of_others(self, which: int) -> None:
        self._out_of_turn(Kind.STEP, which)

    @rule(spec=st.sampled_from((SCHEDULES[SETTLING], Spec(), Spec(dry_run=True))))
    def reconcile(self, spec: Spec) -> None:
        self.do(lambda: self.env.reconcile(spec))

    # Faults

    @precondition(lambda self: any(run.running for run in self.env.runs.values()))
    @rule(which=some, how=st.sampled_from(("was aborted", "timed out")))
    def an_execution_is_cut_short(self, which: int, how: str) -> None:
        running = [run for run in self.env.runs.values() if run.running]
        self.do(lambda: self.env.cut_short(running[which % len(running)], how))

    @precondition(lambda self: self.env.timeline.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_overtakes_others(self, which: int) -> None:
        self._out_of_turn(Kind.EVENT, which)

    @precondition(lambda self: self.env.timeline.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_comes_twice(self, which: int) -> None:
        events = self.env.timeline.expected(Kind.EVENT)
        self.do(events[which % len(events)].action)

    @precondition(lambda self: self.env.timeline.expected(Kind.EVENT))
    @rule(which=some)
    def an_event_is_lost(self, which: int) -> None:
        events = self.env.timeline.expected(Kind.EVENT)
        self.env.timeline.drop(events[which % len(events)])

    def _out_of_turn(self, kind: Kind, which: int) -> None:
        expected = self.env.timeline.expected(kind)
        entry = expected[which % len(expected)]
        self.env.timeline.drop(entry)
        self.do(entry.action)

    @rule(services=st.sets(st.sampled_from(SERVICES)))
    def throttled(self, services: set[str]) -> None:
        self._set_faults(throttled=frozenset(services))

    @rule(crash=st.sampled_from((0.0, 0.1)), slow=st.sampled_from((0.0, 1.0)))
    def functions_die_or_take_their_time(self, crash: float, slow: float) -> None:
        self._set_faults(crash=crash, slow=slow, suspend=0.4)

    @rule(fails=st.sampled_from((0.0, 1.0)), hangs=st.sampled_from((0.0, 1.0)), undone=st.booleans())
    def stacks_fail_or_hang(self, fails: float, hangs: float, undone: bool) -> None:
        self._set_faults(stack_fails=fails, stack_hangs=hangs, undoing_fails=0.0 if undone else 1.0)

    @rule(lost=st.booleans(), again=st.booleans(), stale=st.booleans())
    def nothing_is_heard_of(self, lost: bool, again: bool, stale: bool) -> None:
        self._set_faults(
            lost_ends=float(lost), lost_settlements=float(lost), duplicates=float(again), stale=float(stale)
        )

    @rule(skew=st.sampled_from((0.0, 2.0)), old_code=st.booleans())
    def what_runs_is_of_another_time(self, skew: float, old_code: bool) -> None:
        self._set_faults(skew=skew, old_code=float(old_code))

    def _set_faults(self, **faults: object) -> None:
        self.env.faults = replace(self.env.faults, **faults)  # type: ignore[arg-type]

    # Checks

    @invariant()
    def every_promise_is_kept(self) -> None:
        self.env.checks.check()

    def teardown(self) -> None:
        try:
            if not self.broken:
                check_operations_end(self.env)
                check_repair(self.env)
        finally:
            self.env.close()


SOME_STEPS = settings(stateful_step_count=20, suppress_health_check=list(HealthCheck), print_blob=False)


def test_the_promises_hold_whatever_is_done_in_whatever_order() -> None:
    run_state_machine_as_test(AnyOrder, settings=settings(SOME_STEPS, max_examples=100))


def test_a_bug_is_found_in_some_order(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(FakeExecutions, "is_over", lambda _self, _execution: True)
    with pytest.raises(AssertionError, match="which is at work"):
        run_state_machine_as_test(AnyOrder, settings=settings(SOME_STEPS, max_examples=200, phases=[Phase.generate]))


def test_it_begins_without_faults() -> None:
    assert AnyOrder().env.faults == NO_FAULTS
