"""The table, in memory. It applies transitions, and ``tests/adapters`` holds it and DynamoDB's to one contract."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, assert_never, cast

from orchestrator.adapters.migration import Seen
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import timestamp
from orchestrator.common.writes import (
    Check,
    Delete,
    Put,
    Update,
)
from orchestrator.releases.records import Release
from orchestrator.tenants import operation_transitions
from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
from orchestrator.tenants.ledger import Ledger
from orchestrator.tenants.listings import ListedTenant, Relisting, TenantInBrief, VersionsInUse
from orchestrator.tenants.records import (
    Attempt,
    Audit,
    Lock,
    Metadata,
    Operation,
    Run,
    Status,
    TenantRecords,
    TenantState,
)
from orchestrator.tenants.state import root_cause_of, state_of
from orchestrator.tenants.writes import (
    Announce,
    Append,
    AuditKey,
    Key,
    LockKey,
    MetadataKey,
    Transition,
    Unfinished,
    Write,
)
from tests.fakes.conditions import Fields, holds, stored

Entry = HistoryEntry | RecordedChange | UnreadableEntry


@dataclass(frozen=True)
class Row:
    fields: Fields
    record: Metadata | Audit | Lock


class InMemoryTable(Ledger):
    """The rows, and the ledger that writes them: what DynamoDB's table and the ledger are together."""

    def __init__(self) -> None:
        super().__init__(self)
        self.tenants: dict[TenantId, dict[Key, Row]] = {}
        self.histories: dict[TenantId, dict[tuple[str, ...], Entry]] = {}
        self._releases: dict[str, Release] = {}
        self._relistings: dict[tuple[str, str], Relisting] = {}
        """By time and tenant."""

    # Reading

    def metadata(self, tenant: TenantId) -> Metadata | None:
        return cast("Metadata | None", self._record(MetadataKey(tenant)))

    def metadata_of(self, tenants: Sequence[TenantId]) -> Sequence[Metadata]:
        found = (cast("Metadata | None", self._record(MetadataKey(tenant))) for tenant in tenants)
        return [metadata for metadata in found if metadata is not None]

    def lock(self, tenant: TenantId) -> Lock | None:
        return cast("Lock | None", self._record(LockKey(tenant)))

    def audit(self, attempt: Attempt) -> Audit | None:
        return cast("Audit | None", self._record(AuditKey.of(attempt)))

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        return [cast(Audit, row.record) for _, row in self._audit_rows(tenant)]

    def records(self, tenant: TenantId) -> TenantRecords:
        # A test may count or delay the reads of single rows; those of an operation are one read.
        return TenantRecords(
            cast("Metadata | None", self._record(MetadataKey(tenant))),
            [cast(Audit, row.record) for _, row in self._audit_rows(tenant)],
            cast("Lock | None", self._record(LockKey(tenant))),
        )

    def _audit_rows(self, tenant: TenantId) -> list[tuple[AuditKey, Row]]:
        found = [(key, row) for key, row in self._of(tenant).items() if isinstance(key, AuditKey)]
        return sorted(found, key=lambda each: f"{each[0].operation}#{each[0].version or ''}")

    def history(self, tenant: TenantId, *, before: str | None = None, limit: int | None = None) -> Sequence[Entry]:
        history = self.histories.get(tenant, {})
        found = [history[key] for key in sorted(history)]
        return [each for each in found if before is None or timestamp(each.at) < before][-limit if limit else 0 :]

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        return [
            each
            for each in sorted(self._listed(state), key=lambda each: each.position)
            if each.position > (after or "") and (version is None or each.position.startswith(f"{version}#{prefix}"))
        ][:limit]

    def versions_in(self, state: TenantState) -> Iterable[str]:
        return sorted({each.position.rpartition("#")[0] for each in self._listed(state)})

    def tenants_in_brief(self, state: TenantState) -> Iterable[TenantInBrief]:
        for each in self.tenants_in(state, limit=len(self.tenants)):
            yield TenantInBrief(
                each.tenant, each.state, each.version, each.pinned_version, each.labels, each.tier or STANDARD
            )

    def relistings(self, *, since: datetime) -> Iterable[Relisting]:
        return [self._relistings[key] for key in sorted(self._relistings) if key[0] >= timestamp(since)]

    def versions_in_use(self) -> VersionsInUse:
        warm = 0
        counted: dict[str, dict[TenantState, int]] = {}
        for state in TenantState:
            for listed in self._listed(state) if state is not TenantState.DELETED else ():
                if listed.tenant.is_warm:
                    warm += 1
                    continue
                states = counted.setdefault(listed.position.rpartition("#")[0], {})
                states[state] = states.get(state, 0) + 1
        return VersionsInUse(counted, warm)

    def count_tenants(self) -> int:
        counted = self.versions_in_use()
        return counted.warm + sum(sum(states.values()) for states in counted.by_version.values())

    def unfinished_operations(self) -> Iterable[Audit]:
        rows = [row for rows in self.tenants.values() for row in rows.values()]
        started = [cast(Audit, row.record) for row in rows if isinstance(row.fields.get("listed"), Unfinished)]
        return sorted(started, key=lambda audit: f"{timestamp(audit.updated_at)}#{audit.tenant}")

    def as_of_now(self) -> InMemoryTable:
        """A copy of the rows as they are now, for an index that lags."""
        then = InMemoryTable()
        then._releases = dict(self._releases)
        then._relistings = self._relistings  # They are read from the table, and do not lag.
        then.tenants = {tenant: dict(rows) for tenant, rows in self.tenants.items()}
        return then

    # Writing

    def apply(self, transition: Transition) -> bool:
        keys = [
            _relisting_key(write.relisting) if isinstance(write, Announce) else write.key
            for write in transition
            if not isinstance(write, Append)
        ]
        assert len(keys) == len(set(keys)), "DynamoDB takes no two writes to one row in a transaction"
        if not all(map(self._may, transition)):
            return False
        for write in transition:
            self._make(write)
        return True

    def _may(self, write: Write) -> bool:
        if isinstance(write, Append):
            return _history_key(write.entry) not in self.histories.get(write.entry.tenant, {})
        if isinstance(write, Announce):
            return True
        return write.condition is None or holds(write.condition, self.fields(write.key))

    def _make(self, write: Write) -> None:
        match write:
            case Append(entry):
                self.histories.setdefault(entry.tenant, {})[_history_key(entry)] = stored(entry)
            case Announce(relisting):
                self._relistings[_relisting_key(relisting)] = relisting
            case Put(key, given):
                self.store(key, given)
            case Update(key):
                now = self.fields(key) or {}
                changed = {**write.defaults, **now, **write.sets}
                self.store(key, {name: value for name, value in changed.items() if name not in write.clears})
            case Delete(key):
                self.drop(key)
            case Check():
                pass
            case _:
                assert_never(write)

    # Releases

    def release(self, version: str) -> Release | None:
        return self._releases.get(version)

    def releases(self) -> Sequence[Release]:
        return [self._releases[version] for version in sorted(self._releases)]

    def record_release(self, release: Release) -> Release:
        return self._releases.setdefault(release.version, release)

    # The migration of an earlier system's rows

    def seen(self, tenant: TenantId) -> Seen:
        metadata, audits = self.fields(MetadataKey(tenant)), dict(self._audit_rows(tenant))
        if metadata is not None:
            listed = "listed_state" in metadata or "asked_for" in metadata
        else:
            listed = not audits or any(row.fields.get("listed") is TenantState.DELETED for row in audits.values())
        return Seen(
            tenant,
            cast("Metadata | None", self._record(MetadataKey(tenant))),
            {key: cast(Audit, row.record) for key, row in audits.items()},
            frozenset(key for key, row in audits.items() if "attempt" not in row.fields),
            self.lock(tenant),
            listed,
            dict(metadata) if metadata is not None else None,
        )

    def every_tenant(self) -> list[TenantId]:
        return sorted((tenant for tenant, rows in self.tenants.items() if rows), key=str)

    def adopt(self, writes: Transition) -> bool:
        return self.apply(writes)

    # Rows of tests

    def plant_metadata(self, metadata: Metadata, *, listed: bool = True) -> None:
        given = _fields_of(metadata)
        if not metadata.labels and not metadata.labelled:
            given.pop("labels")
        self.store(MetadataKey(metadata.tenant), given)
        if listed:
            self._show(metadata.tenant)

    def plant_audit(self, audit: Audit, *, numbered: bool = True, listed: bool = True) -> None:
        given = _fields_of(audit)
        if not numbered:
            del given["attempt"]
        elif audit.status is Status.STARTED:
            given["listed"] = Unfinished(audit.updated_at)
        elif audit.operation is Operation.DELETE and audit.status is Status.SUCCESS and not audit.revived_by:
            given["listed"] = TenantState.DELETED
        self.store(AuditKey.of(audit), given)
        if numbered and listed:
            self._show(audit.tenant)

    def plant_lock(self, tenant: TenantId, run: Run | None, **more: object) -> None:
        """Give the lock to that run, or to nobody, whoever holds it."""
        self.drop(LockKey(tenant))
        if run:
            taken = operation_transitions.begun(run, self.records(tenant), run.started_at)[0]
            assert isinstance(taken, Put)
            self.store(taken.key, {**taken.fields, **more})

    def change_metadata(self, tenant: TenantId, **changes: object) -> None:
        """Set these fields of the metadata that is there. Those that are ``None`` are cleared."""
        now = self.fields(MetadataKey(tenant))
        if now is not None:
            changed = {**now, **changes}
            self.store(MetadataKey(tenant), {name: value for name, value in changed.items() if value is not None})

    def drop(self, key: Key) -> None:
        self._of(key.tenant).pop(key, None)

    def _show(self, tenant: TenantId) -> None:
        """List planted rows in the index as if they had been written."""
        records = self.records(tenant)
        state = state_of(records.metadata, records.audits)
        if state is TenantState.DELETED:
            self.change_metadata(tenant, listed_state=None, listed_version=None)
        else:
            self._list(tenant, state, root_cause_of(records.metadata, records.audits))

    def _list(self, tenant: TenantId, state: TenantState, root_cause: object) -> None:
        key = MetadataKey(tenant)
        now = {name: value for name, value in (self.fields(key) or {}).items() if name != "root_cause"}
        now |= {"listed_state": state, "listed_version": now.get("version")}
        self.store(key, now | ({"root_cause": root_cause} if root_cause else {}))

    # How it is kept

    def store(self, key: Key, given: Mapping[str, Any]) -> None:
        """Make the row hold exactly these fields."""
        kept = {name: stored(value) for name, value in given.items()}
        self._of(key.tenant)[key] = Row(kept, _record(key, kept))

    def fields(self, key: Key) -> Fields | None:
        row = self._of(key.tenant).get(key)
        return row.fields if row else None

    def _of(self, tenant: TenantId) -> dict[Key, Row]:
        return self.tenants.setdefault(tenant, {})

    def _record(self, key: Key) -> object:
        row = self._of(key.tenant).get(key)
        return row.record if row else None

    def _listed(self, state: TenantState) -> Iterator[ListedTenant]:
        """The tenants in that state, from their metadata or, if they are deleted, from the audit of the delete."""
        for tenant, rows in self.tenants.items():
            for row in rows.values():
                if row.fields.get("listed_state") is state:
                    yield _listed_by(cast(Metadata, row.record), row.fields)
                elif row.fields.get("listed") is state:
                    at = cast(Audit, row.record).updated_at
                    yield ListedTenant(tenant, state, None, None, {}, None, at, None, f"#{tenant}")


def _listed_by(metadata: Metadata, given: Fields) -> ListedTenant:
    return ListedTenant(
        tenant=metadata.tenant,
        state=given["listed_state"],
        version=metadata.version,
        pinned_version=metadata.pinned_version,
        labels=metadata.labels,
        queue=metadata.queue if metadata.published else None,
        updated_at=metadata.updated_at,
        root_cause=given.get("root_cause"),
        position=f"{given.get('listed_version') or ''}#{metadata.tenant}",
        stack_id=metadata.stack_id,
        tier=metadata.tier,
    )


def _record(key: Key, given: Fields) -> Metadata | Audit | Lock:
    match key:
        case MetadataKey(tenant):
            names = {each.name for each in fields(Metadata)} & set(given)
            empty = Metadata(tenant, None, None, None, None, None, labelled="labels" in given)
            return replace(empty, **{name: given[name] for name in names})
        case AuditKey(tenant, operation, version):
            said = {name: value for name, value in given.items() if name not in ("listed", "version")}
            return Audit(tenant, operation, version or given.get("version"), **{"attempt": 1, **said})
        case LockKey(tenant):
            attempt = Attempt(tenant, given["operation"], given["version"], given["attempt"])
            run = Run(attempt, given["execution"], given["started_at"], given["request"])
            more = ("task_token", "change_set", "deployed", "stack_changed_at", "started_stack", "started_as")
            return Lock(run, *(given.get(name) for name in more))
        case _:
            assert_never(key)


def _fields_of(record: Metadata | Audit) -> Fields:
    key = ("tenant", "operation", "labelled")
    said = {each.name: getattr(record, each.name) for each in fields(record) if each.name not in key}
    return {name: value for name, value in said.items() if value is not None}


def _relisting_key(relisting: Relisting) -> tuple[str, str]:
    return timestamp(relisting.at), relisting.tenant.value


def _history_key(entry: HistoryEntry | RecordedChange) -> tuple[str, ...]:
    """In the order of their times; those of one moment in any order. The same is not appended twice."""
    said = repr(stored(entry))
    if isinstance(entry, RecordedChange):
        return timestamp(entry.at), entry.kind, said
    attempt = Attempt(entry.tenant, entry.operation, entry.version, entry.attempt)
    return timestamp(entry.at), f"{attempt.name}#{entry.status}", said
