"""The create story over the fakes, crashing before and after every single call that it makes to the outside.

A crash is repeated as the machine's Retry would; a killed execution is followed by the next that getQueue starts.
Whatever happens, the promises hold in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from enum import Enum
from typing import Any, TypeVar, cast

import pytest

from orchestrator.decisions import Ready
from orchestrator.errors import Throttled
from orchestrator.get_queue import SUSPECT_AFTER, GetQueue, Provisioning
from orchestrator.operations import Busy, GaveUp, NotReady, begin, finish, record_failure
from orchestrator.ports import Stack
from orchestrator.queue_metadata import forget_queue, record_queue
from orchestrator.records import Attempt, Operation, RootCause, Run, Status
from orchestrator.tenant_stack import Again, Clearing, Done, Started, Working, await_stack, inspect_stack, start_stack
from tests.fakes import (
    ACME,
    QUEUE,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeQueues,
    FakeStacks,
    InMemoryTable,
    a_release,
)

Port = TypeVar("Port")
Told = TypeVar("Told")

RETRIES = 3
A_MOMENT = timedelta(seconds=5)


class Crash(Exception):
    """A function died. The machine calls it again."""


class Killed(Exception):
    """The execution was aborted. Nobody calls anything again."""


class Moment(Enum):
    BEFORE = "before"
    AFTER = "after"


@dataclass
class Trouble:
    """What befalls the n-th call to the outside."""

    at_call: int = 0
    moment: Moment = Moment.BEFORE
    kind: type[Exception] = Crash
    calls: int = 0

    def around(self, call: Callable[..., Told], *args: Any, **named: Any) -> Told:
        self.calls += 1
        strikes = self.calls == self.at_call
        if strikes and self.moment is Moment.BEFORE:
            raise self.kind
        try:
            return call(*args, **named)
        finally:
            if strikes:
                raise self.kind


class _Troubled:
    def __init__(self, port: object, trouble: Trouble) -> None:
        self._port, self._trouble = port, trouble

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._port, name)
        return lambda *args, **named: self._trouble.around(method, *args, **named)


def troubled(port: Port, trouble: Trouble) -> Port:
    return cast(Port, _Troubled(port, trouble))


@dataclass
class World:
    table: InMemoryTable = field(default_factory=InMemoryTable)
    stacks: FakeStacks = field(default_factory=FakeStacks)
    queues: FakeQueues = field(default_factory=FakeQueues)
    executions: FakeExecutions = field(default_factory=FakeExecutions)
    clock: FakeClock = field(default_factory=FakeClock)

    def __post_init__(self) -> None:
        self.table.record_release(a_release())

    def ask(self) -> object:
        return GetQueue(self.table, self.executions, self.clock, VERSION)(ACME)

    def start(self) -> Run:
        """Have getQueue start an execution, and say which run that is."""
        answer = self.ask()
        assert isinstance(answer, Provisioning)
        number = self.executions.inputs[answer.execution]["attempt"]
        assert isinstance(number, int)
        return Run(Attempt(ACME, Operation.CREATE, VERSION, number), answer.execution, self.clock.now())

    def let_time_pass(self) -> None:
        """CloudFormation goes on, and the stack's own custom resource keeps the metadata true."""
        self.clock.advance(A_MOMENT)
        self.stacks.settle()
        for stack_id, fake in self.stacks.all.items():
            if fake.stack.status == "CREATE_COMPLETE":
                record_queue(ACME, stack_id=stack_id, queue=QUEUE, ledger=self.table, clock=self.clock)
            else:
                forget_queue(ACME, stack_id=stack_id, ledger=self.table)


class CreateTenant:
    """One execution of the machine: its states, in the order in which its file tells them."""

    def __init__(self, world: World, run: Run, trouble: Trouble) -> None:
        self.world, self.run, self.clock = world, run, world.clock
        self.table = troubled(world.table, trouble)
        self.stacks = troubled(world.stacks, trouble)
        self.queues = troubled(world.queues, trouble)
        self.executions = troubled(world.executions, trouble)

    def play(self) -> bool:
        """Whether it succeeded."""
        try:
            failure = self.begin()
            if failure is None:
                stack = self.bring_stack_about()
                failure = stack if isinstance(stack, GaveUp) else self.finish(stack)
            if failure is not None:
                self.record(failure)
            return failure is None
        finally:
            self.world.executions.end(self.run.execution)

    def step(self, work: Callable[[], Told]) -> Told:
        for _ in range(RETRIES):
            try:
                return work()
            except Crash:
                self.clock.advance(A_MOMENT)
        return work()

    def begin(self) -> GaveUp | None:
        while True:
            told = self.step(lambda: begin(self.run, ledger=self.table, executions=self.executions, clock=self.clock))
            if not isinstance(told, Busy):
                return told if isinstance(told, GaveUp) else None
            self.world.let_time_pass()

    def bring_stack_about(self) -> Done | GaveUp:
        while True:
            started = self.step(
                lambda: start_stack(self.run, reader=self.table, releases=self.table, stacks=self.stacks)
            )
            told: Done | Working | Again | GaveUp = Working()
            while isinstance(told, Working):
                told = self.await_and_inspect(started)
            if not isinstance(told, Again):
                return told
            self.world.let_time_pass()

    def await_and_inspect(self, started: Started | Clearing | Again) -> Done | Working | Again | GaveUp:
        stack_id = None if isinstance(started, Again) else started.stack_id
        self.step(
            lambda: await_stack(
                self.run,
                stack_id=stack_id,
                task_token="token",
                ledger=self.table,
                stacks=self.stacks,
                executions=self.executions,
            )
        )
        self.world.let_time_pass()
        return self.step(
            lambda: inspect_stack(
                self.run,
                stack_id=stack_id,
                clearing=isinstance(started, Clearing),
                why_not=started.reason if isinstance(started, Again) else "",
                stacks=self.stacks,
                clock=self.clock,
            )
        )

    def finish(self, stack: Done) -> GaveUp | None:
        while True:
            told = self.step(
                lambda: finish(
                    self.run,
                    stack_id=stack.stack_id,
                    queue=stack.queue,
                    version=stack.version,
                    ledger=self.table,
                    queues=self.queues,
                    clock=self.clock,
                )
            )
            if not isinstance(told, NotReady):
                return told if isinstance(told, GaveUp) else None
            self.world.let_time_pass()

    def record(self, failure: GaveUp) -> None:
        self.step(
            lambda: record_failure(
                self.run,
                failure=RootCause(ACME.stack_name, "AWS::CloudFormation::Stack", failure.reason),
                failed_stack=failure.failed_stack,
                ledger=self.table,
                stacks=self.stacks,
                clock=self.clock,
            )
        )


def play(world: World, run: Run, trouble: Trouble) -> bool:
    return CreateTenant(world, run, trouble).play()


# The stories: what the world is like when a tenant is first asked for.


def nothing_there() -> World:
    return World()


def remains_of_a_failed_creation() -> World:
    world = World()
    world.stacks.plant(Stack(world.stacks.stack_id(ACME), "ROLLBACK_COMPLETE", "", "acme", None, None))
    return world


def a_stack_that_nobody_published() -> World:
    world = World()
    world.stacks.plant(Stack(world.stacks.stack_id(ACME), "CREATE_COMPLETE", "", "acme", QUEUE, VERSION))
    return world


def a_throttling_cloudformation() -> World:
    world = World()
    world.stacks.throttled_calls = 3
    return world


def a_queue_that_takes_its_time() -> World:
    return World(queues=FakeQueues(silent_for=2))


def a_template_that_cannot_be_created() -> World:
    world = World()
    world.stacks.failures.append("Access denied.")
    return world


SUCCEEDING = (
    nothing_there,
    remains_of_a_failed_creation,
    a_stack_that_nobody_published,
    a_throttling_cloudformation,
    a_queue_that_takes_its_time,
)
FAILING = (a_template_that_cannot_be_created,)


def calls_of(story: Callable[[], World]) -> int:
    """How many calls to the outside it takes when nothing goes wrong."""
    world, trouble = story(), Trouble()
    play(world, world.start(), trouble)
    return trouble.calls


def every_trouble(*stories: Callable[[], World]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        ("story", "at_call", "moment"),
        [
            pytest.param(story, at_call, moment, id=f"{story.__name__}-{moment.value} call {at_call}")
            for story in stories
            for at_call in range(1, calls_of(story) + 1)
            for moment in Moment
        ],
    )


def assert_the_promises_hold(world: World, outcome: Status) -> None:
    assert len(world.stacks.living) == 1
    assert world.table.lock(ACME) is None
    (audit,) = world.table.audits(ACME)
    assert audit.status is outcome

    metadata = world.table.metadata(ACME)
    if outcome is Status.SUCCESS:
        assert metadata is not None
        (stack,) = world.stacks.living
        assert (metadata.queue, metadata.stack_id, metadata.version) == (stack.queue, stack.stack_id, stack.version)
        assert isinstance(world.ask(), Ready)
    else:
        assert metadata is None
        assert audit.root_cause == RootCause("InboundQueue", "AWS::SQS::Queue", "Access denied.")


def told_of(world: World, execution: str) -> list[Status]:
    return [entry.status for entry in world.table.history(ACME) if entry.execution == execution]


@pytest.mark.parametrize("story", [*SUCCEEDING, *FAILING], ids=lambda story: story.__name__)
def test_undisturbed_the_story_ends_as_it_should(story: Callable[[], World]) -> None:
    world = story()
    succeeded = play(world, world.start(), Trouble())
    assert succeeded == (story in SUCCEEDING)
    assert_the_promises_hold(world, Status.SUCCESS if succeeded else Status.FAILURE)


@every_trouble(*SUCCEEDING, *FAILING)
def test_a_crash_anywhere_has_the_effect_of_none(story: Callable[[], World], at_call: int, moment: Moment) -> None:
    world, trouble = story(), Trouble(at_call, moment)
    run = world.start()

    succeeded = play(world, run, trouble)

    assert trouble.calls > at_call
    assert succeeded == (story in SUCCEEDING)
    outcome = Status.SUCCESS if succeeded else Status.FAILURE
    assert_the_promises_hold(world, outcome)
    assert told_of(world, run.execution) == [Status.STARTED, outcome]
    assert len(world.table.history(ACME)) == 2


@every_trouble(*SUCCEEDING)
def test_an_execution_that_is_killed_anywhere_is_healed_by_asking_again(
    story: Callable[[], World], at_call: int, moment: Moment
) -> None:
    world = story()
    killed = world.start()
    with pytest.raises(Killed):
        play(world, killed, Trouble(at_call, moment, Killed))
    world.clock.advance(SUSPECT_AFTER + A_MOMENT)
    world.let_time_pass()

    if not isinstance(world.ask(), Ready):
        successor = world.start()
        assert successor != killed
        assert play(world, successor, Trouble())
        assert told_of(world, successor.execution) == [Status.STARTED, Status.SUCCESS]

    assert_the_promises_hold(world, Status.SUCCESS)
    began = told_of(world, killed.execution)
    assert began in ([], [Status.STARTED, Status.FAILURE], [Status.STARTED, Status.SUCCESS])


def test_throttling_never_fails_a_run_by_itself() -> None:
    world = World()
    world.stacks.throttled_calls = 40
    assert play(world, world.start(), Trouble())
    assert_the_promises_hold(world, Status.SUCCESS)


def test_the_trouble_strikes_where_it_is_told_to() -> None:
    heard: list[str] = []
    before, after = Trouble(2, Moment.BEFORE), Trouble(2, Moment.AFTER)
    for trouble in (before, after):
        trouble.around(heard.append, "first")
        with pytest.raises(Crash):
            trouble.around(heard.append, trouble.moment.value)
    assert heard == ["first", "first", "after"]
    with pytest.raises(Throttled):
        Trouble(1, Moment.BEFORE, Throttled).around(heard.append, "never")
