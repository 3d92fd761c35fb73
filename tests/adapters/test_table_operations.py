"""The table's contract for operations: who may write what, and when. Kept by DynamoDB's adapter and by the fake."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, StackHasGone
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.tenants.history import HistoryEntry
from orchestrator.tenants.ports import Pin, Publication
from orchestrator.tenants.records import (
    START_GRACE_PERIOD,
    Audit,
    Lock,
    Metadata,
    Operation,
    Request,
    RootCause,
    Run,
    Status,
)
from orchestrator.tenants.records import TenantState as State
from orchestrator.tenants.stack_resources import Requester
from tests.adapters.tables import (
    DELETE,
    LATER,
    LATER_STILL,
    NOTHING,
    NOTHING_ABOUT_ACME,
    OTHER_OPERATIONS,
    RUN,
    SECOND,
    UPDATE,
    Table,
    audit_of,
    create,
    delete,
    everything,
    for_each_operation,
    for_each_other_operation,
    metadata_of,
    outcomes,
    publish,
    states,
)
from tests.fakes import (
    ACME,
    EXPLICIT,
    NEXT_VERSION,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_release,
    a_resource,
    a_run,
    an_attempt,
    take,
)
from tests.present import present


class TestNothingYet:
    def test_an_unknown_tenant_has_nothing(self, table: Table) -> None:
        assert everything(table) == NOTHING

    def test_an_empty_table_lists_nothing(self, table: Table) -> None:
        assert [list(table.tenants_in(state, limit=9)) for state in State] == [[]] * len(State)
        assert list(table.unfinished_operations()) == []


class TestBegin:
    @for_each_operation
    def test_a_free_tenant_is_locked_and_its_operation_started(self, table: Table, run: Run) -> None:
        assert take(table, run) is None
        assert table.lock(ACME) == Lock(run, None)
        attempt = run.attempt
        assert list(table.audits(ACME)) == [
            Audit(
                ACME,
                attempt.operation,
                attempt.version,
                Status.STARTED,
                run.execution,
                run.started_at,
                1,
                request=run.request,
                asked_at=run.started_at,
            )
        ]
        assert list(table.history(ACME)) == [
            HistoryEntry(
                ACME,
                run.started_at,
                attempt.operation,
                attempt.version,
                1,
                Status.STARTED,
                run.execution,
                request=run.request,
            )
        ]

    @pytest.mark.parametrize(
        "request_",
        [
            Request(),
            Request(by="arn:aws:iam::0:user/ada", explicit=True),
            Request(labels={"tier": "gold", "empty": ""}, pin=VERSION),
            Request(labels={}),
            Request(allow_downgrade=True, allow_replacement=True),
            Request(force=True, drain_seconds=60),
        ],
        ids=["nothing", "explicit", "labels and pin", "no labels", "update", "delete"],
    )
    def test_lock_and_audit_have_the_request(self, table: Table, request_: Request) -> None:
        run = a_run(request=request_)
        take(table, run)
        lock = present(table.lock(ACME))
        assert lock.run.request == audit_of(table, run).request == request_
        table.fail(run, QUEUE_TABOO, LATER)
        assert audit_of(table, run).request == request_
        assert {entry.request.by for entry in table.history(ACME)} == {request_.by}

    @for_each_operation
    def test_repeated_it_changes_nothing(self, table: Table, run: Run) -> None:
        take(table, run)
        before = everything(table)
        assert take(table, run) is None
        assert everything(table) == before

    def test_a_run_that_had_to_wait_is_recorded_as_started_when_it_begins(self, table: Table) -> None:
        table.begin(RUN, at=LATER)
        assert [audit.updated_at for audit in table.audits(ACME)] == [LATER]
        assert [entry.at for entry in table.history(ACME)] == [LATER]
        assert table.lock(ACME) == Lock(RUN, None)

    def test_a_later_repetition_changes_nothing(self, table: Table) -> None:
        table.begin(RUN, at=NOON)
        table.remember_token(RUN, "token")
        before = everything(table)
        assert table.begin(RUN, at=LATER) is None
        assert everything(table) == before

    @for_each_other_operation
    def test_a_busy_tenant_is_unchanged_and_its_holder_returned(self, table: Table, other: Run) -> None:
        take(table, RUN)
        before = everything(table)
        assert take(table, other) == Lock(RUN, None)
        assert everything(table) == before

    def test_a_waiting_delete_does_not_withdraw_the_queue(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        before = everything(table)
        assert take(table, DELETE) == Lock(UPDATE, None)
        assert everything(table) == before
        assert metadata_of(table).published

    @for_each_other_operation
    def test_the_lock_of_a_dead_holder_is_taken_over_and_its_operation_failed(self, table: Table, other: Run) -> None:
        take(table, RUN)
        assert take(table, other, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(other, None)
        assert sorted(outcomes(table, RUN)) == [Status.FAILURE, Status.STARTED]
        assert outcomes(table, other) == [Status.STARTED]
        assert [audit.execution for audit in table.audits(ACME) if audit.status is Status.STARTED] == [other.execution]

    @pytest.mark.parametrize("other", [OTHER_OPERATIONS["update"], OTHER_OPERATIONS["another version"]])
    def test_a_closed_operation_has_a_root_cause_and_its_request(self, table: Table, other: Run) -> None:
        take(table, RUN)
        take(table, other, instead_of=Lock(RUN, None))
        closed = audit_of(table, RUN)
        assert closed.status is Status.FAILURE
        assert closed.updated_at == LATER
        assert closed.request == RUN.request
        assert closed.root_cause is not None
        assert "ended" in closed.root_cause.reason

    @for_each_other_operation
    def test_a_repeated_takeover_changes_nothing(self, table: Table, other: Run) -> None:
        take(table, RUN)
        take(table, other, instead_of=Lock(RUN, None))
        before = everything(table)
        assert take(table, other) is None
        assert everything(table) == before

    @for_each_other_operation
    def test_the_lock_of_another_holder_is_not_taken_over(self, table: Table, other: Run) -> None:
        third = a_run(operation=Operation.UPDATE, version="0.3.0")
        take(table, third)
        before = everything(table)
        assert take(table, other, instead_of=Lock(RUN, None)) == Lock(third, None)
        assert everything(table) == before

    @for_each_other_operation
    def test_a_holder_that_has_succeeded_since_keeps_its_success(self, table: Table, other: Run) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND)
        assert take(table, other, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(other, None)
        assert outcomes(table, RUN) == [Status.STARTED, Status.SUCCESS]

    def test_a_dead_holder_is_taken_over_after_a_later_attempt_failed(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        assert take(table, UPDATE, instead_of=Lock(RUN, None)) is None
        assert table.lock(ACME) == Lock(UPDATE, None)
        assert outcomes(table, RUN) == [Status.STARTED, Status.FAILURE]

    def test_a_delete_that_takes_over_from_a_dead_delete_withdraws_the_queue(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        successor = a_run(2, operation=Operation.DELETE, started_at=LATER_STILL)
        assert take(table, successor, instead_of=Lock(DELETE, None)) is None
        assert metadata_of(table).withdrawn_by == successor.execution

    @pytest.mark.parametrize("restore", [False, True])
    def test_a_takeover_from_a_dead_delete_decides_whether_the_queue_is_restored(
        self, table: Table, restore: bool
    ) -> None:
        create(table)
        take(table, DELETE)
        later = replace(UPDATE, started_at=LATER_STILL)
        assert table.begin(later, at=LATER_STILL, instead_of=Lock(DELETE, None), restore=restore) is None
        assert metadata_of(table).published is restore

    def test_a_create_that_takes_over_from_a_dead_delete_leaves_the_tenant_ready(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        again = a_run(2, started_at=LATER_STILL)
        assert table.begin(again, at=LATER_STILL, instead_of=Lock(DELETE, None), restore=True) is None
        assert states(table) == [State.READY]

    def test_an_earlier_attempt_does_not_begin(self, table: Table) -> None:
        take(table, a_run(2))
        table.fail(a_run(2), QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            take(table, a_run(1))
        assert everything(table) == before

    @pytest.mark.parametrize("status", [Status.SUCCESS, Status.FAILURE])
    def test_an_ended_run_does_not_begin_again(self, table: Table, status: Status) -> None:
        take(table, RUN)
        if status is Status.SUCCESS:
            publish(table)
        else:
            table.fail(RUN, QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            take(table, RUN)
        assert everything(table) == before

    def test_an_ended_delete_does_not_begin_again(self, table: Table) -> None:
        delete(table)
        before = everything(table)
        with pytest.raises(LostOwnership):
            take(table, DELETE)
        assert everything(table) == before

    def test_times_have_milliseconds(self, table: Table) -> None:
        take(table, a_run(started_at=NOON + timedelta(microseconds=1_999)))
        assert table.audits(ACME)[0].updated_at == NOON + timedelta(milliseconds=1)

    def test_tenants_are_independent(self, table: Table) -> None:
        neighbours = [TenantId.parse(name) for name in ("Acme", "acme-2", "acm", "a")]
        take(table, RUN)
        for neighbour in neighbours:
            assert everything(table, neighbour) == NOTHING
            assert take(table, a_run(tenant=neighbour)) is None
        assert len(table.audits(ACME)) == len(table.history(ACME)) == 1


class TestWhatBeginningDoesToTheMetadata:
    def test_a_create_adds_empty_metadata(self, table: Table) -> None:
        take(table, RUN)
        expected = replace(NOTHING_ABOUT_ACME, updated_at=NOON, created_by=EXPLICIT.by, recorded_tier=STANDARD)
        assert table.metadata(ACME) == expected

    def test_an_update_keeps_the_queue_published(self, table: Table) -> None:
        create(table)
        before = table.metadata(ACME)
        take(table, UPDATE)
        assert table.metadata(ACME) == before
        assert metadata_of(table).published

    def test_a_delete_withdraws_the_queue_and_removes_nothing(self, table: Table) -> None:
        create(table)
        before = metadata_of(table)
        take(table, DELETE)
        assert table.metadata(ACME) == replace(before, withdrawn_by=DELETE.execution)
        assert not metadata_of(table).published

    def test_labels_and_pin_are_taken_from_the_request(self, table: Table) -> None:
        take(table, a_run(request=Request(labels={"tier": "gold"}, pin=NEXT_VERSION)))
        metadata = metadata_of(table)
        assert (metadata.labels, metadata.pinned_version) == ({"tier": "gold"}, NEXT_VERSION)

    def test_a_resource_of_another_team_sets_no_labels_or_pin(self, table: Table) -> None:
        """It has said them before, if the tenant was nobody else's. By now it may be."""
        create(table)
        before = table.metadata(ACME)
        resource = a_resource()
        request = Request(by=str(resource), resource=resource, labels={"tier": "gold"}, pin=NEXT_VERSION)
        take(table, a_run(2, started_at=LATER, request=request))
        assert table.metadata(ACME) == before

    def test_labels_and_pin_that_the_request_omits_are_kept(self, table: Table) -> None:
        create(table)
        take(table, replace(UPDATE, request=Request(labels={"tier": "gold"}, pin=NEXT_VERSION)))
        publish(table, UPDATE, version=NEXT_VERSION)
        take(table, a_run(operation=Operation.UPDATE, version="0.3.0", started_at=LATER_STILL))
        metadata = metadata_of(table)
        assert (metadata.labels, metadata.pinned_version) == ({"tier": "gold"}, NEXT_VERSION)

    def test_existing_labels_are_kept(self, table: Table) -> None:
        """A request to create a tenant describes it at once. The create does not undo a later description."""
        take(table, a_run(request=Request(labels={"tier": "gold", "team": "blue"})))
        table.fail(RUN, QUEUE_TABOO, NOON + SECOND)
        take(table, a_run(2, started_at=LATER, request=Request(labels={"team": "red"})))
        assert metadata_of(table).labels == {"tier": "gold", "team": "blue"}


class TestRememberChanges:
    def test_the_change_set_is_stored_in_the_lock_beside_the_token(self, table: Table) -> None:
        take(table, RUN)
        table.remember_token(RUN, "token")
        for change_set in ("arn 1", "arn 2"):
            table.remember_change_set(RUN, change_set)
        assert table.lock(ACME) == Lock(RUN, "token", "arn 2")

    def test_a_takeover_removes_the_change_set(self, table: Table) -> None:
        take(table, RUN)
        table.remember_change_set(RUN, "arn")
        successor = a_run(2)
        take(table, successor, instead_of=Lock(RUN, None))
        assert table.lock(ACME) == Lock(successor, None, None)


class TestRememberToken:
    def test_the_token_of_the_holder_is_in_its_lock(self, table: Table) -> None:
        take(table, RUN)
        table.remember_token(RUN, "token 1")
        table.remember_token(RUN, "token 2")
        assert table.lock(ACME) == Lock(RUN, "token 2")

    def test_only_the_holder_can_store_a_token(self, table: Table) -> None:
        take(table, RUN)
        with pytest.raises(LostOwnership):
            table.remember_token(a_run(2), "token")
        assert table.lock(ACME) == Lock(RUN, None)

    def test_without_a_lock_no_token_is_stored(self, table: Table) -> None:
        with pytest.raises(LostOwnership):
            table.remember_token(RUN, "token")
        assert everything(table) == NOTHING


class TestDeployed:
    def test_a_published_tenant_has_the_fingerprint_of_its_stack(self, table: Table) -> None:
        take(table, RUN)
        assert metadata_of(table).deployed is None
        publish(table, deployed="made from this")
        assert metadata_of(table).deployed == "made from this"

    def test_an_update_takes_the_fingerprint_from_the_metadata_to_its_lock(self, table: Table) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND, deployed="made from this", stack_changed_at=NOON)
        assert metadata_of(table).stack_changed_at == NOON
        assert table.begin(UPDATE, at=LATER, release=a_release(NEXT_VERSION), target="made from that") is None
        assert (metadata_of(table).deployed, metadata_of(table).stack_changed_at) == (None, None)
        assert table.lock(ACME) == Lock(UPDATE, None, None, "made from this", NOON)
        table.fail(UPDATE, QUEUE_TABOO, LATER_STILL)
        assert metadata_of(table).deployed is None

    def test_an_update_without_a_record_of_the_stack_has_none_in_its_lock(self, table: Table) -> None:
        create(table)
        assert table.begin(UPDATE, at=LATER, release=a_release(NEXT_VERSION), target="made from that") is None
        assert table.lock(ACME) == Lock(UPDATE, None)

    def test_an_update_that_changes_nothing_keeps_the_fingerprint(self, table: Table) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND, deployed="made from this")
        assert table.begin(UPDATE, at=LATER, release=a_release(NEXT_VERSION), target="made from this") is None
        assert metadata_of(table).deployed == "made from this"
        assert table.lock(ACME) == Lock(UPDATE, None)

    @pytest.mark.parametrize("deployed", [None, "made from that"])
    def test_the_next_publication_replaces_or_removes_the_fingerprint(self, table: Table, deployed: str | None) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND, deployed="made from this")
        take(table, UPDATE)
        publish(table, UPDATE, at=LATER_STILL, version=NEXT_VERSION, deployed=deployed)
        assert metadata_of(table).deployed == deployed

    def test_recording_a_queue_removes_the_fingerprint(self, table: Table) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND, deployed="made from this")
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER)
        assert metadata_of(table).deployed is None

    def test_a_removed_stack_has_no_fingerprint(self, table: Table) -> None:
        take(table, RUN)
        publish(table, at=NOON + SECOND, deployed="made from this")
        table.forget_queue(ACME, stack_id="stack-1")
        assert metadata_of(table).deployed is None


class TestCreateAfterAnUnfinishedDelete:
    def test_the_tenant_is_at_no_version_until_it_is_published(self, table: Table) -> None:
        """A stack of an earlier system does not remove its queue from the metadata when it is deleted."""
        create(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL)
        again = a_run(2, started_at=LATER_STILL + SECOND)
        take(table, again)
        assert metadata_of(table).version is None
        assert not metadata_of(table).was_served
        publish(table, again, at=LATER_STILL + 2 * SECOND)
        assert metadata_of(table).version == VERSION


class TestPublish:
    def test_publishing_records_success_and_frees_the_lock(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        assert table.metadata(ACME) == Metadata(
            ACME, QUEUE, "stack-1", VERSION, LATER, LATER, created_by=EXPLICIT.by, recorded_tier=STANDARD
        )
        assert audit_of(table, RUN) == Audit(
            ACME,
            Operation.CREATE,
            VERSION,
            Status.SUCCESS,
            RUN.execution,
            LATER,
            attempt=1,
            request=RUN.request,
            asked_at=RUN.started_at,
        )
        assert outcomes(table, RUN) == [Status.STARTED, Status.SUCCESS]
        assert table.lock(ACME) is None

    @pytest.mark.parametrize("creator", ["ada", a_resource()], ids=str)
    def test_the_creator_is_recorded_and_kept_by_later_publications(self, table: Table, creator: Requester) -> None:
        take(table, RUN)
        table.publish(RUN, Publication("stack-1", QUEUE, VERSION, None, created_by=creator), at=LATER)
        take(table, UPDATE)
        publish(table, UPDATE, version=NEXT_VERSION)
        assert metadata_of(table).created_by == creator

    def test_a_published_tenant_is_no_longer_requested(self, table: Table) -> None:
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=RUN.attempt)
        take(table, RUN)
        publish(table)
        assert metadata_of(table).asked_for is None

    def test_the_request_of_a_create_that_waits_for_the_lock_stays(self, table: Table) -> None:
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt(2))
        take(table, RUN)
        publish(table)
        assert metadata_of(table).asked_for == an_attempt(2)

    def test_a_stack_that_removed_its_queue_is_not_published(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        take(table, RUN)
        assert table.forget_queue(ACME, stack_id="stack-1")
        before = everything(table)
        with pytest.raises(StackHasGone):
            publish(table)
        assert everything(table) == before
        table.publish(RUN, Publication("stack-2", QUEUE, VERSION, None), at=LATER)
        assert metadata_of(table).stack_id == "stack-2"

    def test_a_repeated_publication_is_accepted_after_the_stack_is_gone(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        table.forget_queue(ACME, stack_id="stack-1")
        before = everything(table)
        publish(table, at=LATER_STILL)
        assert everything(table) == before

    def test_a_repeated_publication_changes_nothing(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        before = everything(table)
        publish(table, at=LATER_STILL)
        assert everything(table) == before

    def test_the_metadata_has_the_given_version_and_the_audit_that_of_the_attempt(self, table: Table) -> None:
        take(table, RUN)
        publish(table, version="0.0.7")
        assert metadata_of(table).version == "0.0.7"
        assert audit_of(table, RUN).version == VERSION

    def test_the_time_of_creation_is_kept(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=NOON)
        take(table, RUN)
        publish(table)
        assert table.metadata(ACME) == Metadata(
            ACME, QUEUE, "stack-1", VERSION, NOON, LATER, created_by=EXPLICIT.by, recorded_tier=STANDARD
        )

    def test_an_update_publishes_the_new_version_and_keeps_labels_and_pin(self, table: Table) -> None:
        take(table, a_run(request=Request(labels={"tier": "gold"}, pin=NEXT_VERSION)))
        publish(table, at=NOON + SECOND)
        take(table, UPDATE)
        publish(table, UPDATE, at=LATER_STILL, version=NEXT_VERSION, queue=OTHER_QUEUE)
        assert table.metadata(ACME) == Metadata(
            ACME,
            OTHER_QUEUE,
            "stack-1",
            NEXT_VERSION,
            NOON + SECOND,
            LATER_STILL,
            pinned_version=NEXT_VERSION,
            labels={"tier": "gold"},
            created_by="",
            recorded_tier=STANDARD,
        )
        assert table.lock(ACME) is None

    def test_publishing_restores_a_queue_that_a_failed_delete_withdrew(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER + SECOND)
        again = a_run(2, started_at=LATER_STILL)
        take(table, again)
        assert not metadata_of(table).published
        publish(table, again, at=LATER_STILL + SECOND)
        assert metadata_of(table).withdrawn_by is None
        assert metadata_of(table).published

    def test_the_holder_publishes_after_a_later_attempt_failed(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        publish(table)
        assert table.metadata(ACME) == Metadata(
            ACME, QUEUE, "stack-1", VERSION, LATER, LATER, created_by=EXPLICIT.by, recorded_tier=STANDARD
        )
        assert table.lock(ACME) is None

    def test_a_run_that_never_began_does_not_disturb_an_earlier_attempt(self, table: Table) -> None:
        take(table, RUN)
        before = everything(table)
        assert not table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        assert everything(table) == before
        assert [audit.execution for audit in table.unfinished_operations()] == [RUN.execution]


class TestRemove:
    def test_removing_deletes_the_metadata_records_success_and_frees_the_lock(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.remove(DELETE, at=LATER_STILL)
        assert table.metadata(ACME) is None
        assert audit_of(table, DELETE) == Audit(
            ACME,
            Operation.DELETE,
            VERSION,
            Status.SUCCESS,
            DELETE.execution,
            LATER_STILL,
            1,
            request=DELETE.request,
            asked_at=DELETE.started_at,
        )
        assert outcomes(table, DELETE) == [Status.STARTED, Status.SUCCESS]
        assert table.lock(ACME) is None

    def test_the_earlier_history_is_kept(self, table: Table) -> None:
        create(table)
        before = list(table.history(ACME))
        take(table, DELETE)
        table.remove(DELETE, at=LATER_STILL)
        assert list(table.history(ACME))[: len(before)] == before

    def test_repeated_it_is_accepted_and_changes_nothing(self, table: Table) -> None:
        delete(table)
        before = everything(table)
        table.remove(DELETE, at=LATER_STILL)
        assert everything(table) == before

    def test_a_repeated_removal_of_a_tenant_created_again_changes_nothing(self, table: Table) -> None:
        delete(table)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        publish(table, back, at=LATER_STILL + SECOND)
        before = everything(table)
        table.remove(DELETE, at=LATER_STILL + 2 * SECOND)
        assert everything(table) == before

    def test_a_tenant_without_metadata_may_be_deleted(self, table: Table) -> None:
        take(table, DELETE)
        table.remove(DELETE, at=LATER_STILL)
        assert table.metadata(ACME) is None
        assert outcomes(table, DELETE) == [Status.STARTED, Status.SUCCESS]


class TestRevive:
    def test_an_explicit_create_supersedes_the_delete_and_the_tenant_is_listed_once(self, table: Table) -> None:
        delete(table)
        before = audit_of(table, DELETE)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        assert audit_of(table, DELETE) == replace(before, revived_by=back.execution)
        assert states(table) == [State.PROVISIONING]

    @pytest.mark.parametrize("operation", [Operation.CREATE, Operation.UPDATE])
    def test_a_deleted_tenant_stays_listed_as_deleted_during_a_refused_operation(
        self, table: Table, operation: Operation
    ) -> None:
        delete(table)
        before = everything(table)
        refused = a_run(2, operation=operation, started_at=LATER_STILL, request=Request())
        take(table, refused)
        assert states(table) == [State.DELETED]
        table.fail(refused, QUEUE_TABOO, LATER_STILL + SECOND)
        assert (table.metadata(ACME), states(table)) == (before[0], [State.DELETED])

    def test_repeated_it_changes_nothing(self, table: Table) -> None:
        delete(table)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        before = everything(table)
        take(table, back)
        assert everything(table) == before

    def test_a_create_takes_over_from_a_dead_delete_and_revives_the_tenant(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back, instead_of=Lock(DELETE, None))
        closed = audit_of(table, DELETE)
        assert (closed.status, closed.revived_by) == (Status.FAILURE, back.execution)
        assert states(table) == [State.PROVISIONING]

    def test_a_create_may_supersede_a_failed_delete(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER + SECOND)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        assert audit_of(table, DELETE).revived_by == back.execution
        assert audit_of(table, DELETE).status is Status.FAILURE

    def test_a_tenant_without_a_delete_is_not_revived(self, table: Table) -> None:
        take(table, RUN)
        assert [audit.execution for audit in table.audits(ACME)] == [RUN.execution]

    def test_the_delete_after_a_revival_counts(self, table: Table) -> None:
        delete(table)
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        publish(table, back, at=LATER_STILL + SECOND)
        again = a_run(2, operation=Operation.DELETE, started_at=LATER_STILL + 2 * SECOND)
        take(table, again)
        assert audit_of(table, again).revived_by is None
        table.remove(again, at=LATER_STILL + 3 * SECOND)
        assert audit_of(table, again).revived_by is None


class TestFail:
    @for_each_operation
    def test_failing_records_the_cause_and_frees_the_lock(self, table: Table, run: Run) -> None:
        take(table, run)
        assert table.fail(run, QUEUE_TABOO, LATER_STILL)
        started = run.attempt
        assert audit_of(table, run) == Audit(
            ACME,
            started.operation,
            started.version,
            Status.FAILURE,
            run.execution,
            LATER_STILL,
            1,
            QUEUE_TABOO,
            run.request,
            asked_at=run.started_at,
        )
        assert [entry.root_cause for entry in table.history(ACME)] == [None, QUEUE_TABOO]
        assert table.lock(ACME) is None

    def test_repeated_it_is_accepted_and_changes_nothing(self, table: Table) -> None:
        take(table, RUN)
        table.fail(RUN, QUEUE_TABOO, LATER)
        before = everything(table)
        assert table.fail(RUN, RootCause("x", "y", "z"), LATER_STILL)
        assert everything(table) == before

    def test_a_failed_update_does_not_change_the_metadata(self, table: Table) -> None:
        create(table)
        before = table.metadata(ACME)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER_STILL)
        assert table.metadata(ACME) == before

    def test_a_failed_delete_keeps_the_queue_withdrawn(self, table: Table) -> None:
        create(table)
        before = metadata_of(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL)
        assert table.metadata(ACME) == replace(before, withdrawn_by=DELETE.execution)

    def test_a_failed_delete_may_restore_the_queue(self, table: Table) -> None:
        create(table)
        before = metadata_of(table)
        take(table, DELETE)
        assert table.fail(DELETE, QUEUE_TABOO, LATER_STILL, restore=True)
        assert table.metadata(ACME) == before
        assert metadata_of(table).published
        assert table.lock(ACME) is None

    def test_a_repeated_failure_restores_nothing(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL)
        before = everything(table)
        assert table.fail(DELETE, QUEUE_TABOO, LATER_STILL + SECOND, restore=True)
        assert everything(table) == before

    def test_a_run_that_never_held_the_lock_restores_nothing(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        waiting = a_run(2, operation=Operation.DELETE, started_at=LATER)
        table.fail(waiting, QUEUE_TABOO, LATER_STILL, restore=True)
        assert metadata_of(table).withdrawn_by == DELETE.execution

    def test_a_refused_create_of_a_deleted_tenant_leaves_no_metadata(self, table: Table) -> None:
        delete(table)
        refused = a_run(2, started_at=LATER_STILL, request=Request(labels={"tier": "gold"}))
        take(table, refused)
        assert table.fail(refused, QUEUE_TABOO, LATER_STILL + SECOND)
        assert table.metadata(ACME) is None
        assert audit_of(table, refused).status is Status.FAILURE

    def test_a_refused_create_keeps_the_description_of_a_tenant_requested_since(self, table: Table) -> None:
        delete(table)
        refused = a_run(2, started_at=LATER_STILL, request=Request())
        take(table, refused)
        table.describe(
            ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=LATER_STILL, asked_for=an_attempt(3)
        )
        assert table.fail(refused, QUEUE_TABOO, LATER_STILL + SECOND)
        assert metadata_of(table).labels == {"tier": "gold"}
        assert states(table) == [State.DELETED]

    def test_a_refused_create_keeps_the_request_of_a_create_that_has_waited_for_long(self, table: Table) -> None:
        delete(table)
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER_STILL, asked_for=an_attempt(2))
        much_later = LATER_STILL + 10 * START_GRACE_PERIOD
        refused = a_run(3, started_at=much_later, request=Request())
        take(table, refused)
        assert table.fail(refused, QUEUE_TABOO, much_later + SECOND)
        assert metadata_of(table).asked_for == an_attempt(2)

    def test_a_create_that_never_began_leaves_no_metadata_of_a_deleted_tenant(self, table: Table) -> None:
        delete(table)
        assert table.fail(a_run(2, started_at=LATER_STILL), QUEUE_TABOO, LATER_STILL + SECOND)
        assert table.metadata(ACME) is None

    def test_a_failure_before_the_begin_is_recorded(self, table: Table) -> None:
        assert table.fail(RUN, QUEUE_TABOO, LATER)
        assert audit_of(table, RUN).status is Status.FAILURE
        assert outcomes(table, RUN) == [Status.FAILURE]

    @for_each_other_operation
    def test_a_failure_before_the_begin_changes_neither_lock_nor_metadata(self, table: Table, other: Run) -> None:
        take(table, RUN)
        before = table.metadata(ACME)
        table.fail(other, QUEUE_TABOO, LATER)
        assert table.lock(ACME) == Lock(RUN, None)
        assert table.metadata(ACME) == before
        assert states(table) == [State.PROVISIONING]

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

    def test_a_completed_delete_is_not_overwritten(self, table: Table) -> None:
        delete(table)
        before = everything(table)
        assert not table.fail(DELETE, QUEUE_TABOO, LATER_STILL, restore=True)
        assert everything(table) == before

    def test_failing_a_closed_operation_is_accepted(self, table: Table) -> None:
        take(table, RUN)
        take(table, UPDATE, instead_of=Lock(RUN, None))
        before = everything(table)
        assert table.fail(RUN, QUEUE_TABOO, LATER_STILL)
        assert everything(table) == before

    def test_the_holder_frees_the_lock_after_a_later_attempt_failed(self, table: Table) -> None:
        take(table, RUN)
        table.fail(a_run(2), QUEUE_TABOO, NOON + SECOND)
        assert table.fail(RUN, QUEUE_TABOO, LATER)
        assert table.lock(ACME) is None
        assert outcomes(table, RUN) == [Status.STARTED, Status.FAILURE]


# A run without the lock writes nothing

WRITES: dict[str, Callable[[Table, Run], object]] = {
    "token": lambda table, run: table.remember_token(run, "token"),
    "changes": lambda table, run: table.remember_change_set(run, "arn"),
    "publish": lambda table, run: publish(table, run, at=LATER_STILL, queue=OTHER_QUEUE),
    "remove": lambda table, run: table.remove(run, at=LATER_STILL),
}
for_each_write = pytest.mark.parametrize("write", list(WRITES.values()), ids=list(WRITES))


class TestFencing:
    @for_each_write
    @pytest.mark.parametrize("operation", list(Operation))
    def test_a_run_that_lost_its_lock_writes_nothing(
        self, table: Table, operation: Operation, write: Callable[[Table, Run], object]
    ) -> None:
        delete(table)
        dead = a_run(7, operation=operation, version="0.3.0", started_at=LATER_STILL)
        successor = a_run(8, operation=operation, version="0.3.0", started_at=LATER_STILL)
        take(table, dead)
        take(table, successor, instead_of=Lock(dead, None))
        before = everything(table)
        with pytest.raises(LostOwnership):
            write(table, dead)
        assert everything(table) == before

    @for_each_write
    def test_a_run_that_never_began_writes_nothing(self, table: Table, write: Callable[[Table, Run], object]) -> None:
        with pytest.raises(LostOwnership):
            write(table, RUN)
        assert everything(table) == NOTHING

    @for_each_write
    @for_each_operation
    def test_a_run_that_has_failed_writes_nothing(
        self, table: Table, run: Run, write: Callable[[Table, Run], object]
    ) -> None:
        take(table, run)
        table.fail(run, QUEUE_TABOO, LATER)
        before = everything(table)
        with pytest.raises(LostOwnership):
            write(table, run)
        assert everything(table) == before

    def test_a_late_failure_of_a_delete_does_not_restore_what_its_successor_withdrew(self, table: Table) -> None:
        create(table)
        successor = a_run(2, operation=Operation.DELETE, started_at=LATER_STILL)
        take(table, DELETE)
        take(table, successor, instead_of=Lock(DELETE, None))
        before = everything(table)
        assert not table.fail(DELETE, QUEUE_TABOO, LATER_STILL + SECOND, restore=True)
        assert everything(table) == before


def test_the_outputs_of_a_stack_are_kept_until_an_operation_knows_others(table: Table) -> None:
    def published(run: Run, resources: dict[str, str] | None) -> Mapping[str, str]:
        take(table, run)
        table.publish(run, Publication("stack-1", QUEUE, VERSION, None, resources=resources), at=LATER)
        return present(table.metadata(ACME)).resources

    def update(number: int) -> Run:
        return a_run(number, operation=Operation.UPDATE)

    assert published(RUN, {"FilesBucket": "files-1"}) == {"FilesBucket": "files-1"}
    assert published(update(1), None) == {"FilesBucket": "files-1"}
    assert published(update(2), {"OrdersTable": "orders-1"}) == {"OrdersTable": "orders-1"}
    assert published(update(3), {}) == {}
