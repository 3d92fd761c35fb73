"""The whole control plane in one process and on one clock.

Executions, slow functions, CloudFormation, events and the reconciler's schedule all put their next steps on one
timeline. All random numbers come from one seed.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from orchestrator.common.errors import BerthError, Throttled
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.reconciling.control import SCHEDULES
from orchestrator.reconciling.events import parse_execution_ended
from orchestrator.reconciling.health import SETTLING_EVERY
from orchestrator.reconciling.records import SETTLING, Reconciliation, ReconciliationStatus, Spec
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue, Request
from orchestrator.tenants.stack_ports import Stack
from tests.fakes import (
    NAMES,
    NEXT_VERSION,
    OTHER_QUEUE,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeSettings,
    FakeStacks,
    a_release,
)
from tests.fakes.migration import InMemoryMigration
from tests.fakes.reconciling import FakeSurvey, InMemoryReconciliations
from tests.simulation.actors.adversary import EVIL_TEMPLATE, Adversary
from tests.simulation.actors.callers import Caller, Role
from tests.simulation.actors.people import People
from tests.simulation.actors.platforms import Platforms
from tests.simulation.actors.teams import Teams
from tests.simulation.aws.cloudformation import CloudFormation, TenantStacks
from tests.simulation.aws.executions import Crash
from tests.simulation.aws.queues import LaggingQueues
from tests.simulation.aws.timed_executions import TimedExecution
from tests.simulation.checks.invariants import Checks
from tests.simulation.faults import NO_FAULTS, Faults
from tests.simulation.suspendable import Abandoned, SuspendableCall
from tests.simulation.timeline import Kind, Timeline
from tests.simulation.world import Around, World, wake_waiting, watched

LATER_VERSION = "0.3.0"
"""A release with the same content as the one before it, so that an upgrade to it changes no stack."""
VERSIONS = (VERSION, NEXT_VERSION, LATER_VERSION)

NEIGHBOUR = Names("Berth-dev")

LINGER = timedelta(seconds=60)
TO_SPARE = timedelta(seconds=5)
A_TICK = timedelta(milliseconds=1)
A_FUNCTION_LIVES = timedelta(seconds=55)
"""Longer than the timeout of any function that a machine calls, and shorter than :data:`LINGER`."""
COMES_BACK_AFTER = timedelta(seconds=360)
RECEIVED_AT_MOST = 5
CREATES_PER_MINUTE = 1
"""The limit for all platforms together, which are one caller here, and for other teams' stacks."""

Over = Callable[[Any, Exception | None], None]


class SkewedClock(FakeClock):
    """The clock of one function."""

    def __init__(self, clock: FakeClock, skew: timedelta) -> None:
        self._true, self._skew = clock, skew

    def now(self) -> datetime:
        return self._true.now() + self._skew


@dataclass
class SlowCall:
    """A call of a function that may be suspended."""

    caller: Caller
    suspendable: SuspendableCall
    over: Over
    dies_at: datetime


class Environment(World):
    stacks: TenantStacks
    queues: LaggingQueues

    def __init__(self, tenants: Sequence[TenantId], rng: random.Random, faults: Faults = NO_FAULTS) -> None:
        clock = FakeClock()
        super().__init__(
            stacks=TenantStacks(),
            queues=LaggingQueues(clock, rng),
            executions=FakeExecutions(clock, linger=LINGER),
            clock=clock,
        )
        self.stacks.digests[EVIL_TEMPLATE] = "e" * 64
        same = self.table.release(NEXT_VERSION)
        assert same
        self.table.record_release(a_release(LATER_VERSION, content=same.content))
        self.tenants = tenants
        self.rng = rng
        self.faults = faults
        self.turn = 0
        """How many entries of the timeline have been run."""
        self.checks = Checks(self.table, self.stacks, self.queues, self.executions, clock, tenants)
        self.neighbours = [self._plant_neighbour(tenant) for tenant in tenants]
        """Stacks of another control plane in the same account and region, which has tenants of the same ids."""
        self.cloudformation = CloudFormation(self)
        self.people = People(self)
        self.platforms = Platforms(self)
        self.teams = Teams(self)
        self.adversary = Adversary(self)
        self.runs: dict[str, TimedExecution] = {}
        self.reconciliations = InMemoryReconciliations()
        self.timeline = Timeline()
        self._turns: dict[str, int] = {}
        self._woken: set[str] = set()
        self._slow: list[SlowCall] = []
        self._at_work: SlowCall | None = None
        self._seen_stacks = FakeStacks()
        self._indexes = [self.table.as_of_now()]
        self.later(SETTLING_EVERY, self._on_schedule)
        self.doomed: set[tuple[TenantId, str]] = set()
        """Pairs of a tenant and a state: the tenant's next execution that reaches the state is aborted there."""
        self.log: Callable[[str], object] | None = None
        """Receives a line for everything that happens, if it is set."""

    def _plant_neighbour(self, tenant: TenantId) -> Stack:
        stack_id = f"arn:aws:cloudformation:eu-west-1:000000000000:stack/{NEIGHBOUR.stack_of(tenant)}/neighbour"
        self.checks.planted.add(stack_id)
        return self.stacks.plant(Stack(stack_id, "CREATE_COMPLETE", "", tenant.value, OTHER_QUEUE, VERSION, ours=False))

    # Time

    def trace(self, who: object, what: str, result: object = "") -> None:
        if self.log:
            self.log(f"{self.clock.now():%H:%M:%S.%f} {who}: {what} {result}".rstrip())

    def later(self, delay: timedelta | float, action: Callable[[], None], kind: Kind = Kind.OTHER) -> None:
        """Run the action after about that time."""
        wait = delay if isinstance(delay, timedelta) else timedelta(seconds=delay)
        due = self.clock.now() + wait + timedelta(milliseconds=self.rng.randrange(1, 400))
        self.timeline.add(due, action, kind)

    def rest(self, seconds: float | str) -> float:
        """How long a machine waits. An expression in its file is a random time there, and is one here."""
        return self.rng.uniform(1, 10) if isinstance(seconds, str) else float(seconds)

    def run_next(self) -> None:
        """Run the next entry of the timeline."""
        entry = self.timeline.next()
        self.clock.advance(max(entry.due - self.clock.now(), timedelta()))
        self.do(entry.action)

    def do(self, action: Callable[[], None]) -> None:
        """Run the action now, and check the promises."""
        self.turn += 1
        self.stacks.now, self.queues.lag = self.clock.now(), self.faults.lag
        action()
        self.check_now()

    def tick(self) -> None:
        """Advance the clock a little, so that no two executions start at the same time."""
        self.clock.advance(A_TICK)

    def pass_time(self, until: datetime) -> None:
        """Run every entry that is due until then."""
        while self.timeline.next_due <= until:
            self.run_next()
        self.clock.advance(max(until - self.clock.now(), timedelta()))

    def check_now(self) -> None:
        """Wake executions whose token was sent back, have CloudFormation begin its work, and check the promises."""
        for run in self.runs.values():
            token = run.sleeps
            if run.running and token and token not in self.executions.waiting and token not in self._woken:
                self._woken.add(token)
                self._step_soon(run, 0.0)
        self.cloudformation.notice()
        self.checks.check()

    def end_faults(self) -> None:
        self.faults = self.faults.without_most()
        self.teams.quiet = True

    def close(self) -> None:
        """End every suspended call, also after a broken promise."""
        for call in self._slow:
            while not call.suspendable.over:
                call.suspendable.resume(Abandoned())
        self._slow.clear()

    # Calls of functions

    def use_cases_of(self, caller: Caller, **named: Any) -> UseCases:
        return self.use_cases(self.around(caller), clock=self._clock_of_a_function(), **named)

    def _clock_of_a_function(self) -> FakeClock:
        skew = timedelta(seconds=self.rng.uniform(-1, 1) * self.faults.skew)
        return SkewedClock(self.clock, skew) if skew else self.clock

    def settings(self, version: str) -> FakeSettings:
        """Settings with a rate limit that callers reach, and a tenant limit that they do not reach."""
        max_tenants = len(self.checks.of) + 1
        return replace(super().settings(version), max_tenants=max_tenants, creates_per_minute=CREATES_PER_MINUTE)

    def call(self, caller: Caller, function: Callable[[], Any], over: Over) -> None:
        """Call a function. ``over`` gets its result or error, at once or, if the call is slow, later."""
        if self._at_work or self.rng.random() >= self.faults.slow:
            result, error = None, None
            try:
                result = function()
            except (Crash, BerthError) as failed:
                error = failed
            over(result, error)
            return
        slow = SlowCall(caller, SuspendableCall(function), over, self.clock.now() + A_FUNCTION_LIVES)
        self._slow.append(slow)
        self.checks.seen["suspended"] += 1
        self._go_on_with(slow)

    def _go_on_with(self, slow: SlowCall) -> None:
        timeout = Crash() if self.clock.now() > slow.dies_at else None
        self._at_work = slow
        try:
            slow.suspendable.resume(timeout)
        finally:
            self._at_work = None
        if not slow.suspendable.over:
            # A call that is suspended beyond its timeout dies at the timeout, and not when it would be resumed.
            suspended_for = min(timedelta(seconds=self._suspended_for(slow.caller)), slow.dies_at - self.clock.now())
            self.later(suspended_for, partial(self._go_on_with, slow))
            return
        self._slow.remove(slow)
        error = slow.suspendable.error
        if error is not None and not isinstance(error, Crash | BerthError):
            raise error
        slow.over(slow.suspendable.result, error)

    def _suspended_for(self, caller: Caller) -> float:
        """Some for long; a call whose execution has ended meanwhile for almost as long as its timeout allows."""
        run = self.runs.get(caller.execution) if caller.role is Role.RUN else None
        if run and run.running:
            self._perhaps_cut_short(run, 3)
        if run and not run.running:
            return self.rng.uniform(1, 25)
        return self.rng.uniform(5, 35) if self.rng.random() < 0.3 else self.rng.uniform(0, 3)

    def around(self, caller: Caller) -> Around:
        def around(name: str, call: Callable[[], Any]) -> Any:
            faults, rng = self.faults, self.rng
            if self._at_work and rng.random() < faults.suspend:
                self._at_work.suspendable.suspend()
            if name.partition(".")[0] in faults.throttled and rng.random() < 0.7:
                self.checks.seen["throttled"] += 1
                self.trace(caller, name, "is throttled")
                raise Throttled(f"{name}: Rate exceeded")
            dies = rng.random() if faults.crash else 0.5
            if dies < faults.crash:
                self.trace(caller, name, "is not reached: the function dies")
                raise Crash
            if name == "executions.start":
                self.tick()
            result = self.checks.around(caller, name, call)
            self.trace(caller, name, result)
            if name == "executions.start" and result and result not in self.runs:
                self._take_up(result)
            if dies > 1 - faults.crash:
                self.checks.seen["crashed after a call"] += 1
                self.trace(caller, name, "has a result that is lost: the function dies")
                raise Crash
            return result

        return around

    # Executions

    def _take_up(self, name: str) -> None:
        run = TimedExecution(self, name)
        self.runs[name] = self.checks.runs[name] = run
        if self.rng.random() < self.faults.old_code:
            run.input.pop("request")
            self.checks.seen["old code"] += 1
        self._step_soon(run, 0.0)
        self.later(run.times_out_at - self.clock.now(), partial(self.cut_short, run, "timed out"))

    def _step_soon(self, run: TimedExecution, delay: float) -> None:
        turn = self._turns[run.name] = self._turns.get(run.name, 0) + 1
        self.later(delay, partial(self._step, run, turn), Kind.STEP)

    def _step(self, run: TimedExecution, turn: int) -> None:
        if run.running and self._turns[run.name] == turn:
            self._perhaps_cut_short(run)
            if (run.tenant, run.at) in self.doomed:
                self.doomed.remove((run.tenant, run.at))
                self.cut_short(run, "was aborted")
        if run.running and self._turns[run.name] == turn:
            if self._has_to_wait(run):
                self._step_soon(run, self.rng.uniform(1, 40))
                return
            run.step()
            self.plan(run)

    def _has_to_wait(self, run: TimedExecution) -> bool:
        """True if the state has to be tried again: no function is free, or somebody is about to delete the stack."""
        meddled = run.at == "Finish" and self.cloudformation.is_about_to_finish(run.tenant)
        return meddled or self.rng.random() < self.faults.no_function_free

    def plan(self, run: TimedExecution) -> None:
        """Schedule the next step of an execution after its wait."""
        if run.running and run.rests_for is not None:
            self._step_soon(run, run.rests_for)

    def _perhaps_cut_short(self, run: TimedExecution, times: int = 1) -> None:
        if self.rng.random() < self.faults.cut_short * times:
            self.cut_short(run, self.rng.choice(("was aborted", "timed out")))

    def cut_short(self, run: TimedExecution, how: str) -> None:
        """Abort an execution, or have it time out. A function that it has called goes on."""
        if run.running:
            death = f"{how}{' in the middle of a function' if run.at_work else ''}"
            self.trace(run.name, death)
            self.checks.seen[death] += 1
            run.cut_short(how)

    # Events

    def _travels(self, lost: float, deliver: Callable[[], None], delay: timedelta = timedelta()) -> None:
        """Deliver an event, which may be lost, be late, or be delivered twice."""
        times = 0 if self.rng.random() < lost else 1 + (self.rng.random() < self.faults.duplicates)
        self.checks.seen["lost"] += times == 0
        for _ in range(times):
            late = self.rng.uniform(60, 900) if self.rng.random() < self.faults.late else 0.0
            self.later(delay + timedelta(seconds=self.rng.uniform(0, 2) + late), deliver, Kind.EVENT)

    def execution_ended(self, run: TimedExecution) -> None:
        detail = {
            "executionArn": run.name,
            "startDate": int(run.started_at.timestamp() * 1000),
            "input": json.dumps(run.input),
        }
        body = json.dumps({"detail": detail})
        self._travels(self.faults.lost_ends, partial(self._close, run, body, 1), LINGER + TO_SPARE)

    def _close(self, run: TimedExecution, body: str, received: int) -> None:
        caller = Caller(Role.SETTLER, run.tenant, run.name)
        settling = self.use_cases_of(caller).settling

        def over(_result: object, error: Exception | None) -> None:
            if error and received < RECEIVED_AT_MOST:
                self.later(COMES_BACK_AFTER, partial(self._close, run, body, received + 1))

        self.call(caller, lambda: settling.settle(parse_execution_ended(body)), over)

    def stack_settled(self, stack_id: str) -> None:
        client_token = self.stacks.all[stack_id].events[0].client_token
        self._travels(self.faults.lost_settlements, partial(self._wake, stack_id, client_token))

    def _wake(self, stack_id: str, client_token: str) -> None:
        of_another_name = self.stacks.names.is_legacy(name_of(stack_id))
        stack = self.stacks.all[stack_id].stack
        tenant = TenantId.parse(stack.tenant_id) if of_another_name else NAMES.tenant_of(stack_id)
        caller = Caller(Role.EVENT, tenant)
        use_cases = self.use_cases_of(caller)

        def work() -> bool:
            return wake_waiting(stack_id, client_token, use_cases)

        def over(woken: bool | None, error: Exception | None) -> None:
            if error:
                self.later(60, partial(self._wake, stack_id, client_token))
            elif woken and of_another_name:
                self.checks.seen["woken by a stack of another name"] += 1

        self.call(caller, work, over)

    # Reconciling

    def _on_schedule(self) -> None:
        self.later(SETTLING_EVERY, self._on_schedule)
        self.reconcile(SCHEDULES[SETTLING])

    def reconcile(self, spec: Spec) -> None:
        caller = Caller(Role.RECONCILER, None)
        around, clock = self.around(caller), self._clock_of_a_function()
        stale = self.rng.random() < self.faults.stale
        index = self.rng.choice(self._indexes) if stale else self.table
        survey = FakeSurvey(self._seen_stacks if stale else self.stacks)
        use_cases = self.use_cases(
            around,
            clock=clock,
            index=watched("table", index, around),
            survey=watched("stacks", survey, around),
            reconciliation_table=self.reconciliations,
        )
        reconciler = use_cases.reconciler()
        now = self.clock.now()
        asked = Reconciliation(SETTLING, "berth reconcile", spec, ReconciliationStatus.PENDING, now, now)
        self.call(caller, lambda: reconciler.run(asked), lambda _result, _error: None)
        if self.faults.stale:
            self._indexes = [*self._indexes[-2:], self.table.as_of_now()]
            self._seen_stacks = self.stacks.as_of_now()

    def adopt(self, *, dry_run: bool = False) -> None:
        caller = Caller(Role.RECONCILER, None)
        ports = self.ports(self.around(caller))
        migration = InMemoryMigration(ports["table"], ports["stacks"], ports["queues"], self._clock_of_a_function())
        request = Request(by="berth adopt")
        self.call(caller, lambda: migration.adopt_all(request, dry_run=dry_run), lambda _result, _error: None)

    # Names for actors and checks

    def queue_of(self, tenant: TenantId) -> Queue:
        """The queue of a new stack, which is a new queue."""
        return self.queue_named(tenant, f"{NAMES.stack_of(tenant)}-InboundQueue-{len(self.stacks.all)}")

    def queue_named(self, tenant: TenantId, name: str) -> Queue:
        queue = Queue(
            f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}"
        )
        self.checks.made.setdefault(tenant, set()).add(queue)
        return queue
