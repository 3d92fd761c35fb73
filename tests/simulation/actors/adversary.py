"""Somebody who may make stacks and change sets, and call functions, but may not pass Berth's role to CloudFormation.

All of it has the names that Berth would give: the stack of a tenant, the resource in that stack, its change sets.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.tenants.records import Queue
from orchestrator.tenants.stack_ports import ChangeSetState, Stack
from tests.fakes import NAMES, parameters_of
from tests.simulation.actors.callers import Caller, Role

if TYPE_CHECKING:
    from tests.simulation.environment import Environment

EVIL_TEMPLATE = "https://evil.example/0.2.0.json"


class Adversary:
    def __init__(self, env: Environment) -> None:
        self._env = env

    def plant_stack(self, tenant: TenantId, version: str) -> None:
        """Make a stack with the tenant's name and parameters, if there is none, and delete it after a while."""
        env = self._env
        if env.stacks.find(NAMES.stack_of(tenant)) is not None:
            return
        stack_id = env.stacks.stack_id(tenant)
        env.stacks.plant(Stack(stack_id, "CREATE_COMPLETE", "", tenant.value, _evil_queue(tenant), version, ours=False))
        env.checks.planted.add(stack_id)
        env.checks.seen["somebody made a stack"] += 1
        env.trace("an adversary", "makes the stack", stack_id)
        self._name_another_queue(tenant, stack_id)
        env.later(env.rng.choice((10.0, 120.0, 3_000.0)), partial(self._let_go, stack_id))

    def _let_go(self, stack_id: str) -> None:
        self._env.stacks.change(stack_id, "DELETE_COMPLETE")

    def forge_event(self, tenant: TenantId) -> None:
        """Send a forged event: a stack of the tenant, present or past, has another queue, or has none any more."""
        rng, env = self._env.rng, self._env
        stacks = [fake.stack for fake in env.stacks.all.values() if fake.stack not in env.neighbours]
        known = [stack.stack_id for stack in stacks if stack.tenant_id == tenant.value]
        if not known:
            return
        stack_id = rng.choice(known)
        self._env.checks.seen["somebody forged an event"] += 1
        if rng.random() < 0.3:
            self._send_event(tenant, lambda use_cases: use_cases.forget_queue(tenant, stack_id=stack_id))
        else:
            self._name_another_queue(tenant, stack_id)

    def _name_another_queue(self, tenant: TenantId, stack_id: str) -> None:
        queue = _evil_queue(tenant)
        self._send_event(tenant, lambda use_cases: use_cases.record_queue(tenant, stack_id=stack_id, reported=queue))

    def _send_event(self, tenant: TenantId, function: Callable[[UseCases], object]) -> None:
        caller = Caller(Role.ADVERSARY, tenant)
        use_cases = self._env.use_cases_of(caller)
        self._env.call(caller, lambda: function(use_cases), lambda _result, _error: None)

    def create_change_set(self, tenant: TenantId, version: str) -> None:
        """Create change sets under every name that can be guessed, and under those of Berth's change sets."""
        stacks, checks = self._env.stacks, self._env.checks
        for stack in checks.of[tenant].living:
            fake = stacks.all[stack.stack_id]
            computable = {f"update-{tenant.slug}-{version.replace('.', '-')}-{number}" for number in range(1, 5)}
            listed = {change_set.split("/")[1] for change_set in fake.change_sets}
            fake.change_sets = {
                change_set: drawn_up
                for change_set, drawn_up in fake.change_sets.items()
                if drawn_up[0].state is ChangeSetState.EXECUTED or self._env.rng.random() < 0.5
            }
            for name in sorted(computable | listed):
                checks.seen["somebody drew up changes"] += 1
                stacks.add_changes(
                    stack.stack_id,
                    name,
                    EVIL_TEMPLATE,
                    state=ChangeSetState.READY,
                    parameters=parameters_of(tenant),
                )


def _evil_queue(tenant: TenantId) -> Queue:
    return Queue(
        f"arn:aws:sqs:eu-west-1:111111111111:{tenant}", f"https://sqs.eu-west-1.amazonaws.com/111111111111/{tenant}"
    )
