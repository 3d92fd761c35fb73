"""The members of the pool of stacks that are kept ready, in one row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.common.tiers import STANDARD
from orchestrator.common.times import parse_timestamp
from orchestrator.pool.records import Member, MemberState, Pool, TierOfPool

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient


class PoolTable:
    """Implements :class:`orchestrator.pool.ports.PoolRows`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)

    def pool(self) -> Pool:
        item = self._reads.get(keys.pool_key())
        if item is None:
            return Pool()
        members = {name: _member_from(fields["M"]) for name, fields in item["Members"]["M"].items()}
        tiers = {name: _tier_from(fields["M"]) for name, fields in item["Tiers"]["M"].items()}
        return Pool(members, tiers, number(item, "Revision", 0))

    def store(self, pool: Pool) -> bool:
        row: Item = {
            **keys.pool_key(),
            "Members": {"M": {name: {"M": _fields_of(member)} for name, member in pool.members.items()}},
            "Tiers": {"M": {name: {"M": _fields_of_tier(tier)} for name, tier in pool.tiers.items()}},
            "Revision": n(pool.revision + 1),
        }
        condition: dict[str, Any] = {"ConditionExpression": "attribute_not_exists(pk)"}
        if pool.revision:
            read = {":read": n(pool.revision)}
            condition = {"ConditionExpression": "Revision = :read", "ExpressionAttributeValues": read}
        try:
            with throttling():
                self._client.put_item(TableName=self._table, Item=row, **condition)
        except ClientError as error:
            if error_code(error) != "ConditionalCheckFailedException":
                raise
            return False
        return True


def _fields_of(member: Member) -> Item:
    version: Item = {"Version": s(member.version)} if member.version else {}
    return {"Since": time(member.since), "Tier": s(member.tier), "State": s(member.state), **version}


def _member_from(fields: Mapping[str, Any]) -> Member:
    return Member(
        parse_timestamp(fields["Since"]["S"]),
        text(fields, "Version"),
        text(fields, "Tier") or STANDARD,
        MemberState(fields["State"]["S"]),
    )


def _fields_of_tier(tier: TierOfPool) -> Item:
    times = {"EmptySince": tier.empty_since, "FailedAt": tier.failed_at}
    problem: Item = {"Problem": s(tier.problem)} if tier.problem else {}
    return {**{name: time(at) for name, at in times.items() if at}, **problem}


def _tier_from(fields: Mapping[str, Any]) -> TierOfPool:
    return TierOfPool(moment(fields, "EmptySince"), text(fields, "Problem"), moment(fields, "FailedAt"))
