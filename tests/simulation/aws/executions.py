"""Plays one execution of a machine's file, state by state, so that several can be played concurrently.

What a function does is done by the use case that its handler calls, over the fakes. Errors are retried and caught as
the file says; a wait lets a moment pass, whatever its length. (:mod:`~.timed_executions` has those that take time.)
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, StrEnum
from functools import lru_cache
from typing import Any, TypeVar, cast

from lambdas.runtime import Outcome, outcome_json
from orchestrator.common.errors import BerthError, Throttled
from orchestrator.common.times import timestamp
from orchestrator.composition import UseCases
from orchestrator.tenants import schemas
from orchestrator.tenants.deadlines import is_past_any_deadline
from orchestrator.tenants.outcomes import Waiting
from orchestrator.tenants.records import Operation, Run
from tests.fakes import NAMES
from tests.machines import asl
from tests.machines.files import machine
from tests.simulation.world import Around, World, undisturbed

A_CALL = timedelta(milliseconds=100)

# Faults


class Crash(Exception):
    """A function died. The machine calls it again."""


class Killed(Exception):
    """The execution was aborted. Nobody calls anything again."""


class Moment(Enum):
    BEFORE = "before"
    AFTER = "after"


@dataclass
class FaultInjector:
    """Injects one fault at the n-th call to the outside."""

    at_call: int = 0
    moment: Moment = Moment.BEFORE
    kind: type[Exception] = Crash
    calls: int = 0

    def around(self, _name: str, call: Callable[[], Any]) -> Any:
        self.calls += 1
        strikes = self.calls == self.at_call
        if strikes and self.moment is Moment.BEFORE:
            raise self.kind
        try:
            return call()
        finally:
            if strikes:
                raise self.kind


# The work of functions, by the names of their states

Event = dict[str, Any]
Function = Callable[[Event, UseCases], Event]
Parsed = TypeVar("Parsed")
CACHE_SIZE = 20_000
"""The size of caches."""


@lru_cache(CACHE_SIZE)
def _parsed(parse: Callable[[object], Any], text: str) -> Any:
    return parse(json.loads(text))


def parsed(parse: Callable[[object], Parsed], event: Event) -> Parsed:
    """The parsed event. Parsing is cached, because checking schemas is slow and events repeat."""
    return cast(Parsed, _parsed(parse, json.dumps(event, sort_keys=True)))


def _step(work: Callable[[Run, Event, UseCases], Outcome]) -> Function:
    """As ``lambdas.runtime.step``: being throttled is an outcome, until the run's deadline."""

    def patiently(event: Event, use_cases: UseCases) -> Event:
        run = parsed(schemas.parse_run, event)
        try:
            return outcome_json(work(run, event, use_cases))
        except Throttled as throttled:
            if is_past_any_deadline(run, use_cases.ports.clock):
                raise
            return {"outcome": "again", "reason": str(throttled), "throttled": True}

    return patiently


@_step
def _begin(run: Run, event: Event, use_cases: UseCases) -> Outcome:
    parsed(schemas.parse_begin_step, event)
    return use_cases.begin(run)


def _waiting(step: Function) -> Function:
    """As ``lambdas.runtime.waiting_step``: every outcome but ``waiting`` ends the wait at once."""

    def answering(event: Event, use_cases: UseCases) -> Event:
        result = step(event, use_cases)
        if "taskToken" in event and result["outcome"] != Waiting.outcome:
            use_cases.ports.executions.wake(event["taskToken"], result)
        return result

    return answering


@_waiting
@_step
def _start_stack(run: Run, event: Event, use_cases: UseCases) -> Outcome:
    asked = parsed(schemas.parse_start_step, event)
    return use_cases.start_and_wait(run, task_token=asked.task_token, empty_since=asked.empty_since)


@_waiting
@_step
def _await_stack(run: Run, event: Event, use_cases: UseCases) -> Outcome:
    return use_cases.await_stack(run, task_token=parsed(schemas.parse_await_step, event).task_token)


@_waiting
@_step
def _await_admission(run: Run, event: Event, use_cases: UseCases) -> Outcome:
    return use_cases.await_admission(run, task_token=parsed(schemas.parse_await_step, event).task_token)


@_step
def _inspect_stack(run: Run, _event: Event, use_cases: UseCases) -> Outcome:
    return use_cases.inspect_stack(run)


def _finish(event: Event, use_cases: UseCases) -> Event:
    asked = parsed(schemas.parse_finish_step, event)
    return outcome_json(use_cases.finish(asked.run, stack=asked.stack))


def _parse_failure_step(event: object) -> schemas.FailureStep:
    return schemas.parse_failure_step(event, NAMES)


def _record_failure(event: Event, use_cases: UseCases) -> Event:
    asked = parsed(_parse_failure_step, event)
    cause = use_cases.record_failure(asked.run, failure=asked.failure, failed_stack=asked.failed_stack)
    return {"Error": "Berth.OperationFailed", "Cause": str(cause)}


FUNCTIONS: dict[str, Function] = {
    "Begin": _begin,
    "AwaitAdmission": _await_admission,
    "StartStack": _start_stack,
    "AwaitStack": _await_stack,
    "InspectStack": _inspect_stack,
    "Finish": _finish,
    "RecordFailure": _record_failure,
}


@lru_cache(CACHE_SIZE)
def _chosen(stem: str, choice: str, result: str) -> str:
    return asl.chosen(asl.states(machine(stem))[choice], json.loads(result))


class State(StrEnum):
    RUNNING = "RUNNING"
    SUCCEEDED = "SUCCEEDED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"


class Execution:
    """One execution that has been started, and where it is.

    It is of the machine for the operation in its input. Whoever may start one machine only starts that one.
    """

    def __init__(
        self, world: World, name: str, around: Around = undisturbed, *, of_machine: Operation | None = None
    ) -> None:
        self.world = world
        self.name = name
        self.state = State.RUNNING
        self._use_cases = world.use_cases(around)
        self._input = cast(Event, world.executions.inputs[name])
        self._started_at = world.executions.starts.setdefault(name, world.clock.now())
        self.operation = Operation(self._input["operation"])
        self._stem = f"{of_machine or self.operation}_tenant".lower()
        self._machine = machine(self._stem)
        self.at: str = self._machine["StartAt"]
        """The name of the state that comes next."""
        self._given: object = self._input
        self._variables: dict[str, Any] = {}
        self._tries: Counter[int] = Counter()
        """How often each of the state's retriers has been used."""
        self._tokens = 0
        self._awaited: str | None = None

    @property
    def running(self) -> bool:
        return self.state is State.RUNNING

    @property
    def explicit(self) -> bool:
        return bool(cast(Event, self._input.get("request", {})).get("explicit"))

    def play(self) -> bool:
        """Play to the end, and return ``True`` if the execution succeeded."""
        while self.running:
            self.step()
        return self.state is State.SUCCEEDED

    def abort(self) -> None:
        """End the execution without running its Catch or Retry."""
        self._end(State.ABORTED)

    def step(self) -> None:
        """Pass through one state, or try to."""
        state = asl.states(self._machine)[self.at]
        match state["Type"]:
            case "Task" if self._awaited:
                self._wake(state, self._awaited)
            case "Task":
                self._call(state)
            case "Choice":
                self._go(_chosen(self._stem, self.at, json.dumps(self._given)))
            case "Wait":
                result = self._seconds_from_input(state["Seconds"])
                self._go(state["Next"])
                if result is None:
                    self._rest(state["Seconds"])
                else:
                    self._rest_for(result)
            case "Fail":
                self._end(State.FAILED)

    def _call(self, state: asl.State) -> None:
        self._tokens += 1
        token = f"{self.name}#{self._tokens}"
        if asl.waits_for_token(state):
            self.world.executions.waiting.add(token)
        states = {"input": self._given, "context": self._context(token)}
        payload = asl.evaluate(state["Arguments"]["Payload"], {"states": states, **self._variables})
        function = FUNCTIONS[self.at]
        self._invoke(state, token, lambda: function(payload, self._use_cases))

    def _invoke(self, state: asl.State, token: str, function: Callable[[], Event]) -> None:
        self.world.clock.advance(A_CALL)
        try:
            result = function()
        except Killed:
            self.abort()
            raise
        except (Crash, BerthError) as error:
            self._failed(state, token, error)
        else:
            self._answered(state, token, result)

    def _answered(self, state: asl.State, token: str, result: Event) -> None:
        if asl.waits_for_token(state):
            self._awaited = token
        else:
            self._done(state, {"Payload": result})

    def _failed(self, state: asl.State, token: str, error: Crash | BerthError) -> None:
        if token in self.world.executions.results:
            self._awaited = token  # The function sent the token back before it died, which has ended the state.
        elif isinstance(error, Crash):
            self._fault(state, "Lambda.Unknown", "The function died.")
        else:
            self._fault(state, type(error).__name__, str(error))

    def _wake(self, state: asl.State, token: str) -> None:
        """Go on once the token was sent back, or time out."""
        waiting = self.world.executions.waiting
        if token in waiting:
            self.world.let_time_pass()
        self._awaited = None
        if token in waiting:
            waiting.discard(token)
            self._fault(state, "States.Timeout", "")
        else:
            self._done(state, cast(Event, self.world.executions.results[token]))

    def _done(self, state: asl.State, result: Event) -> None:
        """``result`` is the result of the function, or what was sent with the task token."""
        given = {"states": {"result": result}, **self._variables}
        self._variables |= asl.evaluate(state.get("Assign", {}), given)
        if state.get("End"):
            self._end(State.SUCCEEDED)
        else:
            self._go(state["Next"], asl.evaluate(state.get("Output", result), given))

    def _fault(self, state: asl.State, error: str, cause: str) -> None:
        caught = {error, "States.ALL"} | ({"States.TaskFailed"} if error != "States.Timeout" else set())
        for number, retrier in enumerate(state["Retry"]):
            if caught & set(retrier["ErrorEquals"]):
                if self._tries[number] < retrier["MaxAttempts"]:
                    self._tries[number] += 1
                    self._rest(retrier["MaxDelaySeconds"])
                    return
                break
        (target, *_) = (target for errors, target in asl.catches(state) if caught & set(errors))
        self._go(target, {"Error": error, "Cause": cause})

    def _seconds_from_input(self, seconds: int | str) -> int | None:
        """The seconds that the step before returned, if the file waits for those."""
        if isinstance(seconds, str) and "$states.input" in seconds:
            return cast(int, asl.evaluate(seconds, {"states": {"input": self._given}}))
        return None

    def _rest_for(self, seconds: int) -> None:
        self.world.let_time_pass(timedelta(seconds=seconds))

    def _rest(self, _seconds: int | str) -> None:
        """Wait for a moment, whatever the file says."""
        self.world.let_time_pass()

    def _go(self, to: str, given: object = None) -> None:
        self.at, self._tries = to, Counter()
        self._given = self._given if given is None else given

    def _end(self, state: State) -> None:
        self.state = state
        self.world.executions.running.discard(self.name)

    def _context(self, token: str) -> Event:
        execution = {"Id": self.name, "Input": self._input, "StartTime": timestamp(self._started_at)}
        return {"Execution": execution, "Task": {"Token": token}}
