"""The table's contract for operations: who may write what, and when. Kept by DynamoDB's adapter and by the fake."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.errors import LostOwnership
from orchestrator.records import Audit, HistoryEntry, Lock, Metadata, Operation, RootCause, Run, Status
from orchestrator.tenants import TenantId
from tests.adapters.tables import (
    LATER,
    LATER_STILL,
    OTHER_OPERATIONS,
    RUN,
    SECOND,
    Table,
    audit_of,
    everything,
    for_each_other_operation,
    outcomes,
    publish,
)
from tests.fakes import (
    ACME,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_run,
    take,
)


class TestNothingYet:
    def test_an_unknown_tenant_has_nothing(self, table: Table) -> None:
        assert everything(table) == (None, [], [], None)

    def test_an_empty_table_lists_nothing(self, table: Table) -> None:
        assert list(table.published_tenants()) == []
        assert [list(table.operations(status)) for status in Status] == [[], [], []]


class TestBegin:
    def test_a_free_tenant_is_locked_and_its_operation_recorded_as_started(self, table: Table) -> None:
        assert take(table, RUN) is None
        assert table.lock(ACME) == Lock(RUN, None)
        assert list(table.audits(ACME)) == [
            Audit(ACME, Operation.CREATE, VERSION, Status.STARTED, RUN.execution, NOON, 1)
        ]
        assert list(table.history(ACME)) == [
            HistoryEntry(ACME, NOON, Operation.CREATE, VERSION, 1, Status.STARTED, RUN.execution)
        ]
        assert table.metadata(ACME) is None

    def test_repeated_it_changes_nothing(self, table: Table) -> None:
        take(table, RUN)
        before = everything(table)
        assert take(table, RUN) is None
        assert everything(table) == before

    def test_a_run_that_had_to_wait_is_recorded_as_started_when_it_begins(self, table: Table) -> None:
        table.begin(RUN, at=LATER)
        assert [audit.updated_at for audit in table.audits(ACME)] == [LATER]
        assert [entry.at for entry in table.history(ACME)] == [LATER]
        assert table.lock(ACME) == Lock(RUN, None)

    def test_repeated_later_it_changes_nothing(self, table: Table) -> None:
        table.begin(RUN, at=NOON)
        table.remember_token(RUN, "token")
        before = everything(table)
        assert table.begin(RUN, at=LATER) is None
        assert everything(table) == before

    @for_each_other_operation
    def test_a_busy_tenant_is_left_alone_and_its_holder_told(self, table: Table, other: Run) -> None:
        take(table, RUN)
        before = everything(table)
        assert take(table, other) == Lock(RUN, None)
        assert everything(table) == before

    @for_each_other_operation
    def test_a_dead_holders_lock_is_taken_over_and_its_operation_closed_as_failed(
        self, table: Table, other: Run
    ) -> None:
        take(table, RUN)
        assert take(table, other, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(other, None)
        assert sorted(outcomes(table, RUN)) == [Status.FAILURE, Status.STARTED]
        assert outcomes(table, other) == [Status.STARTED]
        assert [audit.execution for audit in table.audits(ACME) if audit.status is Status.STARTED] == [other.execution]

    @pytest.mark.parametrize("other", [OTHER_OPERATIONS["update"], OTHER_OPERATIONS["another version"]])
    def test_a_closed_operation_has_a_root_cause(self, table: Table, other: Run) -> None:
        take(table, RUN)
        take(table, other, instead_of=Lock(RUN, None))
        closed = audit_of(table, RUN)
        assert closed.status is Status.FAILURE
        assert closed.updated_at == LATER
        assert closed.root_cause is not None
        assert "ended" in closed.root_cause.reason

    @for_each_other_operation
    def test_taking_over_repeated_changes_nothing(self, table: Table, other: Run) -> None:
        take(table, RUN)
        take(table, other, instead_of=Lock(RUN, None))
        before = everything(table)
        assert take(table, other) is None
        assert everything(table) == before

    @for_each_other_operation
    def test_the_lock_of_a_third_is_not_taken_in_place_of_the_dead_holders(self, table: Table, other: Run) -> None:
        third = a_run(operation=Operation.UPDATE, version="0.3.0")
        take(table, third)
        before = everything(table)
        assert take(table, other, instead_of=Lock(RUN, None)) == Lock(third, None)
        assert everything(table) == before

    @for_each_other_operation
    def test_a_holder_that_finished_meanwhile_keeps_its_success(self, table: Table, other: Run) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND)
        assert take(table, other, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(other, None)
        assert outcomes(table, RUN) == [Status.STARTED, Status.SUCCESS]

    def test_a_dead_holder_is_taken_over_though_a_later_attempt_has_failed_meanwhile(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        successor = a_run(operation=Operation.UPDATE, started_at=LATER)
        assert take(table, successor, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(successor, None)
        assert outcomes(table, RUN) == [Status.STARTED, Status.FAILURE]

    def test_it_never_goes_back_to_an_earlier_attempt(self, table: Table) -> None:
        take(table, a_run(2))
        table.fail(a_run(2), QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            take(table, a_run(1))
        assert everything(table) == before

    @pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE])
    def test_a_run_that_has_ended_does_not_begin_again(self, table: Table, status: Status) -> None:
        take(table, RUN)
        if status is Status.SUCCESS:
            publish(table)
        else:
            table.fail(RUN, QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            take(table, RUN)
        assert everything(table) == before

    def test_times_are_kept_to_the_millisecond(self, table: Table) -> None:
        take(table, a_run(started_at=NOON + timedelta(microseconds=1_999)))
        assert table.audits(ACME)[0].updated_at == NOON + timedelta(milliseconds=1)

    def test_tenants_do_not_see_each_other(self, table: Table) -> None:
        neighbours = [TenantId.parse(name) for name in ("Acme", "acme-2", "acm", "a")]
        take(table, RUN)
        for neighbour in neighbours:
            assert everything(table, neighbour) == (None, [], [], None)
            assert take(table, a_run(tenant=neighbour)) is None
        assert len(table.audits(ACME)) == len(table.history(ACME)) == 1


class TestRememberToken:
    def test_the_holders_token_is_found_with_its_lock(self, table: Table) -> None:
        take(table, RUN)
        table.remember_token(RUN, "token 1")
        table.remember_token(RUN, "token 2")
        assert table.lock(ACME) == Lock(RUN, "token 2")

    def test_nobody_else_leaves_a_token(self, table: Table) -> None:
        take(table, RUN)
        with pytest.raises(LostOwnership):
            table.remember_token(a_run(2), "token")
        assert table.lock(ACME) == Lock(RUN, None)

    def test_there_is_no_token_without_a_lock(self, table: Table) -> None:
        with pytest.raises(LostOwnership):
            table.remember_token(RUN, "token")
        assert everything(table) == (None, [], [], None)


class TestPublish:
    def test_it_publishes_records_success_and_frees_the_lock(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", VERSION, LATER, LATER)
        assert audit_of(table, RUN) == Audit(
            ACME, Operation.CREATE, VERSION, Status.SUCCESS, RUN.execution, LATER, attempt=1
        )
        assert outcomes(table, RUN) == [Status.STARTED, Status.SUCCESS]
        assert table.lock(ACME) is None

    def test_repeated_after_success_it_is_accepted_and_changes_nothing(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        before = everything(table)
        publish(table, at=LATER_STILL)
        assert everything(table) == before

    def test_the_version_published_is_the_one_given_and_the_audits_the_attempts(self, table: Table) -> None:
        take(table, RUN)
        publish(table, version="0.0.7")
        metadata = table.metadata(ACME)
        assert metadata is not None
        assert metadata.version == "0.0.7"
        assert audit_of(table, RUN).version == VERSION

    def test_when_it_was_created_stays(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=NOON)
        take(table, RUN)
        publish(table)
        assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", VERSION, NOON, LATER)

    def test_whoever_holds_the_lock_publishes_though_a_later_attempt_has_failed_meanwhile(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        publish(table)
        assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", VERSION, LATER, LATER)
        assert table.lock(ACME) is None

    @for_each_other_operation
    def test_a_run_that_lost_its_lock_publishes_nothing(self, table: Table, other: Run) -> None:
        take(table, RUN)
        take(table, other, instead_of=Lock(RUN, None))
        before = everything(table)
        with pytest.raises(LostOwnership):
            publish(table)
        assert everything(table) == before

    def test_a_run_that_never_began_publishes_nothing(self, table: Table) -> None:
        with pytest.raises(LostOwnership):
            publish(table)
        assert everything(table) == (None, [], [], None)

    def test_a_run_that_has_failed_publishes_nothing(self, table: Table) -> None:
        take(table, RUN)
        table.fail(RUN, QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            publish(table)
        assert everything(table) == before


class TestFail:
    def test_it_records_the_cause_and_frees_the_lock(self, table: Table) -> None:
        take(table, RUN)
        assert table.fail(RUN, QUEUE_TABOO, LATER)
        assert audit_of(table, RUN) == Audit(
            ACME, Operation.CREATE, VERSION, Status.FAILURE, RUN.execution, LATER, 1, QUEUE_TABOO
        )
        assert [entry.root_cause for entry in table.history(ACME)] == [None, QUEUE_TABOO]
        assert table.lock(ACME) is None

    def test_repeated_it_is_accepted_and_changes_nothing(self, table: Table) -> None:
        take(table, RUN)
        table.fail(RUN, QUEUE_TABOO, LATER)
        before = everything(table)
        assert table.fail(RUN, RootCause("x", "y", "z"), LATER_STILL)
        assert everything(table) == before

    def test_what_never_began_is_recorded_too(self, table: Table) -> None:
        assert table.fail(RUN, QUEUE_TABOO, LATER)
        assert audit_of(table, RUN).status is Status.FAILURE
        assert outcomes(table, RUN) == [Status.FAILURE]

    @for_each_other_operation
    def test_what_never_began_leaves_the_holders_lock_alone(self, table: Table, other: Run) -> None:
        take(table, RUN)
        table.fail(other, QUEUE_TABOO, LATER)
        assert table.lock(ACME) == Lock(RUN, None)

    def test_a_later_attempt_is_not_overwritten(self, table: Table) -> None:
        take(table, RUN)
        take(table, a_run(2, started_at=LATER), instead_of=Lock(RUN, None))
        before = everything(table)
        assert not table.fail(RUN, QUEUE_TABOO, LATER_STILL)
        assert everything(table) == before

    def test_a_success_is_not_overwritten(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        before = everything(table)
        assert not table.fail(RUN, QUEUE_TABOO, LATER_STILL)
        assert everything(table) == before

    def test_a_run_whose_operation_was_closed_is_told_that_its_failure_is_recorded(self, table: Table) -> None:
        take(table, RUN)
        take(table, OTHER_OPERATIONS["update"], instead_of=Lock(RUN, None))
        before = everything(table)
        assert table.fail(RUN, QUEUE_TABOO, LATER_STILL)
        assert everything(table) == before

    def test_whoever_holds_the_lock_frees_it_though_a_later_attempt_has_failed_meanwhile(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        assert table.fail(RUN, QUEUE_TABOO, LATER)
        assert table.lock(ACME) is None
        assert outcomes(table, RUN) == [Status.STARTED, Status.FAILURE]
