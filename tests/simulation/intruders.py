"""Somebody who may make stacks and change sets, and call functions, but may not pass Berth's role to CloudFormation.

All of it bears the names that Berth would give: the stack of a tenant, the resource in that stack, its change sets.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.ports import ChangeSetState, Stack
from orchestrator.tenants.queue_metadata import forget_queue, record_queue
from orchestrator.tenants.records import Queue
from tests.fakes import NAMES, parameters_of
from tests.simulation.callers import Caller, Role

if TYPE_CHECKING:
    from tests.simulation.harbour import Harbour

EVIL_TEMPLATE = "https://evil.example/0.2.0.json"


class Intruder:
    def __init__(self, harbour: Harbour) -> None:
        self._harbour = harbour

    def plant_stack(self, tenant: TenantId, version: str) -> None:
        """Make a stack that is the tenant's by all that it says, if there is none, and let it go after a while."""
        harbour = self._harbour
        if harbour.stacks.find(NAMES.stack_of(tenant)) is not None:
            return
        stack_id = harbour.stacks.stack_id(tenant)
        harbour.stacks.plant(
            Stack(stack_id, "CREATE_COMPLETE", "", tenant.value, _evil_queue(tenant), version, ours=False)
        )
        harbour.guard.planted.add(stack_id)
        harbour.guard.seen["somebody made a stack"] += 1
        harbour.tell("an intruder", "makes the stack", stack_id)
        self._say(tenant, stack_id)
        harbour.later(harbour.chance.choice((10.0, 120.0, 3_000.0)), partial(self._let_go, stack_id))

    def _let_go(self, stack_id: str) -> None:
        self._harbour.stacks.change(stack_id, "DELETE_COMPLETE")

    def forge_event(self, tenant: TenantId) -> None:
        """Say that a stack of the tenant, any that there ever was, has another queue, or has none any more."""
        chance, harbour = self._harbour.chance, self._harbour
        stacks = [fake.stack for fake in harbour.stacks.all.values() if fake.stack not in harbour.neighbours]
        known = [stack.stack_id for stack in stacks if stack.tenant_id == tenant.value]
        if not known:
            return
        stack_id = chance.choice(known)
        self._harbour.guard.seen["somebody forged an event"] += 1
        if chance.random() < 0.3:
            self._take_back(tenant, stack_id)
        else:
            self._say(tenant, stack_id)

    def _say(self, tenant: TenantId, stack_id: str) -> None:
        harbour = self._harbour
        caller = Caller(Role.INTRUDER, tenant)
        ports = harbour.ports_of(caller)

        def work() -> None:
            record_queue(
                tenant,
                stack_id=stack_id,
                told=_evil_queue(tenant),
                reader=ports.table,
                ledger=ports.table,
                stacks=ports.stacks,
                clock=ports.clock,
            )

        harbour.call(caller, work, lambda _result, _error: None)

    def _take_back(self, tenant: TenantId, stack_id: str) -> None:
        harbour = self._harbour
        caller = Caller(Role.INTRUDER, tenant)
        ports = harbour.ports_of(caller)

        def work() -> None:
            forget_queue(tenant, stack_id=stack_id, reader=ports.table, ledger=ports.table, stacks=ports.stacks)

        harbour.call(caller, work, lambda _result, _error: None)

    def draw_up_changes(self, tenant: TenantId, version: str) -> None:
        """Draw up changes under every name that can be guessed, and take the names of those that were drawn up."""
        stacks, guard = self._harbour.stacks, self._harbour.guard
        for stack in guard.of[tenant].living:
            fake = stacks.all[stack.stack_id]
            computable = {f"update-{tenant.slug}-{version.replace('.', '-')}-{number}" for number in range(1, 5)}
            listed = {change_set.split("/")[1] for change_set in fake.change_sets}
            fake.change_sets = {
                change_set: drawn_up
                for change_set, drawn_up in fake.change_sets.items()
                if drawn_up[0].state is ChangeSetState.EXECUTED or self._harbour.chance.random() < 0.5
            }
            for name in sorted(computable | listed):
                guard.seen["somebody drew up changes"] += 1
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
