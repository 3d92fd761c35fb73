"""A control plane that keeps stacks ready: tenants take them while everything else goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.tenants.order_results import Changed, OrderResult
from orchestrator.tenants.provisioning import Answer
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Queue, Request
from orchestrator.tenants.stack_status import StackCondition, condition
from tests.fakes import VERSION
from tests.fakes.ports import FakeSettings
from tests.simulation.aws.executions import Execution
from tests.simulation.world import Around, World, undisturbed, watched

ACME, GLOBEX, INITECH, HOOLI = map(TenantId, ("acme", "globex", "initech", "hooli"))
_MAX_ROUNDS = 20


@dataclass
class PoolWorld(World):
    warm_pool: int = 1
    tiers: dict[str, int] = field(default_factory=dict)
    """The number of stacks that are kept ready of other tiers than the default one."""
    release: str = VERSION
    """The release that tenants are created at."""
    answers: dict[TenantId, set[Queue]] = field(default_factory=dict)
    """The queues that getQueue has ever returned for each tenant."""

    def settings(self, version: str) -> FakeSettings:  # noqa: ARG002 - the release is that of the deployment
        settings = super().settings(self.release)
        settings.warm_pool = {**settings.warm_pool, **self.tiers}
        return settings

    def ports(self, around: Around) -> dict[str, Any]:
        return {**super().ports(around), "warm_stacks": watched("warm_stacks", self.pool, around)}

    def maintain(self, around: Around = undisturbed) -> None:
        """As the scheduled reconciliation does."""
        self.use_cases(around).maintaining.maintain()

    def empty(self, around: Around) -> None:
        """A deployment without a pool: the reconciliation has the new setting before getQueue has it."""
        size, self.warm_pool = self.warm_pool, 0
        maintaining, self.warm_pool = self.use_cases(around).maintaining, size
        maintaining.maintain()

    def get_queue(self, tenant: TenantId, around: Around = undisturbed, *, process: UseCases | None = None) -> Answer:
        """A process of the function may have been called before. Otherwise this is its first call."""
        answer = (process or self.use_cases(around)).get_queue(tenant, by="a platform")
        if isinstance(answer, Ready):
            self.answers.setdefault(tenant, set()).add(answer.queue)
        return answer

    def create(self, tenant: TenantId, around: Around = undisturbed) -> OrderResult:
        """By an operator, who is told of the queue at once if the tenant takes a stack."""
        result = self.use_cases(around).lifecycle.create(tenant, Request(by="ada", labels={"plan": "best"}))
        if isinstance(result, Changed) and (url := result.after.get("queueUrl")):
            self.answers.setdefault(tenant, set()).add(Queue(str(result.after["queueArn"]), str(url)))
        return result

    def delete(self, tenant: TenantId) -> None:
        self.use_cases().lifecycle.delete(tenant, Request(by="ada", force=True))

    def run_executions(self) -> None:
        """Play everything that was started to its end."""
        for name in sorted(self.executions.running):
            Execution(self, name).play()

    def fill(self) -> PoolWorld:
        """Until the stacks are ready, and the pool knows it."""
        for _ in range(2):
            self.maintain()
            self.run_executions()
        self.maintain()
        assert self.ready() == self.warm_pool + sum(self.tiers.values())
        return self

    def ready(self) -> int:
        return sum(member.version is not None for member in self.pool.pool().members.values())

    def settle(self) -> None:
        """Go on until the pool is as it should be."""
        for _ in range(_MAX_ROUNDS):
            self.maintain()
            self.run_executions()

    # The promises

    def check(self) -> None:
        """No stack and no queue has two tenants, and whoever was told of a queue has it."""
        stacks: dict[str, TenantId] = {}
        for tenant in self.table.tenants:
            metadata = self.table.metadata(tenant)
            if metadata is None or not metadata.published or metadata.stack_id is None:
                continue
            assert metadata.stack_id not in stacks, f"{tenant} and {stacks[metadata.stack_id]} have one stack"
            stacks[metadata.stack_id] = tenant
        seen: dict[Queue, TenantId] = {}
        for tenant, queues in self.answers.items():
            for queue in queues:
                assert queue not in seen, f"{tenant} and {seen[queue]} were told of one queue"
                seen[queue] = tenant
            assert len(queues) == 1, f"{tenant} was told of two queues"

    def check_served(self, *tenants: TenantId) -> None:
        """These tenants have a stack that is alive, and which names them once it has learned its tenant."""
        for tenant in tenants:
            metadata = self.table.metadata(tenant)
            assert metadata is not None, f"nothing is recorded about {tenant}"
            assert metadata.published, f"{tenant} is not served"
            stack = self.stacks.all[metadata.stack_id or ""].stack
            assert condition(stack.status) is not StackCondition.GONE, f"the stack of {tenant} was deleted"
            assert not stack.status.startswith("DELETE"), f"the stack of {tenant} is being deleted"
            assert metadata.queue in self.answers.get(tenant, {metadata.queue})


@dataclass
class At:
    """Something happens at the n-th call to the outside."""

    call: int
    action: Callable[[], None]
    calls: int = 0

    def around(self, _name: str, call: Callable[[], Any]) -> Any:
        self.calls += 1
        if self.calls == self.call:
            self.action()
        return call()
