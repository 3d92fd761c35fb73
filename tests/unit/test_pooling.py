"""The tier pooled: tenants share queues, without stacks of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import POOLED, STANDARD
from orchestrator.reconciling.records import Finding, Kind, Spec
from orchestrator.reconciling.settling import Settled
from orchestrator.rollouts.records import Skip
from orchestrator.tenants.admission import Refusal, Refused
from orchestrator.tenants.decisions import Deleted, Failed, TooManyCreates
from orchestrator.tenants.fleet import list_tenants
from orchestrator.tenants.messages import Messages
from orchestrator.tenants.order_results import Accepted, Changed, Unchanged
from orchestrator.tenants.outcomes import Clearing, Empty, GaveUp, Gone, Started
from orchestrator.tenants.pooling import POOL_RETENTION
from orchestrator.tenants.ports import LabelEdit
from orchestrator.tenants.provisioning import Provisioning
from orchestrator.tenants.ready import FormerQueue, Ready
from orchestrator.tenants.records import Attempt, Operation, Queue, Request, Run, Status, TenantState
from orchestrator.tenants.resource_requests import Kind as ResourceKind
from orchestrator.tenants.resource_requests import OnDelete, TenantQueueRequest
from orchestrator.tenants.tenant_queue import NotProvided, Waiting, settle
from orchestrator.tenants.writes import Append
from tests.fakes import ACME, NEXT_VERSION, QUEUE, VERSION, Orders, a_release, a_resource, stack_arn
from tests.unit.reconciling.world import asked_for
from tests.unit.rollouts.world import Fleet, a_spec

BY_ADA = Request(by="ada")
OTHER = TenantId.parse("other")
GOLD, NEXT_GOLD, SILVER = "2.0.0", "2.1.0", "3.0.0"


def pool(number: int) -> list[Queue]:
    names = [f"berth-pool-{each}" for each in range(1, number + 1)]
    return [
        Queue(f"arn:aws:sqs:eu-west-1:000000000000:{name}", f"https://sqs.eu-west-1.amazonaws.com/000000000000/{name}")
        for name in names
    ]


@pytest.fixture
def world() -> Orders:
    made = Orders()
    made.settings.pooled_queues = pool(4)
    made.settings.default_tier = POOLED
    made.table.record_release(a_release(GOLD, tier="gold"))
    made.table.record_release(a_release(SILVER, tier="silver"))
    return made


@pytest.fixture
def pooled(world: Orders) -> Orders:
    """acme is of the pool."""
    assert isinstance(world.get_queue(ACME, by="platform"), Ready)
    world.clock.advance(timedelta(seconds=1))
    return world


def refused(ordered: object, kind: Refusal = Refusal.OTHER_TIER) -> str:
    assert isinstance(ordered, Refused), ordered
    assert ordered.kind is kind
    return ordered.reason


class TestJoining:
    def test_the_first_get_queue_answers_with_a_queue_and_the_tenant_as_its_message_group(self, world: Orders) -> None:
        answer = world.get_queue(ACME, by="platform")
        assert isinstance(answer, Ready)
        assert answer.queue in world.settings.pooled_queues
        assert (answer.message_group, answer.version, answer.former) == ("acme", None, None)
        assert not world.executions.started, "there is no stack to make"
        assert world.get_queue(ACME) == answer

    def test_it_is_one_transaction(self, world: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
        applied: list[Any] = []
        apply = world.table.apply
        monkeypatch.setattr(world.table, "apply", lambda transition: applied.append(transition) or apply(transition))
        world.get_queue(ACME)
        (transition,) = applied
        assert len(transition) == 4
        assert sum(isinstance(write, Append) for write in transition) == 1

    def test_the_tenant_is_listed_and_its_history_says_who_asked(self, pooled: Orders) -> None:
        (listed,) = list_tenants(pooled.table, tier=POOLED).tenants
        assert (listed.state, listed.version, listed.tier) == (TenantState.READY, None, POOLED)
        (entry,) = pooled.table.history(ACME)
        assert (entry.operation, entry.version, entry.status) == (Operation.CREATE, POOLED, Status.SUCCESS)
        assert entry.requested_by == "platform"
        assert pooled.metadata.created_by == "platform"

    def test_the_queue_depends_on_the_tenant_alone(self, world: Orders) -> None:
        found = {world.queue_pool.queue_of(TenantId.parse(f"t{number}")).name for number in range(100)}
        assert len(found) == 4
        assert world.queue_pool.queue_of(ACME) == Orders(settings=world.settings).queue_pool.queue_of(ACME)

    @pytest.mark.parametrize("number", [1, 3, 20])
    def test_another_number_of_queues_moves_nobody(self, pooled: Orders, number: int) -> None:
        before = pooled.get_queue(ACME)
        pooled.settings.pooled_queues = pool(number)
        assert pooled.get_queue(ACME) == before
        pooled.lifecycle.label(ACME, LabelEdit({"plan": "free"}, []), BY_ADA)
        assert pooled.get_queue(ACME) == before

    def test_an_operator_creates_one_with_labels(self, world: Orders) -> None:
        created = world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED, labels={"plan": "free"}))
        assert isinstance(created, Changed)
        assert "message group acme" in created.reason
        assert world.metadata.labels == {"plan": "free"}
        assert isinstance(world.lifecycle.create(ACME, BY_ADA), Unchanged)

    def test_without_a_pool_it_is_refused(self, world: Orders) -> None:
        world.settings.pooled_queues = ()
        assert "berth:pooledQueues" in refused(world.lifecycle.create(ACME, BY_ADA), Refusal.NO_RELEASE)

    def test_a_pin_is_refused(self, pooled: Orders) -> None:
        refused(pooled.lifecycle.pin(ACME, VERSION, BY_ADA))
        refused(pooled.lifecycle.create(OTHER, replace(BY_ADA, tier=POOLED, pin=VERSION)))

    def test_creates_are_limited_as_others_are(self, world: Orders) -> None:
        world.settings.creates_per_minute = 1
        assert isinstance(world.get_queue(ACME, by="platform"), Ready)
        assert isinstance(world.get_queue(OTHER, by="platform"), TooManyCreates)

    def test_a_tenant_that_may_have_a_stack_is_not_pooled(self, world: Orders) -> None:
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        assert "berth delete acme" in refused(world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED)))

    def test_a_tenant_whose_delete_failed_may_have_a_stack_and_is_not_pooled(self, world: Orders) -> None:
        world.failed(world.begun(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))))
        world.stacks.plant_done(ACME, version=GOLD, status="DELETE_FAILED")
        world.failed(world.begun(world.lifecycle.delete(ACME, BY_ADA)))
        assert "berth delete acme" in refused(world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED)))
        assert isinstance(world.get_queue(ACME), Failed)

    def test_a_create_that_was_accepted_before_and_has_not_begun_comes_first(self, world: Orders) -> None:
        gold = world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))
        into_pool = replace(BY_ADA, tier=POOLED)
        assert "CREATE 2.0.0 is about to begin" in refused(world.lifecycle.create(ACME, into_pool), Refusal.BUSY)
        world.clock.advance(timedelta(hours=1))  # Its execution is running, but has not come to its first step.
        assert "CREATE 2.0.0 is about to begin" in refused(world.lifecycle.create(ACME, into_pool), Refusal.BUSY)
        world.succeeded(world.begun(gold))
        assert world.metadata.tier == "gold"

    def test_a_create_that_was_accepted_and_died_before_it_began_does_not_keep_a_tenant_out(
        self, world: Orders
    ) -> None:
        gold = world.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))
        assert isinstance(gold, Accepted)
        world.executions.end(gold.execution)
        world.clock.advance(timedelta(minutes=2))
        assert isinstance(world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED)), Changed)

    def test_a_create_that_waits_for_its_turn_after_a_delete_comes_first(self, pooled: Orders) -> None:
        pooled.succeeded(pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA)))
        pooled.clock.advance(timedelta(seconds=1))
        gold = pooled.run_of(pooled.lifecycle.create(ACME, replace(BY_ADA, tier="gold")))
        pooled.executions.waiting.add("its token")
        pooled.await_admission(gold, task_token="its token")
        pooled.clock.advance(timedelta(minutes=5))
        into_pool = replace(BY_ADA, tier=POOLED)
        assert "CREATE 2.0.0 is about to begin" in refused(pooled.lifecycle.create(ACME, into_pool), Refusal.BUSY)
        pooled.executions.end(gold.execution)  # The row alone counts, too.
        assert "accepted before" in refused(pooled.lifecycle.create(ACME, into_pool), Refusal.BUSY)
        assert isinstance(pooled.get_queue(ACME), Provisioning)

    @pytest.mark.parametrize("by_get_queue", [True, False])
    def test_a_create_that_is_accepted_while_the_tenant_joins_comes_first(
        self, world: Orders, monkeypatch: pytest.MonkeyPatch, by_get_queue: bool
    ) -> None:
        join_pool, accepted = world.table.join_pool, list[Any]()

        def late(*given: Any, **more: Any) -> bool:
            monkeypatch.setattr(world.table, "join_pool", join_pool)
            accepted.append(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold")))
            return join_pool(*given, **more)

        monkeypatch.setattr(world.table, "join_pool", late)
        if by_get_queue:
            answer = world.get_queue(ACME, by="platform")
            assert answer == Provisioning(accepted[0].execution)
        else:
            joined = world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED))
            assert "accepted before" in refused(joined, Refusal.BUSY)
        world.succeeded(world.begun(accepted[0]))
        assert world.metadata.tier == "gold"

    def test_a_tenant_that_joins_while_another_create_is_accepted_keeps_its_queue(
        self, world: Orders, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        describe = world.table.describe

        def late(*given: Any, **more: Any) -> Any:
            monkeypatch.setattr(world.table, "describe", describe)
            world.get_queue(ACME, by="platform")
            return describe(*given, **more)

        monkeypatch.setattr(world.table, "describe", late)
        refused(world.lifecycle.create(ACME, replace(BY_ADA, tier="gold")), Refusal.BUSY)
        assert isinstance(world.get_queue(ACME), Ready)
        assert (world.metadata.tier, world.executions.started) == (POOLED, [])

    def test_simultaneous_callers_get_the_same_queue(self, world: Orders, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another caller joins between the reads and the write of this one."""
        join_pool = world.table.join_pool

        def late(*given: Any, **more: Any) -> bool:
            monkeypatch.setattr(world.table, "join_pool", join_pool)
            world.get_queue(ACME, by="another")
            return join_pool(*given, **more)

        monkeypatch.setattr(world.table, "join_pool", late)
        answer = world.get_queue(ACME, by="platform")
        assert isinstance(answer, Ready)
        assert world.metadata.created_by == "another"
        assert len(world.table.history(ACME)) == 1

    @pytest.mark.parametrize("own_queue", [False, True], ids=["in the pool", "with a queue of its own"])
    def test_an_operator_whose_create_came_second_is_told_of_the_tenant_that_exists(
        self, world: Orders, monkeypatch: pytest.MonkeyPatch, own_queue: bool
    ) -> None:
        join_pool = world.table.join_pool

        def late(*given: Any, **more: Any) -> bool:
            monkeypatch.setattr(world.table, "join_pool", join_pool)
            if own_queue:
                world.provision()
            else:
                world.get_queue(ACME, by="another")
            return join_pool(*given, **more)

        monkeypatch.setattr(world.table, "join_pool", late)
        created = world.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED, labels={"plan": "free"}))
        if own_queue:
            assert "has a queue of its own" in refused(created)
            assert world.metadata.labels == {}
        else:
            assert isinstance(created, Changed)
            assert "acme exists. Its labels are recorded" in created.reason
            assert world.metadata.labels == {"plan": "free"}


class TestDeleting:
    def deleted(self, world: Orders) -> None:
        run = world.begun(world.lifecycle.delete(ACME, BY_ADA))
        assert isinstance(world.check_messages(run, empty_since=None), Empty)
        assert world.start_stack(run, looked_at=world.clock.now()) == Gone()
        world.succeeded(run)

    def test_the_record_goes_and_the_queue_stays(self, pooled: Orders) -> None:
        queue = pooled.metadata.queue
        assert queue is not None
        pooled.queues.held[queue.url] = Messages(7, 0, 0)  # They may be any tenant's messages.
        self.deleted(pooled)
        assert pooled.table.metadata(ACME) is None
        assert pooled.state() is TenantState.DELETED
        assert isinstance(pooled.get_queue(ACME), Deleted), "a stray call does not bring it back"

    def test_draining_is_refused_because_sqs_does_not_count_by_group(self, pooled: Orders) -> None:
        reason = refused(pooled.lifecycle.delete(ACME, replace(BY_ADA, drain_seconds=600)))
        assert "SQS does not count messages by group" in reason

    def test_unfinished_events_keep_it(self, pooled: Orders) -> None:
        pooled.unfinished_work.held[ACME] = {"events in the inbox": 2}
        refused(pooled.lifecycle.delete(ACME, BY_ADA), Refusal.NOT_EMPTY)

    def test_a_delete_that_failed_gives_the_tenant_back(self, pooled: Orders) -> None:
        before = pooled.get_queue(ACME)
        pooled.failed(pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA)))
        assert pooled.get_queue(ACME) == before

    def test_a_delete_that_died_gives_the_tenant_back(self, pooled: Orders) -> None:
        run = pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA))
        pooled.died(run)
        pooled.clock.advance(timedelta(hours=1))
        pooled.settling.settle(run)
        assert isinstance(pooled.get_queue(ACME), Ready)

    def test_an_explicit_create_brings_it_back_as_a_new_tenant(self, pooled: Orders) -> None:
        first = pooled.metadata.created_at
        self.deleted(pooled)
        pooled.clock.advance(timedelta(minutes=1))
        assert isinstance(pooled.lifecycle.create(ACME, BY_ADA), Changed)
        assert pooled.metadata.created_at != first
        assert pooled.state() is TenantState.READY

    def test_an_older_delete_does_not_delete_a_tenant_that_was_created_again(self, pooled: Orders) -> None:
        asked_at = pooled.clock.now()
        self.deleted(pooled)
        pooled.clock.advance(timedelta(minutes=1))
        pooled.lifecycle.create(ACME, BY_ADA)
        pooled.clock.advance(timedelta(minutes=1))
        late = pooled.run_of(pooled.lifecycle.delete(ACME, replace(BY_ADA, asked_at=asked_at)))
        assert isinstance(pooled.begin(late), GaveUp)

    def test_a_delete_that_gives_the_tenant_back_gives_it_back_to_the_pool(self, pooled: Orders) -> None:
        """Also if it was to be created in another tier after the delete."""
        before = pooled.get_queue(ACME)
        run = pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA))
        pooled.executions.end(run.execution)
        pooled.clock.advance(timedelta(hours=1))
        create = pooled.lifecycle.create(ACME, replace(BY_ADA, tier="gold"))
        assert isinstance(create, Accepted)
        pooled.executions.end(create.execution)  # It never begins.
        pooled.settling.settle(run)
        assert pooled.get_queue(ACME) == before


class TestMovingOut:
    def test_the_tenant_is_served_from_the_pool_until_its_own_queue_is_published(self, pooled: Orders) -> None:
        shared = pooled.get_queue(ACME)
        assert isinstance(shared, Ready)
        ordered = pooled.lifecycle.move(ACME, "gold", BY_ADA)
        assert isinstance(ordered, Accepted)
        assert (ordered.attempt.operation, ordered.attempt.version) == (Operation.CREATE, GOLD)
        run = pooled.begun(ordered)
        assert isinstance(pooled.start_stack(run), Started)
        pooled.record_queue(ACME, stack_id=stack_arn(), reported=QUEUE)  # The new stack reports its queue.
        assert pooled.get_queue(ACME) == shared

        pooled.succeeded(run)
        until = pooled.clock.now() + POOL_RETENTION
        answer = pooled.get_queue(ACME)
        assert answer == Ready(QUEUE, GOLD, former=FormerQueue(shared.queue, until))
        assert pooled.metadata.tier == "gold"

    def test_the_former_queue_is_named_until_its_messages_have_expired(self, pooled: Orders) -> None:
        pooled.succeeded(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        pooled.clock.advance(POOL_RETENTION - timedelta(seconds=1))
        answer = pooled.get_queue(ACME)
        assert isinstance(answer, Ready)
        assert answer.former is not None
        pooled.clock.advance(timedelta(seconds=1))
        assert pooled.get_queue(ACME) == Ready(QUEUE, GOLD)

    def test_the_tenant_stays_the_same_one(self, pooled: Orders) -> None:
        before = pooled.metadata
        pooled.succeeded(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        assert pooled.metadata.created_at == before.created_at, "its events belong to the same life"
        assert pooled.metadata.created_by == before.created_by

    def test_after_a_failed_move_it_is_of_the_pool_and_a_retry_moves_it(self, pooled: Orders) -> None:
        shared = pooled.get_queue(ACME)
        pooled.failed(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        assert pooled.get_queue(ACME) == shared
        assert pooled.metadata.tier == POOLED
        pooled.succeeded(pooled.begun(pooled.lifecycle.retry(ACME, "bob")))
        assert pooled.metadata.tier == "gold"

    def test_the_stack_of_a_failed_move_is_cleared_by_a_move_to_a_third_tier(self, pooled: Orders) -> None:
        run = pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA))
        pooled.failed(run)
        pooled.stacks.plant_done(ACME, version=GOLD)
        run = pooled.begun(pooled.lifecycle.move(ACME, "silver", BY_ADA))
        assert isinstance(pooled.start_stack(run), Clearing)
        pooled.stacks.settle()
        assert isinstance(pooled.start_stack(run), Started)
        assert pooled.get_queue(ACME).queue != QUEUE

    def test_a_stack_that_no_failed_move_has_left_is_not_deleted(self, pooled: Orders) -> None:
        pooled.stacks.plant_done(ACME, version=GOLD)
        run = pooled.begun(pooled.lifecycle.move(ACME, "silver", BY_ADA))
        assert isinstance(pooled.start_stack(run), GaveUp)

    def test_a_move_that_waited_while_the_tenant_was_deleted_and_created_again_does_not_move_the_new_one(
        self, pooled: Orders
    ) -> None:
        move = pooled.run_of(pooled.lifecycle.move(ACME, "gold", BY_ADA))
        pooled.executions.waiting.add("its token")
        pooled.await_admission(move, task_token="its token")
        pooled.succeeded(pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA)))
        pooled.clock.advance(timedelta(seconds=1))
        assert isinstance(pooled.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED)), Changed)
        begun = pooled.begin(move, can_wait=True)
        assert isinstance(begun, GaveUp)
        pooled.failed(move)
        assert (pooled.metadata.tier, pooled.state()) == (POOLED, TenantState.READY)
        # A move that is requested now is another one.
        pooled.succeeded(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        assert pooled.metadata.tier == "gold"

    def test_a_create_that_died_does_not_publish_the_stack_that_a_failed_move_has_left(self, pooled: Orders) -> None:
        shared = pooled.get_queue(ACME)
        pooled.failed(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        pooled.stacks.plant_done(ACME, version=GOLD)
        for tier in (None, "silver"):
            # One that nobody has asked to move the tenant, and one to another tier.
            request = replace(BY_ADA, tier=tier, explicit=True)
            attempt = Attempt(ACME, Operation.CREATE, GOLD if tier is None else SILVER, 2)
            assert pooled.executions.start(attempt, request)
            died = Run(attempt, pooled.executions.execution_of(attempt), pooled.clock.now(), request)
            pooled.begin(died)
            assert pooled.table.lock(ACME) is not None
            pooled.executions.end(died.execution)
            settled = pooled.settling.settle(died)
            assert isinstance(settled, Settled)
            assert settled.status is Status.FAILURE
            assert pooled.table.lock(ACME) is None
            assert pooled.get_queue(ACME) == shared

    def test_only_a_move_gives_it_a_stack(self, pooled: Orders) -> None:
        refused(pooled.lifecycle.upgrade(ACME, None, BY_ADA))
        refused(pooled.lifecycle.upgrade(ACME, NEXT_VERSION, BY_ADA))
        assert not pooled.executions.started


class TestOthers:
    def test_a_resource_of_another_stack_does_not_get_a_shared_queue(self, pooled: Orders) -> None:
        asked = TenantQueueRequest(
            ResourceKind.CREATE, ACME, Request(resource=a_resource()), OnDelete.RETAIN, replaces=None
        )
        answer = settle(asked, since=pooled.clock.now(), lifecycle=pooled.tenant_queue_lifecycle)
        assert isinstance(answer, NotProvided)
        assert "berth move acme" in answer.reason

    def test_a_resource_of_another_stack_gets_a_queue_of_its_own_also_if_the_default_is_the_pool(
        self, world: Orders
    ) -> None:
        ordered = world.tenant_queue_lifecycle.create(OTHER, Request(resource=a_resource()))
        assert isinstance(ordered, Accepted)
        assert world.metadata_of(OTHER).tier == STANDARD

    def test_a_resource_of_another_stack_waits_for_its_delete_and_is_told_what_became_of_it(
        self, pooled: Orders
    ) -> None:
        deleting = pooled.begun(pooled.lifecycle.delete(ACME, BY_ADA))
        asked = TenantQueueRequest(
            ResourceKind.CREATE, ACME, Request(resource=a_resource(), explicit=True), OnDelete.RETAIN, replaces=None
        )
        since = pooled.clock.now()
        assert settle(asked, since=since, lifecycle=pooled.tenant_queue_lifecycle) == Waiting()
        pooled.clock.advance(timedelta(seconds=1))
        pooled.finish(deleting, None)
        pooled.executions.end(deleting.execution)
        answer = settle(asked, since=since, lifecycle=pooled.tenant_queue_lifecycle)
        assert isinstance(answer, NotProvided)
        assert "acme was deleted, but not by this resource" in answer.reason

    def test_a_rollout_skips_it(self) -> None:
        fleet = Fleet(2)
        fleet.settings.pooled_queues = pool(2)
        fleet.lifecycle.create(ACME, replace(BY_ADA, tier=POOLED))
        rollout = fleet.rollout(fleet.start(a_spec()))
        assert rollout.skipped[Skip.OTHER_TIER].tenants == ("acme",)

    def test_a_survey_finds_nothing_missing_and_asks_for_nothing(self, pooled: Orders) -> None:
        assert not _surveyed(pooled)

    def test_a_survey_shows_the_stack_that_a_failed_move_has_left(self, pooled: Orders) -> None:
        pooled.failed(pooled.begun(pooled.lifecycle.move(ACME, "gold", BY_ADA)))
        pooled.stacks.plant_done(ACME, version=GOLD)
        (finding,) = _surveyed(pooled)
        assert finding.kind is Kind.METADATA_DIFFERS
        assert "berth retry acme" in finding.advice


def _surveyed(world: Orders) -> Sequence[Finding]:
    return world.reconciler().run(asked_for(Spec())).findings
