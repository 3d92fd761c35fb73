"""The single writes that the table's transactions are made of, as DynamoDB takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from orchestrator.adapters.dynamodb import keys, rows
from orchestrator.adapters.dynamodb.rows import Item, n, s, time
from orchestrator.common.tenant_ids import TenantId
from orchestrator.tenants.records import (
    STATE_DURING,
    UNKNOWN_CREATOR,
    Attempt,
    Metadata,
    Operation,
    RecordedChange,
    RootCause,
    Run,
    Status,
    TenantState,
)
from orchestrator.tenants.stack_resources import Requester

if TYPE_CHECKING:
    from orchestrator.tenants.ports import Pin, Publication, Seen

NOT_OVERTAKEN = (
    "attribute_not_exists(pk) OR attribute_not_exists(Attempt) OR Attempt < :attempt "
    "OR (Execution = :me AND #status = :started)"
)
"""For writes of an audit row by a run that may not hold the lock; the holder's are fenced by the lock itself."""

NOT_GONE = "attribute_not_exists(GoneStackId) OR GoneStackId <> :stack"
"""For writes that say which stack a tenant has: a stack that has taken its queue back is not served again."""

NOT_IN_THE_WAY = f"({NOT_OVERTAKEN}) AND NOT (attribute_exists(Attempt) AND #status = :started AND Execution <> :me)"
"""The same of a run that never got to begin: an earlier attempt that is at it goes on, and says so."""


@dataclass(frozen=True, slots=True)
class Writes:
    table: str

    # The lock

    def take_lock(self, run: Run, condition: str, values: Item | None = None) -> Item:
        return self.put(keys.lock_key(run.tenant) | rows.lock_fields(run), condition=condition, values=values)

    def check_lock(self, run: Run) -> Item:
        return {"ConditionCheck": {**self._lock(run)}}

    def check_no_lock(self, tenant: TenantId) -> Item:
        return self.check(keys.lock_key(tenant), "attribute_not_exists(pk)")

    def free_lock(self, run: Run) -> Item:
        return {"Delete": {**self._lock(run)}}

    def _lock(self, run: Run) -> Item:
        return {
            "TableName": self.table,
            "Key": keys.lock_key(run.tenant),
            "ConditionExpression": "Execution = :me",
            "ExpressionAttributeValues": {":me": s(run.execution)},
        }

    # Audit and history

    def audit(
        self, run: Run, status: Status, at: datetime, cause: RootCause | None = None, *, condition: str | None = None
    ) -> Item:
        item: Item = keys.audit_key(run.attempt) | {
            "Status": s(status),
            "Execution": s(run.execution),
            "UpdatedAt": time(at),
            "Version": s(run.attempt.version),
            "Attempt": n(run.attempt.number),
            "AskedAt": time(run.asked_at),
            **rows.request_fields(run.request),
        }
        if cause:
            item["RootCause"] = rows.root_cause_value(cause)
        if status is Status.STARTED:
            item |= listing(keys.unfinished_operation(run.tenant, at))
        if status is Status.SUCCESS and run.attempt.operation is Operation.DELETE:
            item |= listing(keys.listed_tenant(run.tenant, TenantState.DELETED, None))
        if condition is None:
            return self.put(item)
        return self.put(
            item,
            condition=condition,
            names={"#status": "Status"},
            values={":attempt": n(run.attempt.number), ":me": s(run.execution), ":started": s(Status.STARTED)},
        )

    def revive(self, run: Run) -> Item:
        return self.update(
            keys.delete_audit_key(run.tenant),
            "SET RevivedBy = :me REMOVE ListingKey, ListingSort",
            values={":me": s(run.execution)},
            condition="attribute_exists(pk)",
        )

    def history(self, run: Run, status: Status, at: datetime, cause: RootCause | None = None) -> Item:
        fields = rows.history_fields(run, status, at, cause)
        return self.append(keys.history_key(run.tenant, at, f"{run.attempt.name}#{status}", fields) | fields)

    def change(self, change: RecordedChange) -> Item:
        fields = rows.change_fields(change)
        return self.append(keys.history_key(change.tenant, change.at, change.kind, fields) | fields)

    def append(self, row: Item) -> Item:
        """A row of history: never over one that is there."""
        return self.put(row, condition="attribute_not_exists(pk)")

    # Metadata

    def metadata_of_begun(
        self, run: Run, before: Metadata | None, at: datetime, *, owner: Requester | None, restore: bool
    ) -> Item:
        """The state, what the request says about the tenant; and a delete withdraws the queue.

        ``owner`` is whose tenant it is from now on, if that changes. ``restore`` gives the queue back that a delete
        before has withdrawn.
        """
        operation, request = run.attempt.operation, run.request
        # A create of a tenant that is served already changes nothing for it.
        given_back = replace(before, withdrawn_by=None) if before and restore else before
        served = operation is Operation.CREATE and given_back is not None and given_back.published
        working_on_it = TenantState.READY if served else STATE_DURING[operation]
        state, values = self._state(run.tenant, working_on_it, before.version if before else None)
        # Of a tenant that has nothing yet, the list at least says since when.
        sets = [state, "UpdatedAt = if_not_exists(UpdatedAt, :at)"]
        # Rows from before 0.1.0 have the time under another name.
        values[":at"] = time((before.updated_at if before else None) or at)
        if operation is Operation.DELETE:
            sets.append("WithdrawnBy = :me")
            values[":me"] = s(run.execution)
        if owner is not None:
            sets.append("CreatedBy = :owner")
            values[":owner"] = rows.requester_value(owner)
        # A resource of another team has written them down, too, if the tenant was nobody else's then.
        says = request.resource is None
        if says and request.labels is not None:
            # Whoever asked for the create has written them down; somebody may have said something else since.
            sets.append("Labels = if_not_exists(Labels, :labels)")
            values[":labels"] = rows.labels_value(request.labels)
        if says and request.pin is not None:
            sets.append("PinnedVersion = if_not_exists(PinnedVersion, :pin)")
            values[":pin"] = s(request.pin)
        gone = ["RootCause"]
        if restore:
            gone.append("WithdrawnBy")
        condition = None
        if operation is Operation.CREATE:
            # Unless a create is asked for at this very moment. Then it is begun again.
            condition = "attribute_not_exists(AskedFor)"
            if before and before.asked_for:
                condition, values[":asked"] = "AskedFor = :asked", rows.asked_for_value(before.asked_for)
                gone += ["AskedFor", "AskedForAt"] if before.asked_for == run.attempt else []
        return self.update(
            keys.metadata_key(run.tenant),
            f"SET {', '.join(sets)} REMOVE {', '.join(gone)}",
            values=values,
            condition=condition,
            names=_STATE,
        )

    def metadata_of_touched(self, run: Run) -> Item:
        return self.update(keys.metadata_key(run.tenant), "REMOVE Deployed", condition="attribute_exists(pk)")

    def metadata_of_published(self, run: Run, publication: Publication, at: datetime) -> Item:
        """Unless that stack has taken its queue back."""
        sets, values = self._state(run.tenant, TenantState.READY, publication.version)
        gone = ["WithdrawnBy", "RootCause", "AskedFor", "AskedForAt", "LastVersion"]
        if run.attempt.operation is Operation.UPDATE:
            gone += ["OutboundQueueArn", "OutboundQueueUrl"]
        if publication.deployed is None:
            gone.append("Deployed")
        else:
            sets += ", Deployed = :deployed"
            values[":deployed"] = s(publication.deployed)
        if publication.created_by is not None:
            sets += ", CreatedBy = :creator"
            values[":creator"] = rows.requester_value(publication.created_by)
        return self.update(
            keys.metadata_key(run.tenant),
            f"SET {sets}, InboundQueueArn = :arn, InboundQueueUrl = :url, StackId = :stack, Version = :version, "
            f"CreatedAt = if_not_exists(CreatedAt, :at), UpdatedAt = :at REMOVE {', '.join(gone)}",
            values=values
            | {
                ":arn": s(publication.queue.arn),
                ":url": s(publication.queue.url),
                ":stack": s(publication.stack_id),
                ":version": s(publication.version),
                ":at": time(at),
            },
            condition=NOT_GONE,
            names=_STATE,
        )

    def metadata_of_failed(
        self, tenant: TenantId, state: TenantState, version: str | None, cause: RootCause | None, *, restore: bool
    ) -> Item:
        sets, values = self._state(tenant, state, version)
        gone = ["WithdrawnBy"] if restore else []
        if cause:
            sets += ", RootCause = :cause"
            values[":cause"] = rows.root_cause_value(cause)
        else:
            gone.append("RootCause")
        removes = f" REMOVE {', '.join(gone)}" if gone else ""
        return self._metadata(tenant, f"SET {sets}{removes}", values)

    def metadata_of_deleted(self, before: Metadata, *, keep: bool) -> Item:
        """None; or, to ``keep`` what was said about a tenant whose next create was asked for already, only that.

        Unless a create is asked for at this very moment. Then it is written again.
        """
        key = keys.metadata_key(before.tenant)
        condition, values = "attribute_not_exists(AskedForAt)", {}
        if before.asked_for_at is not None:
            condition, values = "AskedForAt = :seen", {":seen": time(before.asked_for_at)}
        if not keep:
            return self.delete(key, condition, values)
        gone = (
            *("#state", "ListingKey", "ListingSort", "RootCause", "WithdrawnBy", "Version", "Deployed", "StackId"),
            *("InboundQueueArn", "InboundQueueUrl", "OutboundQueueArn", "OutboundQueueUrl", "CreatedAt", "CreatedBy"),
            "LastVersion",
        )
        return self.update(key, f"REMOVE {', '.join(gone)}", names=_STATE, condition=condition, values=values)

    def metadata_of_corrected(self, row: Mapping[str, Any], corrected: Metadata, state: TenantState) -> Item:
        """What the metadata ought to say, if nobody has written anything else since ``row`` was read."""
        sets, values = self._state(corrected.tenant, state, corrected.version)
        fields = rows.stack_fields(corrected)
        sets += "".join(f", {name} = :{name}" for name in fields)
        values |= {f":{name}": value for name, value in fields.items()}
        # Whoever writes says when, but for a stack that goes: that takes its id away.
        conditions, seen = unchanged(row, "UpdatedAt", "StackId")
        return self.update(
            keys.metadata_key(corrected.tenant),
            f"SET {sets} REMOVE Deployed",
            values=values | seen,
            condition=" AND ".join(conditions),
            names=_STATE,
        )

    def forgotten(self, tenant: TenantId, *, stack_id: str, vanished: bool) -> tuple[str, Item, dict[str, str]]:
        """An update's expression, values and names: what a stack wrote is taken back, what people said stays.

        The stack's id is kept, so that a run that saw the stack before does not publish it.
        """
        gone = "InboundQueueArn, InboundQueueUrl, StackId, Version, Deployed"
        sets, values = self._state(tenant, TenantState.UNKNOWN, None)
        values[":stack"] = s(stack_id)
        if vanished:
            # Whoever asks for the tenant next has not brought it into being, also if nobody knows who has.
            values[":unknown"], values[":none"] = s(UNKNOWN_CREATOR), s("")
            kept = (
                "GoneStackId = :stack, CreatedBy = if_not_exists(CreatedBy, :unknown), "
                # The tenant comes back at the version that it had.
                "LastVersion = if_not_exists(Version, :none)"
            )
            return f"SET {sets}, {kept} REMOVE {gone}, RootCause", values, _STATE
        # An operation is at it, and has said the state. Only there is no version left to be listed at.
        listing_and_stack = {name: values[name] for name in (":sort", ":stack")}
        return f"SET ListingSort = :sort, GoneStackId = :stack REMOVE {gone}", listing_and_stack, {}

    def metadata_of_described(
        self,
        tenant: TenantId,
        row: Mapping[str, Any] | None,
        *,
        labels: Mapping[str, str] | None,
        pin: Pin,
        at: datetime,
        asked_for: Attempt | None,
        only_if: Seen | None,
    ) -> Item:
        """Labels and pin of a tenant that is there, or is to come; if they are still what ``row`` says."""
        sets, removes, values = ["UpdatedAt = :at"], "", {":at": time(at)}
        if asked_for is not None:
            sets.append("AskedFor = :create, AskedForAt = :at")
            values[":create"] = rows.asked_for_value(asked_for)
        if labels is not None:
            sets.append("Labels = :labels")
            values[":labels"] = rows.labels_value(labels)
        if pin.version is not None:
            sets.append("PinnedVersion = :pin")
            values[":pin"] = s(pin.version)
        elif pin.lift:
            removes = " REMOVE PinnedVersion"
        conditions, seen = unchanged(row or {}, "Labels", "PinnedVersion")
        if asked_for is None:
            conditions += ["attribute_exists(pk)", "attribute_not_exists(WithdrawnBy)"]
        if only_if is not None:
            unclaimed, further = self._unclaimed_since(only_if.metadata)
            conditions += unclaimed
            seen |= further
        return self.update(
            keys.metadata_key(tenant),
            f"SET {', '.join(sets)}{removes}",
            values=values | seen,
            condition=" AND ".join(conditions),
        )

    def _unclaimed_since(self, seen: Metadata | None) -> tuple[list[str], Item]:
        """Conditions and their values: nobody has brought the tenant into being, or asked for it, since it was seen."""
        conditions, values = ["attribute_not_exists(CreatedBy)"], Item()
        creator = seen.created_by if seen else None
        if creator is not None:
            # 0.5.0 wrote a resource as text.
            conditions = ["CreatedBy IN (:creator, :creatorsText)"]
            values = {":creator": rows.requester_value(creator), ":creatorsText": s(str(creator))}
        served = seen is not None and seen.version is not None
        conditions.append("attribute_exists(Version)" if served else "attribute_not_exists(Version)")
        if seen is None or seen.asked_for_at is None:
            conditions.append("attribute_not_exists(AskedForAt)")
        else:
            conditions.append("AskedForAt = :seenAskedForAt")
            values[":seenAskedForAt"] = time(seen.asked_for_at)
        return conditions, values

    def _state(self, tenant: TenantId, state: TenantState, version: str | None) -> tuple[str, Item]:
        listing_key, listing_sort = keys.listed_tenant(tenant, state, version)
        values = {":state": s(state), ":listing": s(listing_key), ":sort": s(listing_sort)}
        return "#state = :state, ListingKey = :listing, ListingSort = :sort", values

    def _metadata(self, tenant: TenantId, expression: str, values: Item) -> Item:
        return self.update(keys.metadata_key(tenant), expression, values=values, names=_STATE)

    # How DynamoDB spells it

    def put(
        self,
        item: Item,
        *,
        condition: str | None = None,
        values: Item | None = None,
        names: dict[str, str] | None = None,
    ) -> Item:
        put: Item = {"TableName": self.table, "Item": item}
        if condition:
            put["ConditionExpression"] = condition
        if values:
            put["ExpressionAttributeValues"] = values
        if names:
            put["ExpressionAttributeNames"] = names
        return {"Put": put}

    def check(
        self, key: keys.Key, condition: str, *, values: Item | None = None, names: dict[str, str] | None = None
    ) -> Item:
        check: Item = {"TableName": self.table, "Key": key, "ConditionExpression": condition}
        if values:
            check["ExpressionAttributeValues"] = values
        if names:
            check["ExpressionAttributeNames"] = names
        return {"ConditionCheck": check}

    def delete(self, key: keys.Key, condition: str, values: Item) -> Item:
        given: Item = {"TableName": self.table, "Key": key, "ConditionExpression": condition}
        return {"Delete": given | ({"ExpressionAttributeValues": values} if values else {})}

    def update(
        self,
        key: keys.Key,
        expression: str,
        *,
        values: Item | None = None,
        condition: str | None = None,
        names: dict[str, str] | None = None,
    ) -> Item:
        update: Item = {"TableName": self.table, "Key": key, "UpdateExpression": expression}
        if condition:
            update["ConditionExpression"] = condition
        if values:
            update["ExpressionAttributeValues"] = values
        if names:
            update["ExpressionAttributeNames"] = names
        return {"Update": update}


# "State" is a word that DynamoDB keeps to itself.
_STATE = {"#state": "State"}


def unchanged(row: Mapping[str, Any], *names: str) -> tuple[list[str], Item]:
    """Conditions, with their values, that hold while these attributes are what the row has."""
    conditions = [f"{name} = :seen{name}" if name in row else f"attribute_not_exists({name})" for name in names]
    return conditions, {f":seen{name}": row[name] for name in names if name in row}


def listing(where: tuple[str, str]) -> Item:
    listing_key, listing_sort = where
    return {"ListingKey": s(listing_key), "ListingSort": s(listing_sort)}
