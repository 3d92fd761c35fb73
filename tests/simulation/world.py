"""Everything that operations act upon, over the fakes: the table, CloudFormation, queues, executions and time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, TypeVar, cast

from lambdas.runtime import outcome_json
from orchestrator.common.errors import Throttled
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.composition import UseCases
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.provisioning import Answer
from orchestrator.tenants.records import Queue, Request, Status
from tests.fakes import (
    ACME,
    NAMES,
    NEXT_VERSION,
    VERSION,
    FakeClock,
    FakeExecutions,
    FakePorts,
    FakeQueues,
    FakeSettings,
    FakeStacks,
    FakeUnfinishedWork,
    InMemoryCreateCounts,
    InMemoryCreateTurns,
    InMemoryTable,
    InMemoryTenantCounts,
    a_release,
    an_audit,
    some_metadata,
)
from tests.fakes.others import InMemoryReleaseStates, InMemoryReviews
from tests.fakes.pool import InMemoryPool
from tests.fakes.ports import numbered_names
from tests.fakes.stacks import version_of

A_MOMENT = timedelta(seconds=5)
EMPTY_FOR = timedelta(seconds=60)
"""A queue must have been empty for this long before its tenant is deleted."""
OPERATOR = Request(by="arn:aws:sts::000000000000:assumed-role/operator/ada")

Around = Callable[[str, Callable[[], Any]], Any]
"""Makes a call to the outside, given its name, or has something happen to it."""

Port = TypeVar("Port")
_UNUSED = FakePorts()
"""The ports that no run of the simulation uses."""


def undisturbed(_name: str, call: Callable[[], Any]) -> Any:
    return call()


class _Watched:
    def __init__(self, name: str, port: object, around: Around) -> None:
        self._name, self._port, self._around = name, port, around

    def __getattr__(self, method: str) -> Any:
        call = getattr(self._port, method)
        if not callable(call) or method == "is_berths":
            return call  # The port answers this by itself, such as names, without a call.
        return lambda *args, **named: self._around(f"{self._name}.{method}", lambda: call(*args, **named))


def watched(name: str, port: Port, around: Around) -> Port:
    return cast(Port, _Watched(name, port, around))


def wake_waiting(stack_id: str, client_token: str, use_cases: UseCases) -> bool:
    """As ``lambdas.tenants.stack_event``: resume the execution that waits for the stack, if there is one."""
    found = use_cases.stack_settled(stack_id, client_token=client_token)
    if found is None:
        return False
    return use_cases.ports.executions.wake(found.task_token, outcome_json(found.outcome) if found.outcome else {})


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
    new_name: Callable[[], str] = field(default_factory=numbered_names)
    create_counts: InMemoryCreateCounts = field(default_factory=InMemoryCreateCounts)
    tenant_counts: InMemoryTenantCounts = field(default_factory=InMemoryTenantCounts)
    create_turns: InMemoryCreateTurns = field(default_factory=InMemoryCreateTurns)
    pool: InMemoryPool = field(default_factory=InMemoryPool)
    warm_pool: int = 0
    """The number of stacks that are kept ready."""
    reviews: InMemoryReviews = field(default_factory=InMemoryReviews)
    release_states: InMemoryReleaseStates = field(default_factory=InMemoryReleaseStates)

    def __post_init__(self) -> None:
        for version in (VERSION, NEXT_VERSION):
            self.table.record_release(a_release(version))

    # Callers

    def use_cases(self, around: Around = undisturbed, *, version: str = VERSION, **ports: Any) -> UseCases:
        """The use cases of a function, over these ports and otherwise those of :meth:`ports`."""
        made = copy(_UNUSED)  # This is faster than making all fakes, and a run has many calls.
        vars(made).update(self.ports(around), settings=self.settings(version))
        vars(made).update(ports)
        return UseCases(made)

    def ports(self, around: Around) -> dict[str, Any]:
        """The ports of a function. Every call to the outside passes through ``around``."""
        return {
            "clock": self.clock,
            "new_name": self.new_name,
            "table": watched("table", self.table, around),
            "index": self.table,  # The limits count tenants, and a function that dies meanwhile has started nothing.
            "stacks": watched("stacks", self.stacks, around),
            "queues": watched("queues", self.queues, around),
            "executions": watched("executions", self.executions, around),
            "create_turns": watched("create_turns", self.create_turns, around),
            "warm_stacks": self.pool,
            "create_counts": self.create_counts,
            "tenant_counts": self.tenant_counts,
            "reviews": watched("reviews", self.reviews, around),
            "unfinished_work": self.unfinished_work,
            # Reads of this row are not watched: they would shift the random numbers of every recorded seed.
            "release_states": self.release_states,
        }

    def settings(self, version: str) -> FakeSettings:
        sizes = {STANDARD: self.warm_pool} if self.warm_pool else {}
        return FakeSettings(version, names=self.stacks.names, empty_for=EMPTY_FOR, warm_pool=sizes)

    def ask(self, around: Around = undisturbed) -> Answer:
        """getQueue, as a platform calls it."""
        return self.use_cases(around).get_queue(ACME)

    def lifecycle(self, around: Around = undisturbed) -> Lifecycle:
        return self.use_cases(around).lifecycle

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
                wake_waiting(stack_id, "", self.use_cases())

    def _custom_resource(self, stack_id: str, *, had_one: bool) -> None:
        stack = self.stacks.all[stack_id].stack
        tenant = TenantId.parse(stack.tenant_id) if stack.tenant_id else ACME
        goes = stack.status.startswith(("DELETE_", "ROLLBACK_"))
        # A stack from before there was one gets it with the update, and loses it when that is undone.
        came_and_went = had_one and stack.status.startswith("UPDATE_ROLLBACK_") and stack.version is None
        if stack.queue and not goes:
            self.use_cases().record_queue(tenant, stack_id=stack_id, reported=stack.queue)
        while goes or came_and_went:
            try:
                self.use_cases().forget_queue(tenant, stack_id=stack_id)
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
