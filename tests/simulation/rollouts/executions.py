"""Plays the file of the rollouts' machine and its children, step by step, beside the updates that they run.

What a function does is done by the use case that its handler calls, over the fakes. Errors are retried and caught as
the file says.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from functools import lru_cache
from typing import Any

from lambdas.runtime import Outcome, outcome_json
from orchestrator.common.errors import BerthError, Throttled
from orchestrator.rollouts.records import Item
from orchestrator.rollouts.steps import TurnStep, parse_await_operator_step, parse_rollout_step, parse_turn
from tests.machines import asl
from tests.machines.files import ROLLOUT, TURN, machine
from tests.simulation.aws.executions import CACHE_SIZE, Crash, Event, Execution, State, parsed
from tests.simulation.rollouts.fleet import Fleet
from tests.simulation.world import Around


@lru_cache(CACHE_SIZE)
def _chosen(part: str, choice: str, result: str) -> str:
    return asl.chosen(asl.states(machine(part))[choice], json.loads(result))


@lru_cache(CACHE_SIZE)
def _evaluated(template: str, variables: str) -> str:
    return json.dumps(asl.evaluate(json.loads(template), json.loads(variables)))


def evaluated(template: Any, variables: dict[str, Any]) -> Any:
    """The evaluated template. Evaluating is cached, because it is slow and runs repeat themselves."""
    return json.loads(_evaluated(json.dumps(template), json.dumps(variables, sort_keys=True)))


class MachineExecution:
    """An execution of one part of the file, and where it is."""

    part: str

    def __init__(self, fleet: Fleet, name: str, given: Event, around: Around) -> None:
        self.fleet, self.name, self._around = fleet, name, around
        self.state = State.RUNNING
        self.at: str = machine(self.part)["StartAt"]
        self.given: Any = given
        self._input = given
        self._variables: dict[str, Any] = {}
        self._tries: Counter[int] = Counter()
        self.waited = 0.0
        """The greatest number of seconds for which it may have retried since a function last answered."""

    @property
    def running(self) -> bool:
        return self.state is State.RUNNING

    @property
    def can_go_on(self) -> bool:
        """True if the execution does not wait for somebody else."""
        return self.running

    def step(self) -> None:
        state = asl.states(machine(self.part))[self.at]
        match state["Type"]:
            case "Pass":
                self._done(state, {})
            case "Task":
                self._task(state)
            case "Map":
                self._map(state)
            case "Choice":
                self._go(_chosen(self.part, self.at, json.dumps(self.given)), self.given)
            case "Wait":
                self._wait(state)
                self._go(state["Next"], self.given)
            case "Succeed":
                self.end(State.SUCCEEDED)
            case "Fail":
                self.end(State.FAILED)

    def end(self, state: State) -> None:
        self.state = state

    def _task(self, state: asl.State) -> None:
        self._call(state)

    def _map(self, state: asl.State) -> None:
        raise NotImplementedError

    def _wait(self, _state: asl.State) -> None:
        self.fleet.let_time_pass()

    def _call(self, state: asl.State) -> None:
        payload = self._evaluate(state["Arguments"]["Payload"])
        try:
            result = self._function(self.at, payload)
        except Crash:
            self._fault(state, "Lambda.Unknown", "The function died.")
        except BerthError as error:
            self._fault(state, type(error).__name__, str(error))
        else:
            self._answered(state, result)

    def _function(self, name: str, payload: Event) -> Event:
        raise NotImplementedError

    def _answered(self, state: asl.State, result: Event) -> None:
        self.waited = 0.0
        self._done(state, {"Payload": result})

    def _evaluate(self, template: Any, result: object = None) -> Any:
        states = {"input": self.given, "context": self._context(), "result": result}
        return evaluated(template, {"states": states, **self._variables})

    def _context(self) -> Event:
        return {"Execution": {"Id": self.name, "Input": self._input}}

    def _done(self, state: asl.State, result: object) -> None:
        given = self._evaluate(state["Output"], result) if "Output" in state else self.given
        self._variables |= self._evaluate(state.get("Assign", {}), result)
        self._go(state["Next"], given)

    def _fault(self, state: asl.State, error: str, cause: str) -> None:
        caught = {error, "States.ALL"} | ({"States.TaskFailed"} if error != "States.Timeout" else set())
        for number, retrier in enumerate(state.get("Retry", [])):
            if caught & set(retrier["ErrorEquals"]):
                if self._tries[number] < retrier["MaxAttempts"]:
                    delay = retrier["IntervalSeconds"] * retrier["BackoffRate"] ** self._tries[number]
                    self.waited += min(delay, retrier["MaxDelaySeconds"])
                    self._tries[number] += 1
                    self.fleet.let_time_pass()
                    return
                break
        targets = [target for errors, target in asl.catches(state) if caught & set(errors)]
        if targets:
            self._go(targets[0], {"Error": error, "Cause": cause})
        else:
            self.end(State.FAILED)

    def _go(self, to: str, given: Any) -> None:
        self.at, self.given, self._tries = to, given, Counter()


StartUpdate = Callable[["Turn", str, Event], Execution | None]


class Turn(MachineExecution):
    """A child: one tenant's turn."""

    part = TURN

    def __init__(self, fleet: Fleet, name: str, given: Event, around: Around, start: StartUpdate) -> None:
        super().__init__(fleet, name, given, around)
        self._start = start
        self.update: Execution | None = None
        """The update that the turn waits for."""

    @property
    def rollout_and_stage(self) -> tuple[str, int]:
        return self._input["rolloutId"], self._input["stage"]

    @property
    def can_go_on(self) -> bool:
        return self.running and not (self.update and self.update.running)

    def _task(self, state: asl.State) -> None:
        if state["Resource"] != asl.RUNS_A_MACHINE:
            self._call(state)
        elif self.update is None:
            asked = self._evaluate(state["Arguments"])
            try:
                self.update = self._start(self, asked["Name"], asked["Input"])
            except Throttled as throttled:
                self._fault(state, "StepFunctions.ThrottlingException", str(throttled))
                return
            if self.update is None:
                self._fault(state, "StepFunctions.ExecutionAlreadyExistsException", "The name is taken.")
        else:
            ended, self.update = self.update, None
            if ended.state is State.SUCCEEDED:
                self._done(state, {"Status": "SUCCEEDED"})
            else:
                self._fault(state, "States.TaskFailed", json.dumps({"Status": ended.state.value}))

    def _function(self, name: str, payload: Event) -> Event:
        """Like ``lambdas.runtime.turn_step``: being throttled is an outcome."""
        asked = parsed(parse_turn, payload)
        try:
            return outcome_json(self._use_case(name, asked))
        except Throttled as throttled:
            return {"outcome": "again", "reason": str(throttled), "throttled": True}

    def _use_case(self, name: str, asked: TurnStep) -> Outcome:
        match name:
            case "Admit":
                return self.fleet.use_cases(self._around).gate.admit(asked.turn)
            case "RecordOutcome":
                return self.fleet.use_cases(self._around).gate.record(asked.turn, asked.failure)
            case _:
                return self.fleet.use_cases(self._around).reviewing.review(asked.turn, asked.failure)


class RolloutExecution(MachineExecution):
    """The rollout's own execution."""

    part = ROLLOUT

    def __init__(self, fleet: Fleet, name: str, around: Around, enter: Callable[[str, Event], Turn]) -> None:
        _, _, rollout_and_attempt = name.rpartition(":rollout-")
        rollout, _, attempt = rollout_and_attempt.rpartition("-")
        super().__init__(fleet, name, {"rolloutId": rollout, "attempt": int(attempt)}, around)
        self.rollout = rollout
        self._enter = enter
        self._token = ""
        self._tokens = 0
        self._pending: list[Event] | None = None
        self._at_once = 0
        self.children: list[Turn] = []

    @property
    def awaits_an_operator(self) -> bool:
        return self.running and bool(self._token) and self._token in self.fleet.rollout_executions.waiting

    @property
    def can_go_on(self) -> bool:
        may_enter = bool(self._pending) and len(self.running_children) < self._at_once
        waits = self._pending is not None and not may_enter and bool(self.running_children)
        return self.running and not waits and not self.awaits_an_operator

    @property
    def running_children(self) -> list[Turn]:
        return [child for child in self.children if child.running]

    def end(self, state: State) -> None:
        super().end(state)
        self.fleet.rollout_executions.running.discard(self.name)

    def time_out(self) -> None:
        """The timeout of a day: no operator has given an order."""
        self.fleet.rollout_executions.waiting.discard(self._token)
        self._token = ""
        self._fault(asl.states(machine(self.part))[self.at], "States.Timeout", "")

    def _wait(self, state: asl.State) -> None:
        self.fleet.clock.advance(timedelta(seconds=self._evaluate(state["Seconds"])))

    def _task(self, state: asl.State) -> None:
        if self._token:
            self._token = ""
            self._done(state, {})
            return
        if asl.waits_for_token(state):
            self._tokens += 1
            self.fleet.rollout_executions.waiting.add(self._next_token)
        self._call(state)

    @property
    def _next_token(self) -> str:
        return f"{self.name}#{self._tokens}"

    def _context(self) -> Event:
        return {**super()._context(), "Task": {"Token": self._next_token}}

    def _function(self, name: str, payload: Event) -> Event:
        advancing = self.fleet.use_cases(self._around).advancing
        if name == "AwaitOperator":
            asked = parsed(parse_await_operator_step, payload)
            advancing.await_operator(asked.rollout, asked.attempt, asked.task_token)
            return {}
        asked = parsed(parse_rollout_step, payload)
        if asked.failure is not None:
            return outcome_json(advancing.give_up(asked.rollout, asked.attempt, asked.failure))
        return outcome_json(advancing.advance(asked.rollout, asked.attempt, asked.execution))

    def _answered(self, state: asl.State, result: Event) -> None:
        if asl.waits_for_token(state):
            self._token = self._next_token
        else:
            super()._answered(state, result)

    def _map(self, state: asl.State) -> None:
        """Let in one child a step, as long as there is room; and go on once all have ended."""
        if self._pending is None:
            key = _at(state["ItemReader"]["Parameters"]["Key.$"], self.given, None)
            items = self.fleet.manifests.read(key)
            self._pending = [_selected(state["ItemSelector"], self.given, item) for item in items]
            self.children = []
            self._at_once = state.get("MaxConcurrency") or _at(state["MaxConcurrencyPath"], self.given, None)
        if self._pending:
            name = f"{self.name}/Turn:{self.at}-{self._tokens}-{len(self._pending)}"
            self._tokens += 1
            self.children.append(self._enter(name, self._pending.pop(0)))
        elif not self.running_children:
            self._pending = None
            self._go(state["Next"], self.given)


def _selected(selector: Event, given: Event, item: Item) -> Event:
    return {name.removesuffix(".$"): _at(path, given, item) for name, path in selector.items()}


def _at(path: str, given: Event, item: Item | None) -> Any:
    """The few JSONPaths that the map has."""
    of_item = path.removeprefix("$$.Map.Item.Value.")
    if item is not None and of_item != path:
        return {"tenantId": item.tenant.value, "version": item.version}[of_item]
    return given[path.removeprefix("$.")]
