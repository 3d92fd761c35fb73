"""The details of one tenant, and the list of all tenants from the index."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from orchestrator.common.errors import InvalidRequest, InvalidTenantId
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.records import Audit, Lock, Metadata, Queue, RootCause, TenantState
from orchestrator.tenants.state import derive_state

if TYPE_CHECKING:
    from orchestrator.tenants.listings import ListedTenant
    from orchestrator.tenants.ports import FleetReader, TenantReader

LISTED_STATES = tuple(state for state in TenantState if state is not TenantState.DELETED)
"""The order in which tenants are listed. Deleted tenants are listed only on request."""

PAGE_SIZE = 100
MAX_EXAMINED = 1_000
"""The maximum number of tenants that one page of a list by labels, pin or tier looks at. The index has no such
filters."""
HISTORY_PAGE_SIZE = 100
_BATCH = 500


@dataclass(frozen=True, slots=True)
class TenantDetail:
    tenant: TenantId
    state: TenantState
    metadata: Metadata | None
    root_cause: RootCause | None
    lock: Lock | None
    audits: Sequence[Audit]
    history: Sequence[HistoryEntry | RecordedChange | UnreadableEntry]
    earlier_than: datetime | None = None
    """The history has earlier entries than this, which are not shown; ``None`` if it has not."""

    @property
    def known(self) -> bool:
        return bool(self.audits) or self.metadata is not None

    @property
    def version(self) -> str | None:
        return self.metadata.version if self.metadata else None

    @property
    def queue(self) -> Queue | None:
        """The queue that getQueue returns."""
        return self.metadata.queue if self.metadata and self.metadata.published else None

    @property
    def labels(self) -> Mapping[str, str]:
        return self.metadata.labels if self.metadata else {}

    @property
    def updated_at(self) -> datetime | None:
        moments = [audit.updated_at for audit in self.audits]
        if self.metadata and self.metadata.updated_at:
            moments.append(self.metadata.updated_at)
        return max(moments, default=None)


def tenant_detail(tenant: TenantId, reader: TenantReader, *, before: str | None = None) -> TenantDetail:
    """The tenant with the newest page of its history, or with the page before that timestamp."""
    # The rows are read one after the other, the history first. If the history shows that an operation has ended, the
    # other rows are at least as new.
    # One entry more than a page shows whether there are others.
    history = reader.history(tenant, before=before, limit=HISTORY_PAGE_SIZE + 1)
    earlier_than = None
    if len(history) > HISTORY_PAGE_SIZE:
        # Entries of the same millisecond stay together, because a page begins at a time.
        history = [entry for entry in history if entry.at is None or entry.at != history[0].at]
        earlier_than = next((entry.at for entry in history if entry.at), None)
    audits = sorted(reader.audits(tenant), key=lambda audit: audit.updated_at)
    metadata = reader.metadata(tenant)
    derived = derive_state(metadata, audits)
    return TenantDetail(
        tenant=tenant,
        state=derived.state,
        metadata=metadata,
        root_cause=derived.root_cause,
        lock=reader.lock(tenant),
        audits=audits,
        history=history,
        earlier_than=earlier_than,
    )


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The filters that the index does not have."""

    labels: Mapping[str, str]
    pinned: bool | None
    tier: str | None
    warm: bool
    """Whether stacks that are kept ready are listed, too."""

    def matches(self, listed: ListedTenant) -> bool:
        has_labels = all(listed.labels.get(name) == value for name, value in self.labels.items())
        has_pin = self.pinned in (None, listed.pinned_version is not None)
        return has_labels and has_pin and self.tier in (None, listed.tier) and (self.warm or not listed.tenant.is_warm)


@dataclass(frozen=True, slots=True)
class Page:
    tenants: Sequence[ListedTenant]
    cursor: str | None
    """Where the next page begins; ``None`` if this is the last page."""


def list_tenants(
    reader: FleetReader,
    *,
    state: TenantState | None = None,
    version: str | None = None,
    labels: Mapping[str, str] | None = None,
    pinned: bool | None = None,
    prefix: str = "",
    tier: str | None = None,
    cursor: str | None = None,
    limit: int = PAGE_SIZE,
) -> Page:
    """One page of tenants, ordered by state, version and id. ``prefix`` is the beginning of their ids.

    Stacks that are kept ready are no tenants, and are listed only if the prefix asks for them.
    With ``labels``, ``pinned`` or ``tier``, a page may have fewer tenants than the limit, even none, and yet a cursor.
    """
    states = (state,) if state else LISTED_STATES
    first, after = _position(cursor, states, version, prefix) if cursor else (states[0], None)
    ranges = _ranges(reader, states[states.index(first) :], version, prefix, after)
    wanted = _Wanted(labels or {}, pinned, tier, warm=prefix.startswith(WARM_PREFIX))
    if labels or pinned is not None or tier is not None:
        return _filtered(reader, ranges, version, prefix, wanted, limit=limit)
    found: list[ListedTenant] = []
    for each in ranges:
        position = each.after
        # One tenant more than requested shows whether there is a next page.
        while missing := limit + 1 - len(found):
            batch = reader.tenants_in(each.state, version=each.version, prefix=prefix, after=position, limit=missing)
            found += filter(wanted.matches, batch)
            if len(batch) < missing:
                break
            position = batch[-1].position
        if not missing:
            return Page(found[:limit], _cursor(found[limit - 1], version))
    return Page(found, None)


@dataclass(frozen=True, slots=True)
class _Range:
    """Tenants that follow each other in the index."""

    state: TenantState
    version: str | None
    after: str | None


def _ranges(
    reader: FleetReader, states: Sequence[TenantState], version: str | None, prefix: str, after: str | None
) -> Iterator[_Range]:
    """The parts of the index to read, in order. Within a state, ids are sorted by version first.

    ``after`` is a position in the first of the states.
    """
    for state in states:
        if not prefix or version is not None:
            yield _Range(state, version, after)
        else:
            reached = after.rpartition("#")[0] if after else None
            for each in reader.versions_in(state):
                if reached is None or each >= reached:
                    yield _Range(state, each, after if each == reached else None)
        after = None


def _filtered(
    reader: FleetReader,
    ranges: Iterable[_Range],
    version: str | None,
    prefix: str,
    wanted: _Wanted,
    *,
    limit: int,
) -> Page:
    found: list[ListedTenant] = []
    examined = 0
    for each in ranges:
        after = each.after
        while True:
            # If all match, as in the tier of most tenants, nothing is read that is not shown.
            size = min(_BATCH if examined else limit, MAX_EXAMINED - examined)
            batch = reader.tenants_in(each.state, version=each.version, prefix=prefix, after=after, limit=size)
            for listed in batch:
                examined += 1
                if wanted.matches(listed):
                    found.append(listed)
                if len(found) == limit or examined == MAX_EXAMINED:
                    return Page(found, _cursor(listed, version))
            if len(batch) < size:
                break
            after = batch[-1].position
    return Page(found, None)


def _cursor(last: ListedTenant, version: str | None) -> str:
    text = f"{last.state}/{version or ''}/{last.position}"
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _position(cursor: str, states: Sequence[TenantState], version: str | None, prefix: str) -> tuple[TenantState, str]:
    try:
        text = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode()
        state, of_version, position = text.split("/", 2)
        at_version, _, tenant = position.rpartition("#")
        TenantId.parse(tenant)
        # DynamoDB continues a query only from a key that the query could have returned: version and prefix must match.
        fits = of_version == (version or "") and version in (None, at_version) and tenant.startswith(prefix)
        if TenantState(state) in states and fits:
            return TenantState(state), position
    except (ValueError, binascii.Error, InvalidTenantId):
        pass
    raise InvalidRequest("The cursor was not returned by a list with the same filters. Start again without a cursor.")
