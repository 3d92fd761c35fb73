"""CloudFormation over time: it begins an operation, calls the stack's custom resource, and succeeds or fails."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.common.errors import BerthError, StackNotOurs, Throttled, Unsettled
from orchestrator.common.stack_arns import name_of
from orchestrator.common.tenant_ids import TenantId
from orchestrator.releases.records import Release
from orchestrator.tenants.names import Names
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import Change, Effect, Stack
from tests.fakes import FakeStacks
from tests.fakes.stacks import QUEUE_TYPE, FakeStack, version_of
from tests.simulation.actors.callers import Caller, Role

if TYPE_CHECKING:
    from tests.simulation.environment import Environment

HANGS_FOR = (35 * 60.0, 60 * 60.0)
TAKES = (2.0, 40.0)
LAGS = (1.0, 45.0)
"""How much later CloudFormation may show a new stack, or list its queue. Some are done by then."""
LAMBDA_REPEATS_AFTER = 60.0

DELETABLE = frozenset(
    {
        "CREATE_IN_PROGRESS",
        "CREATE_COMPLETE",
        "ROLLBACK_COMPLETE",
        "ROLLBACK_FAILED",
        "UPDATE_COMPLETE",
        "UPDATE_ROLLBACK_COMPLETE",
        "UPDATE_ROLLBACK_FAILED",
        "DELETE_FAILED",
    }
)
"""The statuses in which DeleteStack does something."""


LEGACY_PREFIX = "old-tenant-"
"""How the names of stacks begin that were made before Berth."""


class TenantStacks(FakeStacks):
    """Stacks of which some are from before stacks had versions, with an outbound queue that the next update removes.

    Some of those have names that Berth does not derive.
    """

    names = Names("Berth", (LEGACY_PREFIX,))

    def __init__(self) -> None:
        super().__init__()
        self.outbound: dict[str, Queue] = {}
        """By the ids of the stacks that have one."""
        self.added: dict[str, Queue] = {}
        """Queues that somebody has added to stacks by hand, by stack id. The next update removes them."""
        self.not_shown: set[str] = set()
        """The ids of stacks that CloudFormation does not show yet."""

    def find(self, name_or_id: str) -> Stack | None:
        """A new stack is found by its name at once, and by its id perhaps later."""
        return None if name_or_id in self.not_shown else super().find(name_or_id)

    def create_change_set(self, tenant: TenantId, stack_id: str, *, release: Release, name: str) -> str | None:
        removed = {"OutboundQueue": self.outbound.get(stack_id), "AddedQueue": self.added.get(stack_id)}
        self.would_change = tuple(
            Change(name, QUEUE_TYPE, queue.url, Effect.REPLACE) for name, queue in removed.items() if queue
        )
        return super().create_change_set(tenant, stack_id, release=release, name=name)


class CloudFormation:
    def __init__(self, env: Environment) -> None:
        self._env = env
        self._noticed: dict[str, Stack] = {}
        """The operations that have been noticed, by stack id."""
        self.without_resource: set[str] = set()
        """Stacks that have no custom resource: not yet, or because they are older than it."""
        self._by_hand = 0
        self.to_be_deleted: set[TenantId] = set()
        """Tenants whose stack somebody deletes by hand as soon as an operation on them is about to finish."""

    def notice(self) -> None:
        """Begin every operation that was asked for since the last call."""
        for stack_id, fake in self._env.stacks.all.items():
            if fake.stack.status.endswith("_IN_PROGRESS") and self._noticed.get(stack_id) is not fake.stack:
                self._noticed[stack_id] = fake.stack
                self._begin(stack_id, fake)

    def is_about_to_finish(self, tenant: TenantId) -> bool:
        """True if somebody deletes the tenant's stack at this moment."""
        if tenant not in self.to_be_deleted:
            return False
        self.to_be_deleted.remove(tenant)
        for stack in self._env.checks.of[tenant].living:
            self.delete_by_hand(stack)
        return True

    def delete_by_hand(self, stack: Stack) -> None:
        """Delete the stack in the console, if CloudFormation accepts that, also while an operation is at work."""
        # Nobody would ever hear that a stack has gone which is older than the custom resource.
        if stack.status in DELETABLE and stack.stack_id not in self._env.stacks.outbound:
            self._by_hand += 1
            self._env.checks.seen[f"deleted by hand when {stack.status}"] += 1
            self._env.stacks.delete(stack.stack_id, client_token=f"Console-DeleteStack-{self._by_hand}")

    def add_queue_by_hand(self, stack: Stack) -> None:
        """Add a queue to the stack in the console, while nobody else is changing the stack."""
        stacks, stack_id = self._env.stacks, stack.stack_id
        if stack.status not in ("CREATE_COMPLETE", "UPDATE_COMPLETE") or stack_id in stacks.added:
            return
        self._by_hand += 1
        self._env.checks.seen["changed by hand"] += 1
        stacks.all[stack_id].client_token = f"Console-UpdateStack-{self._by_hand}"
        stacks.change(stack_id, "UPDATE_COMPLETE", changed_at=self._env.clock.now())
        name = f"{name_of(stack_id)}-AddedQueue-{self._by_hand}"
        stacks.added[stack_id] = Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://queues.example/{name}")

    def _begin(self, stack_id: str, fake: FakeStack) -> None:
        stack, env = fake.stack, self._env
        end = {
            "CREATE_IN_PROGRESS": self._end_create,
            "ROLLBACK_IN_PROGRESS": self._end_rollback,
            "UPDATE_IN_PROGRESS": self._end_update,
            "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS": self._clean_up,
            "UPDATE_ROLLBACK_IN_PROGRESS": self._end_undoing,
            "DELETE_IN_PROGRESS": self._end_delete,
        }[stack.status]
        hangs = env.rng.random() < env.faults.stack_hangs
        takes = env.rng.uniform(*(HANGS_FOR if hangs else TAKES))
        env.checks.seen["hung"] += hangs
        queue = stack.queue
        if stack.status == "CREATE_IN_PROGRESS":
            self.without_resource.add(stack_id)
            queue = env.queue_of(TenantId.parse(stack.tenant_id))
            self._list(stack_id, queue)
            end = partial(self._end_create, queue=queue)
        ends = partial(self._if_still, stack_id, stack, partial(end, fake))
        goes_on = partial(env.later, takes / 2, ends)
        if queue and stack_id in self.without_resource and stack.status in ("CREATE_IN_PROGRESS", "UPDATE_IN_PROGRESS"):
            env.later(takes / 2, partial(self._record, stack, queue, goes_on))
        elif self._loses_its_resource(stack):
            env.later(takes / 2, partial(self._forget, stack, goes_on))
        else:
            env.later(takes, ends)

    def _list(self, stack_id: str, queue: Queue) -> None:
        """A new stack and its queue are listed at once, or some time later: even when the stack is done."""
        env = self._env
        env.stacks.resources[stack_id] = queue
        if not env.faults.stale:
            return
        if env.rng.random() < env.faults.stale:
            env.checks.seen["listed late"] += 1
            env.stacks.resources[stack_id] = None
            listed = partial(env.stacks.resources.__setitem__, stack_id, queue)
            env.later(env.rng.uniform(*LAGS), listed)
        if env.rng.random() < env.faults.stale:
            env.checks.seen["shown late"] += 1
            env.stacks.not_shown.add(stack_id)
            env.later(env.rng.uniform(*LAGS), partial(env.stacks.not_shown.discard, stack_id))

    def _loses_its_resource(self, stack: Stack) -> bool:
        """True if the stack is deleted, or the update that added the custom resource is rolled back."""
        goes = stack.status in ("DELETE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")
        undone = stack.status == "UPDATE_ROLLBACK_IN_PROGRESS" and stack.stack_id in self._env.stacks.outbound
        return (goes or undone) and stack.stack_id not in self.without_resource

    def _if_still(self, stack_id: str, stack: Stack, end: Callable[[], None]) -> None:
        """Unless something else was begun meanwhile."""
        if self._env.stacks.all[stack_id].stack is stack:
            end()
            self._env.trace(stack_id, self._env.stacks.all[stack_id].stack.status)
            if not self._env.stacks.all[stack_id].stack.status.endswith("_IN_PROGRESS"):
                self._env.stack_settled(stack_id)

    # Ends of operations

    def _fails(self, rng: float) -> bool:
        return self._env.rng.random() < rng

    def _end_create(self, fake: FakeStack, queue: Queue | None = None, *, refused: bool = False) -> None:
        stacks, stack_id = self._env.stacks, fake.stack.stack_id
        if refused or self._fails(self._env.faults.stack_fails):
            stacks.fail_resource(stack_id, "CREATE_FAILED", "Access denied.")
            stacks.change(stack_id, "ROLLBACK_IN_PROGRESS", "Failed to create: [InboundQueue].")
        else:
            stacks.change(stack_id, "CREATE_COMPLETE", queue=queue, version=version_of(fake.template_url))

    def _end_rollback(self, fake: FakeStack) -> None:
        failed = self._fails(self._env.faults.undoing_fails)
        self._env.stacks.change(fake.stack.stack_id, "ROLLBACK_FAILED" if failed else "ROLLBACK_COMPLETE")

    def _end_update(self, fake: FakeStack) -> None:
        stacks, stack_id = self._env.stacks, fake.stack.stack_id
        if self._fails(self._env.faults.stack_fails):
            stacks.fail_resource(stack_id, "UPDATE_FAILED", "Access denied.")
            stacks.change(stack_id, "UPDATE_ROLLBACK_IN_PROGRESS", "Failed to update: [InboundQueue].")
            return
        fake.template_url, parameters = stacks.requested(fake)
        version = version_of(fake.template_url)
        stacks.change(stack_id, "UPDATE_COMPLETE_CLEANUP_IN_PROGRESS", version=version, parameters=parameters)
        removed = (stacks.outbound.pop(stack_id, None), stacks.added.pop(stack_id, None))
        self._env.queues.gone.update(queue.url for queue in removed if queue)

    def _clean_up(self, fake: FakeStack) -> None:
        self._env.stacks.change(fake.stack.stack_id, "UPDATE_COMPLETE")

    def _end_undoing(self, fake: FakeStack) -> None:
        stacks, stack_id = self._env.stacks, fake.stack.stack_id
        if self._fails(self._env.faults.undoing_fails):
            stacks.fail_resource(stack_id, "UPDATE_FAILED", "Still denied.")
            stacks.change(stack_id, "UPDATE_ROLLBACK_FAILED", "Failed to update: [InboundQueue].")
        else:
            stacks.change(stack_id, "UPDATE_ROLLBACK_COMPLETE")

    def _end_delete(self, fake: FakeStack) -> None:
        stacks, stack_id = self._env.stacks, fake.stack.stack_id
        if self._fails(self._env.faults.stack_fails):
            stacks.fail_resource(stack_id, "DELETE_FAILED", "In use.")
            stacks.change(stack_id, "DELETE_FAILED", "Failed to delete: [InboundQueue].")
            return
        queues = (fake.stack.queue, stacks.outbound.get(stack_id))
        self._env.queues.gone.update(queue.url for queue in queues if queue)
        stacks.change(stack_id, "DELETE_COMPLETE")

    # Calls of the custom resource

    def _record(self, stack: Stack, queue: Queue, then: Callable[[], None], *, again: bool = False) -> None:
        stack_id, tenant = stack.stack_id, TenantId.parse(stack.tenant_id)
        if not again and self._env.stacks.all[stack_id].stack is not stack:
            return  # Somebody has the stack deleted, so no further resource of it is created.
        self.without_resource.discard(stack_id)

        def over(_result: object, error: Exception | None) -> None:
            fake = self._env.stacks.all[stack_id]
            if isinstance(error, BerthError) and not isinstance(error, Throttled | Unsettled):
                refused = isinstance(error, StackNotOurs) and fake.stack.status != "DELETE_COMPLETE"
                assert not refused, f"a stack of Berth's own may not provide its queue: {error}"
                if fake.stack.status == "CREATE_IN_PROGRESS":
                    self._end_create(fake, refused=True)
            elif error:
                # The function has died, or leaves it to Lambda to call it again.
                self._env.later(LAMBDA_REPEATS_AFTER, partial(self._record, stack, queue, then, again=again))
            else:
                then()
                self._again(lambda: self._record(stack, queue, lambda: None, again=True))

        caller = Caller(Role.RESOURCE, tenant)
        record_queue = self._env.use_cases_of(caller).record_queue
        self._env.call(caller, partial(record_queue, tenant, stack_id=stack_id, reported=queue), over)

    def _forget(self, stack: Stack, then: Callable[[], None], *, again: bool = False) -> None:
        stack_id, tenant = stack.stack_id, TenantId.parse(stack.tenant_id)

        def over(_result: object, error: Exception | None) -> None:
            if error:
                self._env.later(30, partial(self._forget, stack, then, again=again))
                return
            if not again:
                self.without_resource.add(stack_id)
                if not stack.status.startswith("UPDATE_"):
                    self._env.checks.let_go.add(stack_id)
            then()
            self._again(lambda: self._forget(stack, lambda: None, again=True))

        caller = Caller(Role.RESOURCE, tenant)
        forget_queue = self._env.use_cases_of(caller).forget_queue
        self._env.call(caller, partial(forget_queue, tenant, stack_id=stack_id), over)

    def _again(self, tell: Callable[[], None]) -> None:
        """Lambda may call a function twice for one event, the second time much later."""
        env = self._env
        if env.rng.random() < env.faults.duplicates:
            env.checks.seen["called twice"] += 1
            env.later(env.rng.uniform(1, 600), tell)
