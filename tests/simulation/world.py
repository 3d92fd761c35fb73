"""Everything that operations act upon, over the fakes: the table, CloudFormation, queues, executions and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count
from typing import Any, TypeVar, cast

from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.get_queue import Answer, GetQueue
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.limits import Unlimited
from orchestrator.tenants.queue_metadata import forget_queue, record_queue
from orchestrator.tenants.records import Queue, Request, Status
from orchestrator.tenants.tenant_stack import stack_settled
from orchestrator.tenants.updating import Drafting
from tests.fakes import (
    ACME,
    NAMES,
    NEXT_VERSION,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakeQueues,
    FakeStacks,
    FakeUnfinishedWork,
    InMemoryTable,
    a_release,
    an_audit,
    parameters_of,
    some_metadata,
)
from tests.fakes.stacks import version_of

A_MOMENT = timedelta(seconds=5)
OPERATOR = Request(by="arn:aws:sts::000000000000:assumed-role/operator/ada")

Around = Callable[[str, Callable[[], Any]], Any]
"""Makes a call to the outside, given its name, or has something happen to it."""

Port = TypeVar("Port")


def undisturbed(_name: str, call: Callable[[], Any]) -> Any:
    return call()


class _Watched:
    def __init__(self, name: str, port: object, around: Around) -> None:
        self._name, self._port, self._around = name, port, around

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._port, method)
        if not callable(call) or method == "is_berths":
            return call  # What a port knows by itself, such as names, asks nobody.
        return lambda *args, **named: self._around(f"{self._name}.{method}", lambda: call(*args, **named))


def watched(name: str, port: Port, around: Around) -> Port:
    return cast(Port, _Watched(name, port, around))


@dataclass
class Ports:
    """The ports of a function. Every call passes through ``around``."""

    table: InMemoryTable
    stacks: FakeStacks
    queues: FakeQueues
    executions: FakeExecutions
    clock: FakeClock
    unfinished_work: FakeUnfinishedWork
    names: Iterator[int] = field(default_factory=lambda: count(1))
    """Numbers for names that nobody else can guess."""

    @property
    def drafting(self) -> Drafting:
        return Drafting(self.table, parameters_of, lambda: f"name-{next(self.names)}")

    # The custom resource in a tenant's stack

    def record_queue(self, tenant: TenantId, stack_id: str, queue: Queue) -> None:
        record_queue(
            tenant,
            stack_id=stack_id,
            reported=queue,
            reader=self.table,
            ledger=self.table,
            stacks=self.stacks,
            clock=self.clock,
        )

    def forget_queue(self, tenant: TenantId, stack_id: str) -> None:
        forget_queue(tenant, stack_id=stack_id, reader=self.table, ledger=self.table, stacks=self.stacks)


@dataclass
class World:
    table: InMemoryTable = field(default_factory=InMemoryTable)
    stacks: FakeStacks = field(default_factory=FakeStacks)
    queues: FakeQueues = field(default_factory=FakeQueues)
    executions: FakeExecutions = field(default_factory=FakeExecutions)
    clock: FakeClock = field(default_factory=FakeClock)
    unfinished_work: FakeUnfinishedWork = field(default_factory=FakeUnfinishedWork)
    cloudformation_goes_on: Callable[[], bool] = lambda: True
    """Decides if CloudFormation ends its work in this moment."""
    to_come: deque[Callable[[], None]] = field(default_factory=deque)
    """Things that happen by themselves, one per moment."""
    names: Iterator[int] = field(default_factory=lambda: count(1))

    def __post_init__(self) -> None:
        for version in (VERSION, NEXT_VERSION):
            self.table.record_release(a_release(version))

    # Callers

    def ports(self, around: Around = undisturbed) -> Ports:
        return Ports(
            watched("table", self.table, around),
            watched("stacks", self.stacks, around),
            watched("queues", self.queues, around),
            watched("executions", self.executions, around),
            self.clock,
            self.unfinished_work,
            self.names,
        )

    def ask(self, around: Around = undisturbed) -> Answer:
        """getQueue, as a platform calls it."""
        ports = self.ports(around)
        return GetQueue(ports.table, ports.executions, ports.clock, VERSION, Unlimited, ports.table)(ACME)

    def lifecycle(self, around: Around = undisturbed) -> Lifecycle:
        ports = self.ports(around)
        table = ports.table
        return Lifecycle(table, table, table, ports.executions, ports.queues, ports.clock, VERSION, Unlimited())

    # Time

    def let_time_pass(self, moment: timedelta = A_MOMENT) -> None:
        self.clock.advance(moment)
        self.stacks.now = self.clock.now()
        if self.to_come:
            self.to_come.popleft()()
        if self.cloudformation_goes_on():
            self._settle_stacks()

    def _settle_stacks(self) -> None:
        """CloudFormation ends what it is at, its stack's custom resource says so, and so does an event."""
        before = {stack_id: fake.stack.status for stack_id, fake in self.stacks.all.items()}
        being_created = [fake for fake in self.stacks.all.values() if fake.stack.status == "CREATE_IN_PROGRESS"]
        version = version_of(being_created[0].template_url) if being_created else VERSION
        self.stacks.settle(queue=a_queue(len(self.stacks.all)), version=version)
        for stack_id, status in before.items():
            if self.stacks.all[stack_id].stack.status != status:
                self._custom_resource(stack_id, had_one=status != "CREATE_IN_PROGRESS")
                stack_settled(stack_id, client_token="", names=NAMES, reader=self.table, executions=self.executions)

    def _custom_resource(self, stack_id: str, *, had_one: bool) -> None:
        stack = self.stacks.all[stack_id].stack
        goes = stack.status.startswith(("DELETE_", "ROLLBACK_"))
        # A stack from before there was one gets it with the update, and loses it when that is undone.
        came_and_went = had_one and stack.status.startswith("UPDATE_ROLLBACK_") and stack.version is None
        if stack.queue and not goes:
            self.ports().record_queue(ACME, stack_id, stack.queue)
        while goes or came_and_went:
            try:
                self.ports().forget_queue(ACME, stack_id)
            except Throttled:
                continue
            return


def a_queue(number: int) -> Queue:
    """The queue of the stack of that number: a new stack has a new queue."""
    name = f"{NAMES.stack_of(ACME)}-InboundQueue-{number}"
    return Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/0/{name}")


# Initial states


def a_served_tenant(*, version: str = VERSION, status: str = "CREATE_COMPLETE") -> World:
    """A tenant that was created and is served."""
    world = World()
    release = world.table.release(version)
    assert release
    queue = a_queue(1)
    stack = world.stacks.plant_done(
        ACME, version=version, status=status, template_url=release.template_url, queue=queue
    )
    world.table.plant_metadata(some_metadata(version=version, queue=queue))
    world.table.plant_audit(an_audit(Status.SUCCESS, version=version))
    assert stack.stack_id == some_metadata().stack_id
    return world
