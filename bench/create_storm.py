"""Simulates thousands of creates that are requested at once, on a virtual clock, with and without the gate.

AWS and the machine's steps are simulated: ``statemachines/create_tenant.asl.json`` and the calls of its functions. The
product's own code gives the turns: :mod:`orchestrator.rollouts.create_gate` and ``create_turns``.
"""

from __future__ import annotations

import heapq
from collections.abc import Generator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace

from bench.measure import Result
from bench.rollout_simulation import floor
from bench.simulated_aws import FAULTY, QUIET, Conditions, Quota, SimulatedAws, Steps
from bench.simulated_ledger import SimulatedTenants
from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.create_gate import CreateGate
from orchestrator.rollouts.create_turns import CreateTurns, Ticket
from orchestrator.tenants.deadlines import DEADLINE, MAX_WAIT_FOR_TURN
from orchestrator.tenants.records import Attempt, Lock, Operation, Run

CREATES = 10_000
MAX_STATES = 12
"""The aim for the average number of states that a create enters. Without a wait it enters five."""

DESCRIPTIONS_PER_SECOND, DESCRIPTIONS_BURST = 15.0, 300.0
"""Step Functions' quota of DescribeExecution in a large region. Begin calls it once."""

_RETRY_REQUEST = 5.0
"""The seconds after which a caller repeats a request that was throttled: RETRY_AFTER_SECONDS."""
_AWAIT_STACK_SECONDS = 120.0
_A_MINUTE = 60.0


class SimulatedTurns:
    """Implements :class:`orchestrator.rollouts.ports.CreateTurnRows`."""

    def __init__(self, aws: SimulatedAws) -> None:
        self._aws = aws
        self._turns: CreateTurns | None = None
        self._latest = 0
        self._numbers: list[int] = []
        self._tickets: dict[int, Ticket] = {}

    def turns(self) -> CreateTurns | None:
        return self._turns

    def store(self, turns: CreateTurns) -> bool:
        if self._aws.chance.random() < self._aws.conditions.overtaken:
            return False
        self._turns = replace(turns, revision=turns.revision + 1)
        return True

    def draw_number(self) -> int:
        self._latest += 1
        return self._latest

    def put_ticket(self, ticket: Ticket) -> None:
        if ticket.number not in self._tickets:
            heapq.heappush(self._numbers, ticket.number)
        self._tickets[ticket.number] = ticket

    def first_ticket(self) -> Ticket | None:
        while self._numbers and self._numbers[0] not in self._tickets:
            heapq.heappop(self._numbers)
        return self._tickets[self._numbers[0]] if self._numbers else None

    def remove_ticket(self, ticket: Ticket) -> None:
        if self._tickets.get(ticket.number) == ticket:
            del self._tickets[ticket.number]


class StormTenants(SimulatedTenants):
    """The tenants that are being created: only their locks matter."""

    def __init__(self, aws: SimulatedAws) -> None:
        super().__init__((), aws.clock)
        self.locks: dict[TenantId, Lock] = {}

    def lock(self, tenant: TenantId) -> Lock | None:
        return self.locks.get(tenant)


@dataclass(slots=True)
class Ran:
    """The result of one simulated storm."""

    seconds: float = 0.0
    """The time until the last create has ended."""
    floor: float = 0.0
    """The time that one mutating call per create takes."""
    succeeded: int = 0
    failed_by_throttling: int = 0
    given_up_calls: int = 0
    """Calls of CloudFormation that were throttled at every attempt of the SDK."""
    states: list[int] = field(default_factory=list)
    """The number of states that each create has entered."""
    told: list[tuple[float, float]] = field(default_factory=list)
    """For each create that waited: the seconds that it was told, and the seconds that it waited."""

    @property
    def mean_states(self) -> float:
        return sum(self.states) / len(self.states)

    @property
    def ratio(self) -> float:
        return self.seconds / self.floor


class Storm:
    def __init__(self, creates: int, conditions: Conditions, seed: int, *, gated: bool) -> None:
        self.aws = SimulatedAws(conditions, seed)
        self._creates, self._gated = creates, gated
        self._descriptions = Quota(DESCRIPTIONS_PER_SECOND, DESCRIPTIONS_BURST)
        self._tenants = StormTenants(self.aws)
        self._gate = CreateGate(SimulatedTurns(self.aws), self.aws, self._tenants, self._wake, self.aws.clock)
        self._asleep: dict[str, Steps] = {}
        self._processes: dict[str, Steps] = {}
        self._ran = Ran(floor=floor(creates, conditions))

    def run(self) -> Ran:
        for number in range(self._creates):
            tenant = TenantId(f"tenant-{number}")
            steps = self._create(tenant)
            self._processes[tenant.value] = steps
            self.aws.go_on(steps, self.aws.between(0.0, 1.0))
        self.aws.run()
        self._ran.seconds, self._ran.given_up_calls = self.aws.clock.seconds, self.aws.throttled
        return self._ran

    def _wake(self, task_token: str, _result: Mapping[str, object] | None) -> bool:
        steps = self._asleep.pop(task_token, None)
        if steps is not None:
            self.aws.go_on(steps, 0.1)
        return steps is not None

    def _create(self, tenant: TenantId) -> Steps:
        aws = self.aws
        while not aws.executions.take(aws.clock.seconds):
            yield _RETRY_REQUEST * aws.between(0.8, 1.2)  # The caller is asked to try again.
        attempt = Attempt(tenant, Operation.CREATE, "1.0.0", 1)
        run = Run(attempt, f"arn:aws:states:us-east-1:000000000000:execution:create:{attempt.name}", aws.clock.now())
        states = _Counted(aws)
        succeeded = yield from self._execute(run, states)
        self._ran.states.append(states.count)
        self._ran.succeeded += succeeded
        self._ran.failed_by_throttling += not succeeded

    def _execute(self, run: Run, states: _Counted) -> Generator[float | None, None, bool]:
        aws, started = self.aws, self.aws.clock.seconds
        while True:
            yield from states.enter(2)  # Begin, HasBegun
            yield aws.function()
            begun = yield from self._begin(run, states)
            if begun:
                break
            if aws.clock.now() - run.started_at > MAX_WAIT_FOR_TURN:
                yield from states.enter(2)  # RecordFailure, Failed
                return False
        started_at = aws.clock.seconds if self._gated else started
        self._tenants.locks[run.tenant] = Lock(run, None)
        succeeded = yield from self._provision(started_at, states)
        yield aws.function()
        del self._tenants.locks[run.tenant]
        if self._gated:
            self._gate.leave(run.execution, succeeded=succeeded)
        return succeeded

    def _begin(self, run: Run, states: _Counted) -> Generator[float | None, None, bool]:
        """True once the create has its turn, and the lock."""
        aws = self.aws
        if self._gated and self._gate.admit(run) is None:
            yield from states.enter()  # AwaitAdmission
            yield aws.function()
            place = self._gate.place(None)
            asked_at, told = aws.clock.seconds, (place.expected_at - aws.clock.now()).total_seconds()
            token = f"{run.tenant}"
            self._asleep[token] = self._processes[run.tenant.value]
            self._gate.queue(run, place, token)
            yield None  # A create that ends wakes this one. In the simulation no call is lost.
            self._ran.told.append((told, aws.clock.seconds - asked_at))
            return False
        if not self._descriptions.take(aws.clock.seconds):
            yield from states.enter()  # AwaitTurn
            yield 2.0 + int(aws.chance.random() * 4)
            return False
        return True

    def _provision(self, started_at: float, states: _Counted) -> Generator[float | None, None, bool]:
        """The states from StartStack on. ``False`` if CloudFormation throttled until the deadline."""
        aws = self.aws
        while True:
            yield from states.enter(2)  # StartStack, HasSettled
            yield aws.function()
            # DescribeStacks, by the stack's name, then CreateStack.
            if (yield from aws.call(aws.reads)) and (yield from aws.call(aws.mutations)):
                break
            if aws.clock.seconds - started_at > DEADLINE.total_seconds():
                yield from states.enter(2)  # RecordFailure, Failed
                return False
            yield from states.enter()  # PauseBeforeStart
            yield 1.0 + int(aws.chance.random() * 10)
        slow = aws.chance.random() < aws.conditions.slow
        yield aws.conditions.stack_seconds * aws.between(0.8, 1.2) * (10 if slow else 1) + aws.between(0.5, 2.0)
        while not (yield from aws.call(aws.reads)):  # The event's function inspects the stack.
            yield _AWAIT_STACK_SECONDS
            yield from states.enter(3)  # InspectStack, HasSettled, AwaitStack
        yield from states.enter()  # Finish
        return True


class _Counted:
    """Counts the states that one create enters."""

    def __init__(self, aws: SimulatedAws) -> None:
        self._aws = aws
        self.count = 0

    def enter(self, states: int = 1) -> Steps:
        self.count += states
        yield from self._aws.enter(states)


def simulate(creates: int, conditions: Conditions, seed: int, *, gated: bool) -> Ran:
    return Storm(creates, conditions, seed, gated=gated).run()


CASES = (
    ("with the gate, quiet", QUIET, True),
    ("with the gate, with faults", FAULTY, True),
    ("without the gate, quiet", QUIET, False),
)


def create_storm() -> list[Result]:
    with ProcessPoolExecutor() as pool:
        return [result for results in pool.map(_case, CASES) for result in results]


def _case(case: tuple[str, Conditions, bool]) -> list[Result]:
    how, conditions, gated = case
    return _results(how, simulate(CREATES, conditions, 1, gated=gated), gated=gated)


def _results(how: str, ran: Ran, *, gated: bool) -> list[Result]:
    name = f"{CREATES:,} creates at once, {how}"
    results = [
        Result(f"{name}: failed because of throttling", ran.failed_by_throttling, "", "0" if gated else ""),
        Result(f"{name}: succeeded", ran.succeeded, "", ""),
        Result(f"{name}: time / one mutating call per create", round(ran.ratio, 3), "x", "<= 1.10" if gated else ""),
        Result(f"{name}: time", round(ran.seconds / 60, 1), "min", ""),
        Result(f"{name}: states that a create enters, mean", round(ran.mean_states, 1), "", f"<= {MAX_STATES}" * gated),
        Result(f"{name}: states that a create enters, most", max(ran.states), "", ""),
        Result(f"{name}: calls given up as throttled", ran.given_up_calls, "", ""),
    ]
    if ran.told:
        off = sorted(abs(told - waited) / waited for told, waited in ran.told if waited > _A_MINUTE)
        results.append(
            Result(f"{name}: error of the wait that callers are told, p50", round(100 * off[len(off) // 2]), "%", "")
        )
    return results
