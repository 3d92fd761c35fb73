"""The table's contract, kept by DynamoDB's adapter and by the fake that all other tests use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.errors import LostOwnership, QueueOwnedElsewhere, StackHasGone
from orchestrator.common.tiers import STANDARD
from orchestrator.releases.records import Release
from orchestrator.tenants.changes import replacement
from orchestrator.tenants.history import ChangeKind, RecordedChange
from orchestrator.tenants.ports import Pin, Publication, SeenTenant
from orchestrator.tenants.records import Attempt, Metadata, Operation, Request, Status
from orchestrator.tenants.records import TenantState as State
from orchestrator.tenants.stack_resources import Requester
from tests.adapters.tables import (
    DELETE,
    LATER,
    LATER_STILL,
    OTHER_OPERATIONS,
    RUN,
    SECOND,
    UPDATE,
    Table,
    create,
    delete,
    everything,
    metadata_of,
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

# The writes of operations are also tested on the emulator, where they take a while: in test_table_operations.py.
pytestmark = pytest.mark.parametrize("kind", ["memory", "moto"], indirect=True)


class TestHistory:
    def test_all_attempts_and_outcomes_are_kept_in_order_of_time(self, table: Table) -> None:
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

    def test_the_history_of_a_life_has_the_requester_of_each_operation(self, table: Table) -> None:
        def by(name: str) -> Request:
            return Request(by=name, explicit=True)

        lives = [
            (a_run(request=by("ada")), Status.SUCCESS),
            (a_run(operation=Operation.UPDATE, version=NEXT_VERSION, request=by("ben")), Status.FAILURE),
            (a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION, request=by("cleo")), Status.SUCCESS),
            (a_run(operation=Operation.DELETE, request=by("dora")), Status.SUCCESS),
            (a_run(2, request=by("eve")), Status.FAILURE),
        ]
        expected = []
        for minute, (run, outcome) in enumerate(lives):
            begun = replace(run, started_at=NOON + timedelta(minutes=minute))
            take(table, begun)
            if outcome is Status.FAILURE:
                table.fail(begun, QUEUE_TABOO, begun.started_at + SECOND)
            elif run.attempt.operation is Operation.DELETE:
                table.remove(begun, at=begun.started_at + SECOND)
            else:
                publish(table, begun, at=begun.started_at + SECOND)
            expected += [
                (run.attempt.operation, run.attempt.version, run.attempt.number, status, run.request.by)
                for status in (Status.STARTED, outcome)
            ]
            assert [
                (entry.operation, entry.version, entry.attempt, entry.status, entry.request.by)
                for entry in table.history(ACME)
            ] == expected

    def test_entries_of_the_history_never_change(self, table: Table) -> None:
        """Every write of a run is repeated, later and with another cause: nothing that is there changes."""
        create(table)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER + SECOND)
        take(table, replace(DELETE, started_at=LATER_STILL))
        table.remove(DELETE, at=LATER_STILL + SECOND)
        before = list(table.history(ACME))
        publish(table, at=LATER_STILL)
        table.fail(UPDATE, replace(QUEUE_TABOO, reason="another"), LATER_STILL)
        table.remove(DELETE, at=LATER_STILL + 2 * SECOND)
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL + 2 * SECOND)
        for run in (RUN, UPDATE, DELETE):
            with pytest.raises(LostOwnership):
                table.begin(run, at=LATER_STILL)
        assert list(table.history(ACME)) == before

    def test_versions_and_operations_have_separate_audits(self, table: Table) -> None:
        runs = [a_run(), *OTHER_OPERATIONS.values()]
        for run in runs:
            take(table, run)
            table.fail(run, QUEUE_TABOO, LATER)
        assert [(audit.operation, audit.version) for audit in table.audits(ACME)] == [
            (Operation.CREATE, "0.1.0"),
            (Operation.CREATE, "0.2.0"),
            (Operation.DELETE, "0.1.0"),
            (Operation.UPDATE, "0.2.0"),
        ]


class TestDescriptions:
    def test_labels_and_pin_are_set_and_nothing_else(self, table: Table) -> None:
        create(table)
        before = metadata_of(table)
        assert table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        assert table.metadata(ACME) == replace(
            before, labels={"tier": "gold"}, pinned_version=VERSION, updated_at=LATER
        )
        assert states(table) == [State.READY]

    def test_a_requested_tenant_is_described_and_not_listed_yet(self, table: Table) -> None:
        assert not table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        assert table.describe(
            ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER, asked_for=an_attempt()
        )
        assert table.metadata(ACME) == Metadata(
            *(ACME, None, None, None, None, LATER),
            labels={"tier": "gold"},
            pinned_version=VERSION,
            asked_for=an_attempt(),
            asked_for_at=LATER,
        )
        assert states(table) == []

    def test_a_tenant_requested_during_its_delete_stays_withdrawn(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        assert table.describe(
            ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt()
        )
        assert metadata_of(table).labels == {"tier": "gold"}
        assert not metadata_of(table).published

    @pytest.mark.parametrize("labels", [{"tier": "gold"}, {}])
    def test_a_create_does_not_overwrite_a_later_description(self, table: Table, labels: dict[str, str]) -> None:
        table.describe(ACME, labels=labels, pin=Pin(NEXT_VERSION), request=EXPLICIT, at=NOON, asked_for=an_attempt())
        take(table, a_run(request=Request(labels={"tier": "silver"}, pin=VERSION)))
        assert (metadata_of(table).labels, metadata_of(table).pinned_version) == (labels, NEXT_VERSION)

    def test_a_tenant_counts_as_requested_until_that_create_begins(self, table: Table) -> None:
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt(2))
        take(table, a_run())
        assert metadata_of(table).asked_for == an_attempt(2)
        table.fail(a_run(), QUEUE_TABOO, LATER)
        take(table, a_run(2))
        assert metadata_of(table).asked_for is None

    def test_a_delete_keeps_the_description_of_a_tenant_requested_since(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.describe(
            ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER, asked_for=an_attempt(2)
        )
        table.remove(DELETE, at=LATER_STILL)
        assert table.metadata(ACME) == Metadata(
            *(ACME, None, None, None, None, LATER),
            labels={"tier": "gold"},
            pinned_version=VERSION,
            asked_for=an_attempt(2),
            asked_for_at=LATER,
            recorded_tier=STANDARD,
        )
        assert states(table) == [State.DELETED]

    @pytest.mark.parametrize(("number", "described"), [(1, ({}, None)), (2, ({"tier": "silver"}, VERSION))])
    def test_a_create_sets_its_description_unless_its_request_has_recorded_it(
        self, table: Table, number: int, described: tuple[dict[str, str], str | None]
    ) -> None:
        """What was removed between the request and the create stays removed."""
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt())
        take(table, a_run(number, request=Request(labels={"tier": "silver"}, pin=VERSION)))
        assert (metadata_of(table).labels, metadata_of(table).pinned_version) == described

    def test_a_description_is_in_the_history_with_before_after_and_reason(self, table: Table) -> None:
        create(table)
        asked = Request(by="ada", reason="Ticket 4711", labels={"tier": "gold"}, pin=VERSION)
        before = list(table.history(ACME))
        table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=asked, at=LATER)
        table.describe(ACME, labels=None, pin=Pin(lift=True), request=EXPLICIT, at=LATER_STILL)
        first, second = list(table.history(ACME))[len(before) :]
        assert first == RecordedChange(
            ACME,
            LATER,
            ChangeKind.DESCRIBE,
            asked,
            before={"labels": {}, "pinnedVersion": None},
            after={"labels": {"tier": "gold"}, "pinnedVersion": VERSION},
        )
        assert second == RecordedChange(
            ACME,
            LATER_STILL,
            ChangeKind.DESCRIBE,
            EXPLICIT,
            before={"labels": {"tier": "gold"}, "pinnedVersion": VERSION},
            after={"labels": {"tier": "gold"}, "pinnedVersion": None},
        )

    def test_a_description_that_changes_nothing_is_not_written(self, table: Table) -> None:
        create(table)
        before = len(table.history(ACME))
        for at in (LATER, LATER, LATER, LATER_STILL):
            assert table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=at)
        assert table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER_STILL)
        assert len(table.history(ACME)) == before + 1
        assert metadata_of(table).updated_at == LATER

    def test_empty_labels_count_as_a_description(self, table: Table) -> None:
        """A create that began to wait before does not set its own labels then."""
        run = a_run(request=Request(labels={"tier": "gold"}))
        create(table)
        assert table.describe(ACME, labels={}, pin=Pin(), request=EXPLICIT, at=LATER)
        take(table, replace(run, attempt=an_attempt(2), execution="another"))
        assert metadata_of(table).labels == {}

    def test_an_equal_description_of_a_requested_tenant_is_not_recorded_again(self, table: Table) -> None:
        for at in (NOON, LATER, LATER_STILL):
            table.describe(ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=at, asked_for=an_attempt())
        assert len(table.history(ACME)) == 1
        assert metadata_of(table).asked_for_at == LATER_STILL

    def test_a_request_without_a_description_is_not_in_the_history(self, table: Table) -> None:
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt())
        assert list(table.history(ACME)) == []

    def test_two_descriptions_at_one_moment_are_both_in_the_history(self, table: Table) -> None:
        create(table)
        before = len(table.history(ACME))
        for by, version in (("ada", VERSION), ("bob", NEXT_VERSION)):
            table.describe(ACME, labels=None, pin=Pin(version), request=Request(by=by), at=LATER)
        described = list(table.history(ACME))[before:]
        assert {entry.request.by for entry in described if entry.request} == {"ada", "bob"}

    def test_missing_labels_and_pin_are_unchanged(self, table: Table) -> None:
        create(table)
        table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        assert table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER)
        assert (metadata_of(table).labels, metadata_of(table).pinned_version) == ({"tier": "gold"}, VERSION)

    def test_labels_are_replaced_as_a_whole(self, table: Table) -> None:
        create(table)
        table.describe(ACME, labels={"tier": "gold", "team": "blue"}, pin=Pin(), request=EXPLICIT, at=LATER)
        table.describe(ACME, labels={"team": "red"}, pin=Pin(), request=EXPLICIT, at=LATER)
        assert metadata_of(table).labels == {"team": "red"}
        table.describe(ACME, labels={}, pin=Pin(), request=EXPLICIT, at=LATER)
        assert metadata_of(table).labels == {}

    def test_a_pin_is_removed(self, table: Table) -> None:
        create(table)
        table.describe(ACME, labels=None, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        table.describe(ACME, labels=None, pin=Pin(NEXT_VERSION), request=EXPLICIT, at=LATER)
        assert metadata_of(table).pinned_version == NEXT_VERSION
        assert table.describe(ACME, labels=None, pin=Pin(lift=True), request=EXPLICIT, at=LATER)
        assert metadata_of(table).pinned_version is None

    def test_a_description_is_in_the_list(self, table: Table) -> None:
        create(table)
        table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        (listed,) = table.tenants_in(State.READY, limit=9)
        assert (listed.labels, listed.pinned_version, listed.updated_at) == ({"tier": "gold"}, VERSION, LATER)

    def test_a_tenant_can_be_described_during_an_update(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        assert table.describe(ACME, labels={"tier": "gold"}, pin=Pin(), request=EXPLICIT, at=LATER)
        publish(table, UPDATE, at=LATER_STILL)
        assert metadata_of(table).labels == {"tier": "gold"}

    def test_an_unknown_tenant_cannot_be_described(self, table: Table) -> None:
        assert not table.describe(ACME, labels={}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        assert table.metadata(ACME) is None

    def test_a_tenant_cannot_be_described_during_its_delete(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        before = everything(table)
        assert not table.describe(ACME, labels={"tier": "gold"}, pin=Pin(lift=True), request=EXPLICIT, at=LATER_STILL)
        assert everything(table) == before

    def test_a_deleted_tenant_cannot_be_described(self, table: Table) -> None:
        delete(table)
        before = everything(table)
        assert not table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER_STILL)
        assert everything(table) == before


def brought_by(table: Table, creator: Requester | None) -> None:
    take(table, RUN)
    table.publish(RUN, Publication("stack-1", QUEUE, VERSION, None, creator), at=LATER)


CLAIMS: dict[str, Callable[[Table], object]] = {
    "nothing": lambda _table: None,
    "somebody has asked for it": lambda table: table.describe(
        ACME, labels=None, pin=Pin(), request=EXPLICIT, at=NOON, asked_for=an_attempt()
    ),
    "somebody has asked for it again": lambda table: table.describe(
        ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt()
    ),
    "a resource's": lambda table: brought_by(table, a_resource()),
    "another resource's": lambda table: brought_by(table, a_resource("OtherQueue")),
    "an operator's": lambda table: brought_by(table, "ada"),
    "from before creators were recorded": lambda table: brought_by(table, None),
    "vanished, and a resource's": lambda table: (
        brought_by(table, a_resource()),
        table.forget_queue(ACME, stack_id="stack-1"),
    ),
}
"""The ways in which a tenant gets an owner."""
SAID = {"labels": {"tier": "gold"}, "pin": Pin(VERSION), "request": EXPLICIT, "at": LATER_STILL}


class TestDescriptionsOnlyIfNobodyHasClaimedTheTenantSince:
    @pytest.mark.parametrize("claim", CLAIMS)
    @pytest.mark.parametrize("asked_for", [None, an_attempt(2)], ids=["there", "asked for"])
    def test_an_unchanged_tenant_is_described(self, table: Table, claim: str, asked_for: Attempt | None) -> None:
        CLAIMS[claim](table)
        seen = table.metadata(ACME)
        described = table.describe(ACME, **SAID, asked_for=asked_for, only_if=SeenTenant(seen))  # type: ignore[arg-type]
        assert (described is not None) is (seen is not None or asked_for is not None)
        assert (table.metadata(ACME) is not None) is (described is not None)

    @pytest.mark.parametrize("claim", [name for name in CLAIMS if name != "nothing"])
    @pytest.mark.parametrize("asked_for", [None, an_attempt(2)], ids=["there", "asked for"])
    def test_a_tenant_that_has_an_owner_since_is_not_described(
        self, table: Table, claim: str, asked_for: Attempt | None
    ) -> None:
        CLAIMS[claim](table)
        before = everything(table)
        for seen in (None, Metadata(ACME, None, None, None, None, NOON)):
            described = table.describe(ACME, **SAID, asked_for=asked_for, only_if=SeenTenant(seen))  # type: ignore[arg-type]
            assert not described
        assert everything(table) == before

    @pytest.mark.parametrize("claim", ["another resource's", "an operator's", "from before creators were recorded"])
    def test_a_tenant_that_has_another_owner_since_is_not_described(self, table: Table, claim: str) -> None:
        CLAIMS[claim](table)
        before = everything(table)
        seen = replace(metadata_of(table), created_by=a_resource())
        assert not table.describe(ACME, **SAID, only_if=SeenTenant(seen))  # type: ignore[arg-type]
        assert everything(table) == before

    def test_a_tenant_that_was_deleted_since_is_not_described(self, table: Table) -> None:
        create(table)
        seen = metadata_of(table)
        take(table, DELETE)
        table.remove(DELETE, at=LATER)
        assert not table.describe(ACME, **SAID, asked_for=an_attempt(2), only_if=SeenTenant(seen))  # type: ignore[arg-type]
        assert table.metadata(ACME) is None


class TestWhatTheStackKeepsTrue:
    def test_the_first_stack_records_its_queue(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        assert table.metadata(ACME) == Metadata(ACME, QUEUE, "stack-1", None, NOON, NOON)

    def test_recording_the_queue_keeps_the_description(self, table: Table) -> None:
        take(table, a_run(request=Request(labels={"tier": "gold"}, pin=VERSION)))
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER)
        assert table.metadata(ACME) == Metadata(
            ACME,
            QUEUE,
            "stack-1",
            None,
            LATER,
            LATER,
            labels={"tier": "gold"},
            pinned_version=VERSION,
            created_by="",
            recorded_tier=STANDARD,
        )
        assert states(table) == [State.PROVISIONING]

    def test_the_own_stack_may_replace_a_published_queue(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER_STILL)
        assert table.metadata(ACME) == Metadata(
            ACME, OTHER_QUEUE, "stack-1", VERSION, LATER, LATER_STILL, created_by=EXPLICIT.by, recorded_tier=STANDARD
        )

    def test_a_queue_recorded_since_is_not_replaced(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        seen = table.metadata(ACME)
        assert table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER, seen=seen)
        before = everything(table)
        assert not table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER_STILL, seen=seen)
        assert everything(table) == before

    def test_a_queue_and_its_history_entry_are_written_together(self, table: Table) -> None:
        take(table, RUN)
        publish(table)
        seen, before = table.metadata(ACME), list(table.history(ACME))
        assert seen is not None
        change = replacement(seen, OTHER_QUEUE, stack_id="stack-1", at=LATER_STILL)
        for _ in range(2):  # The second time another queue is on record than was seen.
            table.record_queue(ACME, stack_id="stack-1", queue=OTHER_QUEUE, at=LATER_STILL, seen=seen, change=change)
            assert list(table.history(ACME)) == [*before, change]
        assert table.metadata(ACME) == Metadata(
            ACME, OTHER_QUEUE, "stack-1", VERSION, LATER, LATER_STILL, created_by=EXPLICIT.by, recorded_tier=STANDARD
        )

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

    def test_another_stack_may_not_replace_a_withdrawn_queue(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        before = everything(table)
        with pytest.raises(QueueOwnedElsewhere, match="stack-2"):
            table.record_queue(ACME, stack_id="stack-2", queue=OTHER_QUEUE, at=LATER_STILL)
        assert everything(table) == before

    def test_a_vanished_queue_is_removed_and_the_description_kept(self, table: Table) -> None:
        create(table)
        table.describe(ACME, labels={"tier": "gold"}, pin=Pin(VERSION), request=EXPLICIT, at=LATER)
        before = metadata_of(table)
        assert table.forget_queue(ACME, stack_id="stack-1")
        assert table.metadata(ACME) == replace(
            before,
            queue=None,
            stack_id=None,
            version=None,
            gone_stack_id="stack-1",
            created_by=EXPLICIT.by,
            last_version=VERSION,
        )
        assert states(table) == [State.UNKNOWN]

    def test_the_version_of_a_vanished_queue_is_kept_until_the_tenant_is_ready(self, table: Table) -> None:
        create(table)
        table.forget_queue(ACME, stack_id="stack-1")
        again = a_run(2, started_at=LATER)
        take(table, again)
        assert metadata_of(table).last_version == VERSION
        table.publish(again, Publication("stack-2", QUEUE, NEXT_VERSION, None), at=LATER_STILL)
        assert metadata_of(table).last_version is None

    def test_the_version_of_a_vanished_queue_is_removed_with_the_tenant(self, table: Table) -> None:
        create(table)
        table.forget_queue(ACME, stack_id="stack-1")
        take(table, DELETE)
        table.describe(ACME, labels=None, pin=Pin(), request=EXPLICIT, at=LATER, asked_for=an_attempt(2))
        table.remove(DELETE, at=LATER_STILL)
        assert metadata_of(table).last_version is None

    def test_a_stack_that_removed_its_queue_cannot_record_it_again(self, table: Table) -> None:
        create(table)
        table.forget_queue(ACME, stack_id="stack-1")
        before = metadata_of(table)
        with pytest.raises(StackHasGone):
            table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=LATER)
        assert table.metadata(ACME) == before
        table.record_queue(ACME, stack_id="stack-2", queue=QUEUE, at=LATER)
        assert metadata_of(table).stack_id == "stack-2"

    def test_a_vanished_queue_has_no_root_cause_of_a_failed_update(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER_STILL)
        table.forget_queue(ACME, stack_id="stack-1")
        (listed,) = table.tenants_in(State.UNKNOWN, limit=9)
        assert listed.root_cause is None

    def test_a_delete_removes_the_queue_and_the_tenant_stays_deleting(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        assert table.forget_queue(ACME, stack_id="stack-1")
        assert metadata_of(table).queue is None
        assert metadata_of(table).withdrawn_by == DELETE.execution
        assert metadata_of(table).was_served
        (listed,) = table.tenants_in(State.DELETING, limit=9)
        assert (listed.version, listed.queue) == (None, None)
        assert not table.tenants_in(State.DELETING, version=VERSION, limit=9)

    def test_a_create_that_lost_its_stack_stays_provisioning(self, table: Table) -> None:
        take(table, RUN)
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        assert table.forget_queue(ACME, stack_id="stack-1")
        assert metadata_of(table).queue is None
        assert not metadata_of(table).was_served
        assert states(table) == [State.PROVISIONING]

    def test_a_create_that_lost_its_stack_keeps_the_version_that_the_tenant_had_before(self, table: Table) -> None:
        create(table)
        table.forget_queue(ACME, stack_id="stack-1")
        take(table, a_run(2, started_at=LATER))
        table.record_queue(ACME, stack_id="stack-2", queue=QUEUE, at=LATER)
        assert table.forget_queue(ACME, stack_id="stack-2")
        assert metadata_of(table).last_version == VERSION

    def test_a_queue_is_removed_if_the_metadata_is_as_it_was_seen(self, table: Table) -> None:
        create(table)
        assert table.forget_queue(ACME, stack_id="stack-1", seen=metadata_of(table))
        assert metadata_of(table).queue is None

    @pytest.mark.parametrize(
        "change",
        [
            lambda table: take(table, DELETE),
            lambda table: (take(table, UPDATE), publish(table, UPDATE, version=NEXT_VERSION)),
            lambda table: table.describe(ACME, **SAID),
        ],
        ids=["a delete has begun", "an update has ended", "labels were changed"],
    )
    def test_a_queue_stays_if_the_metadata_was_changed_since_it_was_seen(
        self, table: Table, change: Callable[[Table], object]
    ) -> None:
        create(table)
        seen = metadata_of(table)
        change(table)
        before = everything(table)
        assert not table.forget_queue(ACME, stack_id="stack-1", seen=seen)
        assert everything(table) == before

    def test_a_stack_cannot_remove_the_queue_of_another_stack(self, table: Table) -> None:
        create(table)
        before = everything(table)
        assert not table.forget_queue(ACME, stack_id="stack-2")
        assert everything(table) == before

    def test_removing_a_missing_queue_does_nothing(self, table: Table) -> None:
        assert not table.forget_queue(ACME, stack_id="stack-1")
        assert table.metadata(ACME) is None


class TestReleases:
    def test_an_unpublished_version_has_no_release(self, table: Table) -> None:
        assert table.release(VERSION) is None
        assert list(table.releases()) == []

    def test_a_recorded_release_is_found_by_its_version(self, table: Table) -> None:
        release = a_release(parameters=["KmsKeyArn"])
        assert table.record_release(release) == release
        assert table.release(VERSION) == release
        assert table.release("0.1.00") is None

    def test_a_recorded_release_is_never_replaced(self, table: Table) -> None:
        first = table.record_release(a_release(digest="a" * 64))
        second = Release(VERSION, "https://example.com", "b" * 64, LATER)
        assert table.record_release(second) == first
        assert table.release(VERSION) == first

    def test_all_releases_are_listed_once_each(self, table: Table) -> None:
        recorded = {table.record_release(a_release(version)) for version in ("0.9.0", "0.10.0", "0.1.0")}
        create(table)
        assert set(table.releases()) == recorded
        assert len(table.releases()) == 3
