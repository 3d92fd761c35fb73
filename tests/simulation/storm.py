"""Create, update and delete of one tenant, all at once, in an order that a seed decides; and a watch over them.

Runs take turns state by state, and between any two calls of one the others may go on. What else may happen does:
getQueue is called, operators ask for more, executions are killed, functions die, the lock is lost.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from typing import Any

from orchestrator.tenants.get_queue import SUSPECT_AFTER
from orchestrator.tenants.lifecycle import Accepted, Ordered
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.records import Attempt, Messages, Operation, Request, Status
from orchestrator.tenants.stack_status import StackCondition, condition
from tests.fakes import ACME, NEXT_VERSION, VERSION
from tests.simulation.player import Crash, Execution
from tests.simulation.promises import ENDED, NEVER_BEGUN, told_of
from tests.simulation.stories import deleted_before, nothing_there, with_a_stack
from tests.simulation.watch import Watch
from tests.simulation.world import OPERATOR, World, a_queue, a_served_tenant

BEGINNINGS: list[Callable[[], World]] = [
    nothing_there,
    a_served_tenant,
    a_served_tenant,
    a_served_tenant,
    deleted_before,
    lambda: with_a_stack("ROLLBACK_COMPLETE"),
    lambda: with_a_stack("CREATE_COMPLETE"),
]
REQUESTS = {
    Operation.CREATE: Request(by=OPERATOR.by, explicit=True),
    Operation.UPDATE: OPERATOR,
    Operation.DELETE: Request(by=OPERATOR.by, force=True),
}
MAX_HAPPENINGS = 12
MAX_STEPS = 3_000


class Broken(AssertionError):
    """A promise was broken. The message names the seed, with which it is broken again."""


class Storm:
    """All that happens to one tenant, as a seed has it."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._chance = random.Random(seed)
        self.world = self._chance.choice(BEGINNINGS)()
        self.watch = Watch(self.world)
        self._runs: dict[str, Execution] = {}
        self._in_a_call: list[str] = []
        """Executions one of whose functions is running now."""
        self._robbed: set[str] = set()
        self._happenings = 0
        self._depth = 0

    @property
    def seen(self) -> Counter[str]:
        return self.watch.seen

    def play(self) -> None:
        try:
            self._arrange()
            self._start_all_three()
            self._until_all_have_ended()
            self._heal()
            self._check_the_end()
        except AssertionError as broken:
            raise Broken(f"seed {self.seed}: {broken}") from broken

    # Before

    def _arrange(self) -> None:
        """Some of what may be the matter, none of it most of the time."""
        world, often = self.world, self._chance.choices
        world.cloudformation_goes_on = lambda: self._chance.random() < 0.6
        world.stacks.failures.extend(["Access denied."] * often([0, 1, 2], [4, 1, 1])[0])
        world.stacks.rollback_failures.extend(["Still denied."] * often([0, 1, 4], [4, 1, 1])[0])
        world.stacks.delete_failures.extend(["In use."] * often([0, 1, 3], [6, 1, 1])[0])
        world.stacks.throttled_calls = often([0, 5], [3, 1])[0]
        world.queues.silent_for = often([0, 3], [3, 1])[0]
        world.stacks.review_takes = often([0, 2], [3, 1])[0]
        if self._chance.random() < 0.2:
            world.queues.held[a_queue(1).url] = Messages(1, 0, 0)

    def _start_all_three(self) -> None:
        """All have been admitted before any has begun. Some deletes look at messages, some creates are not explicit."""
        audits = self.world.table.audits(ACME)
        operations = list(Operation)
        self._chance.shuffle(operations)
        for operation in operations:
            number = 1 + sum(audit.operation is operation for audit in audits)
            version = VERSION if operation is Operation.CREATE else NEXT_VERSION
            request = self._chance.choice([REQUESTS[operation], Request()])
            self.world.executions.start(Attempt(ACME, operation, version, number), request)
        self._take_up_what_was_started()

    # Meanwhile

    def _until_all_have_ended(self) -> None:
        for _ in range(MAX_STEPS):
            if not any(run.running for run in self._runs.values()):
                return
            self._something_happens()
        raise AssertionError(f"it never ends: {[run.name for run in self._runs.values() if run.running]}")

    def _something_happens(self) -> None:
        may_happen = self._happenings < MAX_HAPPENINGS and self._chance.random() < 0.08
        idle = self._idle
        if may_happen:
            self._happenings += 1
            self._chance.choice(
                [self._ask, self._ask, self._ask_slowly, self._order, self._order, self._kill, self._rob, self._wait]
            )()
        elif idle:
            self._step(self._chance.choice(idle))

    @property
    def _idle(self) -> list[Execution]:
        """Runs that go on, and none of whose functions is running."""
        return [run for run in self._runs.values() if run.running and run.name not in self._in_a_call]

    def _step(self, run: Execution) -> None:
        self.seen["waited"] += run.at == "AwaitTurn"
        self._in_a_call.append(run.name)
        try:
            run.step()
        finally:
            self._in_a_call.remove(run.name)
        self.watch.check()

    def _around(self, run_name: str, name: str, call: Callable[[], Any]) -> Any:
        """A call that a run makes: others go on before it, the watch looks, and sometimes the function dies."""
        self._others_go_on()
        dies = self._chance.random()
        if dies < 0.01:
            raise Crash
        run = self._runs[run_name]
        self.watch.before(run, name)
        rows = self.watch.rows()
        told = call()
        self.watch.after(run, name, rows)
        if dies > 0.99:
            raise Crash
        return told

    def _others_go_on(self) -> None:
        if self._depth < 3 and self._chance.random() < 0.2:
            self._depth += 1
            try:
                self._something_happens()
            finally:
                self._depth -= 1

    def _ask(self) -> None:
        self.watch.check_answer(self.world.ask())
        self._take_up_what_was_started()

    def _ask_slowly(self) -> None:
        """While getQueue looks, the world changes."""
        self.world.ask(self._while_others_go_on)
        self._take_up_what_was_started()

    def _order(self) -> None:
        """An operator asks for something more."""
        lifecycle = self.world.lifecycle(self._while_others_go_on)
        orders: list[Callable[[], Ordered]] = [
            lambda: lifecycle.create(ACME, OPERATOR),
            lambda: lifecycle.upgrade(ACME, NEXT_VERSION, OPERATOR),
            lambda: lifecycle.delete(ACME, OPERATOR),
            lambda: lifecycle.delete(ACME, REQUESTS[Operation.DELETE]),
            lambda: lifecycle.retry(ACME, OPERATOR.by),
        ]
        ordered = self._chance.choice(orders)()
        self.seen[type(ordered).__name__] += 1
        self._take_up_what_was_started()

    def _while_others_go_on(self, _name: str, call: Callable[[], Any]) -> Any:
        self._others_go_on()
        return call()

    def _kill(self) -> None:
        """An execution is aborted. Not in the middle of a function: what that is about to do cannot be called back."""
        idle = [run for run in self._idle if run.name not in self._robbed]
        if idle:
            run = self._chance.choice(idle)
            self.watch.gone(run)
            run.abort()
            self.seen["killed"] += 1

    def _rob(self) -> None:
        """Someone deletes the lock by hand."""
        for run in list(self.watch.owners):
            if run.name not in self._in_a_call and run.at != "Begin":
                self.watch.gone(run)
                self._robbed.add(run.name)
                self.world.table.plant_lock(ACME, None)
                self.seen["robbed"] += 1

    def _wait(self) -> None:
        self.world.let_time_pass(CHECK_HOLDER_AFTER + timedelta(seconds=1))
        self.watch.check()

    def _take_up_what_was_started(self) -> None:
        for name in self.world.executions.inputs:
            if name not in self._runs:
                self._runs[name] = Execution(self.world, name, partial(self._around, name))

    # After

    def _heal(self) -> None:
        """Whatever was killed is asked for again; if that is refused, the tenant is deleted."""
        self._happenings = MAX_HAPPENINGS
        for _ in range(5):
            self.world.let_time_pass(SUSPECT_AFTER + timedelta(seconds=1))
            unfinished = any(audit.status is Status.STARTED for audit in self.world.table.audits(ACME))
            if self.world.table.lock(ACME) is None and not unfinished and not self._lags_behind():
                return
            ordered = self.world.lifecycle().retry(ACME, OPERATOR.by)
            if not isinstance(ordered, Accepted):
                ordered = self.world.lifecycle().delete(ACME, REQUESTS[Operation.DELETE])
            assert isinstance(ordered, Accepted), f"nothing heals it: {ordered}"
            self._take_up_what_was_started()
            self._until_all_have_ended()

    def _lags_behind(self) -> bool:
        """Whether a run was robbed after it had updated the stack, and before it could say so."""
        (stack, *_) = [*self.world.stacks.living, None]
        return bool(self.watch.served and stack and stack.version != self.watch.served[1])

    def _check_the_end(self) -> None:
        world = self.world
        while any(condition(stack.status) is StackCondition.WORKING for stack in world.stacks.living):
            world.let_time_pass()
        self.watch.check()
        assert self.watch.owners == []
        assert world.table.lock(ACME) is None
        for audit in world.table.audits(ACME):
            assert audit.status is not Status.STARTED, f"{audit.execution} says Started for ever"
        for name in self._runs:
            told = told_of(world, name)
            # One that was robbed, and overtaken before it could say so, has nothing more to say.
            overtaken = name in self._robbed and told == [Status.STARTED]
            assert overtaken or told in (*ENDED, *NEVER_BEGUN), f"{name} is told of as {told}"
        if self.watch.served:
            (stack,) = world.stacks.living
            assert (stack.queue, stack.version) == self.watch.served
        self.watch.check_answer(world.ask())
