"""After every operation, the index agrees with the tenant's records, in DynamoDB and in the fake."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from orchestrator.local.emulator import Emulator
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.outcomes import Begun, Busy, Done, GaveUp
from orchestrator.tenants.ports import Pin
from orchestrator.tenants.records import Attempt, Operation, Request, RootCause, Run, Status
from orchestrator.tenants.stack_ports import Stack
from orchestrator.tenants.state import root_cause_of, state_of
from orchestrator.tenants.writes import Transition
from tests.adapters.conftest import TABLE, an_empty_table, client, empty, legacy_in_dynamodb, legacy_in_memory
from tests.adapters.tables import Everything, WholeTable, everything
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    OTHER_QUEUE,
    QUEUE,
    VERSION,
    FakeExecutions,
    FakeStacks,
    InMemoryTable,
    World,
    a_release,
    execution_arn,
    stack_arn,
)

EXAMPLES = 30
"""Each is a story of up to fifteen steps on two tables, one of them in the emulator: it answers faster than moto."""

STACK = stack_arn(ACME)


class Story:
    """One tenant's life on one table. The same steps make the same story on any table."""

    def __init__(self, table: InMemoryTable | WholeTable) -> None:
        self.world = World(table=table, published=())
        self.table, self.executions = table, self.world.executions
        self.clock, self.stacks = self.world.clock, self.world.stacks
        for version in (VERSION, NEXT_VERSION):
            if not table.release(version):
                table.record_release(a_release(version))
        self.holder: Run | None = None
        """The run that owns the tenant, dead or alive."""
        self.vanished = False
        """True if the queue has vanished and no operation has set the state since."""
        self.written: list[Everything] = []
        """Everything there was to see after each write, also after one that was refused."""
        self._look_after_every_write(table)

    def _look_after_every_write(self, table: InMemoryTable | WholeTable) -> None:
        apply = table.apply

        def watched(transition: Transition) -> bool:
            applied = apply(transition)
            self.written.append(everything(table))
            assert len(self.written[-1][-1]) <= 1, f"{ACME} is listed twice after {transition}"
            return applied

        table.apply = watched  # type: ignore[method-assign]

    # Steps

    def ask(self, operation: Operation, version: str, request: Request) -> None:
        """An operation begins, waits its turn, takes over from a dead one, or is refused."""
        run = self._next(operation, version, request)
        self.executions.start(run.attempt, request)
        outcome = self.world.begin(run)
        match outcome:
            case Busy():
                self.executions.end(run.execution)  # Whoever would wait goes away: the story is of one at a time.
            case Begun() | Done():
                self.holder, self.vanished = run, False
            case GaveUp(reason):
                self.holder, self.vanished = run, False
                self._fail(run, reason)

    def succeed(self) -> None:
        if self.holder:
            run = self.holder
            done = Done(STACK, QUEUE, run.attempt.version)
            gone = run.attempt.operation is Operation.DELETE
            stacks = FakeStacks()
            if not gone:
                stacks.let_stand(ACME, done)
            self.world.with_other(stacks=stacks).finish(run, stack=None if gone else done)
            self._end(run)

    def fail(self, stands: bool) -> None:
        """``stands`` is whether the stack is as good as before."""
        if self.holder:
            self.stacks.all.clear()
            if stands:
                self.stacks.plant_done(ACME)
            self._fail(self.holder, "It broke.")

    def die(self) -> None:
        """The execution is aborted: it says nothing any more, and after a while its lock may be taken over."""
        if self.holder:
            self.executions.running.discard(self.holder.execution)
            self.clock.advance(CHECK_HOLDER_AFTER)

    def fail_before_it_began(self, operation: Operation, version: str) -> None:
        if not self.holder:
            self._fail(self._next(operation, version, Request()), "It never began.")

    def describe(self, labels: dict[str, str] | None, pin: Pin) -> None:
        self.table.describe(ACME, labels=labels, pin=pin, request=EXPLICIT, at=self.clock.now())

    def let_the_stack_record_its_queue(self) -> None:
        metadata = self.table.metadata(ACME)
        if metadata and metadata.stack_id in (None, STACK) and metadata.gone_stack_id != STACK:
            stacks = FakeStacks()
            stacks.plant(Stack(STACK, "UPDATE_IN_PROGRESS", "", ACME.value, OTHER_QUEUE, VERSION, ours=True))
            self.world.with_other(stacks=stacks).record_queue(ACME, stack_id=STACK, reported=OTHER_QUEUE)

    def let_the_stack_go(self) -> None:
        metadata = self.table.metadata(ACME)
        served = metadata is not None and metadata.published
        self.stacks.all.clear()
        if self.world.forget_queue(ACME, stack_id=STACK):
            self.vanished |= served

    # Reading

    def check(self) -> Everything:
        """Everything there is to see, and the list is right."""
        seen = everything(self.table)
        metadata, audits, _, _, listed = seen
        assert len(listed) <= 1
        if self.vanished or not listed:
            return seen
        assert (listed[0].state, listed[0].root_cause) == (
            state_of(metadata, audits),
            root_cause_of(metadata, audits),
        )
        assert listed[0].version == (metadata.version if metadata else None)
        return seen

    def _next(self, operation: Operation, version: str, request: Request) -> Run:
        same = [
            audit.attempt
            for audit in self.table.audits(ACME)
            if audit.operation is operation and (operation is Operation.DELETE or audit.version == version)
        ]
        used = [attempt.number for attempt, _ in self.executions.started if attempt.operation is operation]
        attempt = Attempt(ACME, operation, version, 1 + max([*same, *used], default=0))
        return Run(attempt, execution_arn(attempt.name), self.clock.now(), request)

    def _fail(self, run: Run, reason: str) -> None:
        failure = RootCause("Stack", "AWS::CloudFormation::Stack", f"{run.attempt.name}: {reason}")
        self.world.with_other(executions=FakeExecutions()).record_failure(run, failure=failure, failed_stack=None)
        self._end(run)

    def _end(self, run: Run) -> None:
        self.executions.running.discard(run.execution)
        self.holder, self.vanished = None, False


@dataclass(frozen=True)
class Step:
    """One call of a story's."""

    name: str
    given: tuple[object, ...] = ()

    def __call__(self, story: Story) -> None:
        story.clock.advance(timedelta(seconds=1))
        getattr(story, self.name)(*self.given)


versions = st.sampled_from([VERSION, NEXT_VERSION, "9.9.9"])
labels = st.none() | st.dictionaries(st.sampled_from(["tier", "team"]), st.sampled_from(["gold", ""]))
requests = st.builds(
    Request,
    by=st.sampled_from(["", "ada"]),
    explicit=st.booleans(),
    labels=labels,
    pin=st.none() | st.just(VERSION),
    allow_downgrade=st.booleans(),
)
pins = st.sampled_from([Pin(), Pin(VERSION), Pin(lift=True)])
succeed = st.just(Step("succeed"))
steps = st.one_of(
    st.builds(Step, st.just("ask"), st.tuples(st.sampled_from(Operation), versions, requests)),
    succeed,
    st.builds(Step, st.just("fail"), st.tuples(st.booleans())),
    # More of what makes a story go on.
    st.builds(Step, st.just("ask"), st.tuples(st.sampled_from(Operation), st.just(VERSION), st.just(EXPLICIT))),
    succeed,
    st.just(Step("die")),
    st.builds(Step, st.just("fail_before_it_began"), st.tuples(st.sampled_from(Operation), versions)),
    st.builds(Step, st.just("describe"), st.tuples(labels, pins)),
    st.just(Step("let_the_stack_record_its_queue")),
    st.just(Step("let_the_stack_go")),
)
ended = st.sampled_from([Status.SUCCESS, Status.FAILURE])
legacies = st.fixed_dictionaries(
    {
        "served": st.booleans(),
        "audits": st.lists(
            st.tuples(st.just(Operation.CREATE), st.sampled_from(Status), st.none())
            | st.tuples(st.just(Operation.UPDATE), st.sampled_from(Status), st.just("0.1.18"))
            | st.tuples(st.just(Operation.DELETE), ended, st.none()),
            max_size=3,
        ),
    }
)


# A story that fails is told as it is: looking for a shorter one would take minutes.
@settings(max_examples=EXAMPLES, phases=[Phase.generate])
@given(before=st.none() | legacies, taken=st.lists(steps, max_size=15))
def test_both_tables_and_the_index_agree_after_every_write(
    emulator: Emulator, before: dict[str, Any] | None, taken: list[Step]
) -> None:
    empty(emulator)
    dynamodb, memory = an_empty_table(client("dynamodb", emulator)), InMemoryTable()
    stories = [Story(memory), Story(WholeTable(dynamodb, TABLE))]
    for legacy in (legacy_in_memory(memory), legacy_in_dynamodb(dynamodb)):
        if before and before["served"]:
            legacy.metadata(ACME)
        for operation, status, version in before["audits"] if before else ():
            legacy.audit(operation, status, version)
    for step in taken:
        for story in stories:
            step(story)
        in_memory, in_dynamodb = (story.check() for story in stories)
        assert in_memory == in_dynamodb
        one, other = (story.written for story in stories)
        assert one == other, step
