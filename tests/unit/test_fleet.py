"""One tenant in full, and all tenants at a glance."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.common.errors import InvalidRequest
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.fleet import LISTED_STATES, PAGE_SIZE, Page, list_tenants, tenant_detail
from orchestrator.tenants.listings import ListedTenant
from orchestrator.tenants.records import Audit, Metadata, Operation, RootCause, Status, TenantState
from orchestrator.tenants.state import root_cause_of, state_of
from tests.fakes import (
    ACME,
    NEXT_VERSION,
    NOON,
    QUEUE,
    QUEUE_TABOO,
    VERSION,
    InMemoryTable,
    a_run,
    an_audit,
    some_metadata,
    take,
)

ONE_HOUR = timedelta(hours=1)
PUBLISHED = some_metadata()
UNPUBLISHED = replace(PUBLISHED, version=None)
WITHDRAWN = replace(PUBLISHED, withdrawn_by="a delete's execution")
ANOTHER_CAUSE = RootCause("DeadLetterQueue", "AWS::SQS::Queue", "Queue quota exceeded.")


def create(status: Status, hour: int = 0, *, version: str | None = VERSION, cause: RootCause | None = None) -> Audit:
    return an_audit(status, version=version, at=NOON + hour * ONE_HOUR, root_cause=cause)


def update(status: Status, hour: int = 1, *, version: str = NEXT_VERSION, cause: RootCause | None = None) -> Audit:
    return an_audit(status, Operation.UPDATE, version=version, at=NOON + hour * ONE_HOUR, root_cause=cause)


def delete(status: Status, hour: int = 1, *, revived_by: str | None = None, cause: RootCause | None = None) -> Audit:
    at = NOON + hour * ONE_HOUR
    return an_audit(status, Operation.DELETE, at=at, revived_by=revived_by, root_cause=cause)


STARTED, SUCCESS, FAILURE = Status.STARTED, Status.SUCCESS, Status.FAILURE
CREATED = create(SUCCESS)
REVIVED = delete(SUCCESS, revived_by="the execution of a create")

STATES: dict[str, tuple[Metadata | None, list[Audit], TenantState]] = {
    "nothing": (None, [], TenantState.UNKNOWN),
    "a queue that nobody published": (UNPUBLISHED, [], TenantState.UNKNOWN),
    "create started": (None, [create(STARTED)], TenantState.PROVISIONING),
    "create started, queue recorded": (UNPUBLISHED, [create(STARTED)], TenantState.PROVISIONING),
    "create failed": (None, [create(FAILURE)], TenantState.FAILED),
    "create failed, then started at another version": (
        None,
        [create(FAILURE), create(STARTED, 1, version=NEXT_VERSION)],
        TenantState.PROVISIONING,
    ),
    "create runs, another one of another version has failed": (
        None,
        [create(STARTED), create(FAILURE, 1, version=NEXT_VERSION)],
        TenantState.PROVISIONING,
    ),
    "queue vanished": (None, [CREATED], TenantState.UNKNOWN),
    "queue vanished after an update": (UNPUBLISHED, [CREATED, update(SUCCESS)], TenantState.UNKNOWN),
    "published by hand": (PUBLISHED, [], TenantState.READY),
    "published": (PUBLISHED, [CREATED], TenantState.READY),
    "published, created once more": (PUBLISHED, [create(STARTED)], TenantState.READY),
    "published, created once more in vain": (PUBLISHED, [create(FAILURE)], TenantState.READY),
    "updating": (PUBLISHED, [CREATED, update(STARTED)], TenantState.UPDATING),
    "updated": (PUBLISHED, [CREATED, update(SUCCESS)], TenantState.READY),
    "update failed": (PUBLISHED, [CREATED, update(FAILURE)], TenantState.UPDATE_FAILED),
    "update failed, then one elsewhere succeeded": (
        PUBLISHED,
        [CREATED, update(FAILURE), update(SUCCESS, 2, version="0.3.0")],
        TenantState.READY,
    ),
    "update failed long before the create": (PUBLISHED, [update(FAILURE), create(SUCCESS, 2)], TenantState.READY),
    "deleting": (WITHDRAWN, [CREATED, delete(STARTED)], TenantState.DELETING),
    "deleting, queue forgotten": (None, [CREATED, delete(STARTED)], TenantState.DELETING),
    "deleting, metadata not yet withdrawn": (PUBLISHED, [CREATED, delete(STARTED)], TenantState.DELETING),
    "deleted": (None, [CREATED, delete(SUCCESS)], TenantState.DELETED),
    "deleted, create refused": (UNPUBLISHED, [delete(SUCCESS), create(FAILURE, 2)], TenantState.DELETED),
    "delete failed half-way": (WITHDRAWN, [CREATED, delete(FAILURE)], TenantState.FAILED),
    "delete refused": (PUBLISHED, [CREATED, delete(FAILURE)], TenantState.READY),
    "delete refused after a failed update": (
        PUBLISHED,
        [CREATED, update(FAILURE), delete(FAILURE, 2)],
        TenantState.UPDATE_FAILED,
    ),
    "being brought back": (None, [REVIVED, create(STARTED, 2)], TenantState.PROVISIONING),
    "brought back in vain": (None, [REVIVED, create(FAILURE, 2)], TenantState.FAILED),
    "brought back": (PUBLISHED, [REVIVED, create(SUCCESS, 2)], TenantState.READY),
    "being brought back, before versions": (
        None,
        [delete(SUCCESS), create(STARTED, 2, version=None)],
        TenantState.PROVISIONING,
    ),
    "deleted after a create from before versions": (
        None,
        [create(SUCCESS, version=None), delete(SUCCESS)],
        TenantState.DELETED,
    ),
}


@pytest.mark.parametrize(("metadata", "audits", "state"), STATES.values(), ids=STATES)
def test_a_tenants_state_is(metadata: Metadata | None, audits: list[Audit], state: TenantState) -> None:
    assert state_of(metadata, audits) is state
    assert state_of(metadata, audits[::-1]) is state


def test_the_cases_cover_every_state() -> None:
    assert {state for _, _, state in STATES.values()} == set(TenantState)


# Why


FAILED_STATES = (TenantState.FAILED, TenantState.UPDATE_FAILED)


@pytest.mark.parametrize(("metadata", "audits", "state"), STATES.values(), ids=STATES)
def test_there_is_a_root_cause_in_failed_states_and_in_no_other(
    metadata: Metadata | None, audits: list[Audit], state: TenantState
) -> None:
    failed = [replace(a, root_cause=QUEUE_TABOO) if a.status is FAILURE else a for a in audits]
    assert root_cause_of(metadata, failed) == (QUEUE_TABOO if state in FAILED_STATES else None)


@pytest.mark.parametrize(
    ("metadata", "decisive", "beside_it"),
    [
        pytest.param(None, create(FAILURE, 0), update(FAILURE, 1), id="an update of a failed tenant was refused"),
        pytest.param(
            PUBLISHED, update(FAILURE, 0), delete(FAILURE, 1), id="a delete after a failed update was refused"
        ),
        pytest.param(WITHDRAWN, delete(FAILURE, 1), create(FAILURE, 0), id="a delete failed after a failed create"),
        pytest.param(
            WITHDRAWN, delete(FAILURE, 0), create(FAILURE, 1), id="a create was in vain after a failed delete"
        ),
        pytest.param(None, create(FAILURE, 1), create(FAILURE, 0, version="0.0.9"), id="two creates failed"),
        pytest.param(PUBLISHED, update(FAILURE, 1), update(FAILURE, 0, version="0.3.0"), id="two updates failed"),
    ],
)
def test_the_root_cause_is_that_of_the_operation_that_the_state_comes_from(
    metadata: Metadata | None, decisive: Audit, beside_it: Audit
) -> None:
    audits = [replace(decisive, root_cause=QUEUE_TABOO), replace(beside_it, root_cause=ANOTHER_CAUSE)]
    assert root_cause_of(metadata, audits) == root_cause_of(metadata, audits[::-1]) == QUEUE_TABOO


def test_a_failure_without_a_recorded_cause_has_none() -> None:
    assert root_cause_of(None, [create(FAILURE)]) is None


# One tenant


def test_the_detail_has_lock_audits_and_history_in_the_order_of_time() -> None:
    table = InMemoryTable()
    old, new = a_run(version="0.9.0"), a_run(version="0.10.0", started_at=NOON + 2 * ONE_HOUR)
    take(table, old)
    table.fail(old, QUEUE_TABOO, NOON + ONE_HOUR)
    take(table, new)

    detail = tenant_detail(ACME, table)

    assert detail.state is TenantState.PROVISIONING
    assert detail.lock is not None
    assert detail.lock.run == new
    assert [audit.version for audit in detail.audits] == ["0.9.0", "0.10.0"]
    assert [entry.status for entry in detail.history] == [Status.STARTED, Status.FAILURE, Status.STARTED]
    assert detail.root_cause is None
    assert detail.known


@pytest.mark.parametrize("reads_before", range(5))
def test_if_the_history_shows_the_end_of_an_operation_the_other_rows_are_as_new(reads_before: int) -> None:
    """The delete ends between two of the reads that the detail is made of."""
    table, reads = InMemoryTable(), 0
    table.plant_metadata(some_metadata())
    delete = a_run(operation=Operation.DELETE)
    take(table, delete)

    class Meanwhile:
        def __getattr__(self, name: str) -> object:
            nonlocal reads
            if reads == reads_before:
                table.remove(delete, at=NOON + ONE_HOUR)
            reads += 1
            return getattr(table, name)

    detail = tenant_detail(ACME, Meanwhile())  # type: ignore[arg-type]
    ended = any(entry.status is Status.SUCCESS for entry in [*detail.history, *detail.audits])
    assert not ended or detail.state is TenantState.DELETED


def test_the_detail_of_a_tenant_that_is_served_has_its_queue_labels_and_pin() -> None:
    table = InMemoryTable()
    table.plant_metadata(some_metadata(labels={"tier": "gold"}, pinned_version=VERSION))
    detail = tenant_detail(ACME, table)
    assert (detail.tenant, detail.state, detail.version, detail.queue) == (ACME, TenantState.READY, VERSION, QUEUE)
    assert detail.labels == {"tier": "gold"}
    assert detail.metadata is not None
    assert detail.metadata.pinned_version == VERSION
    assert detail.known


def test_the_detail_of_a_failed_tenant_has_its_root_cause() -> None:
    table = InMemoryTable()
    take(table, a_run())
    table.fail(a_run(), QUEUE_TABOO, NOON)
    assert tenant_detail(ACME, table).root_cause == QUEUE_TABOO


@pytest.mark.parametrize("metadata", [UNPUBLISHED, WITHDRAWN], ids=["unpublished", "withdrawn"])
def test_the_detail_has_no_queue_that_is_not_served(metadata: Metadata) -> None:
    table = InMemoryTable()
    table.plant_metadata(metadata)
    assert tenant_detail(ACME, table).queue is None


@pytest.mark.parametrize(
    ("metadata_at", "audit_at"), [(NOON, NOON + ONE_HOUR), (NOON + ONE_HOUR, NOON)], ids=["operation", "metadata"]
)
def test_the_detail_has_the_time_of_the_latest_change(metadata_at: object, audit_at: object) -> None:
    table = InMemoryTable()
    table.plant_metadata(replace(PUBLISHED, updated_at=metadata_at))  # type: ignore[arg-type]
    table.plant_audit(replace(CREATED, updated_at=audit_at))  # type: ignore[arg-type]
    assert tenant_detail(ACME, table).updated_at == NOON + ONE_HOUR


def test_the_detail_of_an_unknown_tenant_is_empty() -> None:
    detail = tenant_detail(ACME, InMemoryTable())
    assert detail.state is TenantState.UNKNOWN
    assert (detail.metadata, detail.lock, list(detail.audits), list(detail.history)) == (None, None, [], [])
    assert (detail.version, detail.queue, detail.labels, detail.updated_at) == (None, None, {}, None)
    assert not detail.known


def test_a_deleted_tenant_is_known() -> None:
    table = InMemoryTable()
    table.plant_audit(delete(SUCCESS))
    detail = tenant_detail(ACME, table)
    assert detail.known
    assert detail.state is TenantState.DELETED


# All tenants


def a_fleet() -> InMemoryTable:
    """Two or three tenants in every state that is listed, at two versions."""
    table = InMemoryTable()
    audits = {
        TenantState.READY: CREATED,
        TenantState.PROVISIONING: create(STARTED),
        TenantState.UPDATING: update(STARTED),
        TenantState.UPDATE_FAILED: update(FAILURE, cause=QUEUE_TABOO),
        TenantState.FAILED: create(FAILURE, cause=QUEUE_TABOO),
        TenantState.DELETING: delete(STARTED),
        TenantState.DELETED: delete(SUCCESS),
        TenantState.UNKNOWN: None,
    }
    served = (TenantState.READY, TenantState.UPDATING, TenantState.UPDATE_FAILED, TenantState.DELETING)
    for state, audit in audits.items():
        for number, version in enumerate((NEXT_VERSION, VERSION, VERSION)[: 2 + (state in served)]):
            tenant = TenantId.parse(f"{state.lower().replace('_', '-')}-{number}")
            published = some_metadata(tenant=tenant, version=version)
            if state is not TenantState.DELETED:
                table.plant_metadata(published if state in served else replace(published, version=None))
            if audit:
                table.plant_audit(replace(audit, tenant=tenant))
    return table


FLEET = a_fleet()


def names(tenants: Sequence[ListedTenant]) -> list[str]:
    return [str(listed.tenant) for listed in tenants]


def everyone(limit: int, *, state: TenantState | None = None, version: str | None = None) -> list[Page]:
    """All pages."""
    pages = [list_tenants(FLEET, state=state, version=version, limit=limit)]
    while pages[-1].cursor:
        pages.append(list_tenants(FLEET, state=state, version=version, limit=limit, cursor=pages[-1].cursor))
    return pages


def test_an_empty_fleet_is_an_empty_page_without_a_next() -> None:
    assert list_tenants(InMemoryTable()) == Page([], None)


def test_tenants_are_listed_by_state_version_and_id() -> None:
    page = list_tenants(FLEET)
    assert page.cursor is None
    assert names(page.tenants) == [
        "ready-1",
        "ready-2",
        "ready-0",
        "provisioning-0",
        "provisioning-1",
        "updating-1",
        "updating-2",
        "updating-0",
        "update-failed-1",
        "update-failed-2",
        "update-failed-0",
        "failed-0",
        "failed-1",
        "deleting-1",
        "deleting-2",
        "deleting-0",
        "unknown-0",
        "unknown-1",
    ]


def test_failed_tenants_are_listed_with_their_root_cause_and_others_without() -> None:
    tenants = list_tenants(FLEET).tenants
    assert {listed.state in FAILED_STATES for listed in tenants} == {True, False}
    for listed in tenants:
        assert listed.root_cause == (QUEUE_TABOO if listed.state in FAILED_STATES else None)


@pytest.mark.parametrize("state", list(TenantState))
def test_tenants_of_one_state_are_listed_alone_also_deleted_ones(state: TenantState) -> None:
    page = list_tenants(FLEET, state=state)
    assert {listed.state for listed in page.tenants} == {state}
    assert len(page.tenants) >= 2


def test_deleted_tenants_are_listed_only_on_request() -> None:
    assert TenantState.DELETED not in {listed.state for listed in list_tenants(FLEET).tenants}
    assert set(LISTED_STATES) == set(TenantState) - {TenantState.DELETED}


@pytest.mark.parametrize("version", [VERSION, NEXT_VERSION])
def test_tenants_at_one_version_are_listed_whatever_their_state(version: str) -> None:
    page = list_tenants(FLEET, version=version)
    assert {listed.version for listed in page.tenants} == {version}
    assert len({listed.state for listed in page.tenants}) == 4


def test_a_version_without_tenants_has_an_empty_list() -> None:
    assert list_tenants(FLEET, version="0.1") == Page([], None)


@pytest.mark.parametrize("version", [None, VERSION, NEXT_VERSION])
@pytest.mark.parametrize("state", [None, *TenantState])
@pytest.mark.parametrize("limit", [1, 2, 5, 18])
def test_pages_together_are_the_whole_list_once_each(
    limit: int, state: TenantState | None, version: str | None
) -> None:
    pages = everyone(limit, state=state, version=version)
    together = [listed for page in pages for listed in page.tenants]
    assert together == list_tenants(FLEET, state=state, version=version).tenants
    assert all(len(page.tenants) == limit for page in pages[:-1])
    assert len(pages) == max(1, -(-len(together) // limit))


def test_a_page_has_a_default_size() -> None:
    table = InMemoryTable()
    for number in range(PAGE_SIZE + 1):
        table.plant_metadata(some_metadata(tenant=TenantId.parse(f"t{number}")))
    page = list_tenants(table)
    assert len(page.tenants) == PAGE_SIZE
    assert page.cursor is not None
    assert len(list_tenants(table, cursor=page.cursor).tenants) == 1


def test_a_tenant_that_was_listed_last_and_is_gone_since_does_not_break_the_list() -> None:
    table = InMemoryTable()
    for name in ("a", "b", "c"):
        table.plant_metadata(some_metadata(tenant=TenantId.parse(name)))
    page = list_tenants(table, limit=2)
    table.plant_metadata(some_metadata(tenant=TenantId.parse("b"), withdrawn_by="a delete's execution"))
    assert names(list_tenants(table, cursor=page.cursor, state=TenantState.READY).tenants) == ["c"]


def test_the_list_continues_after_a_tenant_with_an_unknown_version() -> None:
    """A tenant from before Berth keeps its version when it is adopted."""
    table = InMemoryTable()
    for name, version in (("a", "0.0.9\u2013beta"), ("b", "1/2#3"), ("c", "9")):
        table.plant_metadata(some_metadata(tenant=TenantId(name), version=version))
    seen, cursor = [], None
    for _ in range(3):
        page = list_tenants(table, limit=1, cursor=cursor)
        seen += names(page.tenants)
        cursor = page.cursor
    assert (seen, cursor) == (["a", "b", "c"], None)


def a_cursor(text: str) -> str:
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "cursor",
    [
        pytest.param("!", id="no base64"),
        pytest.param("a b", id="a blank"),
        pytest.param("é", id="no ASCII"),
        pytest.param("A", id="a length that base64 does not have"),
        pytest.param(a_cursor("\x00\x01"), id="nothing of ours"),
        pytest.param(a_cursor("é//0.1.0#acme"), id="no ASCII within"),
        pytest.param(a_cursor("READY"), id="no position"),
        pytest.param(a_cursor("READY/"), id="an incomplete position"),
        pytest.param(a_cursor("READY//"), id="an empty position"),
        pytest.param(a_cursor("/0.1.0#acme"), id="no state"),
        pytest.param(a_cursor("SLEEPING//0.1.0#acme"), id="no such state"),
        pytest.param(a_cursor("ready//0.1.0#acme"), id="a state in small letters"),
        pytest.param(a_cursor("DELETED//#acme"), id="a state that is not listed"),
        pytest.param(a_cursor("READY/0.1.0/0.1.0#acme"), id="of a list at one version"),
        pytest.param(a_cursor("READY//0.1.0"), id="a version only"),
        pytest.param(a_cursor("READY//0.1.0#"), id="no tenant"),
        pytest.param(a_cursor("READY//0.1.0#a/../b"), id="what is no tenant"),
    ],
)
def test_a_cursor_that_no_such_list_has_returned_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidRequest, match="cursor"):
        list_tenants(FLEET, cursor=cursor)


def test_a_cursor_to_another_version_than_that_of_the_list_is_refused() -> None:
    """DynamoDB would refuse to go on from there, and that would be a fault."""
    with pytest.raises(InvalidRequest, match="cursor"):
        list_tenants(FLEET, version=VERSION, cursor=a_cursor(f"READY/{VERSION}/9.9.9#acme"))


def test_a_cursor_of_a_list_with_another_filter_is_refused() -> None:
    cursor = list_tenants(FLEET, version=VERSION, limit=1).cursor
    for filters in ({}, {"version": NEXT_VERSION}, {"version": VERSION, "state": TenantState.FAILED}):
        with pytest.raises(InvalidRequest):
            list_tenants(FLEET, cursor=cursor, **filters)  # type: ignore[arg-type]


texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=60)


@given(cursor=texts | texts.map(a_cursor) | texts.map(lambda position: a_cursor(f"READY//{position}")))
def test_any_cursor_is_parsed_or_refused(cursor: str) -> None:
    with contextlib.suppress(InvalidRequest):
        assert len(list_tenants(FLEET, cursor=cursor, limit=1).tenants) <= 1


def test_a_cursor_may_be_put_into_a_query_as_it_is() -> None:
    cursors = [page.cursor for page in everyone(1)[:-1]]
    assert all(cursor and cursor.replace("-", "").replace("_", "").isalnum() for cursor in cursors)


def test_reading_stops_once_the_page_is_full() -> None:
    asked: list[tuple[TenantState, int]] = []

    class Counting(InMemoryTable):
        def tenants_in(
            self,
            state: TenantState,
            *,
            version: str | None = None,
            prefix: str = "",
            after: str | None = None,
            limit: int,
        ) -> Sequence[ListedTenant]:
            asked.append((state, limit))
            return FLEET.tenants_in(state, version=version, prefix=prefix, after=after, limit=limit)

    list_tenants(Counting(), limit=3)
    assert asked == [(TenantState.READY, 4), (TenantState.PROVISIONING, 1)]


def by_prefix(prefix: str, *, limit: int = 100, **filters: Any) -> list[str]:
    found: list[str] = []
    cursor = None
    while True:
        page = list_tenants(FLEET, prefix=prefix, cursor=cursor, limit=limit, **filters)
        found += names(page.tenants)
        cursor = page.cursor
        if cursor is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 100])
def test_tenants_are_found_by_the_beginning_of_their_ids(limit: int) -> None:
    every = [name for page in everyone(100) for name in names(page.tenants)]
    prefixes = {name[:length] for name in every for length in (1, 2, len(name))}
    for prefix in prefixes:
        assert by_prefix(prefix, limit=limit) == [name for name in every if name.startswith(prefix)]
    assert by_prefix("nobody-has-this", limit=limit) == []


def test_a_prefix_goes_with_the_other_filters() -> None:
    ready = names(list_tenants(FLEET, state=TenantState.READY).tenants)
    prefix = ready[0][:1]
    wanted = [name for name in ready if name.startswith(prefix)]
    assert by_prefix(prefix, state=TenantState.READY) == wanted
    assert by_prefix(prefix, state=TenantState.READY, pinned=False, limit=1) == wanted
    listed = list_tenants(FLEET, state=TenantState.READY).tenants[0]
    assert by_prefix(prefix, version=listed.version) == [
        name for name in names(list_tenants(FLEET, version=listed.version).tenants) if name.startswith(prefix)
    ]


def test_a_cursor_of_a_list_with_another_prefix_is_refused() -> None:
    first = list_tenants(FLEET, limit=1)
    assert first.cursor is not None
    with pytest.raises(InvalidRequest):
        list_tenants(FLEET, prefix="nobody", cursor=first.cursor)


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_stacks_that_are_kept_ready_are_listed_only_if_the_prefix_asks_for_them(limit: int) -> None:
    table = InMemoryTable()
    for name in ("acme", "berth-warm-1", "berth-warm-2", "berth-warm-3", "bingo", "zebra"):
        who = TenantId(name)
        table.plant_audit(an_audit(SUCCESS, tenant=who))
        table.plant_metadata(some_metadata(tenant=who))

    def listed(prefix: str = "", **filters: Any) -> list[str]:
        found: list[str] = []
        cursor = None
        while True:
            page = list_tenants(table, prefix=prefix, cursor=cursor, limit=limit, **filters)
            found += names(page.tenants)
            if (cursor := page.cursor) is None:
                return found

    assert listed() == listed(tier="standard") == ["acme", "bingo", "zebra"]
    assert listed("b") == ["bingo"]
    assert listed("berth-warm-") == listed("berth-warm-", pinned=False) == [f"berth-warm-{n}" for n in (1, 2, 3)]
    counted = table.versions_in_use()
    assert (counted.by_version, counted.warm) == ({VERSION: {TenantState.READY: 3}}, 3)
    assert table.count_tenants() == 6
