"""The table's contract, kept by DynamoDB's adapter and by the fake that all other tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

import pytest

from orchestrator.adapters.dynamodb import DynamoTable
from orchestrator.errors import LostOwnership, QueueOwnedElsewhere
from orchestrator.ports import FleetReader, OperationLedger, QueueMetadata, Releases, TenantReader
from orchestrator.records import Audit, HistoryEntry, Lock, Metadata, Operation, Queue, Release, RootCause, Run, Status
from orchestrator.tenants import TenantId
from tests.adapters.conftest import TABLE
from tests.fakes import (
    ACME,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    InMemoryTable,
    a_release,
    a_run,
    an_audit,
    take,
)

SECOND = timedelta(seconds=1)
LATER = NOON + timedelta(minutes=1)
LATER_STILL = NOON + timedelta(minutes=2)
LEGACY_TIME = datetime.fromisoformat("2020-08-31T16:02:16.808Z")
LEGACY_QUEUE = Queue("arn:aws:sqs:eu-west-1:0:in", "https://sqs.eu-west-1.amazonaws.com/0/in")

RUN = a_run()
OTHER_OPERATIONS = {
    "next attempt": a_run(2, started_at=LATER),
    "another version": a_run(version="0.2.0", started_at=LATER),
    "update": a_run(operation=Operation.UPDATE, started_at=LATER),
    "delete": a_run(operation=Operation.DELETE, started_at=LATER),
}
for_each_other_operation = pytest.mark.parametrize("other", list(OTHER_OPERATIONS.values()), ids=list(OTHER_OPERATIONS))


class Table(TenantReader, OperationLedger, QueueMetadata, FleetReader, Releases, Protocol):
    """All of it."""


@dataclass(frozen=True)
class Legacy:
    """Puts rows there as they were written before versions were part of keys and attempts were counted."""

    metadata: Callable[[TenantId], None]
    audit: Callable[[Operation, Status, str | None], None]


@pytest.fixture(params=["memory", "dynamodb"])
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def table(kind: str, request: pytest.FixtureRequest) -> Table:
    return InMemoryTable() if kind == "memory" else DynamoTable(request.getfixturevalue("dynamodb"), TABLE)


@pytest.fixture
def legacy(table: Table, request: pytest.FixtureRequest) -> Legacy:
    if isinstance(table, InMemoryTable):
        memory = table

        def plant_metadata(tenant: TenantId) -> None:
            memory.plant_metadata(Metadata(tenant, LEGACY_QUEUE, None, "0.1.12", LEGACY_TIME, LEGACY_TIME))

        def plant_audit(operation: Operation, status: Status, version: str | None) -> None:
            audit = an_audit(status, operation, version=version, at=LEGACY_TIME, execution="arn:legacy")
            memory.plant_audit(audit, numbered=False)

        return Legacy(plant_metadata, plant_audit)

    dynamodb = request.getfixturevalue("dynamodb")

    def put(tenant: TenantId, sort_key: str, **attributes: str) -> None:
        row = {"pk": f"TENANT_ID#{tenant}", "sk": sort_key, "UpdatedAt": "2020-08-31T16:02:16.808Z", **attributes}
        dynamodb.put_item(TableName=TABLE, Item={name: {"S": value} for name, value in row.items()})

    def put_metadata(tenant: TenantId) -> None:
        put(
            tenant,
            "METADATA",
            CreatedAt="2020-08-31T16:02:16.808Z",
            Version="0.1.12",
            OutboundQueueArn="arn:aws:sqs:eu-west-1:0:out",
            OutboundQueueUrl="https://sqs.eu-west-1.amazonaws.com/0/out",
            InboundQueueArn=LEGACY_QUEUE.arn,
            InboundQueueUrl=LEGACY_QUEUE.url,
        )

    def put_audit(operation: Operation, status: Status, version: str | None) -> None:
        put(ACME, f"AUDIT#{operation}" + (f"#{version}" if version else ""), Execution="arn:legacy", Status=status)

    return Legacy(put_metadata, put_audit)


def everything(table: Table, tenant: TenantId = ACME) -> tuple[object, ...]:
    """All that is known of a tenant, to see that nothing of it has changed."""
    return (table.metadata(tenant), list(table.audits(tenant)), list(table.history(tenant)), table.lock(tenant))


def outcomes(table: Table, run: Run) -> list[Status]:
    return [entry.status for entry in table.history(run.tenant) if entry.execution == run.execution]


def publish(table: Table, run: Run = RUN, *, at: datetime = LATER, version: str = VERSION) -> None:
    table.publish(run, stack_id="stack-1", queue=QUEUE, version=version, at=at)


def audit_of(table: Table, run: Run) -> Audit:
    (audit,) = [audit for audit in table.audits(run.tenant) if audit.execution == run.execution]
    return audit


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


class TestHistory:
    def test_every_attempt_and_outcome_stays_in_the_order_of_time(self, table: Table) -> None:
        first, second = a_run(1), a_run(2, started_at=LATER)
        take(table, first)
        table.fail(first, QUEUE_TABOO, NOON + SECOND)
        take(table, second)
        publish(table, second, at=LATER_STILL)
        assert [(entry.attempt, entry.status, entry.at) for entry in table.history(ACME)] == [
            (1, Status.STARTED, NOON),
            (1, Status.FAILURE, NOON + SECOND),
            (2, Status.STARTED, LATER),
            (2, Status.SUCCESS, LATER_STILL),
        ]
        (audit,) = table.audits(ACME)
        assert (audit.attempt, audit.status, audit.root_cause) == (2, Status.SUCCESS, None)

    def test_versions_and_operations_have_audits_of_their_own(self, table: Table) -> None:
        runs = [a_run(), *OTHER_OPERATIONS.values()]
        for run in runs:
            take(table, run)
            table.fail(run, QUEUE_TABOO, LATER)
        assert [(audit.operation, audit.version) for audit in table.audits(ACME)] == [
            (Operation.CREATE, "0.1.0"),
            (Operation.CREATE, "0.2.0"),
            (Operation.DELETE, "0.1.0"),
            (Operation.UPDATE, "0.1.0"),
        ]


class TestWhatTheStackKeepsTrue:
    def test_the_first_stack_records_its_queue(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", None, NOON, NOON)

    def test_its_own_stack_may_replace_a_published_queue(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER_STILL)
        assert table.metadata(ACME) == Metadata(ACME, OTHER_QUEUE, "stack-1", VERSION, LATER, LATER_STILL)

    def test_another_stack_may_replace_a_queue_that_was_never_published(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        table.record_queue(ACME, stack_id="stack-2", queue=OTHER_QUEUE, at=LATER)
        assert table.metadata(ACME) == Metadata(ACME, OTHER_QUEUE, "stack-2", None, NOON, LATER)

    def test_another_stack_may_not_replace_a_published_queue(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        before = everything(table)
        with pytest.raises(QueueOwnedElsewhere, match="stack-2"):
            table.record_queue(ACME, stack_id="stack-2", queue=OTHER_QUEUE, at=LATER_STILL)
        assert everything(table) == before

    def test_a_stack_may_make_its_own_queue_be_forgotten(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        assert table.forget_queue(ACME, stack_id="stack-1")
        assert table.metadata(ACME) is None
        assert list(table.published_tenants()) == []

    def test_a_stack_may_not_make_another_stacks_queue_be_forgotten(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        assert not table.forget_queue(ACME, stack_id="stack-2")
        assert table.metadata(ACME) is not None

    def test_what_is_not_there_need_not_be_forgotten(self, table: Table) -> None:
        assert not table.forget_queue(ACME, stack_id="stack-1")


class TestReleases:
    def test_an_unpublished_version_has_none(self, table: Table) -> None:
        assert table.release(VERSION) is None

    def test_a_recorded_release_is_found_by_its_version(self, table: Table) -> None:
        release = a_release()
        assert table.record_release(release) == release
        assert table.release(VERSION) == release
        assert table.release("0.1.00") is None

    def test_a_recorded_release_is_never_replaced(self, table: Table) -> None:
        first = table.record_release(a_release(digest="a" * 64))
        second = Release(VERSION, "https://example.com", "b" * 64, LATER)
        assert table.record_release(second) == first
        assert table.release(VERSION) == first


class TestLegacyRows:
    def test_metadata_without_a_stack_id_is_read(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        assert table.metadata(ACME) == Metadata(ACME, LEGACY_QUEUE, None, "0.1.12", LEGACY_TIME, LEGACY_TIME)

    def test_a_create_without_a_version_is_read_as_the_first_attempt_of_no_version(
        self, table: Table, legacy: Legacy
    ) -> None:
        legacy.audit(Operation.CREATE, Status.STARTED, None)
        assert list(table.audits(ACME)) == [
            Audit(ACME, Operation.CREATE, None, Status.STARTED, "arn:legacy", LEGACY_TIME, attempt=1)
        ]

    def test_an_updates_version_is_read_off_its_key(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
        assert list(table.audits(ACME)) == [
            Audit(ACME, Operation.UPDATE, "0.1.18", Status.FAILURE, "arn:legacy", LEGACY_TIME, attempt=1)
        ]

    def test_a_create_without_a_version_stays_beside_one_with_a_version(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.CREATE, Status.FAILURE, None)
        take(table, RUN)
        assert [audit.version for audit in table.audits(ACME)] == [None, VERSION]

    def test_a_row_without_an_attempt_gives_way_to_the_first_attempt(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.DELETE, Status.FAILURE, None)
        run = a_run(operation=Operation.DELETE)
        assert take(table, run) is None
        assert audit_of(table, run).status is Status.STARTED

    def test_any_stack_may_claim_a_queue_that_says_no_stack(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        table.record_queue(ACME, stack_id="stack-1", queue=LEGACY_QUEUE, at=NOON)
        assert table.metadata(ACME) == Metadata(ACME, LEGACY_QUEUE, "stack-1", "0.1.12", LEGACY_TIME, NOON)

    def test_no_stack_may_make_a_queue_be_forgotten_that_says_no_stack(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        assert not table.forget_queue(ACME, stack_id="stack-1")
        assert table.metadata(ACME) is not None


class TestListings:
    def test_published_tenants_are_listed_by_version_and_name(self, table: Table) -> None:
        for name, version in (("b", "0.2.0"), ("c", "0.1.0"), ("a", "0.2.0")):
            run = a_run(tenant=TenantId.parse(name))
            take(table, run)
            publish(table, run, version=version)
        assert [(m.version, str(m.tenant)) for m in table.published_tenants()] == [
            ("0.1.0", "c"),
            ("0.2.0", "a"),
            ("0.2.0", "b"),
        ]

    def test_what_is_not_published_is_not_listed(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        assert list(table.published_tenants()) == []

    def test_a_tenant_that_is_published_again_is_listed_once_at_its_new_version(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        update = OTHER_OPERATIONS["update"]
        take(table, update)
        publish(table, update, at=LATER_STILL, version="0.2.0")
        assert [m.version for m in table.published_tenants()] == ["0.2.0"]

    def test_operations_are_listed_while_started_and_once_failed_but_not_once_succeeded(self, table: Table) -> None:
        def listed() -> dict[Status, list[Audit]]:
            return {status: list(table.operations(status)) for status in (Status.STARTED, Status.FAILURE)}

        take(table, RUN)
        assert listed() == {Status.STARTED: list(table.audits(ACME)), Status.FAILURE: []}
        table.fail(RUN, QUEUE_TABOO, LATER)
        assert listed() == {Status.STARTED: [], Status.FAILURE: list(table.audits(ACME))}
        second = a_run(2, started_at=LATER)
        take(table, second)
        publish(table, second, at=LATER_STILL)
        assert listed() == {Status.STARTED: [], Status.FAILURE: []}

    def test_operations_are_listed_in_the_order_of_time(self, table: Table) -> None:
        for minute, name in enumerate(("c", "a", "b")):
            take(table, a_run(tenant=TenantId.parse(name), started_at=NOON + timedelta(minutes=minute)))
        assert [str(audit.tenant) for audit in table.operations(Status.STARTED)] == ["c", "a", "b"]
