"""The contract of the rollouts' table: the condition of every write. The DynamoDB adapter and the fake follow it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.rollouts.counting import Reviews, admission, reviews_of, settlement
from orchestrator.rollouts.pacing import Pace
from orchestrator.rollouts.ports import Registry, RolloutLedger
from orchestrator.rollouts.records import (
    Item,
    Order,
    RecordedOrder,
    Repairs,
    Result,
    Rollout,
    RolloutStatus,
    Share,
    Skip,
    Skipped,
    Spec,
    Stage,
    StageSpec,
    StageStatus,
    TenantOutcome,
)
from tests.fakes import NEXT_VERSION, NOON, QUEUE_TABOO, VERSION
from tests.fakes.rollouts import count_reviews
from tests.present import present

ONE, TWO, THREE = "20261116-120000-00a1", "20261116-120001-00a2", "20261117-120000-00a0"
"""Rollout ids, oldest first."""
REST = StageSpec(None, 8, Share(5, percent=True))
CANARY = StageSpec(Share(1), 1, Share(0), bake_seconds=300, alarm="tenants are unwell", approval=True)
LATER = NOON + timedelta(milliseconds=1)
FULL_SPEC = Spec(
    version=NEXT_VERSION,
    stages=(CANARY, StageSpec(Share(10, percent=True), 4, Share(2)), REST),
    tenants=(TenantId.parse("a"), TenantId.parse("b")),
    labels={"tier": "gold", "region": ""},
    share=Share(50, percent=True),
    allow_downgrade=True,
    allow_replacement=True,
    undo=TWO,
    retry=THREE,
)
TO_LOOK = Spec(VERSION, (REST,), dry_run=True, sample=Share(3))
ENDED = [status for status in RolloutStatus if not status.active]
ACTIVE = [status for status in RolloutStatus if status.active]


def a_rollout(rollout: str = ONE, **changes: Any) -> Rollout:
    spec = Spec(NEXT_VERSION, (CANARY, REST))
    return replace(Rollout(rollout, spec, "ada", NOON, planned=(1, 9), total=10, skipped={}), **changes)


def a_stage(rollout: str = ONE, number: int = 1, **changes: Any) -> Stage:
    manifest = f"rollouts/{rollout}/stage-{number}.json"
    stage = Stage(rollout, number, CANARY, total=5, tolerated=0, manifest=manifest, pace=Pace.initial(8))
    return replace(stage, **changes)


def an_outcome(
    name: str = "a", result: Result = Result.RUNNING, *, rollout: str = ONE, **changes: Any
) -> TenantOutcome:
    return replace(TenantOutcome(rollout, 1, Item(TenantId.parse(name), NEXT_VERSION), result, NOON), **changes)


def registered(ledger: RolloutLedger, rollout: str = ONE, *, stages: int = 2, **changes: Any) -> Rollout:
    """A rollout that is registered, and running by default."""
    written = a_rollout(rollout, **{"status": RolloutStatus.RUNNING, **changes})
    wanted = [a_stage(rollout, number) for number in range(1, stages + 1)]
    assert ledger.register(written, wanted, revision=ledger.registry().revision)
    return written


def rollout_in(ledger: RolloutLedger, rollout: str = ONE) -> Rollout:
    return present(ledger.rollout(rollout))


def stage_in(ledger: RolloutLedger, number: int = 1) -> Stage:
    return present(ledger.stage(ONE, number))


def everything(ledger: RolloutLedger) -> tuple[object, ...]:
    """All rows, to check that none has changed."""
    rollouts = ledger.rollouts(limit=99)
    return (
        ledger.registry(),
        rollouts,
        [ledger.rollout(each.id) for each in rollouts],
        [ledger.stages(each.id) for each in rollouts],
        [list(ledger.outcomes(each.id)) for each in rollouts],
        [list(ledger.failures(each.id, limit=1_000)) for each in rollouts],
        [list(ledger.orders(each.id)) for each in rollouts],
    )


def an_order(order: Order = Order.PAUSE, rollout: str = ONE, **changes: Any) -> RecordedOrder:
    return replace(RecordedOrder(rollout, NOON, order, "ada", "Ticket 4711"), **changes)


class TestOrders:
    """Orders are written in the same transaction as the change that they make."""

    def test_a_rollout_without_orders_has_an_empty_history(self, ledger: RolloutLedger) -> None:
        assert list(ledger.orders(ONE)) == []
        registered(ledger)
        assert list(ledger.orders(ONE)) == []

    def test_a_start_is_recorded_with_the_rollout_and_in_the_history_of_the_retried_one(
        self, ledger: RolloutLedger
    ) -> None:
        registered(ledger, TWO)
        start, retry = an_order(Order.START, other=TWO), an_order(Order.RETRY, TWO, other=ONE, reason="")
        revision = ledger.registry().revision
        assert ledger.register(a_rollout(), [a_stage()], revision=revision, orders=[start, retry])
        assert list(ledger.orders(ONE)) == [start]
        assert list(ledger.orders(TWO)) == [retry]

    def test_a_start_that_comes_too_late_is_not_recorded(self, ledger: RolloutLedger) -> None:
        registered(ledger, TWO)
        before = everything(ledger)
        assert not ledger.register(a_rollout(), [a_stage()], revision=99, orders=[an_order(Order.START)])
        assert everything(ledger) == before
        assert list(ledger.orders(ONE)) == []

    def test_an_order_is_recorded_with_the_change_that_it_makes(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        paused = replace(rollout, status=RolloutStatus.PAUSED)
        assert ledger.change(paused, order=an_order())
        assert list(ledger.orders(ONE)) == [an_order()]
        assert not ledger.change(paused, order=an_order(at=LATER))
        assert list(ledger.orders(ONE)) == [an_order()]

    def test_an_approval_is_recorded_with_the_stage_that_it_changes(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        approval = an_order(Order.APPROVE, stage=1)
        approved = replace(stage_in(ledger), approved_by="ada")
        assert ledger.change_stage(approved, order=approval)
        assert not ledger.change_stage(approved, order=replace(approval, by="bob"))
        assert list(ledger.orders(ONE)) == [approval]

    def test_several_stages_are_changed_with_one_order_or_not_at_all(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        change = an_order(Order.CHANGE, detail="at once: 3")
        first, second = (replace(stage, map_concurrency=3) for stage in ledger.stages(ONE))
        assert ledger.change_stages([first, second], order=change)
        assert [stage.map_concurrency for stage in ledger.stages(ONE)] == [3, 3]
        before = everything(ledger)
        assert not ledger.change_stages([replace(first, revision=1), second], order=replace(change, by="bob"))
        assert everything(ledger) == before
        assert list(ledger.orders(ONE)) == [change]

    def test_the_tenants_to_repair_are_stored(self, ledger: RolloutLedger) -> None:
        registered(ledger, repairs=Repairs(2, ("a", "b")))
        assert rollout_in(ledger).repairs == Repairs(2, ("a", "b"))

    def test_orders_are_sorted_by_time(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        for number, order in enumerate((Order.RESUME, Order.PAUSE, Order.ABORT)):
            moment = NOON + timedelta(seconds=number)
            assert ledger.change(replace(rollout, revision=number), order=an_order(order, at=moment))
        assert [each.order for each in ledger.orders(ONE)] == [Order.RESUME, Order.PAUSE, Order.ABORT]

    def test_the_start_reason_is_stored(self, ledger: RolloutLedger) -> None:
        registered(ledger, start_reason="Ticket 4711")
        assert rollout_in(ledger).start_reason == "Ticket 4711"


class TestNothing:
    def test_there_is_nothing_before_the_first_rollout(self, ledger: RolloutLedger) -> None:
        assert ledger.rollout(ONE) is None
        assert ledger.stage(ONE, 1) is None
        assert ledger.tenant_outcome(ONE, TenantId.parse("a")) is None
        assert list(ledger.stages(ONE)) == []
        assert list(ledger.outcomes(ONE)) == list(ledger.failures(ONE, limit=9)) == []
        assert list(ledger.rollouts(limit=9)) == []
        assert ledger.registry() == Registry(frozenset(), 0)

    def test_an_unregistered_rollout_cannot_be_changed(self, ledger: RolloutLedger) -> None:
        before = everything(ledger)
        assert not ledger.change(a_rollout())
        assert not ledger.change(a_rollout(status=RolloutStatus.ABORTED))
        assert not ledger.change_stage(a_stage())
        assert not ledger.admit(admission(a_stage(), NOON), an_outcome(), before=None)
        failed = an_outcome(result=Result.FAILED)
        assert not ledger.record(settlement(a_stage(), failed, in_flight=False), failed, before=None)
        assert everything(ledger) == before


class TestRegister:
    def test_a_rollout_and_its_stages_are_read_as_they_were_written(self, ledger: RolloutLedger) -> None:
        rollout, stages = a_rollout(), [a_stage(number=number) for number in range(1, 11)]
        assert ledger.register(rollout, stages, revision=0)
        assert ledger.rollout(ONE) == rollout
        assert list(ledger.stages(ONE)) == stages
        assert [ledger.stage(ONE, number) for number in range(1, 12)] == [*stages, None]
        assert list(ledger.rollouts(limit=9)) == [rollout]

    @pytest.mark.parametrize("spec", [FULL_SPEC, TO_LOOK, Spec(None, (REST,), undo=TWO)])
    def test_every_spec_is_stored(self, ledger: RolloutLedger, spec: Spec) -> None:
        skipped = {Skip.PINNED: Skipped(3, ("a", "b")), Skip.MOVED_SINCE: Skipped(1, ("c",))}
        rollout = a_rollout(
            spec=spec,
            skipped=skipped,
            reason="Because of this: ä",
            current_stage=2,
            attempt=3,
            execution="arn:execution",
            task_token="token",
            ended_at=LATER,
        )
        stages = [a_stage(number=number, spec=stage) for number, stage in enumerate(spec.stages, 1)]
        assert ledger.register(rollout, stages, revision=0)
        assert ledger.rollout(ONE) == rollout
        assert list(ledger.stages(ONE)) == stages

    def test_a_registered_rollout_is_active(self, ledger: RolloutLedger) -> None:
        assert ledger.register(a_rollout(), [a_stage()], revision=0)
        assert ledger.registry() == Registry(frozenset({ONE}), 1)
        assert ledger.register(a_rollout(TWO), [a_stage(TWO)], revision=1)
        assert ledger.registry() == Registry(frozenset({ONE, TWO}), 2)

    @pytest.mark.parametrize("revision", [0, 2])
    def test_nothing_is_written_if_the_registry_has_changed(self, ledger: RolloutLedger, revision: int) -> None:
        registered(ledger, TWO)
        before = everything(ledger)
        assert not ledger.register(a_rollout(), [a_stage()], revision=revision)
        assert everything(ledger) == before
        assert ledger.rollout(ONE) is None
        assert list(ledger.stages(ONE)) == []

    def test_the_first_rollout_needs_the_initial_revision_of_the_registry(self, ledger: RolloutLedger) -> None:
        assert not ledger.register(a_rollout(), [a_stage()], revision=1)
        assert ledger.registry() == Registry(frozenset(), 0)

    def test_a_rollout_is_registered_only_once(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        before = everything(ledger)
        assert not ledger.register(a_rollout(by="eve"), [a_stage(total=1)], revision=1)
        assert everything(ledger) == before

    @pytest.mark.parametrize("revision", [0, 1, 7])
    def test_a_dry_run_is_never_in_the_registry_at_any_revision(self, ledger: RolloutLedger, revision: int) -> None:
        registered(ledger, TWO)
        assert ledger.register(a_rollout(spec=TO_LOOK), [a_stage()], revision=revision)
        assert ledger.registry() == Registry(frozenset({TWO}), 1)


class TestListing:
    def test_the_newest_come_first_page_by_page(self, ledger: RolloutLedger) -> None:
        for rollout in (TWO, ONE, THREE):
            registered(ledger, rollout)
        assert [each.id for each in ledger.rollouts(limit=9)] == [THREE, TWO, ONE]
        assert [each.id for each in ledger.rollouts(limit=2)] == [THREE, TWO]
        assert [each.id for each in ledger.rollouts(limit=2, after=TWO)] == [ONE]
        assert [each.id for each in ledger.rollouts(limit=2, after=ONE)] == []

    def test_a_page_may_begin_after_an_unknown_rollout(self, ledger: RolloutLedger) -> None:
        for rollout in (ONE, THREE):
            registered(ledger, rollout)
        assert [each.id for each in ledger.rollouts(limit=9, after=TWO)] == [ONE]

    def test_the_list_has_the_current_state(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        ledger.change(replace(rollout, status=RolloutStatus.HALTED, reason="Why.", ended_at=LATER))
        assert list(ledger.rollouts(limit=9)) == [ledger.rollout(ONE)]
        assert rollout_in(ledger).status is RolloutStatus.HALTED


class TestChange:
    def test_a_change_raises_the_revision(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        changed = replace(rollout, current_stage=2, execution="arn:execution", task_token="token", reason="Why.")
        assert ledger.change(changed)
        assert ledger.rollout(ONE) == replace(changed, revision=1)
        assert ledger.change(replace(rollout_in(ledger), task_token=None, execution=None, reason=""))
        assert ledger.rollout(ONE) == replace(rollout, current_stage=2, revision=2)

    def test_only_the_first_of_two_concurrent_changes_is_written(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        assert ledger.change(replace(rollout, reason="First."))
        before = everything(ledger)
        assert not ledger.change(replace(rollout, reason="Second."))
        assert not ledger.change(replace(rollout, status=RolloutStatus.ABORTED))
        assert everything(ledger) == before

    def test_a_change_of_the_rollout_does_not_change_its_stages(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        ledger.change(replace(rollout, current_stage=2))
        assert list(ledger.stages(ONE)) == [a_stage(), a_stage(number=2)]

    @pytest.mark.parametrize("status", ACTIVE)
    def test_a_change_of_an_active_rollout_does_not_change_the_registry(
        self, ledger: RolloutLedger, status: RolloutStatus
    ) -> None:
        rollout = registered(ledger)
        assert ledger.change(replace(rollout, status=status))
        assert ledger.registry() == Registry(frozenset({ONE}), 1)

    @pytest.mark.parametrize("status", ENDED)
    def test_an_ended_rollout_leaves_the_registry(self, ledger: RolloutLedger, status: RolloutStatus) -> None:
        rollout = registered(ledger)
        registered(ledger, TWO)
        assert ledger.change(replace(rollout, status=status, ended_at=LATER))
        assert rollout_in(ledger).status is status
        assert ledger.registry() == Registry(frozenset({TWO}), 3)

    def test_the_registry_is_empty_after_the_last_rollout_has_ended(self, ledger: RolloutLedger) -> None:
        ledger.change(replace(registered(ledger), status=RolloutStatus.SUCCEEDED))
        assert ledger.registry() == Registry(frozenset(), 2)
        registered(ledger, TWO)
        assert ledger.registry() == Registry(frozenset({TWO}), 3)

    def test_a_change_of_an_ended_rollout_does_not_change_the_registry(self, ledger: RolloutLedger) -> None:
        ledger.change(replace(registered(ledger), status=RolloutStatus.HALTED))
        assert ledger.change(replace(rollout_in(ledger), status=RolloutStatus.ABORTED))
        assert ledger.registry() == Registry(frozenset(), 2)

    def test_an_ended_rollout_can_become_active_again(self, ledger: RolloutLedger) -> None:
        ledger.change(replace(registered(ledger), status=RolloutStatus.HALTED, ended_at=LATER))
        reopened = replace(rollout_in(ledger), status=RolloutStatus.PENDING, attempt=2, ended_at=None)
        assert ledger.change(reopened, revision=2)
        assert ledger.rollout(ONE) == replace(reopened, revision=2)
        assert ledger.registry() == Registry(frozenset({ONE}), 3)

    def test_an_ended_rollout_does_not_become_active_if_the_registry_has_changed(self, ledger: RolloutLedger) -> None:
        ledger.change(replace(registered(ledger), status=RolloutStatus.HALTED))
        registered(ledger, TWO)
        before = everything(ledger)
        reopened = replace(rollout_in(ledger), status=RolloutStatus.PENDING)
        assert not ledger.change(reopened, revision=2)
        assert everything(ledger) == before
        assert ledger.change(reopened, revision=3)

    def test_a_dry_run_is_never_in_the_registry(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger, spec=TO_LOOK)
        assert ledger.change(replace(rollout, status=RolloutStatus.HALTED))
        assert ledger.change(replace(rollout_in(ledger), status=RolloutStatus.PENDING), revision=0)
        assert ledger.registry() == Registry(frozenset(), 0)

    def test_a_rollout_and_a_stage_are_changed_together_or_not_at_all(self, ledger: RolloutLedger) -> None:
        rollout = registered(ledger)
        halted = replace(rollout, status=RolloutStatus.HALTED)
        assert ledger.change(halted, stage=replace(stage_in(ledger), resumed_at=NOON))
        assert (rollout_in(ledger).status, stage_in(ledger)) == (
            RolloutStatus.HALTED,
            a_stage(resumed_at=NOON, revision=1),
        )
        before = everything(ledger)
        reopened = replace(rollout_in(ledger), status=RolloutStatus.PENDING)
        assert not ledger.change(reopened, revision=2, stage=a_stage(), order=an_order())
        assert not ledger.change(reopened, revision=1, stage=stage_in(ledger), order=an_order())
        assert not ledger.change(halted, stage=stage_in(ledger))
        assert everything(ledger) == before


class TestChangeStage:
    def test_a_stage_is_written_as_a_whole_and_its_revision_raised(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        pace = Pace(11 / 7, 9, slow_start=False, throttles_seen=12, slowed_at=LATER)
        changed = a_stage(
            pace=pace,
            status=StageStatus.BAKING,
            succeeded=1,
            failed=2,
            skipped=3,
            in_flight=4,
            forgiven=5,
            settled_before=6,
            idle_rounds=7,
            approved_by="eve",
            started_at=NOON,
            baked_until=LATER,
            ended_at=LATER,
            resumed_at=NOON,
            moved_at=NOON,
        )
        assert ledger.change_stage(changed)
        assert ledger.stage(ONE, 1) == replace(changed, revision=1)
        assert list(ledger.stages(ONE)) == [replace(changed, revision=1), a_stage(number=2)]

    def test_attributes_without_a_value_are_removed(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        ledger.change_stage(a_stage(started_at=NOON, approved_by="eve", pace=Pace(4.0, 8, slowed_at=NOON)))
        assert ledger.change_stage(a_stage(revision=1))
        assert ledger.stage(ONE, 1) == a_stage(revision=2)

    def test_only_the_first_of_two_concurrent_changes_is_written(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        assert ledger.change_stage(a_stage(in_flight=1))
        before = everything(ledger)
        assert not ledger.change_stage(a_stage(in_flight=2))
        assert everything(ledger) == before


def admit(ledger: RolloutLedger, outcome: TenantOutcome, *, stage: Stage | None = None) -> bool:
    count = admission(stage or stage_in(ledger), NOON)
    return ledger.admit(count, outcome, before=ledger.tenant_outcome(ONE, outcome.item.tenant))


def record(ledger: RolloutLedger, outcome: TenantOutcome, *, in_flight: bool = False) -> bool:
    before = ledger.tenant_outcome(ONE, outcome.item.tenant)
    return ledger.record(settlement(stage_in(ledger), outcome, in_flight=in_flight), outcome, before=before)


for_each_write = pytest.mark.parametrize("write", [admit, record])
Write = Callable[..., bool]


class TestOutcomes:
    @for_each_write
    @pytest.mark.parametrize(
        "outcome",
        [
            an_outcome(execution="arn:child", operation_attempt=2, from_version=VERSION, interruptions=1),
            an_outcome(result=Result.SKIPPED, skip=Skip.PINNED),
            an_outcome(result=Result.FAILED, root_cause=QUEUE_TABOO, from_version=VERSION),
            an_outcome(result=Result.UNCHANGED),
            an_outcome(result=Result.SUCCEEDED, changes=("changes B (C)", "changes A (C)")),
        ],
        ids=lambda outcome: outcome.result.value,
    )
    def test_an_outcome_is_kept_with_the_stage_it_is_counted_in(
        self, ledger: RolloutLedger, write: Write, outcome: TenantOutcome
    ) -> None:
        registered(ledger)
        assert write(ledger, outcome)
        assert ledger.tenant_outcome(ONE, outcome.item.tenant) == outcome
        assert list(ledger.outcomes(ONE)) == [outcome]
        if write is admit:
            assert stage_in(ledger) == a_stage(in_flight=1, moved_at=NOON, revision=1)

    @for_each_write
    def test_an_outcome_replaces_an_unsettled_one(self, ledger: RolloutLedger, write: Write) -> None:
        registered(ledger)
        admit(ledger, an_outcome(execution="arn:first", operation_attempt=1, from_version=VERSION))
        assert write(ledger, an_outcome(execution="arn:second", updated_at=LATER))
        assert ledger.tenant_outcome(ONE, TenantId.parse("a")) == an_outcome(execution="arn:second", updated_at=LATER)

    @for_each_write
    @pytest.mark.parametrize("result", [result for result in Result if result.settled])
    def test_a_settled_outcome_never_changes(self, ledger: RolloutLedger, write: Write, result: Result) -> None:
        registered(ledger)
        record(ledger, an_outcome(result=result))
        before = everything(ledger)
        assert not write(ledger, an_outcome(result=Result.RUNNING))
        assert not write(ledger, an_outcome(result=Result.SUCCEEDED, updated_at=LATER))
        assert everything(ledger) == before

    @for_each_write
    def test_nothing_is_written_if_another_turn_has_written_the_outcome(
        self, ledger: RolloutLedger, write: Write
    ) -> None:
        registered(ledger)
        for written, others in (
            (
                an_outcome(execution="arn:first"),
                (None, an_outcome(execution=""), an_outcome(execution="arn:other")),
            ),
            (
                an_outcome("b", execution="arn:first", operation_attempt=2),
                (an_outcome("b", execution="arn:first"), an_outcome("b", execution="arn:first", operation_attempt=1)),
            ),
            (
                an_outcome("c", execution="arn:first"),
                (an_outcome("c", execution="arn:first", operation_attempt=1),),
            ),
        ):
            admit(ledger, written)
            stage, before = stage_in(ledger), everything(ledger)
            count = admission(stage, NOON) if write is admit else settlement(stage, an_outcome(), in_flight=True)
            action = ledger.admit if write is admit else ledger.record
            for read in others:
                assert not action(count, replace(written, execution="arn:second"), before=read)
            assert everything(ledger) == before
            assert action(count, replace(written, execution="arn:second"), before=written)

    @pytest.mark.parametrize("status", [status for status in RolloutStatus if status is not RolloutStatus.RUNNING])
    def test_tenants_are_admitted_only_while_the_rollout_runs_but_outcomes_are_always_recorded(
        self, ledger: RolloutLedger, status: RolloutStatus
    ) -> None:
        rollout = registered(ledger)
        admit(ledger, an_outcome("b"))
        ledger.change(replace(rollout, status=status))
        before = everything(ledger)
        assert not admit(ledger, an_outcome())
        assert everything(ledger) == before
        assert record(ledger, an_outcome("b", Result.SUCCEEDED))

    def test_a_rollout_has_only_its_own_outcomes(self, ledger: RolloutLedger) -> None:
        for rollout in (ONE, TWO):
            registered(ledger, rollout)
        for name in ("b", "a", "c"):
            record(ledger, an_outcome(name, Result.FAILED))
        assert [each.item.tenant.value for each in ledger.outcomes(ONE)] == ["a", "b", "c"]
        assert list(ledger.outcomes(TWO)) == list(ledger.failures(TWO, limit=9)) == []
        assert ledger.tenant_outcome(TWO, TenantId.parse("a")) is None

    def test_only_failed_outcomes_are_failures(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        for result in Result:
            record(ledger, an_outcome(f"at-{result.value.lower()}", result))
        failed = an_outcome("b", Result.FAILED, root_cause=QUEUE_TABOO)
        record(ledger, failed)
        assert list(ledger.failures(ONE, limit=9)) == [an_outcome("at-failed", Result.FAILED), failed]
        assert list(ledger.failures(ONE, limit=1)) == [an_outcome("at-failed", Result.FAILED)]


class TestCounts:
    """Tenants' turns add to the counters of their stage. Turns that have read the same stage do not conflict."""

    def test_turns_that_have_read_the_same_stage_are_admitted_up_to_the_limit(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        ledger.change_stage(a_stage(pace=Pace(3.9, 8)))
        read = stage_in(ledger)
        admitted = [admit(ledger, an_outcome(name), stage=read) for name in ("a", "b", "c", "d", "e")]
        assert admitted == [True, True, True, False, False]
        assert stage_in(ledger) == replace(read, in_flight=3, moved_at=NOON, revision=read.revision + 3)
        assert [each.item.tenant.value for each in ledger.outcomes(ONE)] == ["a", "b", "c"]

    @pytest.mark.parametrize(("failed", "forgiven", "admitted"), [(0, 0, True), (1, 0, False), (1, 1, True)])
    def test_no_tenant_is_admitted_after_too_many_have_failed_since_the_stage_was_read(
        self, ledger: RolloutLedger, failed: int, forgiven: int, admitted: bool
    ) -> None:
        registered(ledger)
        ledger.change_stage(a_stage(forgiven=forgiven))
        read = stage_in(ledger)
        for number in range(failed):
            record(ledger, an_outcome(f"failed-{number}", Result.FAILED))
        assert admit(ledger, an_outcome(), stage=read) is admitted

    def test_outcomes_that_were_computed_from_the_same_stage_are_all_counted(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        ledger.change_stage(a_stage(pace=Pace(4.0, 8)))
        names = ("a", "b", "c", "d")
        for name in names:
            admit(ledger, an_outcome(name))
        read = stage_in(ledger)
        results = (Result.SUCCEEDED, Result.UNCHANGED, Result.FAILED, Result.SKIPPED)
        for name, result in zip(names, results, strict=True):
            outcome = an_outcome(name, result, updated_at=LATER)
            assert ledger.record(settlement(read, outcome, in_flight=True), outcome, before=an_outcome(name))
        stage = stage_in(ledger)
        assert (stage.succeeded, stage.failed, stage.skipped, stage.in_flight) == (2, 1, 1, 0)
        assert (stage.moved_at, stage.pace.limit) == (LATER, 6.0)

    def test_the_limit_never_exceeds_the_ceiling(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        ledger.change_stage(a_stage(pace=Pace(7.5, 8)))
        for number in range(3):
            count = replace(admission(stage_in(ledger), NOON), limit=1.0)
            assert ledger.admit(count, an_outcome(f"t{number}"), before=None)
        assert stage_in(ledger).pace.limit == 8.0

    def test_a_turn_that_ends_after_its_slot_was_freed_takes_no_other_slot(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        admit(ledger, an_outcome())
        read = stage_in(ledger)
        ledger.change_stage(replace(read, in_flight=0))
        done = an_outcome(result=Result.SUCCEEDED)
        assert not ledger.record(settlement(read, done, in_flight=True), done, before=an_outcome())
        assert record(ledger, done, in_flight=True)
        assert (stage_in(ledger).in_flight, stage_in(ledger).succeeded) == (0, 1)

    def test_a_count_refuses_a_concurrent_write_of_the_whole_stage(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        read = stage_in(ledger)
        admit(ledger, an_outcome())
        before = everything(ledger)
        assert not ledger.change_stage(replace(read, idle_rounds=1))
        assert everything(ledger) == before

    def test_throttles_slow_a_stage_down_once(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        read = stage_in(ledger)
        admit(ledger, an_outcome())
        slower = Pace(7.2, 8, slow_start=False, throttles_seen=3, slowed_at=NOON)
        assert ledger.slow_down(read, slower)
        before = everything(ledger)
        assert not ledger.slow_down(read, replace(slower, limit=1.0))
        assert everything(ledger) == before
        assert (stage_in(ledger).pace, stage_in(ledger).in_flight, stage_in(ledger).revision) == (slower, 1, 2)

    def test_throttles_do_not_undo_an_operators_change_of_the_ceiling(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        read = stage_in(ledger)
        changed = replace(read, pace=replace(read.pace, limit=2.0, ceiling=2))
        assert ledger.change_stages([changed], order=an_order(Order.CHANGE))
        assert ledger.slow_down(read, Pace(1.8, 8, slow_start=False, throttles_seen=3, slowed_at=NOON))
        assert stage_in(ledger).pace == Pace(1.8, 2, slow_start=False, throttles_seen=3, slowed_at=NOON)


class TestReviews:
    """The results of a dry run are counted with each outcome."""

    def test_results_and_changes_are_counted(self, ledger: RolloutLedger) -> None:
        registered(ledger, spec=TO_LOOK)
        assert ledger.reviews(ONE) is None
        for name, result, changes in (
            ("a", Result.SUCCEEDED, ("changes Q (T)", "changes A (T)")),
            ("b", Result.SUCCEEDED, ("changes Q (T)",)),
            ("c", Result.UNCHANGED, ()),
            ("d", Result.SKIPPED, ()),
        ):
            outcome = an_outcome(name, result, changes=changes, from_version=VERSION)
            count = settlement(stage_in(ledger), outcome, in_flight=False, dry_run=True)
            assert ledger.record(count, outcome, before=None)
            assert not ledger.record(count, outcome, before=None)
        counted = present(ledger.reviews(ONE))
        assert counted.results == {Result.SUCCEEDED: 2, Result.UNCHANGED: 1, Result.SKIPPED: 1}
        assert counted.changes == {"changes Q (T)": 2, "changes A (T)": 1}
        assert counted.moves == {(VERSION, NEXT_VERSION): 2}, "only tenants that would change are counted"
        assert reviews_of(rollout_in(ledger), ledger) == count_reviews(ledger.outcomes(ONE)) == counted

    def test_a_rollout_that_moves_tenants_counts_no_reviews(self, ledger: RolloutLedger) -> None:
        registered(ledger)
        record(ledger, an_outcome("a", Result.SUCCEEDED))
        assert ledger.reviews(ONE) is None
        assert reviews_of(rollout_in(ledger), ledger) == Reviews({}, {})
