"""The table's contract, kept by DynamoDB's adapter and by the fake that all other tests use."""

from __future__ import annotations

from datetime import timedelta

import pytest

from orchestrator.errors import QueueOwnedElsewhere
from orchestrator.records import Audit, Metadata, Operation, Release, Status
from orchestrator.tenants import TenantId
from tests.adapters.tables import (
    LATER,
    LATER_STILL,
    LEGACY_QUEUE,
    LEGACY_TIME,
    OTHER_OPERATIONS,
    RUN,
    SECOND,
    Legacy,
    Table,
    audit_of,
    everything,
    publish,
)
from tests.fakes import (
    ACME,
    NOON,
    OTHER_QUEUE,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_release,
    a_run,
    take,
)


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
