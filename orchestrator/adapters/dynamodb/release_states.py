"""The state of releases in the table: one row that is changed as a whole, and its history."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import cancellation_codes, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.rows import UNREADABLE, readable
from orchestrator.adapters.dynamodb.values import Item, n, number, s, text, time
from orchestrator.adapters.dynamodb.writes import Writes
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import parse_timestamp
from orchestrator.releases.records import Promotion, RecordedReleaseChange, ReleaseOrder, ReleaseState, Withdrawal

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_LOST_RACE = frozenset({"ConditionalCheckFailed", "TransactionConflict"})


class ReleaseStateTable:
    """Implements :class:`orchestrator.releases.ports.ReleaseStates`. Nothing is kept between two reads."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._reads = Reads(client, table)
        self._writes = Writes(table)

    def state(self) -> ReleaseState:
        item = self._reads.get(keys.release_state_key())
        return readable(_state_from, item) if item else ReleaseState()

    def change(self, state: ReleaseState, change: RecordedReleaseChange) -> bool:
        row = _state_row(replace(state, revision=state.revision + 1))
        if state.revision:
            put = self._writes.put(row, condition="Revision = :read", values={":read": n(state.revision)})
        else:
            put = self._writes.put(row, condition="attribute_not_exists(pk)")
        writes: list[Any] = [put, self._writes.append(_change_row(change))]
        with throttling():
            try:
                self._client.transact_write_items(TransactItems=writes)
            except ClientError as error:
                if _LOST_RACE.isdisjoint(cancellation_codes(error)):
                    raise
                return False
        return True

    def changes(self, *, limit: int) -> Sequence[RecordedReleaseChange]:
        newest_first = self._reads.newest_first(keys.release_history_pk(), limit=limit)
        return [_change_from(item) for item in islice(newest_first, limit)]


def _state_row(state: ReleaseState) -> Item:
    row: Item = {
        **keys.release_state_key(),
        "Withdrawn": {"M": {version: {"M": _fields(each)} for version, each in state.withdrawn.items()}},
        "Revision": n(state.revision),
    }
    if state.kept_by:
        row["KeptBy"] = s(state.kept_by)
    promotions = {tier: {"M": _promotion_fields(each)} for tier, each in state.promotions.items()}
    if STANDARD in promotions:
        row["Promoted"] = promotions.pop(STANDARD)
    if promotions:
        row["PromotedByTier"] = {"M": promotions}
    return row


def _promotion_fields(promotion: Promotion) -> Item:
    instead_of = {"InsteadOf": s(promotion.instead_of)} if promotion.instead_of else {}
    return {"Version": s(promotion.version), **_fields(promotion), **instead_of}


def _fields(by_whom: Promotion | Withdrawal) -> Item:
    return {"At": time(by_whom.at), "RequestedBy": s(by_whom.by), "RequestedBecause": s(by_whom.reason)}


def _state_from(item: Mapping[str, Any]) -> ReleaseState:
    by_tier = dict(item["PromotedByTier"]["M"]) if "PromotedByTier" in item else {}
    if "Promoted" in item:  # The only promotion before there were tiers.
        by_tier[STANDARD] = item["Promoted"]
    return ReleaseState(
        promotions={tier: _promotion_from(each["M"]) for tier, each in by_tier.items()},
        withdrawn={version: Withdrawal(*_values(each["M"])) for version, each in item["Withdrawn"]["M"].items()},
        kept_by=text(item, "KeptBy") or "",
        revision=number(item, "Revision", 0),
    )


def _promotion_from(fields: Mapping[str, Any]) -> Promotion:
    return Promotion(fields["Version"]["S"], *_values(fields), text(fields, "InsteadOf"))


def _values(fields: Mapping[str, Any]) -> tuple[Any, str, str]:
    return parse_timestamp(fields["At"]["S"]), fields["RequestedBy"]["S"], text(fields, "RequestedBecause") or ""


def _change_row(change: RecordedReleaseChange) -> Item:
    assert change.order is not None and change.at is not None  # noqa: S101, PT018 - only unreadable entries have none
    fields: Item = {
        "At": time(change.at),
        "Order": s(change.order),
        "Version": s(change.version),
        "RequestedBy": s(change.by),
        **({"RequestedBecause": s(change.reason)} if change.reason else {}),
    }
    return keys.release_history_key(change.at, change.order, fields) | fields


def _change_from(item: Mapping[str, Any]) -> RecordedReleaseChange:
    """An unreadable row must not hide the other entries."""
    try:
        return RecordedReleaseChange(
            version=item["Version"]["S"],
            at=parse_timestamp(item["At"]["S"]),
            order=ReleaseOrder(item["Order"]["S"]),
            by=item["RequestedBy"]["S"],
            reason=text(item, "RequestedBecause") or "",
            altered=keys.is_altered(item),
        )
    except UNREADABLE:
        return RecordedReleaseChange("", keys.moment_of_history(item["sk"]["S"]), None, "", altered=True)
