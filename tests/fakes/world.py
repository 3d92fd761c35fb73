"""A control plane in memory: the use cases over fakes, as functions have them over AWS.

:class:`World` has everything. :class:`Operations`, :class:`Orders` and :class:`OwnedTenant` add steps that several test
modules take.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.releases.ports import Parameters
from orchestrator.tenants import tenant_stack
from orchestrator.tenants.decisions import Decision, decide
from orchestrator.tenants.fleet import tenant_detail
from orchestrator.tenants.operations import CHECK_HOLDER_AFTER
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.outcomes import (
    Again,
    Begun,
    Clearing,
    Done,
    Draining,
    Inspection,
    Published,
    Removed,
    Reviewing,
    Settled,
    Start,
    Started,
    Unchanged,
    Waiting,
    Working,
)
from orchestrator.tenants.records import Metadata, Operation, Queue, Request, RootCause, Run, Status, TenantState
from orchestrator.tenants.stack_ports import Stack
from tests.fakes.examples import (
    ACME,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_release,
    a_run,
    an_audit,
    some_metadata,
    stack_arn,
    take,
)
from tests.fakes.ports import FakePorts
from tests.fakes.stacks import FakeStacks

DONE = Done(stack_arn(), QUEUE, VERSION)
TASK_TOKEN = "a task token"
MAX_ROUNDS = 40
_A_SECOND = timedelta(seconds=1)
_SOME_TIME = timedelta(minutes=10)


class World(FakePorts, UseCases):
    """The fakes and the use cases in one, so that a test says ``world.clock`` and ``world.lifecycle``.

    Replace a fake at any time, by keyword or by assignment: use cases are built when they are asked for.
    """

    def __init__(
        self, *, version: str = VERSION, published: Iterable[str] = (VERSION, NEXT_VERSION), **fakes: Any
    ) -> None:
        """``version`` is the release that is deployed. ``published`` are the releases that there are."""
        FakePorts.__init__(self, **fakes)
        UseCases.__init__(self, self)
        self.settings.template_version = version
        for each in published:
            self.table.record_release(a_release(each))

    def with_other(self, **fakes: Any) -> UseCases:
        """The use cases over the same fakes but these."""
        ports = copy.copy(self)
        for name, fake in fakes.items():
            setattr(ports, name, fake)
        return UseCases(ports)

    def metadata_of(self, tenant: TenantId = ACME) -> Metadata:
        found = self.table.metadata(tenant)
        assert found is not None
        return found


def start_stack(use_cases: UseCases, run: Run, *, empty_since: datetime | None = None) -> Start:
    """Take one step towards the run's stack, without waiting for it."""
    ports = use_cases.ports
    return tenant_stack.start_stack(
        run,
        reader=ports.tenants,
        releases=ports.releases,
        stacks=ports.writable_stacks,
        queues=ports.queues,
        drafting=use_cases.drafting,
        clock=ports.clock,
        empty_for=ports.settings.empty_for,
        empty_since=empty_since,
        unfinished=ports.unfinished_work,
    )


def inspect_stack(use_cases: UseCases, run: Run, started: Start) -> Inspection:
    ports = use_cases.ports
    return tenant_stack.inspect_stack(
        run, started=started, reader=ports.tenants, stacks=ports.stacks, queues=ports.queues, clock=ports.clock
    )


class Operations(World):
    """The steps in which an operation begins and ends. The stack is that of the given result, unless a test differs."""

    def start(self, run: Run) -> Run:
        """Start the run's execution."""
        assert self.executions.start(run.attempt, run.request) == run.execution
        return run

    def finish(
        self, run: Run, stack: Done | None = DONE, *, made_with: Parameters | None = None, throttled: bool = False
    ) -> Published | Removed:
        """``made_with`` are the parameters that CloudFormation shows of the stack."""
        stacks = FakeStacks()
        if stack:
            release = self.table.release(stack.version)
            given = made_with(run.tenant, release) if made_with and release else None
            stacks.let_stand(run.tenant, stack, given)
        stacks.throttled_calls = int(throttled)
        return self.with_other(stacks=stacks).finish(run, stack=stack)

    def record_failure(self, run: Run, failure: RootCause = QUEUE_TABOO, failed_stack: str | None = None) -> RootCause:
        return super().record_failure(run, failure=failure, failed_stack=failed_stack)

    def create(self) -> None:
        self.begin(a_run())
        self.finish(a_run())

    def delete(self) -> None:
        """Create the tenant, and delete it."""
        self.create()
        self.begin(a_run(operation=Operation.DELETE))
        self.finish(a_run(operation=Operation.DELETE), None)

    def decision(self) -> Decision:
        """getQueue's decision about the tenant, from its rows alone."""
        return decide(self.table.metadata(ACME), self.table.audits(ACME), VERSION)


class Orders(Operations):
    """The control plane at the next version, without the machines: a test says how operations end."""

    def __init__(self, **fakes: Any) -> None:
        super().__init__(version=NEXT_VERSION, **fakes)

    def run_of(self, ordered: object) -> Run:
        """The execution of an order that was accepted. It starts at this moment."""
        assert isinstance(ordered, Accepted)
        request = dict(self.executions.started)[ordered.attempt]
        return Run(ordered.attempt, ordered.execution, self.clock.now(), request)

    def begun(self, ordered: object) -> Run:
        """Let the execution take the tenant's lock."""
        self.clock.advance(_A_SECOND)
        run = self.run_of(ordered)
        assert self.begin(run) == Begun()
        return run

    def succeeded(self, run: Run) -> None:
        self.clock.advance(_A_SECOND)
        is_delete = run.attempt.operation is Operation.DELETE
        self.finish(run, None if is_delete else Done(stack_arn(run.tenant), QUEUE, run.attempt.version))
        self.executions.end(run.execution)

    def failed(self, run: Run) -> None:
        self.clock.advance(_A_SECOND)
        self.record_failure(run)
        self.executions.end(run.execution)

    def died(self, run: Run) -> None:
        """The execution ends without recording how, and others notice after a while."""
        self.executions.end(run.execution)
        self.clock.advance(CHECK_HOLDER_AFTER + _A_SECOND)

    def half_deleted(self, request: Request) -> None:
        """A delete whose stack is no longer whole, and not gone either."""
        run = self.begun(self.lifecycle.delete(ACME, request))
        self.stacks.change(stack_arn(), "DELETE_FAILED")
        self.failed(run)

    def provision(self, version: str = VERSION, **more: Any) -> None:
        """The tenant as an earlier operation left it."""
        self.table.plant_metadata(some_metadata(version=version, **more))
        self.table.plant_audit(an_audit(Status.SUCCESS, version=version, at=NOON - timedelta(days=1)))
        self.stacks.plant_done(ACME, version=version)

    def state(self) -> TenantState:
        return tenant_detail(ACME, self.table).state

    @property
    def metadata(self) -> Metadata:
        return self.metadata_of(ACME)


class OwnedTenant(World):
    """One tenant, owned by a run, and the steps that the run takes with the tenant's stack."""

    def __init__(self, run: Run | None = None, *, metadata: Metadata | None = None, **fakes: Any) -> None:
        super().__init__(**fakes)
        self.run = run or a_run()
        self.empty_since: datetime | None = None
        self.executions.waiting.add(TASK_TOKEN)
        if metadata:
            self.table.plant_metadata(metadata)
        take(self.table, self.run)

    def plant(
        self,
        status: str = "CREATE_COMPLETE",
        *,
        version: str | None = VERSION,
        queue: Queue | None = QUEUE,
        tenant_id: str | None = "acme",
        reason: str = "",
    ) -> str:
        """The stack as an earlier operation left it, some time ago."""
        self.stacks.now = NOON - _SOME_TIME
        template_url = a_release(version).template_url if version else "the template from before versions"
        stack = Stack(self.stacks.stack_id(ACME), status, reason, tenant_id, queue, version, ours=True)
        self.stacks.plant(stack, "an earlier request", template_url)
        self.stacks.now = NOON
        return stack.stack_id

    def review(self) -> None:
        """Create the update's change set."""
        assert self.start() == Reviewing()

    def start(self) -> Start:
        return start_stack(self, self.run, empty_since=self.empty_since)

    def wait_for(self, started: Start) -> Waiting | Settled:
        """Wait for the stack that an earlier step has started."""
        if isinstance(started, Started | Clearing | Unchanged):
            outcome = started.outcome
            self.ledger.remember_started(self.run, "an earlier token", stack_id=started.stack_id, outcome=outcome)
        return self.await_stack(self.run, task_token=TASK_TOKEN)

    def inspect(self, started: Start) -> Inspection:
        return inspect_stack(self, self.run, started)

    def fail(self, resource: str, reason: str, failed_stack: str | None = None) -> RootCause:
        """Record the run's failure as the machine tells it."""
        failure = RootCause(resource, "AWS::CloudFormation::Stack", reason)
        return self.record_failure(self.run, failure=failure, failed_stack=failed_stack)

    def drive(self) -> Inspection:
        """Take the machine's steps. CloudFormation settles whenever it is waited for."""
        outcome: Inspection = Again("nothing was started yet")
        for _ in range(MAX_ROUNDS):
            if isinstance(outcome, Working):
                self.stacks.settle()
            else:
                started = self.start()
                if isinstance(started, Draining):
                    self.empty_since = started.empty_since
                    self.clock.advance(timedelta(seconds=started.seconds))
            outcome = self.inspect(started)
            if not isinstance(outcome, Again | Working | Reviewing):
                return outcome
        raise AssertionError(f"Not settled in {MAX_ROUNDS} rounds: {outcome}")
