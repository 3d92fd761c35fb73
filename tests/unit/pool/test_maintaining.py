"""The pool is refilled, replaced and emptied, and the stacks that tenants have taken learn their tenants."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import InvalidTenantId, UnreadableRows, Unsettled
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.pool import maintaining
from orchestrator.pool.maintaining import AFTER_FAILURE, BY, Maintained
from orchestrator.pool.records import MemberState, TierOfPool
from orchestrator.rollouts.releasing import ReleaseOrdered
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import Unknown
from orchestrator.tenants.lifecycle import Lifecycle
from orchestrator.tenants.order_results import Accepted, Changed
from orchestrator.tenants.ports import LabelEdit
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Request, Status, TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import NEXT_VERSION, QUEUE_TABOO, VERSION, a_release, an_audit
from tests.present import present
from tests.simulation.pool_world import ACME, GLOBEX, HOOLI, At, PoolWorld


def orders(world: PoolWorld, operation: Operation) -> list[TenantId]:
    return [attempt.tenant for attempt, _ in world.executions.started if attempt.operation is operation]


def test_the_configured_number_of_stacks_is_created() -> None:
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


def test_get_queue_does_not_answer_for_a_stack_that_is_kept_ready() -> None:
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


def test_stacks_that_cannot_learn_now_do_not_keep_others_from_learning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintaining, "_MAX_ORDERS", 2)
    world = PoolWorld(warm_pool=3).fill()
    for tenant in (ACME, GLOBEX):
        world.get_queue(tenant)
    world.table.record_release(a_release(NEXT_VERSION))
    world.release = NEXT_VERSION
    assert isinstance(world.use_cases().releasing.withdraw(VERSION, "ada"), ReleaseOrdered)
    world.settle()
    assert orders(world, Operation.UPDATE) == [], "Updates to a release that was withdrawn would be refused."
    world.get_queue(HOOLI)
    world.settle()
    assert orders(world, Operation.UPDATE) == [HOOLI]
    learning = [each for each in world.pool.pool().members.values() if each.state is MemberState.LEARNING]
    assert len(learning) == 2


def test_a_stack_whose_tenant_is_pinned_to_another_release_learns_its_tenant_once_it_is_unpinned() -> None:
    world = PoolWorld().fill()
    world.get_queue(ACME)
    world.table.record_release(a_release(NEXT_VERSION))
    lifecycle = world.use_cases().lifecycle
    assert isinstance(lifecycle.pin(ACME, NEXT_VERSION, Request(by="ada")), Changed)
    refused = lifecycle.upgrade(ACME, VERSION, Request(by=BY))
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.PINNED
    world.settle()
    assert orders(world, Operation.UPDATE) == []
    assert [each.state for each in world.pool.pool().members.values()].count(MemberState.LEARNING) == 1
    assert isinstance(lifecycle.unpin(ACME, Request(by="ada")), Changed)
    world.settle()
    assert orders(world, Operation.UPDATE) == [ACME]


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
        fail_creates(world)
        assert len(world.pool.pool().members) <= 2
        world.run_executions()


def _failed(tenant: TenantId, by: str) -> object:
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


# Tiers

GOLD = "2.0.0"


def a_world_with_gold(**sizes: int) -> PoolWorld:
    world = PoolWorld(warm_pool=sizes.pop("standard", 0), tiers=sizes)
    world.table.record_release(a_release(GOLD, tier="gold"))
    return world


def test_each_tier_has_its_own_stacks_at_its_own_release() -> None:
    world = a_world_with_gold(standard=1, gold=2).fill()
    versions = sorted((member.tier, member.version) for member in world.pool.pool().members.values())
    assert versions == [("gold", GOLD), ("gold", GOLD), ("standard", VERSION)]


def test_a_tenant_that_an_operator_creates_takes_a_stack_of_its_tier_and_has_labels_and_pin_at_once() -> None:
    world = a_world_with_gold(gold=1).fill()
    before = len(world.executions.started)
    request = Request(by="ada", tier="gold", labels={"plan": "best"}, pin=GOLD)
    created = world.use_cases().lifecycle.create(ACME, request)
    assert isinstance(created, Changed)
    assert "has taken a stack that was kept ready" in created.reason
    assert len(world.executions.started) == before
    metadata = present(world.table.metadata(ACME))
    assert (metadata.tier, metadata.version, metadata.pinned_version) == ("gold", GOLD, GOLD)
    assert (metadata.labels, metadata.created_by) == ({"plan": "best"}, "ada")
    assert isinstance(world.get_queue(ACME), Ready)
    world.settle()
    world.check()
    world.check_served(ACME)
    assert world.ready() == 1


def test_a_tenant_of_a_tier_without_stacks_is_created_as_before() -> None:
    world = a_world_with_gold(standard=1).fill()
    assert isinstance(world.use_cases().lifecycle.create(ACME, Request(by="ada", tier="gold")), Accepted)


def test_an_operators_create_respects_the_limit_on_tenants() -> None:
    world = PoolWorld().fill()
    use_cases = world.use_cases()
    use_cases.ports.settings.max_tenants = 1  # type: ignore[misc]
    refused = use_cases.lifecycle.create(ACME, Request(by="ada"))
    assert isinstance(refused, Refused)
    assert refused.kind is Refusal.FLEET_FULL


def test_a_deleted_tenant_that_an_operator_creates_again_takes_no_stack() -> None:
    world = PoolWorld(warm_pool=2).fill()
    world.get_queue(ACME)
    world.delete(ACME)
    world.run_executions()
    world.clock.advance(timedelta(minutes=5))
    assert isinstance(world.use_cases().lifecycle.create(ACME, Request(by="ada")), Accepted)


def test_a_tier_that_is_no_longer_wanted_is_emptied() -> None:
    world = a_world_with_gold(standard=1, gold=2).fill()
    world.tiers = {}
    world.settle()
    assert [member.tier for member in world.pool.pool().members.values()] == ["standard"]


def test_a_tier_without_a_release_has_no_stacks_and_says_why_until_one_is_published() -> None:
    world = PoolWorld(warm_pool=0, tiers={"gold": 1})
    world.maintain()
    assert world.pool.pool().members == {}
    assert world.pool.pool().tier("gold").problem == "The tier gold has no release that new tenants could get."
    world.table.record_release(a_release(GOLD, tier="gold"))
    world.fill()
    assert world.pool.pool().tier("gold") == TierOfPool()


# Failures


def fail_creates(world: PoolWorld) -> int:
    """Every create of a stack that runs fails. Returns their number."""
    failed = 0
    for attempt, request in list(world.executions.started):
        if attempt.operation is Operation.CREATE and world.executions.find_running(attempt):
            world.executions.end(world.executions.execution_of(attempt))
            world.table.plant_audit(_failed(attempt.tenant, request.by))
            failed += 1
    return failed


def settle_after_a_minute(world: PoolWorld) -> None:
    """No delete is accepted while a create that was requested within a minute may still begin."""
    world.maintain()
    world.clock.advance(timedelta(minutes=2))
    world.settle()


def test_after_a_failure_one_stack_is_tried_at_a_time_until_one_succeeds() -> None:
    world = PoolWorld(warm_pool=3)
    world.maintain()
    assert fail_creates(world) == 3
    settle_after_a_minute(world)
    remembered = world.pool.pool().tier("standard")
    assert remembered.problem == str(QUEUE_TABOO)
    assert len(orders(world, Operation.CREATE)) == 3, "Nothing is tried again at once."
    world.clock.advance(AFTER_FAILURE)
    world.maintain()
    assert len(orders(world, Operation.CREATE)) == 4
    assert fail_creates(world) == 1
    settle_after_a_minute(world)
    world.clock.advance(AFTER_FAILURE)
    world.settle()
    assert world.ready() == 3
    assert world.pool.pool().tier("standard") == TierOfPool()


def test_a_failure_is_forgotten_if_no_more_stacks_are_wanted() -> None:
    world = PoolWorld(warm_pool=1).fill()
    world.warm_pool = 2
    world.maintain()
    assert fail_creates(world) == 1
    settle_after_a_minute(world)
    assert world.pool.pool().tier("standard").problem
    world.warm_pool = 1
    world.maintain()
    assert world.pool.pool().tier("standard") == TierOfPool()


def test_a_create_that_is_refused_is_not_kept_in_the_list_and_the_reason_is() -> None:
    world = PoolWorld(warm_pool=2)
    use_cases = world.use_cases()
    use_cases.ports.settings.max_tenants = 0  # type: ignore[misc]
    assert use_cases.maintaining.maintain().requested == 2
    pool = world.pool.pool()
    assert pool.members == {}
    assert "berth:maxTenants" in present(pool.tier("standard").problem)


def test_the_pool_remembers_since_when_it_is_empty() -> None:
    world = PoolWorld()
    world.maintain()
    since = world.clock.now()
    world.clock.advance(timedelta(minutes=1))
    world.maintain()
    assert world.pool.pool().tier("standard").empty_since == since
    world.fill()
    assert world.pool.pool().tier("standard").empty_since is None


# Every minute


def test_a_full_pool_is_left_alone() -> None:
    world = a_world_with_gold(standard=2, gold=1).fill()
    revision = world.pool.pool().revision
    assert world.use_cases().maintaining.refill() is None
    assert world.pool.pool().revision == revision


@pytest.mark.parametrize(
    "change",
    [
        lambda world: world.get_queue(ACME),
        lambda world: setattr(world, "warm_pool", 3),
        lambda world: setattr(world, "warm_pool", 1),
        lambda world: world.delete(next(map(TenantId, world.pool.pool().members))),
    ],
    ids=["a tenant takes one", "more are wanted", "fewer are wanted", "one is deleted by hand"],
)
def test_a_pool_that_has_changed_is_maintained(change: Callable[[PoolWorld], object]) -> None:
    world = PoolWorld(warm_pool=2).fill()
    change(world)
    world.run_executions()
    for _ in range(10):
        world.use_cases().maintaining.refill()
        world.run_executions()
    assert world.use_cases().maintaining.refill() is None
    assert world.ready() == world.warm_pool


def test_two_that_maintain_the_pool_at_once_request_no_stack_twice() -> None:
    for call in range(1, 100):
        world = PoolWorld(warm_pool=2)
        at = At(call, world.maintain)
        world.maintain(at.around)
        assert len(world.pool.pool().members) == 2
        assert len(orders(world, Operation.CREATE)) == 2
        if at.calls < call:
            return
    pytest.fail("There are more calls than expected.")


# Orders by hand


@pytest.mark.parametrize(
    "order",
    [
        lambda lifecycle, warm: lifecycle.create(warm, Request(by="ada")),
        lambda lifecycle, warm: lifecycle.upgrade(warm, None, Request(by="ada")),
        lambda lifecycle, warm: lifecycle.move(warm, "gold", Request(by="ada")),
        lambda lifecycle, warm: lifecycle.label(warm, LabelEdit({"plan": "best"}), Request(by="ada")),
        lambda lifecycle, warm: lifecycle.pin(warm, VERSION, Request(by="ada")),
        lambda lifecycle, warm: lifecycle.unpin(warm, Request(by="ada")),
    ],
    ids=["create", "upgrade", "move", "label", "pin", "unpin"],
)
def test_orders_for_a_stack_that_is_kept_ready_are_refused(order: Callable[[Lifecycle, TenantId], object]) -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    before = world.table.metadata(warm)
    with pytest.raises(InvalidTenantId, match="is no tenant"):
        order(world.use_cases().lifecycle, warm)
    assert world.table.metadata(warm) == before


def test_a_stack_that_is_deleted_by_hand_is_replaced() -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    world.delete(warm)
    world.run_executions()
    world.settle()
    assert warm.value not in world.pool.pool().members
    assert world.ready() == 1


def test_a_stack_learns_its_tenant_also_if_the_metadata_was_corrected_before() -> None:
    """Somebody has changed the stack by hand. The correction removes the fingerprint."""
    world = PoolWorld().fill()
    world.get_queue(ACME)
    metadata = present(world.table.metadata(ACME))
    stack = world.stacks.all[present(metadata.stack_id)].stack
    corrected = world.use_cases().ports.ledger.correct(metadata, stack, request=Request(by="ada"), at=world.clock.now())
    assert corrected
    world.settle()
    assert orders(world, Operation.UPDATE) == [ACME]
    assert world.stacks.all[stack.stack_id].stack.tenant_id == ACME.value
    assert {each.state for each in world.pool.pool().members.values()} == {MemberState.READY}


@pytest.mark.parametrize("error", [UnreadableRows, Unsettled])
@pytest.mark.parametrize("whose", ["the tenant's", "the stack's own"])
def test_rows_that_cannot_be_read_do_not_keep_other_stacks_from_being_maintained(
    error: type[Exception], whose: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = PoolWorld(warm_pool=2).fill()
    world.get_queue(ACME)
    world.get_queue(GLOBEX)
    warm = present(next(each for each in world.table.tenants if _given_to(world, each) == ACME))
    unreadable, real = ACME if whose == "the tenant's" else warm, (world.table.metadata, world.table.records)

    def read(what: Callable[[TenantId], Any]) -> Callable[[TenantId], Any]:
        def reading(tenant: TenantId) -> Any:
            if tenant == unreadable:
                raise error(f"The rows of {tenant} cannot be read.")
            return what(tenant)

        return reading

    monkeypatch.setattr(world.table, "metadata", read(real[0]))
    monkeypatch.setattr(world.table, "records", read(real[1]))
    world.settle()
    assert orders(world, Operation.UPDATE) == [GLOBEX]
    assert world.ready() == 2
    assert world.pool.pool().members[warm.value].state is MemberState.LEARNING
    monkeypatch.undo()
    world.settle()
    assert world.ready() == 2
    assert orders(world, Operation.UPDATE) == [GLOBEX, ACME]


def _given_to(world: PoolWorld, warm: TenantId) -> TenantId | None:
    metadata = world.table.metadata(warm)
    return TenantId(metadata.given_to) if metadata and metadata.given_to else None


# Nothing is lost


def living(world: PoolWorld) -> set[str]:
    """The tenants that the stacks name which are there."""
    return {str(each.tenant_id) for each in world.stacks.living}


def test_a_stack_whose_create_begins_late_is_still_the_pools() -> None:
    world = PoolWorld()
    world.maintain()
    for _ in range(5):
        world.clock.advance(timedelta(minutes=10))  # Its first function is throttled.
        world.maintain()
    world.settle()
    assert living(world) == set(world.pool.pool().members)
    assert world.ready() == 1
    assert world.use_cases().maintaining.refill() is None


def test_a_stack_that_was_listed_and_never_requested_is_forgotten_and_another_one_is_tried() -> None:
    world = PoolWorld()

    def dies_once_it_is_listed(_name: str, call: Callable[[], object]) -> object:
        if world.pool.pool().members:
            raise ConnectionError
        return call()

    with pytest.raises(ConnectionError):
        world.maintain(dies_once_it_is_listed)
    (warm,) = world.pool.pool().members
    assert world.table.metadata(TenantId(warm)) is None
    for _ in range(5):
        world.clock.advance(timedelta(minutes=10))
        world.maintain()
        world.run_executions()
    assert warm not in world.pool.pool().members
    assert world.ready() == 1


def test_a_stack_whose_create_has_died_without_a_record_is_replaced_and_leaves_nothing() -> None:
    world = PoolWorld()
    world.maintain()
    (warm,) = map(TenantId, world.pool.pool().members)
    world.executions.running.clear()
    for _ in range(5):
        world.clock.advance(timedelta(minutes=10))
        world.maintain()
        world.run_executions()
    world.settle()
    assert warm.value not in world.pool.pool().members
    assert world.table.metadata(warm) is None
    assert world.ready() == 1


def test_a_stack_that_somebody_deletes_in_cloudformation_is_replaced_and_leaves_nothing() -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    (stack,) = world.stacks.living
    world.stacks.change(stack.stack_id, "DELETE_IN_PROGRESS")
    world.use_cases().forget_queue(warm, stack_id=stack.stack_id)
    world.stacks.change(stack.stack_id, "DELETE_COMPLETE")
    for _ in range(5):
        world.clock.advance(timedelta(minutes=10))
        world.maintain()
        world.run_executions()
    world.settle()
    assert world.table.metadata(warm) is None
    assert living(world) == set(world.pool.pool().members)
    assert world.ready() == 1
    assert world.use_cases().maintaining.refill() is None


def test_a_delete_of_a_stack_that_begins_after_its_tenant_was_learned_deletes_nothing_and_leaves_nothing() -> None:
    world = PoolWorld().fill()
    (warm,) = map(TenantId, world.pool.pool().members)
    world.delete(warm)
    (delayed,) = world.executions.running
    answer = world.get_queue(ACME)
    world.executions.running.clear()
    world.settle()
    assert world.table.metadata(warm) is None, "The stack has learned its tenant."
    world.executions.running.add(delayed)
    world.run_executions()
    assert state_of(world.table.metadata(warm), world.table.audits(warm)) is TenantState.DELETED
    assert world.table.metadata(warm) is None
    assert world.get_queue(ACME) == answer
    world.check_served(ACME)
