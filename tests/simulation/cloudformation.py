"""CloudFormation in time: what it is asked for is begun, tells the stack's custom resource, and ends well or not."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.errors import QueueOwnedElsewhere
from orchestrator.ports import Stack
from orchestrator.queue_metadata import forget_queue, record_queue
from orchestrator.records import Queue
from orchestrator.tenants import TenantId
from tests.fakes.stacks import FakeStack, version_of
from tests.simulation.guard import Caller, Role

if TYPE_CHECKING:
    from tests.simulation.harbour import Harbour

HANGS_FOR = (35 * 60.0, 60 * 60.0)
TAKES = (2.0, 40.0)


class CloudFormation:
    def __init__(self, harbour: Harbour) -> None:
        self._harbour = harbour
        self._noticed: dict[str, Stack] = {}
        """What was last seen to be under way, by stack id."""

    def notice(self) -> None:
        """See what has been asked for since, and begin with it."""
        for stack_id, fake in self._harbour.stacks.all.items():
            if fake.stack.status.endswith("_IN_PROGRESS") and self._noticed.get(stack_id) is not fake.stack:
                self._noticed[stack_id] = fake.stack
                self._begin(stack_id, fake)

    def _begin(self, stack_id: str, fake: FakeStack) -> None:
        stack, harbour = fake.stack, self._harbour
        end = {
            "CREATE_IN_PROGRESS": self._end_create,
            "ROLLBACK_IN_PROGRESS": self._end_rollback,
            "UPDATE_IN_PROGRESS": self._end_update,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": self._clean_up,
            "UPDATE_ROLLBACK_IN_PROGRESS": self._end_undoing,
            "DELETE_IN_PROGRESS": self._end_delete,
        }[stack.status]
        hangs = harbour.chance.random() < harbour.weather.stack_hangs
        takes = harbour.chance.uniform(*(HANGS_FOR if hangs else TAKES))
        harbour.guard.seen["hung"] += hangs
        ends = partial(self._if_still, stack_id, stack, partial(end, fake))
        tenant = TenantId.parse(stack.tenant_id)
        if stack.status == "CREATE_IN_PROGRESS":
            queue = harbour.queue_of(tenant)
            ends = partial(self._if_still, stack_id, stack, partial(self._end_create, fake, queue))
            harbour.later(
                takes / 2, partial(self._record, tenant, stack_id, queue, partial(harbour.later, takes / 2, ends))
            )
        elif stack.status in ("DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS"):
            harbour.later(takes / 2, partial(self._forget, tenant, stack_id, partial(harbour.later, takes / 2, ends)))
        else:
            harbour.later(takes, ends)

    def _if_still(self, stack_id: str, stack: Stack, end: Callable[[], None]) -> None:
        """Unless something else was begun meanwhile."""
        if self._harbour.stacks.all[stack_id].stack is stack:
            end()
            self._harbour.tell(stack_id, self._harbour.stacks.all[stack_id].stack.status)
            if not self._harbour.stacks.all[stack_id].stack.status.endswith("_IN_PROGRESS"):
                self._harbour.stack_settled(stack_id)

    # How it ends

    def _fails(self, chance: float) -> bool:
        return self._harbour.chance.random() < chance

    def _end_create(self, fake: FakeStack, queue: Queue | None = None, *, refused: bool = False) -> None:
        stacks, stack_id = self._harbour.stacks, fake.stack.stack_id
        if refused or self._fails(self._harbour.weather.stack_fails):
            stacks.fail_resource(stack_id, "CREATE_FAILED", "Access denied.")
            stacks.change(stack_id, "ROLLBACK_IN_PROGRESS", "Failed to create: [InboundQueue].")
        else:
            stacks.change(stack_id, "CREATE_COMPLETE", queue=queue, version=version_of(fake.template_url))

    def _end_rollback(self, fake: FakeStack) -> None:
        failed = self._fails(self._harbour.weather.undoing_fails)
        self._harbour.stacks.change(fake.stack.stack_id, "ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE")

    def _end_update(self, fake: FakeStack) -> None:
        stacks, stack_id = self._harbour.stacks, fake.stack.stack_id
        if self._fails(self._harbour.weather.stack_fails):
            stacks.fail_resource(stack_id, "UPDATE_FAILED", "Access denied.")
            stacks.change(stack_id, "UPDATE_ROLLBACK_IN_PROGRESS", "Failed to update: [InboundQueue].")
            return
        ((_, fake.template_url),) = fake.change_sets.values()
        stacks.change(stack_id, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", version=version_of(fake.template_url))

    def _clean_up(self, fake: FakeStack) -> None:
        self._harbour.stacks.change(fake.stack.stack_id, "UPDATE_COMPLETE")

    def _end_undoing(self, fake: FakeStack) -> None:
        stacks, stack_id = self._harbour.stacks, fake.stack.stack_id
        if self._fails(self._harbour.weather.undoing_fails):
            stacks.fail_resource(stack_id, "UPDATE_FAILED", "Still denied.")
            stacks.change(stack_id, "UPDATE_ROLLBACK_FAILED", "Failed to update: [InboundQueue].")
        else:
            stacks.change(stack_id, "UPDATE_ROLLBACK_COMPLETE")

    def _end_delete(self, fake: FakeStack) -> None:
        stacks, stack_id = self._harbour.stacks, fake.stack.stack_id
        if self._fails(self._harbour.weather.stack_fails):
            stacks.fail_resource(stack_id, "DELETE_FAILED", "In use.")
            stacks.change(stack_id, "DELETE_FAILED", "Failed to delete: [InboundQueue].")
        else:
            stacks.change(stack_id, "DELETE_COMPLETE")

    # What its custom resource is told, and when it has answered

    def _record(self, tenant: TenantId, stack_id: str, queue: Queue, then: Callable[[], None]) -> None:
        def work() -> None:
            record_queue(tenant, stack_id=stack_id, queue=queue, ledger=ports.table, clock=ports.clock)

        def over(_result: object, error: Exception | None) -> None:
            if isinstance(error, QueueOwnedElsewhere):
                fake = self._harbour.stacks.all[stack_id]
                if fake.stack.status == "CREATE_IN_PROGRESS":
                    self._end_create(fake, refused=True)
            elif error:
                self._harbour.later(30, partial(self._record, tenant, stack_id, queue, then))
            else:
                then()
                self._again(lambda: self._record(tenant, stack_id, queue, lambda: None))

        caller = Caller(Role.RESOURCE, tenant)
        ports = self._harbour.ports_of(caller)
        self._harbour.call(caller, work, over)

    def _forget(self, tenant: TenantId, stack_id: str, then: Callable[[], None]) -> None:
        def work() -> None:
            forget_queue(tenant, stack_id=stack_id, reader=ports.table, ledger=ports.table, stacks=ports.stacks)

        def over(_result: object, error: Exception | None) -> None:
            if error:
                self._harbour.later(30, partial(self._forget, tenant, stack_id, then))
                return
            then()
            self._again(lambda: self._forget(tenant, stack_id, lambda: None))

        caller = Caller(Role.RESOURCE, tenant)
        ports = self._harbour.ports_of(caller)
        self._harbour.call(caller, work, over)

    def _again(self, tell: Callable[[], None]) -> None:
        """Lambda may call a function twice for one event, the second time much later."""
        harbour = self._harbour
        if harbour.chance.random() < harbour.weather.duplicates:
            harbour.guard.seen["told again"] += 1
            harbour.later(harbour.chance.uniform(1, 600), tell)
