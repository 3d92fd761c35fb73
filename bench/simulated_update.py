"""Simulates one tenant's update: the states of ``statemachines/update_tenant.asl.json``, and their functions' calls.

The calls are those that the functions really make: one call that changes something (UpdateStack), and two that read
(DescribeStacks in StartStack, and when CloudFormation's event arrives). Until a change set of this move was reviewed,
an update makes two calls that change something (CreateChangeSet, ExecuteChangeSet) and three more that read
(DescribeStacks in another StartStack, DescribeChangeSet and GetTemplate).
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass

from bench.simulated_aws import SimulatedAws
from bench.simulated_ledger import SimulatedTenants
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.deadlines import DEADLINE
from orchestrator.tenants.records import THROTTLING, RootCause

MUTATIONS, READS = 1, 2
"""The numbers of calls of an update whose move was reviewed before."""
REVIEWED_MUTATIONS, REVIEWED_READS = 2, 5
"""The numbers of calls of an update that is reviewed by a change set of its own."""

_AWAIT_REVIEW_SECONDS = 3.0
_AWAIT_STACK_SECONDS = 120.0

_STARTED, _REVIEWING, _AGAIN = "started", "reviewing", "again"
_DONE, _WORKING, _FAILED = "done", "working", "failed"

Outcome = Generator[float | None, None, str]


@dataclass(slots=True)
class SimulatedUpdate:
    aws: SimulatedAws
    tenants: SimulatedTenants
    tenant: TenantId
    attempt: int
    fails: bool
    slow: bool
    reviewable_at: float | None = None
    """The time when the change set is ready, once it was created."""
    changed_at: float | None = None
    """The time when the change of the stack began."""
    settled_at: float | None = None
    """The time when the stack has settled, once its change has begun."""

    def run(self) -> Generator[float | None, None, None]:
        aws, started_at = self.aws, self.aws.clock.seconds
        yield from self._state(states=2)  # Begin, HasBegun
        self.tenants.begin(self.tenant, self.attempt)
        while True:
            outcome = yield from self._start_and_inspect()
            if outcome == _DONE:
                yield from self._state()  # Finish
                self.tenants.finish(self.tenant, self.attempt)
                return
            if outcome == _FAILED:
                cause = RootCause("InboundQueue", "AWS::SQS::Queue", "It could not be changed.")
                return (yield from self._record_failure(cause))
            if aws.clock.seconds - started_at > DEADLINE.total_seconds():
                return (yield from self._record_failure(RootCause("", THROTTLING, "Never had the time.")))
            yield from aws.enter()  # AwaitReview or PauseBeforeStart
            yield _AWAIT_REVIEW_SECONDS if outcome == _REVIEWING else 1.0 + int(aws.chance.random() * 10)

    def _create_change_set(self) -> Outcome:
        if not (yield from self.aws.call(self.aws.mutations)):
            return _AGAIN
        self.reviewable_at = self.aws.clock.seconds + self._review_seconds()
        return _REVIEWING

    def _start_and_inspect(self) -> Outcome:
        """Start the change, and wait until the stack has settled or the change has to be started again."""
        yield from self._state(states=2)  # StartStack, HasSettled
        started = yield from self._start()
        if started != _STARTED:
            return started
        outcome = yield from self._await_event()
        while outcome == _WORKING:
            # The inspection of the event was throttled, so the timeout ends the wait.
            yield _AWAIT_STACK_SECONDS
            yield from self._state(states=2)  # InspectStack, HasSettled
            outcome = yield from self._inspect()
            if outcome == _WORKING:
                yield from self._state()  # AwaitStack
        return outcome

    def _start(self) -> Outcome:
        aws = self.aws
        if not (yield from aws.call(aws.reads)):
            return _AGAIN
        if self.settled_at is not None:
            return _STARTED
        if self.reviewable_at is not None:
            reviewed = yield from self._read_change_set()
            if reviewed != _STARTED:
                return reviewed
        elif not self.tenants.reviewed:
            return (yield from self._create_change_set())
        if not (yield from aws.call(aws.mutations)):
            return _AGAIN
        self.changed_at = aws.clock.seconds
        self.settled_at = self.changed_at + self._stack_seconds()
        return _STARTED

    def _read_change_set(self) -> Outcome:
        """DescribeChangeSet, then GetTemplate if the change set is ready."""
        aws = self.aws
        if not (yield from aws.call(aws.reads)):
            return _AGAIN
        if self.reviewable_at is None or aws.clock.seconds < self.reviewable_at:
            return _REVIEWING
        if not (yield from aws.call(aws.reads)):
            return _AGAIN
        self.tenants.reviewed = True
        return _STARTED

    def _await_event(self) -> Outcome:
        """Wait for CloudFormation's event, whose function inspects the stack."""
        aws = self.aws
        yield max(0.0, (self.settled_at or 0.0) - aws.clock.seconds) + aws.between(0.5, 2.0)
        yield aws.function()
        return (yield from self._inspect())

    def _inspect(self) -> Outcome:
        aws = self.aws
        if not (yield from aws.call(aws.reads)):
            return _WORKING
        if not self.fails:
            return _DONE
        # DescribeStackEvents shows that the update was begun and then rolled back.
        return _FAILED if (yield from aws.call(aws.reads)) else _WORKING

    def _record_failure(self, cause: RootCause) -> Generator[float | None, None, None]:
        yield from self._state(states=2)  # RecordFailure, Failed
        if not cause.is_throttling:
            yield from self.aws.call(self.aws.reads)  # DescribeStackEvents, for the root cause.
        self.tenants.fail(self.tenant, self.attempt, cause)

    def _state(self, states: int = 1) -> Generator[float | None, None, None]:
        """Enter a function's state, and the Choice after it if there is one."""
        yield from self.aws.enter(states)
        yield self.aws.function()

    def _review_seconds(self) -> float:
        slow = self.aws.chance.random() < self.aws.conditions.slow_reviews
        return self.aws.between(4.0, 8.0) if slow else self.aws.between(1.0, 2.5)

    def _stack_seconds(self) -> float:
        """The seconds that the stack takes. A rollback takes as long as another change."""
        usual = self.aws.conditions.stack_seconds * self.aws.between(0.8, 1.2)
        return usual * (10 if self.slow else 1) + (usual if self.fails else 0)
