"""Executions that take time: they wait as long as their file says, and their functions may be suspended."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING, cast

from orchestrator.common.errors import BerthError
from orchestrator.common.tenant_ids import TenantId
from tests.machines import asl
from tests.simulation.actors.callers import Caller, Role
from tests.simulation.aws.executions import Crash, Event, Execution, State

if TYPE_CHECKING:
    from tests.simulation.environment import Environment

AWAIT_STACK_SECONDS = 120.0
PLACEHOLDERS = {
    "${AwaitStackSeconds}": AWAIT_STACK_SECONDS,
    "${AwaitReviewSeconds}": 3.0,
    "${RetryAfterSeconds}": 5.0,
}


class TimedExecution(Execution):
    """The environment calls :meth:`step` when it is due, and never while a function is running."""

    world: Environment

    def __init__(self, env: Environment, name: str) -> None:
        super().__init__(env, name)
        self.tenant = TenantId.parse(self._input["tenantId"])
        self.at_work = 0
        """The number of its functions that are running, also after the execution itself has ended."""
        self.started_at = self._started_at
        self.times_out_at = self._started_at + timedelta(seconds=self._machine["TimeoutSeconds"])
        self.rests_for: float | None = 0.0
        """Seconds until the next step; ``None`` while a function is running."""

    @property
    def alive(self) -> bool:
        """True while the execution or one of its functions is running."""
        return self.running or self.at_work > 0

    @property
    def sleeps(self) -> str | None:
        """The task token that the execution waits for."""
        return self._awaited

    @property
    def input(self) -> Event:
        return self._input

    def step(self) -> None:
        self.rests_for = 0.0
        super().step()

    def cut_short(self, how: str) -> None:
        """Abort the execution, or have it time out. Its functions go on."""
        self.state = State.ABORTED
        self.world.executions.cut_short(self.name, how)
        if self._awaited:
            self.world.executions.waiting.discard(self._awaited)
        self.world.execution_ended(self)

    def _invoke(self, state: asl.State, token: str, function: Callable[[], Event]) -> None:
        self.at_work += 1
        self.rests_for = None

        def over(result: Event | None, error: Exception | None) -> None:
            self.at_work -= 1
            if not self.running:
                return
            self.rests_for = 0.0
            if isinstance(error, Crash | BerthError):
                self._failed(state, token, error)
            else:
                self._answered(state, token, result or {})
            self.rests_for = AWAIT_STACK_SECONDS if self._awaited else self.rests_for
            self.world.plan(self)

        caller = Caller(Role.RUN, self.tenant, self.name)
        self._use_cases = self.world.use_cases_of(caller)
        self.world.call(caller, function, over)

    def _wake(self, state: asl.State, token: str) -> None:
        waiting = self.world.executions.waiting
        self._awaited = None
        if token in waiting:
            waiting.discard(token)
            self._fault(state, "States.Timeout", "")
        else:
            self._done(state, cast(Event, self.world.executions.results[token]))

    def _rest_for(self, seconds: int) -> None:
        self.rests_for = float(seconds)

    def _rest(self, seconds: int | str) -> None:
        self.rests_for = self.world.rest(PLACEHOLDERS.get(str(seconds), seconds))

    def _end(self, state: State) -> None:
        super()._end(state)
        if state is State.FAILED:
            self.world.execution_ended(self)
