"""The table's contract: the lists of tenants, and rows that an earlier system wrote."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.decisions import Deleted, StartCreate, Wait, decide
from orchestrator.tenants.fleet import list_tenants
from orchestrator.tenants.listings import ListedTenant, Relisting, TenantInBrief
from orchestrator.tenants.ready import Ready
from orchestrator.tenants.records import Audit, Metadata, Operation, Request, Status
from orchestrator.tenants.records import TenantState as State
from orchestrator.tenants.turns import Place
from tests.adapters.tables import (
    DELETE,
    LATER,
    LATER_STILL,
    LEGACY_OUTBOUND_QUEUE,
    LEGACY_QUEUE,
    LEGACY_TIME,
    LEGACY_VERSION,
    RUN,
    SECOND,
    UPDATE,
    Legacy,
    Table,
    audit_of,
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
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    a_run,
    take,
)

# The writes of operations are also tested on the emulator, where they take a while: in test_table_operations.py.
pytestmark = pytest.mark.parametrize("kind", ["memory", "moto"], indirect=True)


class TestLegacyRows:
    def test_metadata_without_a_stack_id_is_read_with_the_outbound_queue_and_served(
        self, table: Table, legacy: Legacy
    ) -> None:
        legacy.metadata(ACME)
        assert table.metadata(ACME) == Metadata(
            ACME,
            LEGACY_QUEUE,
            None,
            LEGACY_VERSION,
            LEGACY_TIME,
            LEGACY_TIME,
            outbound_queue=LEGACY_OUTBOUND_QUEUE,
        )
        assert decide(table.metadata(ACME), [], VERSION) == Ready(LEGACY_QUEUE, LEGACY_VERSION)

    def test_a_create_without_a_version_is_read_as_the_first_attempt_of_no_version(
        self, table: Table, legacy: Legacy
    ) -> None:
        legacy.audit(Operation.CREATE, Status.STARTED, None)
        assert list(table.audits(ACME)) == [
            Audit(ACME, Operation.CREATE, None, Status.STARTED, "arn:legacy", LEGACY_TIME, attempt=1)
        ]
        assert decide(None, table.audits(ACME), VERSION) == Wait("arn:legacy")

    def test_the_version_of_an_update_is_read_from_its_key(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.UPDATE, Status.FAILURE, "0.1.18")
        assert list(table.audits(ACME)) == [
            Audit(ACME, Operation.UPDATE, "0.1.18", Status.FAILURE, "arn:legacy", LEGACY_TIME, attempt=1)
        ]

    def test_a_delete_is_read_without_a_version_and_keeps_the_tenant_deleted(
        self, table: Table, legacy: Legacy
    ) -> None:
        legacy.audit(Operation.DELETE, Status.SUCCESS, None)
        (audit,) = table.audits(ACME)
        assert audit == Audit(ACME, Operation.DELETE, None, Status.SUCCESS, "arn:legacy", LEGACY_TIME, attempt=1)
        assert decide(None, [audit], VERSION) == Deleted(audit)

    def test_an_explicit_create_supersedes_a_legacy_delete(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.DELETE, Status.SUCCESS, None)
        take(table, RUN)
        table.fail(RUN, QUEUE_TABOO, LATER)
        assert decide(table.metadata(ACME), table.audits(ACME), NEXT_VERSION) == StartCreate(1)
        assert states(table) == [State.FAILED]

    def test_a_create_without_a_version_is_kept_beside_one_with_a_version(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.CREATE, Status.FAILURE, None)
        take(table, RUN)
        assert [audit.version for audit in table.audits(ACME)] == [None, VERSION]

    def test_the_first_attempt_replaces_a_row_without_an_attempt(self, table: Table, legacy: Legacy) -> None:
        legacy.audit(Operation.DELETE, Status.FAILURE, None)
        run = a_run(operation=Operation.DELETE)
        assert take(table, run) is None
        assert audit_of(table, run).status is Status.STARTED

    def test_any_stack_may_claim_a_queue_without_a_stack(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        before = metadata_of(table)
        table.record_queue(ACME, stack_id="stack-1", queue=LEGACY_QUEUE, at=NOON)
        assert table.metadata(ACME) == replace(before, stack_id="stack-1", updated_at=NOON)

    def test_no_stack_may_remove_a_queue_without_a_stack(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        before = everything(table)
        assert not table.forget_queue(ACME, stack_id="stack-1")
        assert everything(table) == before

    def test_an_update_clears_the_outbound_queue(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        take(table, UPDATE)
        assert metadata_of(table).outbound_queue == LEGACY_OUTBOUND_QUEUE
        publish(table, UPDATE, at=LATER_STILL, version=NEXT_VERSION, queue=LEGACY_QUEUE)
        assert table.metadata(ACME) == Metadata(
            ACME, LEGACY_QUEUE, "stack-1", NEXT_VERSION, LEGACY_TIME, LATER_STILL, outbound_queue=None
        )

    def test_a_failed_update_keeps_the_outbound_queue(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        before = table.metadata(ACME)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER_STILL)
        assert table.metadata(ACME) == before

    def test_a_create_keeps_the_outbound_queue(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        take(table, RUN)
        publish(table, queue=LEGACY_QUEUE)
        assert metadata_of(table).outbound_queue == LEGACY_OUTBOUND_QUEUE

    def test_a_legacy_tenant_can_be_deleted(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        take(table, DELETE)
        assert not metadata_of(table).published
        assert states(table) == [State.DELETING]
        table.remove(DELETE, at=LATER_STILL)
        assert table.metadata(ACME) is None
        assert states(table) == [State.DELETED]

    def test_a_legacy_tenant_is_listed_after_its_first_operation(self, table: Table, legacy: Legacy) -> None:
        legacy.metadata(ACME)
        legacy.audit(Operation.CREATE, Status.STARTED, None)
        assert states(table) == []
        assert list(table.unfinished_operations()) == []
        take(table, UPDATE)
        assert states(table) == [State.UPDATING]
        (listed,) = table.tenants_in(State.UPDATING, version=LEGACY_VERSION, limit=9)
        assert (listed.tenant, listed.queue) == (ACME, LEGACY_QUEUE)


class TestListings:
    def test_a_listed_tenant_has_all_attributes(self, table: Table) -> None:
        take(table, a_run(request=Request(labels={"tier": "gold"}, pin=VERSION)))
        publish(table)
        assert list(table.tenants_in(State.READY, limit=9)) == [
            ListedTenant(
                tenant=ACME,
                state=State.READY,
                version=VERSION,
                pinned_version=VERSION,
                labels={"tier": "gold"},
                queue=QUEUE,
                updated_at=LATER,
                root_cause=None,
                position=f"{VERSION}#acme",
                stack_id="stack-1",
                tier="standard",
            )
        ]

    def test_tenants_are_found_by_version_and_the_beginning_of_their_ids(self, table: Table) -> None:
        for name in ("acme", "acme-2", "Acme", "globex"):
            for version in (VERSION, NEXT_VERSION):
                run = a_run(tenant=TenantId.parse(f"{name}-{version[2]}"), version=version)
                take(table, run)
                publish(table, run, version=version)
        take(table, a_run(tenant=TenantId.parse("acme-new")))
        found = table.tenants_in(State.READY, version=VERSION, prefix="acme", limit=9)
        assert [each.tenant.value for each in found] == ["acme-1", "acme-2-1"]
        rest = table.tenants_in(State.READY, version=VERSION, prefix="acme", after=found[0].position, limit=9)
        assert [each.tenant.value for each in rest] == ["acme-2-1"]
        assert list(table.versions_in(State.READY)) == [VERSION, NEXT_VERSION]
        assert list(table.versions_in(State.PROVISIONING)) == [""]
        assert list(table.versions_in(State.DELETED)) == []

    def test_a_tenant_is_listed_in_one_state_at_every_moment_of_its_life(self, table: Table) -> None:
        take(table, RUN)
        assert states(table) == [State.PROVISIONING]
        table.fail(RUN, QUEUE_TABOO, NOON + SECOND)
        assert states(table) == [State.FAILED]
        again = a_run(2, started_at=LATER)
        take(table, again)
        assert states(table) == [State.PROVISIONING]
        publish(table, again, at=LATER + SECOND)
        assert states(table) == [State.READY]
        take(table, replace(UPDATE, started_at=LATER + 2 * SECOND))
        assert states(table) == [State.UPDATING]
        table.fail(UPDATE, QUEUE_TABOO, LATER + 3 * SECOND)
        assert states(table) == [State.UPDATE_FAILED]
        better = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=LATER + 4 * SECOND)
        take(table, better)
        assert states(table) == [State.UPDATING]
        publish(table, better, at=LATER + 5 * SECOND, version=NEXT_VERSION)
        assert states(table) == [State.READY]
        take(table, replace(DELETE, started_at=LATER + 6 * SECOND))
        assert states(table) == [State.DELETING]
        table.fail(DELETE, QUEUE_TABOO, LATER + 7 * SECOND)
        assert states(table) == [State.FAILED]
        harder = a_run(2, operation=Operation.DELETE, started_at=LATER + 8 * SECOND)
        take(table, harder)
        assert states(table) == [State.DELETING]
        table.remove(harder, at=LATER + 9 * SECOND)
        assert states(table) == [State.DELETED]
        back = a_run(3, started_at=LATER_STILL)
        take(table, back)
        assert states(table) == [State.PROVISIONING]
        publish(table, back, at=LATER_STILL + SECOND)
        assert states(table) == [State.READY]

    def test_a_tenant_is_counted_from_its_first_operation_until_it_is_deleted(self, table: Table) -> None:
        other = a_run(tenant=TenantId.parse("globex"))
        assert table.count_tenants() == 0
        take(table, RUN)
        take(table, other)
        assert table.count_tenants() == 2
        publish(table)
        table.fail(other, QUEUE_TABOO, NOON + SECOND)
        assert table.count_tenants() == 2
        take(table, DELETE)
        assert table.count_tenants() == 2
        table.remove(DELETE, at=LATER)
        assert table.count_tenants() == 1

    def test_a_tenant_in_brief_has_what_rollouts_select_by(self, table: Table) -> None:
        take(table, a_run(request=Request(labels={"tier": "gold"}, pin=VERSION)))
        publish(table)
        create(table, TenantId.parse("other"), NEXT_VERSION)
        take(table, a_run(tenant=TenantId.parse("new"), version=NEXT_VERSION))
        assert list(table.tenants_in_brief(State.READY)) == [
            TenantInBrief(ACME, State.READY, VERSION, VERSION, {"tier": "gold"}),
            TenantInBrief(TenantId.parse("other"), State.READY, NEXT_VERSION, None, {}),
        ]
        assert list(table.tenants_in_brief(State.PROVISIONING)) == [
            TenantInBrief(TenantId.parse("new"), State.PROVISIONING, None, None, {})
        ]

    @pytest.mark.parametrize("state", State)
    def test_a_tenant_in_brief_is_as_it_is_listed(self, table: Table, state: State) -> None:
        create(table)
        for run in (UPDATE, DELETE):
            take(table, run)
            table.fail(run, QUEUE_TABOO, LATER_STILL)
        create(table, TenantId.parse("deleted"))
        gone = a_run(tenant=TenantId.parse("deleted"), operation=Operation.DELETE, started_at=LATER)
        take(table, gone)
        table.remove(gone, at=LATER_STILL)
        assert list(table.tenants_in_brief(state)) == [
            TenantInBrief(each.tenant, each.state, each.version, each.pinned_version, each.labels)
            for each in table.tenants_in(state, limit=9)
        ]

    def test_every_change_of_a_tenants_place_in_the_index_is_recorded(self, table: Table) -> None:
        other = TenantId.parse("other")
        take(table, RUN)
        take(table, a_run(tenant=other))
        table.fail(a_run(tenant=other), QUEUE_TABOO, NOON + SECOND)
        publish(table, at=NOON + 2 * SECOND)
        table.begin(DELETE, at=LATER)
        table.remove(DELETE, at=LATER_STILL)
        ended = [Relisting(ACME, LATER), Relisting(ACME, LATER_STILL, deleted=True)]
        assert list(table.relistings(since=NOON)) == [
            Relisting(ACME, NOON),
            Relisting(other, NOON),
            Relisting(other, NOON + SECOND),
            Relisting(ACME, NOON + 2 * SECOND),
            *ended,
        ]
        assert list(table.relistings(since=LATER)) == ended
        assert list(table.relistings(since=LATER_STILL + SECOND)) == []

    def test_a_create_that_waits_for_its_turn_is_recorded(self, table: Table) -> None:
        table.wait_for_turn(RUN, Place(1, LATER, LATER), at=NOON)
        assert states(table) == [State.PROVISIONING]
        assert list(table.relistings(since=NOON)) == [Relisting(ACME, NOON)]

    def test_a_change_that_was_not_made_is_not_recorded(self, table: Table) -> None:
        take(table, RUN)
        assert take(table, a_run(number=2, started_at=LATER)) is not None, "the first run holds the lock"
        assert list(table.relistings(since=NOON)) == [Relisting(ACME, NOON)]

    def test_a_refused_delete_restores_the_state(self, table: Table) -> None:
        create(table)
        take(table, DELETE)
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL, restore=True)
        (listed,) = table.tenants_in(State.READY, version=VERSION, limit=9)
        assert (listed.queue, listed.root_cause) == (QUEUE, None)

    def test_a_refused_delete_restores_a_failed_update_with_its_root_cause(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER + SECOND)
        take(table, replace(DELETE, started_at=LATER_STILL))
        table.fail(DELETE, replace(QUEUE_TABOO, reason="messages"), LATER_STILL + SECOND, restore=True)
        (listed,) = table.tenants_in(State.UPDATE_FAILED, limit=9)
        assert listed.root_cause == QUEUE_TABOO

    @pytest.mark.parametrize(("restore", "state", "queue"), [(False, State.FAILED, None), (True, State.READY, QUEUE)])
    def test_a_queue_is_listed_while_it_is_served(
        self, table: Table, restore: bool, state: State, queue: object
    ) -> None:
        create(table)
        take(table, DELETE)
        (deleting,) = table.tenants_in(State.DELETING, limit=9)
        assert deleting.queue is None
        table.fail(DELETE, QUEUE_TABOO, LATER_STILL, restore=restore)
        (listed,) = table.tenants_in(state, limit=9)
        assert listed.queue == queue

    def test_a_root_cause_is_listed_until_the_next_operation(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        table.fail(UPDATE, QUEUE_TABOO, LATER + SECOND)
        (failed,) = table.tenants_in(State.UPDATE_FAILED, limit=9)
        assert failed.root_cause == QUEUE_TABOO
        again = a_run(2, operation=Operation.UPDATE, version=NEXT_VERSION, started_at=LATER_STILL)
        take(table, again)
        (updating,) = table.tenants_in(State.UPDATING, limit=9)
        assert updating.root_cause is None
        publish(table, again, at=LATER_STILL + SECOND, version=NEXT_VERSION)
        (updated,) = table.tenants_in(State.READY, limit=9)
        assert updated.root_cause is None

    def test_a_create_that_never_began_is_listed_as_failed(self, table: Table) -> None:
        table.fail(RUN, QUEUE_TABOO, LATER)
        (listed,) = table.tenants_in(State.FAILED, limit=9)
        assert (listed.tenant, listed.root_cause) == (ACME, QUEUE_TABOO)

    def test_an_update_that_never_began_is_listed_as_failed(self, table: Table) -> None:
        create(table)
        table.fail(UPDATE, QUEUE_TABOO, LATER_STILL)
        (listed,) = table.tenants_in(State.UPDATE_FAILED, version=VERSION, limit=9)
        assert (listed.queue, listed.root_cause) == (QUEUE, QUEUE_TABOO)

    def test_a_create_of_a_ready_tenant_does_not_change_its_state(self, table: Table) -> None:
        create(table)
        late = a_run(2, started_at=LATER)
        take(table, late)
        assert states(table) == [State.READY]
        table.fail(late, QUEUE_TABOO, LATER_STILL)
        assert states(table) == [State.READY]

    def test_tenants_are_listed_by_version_and_name(self, table: Table) -> None:
        for name, version in (("b", "0.2.0"), ("c", "0.1.0"), ("a", "0.2.0")):
            create(table, TenantId.parse(name), version)
        assert [(listed.version, str(listed.tenant)) for listed in table.tenants_in(State.READY, limit=9)] == [
            ("0.1.0", "c"),
            ("0.2.0", "a"),
            ("0.2.0", "b"),
        ]

    def test_an_updated_tenant_is_listed_once_at_its_new_version(self, table: Table) -> None:
        create(table)
        take(table, UPDATE)
        publish(table, UPDATE, at=LATER_STILL, version=NEXT_VERSION)
        assert [listed.version for listed in table.tenants_in(State.READY, limit=9)] == [NEXT_VERSION]
        assert not table.tenants_in(State.READY, version=VERSION, limit=9)

    def test_the_list_can_be_filtered_by_version(self, table: Table) -> None:
        for name, version in (("a", "0.1.0"), ("b", "0.1.1"), ("c", "0.1.10"), ("d", "10.1.1")):
            create(table, TenantId.parse(name), version)
        for name, version in (("a", "0.1.0"), ("b", "0.1.1"), ("c", "0.1.10"), ("d", "10.1.1")):
            assert [str(each.tenant) for each in table.tenants_in(State.READY, version=version, limit=9)] == [name]
        assert not table.tenants_in(State.READY, version="0.1", limit=9)

    def test_a_queue_that_only_its_stack_recorded_is_not_listed(self, table: Table) -> None:
        table.record_queue(ACME, stack_id="stack-1", queue=QUEUE, at=NOON)
        assert states(table) == []

    def test_a_deleted_tenant_is_listed_until_it_is_created_again(self, table: Table) -> None:
        delete(table)
        assert list(table.tenants_in(State.DELETED, limit=9)) == [
            ListedTenant(ACME, State.DELETED, None, None, {}, None, LATER + SECOND, None, "#acme")
        ]
        back = a_run(2, started_at=LATER_STILL)
        take(table, back)
        assert not table.tenants_in(State.DELETED, limit=9)

    def test_a_deleted_tenant_is_listed_once_after_a_refused_create(self, table: Table) -> None:
        delete(table)
        before = list(table.tenants_in(State.DELETED, limit=9))
        refused = a_run(2, started_at=LATER_STILL, request=Request())
        take(table, refused)
        table.fail(refused, QUEUE_TABOO, LATER_STILL + SECOND)
        assert states(table) == [State.DELETED]
        assert list(table.tenants_in(State.DELETED, limit=9)) == before

    @pytest.mark.parametrize("state", [State.READY, State.DELETED])
    def test_a_list_is_read_in_pages_by_position(self, table: Table, state: State) -> None:
        for name in ("e", "b", "a", "d", "c"):
            (delete if state is State.DELETED else create)(table, TenantId.parse(name))
        whole = list(table.tenants_in(state, limit=9))
        assert [str(listed.tenant) for listed in whole] == ["a", "b", "c", "d", "e"]
        assert list(table.tenants_in(state, limit=2)) == whole[:2]
        assert list(table.tenants_in(state, after=whole[1].position, limit=2)) == whole[2:4]
        assert list(table.tenants_in(state, after=whole[3].position, limit=2)) == whole[4:]
        assert list(table.tenants_in(state, after=whole[4].position, limit=2)) == []

    def test_a_list_of_one_version_has_pages(self, table: Table) -> None:
        for name, version in (("a", "0.1.0"), ("b", "0.2.0"), ("c", "0.1.0"), ("d", "0.1.0"), ("e", "0.3.0")):
            create(table, TenantId.parse(name), version)
        first = table.tenants_in(State.READY, version="0.1.0", limit=2)
        rest = table.tenants_in(State.READY, version="0.1.0", after=first[-1].position, limit=2)
        assert [str(listed.tenant) for listed in (*first, *rest)] == ["a", "c", "d"]

    def test_a_page_begins_after_the_position_of_a_deleted_tenant(self, table: Table) -> None:
        for name in ("a", "b", "c"):
            create(table, TenantId.parse(name))
        position = table.tenants_in(State.READY, limit=2)[-1].position
        gone = a_run(operation=Operation.DELETE, tenant=TenantId.parse("b"), started_at=LATER)
        take(table, gone)
        table.remove(gone, at=LATER_STILL)
        assert [str(listed.tenant) for listed in table.tenants_in(State.READY, after=position, limit=9)] == ["c"]

    def test_all_states_are_listed_page_by_page(self, table: Table) -> None:
        for name in ("a", "b", "c"):
            create(table, TenantId.parse(name))
            take(table, a_run(tenant=TenantId.parse(f"new-{name}")))
        page = list_tenants(table, limit=2)
        names = [str(listed.tenant) for listed in page.tenants]
        while page.cursor:
            page = list_tenants(table, limit=2, cursor=page.cursor)
            names += [str(listed.tenant) for listed in page.tenants]
        assert names == ["a", "b", "c", "new-a", "new-b", "new-c"]

    def test_versions_in_use_are_counted_by_state_without_deleted_tenants(self, table: Table) -> None:
        for name, version in (("a", "0.1.0"), ("b", "0.1.0"), ("c", "0.2.0")):
            create(table, TenantId.parse(name), version)
        failed = a_run(tenant=TenantId.parse("b"), operation=Operation.UPDATE, started_at=LATER)
        take(table, failed)
        table.fail(failed, QUEUE_TABOO, LATER_STILL)
        take(table, a_run(tenant=TenantId.parse("new")))
        delete(table, TenantId.parse("gone"))
        assert table.versions_in_use().by_version == {
            "0.1.0": {State.READY: 1, State.UPDATE_FAILED: 1},
            "0.2.0": {State.READY: 1},
            "": {State.PROVISIONING: 1},
        }

    def test_no_version_is_in_use_without_tenants(self, table: Table) -> None:
        assert table.versions_in_use().by_version == {}

    def test_operations_are_unfinished_while_they_are_started(self, table: Table) -> None:
        def unfinished() -> list[Audit]:
            return list(table.unfinished_operations())

        take(table, RUN)
        assert unfinished() == list(table.audits(ACME))
        table.fail(RUN, QUEUE_TABOO, LATER)
        assert unfinished() == []
        second = a_run(2, started_at=LATER)
        take(table, second)
        assert [audit.execution for audit in unfinished()] == [second.execution]
        publish(table, second, at=LATER_STILL)
        assert unfinished() == []
        take(table, replace(DELETE, started_at=LATER_STILL))
        assert [audit.operation for audit in unfinished()] == [Operation.DELETE]
        table.remove(DELETE, at=LATER_STILL + SECOND)
        assert unfinished() == []

    def test_unfinished_operations_are_listed_oldest_first_with_their_request(self, table: Table) -> None:
        for minute, name in enumerate(("c", "a", "b")):
            take(table, a_run(tenant=TenantId.parse(name), started_at=NOON + timedelta(minutes=minute)))
        unfinished = list(table.unfinished_operations())
        assert [str(audit.tenant) for audit in unfinished] == ["c", "a", "b"]
        assert {audit.request for audit in unfinished} == {EXPLICIT}
