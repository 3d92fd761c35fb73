"""Simulates a rollout over a fleet that is too large for the emulator, on a virtual clock.

AWS and the machines' steps are simulated. The product's own code decides which tenants are admitted and when, and what
their outcomes mean: :mod:`orchestrator.rollouts.selecting`, ``pacing``, ``gate`` and ``advancing``.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Generator, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass

from bench.measure import Result
from bench.simulated_aws import FAULTY, QUIET, Conditions, SimulatedAws, Steps
from bench.simulated_ledger import (
    NEW,
    OLD,
    NoAlarms,
    NoOperator,
    NothingWithdrawn,
    SimulatedManifests,
    SimulatedRollouts,
    SimulatedTenants,
)
from bench.simulated_update import SimulatedUpdate
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.states import Promoter, PromotionMode, PublishedVersions, ReleaseChooser
from orchestrator.rollouts.advancing import Advancing, Bake, NotSucceeded, RunStage, Succeeded
from orchestrator.rollouts.documents import spec_from
from orchestrator.rollouts.gate import Admitted, Gate, NoRoom, TryAgain
from orchestrator.rollouts.planning import plan
from orchestrator.rollouts.records import Item, Turn
from orchestrator.rollouts.selecting import Candidate, select
from orchestrator.tenants.records import TenantState

TENANTS_PER_ACCOUNT = 2_000
ACCOUNTS = 50
MAX_CONCURRENCY = 50

CEILINGS = (1, 5, 50)
"""Concurrency limits of a stage: two cautious ones, and the default."""
TENANTS_PER_CEILING = 500
MAX_TURN_TRANSITIONS = 20

MAX_EVENTS = 25_000
MAX_STATE_BYTES = 256 * 1024

_ID = "20260101-000000-0000"
_EXECUTION = "arn:aws:states:us-east-1:000000000000:execution:rollout:rollout-1"
_DOCUMENT = {
    "version": NEW,
    "stages": [
        {"size": "1", "tolerated": "0", "bakeSeconds": 0},
        {"size": "10%", "tolerated": "5%", "bakeSeconds": 0},
        {"size": "rest", "tolerated": "5%", "bakeSeconds": 0},
    ],
}

# The number of events that a state adds to the history of its execution.
_TASK, _CHOICE, _WAIT, _MAP, _FIRST_AND_LAST = 5, 2, 2, 6, 5
_AGAIN_SECONDS = 5
"""The pause before a child retries its tenant."""


@dataclass(frozen=True, slots=True)
class Ran:
    """The result of one simulated rollout."""

    status: str
    seconds: float
    floor: float
    """The seconds that one mutating call per tenant needs: no update can do with fewer calls."""
    last_stacks_seconds: float
    """The part of the time in which stages only waited for their last stacks."""
    even_pace_seconds: float
    """The seconds that the same stacks need if one after the other is started at an even pace, and nothing else takes
    time. A stage cannot end before its last stack, and nobody knows beforehand which stacks are slow."""
    peak_in_flight: int
    throttled_calls: int
    given_up_calls: int
    """Calls that were throttled at every attempt of the SDK. The pace adapts to these."""
    succeeded: int
    failed: int
    failed_by_throttling: int
    events: int
    """The number of events in the history of the rollout's own execution."""
    child_events: int
    """The number of events in the history of the child that waited longest."""
    turn_transitions: float
    """The average number of states that a child enters: the costs of a tenant's turn besides its update."""
    state_bytes: int
    limits: tuple[tuple[float, float], ...]
    """The concurrency limits, each with the time from which it applied."""

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor

    @property
    def ratio_to_even_pace(self) -> float:
        return self.seconds / self.even_pace_seconds

    @property
    def ratio_without_last_stacks(self) -> float:
        """The part that depends on the pace. A stage cannot end before its last stack, however the stage is paced."""
        return (self.seconds - self.last_stacks_seconds) / self.floor


class SimulatedRollout:
    def __init__(self, tenants: int, conditions: Conditions, seed: int, max_concurrency: int = MAX_CONCURRENCY) -> None:
        self.aws = SimulatedAws(conditions, seed)
        spec = spec_from(_DOCUMENT, max_concurrency=max_concurrency)
        fleet = [TenantId(f"tenant-{seed}-{number}") for number in range(tenants)]
        candidates = [Candidate(each, TenantState.READY, OLD, None, {}) for each in fleet]
        selected = select(spec, NEW, candidates)
        self._place = {item.tenant: place for place, item in enumerate(selected.items)}
        self._tenants = SimulatedTenants(fleet, self.aws.clock)
        self._manifests = SimulatedManifests()
        now = self.aws.clock.now()
        rollout, stages = plan(_ID, spec, selected, by="bench", at=now, manifests=self._manifests)
        self._ledger = SimulatedRollouts(rollout, stages, self.aws.chance, conditions.overtaken)
        clock, releases = self.aws.clock, NothingWithdrawn()
        self._gate = Gate(self._ledger, self._tenants, self.aws, clock, releases)
        chooser = ReleaseChooser(releases, PublishedVersions(releases), NEW, PromotionMode.ON_DEPLOY)
        self._advancing = Advancing(
            self._ledger,
            self._tenants,
            self._manifests,
            NoAlarms(),
            self.aws,
            NoOperator(),
            clock,
            Promoter(chooser),
        )
        self._rollout = self._machine()
        self._slots = 0
        self._in_flight = self._peak = 0
        self._events, self._child_events, self._state_bytes = _FIRST_AND_LAST, 0, 0
        self._turn_transitions = 0
        self._limits: list[tuple[float, float]] = []
        self._stacks: dict[int, list[tuple[float, float]]] = {}
        """By stage: when the change of each stack began, and how long it took."""
        self._ended_at = self._last_stacks_seconds = 0.0

    def run(self) -> Ran:
        self.aws.go_on(self._rollout)
        self.aws.run()
        rollout = self._ledger.rollout(_ID)
        assert rollout is not None
        failures = self._ledger.failures(_ID, limit=len(self._place))
        return Ran(
            status=rollout.status.value,
            seconds=self._ended_at,
            floor=floor(len(self._place), self.aws.conditions),
            last_stacks_seconds=self._last_stacks_seconds,
            even_pace_seconds=sum(map(self._even_pace_seconds, self._stacks.values())),
            peak_in_flight=self._peak,
            throttled_calls=self.aws.refused,
            given_up_calls=self.aws.throttled,
            succeeded=sum(stage.succeeded for stage in self._ledger.stages(_ID)),
            failed=len(failures),
            failed_by_throttling=sum(not self._fails(each.item) for each in failures),
            events=self._events,
            child_events=self._child_events,
            turn_transitions=self._turn_transitions / len(self._place),
            state_bytes=self._state_bytes,
            limits=tuple(self._limits),
        )

    def _even_pace_seconds(self, stacks: Iterable[tuple[float, float]]) -> float:
        between = 1 / self.aws.conditions.mutations_per_second
        return max(place * between + took for place, (_, took) in enumerate(sorted(stacks)))

    def _machine(self) -> Steps:
        """``statemachines/rollout.asl.json``."""
        while True:
            yield from self.aws.enter(2)  # Advance, WhatNext
            yield self.aws.function()
            step = self._advancing.advance(_ID, 1, _EXECUTION)
            self._see({"rolloutId": _ID, "outcome": step.outcome, **asdict(step)})
            self._events += _TASK + _CHOICE
            match step:
                case Succeeded() | NotSucceeded():
                    self._ended_at = self.aws.clock.seconds
                    return
                case RunStage():
                    self._events += _MAP
                    yield from self._map(step)
                    self._last_stacks_seconds += self.aws.clock.seconds - self.aws.mutations.granted_at
                case Bake(seconds):
                    self._events += _WAIT
                    yield float(seconds)
                case _:
                    raise RuntimeError(f"The simulation has no operator to wait for: {step}")

    def _map(self, step: RunStage) -> Steps:
        """A Distributed Map: runs children up to its concurrency, and starts another whenever one has ended."""
        waiting = iter(self._manifests.read(step.manifest))
        yield self.aws.between(1.0, 3.0)  # It reads its list.
        self._slots = step.max_concurrency
        for _ in range(step.max_concurrency):
            self.aws.go_on(self._slot(step.stage, waiting), self.aws.between(0.0, 1.0))
        yield None  # The last slot resumes it.

    def _slot(self, stage: int, waiting: Iterator[Item]) -> Steps:
        for item in waiting:
            yield from self._child(Turn(_ID, stage, item, execution=f"{_EXECUTION}/{stage}/{item.tenant}"))
            yield self.aws.between(0.1, 0.3)  # Until the map starts the next.
        self._slots -= 1
        if not self._slots:
            self.aws.go_on(self._rollout)

    def _enter(self, states: int = 1) -> Steps:
        """Enter and count states of a child."""
        self._turn_transitions += states
        yield from self.aws.enter(states)

    def _child(self, turn: Turn) -> Steps:
        """The map's ItemProcessor: admits the tenant, upgrades it, and records the outcome."""
        aws, events = self.aws, _FIRST_AND_LAST
        yield from aws.start_execution()
        yield from self._enter()  # Enter
        while True:
            yield from self._enter(2)  # Admit, IsAdmitted
            yield aws.function()
            events += _TASK + _CHOICE
            match self._gate.admit(turn):
                case NoRoom(seconds):
                    yield from self._enter()  # AwaitTurn
                    events += _WAIT
                    yield math.ceil(aws.between(0.5, 1.5) * seconds)
                case Admitted() as admitted:
                    events += 2 * _TASK + _CHOICE
                    if not (yield from self._upgrade(turn, admitted)):
                        break
                    yield from self._enter()  # AwaitTurn
                    events += _WAIT
                    yield math.ceil(aws.between(0.5, 1.5) * _AGAIN_SECONDS)
                case _:
                    break
        yield from self._enter()  # Done
        self._child_events = max(self._child_events, events)

    def _upgrade(self, turn: Turn, admitted: Admitted) -> Generator[float | None, None, bool]:
        """Upgrade the tenant. Returns true if it has to be tried again."""
        aws, item = self.aws, turn.item
        self._in_flight += 1
        self._peak = max(self._peak, self._in_flight)
        self._see({**asdict(admitted), "turn": asdict(turn)})
        yield from self._enter()  # Upgrade
        yield from aws.start_execution()
        number = int(admitted.name.rpartition("-")[2])
        slow = aws.chance.random() < aws.conditions.slow
        update = SimulatedUpdate(aws, self._tenants, item.tenant, number, self._fails(item), slow)
        yield from update.run()
        if update.changed_at is not None and update.settled_at is not None:
            took = update.settled_at - update.changed_at
            self._stacks.setdefault(turn.stage, []).append((update.changed_at, took))
        yield aws.between(0.2, 1.0)  # The delay until the child is notified of the execution's end.
        yield from self._enter(2)  # RecordOutcome, IsRecorded
        yield aws.function()
        recorded = self._gate.record(turn)
        self._in_flight -= 1
        stage = self._ledger.stage(_ID, turn.stage)
        assert stage is not None
        if not self._limits or self._limits[-1][1] != stage.pace.limit:
            self._limits.append((aws.clock.seconds, stage.pace.limit))
        return isinstance(recorded, TryAgain)

    def _fails(self, item: Item) -> bool:
        """Failures are spread evenly, and not among the first tenants, so that the rollout does not halt."""
        every = round(1 / self.aws.conditions.failing) if self.aws.conditions.failing else 0
        return bool(every) and self._place[item.tenant] % every == every // 2

    def _see(self, document: object) -> None:
        self._state_bytes = max(self._state_bytes, len(json.dumps(document, default=str)))


def floor(tenants: int, conditions: Conditions) -> float:
    """The minimum seconds of a rollout that calls UpdateStack once per tenant, and makes no other call.

    It does not depend on how Berth makes its updates, so that a design with fewer calls is seen to be faster. The other
    quotas allow more: CloudFormation's for reading calls, and Step Functions' for executions and transitions.
    """
    return _seconds(tenants, conditions.mutations_per_second, conditions)


def _seconds(calls: int, per_second: float, conditions: Conditions) -> float:
    if conditions.drops_to_after is None:
        return calls / per_second
    part, after = conditions.drops_to_after
    return (
        calls / per_second
        if calls <= after * per_second
        else after + (calls - after * per_second) / (per_second * part)
    )


def simulate(tenants: int, conditions: Conditions, seed: int, max_concurrency: int = MAX_CONCURRENCY) -> Ran:
    return SimulatedRollout(tenants, conditions, seed, max_concurrency).run()


def rollout_simulation() -> list[Result]:
    accounts = range(1, ACCOUNTS + 1)
    with ProcessPoolExecutor() as pool:
        quiet, faulty = (list(pool.map(_account, itertools.repeat(each), accounts)) for each in (QUIET, FAULTY))
    one, all_of_them = (
        f"rollout of {TENANTS_PER_ACCOUNT:,} tenants",
        f"rollout of {TENANTS_PER_ACCOUNT * ACCOUNTS:,} tenants in {ACCOUNTS} accounts",
    )
    return [
        *_results(f"{one}, quiet", quiet[:1], "<= 1.05"),
        *_results(f"{one}, with faults", faulty[:1], "<= 1.10"),
        *_results(f"{all_of_them}, quiet", quiet, "<= 1.10"),
        *_results(f"{all_of_them}, with faults", faulty, "<= 1.10"),
    ]


def rollout_ceilings() -> list[Result]:
    """The costs of a turn, for several concurrency limits."""
    with ProcessPoolExecutor() as pool:
        ran = dict(zip(CEILINGS, pool.map(_with_ceiling, CEILINGS), strict=True))
    return [result for ceiling, each in ran.items() for result in _ceiling_results(ceiling, each)]


def _with_ceiling(ceiling: int) -> Ran:
    return simulate(TENANTS_PER_CEILING, FAULTY, 1, ceiling)


def _ceiling_results(ceiling: int, ran: Ran) -> list[Result]:
    name = f"rollout of {TENANTS_PER_CEILING} tenants, at most {ceiling} at once"
    transitions = round(ran.turn_transitions, 1)
    return [
        Result(f"{name}: transitions per turn, without the update's", transitions, "", f"<= {MAX_TURN_TRANSITIONS}"),
        Result(f"{name}: history events of a child", ran.child_events, "", f"<= {MAX_EVENTS}"),
        Result(f"{name}: time", round(ran.seconds / 60, 1), "min", ""),
    ]


def _account(conditions: Conditions, seed: int) -> Ran:
    return simulate(TENANTS_PER_ACCOUNT, conditions, seed)


def _results(name: str, ran: Sequence[Ran], aim: str) -> list[Result]:
    """Results of several independent accounts: the slowest, the maximum, or the sum."""
    slowest = max(ran, key=lambda each: each.seconds)
    expected = sum(each.succeeded + each.failed for each in ran)
    return [
        Result(f"{name}: time / one mutating call per tenant", round(slowest.ratio, 3), "x", aim),
        Result(
            f"{name}: the same without waiting for stages' last stacks",
            round(max(each.ratio_without_last_stacks for each in ran), 3),
            "x",
            aim,
        ),
        Result(
            f"{name}: time / the same stacks, started at an even pace",
            round(max(each.ratio_to_even_pace for each in ran), 3),
            "x",
            aim,
        ),
        Result(f"{name}: time", round(slowest.seconds / 60, 1), "min", ""),
        Result(
            f"{name}: of it, waiting for stages' last stacks", round(slowest.last_stacks_seconds / 60, 1), "min", ""
        ),
        Result(f"{name}: what one mutating call per tenant takes", round(slowest.floor / 60, 1), "min", ""),
        Result(f"{name}: most in flight", max(each.peak_in_flight for each in ran), "", ""),
        Result(f"{name}: throttled calls", sum(each.throttled_calls for each in ran), "", ""),
        Result(f"{name}: calls given up as throttled", sum(each.given_up_calls for each in ran), "", ""),
        Result(f"{name}: tenants that had their turn", expected, "", ""),
        Result(f"{name}: failed tenants", sum(each.failed for each in ran), "", ""),
        Result(f"{name}: failed because of throttling", sum(each.failed_by_throttling for each in ran), "", "0"),
        Result(f"{name}: history events", max(each.events for each in ran), "", f"<= {MAX_EVENTS}"),
        Result(f"{name}: history events of a child", max(each.child_events for each in ran), "", f"<= {MAX_EVENTS}"),
        Result(f"{name}: largest state", max(each.state_bytes for each in ran), "bytes", f"<= {MAX_STATE_BYTES}"),
    ]
