"""The history of a tenant is read in pages, in DynamoDB and in memory."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.fleet import HISTORY_PAGE_SIZE, tenant_detail
from orchestrator.tenants.history import ChangeKind, HistoryEntry, RecordedChange
from orchestrator.tenants.records import Request
from orchestrator.tenants.writes import Append
from tests.adapters.tables import Table
from tests.fakes import ACME, NOON
from tests.present import present

# The contract tests of the table run the single calls on the emulator, too.
pytestmark = pytest.mark.parametrize("kind", ["memory", "moto"], indirect=True)

STEP = timedelta(milliseconds=1)


def append(table: Table, at: datetime, note: str = "") -> None:
    change = RecordedChange(ACME, at, ChangeKind.DESCRIBE, Request(by="ada", reason=note), {}, {})
    assert table.apply((Append(change),))  # type: ignore[attr-defined]  # both tables apply transitions


def times(entries: object) -> list[datetime]:
    assert isinstance(entries, list)
    return [each.at for each in entries if isinstance(each, HistoryEntry | RecordedChange)]


def test_the_newest_entries_come_last_and_earlier_ones_are_on_other_pages(table: Table) -> None:
    all_times = [NOON + number * STEP for number in range(2 * HISTORY_PAGE_SIZE + 50)]
    for at in all_times:
        append(table, at)
    first = tenant_detail(ACME, table)
    assert times(list(first.history)) == all_times[-HISTORY_PAGE_SIZE:]
    assert first.earlier_than == all_times[-HISTORY_PAGE_SIZE]
    second = tenant_detail(ACME, table, before=timestamp(present(first.earlier_than)))
    third = tenant_detail(ACME, table, before=timestamp(present(second.earlier_than)))
    assert third.earlier_than is None
    assert [*times(list(third.history)), *times(list(second.history)), *times(list(first.history))] == all_times


def test_entries_of_one_millisecond_are_on_one_page(table: Table) -> None:
    for note in ("a", "b", "c"):
        append(table, NOON, note)
    for number in range(1, HISTORY_PAGE_SIZE):
        append(table, NOON + number * STEP)
    first = tenant_detail(ACME, table)
    assert times(list(first.history)) == [NOON + number * STEP for number in range(1, HISTORY_PAGE_SIZE)]
    second = tenant_detail(ACME, table, before=timestamp(present(first.earlier_than)))
    assert (times(list(second.history)), second.earlier_than) == ([NOON] * 3, None)


def test_a_short_history_has_one_page(table: Table) -> None:
    append(table, NOON)
    assert tenant_detail(ACME, table).earlier_than is None
    assert list(tenant_detail(TenantId.parse("nobody"), table).history) == []
