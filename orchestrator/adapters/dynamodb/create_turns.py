"""The turns of creates and the tickets of those that wait, in the table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError

from orchestrator.adapters.aws import error_code, throttling
from orchestrator.adapters.dynamodb import keys
from orchestrator.adapters.dynamodb.reads import Reads
from orchestrator.adapters.dynamodb.rollout_rows import pace_from, pace_value
from orchestrator.adapters.dynamodb.values import Item, moment, n, number, s, text, time
from orchestrator.common.tenant_ids import TenantId
from orchestrator.common.times import parse_timestamp
from orchestrator.rollouts.create_turns import CreateTurns, Holder, Ticket

if TYPE_CHECKING:
    from mypy_boto3_dynamodb import DynamoDBClient

_LOST_RACE = frozenset({"ConditionalCheckFailedException", "TransactionConflictException"})


class CreateTurnTable:
    """Implements :class:`orchestrator.rollouts.ports.CreateTurnRows`."""

    def __init__(self, client: DynamoDBClient, table: str) -> None:
        self._client = client
        self._table = table
        self._reads = Reads(client, table)

    def turns(self) -> CreateTurns | None:
        item = self._reads.get(keys.create_turns_key())
        return _turns_from(item) if item else None

    def store(self, turns: CreateTurns) -> bool:
        row = turns_row(replace(turns, revision=turns.revision + 1))
        if turns.revision:
            condition: dict[str, Any] = {
                "ConditionExpression": "Revision = :read",
                "ExpressionAttributeValues": {":read": n(turns.revision)},
            }
        else:
            condition = {"ConditionExpression": "attribute_not_exists(pk)"}
        try:
            with throttling():
                self._client.put_item(TableName=self._table, Item=row, **condition)
        except ClientError as error:
            if error_code(error) not in _LOST_RACE:
                raise
            return False
        return True

    def draw_number(self) -> int:
        with throttling():
            row: Item = self._client.update_item(
                TableName=self._table,
                Key=keys.ticket_number_key(),
                UpdateExpression="ADD LatestTicket :one",
                ExpressionAttributeValues={":one": n(1)},
                ReturnValues="ALL_NEW",
            )["Attributes"]
        return number(row, "LatestTicket", 0)

    def put_ticket(self, ticket: Ticket) -> None:
        row: Item = {
            **keys.ticket_key(ticket.number),
            "TenantId": s(ticket.tenant.value),
            "Execution": s(ticket.execution),
            "TaskToken": s(ticket.task_token),
        }
        with throttling():
            self._client.put_item(TableName=self._table, Item=row)

    def first_ticket(self) -> Ticket | None:
        with throttling():
            page = self._client.query(
                TableName=self._table,
                KeyConditionExpression="pk = :pk AND begins_with(sk, :prefix)",
                ExpressionAttributeValues={":pk": s(keys.CREATE_TURNS), ":prefix": s(keys.TICKET_PREFIX)},
                ConsistentRead=True,
                Limit=1,
            )
        return next(map(_ticket_from, page["Items"]), None)

    def remove_ticket(self, ticket: Ticket) -> None:
        try:
            with throttling():
                self._client.delete_item(
                    TableName=self._table,
                    Key=keys.ticket_key(ticket.number),
                    ConditionExpression="TaskToken = :token",
                    ExpressionAttributeValues={":token": s(ticket.task_token)},
                )
        except ClientError as error:
            if error_code(error) not in _LOST_RACE:
                raise


def turns_row(turns: CreateTurns) -> Item:
    holders = {
        execution: {
            "M": {"TenantId": s(holder.tenant.value), "Since": time(holder.since), "Waited": {"BOOL": holder.waited}}
        }
        for execution, holder in turns.holders.items()
    }
    return {
        **keys.create_turns_key(),
        "Pace": pace_value(turns.pace),
        "Holders": {"M": holders},
        "TicketsLeft": n(turns.tickets_left),
        "SecondsPerCreate": {"N": repr(turns.seconds_per_create)},
        "Revision": n(turns.revision),
        **({"MovedAt": time(turns.moved_at)} if turns.moved_at else {}),
    }


def _turns_from(item: Mapping[str, Any]) -> CreateTurns:
    return CreateTurns(
        pace=pace_from(item["Pace"]["M"]),
        holders={execution: _holder_from(fields["M"]) for execution, fields in item["Holders"]["M"].items()},
        tickets_left=number(item, "TicketsLeft", 0),
        seconds_per_create=float(item["SecondsPerCreate"]["N"]),
        moved_at=moment(item, "MovedAt"),
        revision=number(item, "Revision", 0),
    )


def _holder_from(fields: Mapping[str, Any]) -> Holder:
    tenant, since = TenantId.parse(text(fields, "TenantId")), parse_timestamp(fields["Since"]["S"])
    return Holder(tenant, since, fields["Waited"]["BOOL"])


def _ticket_from(item: Mapping[str, Any]) -> Ticket:
    tenant = TenantId.parse(text(item, "TenantId"))
    return Ticket(keys.ticket_of(item["sk"]["S"]), tenant, item["Execution"]["S"], item["TaskToken"]["S"])
