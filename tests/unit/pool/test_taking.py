"""A new tenant takes a stack that is kept ready: with few requests, and with nothing but what is recorded now."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.errors import Contended
from orchestrator.common.tenant_ids import TenantId
from orchestrator.composition import UseCases
from orchestrator.pool.seen import KEPT_FOR
from orchestrator.reconciling.checking import check
from orchestrator.tenants.decisions import FleetFull, TooManyCreates
from orchestrator.tenants.order_results import Accepted
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Operation, Queue, Request, Status, TenantState
from orchestrator.tenants.state import state_of
from tests.fakes import NEXT_VERSION, a_release, an_audit
from tests.present import present
from tests.simulation.pool_world import ACME, GLOBEX, HOOLI, INITECH, PoolWorld
from tests.simulation.world import watched

GOLD = "2.0.0"
LOOK = ["table.metadata", "table.audits", "release_states.state"]
"""The reads of every first call: whether the tenant is new, and which release is current."""
SHARED = Queue("arn:aws:sqs:eu-west-1:000000000000:shared-0", "https://sqs.eu-west-1.amazonaws.com/0/shared-0")


class Process:
    """A process of getQueue's function, and its calls to the outside."""

    def __init__(self, world: PoolWorld) -> None:
        self.world = world
        self.calls: list[str] = []
        states = watched("release_states", world.release_states, self._note)
        self.use_cases = world.use_cases(self._note, release_states=states)

    def _note(self, name: str, call: Callable[[], Any]) -> Any:
        if name != "executions.execution_of":  # No service is called.
            self.calls.append(name)
        return call()

    def ask(self, tenant: TenantId) -> object:
        self.calls.clear()
        return self.world.get_queue(tenant, process=self.use_cases)


def warm_stacks(world: PoolWorld) -> list[TenantId]:
    return [TenantId(name) for name in world.pool.pool().members]


def given(world: PoolWorld, tenant: TenantId) -> TenantId:
    """The stack that the tenant has taken."""
    (found,) = (warm for warm in warm_stacks(world) if present(world.table.metadata(warm)).given_to == tenant.value)
    return found


# Requests


def test_the_first_call_of_a_process_reads_the_pool_and_the_next_ones_only_take_what_it_has_seen() -> None:
    process = Process(PoolWorld(warm_pool=3).fill())
    assert isinstance(process.ask(ACME), Ready)
    assert process.calls == [*LOOK, "warm_stacks.pool", "table.metadata_of", "table.apply"]
    for tenant in (GLOBEX, INITECH):
        assert isinstance(process.ask(tenant), Ready)
        assert process.calls == [*LOOK, "table.apply"]
    assert isinstance(process.ask(HOOLI), Provisioning)


def test_a_process_reads_the_list_of_ready_stacks_again_after_a_while() -> None:
    world = PoolWorld(warm_pool=3).fill()
    process = Process(world)
    process.ask(ACME)
    world.clock.advance(KEPT_FOR)
    assert isinstance(process.ask(GLOBEX), Ready)
    assert process.calls == [*LOOK, "warm_stacks.pool", "table.metadata_of", "table.apply"]


def test_the_list_of_ready_stacks_is_read_after_two_lost_races() -> None:
    world = PoolWorld(warm_pool=5).fill()
    process = Process(world)
    process.ask(ACME)
    for number in range(4):
        world.get_queue(TenantId(f"other-{number}"))
    assert isinstance(process.ask(GLOBEX), Provisioning)
    tried = ["table.apply", "table.metadata"]
    assert process.calls[: len(LOOK) + 6] == [*LOOK, *tried, *tried, "warm_stacks.pool", "table.metadata_of"]


def test_stacks_that_are_gone_are_not_read_by_every_call_until_the_list_is_renewed() -> None:
    world = PoolWorld(warm_pool=2).fill()
    for tenant in (ACME, GLOBEX):
        world.get_queue(tenant)
    process = Process(world)
    process.ask(INITECH)
    assert "table.metadata_of" in process.calls
    process.ask(HOOLI)
    assert "warm_stacks.pool" in process.calls
    assert "table.metadata_of" not in process.calls
    world.settle()
    assert isinstance(process.ask(TenantId("umbrella")), Ready)


# The queue that the tenant gets


def test_a_stack_that_has_changed_since_it_was_seen_is_given_as_it_is_recorded_now() -> None:
    """An update that changes no release has given the stack another output, and another fingerprint."""
    world = PoolWorld(warm_pool=2).fill()
    process = Process(world)
    process.ask(ACME)
    (warm,) = (each for each in warm_stacks(world) if present(world.table.metadata(each)).given_to is None)
    world.table.change_metadata(warm, deployed="another fingerprint", resources={"BucketName": "a-bucket"})
    answer = process.ask(GLOBEX)
    assert isinstance(answer, Ready)
    assert answer.resources == {"BucketName": "a-bucket"}
    own = present(world.table.metadata(GLOBEX))
    assert (own.deployed, own.resources) == ("another fingerprint", {"BucketName": "a-bucket"})


def test_a_tenant_whose_metadata_was_lost_takes_no_stack_because_it_may_have_its_own() -> None:
    world = PoolWorld().fill()
    world.table.plant_audit(an_audit(Status.SUCCESS, version=NEXT_VERSION), listed=False)
    assert world.table.metadata(ACME) is None
    assert isinstance(world.get_queue(ACME), Provisioning)
    assert world.ready() == 1


def test_a_tenant_that_was_deleted_takes_no_stack() -> None:
    world = PoolWorld(warm_pool=2).fill()
    world.get_queue(ACME)
    world.delete(ACME)
    world.run_executions()
    assert not isinstance(world.get_queue(ACME), Ready | Provisioning)


@pytest.mark.parametrize("conflicts", [1, 2])
def test_the_next_stack_is_tried_while_another_call_is_taking_this_one(
    conflicts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DynamoDB cancels one of two transactions that write the same rows at the same moment."""
    world = PoolWorld(warm_pool=3).fill()
    real, left = world.table.apply, [Contended("TransactWriteItems: conflict")] * conflicts

    def apply(transition: Any) -> bool:
        if left:
            raise left.pop()
        return real(transition)

    monkeypatch.setattr(world.table, "apply", apply)
    assert isinstance(world.get_queue(ACME), Ready)
    world.check()


# Limits


def test_a_stack_that_is_ready_was_counted_when_it_was_created_and_is_given_also_if_the_fleet_is_full() -> None:
    world = PoolWorld().fill()
    use_cases = _limited(world, max_tenants=1)
    world.clock.advance(timedelta(minutes=2))  # A count may be a minute old.
    assert isinstance(use_cases.get_queue(ACME, by="a platform"), Ready)
    assert world.table.count_tenants() == 1
    assert isinstance(use_cases.get_queue(GLOBEX, by="a platform"), FleetFull)
    use_cases.maintaining.maintain()
    world.run_executions()
    assert world.table.count_tenants() == 1, "The stack is not replaced until there is room."


def test_the_rate_of_creates_applies_once_the_pool_is_empty() -> None:
    world = PoolWorld(warm_pool=2).fill()
    use_cases = _limited(world, creates_per_minute=1)
    answers = [use_cases.get_queue(tenant, by="a platform") for tenant in (ACME, GLOBEX, INITECH, HOOLI)]
    assert [type(answer) for answer in answers] == [Ready, Ready, Provisioning, TooManyCreates]


def _limited(world: PoolWorld, **limits: int) -> UseCases:
    use_cases = world.use_cases()
    for name, limit in limits.items():
        setattr(use_cases.ports.settings, name, limit)
    return use_cases


# Before the stack has learned its tenant


def test_an_upgrade_is_the_lesson() -> None:
    world = PoolWorld().fill()
    before = world.get_queue(ACME)
    warm = given(world, ACME)
    world.release = NEXT_VERSION
    assert isinstance(world.use_cases().lifecycle.upgrade(ACME, NEXT_VERSION, Request(by="ada")), Accepted)
    world.run_executions()
    world.settle()
    _is_taught(world, warm)
    after = world.get_queue(ACME)
    assert isinstance(before, Ready)
    assert isinstance(after, Ready)
    assert (after.queue, after.version) == (before.queue, NEXT_VERSION)
    updates = [attempt for attempt, _ in world.executions.started if attempt.operation is Operation.UPDATE]
    assert [attempt.tenant for attempt in updates] == [ACME]


def test_a_move_to_another_tier_is_the_lesson() -> None:
    world = PoolWorld().fill()
    before = world.get_queue(ACME)
    warm = given(world, ACME)
    world.table.record_release(a_release(GOLD, tier="gold"))
    assert isinstance(world.use_cases().lifecycle.move(ACME, "gold", Request(by="ada")), Accepted)
    world.run_executions()
    world.settle()
    _is_taught(world, warm)
    assert present(world.table.metadata(ACME)).tier == "gold"
    after = world.get_queue(ACME)
    assert isinstance(before, Ready)
    assert isinstance(after, Ready)
    assert (after.queue, after.version) == (before.queue, GOLD)
    assert world.ready() == 1


def test_a_tenant_that_is_deleted_and_created_again_gets_a_stack_of_its_own_name() -> None:
    world = PoolWorld().fill()
    world.get_queue(ACME)
    first = present(present(world.table.metadata(ACME)).stack_id)
    world.delete(ACME)
    world.run_executions()
    world.clock.advance(timedelta(minutes=1))
    assert isinstance(world.use_cases().lifecycle.create(ACME, Request(by="ada", explicit=True)), Accepted)
    world.run_executions()
    own = present(world.table.metadata(ACME))
    assert own.stack_id != first
    assert world.stacks.all[present(own.stack_id)].stack.tenant_id == ACME.value
    world.settle()
    assert state_of(world.table.metadata(ACME), world.table.audits(ACME)) is TenantState.READY
    assert world.stacks.all[first].stack.status == "DELETE_COMPLETE"


def test_a_stack_that_is_taken_before_its_delete_begins_still_learns_its_tenant() -> None:
    world = PoolWorld(warm_pool=2).fill()
    process = world.use_cases()
    world.get_queue(GLOBEX, process=process)  # The process has seen both stacks.
    world.warm_pool = 0
    world.maintain()  # The delete of the other one is started.
    assert isinstance(world.get_queue(ACME, process=process), Ready)
    warm = given(world, ACME)
    world.run_executions()
    world.settle()
    world.check_served(ACME, GLOBEX)
    _is_taught(world, warm)


def test_a_survey_that_has_listed_a_stack_before_it_was_taken_creates_no_other_in_its_place() -> None:
    world = PoolWorld().fill()
    world.get_queue(ACME)
    warm = given(world, ACME)
    releases = {release.version: release for release in world.table.releases()}
    _, before = check(warm, world.table, world.stacks, world.queues, releases)
    world.settle()
    _is_taught(world, warm)
    _, after = check(warm, world.table, world.stacks, world.queues, releases)
    assert (before, after) == (None, None)


def _is_taught(world: PoolWorld, warm: TenantId) -> None:
    """The stack names its tenant, and nobody keeps a record of who has taken it."""
    stack_id = present(present(world.table.metadata(ACME)).stack_id)
    assert world.stacks.all[stack_id].stack.tenant_id == ACME.value
    assert world.table.metadata(warm) is None
    assert warm not in warm_stacks(world)
