"""Tenants' metadata, audits, history and locks, and the releases, in the table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, error_code, throttling
from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import s
from orchestrator.common.errors import UnreadableRows
from orchestrator.common.tenant_ids import WARM_PREFIX, TenantId
from orchestrator.common.times import timestamp
from orchestrator.tenants.records import Attempt, Audit, Lock, Metadata, Operation, TenantRecords, TenantState

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

    from orchestrator.releases.records import Release
    from orchestrator.tenants.history import HistoryEntry, RecordedChange, UnreadableEntry
    from orchestrator.tenants.listings import ListedTenant, Relisting, TenantInBrief, VersionsInUse
    from orchestrator.tenants.writes import Transition


class DynamoTable:
    """Implements :class:`orchestrator.tenants.ports.TenantRows` and the ports that read tenants and releases.

    Reads of one tenant are strongly consistent: a delete must be seen at once, and a decision based on stale rows
    could repeat an operation that has just ended. Only the fleet is read from the index, which lags a little.
    """

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)
        self._releases: dict[str, Release] = {}

    # Reading one tenant

    def metadata(self, tenant: TenantId) -> Metadata | None:
        item = self._reads.get(keys.metadata_key(tenant))
        return rows.readable(rows.metadata_from, item) if item else None

    def metadata_of(self, tenants: Sequence[TenantId]) -> Sequence[Metadata]:
        found: list[Metadata] = []
        for item in self._reads.many([keys.metadata_key(tenant) for tenant in tenants]):
            # An unreadable row must not hide the others.
            with suppress(UnreadableRows):
                found.append(rows.readable(rows.metadata_from, item))
        return found

    def audits(self, tenant: TenantId) -> Sequence[Audit]:
        items = self._reads.partition(keys.tenant_pk(tenant), keys.AUDIT_PREFIX)
        return [rows.readable(rows.audit_from, item) for item in items]

    def history(
        self, tenant: TenantId, *, before: str | None = None, limit: int | None = None
    ) -> Sequence[HistoryEntry | RecordedChange | UnreadableEntry]:
        # Imported here, because getQueue uses this class, too, reads no history and must start fast.
        from orchestrator.adapters.dynamodb.history_rows import history_from

        # Sort keys begin with the timestamp, so those of earlier entries are less than it, and no others.
        newest_first = islice(self._reads.newest_first(keys.history_pk(tenant), before=before, limit=limit), limit)
        return [history_from(item) for item in reversed(list(newest_first))]

    def lock(self, tenant: TenantId) -> Lock | None:
        item = self._reads.get(keys.lock_key(tenant))
        return rows.readable(rows.lock_from, item) if item else None

    def records(self, tenant: TenantId) -> TenantRecords:
        found = {row["sk"]["S"]: row for row in self._reads.partition(keys.tenant_pk(tenant))}
        metadata, lock = found.get(keys.METADATA), found.get(keys.LOCK)
        return TenantRecords(
            rows.readable(rows.metadata_from, metadata) if metadata else None,
            [rows.readable(rows.audit_from, row) for each, row in found.items() if each.startswith(keys.AUDIT_PREFIX)],
            rows.readable(rows.lock_from, lock) if lock else None,
        )

    def audit(self, attempt: Attempt) -> Audit | None:
        version = None if attempt.operation is Operation.DELETE else attempt.version
        item = self._reads.get(keys.key(keys.tenant_pk(attempt.tenant), keys.audit_sk(attempt.operation, version)))
        return rows.readable(rows.audit_from, item) if item else None

    # Reading the fleet

    def tenants_in(
        self, state: TenantState, *, version: str | None = None, prefix: str = "", after: str | None = None, limit: int
    ) -> Sequence[ListedTenant]:
        # Imported here, because getQueue uses this class, too, lists nothing and must start fast.
        from orchestrator.adapters.dynamodb.listing_rows import listed_from

        query: dict[str, Any] = {
            "IndexName": keys.LISTING_INDEX,
            "KeyConditionExpression": "ListingKey = :key",
            "ExpressionAttributeValues": {":key": s(keys.listed_tenants(state))},
        }
        if version is not None:
            query["KeyConditionExpression"] += " AND begins_with(ListingSort, :at)"
            query["ExpressionAttributeValues"][":at"] = s(f"{keys.version_prefix(version)}{prefix}")
        if after is not None:
            query["ExclusiveStartKey"] = keys.listing_position(state, after)
        found: list[ListedTenant] = []
        while len(found) < limit:
            with throttling():
                page = self._client.query(TableName=self._table, Limit=limit - len(found), **query)
            found += filter(None, (listed_from(item, state) for item in page["Items"]))
            if "LastEvaluatedKey" not in page:
                break
            query["ExclusiveStartKey"] = page["LastEvaluatedKey"]
        return found

    def versions_in(self, state: TenantState) -> Iterable[str]:
        """One read per version, however many tenants there are: each begins after the last position of the version."""
        query: dict[str, Any] = {
            "TableName": self._table,
            "IndexName": keys.LISTING_INDEX,
            "KeyConditionExpression": "ListingKey = :key",
            "ExpressionAttributeValues": {":key": s(keys.listed_tenants(state))},
            "ProjectionExpression": "ListingSort",
            "Limit": 1,
        }
        while True:
            with throttling():
                found = self._client.query(**query)["Items"]
            if not found:
                return
            version = keys.version_of_position(found[0]["ListingSort"]["S"])
            yield version
            query["KeyConditionExpression"] = "ListingKey = :key AND ListingSort > :after"
            query["ExpressionAttributeValues"][":after"] = s(keys.end_of_version(version))

    def tenants_in_brief(self, state: TenantState) -> Iterable[TenantInBrief]:
        from orchestrator.adapters.dynamodb.listing_rows import brief_from

        # A rollout of a large fleet is planned while the operator waits, and most of the time is spent on parsing.
        wanted = "ListingSort, PinnedVersion, Labels, Tier"
        for item in self._reads.listed(keys.listed_tenants(state), ProjectionExpression=wanted):
            if (tenant := brief_from(item, state)) is not None:
                yield tenant

    def relistings(self, *, since: datetime) -> Iterable[Relisting]:
        from orchestrator.adapters.dynamodb.listing_rows import relisting_from

        # Sort keys begin with the timestamp, so those of the same millisecond and of later ones are greater than it.
        found = self._reads.partition_after(keys.RELISTINGS, timestamp(since))
        return filter(None, map(relisting_from, found))

    def versions_in_use(self) -> VersionsInUse:
        from orchestrator.tenants.fleet import LISTED_STATES
        from orchestrator.tenants.listings import VersionsInUse

        warm = 0
        counted: dict[str, dict[TenantState, int]] = {}
        for state in LISTED_STATES:
            for item in self._reads.listed(keys.listed_tenants(state), ProjectionExpression="ListingSort"):
                version, _, tenant = item["ListingSort"]["S"].rpartition("#")
                if tenant.startswith(WARM_PREFIX):
                    warm += 1
                    continue
                states = counted.setdefault(version, {})
                states[state] = states.get(state, 0) + 1
        return VersionsInUse(counted, warm)

    def count_tenants(self) -> int:
        from orchestrator.tenants.fleet import LISTED_STATES

        return sum(self._reads.count_listed(keys.listed_tenants(state)) for state in LISTED_STATES)

    def unfinished_operations(self) -> Iterable[Audit]:
        for item in self._reads.listed(keys.UNFINISHED_OPERATIONS):
            # An unreadable row must not prevent the other operations from being settled.
            with suppress(UnreadableRows):
                yield rows.readable(rows.audit_from, item)

    # Writing

    def apply(self, transition: Transition) -> bool:
        # Imported here, because getQueue uses this class, too, writes nothing and must start fast.
        from orchestrator.adapters.dynamodb.applying import transact_item

        writes: list[Any] = [transact_item(write, self._table) for write in transition]
        try:
            with throttling():
                match writes:
                    case [{"Update": update}]:  # Without a transaction, a write costs half.
                        self._client.update_item(**update)
                    case _:
                        self._client.transact_write_items(TransactItems=writes)
        except ClientError as error:
            codes = {error_code(error), *cancellation_codes(error)}
            if codes.isdisjoint({"ConditionalCheckFailedException", "ConditionalCheckFailed"}):
                raise
            return False
        return True

    # Releases

    def release(self, version: str) -> Release | None:
        """A release never changes, so its row is read once per process."""
        found = self._releases.get(version)
        if found is None and (item := self._reads.get(keys.release_key(version))):
            found = self._releases[version] = rows.release_from(item)
        return found

    def releases(self) -> Sequence[Release]:
        return [rows.release_from(item) for item in self._reads.partition(keys.RELEASES)]

    def record_release(self, release: Release) -> Release:
        try:
            with throttling():
                self._client.put_item(
                    TableName=self._table,
                    Item=keys.release_key(release.version) | rows.release_fields(release),
                    ConditionExpression="attribute_not_exists(pk)",
                )
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            return self.release(release.version) or release
        return release
