"""The pool is refilled, replaced and emptied, and the stacks that tenants have taken learn their tenants."""

from __future__ import annotations

from datetime import timedelta

from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.pool.maintaining import BY, Maintained
from orchestrator.tenants.decisions import Unknown
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Status, TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import NEXT_VERSION, VERSION
from tests.present import present
from tests.simulation.pool_world import ACME, GLOBEX, PoolWorld


def orders(world: PoolWorld, operation: Operation) -> list[TenantId]:
    return [attempt.tenant for attempt, _ in world.executions.started if attempt.operation is operation]


def test_as_many_stacks_are_created_as_are_wanted() -> None:
    world = PoolWorld(warm_pool=3)
    assert world.use_cases().maintaining.maintain() == Maintained(requested=3)
    created = orders(world, Operation.CREATE)
    assert len(created) == 3
    assert all(each.value.startswith(WARM_PREFIX) for each in created)
    assert world.use_cases().maintaining.maintain() == Maintained(coming=3)
    world.run_executions()
    assert world.use_cases().maintaining.maintain() == Maintained(ready=3)
    assert len(orders(world, Operation.CREATE)) == 3


def test_a_new_tenant_has_its_queue_at_its_first_call_and_nothing_is_started() -> None:
    world = PoolWorld().fill()
    before = len(world.executions.started)
    answer = world.get_queue(ACME)
    assert isinstance(answer, Ready)
    assert answer.version == VERSION
    assert world.get_queue(ACME) == answer
    assert len(world.executions.started) == before
    (audit,) = world.table.audits(ACME)
    assert (audit.operation, audit.status, audit.attempt) == (Operation.CREATE, Status.SUCCESS, 0)
    assert [entry.status for entry in world.table.history(ACME)] == [Status.SUCCESS]  # type: ignore[union-attr]
    assert present(world.table.metadata(ACME)).created_by == "a platform"


def test_a_pool_without_a_ready_stack_starts_a_create_as_before() -> None:
    world = PoolWorld().fill()
    world.get_queue(ACME)
    assert isinstance(world.get_queue(GLOBEX), Provisioning)


def test_nobody_can_ask_for_a_stack_that_is_kept_ready() -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    assert world.get_queue(warm) == Unknown()
    assert world.use_cases().get_queue.find(warm) == Unknown()


def test_the_stack_learns_its_tenant_by_an_update_and_the_record_of_the_taking_goes() -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    answer = world.get_queue(ACME)
    world.settle()
    stack = world.stacks.all[present(present(world.table.metadata(ACME)).stack_id)].stack
    assert stack.tenant_id == ACME.value
    assert orders(world, Operation.UPDATE) == [ACME]
    assert world.table.metadata(warm) is None
    assert warm.value not in world.pool.pool().members
    assert world.get_queue(ACME) == answer, "The queue stays the same."


def test_a_pool_that_was_switched_off_is_deleted_and_taken_stacks_still_learn_their_tenants() -> None:
    world = PoolWorld(warm_pool=2).fill()
    answer = world.get_queue(ACME)
    world.warm_pool = 0
    world.settle()
    assert world.pool.pool().members == {}
    assert orders(world, Operation.UPDATE) == [ACME]
    assert len(orders(world, Operation.DELETE)) == 1
    assert world.get_queue(ACME) == answer


def test_stacks_of_an_earlier_release_are_replaced() -> None:
    world = PoolWorld(warm_pool=2).fill()
    world.release = NEXT_VERSION
    world.settle()
    assert {member.version for member in world.pool.pool().members.values()} == {NEXT_VERSION}
    assert len(orders(world, Operation.DELETE)) == 2
    answer = world.get_queue(ACME)
    assert isinstance(answer, Ready)
    assert answer.version == NEXT_VERSION


def test_stacks_that_cannot_be_created_do_not_pile_up() -> None:
    world = PoolWorld(warm_pool=2)
    for _ in range(6):
        world.maintain()
        for attempt, request in list(world.executions.started):
            if attempt.operation is Operation.CREATE and world.executions.find_running(attempt):
                world.executions.end(world.executions.execution_of(attempt))
                world.table.plant_audit(_failed(attempt.tenant, request.by))
        assert len(world.pool.pool().members) <= 2
        world.run_executions()


def _failed(tenant: TenantId, by: str) -> object:
    from dataclasses import replace

    from orchestrator.tenants.records import Request
    from tests.fakes import QUEUE_TABOO, an_audit

    assert by == BY
    return replace(an_audit(Status.FAILURE), tenant=tenant, root_cause=QUEUE_TABOO, request=Request(by=by))


def test_a_tenant_is_deleted_in_the_moment_in_which_its_stack_has_not_learned_it() -> None:
    world = PoolWorld().fill()
    world.get_queue(ACME)
    stack_id = present(present(world.table.metadata(ACME)).stack_id)
    world.delete(ACME)
    world.run_executions()
    assert world.stacks.all[stack_id].stack.status == "DELETE_COMPLETE"
    assert state_of(world.table.metadata(ACME), world.table.audits(ACME)) is TenantState.DELETED
    world.clock.advance(timedelta(minutes=5))
    world.settle()
    assert world.ready() == 1
